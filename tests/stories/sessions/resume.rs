//! Resuming: the exact conversation, under the same id, from wherever the record is.

use serde_json::Value;

use super::{Asked, ait, data, edit, habits, refusal};
use crate::support::{DEADLINE, Home, Supervisor, Tmux, wait_until};

/// A session that has answered one prompt; what it was told as.
#[track_caller]
fn talked(home: &Home) -> Value {
    let words = ["start", "--agent", "claude", "--id", "s", "--prompt", "one", "--format", "json"];
    let seen = data(&ait(home, &words).ok(), "start");
    answers(home, "0 earlier");
    seen
}

#[track_caller]
fn answers(home: &Home, text: &str) {
    wait_until(&format!("the answer with {text:?}"), DEADLINE, || {
        let seen = data(&ait(home, &["glance", "s", "--format", "json"]).ok(), "glance");
        seen["tail"].as_str().unwrap().contains(text).then_some(())
    });
}

#[track_caller]
fn kill(tmux: &Tmux, seen: &Value) {
    let pid = u32::try_from(seen["location"]["pid"].as_u64().unwrap()).unwrap();
    let process = crate::support::proc::Process::of(pid).unwrap();
    tmux.ok(["kill-pane", "-t", seen["location"]["pane"].as_str().unwrap()]);
    assert!(process.dies(DEADLINE));
}

#[track_caller]
fn is_back(home: &Home, before: &Value) {
    let id = before["id"].as_str().unwrap();
    let of =
        |record: Option<Value>| record.map(|record| record["ait"]["runtime_id"].as_str().unwrap().to_owned());
    let runtime = of(home.record(id))
        .or_else(|| of(home.archived_record(id).map(|line| line["record"].clone())))
        .unwrap();
    let text = ait(home, &["resume", "s"]).ok().text();
    assert!(text.starts_with(&format!("resumed claude session {id}\ntmux: ")), "{text}");
    let seen = data(&ait(home, &["show", "s", "--format", "json"]).ok(), "show");
    assert_eq!((&seen["id"], &seen["status"]), (&before["id"], &"running".into()), "{seen:#}");
    assert_eq!(seen["provider_resume"]["session_id"], before["provider_resume"]["session_id"]);
    let record = home.record(id).unwrap();
    assert_eq!((&record["state"], &record["ait"]["generation"]), (&"live".into(), &2.into()), "{record:#}");
    assert!(
        seen["turn_state"].get("current_turn").is_none(),
        "what was said of the launch before is over: {seen:#}"
    );
    let launch = record["ait"]["runtime_id"].as_str().unwrap();
    assert_eq!(uuid::Uuid::parse_str(launch).unwrap().get_version_num(), 4, "{record:#}");
    assert_ne!(launch, runtime, "a launch of its own");
    answers(home, "one");
}

#[test]
fn a_session_that_nobody_saw_end_comes_back() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = talked(&home);
    kill(&tmux, &seen);
    is_back(&home, &seen);
    let again = data(&ait(&home, &["resume", "s", "--format", "json"]).ok(), "resume");
    assert_eq!(again["turn_state"]["phase"], "starting", "nobody else says anything of it: {again:#}");
    assert_eq!(again["status"], "running", "a running one stays as it is: {again:#}");
    assert_eq!(home.record(seen["id"].as_str().unwrap()).unwrap()["ait"]["generation"], 2);
}

#[test]
fn a_session_comes_back_from_the_archive_under_its_id() {
    let home = Home::new();
    let tmux = habits(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let seen = talked(&home);
    kill(&tmux, &seen);
    home.until_ended(seen["id"].as_str().unwrap());
    is_back(&home, &seen);
}

#[test]
fn of_several_resumes_at_once_one_brings_it_back() {
    let home = Home::new();
    let tmux = habits(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let seen = talked(&home);
    kill(&tmux, &seen);
    home.until_ended(seen["id"].as_str().unwrap());
    let root = home.project("alpha");
    let resume = || {
        let mut command = home.ait_command(["resume", "s", "--format", "json"]);
        command.current_dir(&root);
        std::thread::spawn(move || crate::support::Ran::run(&mut command))
    };
    let all = [resume(), resume(), resume(), resume()].map(|run| run.join().unwrap());
    let (won, lost): (Vec<_>, Vec<_>) = all.iter().partition(|ran| ran.status.success());
    assert!(!won.is_empty(), "{all:?}");
    for lost in lost {
        assert_eq!(refusal(lost), "session-busy", "{lost}");
    }
    let back = data(&ait(&home, &["show", "s", "--format", "json"]).ok(), "show");
    assert_eq!(back["status"], "running", "{back:#}");
    let windows = tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]);
    assert_eq!(windows.lines().filter(|name| *name == "s").count(), 1, "{windows}");
    assert_eq!(home.record(seen["id"].as_str().unwrap()).unwrap()["ait"]["generation"], 2);
}

#[test]
fn what_a_tmux_keeps_of_an_agent_that_ended_goes_when_it_comes_back_or_is_deleted() {
    let home = Home::new();
    let tmux = habits(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let before = tmux.panes().len();
    let seen = talked(&home);
    let (id, pane) = (seen["id"].as_str().unwrap(), seen["location"]["pane"].as_str().unwrap());
    let leave = |pane: &str| {
        tmux.ok(["send-keys", "-t", pane, "-l", "/exit"]);
        tmux.ok(["send-keys", "-t", pane, "Enter"]);
        home.until_ended(id);
        assert_eq!(tmux.ok(["display-message", "-p", "-t", pane, "#{pane_dead}"]).trim(), "1", "it is kept");
    };
    leave(pane);
    is_back(&home, &seen);
    let panes = tmux.panes();
    assert_eq!(panes.len(), before + 1, "one pane, not a dead one beside it: {panes:#?}");
    let again = data(&ait(&home, &["show", "s", "--format", "json"]).ok(), "show");
    leave(again["location"]["pane"].as_str().unwrap());
    let told = data(&ait(&home, &["delete", "s", "--format", "json"]).ok(), "delete");
    assert_eq!(told["killed"], true, "{told:#}");
    assert_eq!(tmux.panes().len(), before);
}

#[test]
fn what_has_no_exact_conversation_is_not_resumed() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = talked(&home);
    kill(&tmux, &seen);
    let id = seen["id"].as_str().unwrap().to_owned();
    let panes = tmux.panes();
    let session_id = seen["provider_resume"]["session_id"].clone();
    let record_is = |field: &str, value: &Value| {
        edit(&home, |records| records.iter_mut().for_each(|record| record[field] = value.clone()));
    };
    for (field, wrong, code) in [
        ("codeagent_session_id", "", "session-not-resumable"),
        ("codeagent_session_id", "not-an-id", "session-not-resumable"),
        // a codex's ids look the same, and its program would be asked for a conversation of another's
        ("agent_kind", "codex", "session-provider-mismatch"),
        ("agent_kind", "nobody", "invalid-agent"),
    ] {
        let right = home.record(&id).unwrap()[field].clone();
        record_is(field, &wrong.into());
        let asked = Asked::of(&home);
        let ran = ait(&home, &["resume", "s", "--format", "json"]).code(65);
        assert_eq!(refusal(&ran), code, "{wrong:?}");
        assert_eq!(asked.with("exec"), [[""; 0]; 0], "nothing is started");
        drop(asked);
        let listed = data(&ait(&home, &["list", "--format", "json"]).ok(), "list");
        assert_eq!(
            (&listed[0]["resumable"], &listed[0].get("provider_resume")),
            (&false.into(), &None),
            "{listed:#}"
        );
        assert_eq!(home.record(&id).unwrap()["state"], "live", "its record is as it was");
        record_is(field, &right);
    }
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], session_id);
    home.wrap_tmux("echo 'what' >&2; exit 42");
    let ran = ait(&home, &["resume", "s", "--format", "json"]).code(1);
    assert_eq!(refusal(&ran), "session-status-unknown");
    home.unwrap_tmux();
    assert_eq!(tmux.panes(), panes, "nothing was started");
    assert_eq!(home.record(&id).unwrap()["ait"]["generation"], 1);
}

/// Words that a start would refuse are on record where a user typed them to an agent that was adopted, or where its conversation
/// went on under another id: what is brought back is the conversation on record, and none of them is given again.
#[test]
fn words_on_record_that_choose_another_conversation_are_not_given_again() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = talked(&home);
    kill(&tmux, &seen);
    let conversation = seen["provider_resume"]["session_id"].as_str().unwrap();
    let other = crate::support::fake::new_id();
    let words = [
        "claude",
        "--continue",
        "-c",
        "--resume",
        &other,
        "-r",
        &other,
        "--fork-session",
        "--from-pr=1",
        "--session-id",
        &other,
        "--effort",
        "high",
        "--resume=x",
    ];
    edit(&home, |records| records[0]["ait"]["argv"] = words.as_slice().into());
    let wanted = ["--resume", conversation, "--effort", "high"];
    let listed = data(&ait(&home, &["list", "--format", "json"]).ok(), "list");
    assert_eq!(listed[0]["resumable"], true, "{listed:#}");
    assert_eq!(listed[0]["provider_resume"]["resume_args"], serde_json::json!(wanted), "{listed:#}");
    is_back(&home, &seen);
    let pid = data(&ait(&home, &["show", "s", "--format", "json"]).ok(), "show")["location"]["pid"].clone();
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let line = String::from_utf8(line).unwrap().replace('\0', " ");
    assert!(line.trim_end().ends_with(&wanted.join(" ")), "{line}");
    assert!(!line.contains(&other), "{line}");
}

#[test]
fn a_resume_that_cannot_be_launched_leaves_all_as_it_was() {
    let home = Home::new();
    let tmux = habits(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let seen = talked(&home);
    let id = seen["id"].as_str().unwrap().to_owned();
    kill(&tmux, &seen);
    home.until_ended(&id);
    let show = || data(&ait(&home, &["show", "s", "--format", "json"]).ok(), "show");
    let folder = home.home().join(".local/state/ait/sessions").join(&id);
    let activity = || {
        let entries = std::fs::read_dir(&folder).unwrap().flatten();
        let mut files: Vec<_> =
            entries.map(|entry| (entry.path(), std::fs::read(entry.path()).unwrap())).collect();
        files.sort();
        files
    };
    let (before, files, panes) = (show(), activity(), tmux.panes().len());
    let runtime = home.archived_record(&id).unwrap()["record"]["ait"]["runtime_id"].clone();
    home.wrap_tmux("case \"$*\" in *exec*--record*) echo 'create window failed' >&2; exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"");
    let ran = ait(&home, &["resume", "s", "--format", "json"]).code(1);
    home.unwrap_tmux();
    assert_eq!(refusal(&ran), "command-failed", "{ran}");
    let after = show();
    for field in ["id", "status", "resumable", "updated_at", "created_at", "provider_resume", "title", "cwd"]
    {
        assert_eq!(after[field], before[field], "{field}: {after:#}");
    }
    let record = home.record(&id).unwrap();
    assert_eq!(
        (&record["ait"]["generation"], &record["ait"]["runtime_id"]),
        (&1.into(), &runtime),
        "{record:#}"
    );
    assert_eq!(activity(), files);
    assert_eq!(tmux.panes().len(), panes, "nothing was started");
    is_back(&home, &seen);
}

#[test]
fn files_of_another_version_in_its_folder_stay_until_it_is_deleted() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = talked(&home);
    let folder = home.home().join(".local/state/ait/sessions").join(seen["id"].as_str().unwrap());
    let (mark, text) =
        (folder.join("resume.json"), "{\"schema_version\":\"agent-session.resume.v2\",\"x\":1}");
    std::fs::write(&mark, text).unwrap();
    edit(&home, |records| records[0]["ait"]["session"]["format"] = "agent-session.session.v2".into());
    ait(&home, &["send", "s", "--key", "escape"]).ok();
    ait(&home, &["list"]).ok();
    kill(&tmux, &seen);
    is_back(&home, &seen);
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), text);
    assert_eq!(home.records()[0]["ait"]["session"]["format"], "agent-session.session.v2");
    ait(&home, &["delete", "s"]).ok();
    assert!(!folder.exists());
}

#[test]
fn what_nobody_knows_survives_a_resume() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = talked(&home);
    kill(&tmux, &seen);
    edit(&home, |records| {
        records[0]["later"] = 1.into();
        records[0]["ait"]["later"] = 2.into();
        records[0]["ait"]["session"]["later"] = 3.into();
    });
    is_back(&home, &seen);
    let record = home.record(seen["id"].as_str().unwrap()).unwrap();
    let kept = [&record["later"], &record["ait"]["later"], &record["ait"]["session"]["later"]];
    assert_eq!(kept, [&Value::from(1), &2.into(), &3.into()], "{record:#}");
    let view = ait(&home, &["show", "s", "--format", "json"]).ok().text();
    assert!(!view.contains("later"), "{view}");
}
