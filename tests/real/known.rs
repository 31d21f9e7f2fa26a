//! Which conversation an agent has is known without a hook, and stays known when it changes.

use std::time::Duration;

use crate::agent::Real;
use crate::install::{CLAUDE, CODEX};
use crate::support::{Supervisor, wait_until};
use crate::world::{World, story};

/// Takes an agent under care whether or not its conversation is known.
fn taken(world: &World, agent: &Real<'_>) -> String {
    world.home.ait(["adopt", "--all"]).ok();
    agent.record()
}

fn conversation(world: &World, id: &str) -> String {
    world.record(id)["codeagent_session_id"].as_str().unwrap_or_default().to_owned()
}

/// The supervisor looks when it keeps an agent's screen: at most twice its span of time after the output.
const SOON: Duration = Duration::from_secs(90);

#[test]
fn what_changes_without_a_hook_is_known_soon() {
    story(&[CLAUDE, CODEX], |world| {
        let codex = world.start(CODEX, "alpha", "codex");
        let claude = world.start(CLAUDE, "beta", "claude");
        codex.ready();
        claude.ready();
        claude.turn("the first question", "first-answer");
        let _supervisor = Supervisor::start(&world.home, &[&world.tmux]);
        let ids = [taken(world, &codex), world.adopted(&claude)];
        assert_eq!(conversation(world, &ids[0]), "", "a Codex has none before its first prompt");
        let before = conversation(world, &ids[1]);
        codex.turn("the first task", "first-deed");
        claude.typed("/clear");
        world.tmux.ok(["send-keys", "-t", &claude.pane, "Enter"]);
        claude.shows("an empty conversation", |screen| !screen.contains("first-answer"));
        claude.turn("another question", "another-answer");
        wait_until("both conversations to be known", SOON, || {
            let known = [conversation(world, &ids[0]), conversation(world, &ids[1])];
            (!known[0].is_empty() && known[1] != before).then_some(())
        });
    });
}
