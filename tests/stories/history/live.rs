//! Which conversation a running process has: Claude's own list, Codex's open file.

use std::fs::File;
use std::process::{Command, Stdio};

use ait::history::{self, Status};
use ait::process;
use serde_json::json;

use super::{ONE, Stores, TIMED, TWO};
use crate::support::run::Running;

#[test]
fn claudes_list_counts_only_for_the_process_that_wrote_it() {
    let stores = Stores::new();
    let me = process::me().unwrap();
    let file = format!(".claude/sessions/{}.json", me.pid);
    let mut entry = json!({"pid": me.pid, "sessionId": ONE, "cwd": "/srv/x", "startedAt": 1_795_985_622_000_i64,
        "procStart": me.started, "version": "2.1.332", "kind": "interactive", "tmux": "main:@1.%3", "status": "waiting",
        "waitingFor": "permission prompt", "updatedAt": 1_795_985_623_000_i64, "statusUpdatedAt": 1_795_985_623_000_i64});
    let ask = || history::registry(&me, &stores.env());
    assert_eq!(ask(), None);
    // other tools drop files beside it
    stores.file(&format!(".claude/sessions/{}.waiting.json", me.pid), entry.to_string());
    assert_eq!(ask(), None);
    stores.file(&file, entry.to_string());
    let found = ask().unwrap();
    assert_eq!((found.session_id.as_str(), found.status), (ONE, Some(Status::Waiting)));
    assert_eq!(found.waiting_for.as_deref(), Some("permission prompt"));
    assert_eq!(found.status_at.unwrap().as_second(), 1_795_985_623);
    // after /clear
    entry["sessionId"] = json!(TWO);
    entry["status"] = json!("a word of next year");
    stores.file(&file, entry.to_string());
    assert_eq!(ask().map(|found| (found.session_id, found.status)), Some((TWO.to_owned(), None)));
    // an earlier process of that number
    entry["procStart"] = json!("1");
    stores.file(&file, entry.to_string());
    assert_eq!(ask(), None);
    entry.as_object_mut().unwrap().remove("procStart");
    entry.as_object_mut().unwrap().remove("status");
    stores.file(&file, entry.to_string());
    assert_eq!(ask().map(|found| found.status), Some(None), "earlier versions say less");
    entry["pid"] = json!(1);
    stores.file(&file, entry.to_string());
    assert_eq!(ask(), None);
    stores.file(&file, "{\"pid\":");
    assert_eq!(ask(), None);
    // the process is gone
    entry["pid"] = json!(me.pid);
    stores.file(&file, entry.to_string());
    let gone = process::ProcessId::new(me.pid, "1");
    assert_eq!(history::registry(&gone, &stores.env()), None);
}

#[test]
fn an_open_rollout_names_the_conversation_of_its_process_and_those_above() {
    let stores = Stores::new();
    let name = |id: &str| format!(".codex/sessions/2026/11/29/rollout-2026-11-29T20-48-51-{id}.jsonl");
    let (one, two) = (stores.file(&name(TIMED), ""), stores.file(&name(ONE), ""));
    stores.file(&format!("not-a-store/rollout-2026-11-29T20-48-51-{TWO}.jsonl"), "");
    let holding = |files: &[&std::path::Path]| {
        // a wrapper whose child has the file open, as Codex is started
        let redirections: Vec<String> =
            files.iter().enumerate().map(|(at, file)| format!("{}<'{}'", at + 3, file.display())).collect();
        let script = format!("sh -c 'read line' {} & wait", redirections.join(" "));
        // what is typed goes to nobody: the inner shell's own input stays open
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 9<&0; {}", script.replace("read line", "read line <&9"))]);
        command.stdin(Stdio::piped());
        Running::start(&mut command)
    };
    let open = |files: &[&std::path::Path]| {
        let mut running = holding(files);
        let pid = i32::try_from(running.process().pid).unwrap();
        let held = |pid: i32| {
            let all = process::descendants(pid).unwrap_or_default();
            all.iter().any(|process| {
                let links =
                    std::fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
                let open: Vec<_> = links.filter_map(|link| std::fs::read_link(link.path()).ok()).collect();
                files.iter().all(|file| open.iter().any(|link| link == file))
            })
        };
        crate::support::wait_until("the files to be open", crate::support::DEADLINE, || {
            held(pid).then_some(())
        });
        let answer = history::opened_by(pid);
        drop(running.child().stdin.take());
        running.join(crate::support::DEADLINE);
        answer
    };
    assert_eq!(open(&[&one]).as_deref(), Some(TIMED));
    assert_eq!(open(&[&one, &two]), None, "two are not one");
    let outside = stores.home().join(format!("not-a-store/rollout-2026-11-29T20-48-51-{TWO}.jsonl"));
    assert_eq!(open(&[&outside]), None);
    drop(File::open(&one).unwrap());
    assert_eq!(history::opened_by(i32::MAX), None);
}
