//! The other providers, by a switch: started, frozen, restored.

use crate::cycle::{frozen, is_back};
use crate::install::{GEMINI, HERMES, Kind, OPENCODE, PI};
use crate::mock::plan::Who;
use crate::world::{World, story};

fn there_and_back(world: &World, kind: Kind) {
    let agent = world.start(kind, "alpha", "work");
    agent.ready();
    agent.turn("the first question", "first-answer");
    let id = world.adopted(&agent);
    let before = frozen(&agent, &id, "first-answer", &["--force"]);
    world.home.ait(["restore", &id]).ok();
    // no registry and no open file tells of these: that it lives is all that is known
    let agent = is_back(world, kind, &before, &["hook", "registry", "rollout", "liveness"]);
    let asked = agent.turn("the second question", "second-answer");
    assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
}

#[test]
fn gemini_comes_back() {
    story(&[GEMINI], |world| there_and_back(world, GEMINI));
}

#[test]
fn opencode_comes_back() {
    story(&[OPENCODE], |world| there_and_back(world, OPENCODE));
}

#[test]
fn pi_comes_back() {
    story(&[PI], |world| there_and_back(world, PI));
}

#[test]
fn hermes_comes_back() {
    story(&[HERMES], |world| there_and_back(world, HERMES));
}
