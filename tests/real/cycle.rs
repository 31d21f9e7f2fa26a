//! Freeze and restore: the agent's process ends, and the same conversation comes back, proven, with all it knew.

use std::path::PathBuf;

use serde_json::Value;

use crate::agent::Real;
use crate::install::{CLAUDE, CODEX, Kind};
use crate::mock::plan::Who;
use crate::support::agents::told;
use crate::support::{DEADLINE, wait_until};
use crate::world::{World, story};

/// Exit code of a freeze that was refused.
pub(crate) const REFUSED: i32 = 12;

/// Freezes an agent and looks at everything a freeze promises. `known` was on its screen.
#[track_caller]
pub(crate) fn frozen(agent: &Real<'_>, id: &str, known: &str, flags: &[&str]) -> Value {
    let world = agent.world;
    let process = agent.process();
    let took = world.home.ait(["freeze", id].iter().chain(flags)).ok().took;
    println!("{}: frozen in {:.2} s", agent.kind.name, took.as_secs_f32());
    assert!(!process.alive(), "the agent has ended");
    let record = world.record(id);
    assert_eq!(told(&record), "frozen", "{record:#}");
    assert_eq!(record["pane_id"], agent.pane.as_str(), "the stand-in stands in its pane: {record:#}");
    for capture in captures(&record) {
        let text = String::from_utf8_lossy(&std::fs::read(&capture).unwrap()).into_owned();
        assert!(text.contains(known), "{}:\n{text}", capture.display());
    }
    assert_eq!(captures(&record).len(), 2, "{record:#}");
    agent.shows("the stand-in with what was there", |screen| screen.contains(known));
    record
}

/// Restores a frozen record and looks at everything a verified restore promises.
#[track_caller]
pub(crate) fn restored<'w>(world: &'w World, kind: Kind, before: &Value, acks: &[&str]) -> Real<'w> {
    let id = before["id"].as_str().unwrap();
    let took = world.home.ait(["restore", id]).ok().took;
    println!("{}: restored in {:.2} s", kind.name, took.as_secs_f32());
    is_back(world, kind, before, acks)
}

/// The record is live again, verified, with the conversation it had before.
#[track_caller]
pub(crate) fn is_back<'w>(world: &'w World, kind: Kind, before: &Value, acks: &[&str]) -> Real<'w> {
    let id = before["id"].as_str().unwrap();
    let record = world.home.store_until("the restore to be verified", |home| {
        let record = home.record(id)?;
        (told(&record) == "live" && acks.iter().any(|ack| record["ack"] == *ack)).then_some(record)
    });
    assert_eq!(record["codeagent_session_id"], before["codeagent_session_id"], "{record:#}");
    assert!(captures(&record).is_empty(), "a verified restore keeps no capture: {record:#}");
    for capture in captures(before) {
        assert!(!capture.exists(), "{} is gone", capture.display());
    }
    let agent = Real::in_pane(world, kind, record["pane_id"].as_str().unwrap());
    assert_eq!(agent.record(), id);
    agent.ready();
    agent
}

/// The capture files a record names.
fn captures(record: &Value) -> Vec<PathBuf> {
    let named = ["capture_ansi", "capture_txt"].iter().filter_map(|name| record[*name].as_str());
    named.filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// The proofs with which a restore of `kind` counts as verified when no hook is installed.
pub(crate) fn proofs(kind: Kind) -> &'static [&'static str] {
    match kind {
        CLAUDE => &["registry"],
        _ => &["rollout", "registry"],
    }
}

fn there_and_back(world: &World, kind: Kind) {
    let agent = world.start(kind, "alpha", "work");
    agent.ready();
    agent.turn("the first question", "first-answer");
    let id = world.adopted(&agent);
    let before = frozen(&agent, &id, "first-answer", &[]);
    let agent = restored(world, kind, &before, proofs(kind));
    assert_eq!(agent.pane, before["pane_id"], "it is back in its own pane");
    let asked = agent.turn("the second question", "second-answer");
    assert!(asked.knows(Who::User, "the first question"), "{:#?}", asked.turns);
    assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
}

#[test]
fn claude_comes_back_with_what_it_knew() {
    story(&[CLAUDE], |world| there_and_back(world, CLAUDE));
}

#[test]
fn codex_comes_back_with_what_it_knew() {
    story(&[CODEX], |world| there_and_back(world, CODEX));
}

#[test]
fn two_claudes_of_one_directory_come_back_each_as_itself() {
    story(&[CLAUDE], |world| {
        let agents = ["one", "two"].map(|window| world.start(CLAUDE, "alpha", window));
        let ids = [0, 1].map(|at| {
            let agent = &agents[at];
            agent.ready();
            agent.turn(&format!("question of {at}"), &format!("answer-of-{at}"));
            world.adopted(agent)
        });
        let before = [0, 1].map(|at| frozen(&agents[at], &ids[at], &format!("answer-of-{at}"), &[]));
        assert_ne!(before[0]["codeagent_session_id"], before[1]["codeagent_session_id"]);
        for at in [1, 0] {
            let agent = restored(world, CLAUDE, &before[at], proofs(CLAUDE));
            let asked = agent.turn(&format!("another question of {at}"), "another-answer");
            assert!(asked.knows(Who::Model, &format!("answer-of-{at}")), "{:#?}", asked.turns);
            assert!(!asked.knows(Who::Model, &format!("answer-of-{}", 1 - at)), "{:#?}", asked.turns);
        }
    });
}

/// A freeze of an agent in the middle of an answer says what it saw and leaves it be; `--force` ends it.
fn working(world: &World, kind: Kind) {
    let agent = world.start(kind, "alpha", "work");
    agent.ready();
    agent.turn("the first question", "first-answer");
    let id = world.adopted(&agent);
    agent.say("a held question [[hold=gate]]");
    agent.shows("that it works", |screen| screen.contains("esc to interrupt"));
    let process = agent.process();
    let refused = world.home.ait(["freeze", &id]).code(REFUSED);
    let said = format!("{}{}", refused.text(), refused.errors());
    assert!(said.contains("work"), "it says what was seen: {refused}");
    assert!(said.contains("--force"), "and the way out: {refused}");
    assert!(process.alive(), "nothing was ended");
    assert_eq!(told(&world.record(&id)), "live");
    let before = frozen(&agent, &id, "a held question", &["--force"]);
    let agent = restored(world, kind, &before, proofs(kind));
    let asked = agent.turn("the second question", "second-answer");
    assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
}

#[test]
fn a_working_claude_is_frozen_by_force_alone() {
    story(&[CLAUDE], |world| working(world, CLAUDE));
}

#[test]
fn a_working_codex_is_frozen_by_force_alone() {
    story(&[CODEX], |world| working(world, CODEX));
}

#[test]
fn text_in_the_prompt_line_holds_a_freeze_up() {
    story(&[CLAUDE, CODEX], |world| {
        for kind in [CLAUDE, CODEX] {
            let agent = world.start(kind, "alpha", kind.name);
            agent.ready();
            agent.turn("the first question", "first-answer");
            let id = world.adopted(&agent);
            agent.typed("half a thought");
            let refused = world.home.ait(["freeze", &id]).code(REFUSED);
            assert!(agent.process().alive(), "{refused}");
            assert_eq!(told(&world.record(&id)), "live", "{refused}");
            agent.shows("what was typed", |screen| screen.contains("half a thought"));
        }
    });
}

#[test]
fn a_claude_typed_at_a_prompt_gives_its_shell_back() {
    story(&[CLAUDE], |world| {
        let agent = world.start_below_shell(CLAUDE, "beta", "typed");
        agent.ready();
        agent.turn("the first question", "first-answer");
        let id = world.adopted(&agent);
        assert_eq!(world.record(&id)["ait"]["host"]["kind"], "shell");
        let before = frozen_below_shell(&agent, &id);
        let agent = restored(world, CLAUDE, &before, proofs(CLAUDE));
        let asked = agent.turn("the second question", "second-answer");
        assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
        agent.typed("/exit");
        world.tmux.ok(["send-keys", "-t", &agent.pane, "Enter"]);
        wait_until("the shell to be back", DEADLINE, || {
            let of =
                world.tmux.format(&agent.pane, "#{pane_current_command} #{pane_current_path} #{pane_dead}");
            (of == format!("sh {} 0", world.home.project("beta").display())).then_some(())
        });
    });
}

/// [`frozen`] where the pane's own process is the shell.
#[track_caller]
fn frozen_below_shell(agent: &Real<'_>, id: &str) -> Value {
    let world = agent.world;
    world.home.ait(["freeze", id]).ok();
    let record = world.record(id);
    assert_eq!(told(&record), "frozen", "{record:#}");
    agent.shows("the stand-in with what was there", |screen| screen.contains("first-answer"));
    record
}
