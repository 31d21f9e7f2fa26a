//! Two Codex whose turns are run by one daemon: what is done to one of them never disturbs the other.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{DEADLINE, Fake, Home, Tmux, wait_until};

#[test]
fn freezing_one_codex_leaves_the_daemon_and_the_other_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("codex", json!({ "daemon": true }));
    // the first starts the daemon: its hooks would all name the first's pane
    home.hooked("codex");
    let first = Fake::window(&tmux, "main", "one", &home.project("alpha"), "codex", &[]).up(&tmux);
    let second = Fake::window(&tmux, "main", "two", &home.project("beta"), "codex", &[]).up(&tmux);
    first.prompt(&tmux, "to the first");
    second.prompt(&tmux, "to the second");
    let daemon = home.codex_daemon().expect("the daemon runs");
    let record = first.adopt(&tmux);
    let other = second.adopt(&tmux);
    let process = first.process();
    // the other is in the middle of a turn, which the daemon runs
    second.say(&tmux, "a long one [[ms=4000]]");
    second.screen_until(&tmux, "the turn", |screen| screen.contains("esc to interrupt"));
    let ran = home.ait(["freeze", &record, "--force", "--json"]);
    println!("{ran}");
    ran.ok();
    assert!(!process.alive(), "the first has ended");
    assert_eq!(home.record(&record).unwrap()["state"], "frozen");
    assert!(daemon.alive(), "the daemon serves others and is never signalled");
    assert_eq!(home.record(&other).unwrap()["state"], "live");
    assert!(second.process().alive());
    let answer = "turn 2, 1 earlier: a long one";
    second.screen_until(&tmux, "the end of the turn", |screen| screen.contains(answer));
    wait_until("the turn in the rollout", DEADLINE, || {
        second.file().filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(answer)))
    });
    second.prompt(&tmux, "once more");
    assert!(daemon.alive());
    // this story started it
    second.leave(&tmux);
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
}
