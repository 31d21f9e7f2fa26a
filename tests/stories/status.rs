//! `ait status`: the truth about what is known, with a supervisor, without one, and over a broken store.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::run::Running;
use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Home, Supervisor, Tmux, wait_until};

/// A window with a stand-in called `claude`, adopted; its pane and its record's id.
fn adopted(home: &Home, tmux: &Tmux, name: &str) -> (Pane, String) {
    let program = home.bin().join("claude");
    if !program.exists() {
        symlink(AIT, &program).unwrap();
    }
    let pane = tmux.window("main", name, &home.project("alpha"), &[program.to_str().unwrap(), "demo-agent"]);
    wait_until("the stand-in to draw", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("waiting").then_some(())
    });
    home.ait(["adopt", &pane.id]).ok();
    let id = tmux.format(&pane.id, "#{@aitask_record}");
    (pane, id)
}

fn record<'a>(status: &'a Value, id: &str) -> &'a Value {
    status["records"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["id"] == id)
        .expect("the record is shown")
}

#[test]
fn without_a_supervisor_it_is_the_store_alone_and_says_so() {
    let home = Home::new();
    let bare = home.ait(["status"]).code(11);
    assert!(bare.text().contains("NOT RUNNING: none has run on this store"), "{bare}");
    let tmux = Tmux::start(&home);
    let (pane, id) = adopted(&home, &tmux, "w");
    let status = home.ait(["status", "--json"]).code(11).json();
    assert_eq!(status["health"], "no_supervisor");
    assert_eq!(status["supervisor"], Value::Null);
    let seen = record(&status, &id);
    assert_eq!(seen["state"], "live");
    assert_eq!(seen["location"]["pane"], pane.id);
    assert_eq!(seen["known"]["by"], "store");
    assert_eq!(seen["known"]["note"], "nobody watches; its process lives");
    let process = pane.process();
    process.signal(Signal::KILL);
    assert!(process.dies(DEADLINE));
    let status = home.ait(["status", "--json"]).code(11).json();
    assert_eq!(record(&status, &id)["known"]["note"], "nobody watches; its process is gone");
    assert_eq!(record(&status, &id)["state"], "live", "looking changes nothing");
}

#[test]
fn a_corrupt_store_is_shown_with_its_place_and_never_as_empty() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (_, first) = adopted(&home, &tmux, "one");
    adopted(&home, &tmux, "two");
    fs::write(home.store(), "{\n  \"sessions\": [,]\n}\n").unwrap();
    let ran = home.ait(["status"]).code(65);
    assert!(ran.text().contains("CORRUPT; shown is the generation before (1 record)"), "{ran}");
    assert!(ran.text().contains("line 2 column 16"), "{ran}");
    assert!(ran.text().contains(&first), "{ran}");
    let status = home.ait(["status", "--json"]).code(65).json();
    assert_eq!(status["health"], "store_corrupt");
    assert_eq!(status["store"]["shown"], "previous");
    let prev = home.store().with_file_name("agent_sessions.json.prev");
    fs::write(&prev, "also broken").unwrap();
    let ran = home.ait(["status"]).code(65);
    assert!(ran.text().contains("CORRUPT, and no earlier generation can be read"), "{ran}");
    // a store that lost its bytes is no empty store
    fs::write(home.store(), "").unwrap();
    home.ait(["status"]).code(65);
}

#[test]
fn one_broken_record_is_named_and_the_others_are_shown() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (_, first) = adopted(&home, &tmux, "one");
    let (_, second) = adopted(&home, &tmux, "two");
    let text = fs::read_to_string(home.store()).unwrap();
    let mut store: Value = serde_json::from_str(&text).unwrap();
    let broken =
        store["sessions"].as_array_mut().unwrap().iter_mut().find(|record| record["id"] == first).unwrap();
    broken["state"] = "sleeping".into();
    fs::write(home.store(), serde_json::to_vec_pretty(&store).unwrap()).unwrap();
    let ran = home.ait(["status"]).code(11);
    assert!(ran.text().contains(&format!("record {first} on line")), "{ran}");
    assert!(ran.text().lines().any(|line| line.starts_with(&second)), "{ran}");
    // with a supervisor it is that which needs a look
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.status_until("the broken record to need a look", |status| {
        (status["health"] == "degraded").then_some(())
    });
    home.ait(["status"]).code(10);
}

/// The files that `ait status --json` opens over `count` frozen records.
fn opened(count: u32) -> std::collections::BTreeSet<String> {
    let home = Home::on_tmpfs();
    let root = home.project("alpha");
    let records: Vec<Value> = (0..count)
        .map(|at| {
            let file = |name: &str| home.home().join(format!(".config/aitasks/frozen/{at:08x}/{name}"));
            serde_json::json!({
                "id": format!("{at:08x}"), "root": root, "window": format!("w{at}"), "state": "frozen",
                "pane_id": "", "pane_pid": 0, "frozen_at": "2026-01-01T00:00:00Z",
                "codeagent_session_id": format!("conversation-{at}"),
                "transcript_path": home.home().join(format!("{at}.jsonl")),
                "capture_ansi": file("capture.ansi"), "capture_txt": file("capture.txt"),
            })
        })
        .collect();
    fs::create_dir_all(home.store().parent().unwrap()).unwrap();
    fs::write(home.store(), serde_json::json!({"version": 1, "sessions": records}).to_string()).unwrap();
    let trace = home.root().join("trace");
    let mut command = home.command("strace");
    command.args(["-f", "-qq", "-e", "trace=open,openat,openat2", "-o"]).arg(&trace);
    let ran = crate::support::Ran::run(command.arg(AIT).args(["status", "--json"])).code(11);
    assert_eq!(ran.json()["records"].as_array().unwrap().len(), count as usize);
    let text = fs::read_to_string(&trace).unwrap().replace(&home.root().display().to_string(), "");
    text.lines().filter_map(|line| line.split('"').nth(1).map(str::to_owned)).collect()
}

#[test]
fn a_thousand_records_open_no_file_of_their_own() {
    if let Err(why) = crate::support::proc::strace() {
        crate::support::not_run(&why);
        return;
    }
    let few = opened(3);
    assert!(few.contains("/home/.config/aitasks/agent_sessions.json"), "{few:?}");
    assert_eq!(opened(1_000), few);
}

#[test]
fn a_terminal_obeys_nothing_that_a_record_holds() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (_, id) = adopted(&home, &tmux, "w");
    let mut store: Value = serde_json::from_str(&fs::read_to_string(home.store()).unwrap()).unwrap();
    store["sessions"][0]["window"] = "\u{1b}]0;owned\u{7}\u{202e}\nFORGED live".into();
    fs::write(home.store(), serde_json::to_vec_pretty(&store).unwrap()).unwrap();
    let ran = home.ait(["status"]).code(11);
    assert!(ran.stdout.iter().all(|byte| *byte == b'\n' || *byte >= b' '), "{ran}");
    let line = ran.text().lines().find(|line| line.starts_with(&id)).map(str::to_owned).unwrap();
    assert!(line.contains("\\x1b]0;owned\\x07\\u{202e}\\nFORGED live"), "{line}");
}

#[test]
fn with_a_supervisor_each_record_is_watched_and_a_rename_is_told() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (pane, id) = adopted(&home, &tmux, "w");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.attached(&tmux);
    supervisor.status_until("the record to be watched", |status| {
        (record(status, &id)["known"]["by"] == "watched").then_some(())
    });
    let status = home.ait(["status", "--json"]).code(0).json();
    assert_eq!(status["health"], "healthy");
    assert_eq!(status["supervisor"]["pid"], supervisor.process().pid);
    let server = &status["servers"][0];
    assert_eq!(server["state"]["is"], "watching");
    assert_eq!(server["epoch"]["pid"], tmux.server().pid);
    assert_eq!(server["sessions"], 1, "`_ait` is not counted");
    tmux.ok(["rename-window", "-t", &pane.window, "renamed"]);
    supervisor
        .status_until("the rename", |status| (record(status, &id)["window"] == "renamed").then_some(()));
    let text = home.ait(["status"]).code(0).text();
    assert!(text.contains("last event: "), "{text}");
    assert!(text.contains("in the store after "), "{text}");
}

#[test]
fn a_watcher_is_told_of_every_change_and_of_the_end() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (pane, id) = adopted(&home, &tmux, "w");
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.attached(&tmux);
    let mut command = home.ait_command(["status", "--watch", "--json"]);
    let mut watcher = Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let lines = BufReader::new(watcher.child().stdout.take().unwrap()).lines();
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line.unwrap()))));
    // one line at once, then one after each change
    let until = |what: &str, found: &dyn Fn(&Value) -> bool| loop {
        let line =
            told.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("the watcher is not told of {what}"));
        if found(&serde_json::from_str(&line).unwrap()) {
            break;
        }
    };
    until("the first look", &|status| record(status, &id)["state"] == "live");
    tmux.ok(["rename-window", "-t", &pane.window, "seen"]);
    until("the rename", &|status| record(status, &id)["window"] == "seen");
    supervisor.stop();
    until("the end", &|status| status["health"] == "no_supervisor");
    assert_eq!(watcher.join(DEADLINE).code(), Some(11));
    reader.join().unwrap();
}

#[test]
fn a_lost_agent_needs_you() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (_, id) = adopted(&home, &tmux, "w");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.attached(&tmux);
    tmux.kill(Signal::KILL);
    supervisor.status_until("the loss", |status| {
        let record = record(status, &id);
        (record["lost"]["cause"].is_string() && record["state"] == "frozen").then_some(())
    });
    let ran = home.ait(["status"]).code(10);
    assert!(ran.text().contains(&format!("{id}  its agent was lost (")), "{ran}");
}
