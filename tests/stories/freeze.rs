//! Freezing: an agent is ended only when it may be, its screen is kept, and a stand-in takes its pane.

use serde_json::{Value, json};

use crate::support::fake::Fake;
use crate::support::proc::Process;
use crate::support::{AIT, Agent, DEADLINE, Home, Ran, Supervisor, Tmux, wait_until};

/// The one outcome of an `ait freeze --json` or `ait drop --json`.
#[track_caller]
pub(crate) fn outcome(ran: &Ran) -> Value {
    let lines: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ended = lines.into_iter().filter(|line| line["event"] == "outcome");
    let one = ended.next().unwrap_or_else(|| panic!("no outcome: {ran}"));
    assert!(ended.next().is_none(), "one outcome: {ran}");
    one
}

/// The record is frozen with its capture, and its pane shows the viewer.
#[track_caller]
fn is_frozen(home: &Home, tmux: &Tmux, agent: &Agent) {
    let record = home.record(&agent.id).expect("the record is kept");
    assert_eq!(record["state"], "frozen", "{record:#}");
    assert_eq!(record["op_nonce"], "", "no lease is left: {record:#}");
    assert_eq!(record["pane_id"], agent.pane.id.as_str(), "the same pane");
    for name in ["capture_ansi", "capture_txt"] {
        let path = record[name].as_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("waiting"), "{path}: {text:?}");
    }
    let told = tmux.format(
        &agent.pane.id,
        "#{@aitask_frozen} #{@aitask_standin_ready} #{pane_dead} #{pane_pid} #{@aitask_respawn_token}",
    );
    assert_eq!(told, format!("{} 1 0 {} ", agent.id, record["pane_pid"]));
    assert_ne!(record["pane_pid"], agent.pane.pid, "the agent's process is not the stand-in");
}

fn ready(tmux: &Tmux, agent: &Agent) {
    wait_until("the stand-in agent's first words", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &agent.pane.id]).contains("waiting").then_some(())
    });
}

#[test]
fn what_a_freeze_gives_back_of_memory_is_said_before_and_kept() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    ready(&tmux, &agent);
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", agent.pane.process().pid)).unwrap();
    let pages: Vec<u64> = statm.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let expected = (pages[1] - pages[2]) * rustix::param::page_size() as u64;
    let detail = |ran: &Ran| outcome(ran)["detail"].as_str().unwrap().to_owned();
    let planned = home.ait(["freeze", &agent.id, "--force", "--dry-run", "--json"]).ok();
    let said = format!("{} MB of memory", expected.div_ceil(1_000_000));
    assert!(detail(&planned).ends_with(&said), "{said}: {planned}");
    let told = home.ait(["freeze", &agent.id, "--force", "--json"]).ok();
    assert!(detail(&told).ends_with(" MB of memory"), "{told}");
    let kept = home.record(&agent.id).unwrap()["ait"]["memory"].as_u64().expect("it is kept");
    assert!((expected / 2..=expected * 2).contains(&kept), "{kept} of {expected}");
    let status = home.ait(["status"]).text();
    assert!(status.contains(" MB freed)"), "{status}");
}

#[test]
fn an_agent_is_ended_and_its_stand_in_takes_the_same_pane() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    ready(&tmux, &agent);
    let process = agent.pane.process();
    let windows =
        tmux.ok(["list-windows", "-a", "-F", "#{session_name} #{window_id} #{window_index} #{window_name}"]);

    let told = outcome(&home.ait(["freeze", &agent.id, "--force", "--json"]).ok());
    assert_eq!(told["word"], "frozen", "{told}");
    assert!(process.dies(DEADLINE));
    is_frozen(&home, &tmux, &agent);
    let after =
        tmux.ok(["list-windows", "-a", "-F", "#{session_name} #{window_id} #{window_index} #{window_name}"]);
    assert_eq!(after, windows, "window, index and session stay");

    let again = home.ait(["freeze", &agent.id, "--force", "--json"]).code(12);
    assert_eq!(outcome(&again)["word"], "frozen", "it says so: {again}");
}

#[test]
fn the_supervisor_watches_a_freeze_and_does_nothing_to_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    ready(&tmux, &agent);
    let told = outcome(&home.ait(["freeze", &agent.id, "--force", "--json"]).ok());
    assert_eq!(told["word"], "frozen", "{told}");
    is_frozen(&home, &tmux, &agent);
    supervisor.stop();
    is_frozen(&home, &tmux, &agent);
}

#[test]
fn what_nobody_knows_is_not_ended_by_a_script() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    ready(&tmux, &agent);
    let before = home.record(&agent.id);
    for arguments in [vec!["freeze", &agent.id, "--json"], vec!["freeze", &agent.pane.id, "--json"]] {
        let mut command = home.ait_command(arguments);
        command.env("TMUX", format!("{},{},0", tmux.socket_text(), tmux.server().pid));
        let ran = Ran::run(&mut command).code(12);
        assert_eq!(outcome(&ran)["word"], "unknown", "{ran}");
    }
    assert_eq!(home.record(&agent.id), before, "nothing was written");
    assert!(agent.pane.process().alive());
    assert_eq!(tmux.format(&agent.pane.id, "#{@aitask_frozen}"), "");
}

#[test]
fn a_deaf_agent_is_killed_after_its_grace() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "deaf", &root, &home.stand_in(&["--deaf"]));
    let agent = Agent::sign(&tmux, pane, &root, "deaf");
    ready(&tmux, &agent);
    let ran = home.ait(["freeze", &agent.id, "--force", "--json"]).ok();
    assert!(ran.text().contains(r#""step":"killing""#), "{ran}");
    is_frozen(&home, &tmux, &agent);
}

#[test]
fn a_pane_without_an_agent_is_refused() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "shell", &home.home(), &["sleep", "1000"]);
    let ran = home.ait(["freeze", &pane.id, "--socket", &tmux.socket_text(), "--force"]).code(1);
    assert!(ran.errors().contains("no known agent"), "{ran}");
    assert!(pane.process().alive());
}

/// A Claude Code with one turn behind it, under care.
#[track_caller]
fn claude(home: &Home, tmux: &Tmux, window: &str) -> (Fake, String) {
    let agent = Fake::claude(tmux, "main", window, &home.project("alpha"));
    agent.prompt(tmux, "remember the cart");
    let record = agent.adopt(tmux);
    (agent, record)
}

fn word(ran: &Ran) -> String {
    outcome(ran)["word"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_that_waits_is_frozen_without_a_question() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (agent, record) = claude(&home, &tmux, "cart");
    let (process, file) = (agent.process(), agent.file().unwrap());
    let planned = home.ait(["freeze", &record, "--dry-run", "--json"]).ok();
    assert_eq!(word(&planned), "would_freeze", "{planned}");
    assert!(process.alive());
    let ran = home.ait(["freeze", &record, "--json"]).ok();
    assert_eq!(word(&ran), "frozen", "{ran}");
    assert!(process.dies(DEADLINE));
    let record = home.record(&record).unwrap();
    assert_eq!(record["transcript_path"], file.to_str().unwrap());
    assert_eq!(record["last_phase"], "waiting");
    assert_eq!(record["ait"]["desired"], "frozen");
    for name in ["capture_ansi", "capture_txt"] {
        let text = std::fs::read_to_string(record[name].as_str().unwrap()).unwrap();
        assert!(text.contains("remember the cart"), "{name}: {text}");
    }
}

#[test]
fn what_would_be_lost_is_refused_and_named() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (working, working_id) = claude(&home, &tmux, "working");
    working.say(&tmux, "go on [[ms=600000]]");
    home.manners("claude", json!({"draft": "half a thought"}));
    let draft = Fake::claude(&tmux, "main", "draft", &home.project("alpha"));
    home.manners("claude", json!({"background": "a build"}));
    home.hooked("claude");
    let (_, background) = claude(&home, &tmux, "background");
    home.manners("claude", json!({}));
    let fresh = Fake::claude(&tmux, "main", "fresh", &home.project("alpha"));
    let process = working.process();
    wait_until("the turn to be seen", DEADLINE, || {
        (home.claude_registry(process.pid)?["status"] == "busy").then_some(())
    });
    let draft = draft.adopt(&tmux);
    let fresh = fresh.adopt(&tmux);
    for (record, why) in [
        (&working_id, "working"),
        (&draft, "composer"),
        (&background, "background"),
        (&fresh, "transcript_missing"),
    ] {
        let before = home.record(record);
        let ran = home.ait(["freeze", record, "--json"]).code(12);
        assert_eq!(word(&ran), why, "{ran}");
        assert!(outcome(&ran)["hint"].as_str().unwrap().contains("--force"), "{ran}");
        assert_eq!(home.record(record), before, "{why}: nothing was written");
    }
    assert!(process.alive());
    let all = home.ait(["freeze", "--all"]).ok();
    assert!(all.text().contains("refused: working"), "the refused are said: {all}");
    let forced = home.ait(["freeze", &working_id, "--force", "--json"]).ok();
    assert_eq!(word(&forced), "frozen");
    assert!(process.dies(DEADLINE));
}

#[test]
fn a_conversation_that_is_flushed_late_is_waited_for() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("claude", json!({"late_flush_ms": 2500}));
    let agent = Fake::claude(&tmux, "main", "late", &home.project("alpha"));
    agent.say(&tmux, "hello");
    agent.screen_until(&tmux, "the answer", |screen| screen.contains("turn 1, 0 earlier"));
    let record = agent.adopt(&tmux);
    let id = agent.conversation();
    let ran = wait_until("the agent to wait", DEADLINE, || {
        let ran = home.ait(["freeze", &record, "--json"]);
        (word(&ran) != "working").then_some(ran)
    });
    assert_eq!(word(&ran), "frozen", "{ran}");
    assert_eq!(home.turns("claude", &id), 1, "it is on disk");
}

#[test]
fn all_and_idle_take_only_those_that_may_be_ended() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (_, one) = claude(&home, &tmux, "one");
    let (other, two) = claude(&home, &tmux, "two");
    let not_yet = home.ait(["freeze", "--idle=1h"]).ok();
    assert_eq!(not_yet.text().matches("refused: not_idle").count(), 2, "{not_yet}");
    let plan = home.ait(["freeze", "--all", "-n"]).ok();
    assert_eq!(plan.text().matches("would freeze").count(), 2, "{plan}");
    other.say(&tmux, "go on [[ms=600000]]");
    wait_until("the turn to be seen", DEADLINE, || {
        (home.claude_registry(other.process().pid)?["status"] == "busy").then_some(())
    });
    let idle = home.ait(["freeze", "--idle=0s"]).ok();
    assert!(idle.text().contains("frozen") && idle.text().contains("refused: working"), "{idle}");
    assert_eq!(home.record(&one).unwrap()["state"], "frozen");
    assert_eq!(home.record(&two).unwrap()["state"], "live");
}

#[test]
fn an_agent_typed_into_a_shell_is_frozen_unless_the_shell_has_other_jobs() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "shell", &root, &["/bin/sh", "-i"]);
    tmux.ok(["send-keys", "-t", &pane.id, "sleep 1000 &", "Enter"]);
    let id = crate::support::fake::new_id();
    let agent = Fake::typed(&tmux, &pane, &root, "claude", &["--session-id", &id]).up(&tmux);
    agent.prompt(&tmux, "hello");
    let record = agent.adopt(&tmux);
    assert_eq!(home.record(&record).unwrap()["ait"]["host"]["kind"], "shell");
    let ran = home.ait(["freeze", &record, "--json"]).code(12);
    assert_eq!(word(&ran), "shell_jobs", "{ran}");
    assert!(outcome(&ran)["detail"].as_str().unwrap().contains("sleep"), "{ran}");
    for job in crate::support::proc::children(pane.pid) {
        if crate::support::proc::command(job.pid).starts_with("sleep") {
            job.signal(rustix::process::Signal::KILL);
            assert!(job.dies(DEADLINE));
        }
    }
    let (process, shell) = (agent.process(), pane.process());
    assert_eq!(word(&home.ait(["freeze", &record, "--json"]).ok()), "frozen");
    assert!(process.dies(DEADLINE) && shell.dies(DEADLINE));
    let record = home.record(&record).unwrap();
    assert_eq!(record["ait"]["host"]["kind"], "shell", "the shell is remembered: {record:#}");
    assert_eq!(record["pane_id"], pane.id.as_str());
}

#[test]
fn what_an_agent_left_in_a_session_of_its_own_goes_with_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let left = home.root().join("left");
    home.manners("claude", json!({"leaves": left}));
    let (agent, record) = claude(&home, &tmux, "tree");
    let pid =
        wait_until("what it leaves", DEADLINE, || std::fs::read_to_string(&left).ok()?.trim().parse().ok());
    let (process, left) = (agent.process(), Process::of(pid).unwrap());
    let ran = home.ait(["freeze", &record, "--json"]).ok();
    assert_eq!(word(&ran), "frozen", "{ran}");
    assert!(process.dies(DEADLINE));
    let warned = outcome(&ran)["warnings"].to_string().contains(&left.pid.to_string());
    assert!(warned || !left.alive(), "a survivor is named: {ran}");
    left.signal(rustix::process::Signal::KILL);
}

#[test]
fn an_agent_that_freezes_itself_is_frozen_to_the_end() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let script = format!(
        "printf '\\033[31mred\\033[0m\\nwaiting\\n'; read id; '{AIT}' freeze \"$id\" --force; echo not reached; sleep 1000"
    );
    let pane = tmux.window("main", "self", &root, &["/bin/sh", "-c", &script]);
    let agent = Agent::sign(&tmux, pane, &root, "self");
    ready(&tmux, &agent);
    agent.told(&tmux, &agent.id);
    home.store_until("the freeze", |home| (home.record(&agent.id)?["state"] == "frozen").then_some(()));
    is_frozen(&home, &tmux, &agent);
    let record = home.record(&agent.id).unwrap();
    let captured = |name: &str| std::fs::read_to_string(record[name].as_str().unwrap()).unwrap();
    assert!(captured("capture_ansi").contains("\x1b[31mred"), "colours are kept");
    assert!(captured("capture_txt").starts_with("red\nwaiting\n"), "and left out");
}
