//! The agents themselves: they start without a question, take turns, keep the earlier ones, ask before they act.

use crate::install::{CLAUDE, CODEX, GEMINI, HERMES, Kind, OPENCODE, PI};
use crate::mock::plan::Who;
use crate::world::{World, story};

fn two_turns(world: &World, kind: Kind) {
    let agent = world.start(kind, "alpha", "work");
    agent.ready();
    agent.recorded("idle");
    agent.turn("the first question", "first-answer");
    let asked = agent.turn("the second question", "second-answer");
    agent.recorded("done");
    assert!(asked.knows(Who::User, "the first question"), "{:#?}", asked.turns);
    assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
    let held = agent.say("a held question [[hold=gate]][[text=held-answer]]");
    assert!(held.knows(Who::Model, "second-answer"), "{:#?}", held.turns);
    agent.recorded("working");
    world.mock.let_go("gate");
    agent.shows("the answer that was let go", |screen| screen.matches("held-answer").count() > 1);
}

#[test]
fn claude_keeps_its_turns() {
    story(&[CLAUDE], |world| two_turns(world, CLAUDE));
}

#[test]
fn codex_keeps_its_turns() {
    story(&[CODEX], |world| two_turns(world, CODEX));
}

#[test]
fn gemini_keeps_its_turns() {
    story(&[GEMINI], |world| two_turns(world, GEMINI));
}

#[test]
fn opencode_keeps_its_turns() {
    story(&[OPENCODE], |world| two_turns(world, OPENCODE));
}

#[test]
fn pi_keeps_its_turns() {
    story(&[PI], |world| two_turns(world, PI));
}

#[test]
fn hermes_keeps_its_turns() {
    story(&[HERMES], |world| two_turns(world, HERMES));
}
