//! Operations that are interrupted: a server that is another one between a look and an act, a coordinator that is told to stop
//! while everything can still be taken back. Those that are killed or stopped are in `kills`.

use std::fs;

use rustix::process::Signal;

use crate::support::fake::new_id;
use crate::support::wrapper::{Act, Calls, When};
use crate::support::{Agent, Fake, Home, Supervisor, Tmux};

fn captured(home: &Home, id: &str) -> bool {
    home.home().join(".config/aitasks/frozen").join(id).join("capture.ansi").is_file()
}

/// A shell line that puts another server in the place of this one, in which a stranger has the pane `id`; the strangers are
/// written to `file`. A client that comes while the killed server's socket is still open, there or in a child of its that has
/// not become a program yet, is told that the server exited, and starts none.
fn another_server(tmux: &Tmux, id: &str, file: &std::path::Path) -> String {
    let (socket, server, file) = (tmux.socket_text(), tmux.server().pid, file.display());
    format!(
        "kill -9 {server}; s='{socket}'\n\
         until tmux -S \"$s\" -f /dev/null new-session -d -s main -n strange sleep 1000; do sleep 0.02; done\n\
         until tmux -S \"$s\" list-panes -a -F '#{{pane_id}}' | grep -qx '{id}'; do \
         tmux -S \"$s\" new-window -d -t main: sleep 1000; done\n\
         tmux -S \"$s\" list-panes -a -F '#{{pane_id}} #{{pane_pid}} sleep' >'{file}'"
    )
}

/// Does `what` to a frozen (or, for `freeze`, a live) agent while its server becomes another at one of the calls that change
/// something, and looks at the strangers.
fn strangers_are_left_alone(what: &str, changes: &str) {
    let words = |id: &str| match what {
        "freeze" => vec!["freeze".to_owned(), id.to_owned(), "--force".to_owned()],
        _ => vec![what.to_owned(), id.to_owned()],
    };
    let mut numbers: Option<Vec<usize>> = None;
    loop {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        let agent = Fake::claude(&tmux, "main", "work", &home.project("alpha"));
        agent.prompt(&tmux, "one");
        let id = agent.adopt(&tmux);
        if what != "freeze" {
            home.ait(["freeze", &id, "--force"]).ok();
        }
        let calls = Calls::of(&home, "coordinate");
        let Some(left) = &mut numbers else {
            calls.none();
            home.ait(words(&id)).ok();
            let acting = calls.made().into_iter().enumerate().filter(|(_, call)| call.contains(changes));
            let acting: Vec<usize> = acting.map(|(at, _)| at + 1).collect();
            assert!(!acting.is_empty(), "{what}: {:#?}", calls.made());
            numbers = Some(acting);
            continue;
        };
        let Some(number) = left.pop() else { return };
        let file = home.root().join("strangers");
        let line = another_server(&tmux, &agent.pane.id, &file);
        calls.at(number, When::Before, &Act::Do(line));
        let ran = home.ait(words(&id));
        assert!(calls.happened(), "{what}, call {number}: {ran}");
        tmux.remember();
        let strangers = fs::read_to_string(&file).unwrap();
        assert!(strangers.contains(&format!("{} ", agent.pane.id)), "{strangers}");
        let format = "#{pane_id} #{pane_pid} #{pane_current_command}#{@aitask_frozen}#{@aitask_record}\
                      #{@aitask_restore_attempt}";
        let now = tmux.ok(["list-panes", "-a", "-F", format]);
        for stranger in strangers.lines() {
            assert!(
                now.lines().any(|line| line == stranger),
                "{what}, call {number}: {stranger}\n{now}\n{ran}"
            );
        }
        println!("{what}, the server is another at call {number}: the strangers are untouched");
    }
}

#[test]
fn a_server_that_is_another_between_look_and_freeze_keeps_its_panes() {
    strangers_are_left_alone("freeze", "if-shell");
}

#[test]
fn a_server_that_is_another_between_look_and_restore_keeps_its_panes() {
    strangers_are_left_alone("restore", "respawn-pane");
}

#[test]
fn a_server_that_is_another_between_look_and_drop_keeps_its_panes() {
    strangers_are_left_alone("drop", "kill-pane");
}

/// Calls of the looks before a restore's launch, which is one act: twice listing and epoch.
const LOOKS: usize = 4;

#[test]
fn one_told_to_stop_before_anything_is_done_gives_everything_back() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let calls = Calls::of(&home, "coordinate");
    let started = |window: &str| {
        let agent = Fake::claude(&tmux, "main", window, &root);
        agent.prompt(&tmux, "one");
        (agent.adopt(&tmux), agent.process())
    };
    // at which call the first thing is changed, learned from another agent
    let (spare, _) = started("spare");
    let first = |words: &[&str], mark: &str| {
        calls.none();
        home.ait(words.iter().copied()).ok();
        let made = calls.made();
        let at = made.iter().position(|call| call.contains(mark));
        at.unwrap_or_else(|| panic!("{words:?}: {made:#?}")) + 1
    };
    let freezing = first(&["freeze", &spare, "--force"], "if-shell");
    let dropping = {
        home.ait(["restore", &spare]).ok();
        home.ait(["freeze", &spare, "--force"]).ok();
        first(&["drop", &spare], "kill-pane")
    };

    let (id, process) = started("work");
    let held = || {
        let record = home.record(&id).unwrap();
        (record["state"].as_str().unwrap().to_owned(), record["op_nonce"].as_str().unwrap().to_owned())
    };
    let stop = |words: &[&str], last: usize, state: &str| {
        for number in 1..=last {
            let signal = if number % 2 == 0 { "INT" } else { "TERM" };
            calls.at(number, When::Before, &Act::Do(format!("kill -{signal} $PPID")));
            let ran = home.ait(words.iter().copied()).code(1);
            let made = calls.made();
            assert!(calls.happened() && ran.to_string().contains("told to stop"), "{number} {made:#?} {ran}");
            assert_eq!(held(), (state.to_owned(), String::new()), "{words:?}, SIG{signal} at call {number}");
            println!("{}, SIG{signal} at call {number}: taken back", words[0]);
        }
        calls.none();
    };
    // the stamp is taken off again
    stop(&["freeze", &id, "--force"], freezing, "live");
    assert!(process.alive(), "its agent was not told to end");
    home.ait(["freeze", &id, "--force"]).ok();
    stop(&["restore", &id], LOOKS, "frozen");
    stop(&["drop", &id], dropping - 1, "frozen");
    assert!(captured(&home, &id));
    home.ait(["restore", &id]).ok();
    assert_eq!(held().0, "live");
}

#[test]
fn codex_is_known_by_its_rollout_when_no_hook_tells() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent =
        Fake::window(&tmux, "main", "work", &home.project("alpha"), "codex", &["--no-daemon"]).up(&tmux);
    agent.prompt(&tmux, "one");
    let conversation = agent.conversation();
    let id = agent.adopt(&tmux);
    home.ait(["freeze", &id, "--force"]).ok();
    home.ait(["restore", &id]).ok();
    let record = home.record(&id).unwrap();
    let told = (&record["state"], &record["ack"], &record["codeagent_session_id"]);
    assert_eq!(told, (&"live".into(), &"rollout".into(), &conversation.as_str().into()), "{record:#}");
    assert!(!captured(&home, &id), "verified: its screen is forgotten");
    let back = agent.at(tmux.panes().into_iter().find(|pane| pane.id == agent.pane.id).unwrap());
    back.prompt(&tmux, "two");
    assert_eq!(home.turns("codex", &conversation), 2);
}

#[test]
fn a_better_screen_kept_from_an_unverified_restore_is_not_overwritten() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let settings = home.home().join(".config/ait");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[frozen]\nrestore_ack_grace = \"2s\"\n").unwrap();
    let agent = Fake::claude(&tmux, "main", "work", &home.project("alpha"));
    for number in 0..30 {
        agent.prompt(&tmux, &format!("line {number}"));
    }
    let id = agent.adopt(&tmux);
    home.ait(["freeze", &id, "--force"]).ok();
    let file = home.home().join(".config/aitasks/frozen").join(&id).join("capture.ansi");
    let (before, lines) = (fs::read(&file).unwrap(), home.record(&id).unwrap()["capture_lines"].clone());
    home.manners("claude", serde_json::json!({ "no_registry": true, "no_hooks": true }));
    home.ait(["restore", &id]).code(15);
    assert_eq!(fs::read(&file).unwrap(), before, "unverified: it is kept");
    // its new screen is nearly empty
    tmux.ok(["clear-history", "-t", &agent.pane.id]);
    home.ait(["freeze", &id, "--force"]).ok();
    assert_eq!(fs::read(&file).unwrap(), before, "the better one is kept");
    assert_eq!(home.record(&id).unwrap()["capture_lines"], lines);
    assert_eq!(home.record(&id).unwrap()["state"], "frozen");
}

#[test]
fn what_a_restore_without_a_supervisor_sets_on_a_pane_is_listed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Fake::claude(&tmux, "main", "work", &home.project("alpha"));
    agent.prompt(&tmux, "one");
    let id = agent.adopt(&tmux);
    home.ait(["freeze", &id, "--force"]).ok();
    home.ait(["restore", &id]).ok();
    let set = tmux.ok(["show-options", "-p", "-t", &agent.pane.id]);
    let touched = home.ait(["doctor", "--touched", "--json"]).json()["touched"].to_string();
    for line in set.lines() {
        let name = line.split(' ').next().unwrap();
        assert!(touched.contains(name), "{name} of {set} is listed: {touched}");
    }
}

#[test]
fn an_agent_below_what_waits_for_its_shell_is_adopted_as_one_of_that_shell() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "typed", &root, &["sh"]);
    let agent = Fake::typed(&tmux, &pane, &root, "claude", &["--session-id", &new_id()]).up(&tmux);
    agent.prompt(&tmux, "one");
    let id = agent.adopt(&tmux);
    home.ait(["freeze", &id, "--force"]).ok();
    home.ait(["restore", &id]).ok();
    let shell = home.record(&id).unwrap()["ait"]["host"].clone();
    assert_eq!(shell["kind"], "shell", "{shell}");
    // the record is lost, the agent runs on
    fs::remove_file(home.store()).unwrap();
    tmux.ok(["set-option", "-p", "-u", "-t", &agent.pane.id, "@aitask_record"]);
    let again =
        agent.at(tmux.panes().into_iter().find(|pane| pane.id == agent.pane.id).unwrap()).adopt(&tmux);
    let host = home.record(&again).unwrap()["ait"]["host"].clone();
    assert_eq!(host["kind"], "shell", "{host}");
    assert!(!host.to_string().contains("below-shell"), "{host}");
}

#[test]
fn a_stand_in_that_was_put_back_is_the_one_on_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    home.ait(["freeze", &agent.id, "--force"]).ok();
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let pane = &agent.pane.id;
    let before: u32 = tmux.format(pane, "#{pane_pid}").parse().unwrap();
    assert_eq!(home.record(&agent.id).unwrap()["pane_pid"], before);
    crate::support::proc::Process::of(before).unwrap().signal(Signal::KILL);
    home.store_until("the new stand-in", |home| {
        let record = home.record(&agent.id)?;
        let pid: u32 = tmux.format(pane, "#{pane_pid}").parse().unwrap();
        let known = record["pane_pid"] == pid && record["standin_pid"] == pid;
        (pid != before && known && record["state"] == "frozen").then_some(())
    });
}

#[test]
fn a_stranger_in_a_stand_ins_pane_stays_there() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    home.ait(["freeze", &agent.id, "--force"]).ok();
    // a restore that was cut short on its way back, and a user who took the pane
    let owner = std::process::id().to_string();
    let begin = ["record", "restore-begin", &agent.id, "--owner-pid", &owner, "--mode", "resume"];
    let nonce = home.ait(begin).ok().text().rsplit_once('|').unwrap().1.to_owned();
    home.ait(["record", "restore-abort", &agent.id, "--nonce", &nonce, "--error", "cut"]).ok();
    let store = std::fs::read_to_string(home.store()).unwrap();
    let boot = store.replace(&format!("\"op_owner_pid\": {owner}"), "\"op_owner_pid\": 2147483646");
    std::fs::write(home.store(), boot).unwrap();
    tmux.ok(["respawn-pane", "-k", "-t", &agent.pane.id, "sleep", "1000"]);
    let _supervisor = Supervisor::launch(&home, &[&tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
    home.store_until("the record to rest", |home| {
        let record = home.record(&agent.id)?;
        (record["state"] == "frozen" && record["op_nonce"] == "" && record["pane_id"] == "").then_some(())
    });
    assert_eq!(tmux.format(&agent.pane.id, "#{pane_dead} #{pane_current_command}"), "0 sleep");
}
