//! Waiting for a session by what it tells.

use std::time::Duration;

use serde_json::json;

use super::{data, habits};
use crate::support::calls::calls;
use crate::support::run::Running;
use crate::support::{DEADLINE, Fake, Home, Ran, Tmux, not_run, proc, wait_until};

fn fake(home: &Home, tmux: &Tmux) -> (Fake, String) {
    home.hooked("claude");
    let agent = Fake::claude(tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(tmux);
    (agent, id)
}

fn wait(home: &Home, words: &[&str]) -> std::process::Command {
    home.ait_command([&["wait"], words, &["--format", "json"]].concat())
}

#[test]
fn a_wait_ends_when_it_asks_and_when_its_turn_is_over() {
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, id) = fake(&home, &tmux);
    let mut asks = Running::start(&mut wait(&home, &[&id, "--until", "needs_input"]));
    home.ait(["send", &id, "--text", "do it [[ask]]", "--submit"]).ok();
    assert_eq!(asks.join(DEADLINE).code(), Some(0));
    let ran = Ran::run(&mut wait(&home, &[&id, "--until", "waiting", "--timeout", "1s"])).code(13);
    let told = data(&ran, "wait");
    assert_eq!((&told["result"], &told["state"]), (&json!("timeout"), &json!("needs_input")), "{told:#}");
    let mut over = Running::start(&mut wait(&home, &[&id, "--until", "waiting"]));
    home.ait(["send", &id, "--key", "enter"]).ok();
    assert_eq!(over.join(DEADLINE).code(), Some(0));
    agent.ready(&tmux);
    let told = data(&Ran::run(&mut wait(&home, &[&id, "--until", "waiting"])).ok(), "wait");
    assert_eq!((&told["result"], &told["state"]), (&json!("reached"), &json!("waiting")), "{told:#}");
}

#[test]
fn a_wait_ends_with_its_agent() {
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, id) = fake(&home, &tmux);
    let mut exited = Running::start(&mut wait(&home, &[&id, "--until", "exited"]));
    let mut asks = Running::start(&mut wait(&home, &[&id, "--until", "needs_input"]));
    assert_eq!(exited.ended(), None);
    agent.leave(&tmux);
    assert_eq!(exited.join(DEADLINE).code(), Some(0));
    assert_eq!(asks.join(DEADLINE).code(), Some(14));
    let told = data(&Ran::run(&mut wait(&home, &[&id, "--until", "exited"])).ok(), "wait");
    assert_eq!((&told["result"], &told["state"]), (&json!("reached"), &json!("exited")), "{told:#}");
}

#[test]
fn a_wait_makes_no_system_call_while_nothing_happens() {
    if let Err(why) = proc::strace() {
        return not_run(&why);
    }
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, id) = fake(&home, &tmux);
    agent.ready(&tmux);
    for (until, more) in [("needs_input", &[][..]), ("exited", &["--timeout", "1h"])] {
        let words = [&[id.as_str(), "--until", until], more].concat();
        let mut waiting = Running::start(&mut wait(&home, &words));
        let process = waiting.process();
        // what it does to begin with comes to an end
        wait_until("it to sleep", DEADLINE, || {
            calls(&home, &[process], Duration::from_millis(500)).is_empty().then_some(())
        });
        let made = calls(&home, &[process], Duration::from_secs(5));
        assert_eq!(made, [""; 0], "system calls in 5 s of waiting until {until}");
        assert_eq!(waiting.ended(), None);
        assert!(process.signal(rustix::process::Signal::TERM));
        waiting.join(DEADLINE);
    }
}

#[test]
fn a_wait_for_one_that_is_frozen_says_what_brings_it_back() {
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, id) = fake(&home, &tmux);
    agent.prompt(&tmux, "hello");
    home.ait(["freeze", &id]).ok();
    let told = home.ait(["wait", &id, "--until", "waiting"]).code(14).text();
    assert!(told.contains("it is frozen; `ait restore` brings it back"), "{told}");
}
