//! Waiting for a session by what it tells.

use serde_json::json;

use super::{data, habits};
use crate::support::run::Running;
use crate::support::{DEADLINE, Fake, Home, Ran, Tmux};

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
