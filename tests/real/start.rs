//! What `ait setup` does to the next start of a real agent: nothing that the user did not ask for.

use crate::install::{CLAUDE, CODEX};
use crate::support::Home;
use crate::world::{World, story};

/// Ends what a setup started, whatever else happens in a story.
pub(crate) struct TakenBack(Home);

impl Drop for TakenBack {
    fn drop(&mut self) {
        self.0.ait(["setup", "--remove", "--yes"]);
    }
}

/// `ait setup`, with a supervisor and without a line that starts one.
pub(crate) fn set_up(world: &World, flags: &[&str]) -> TakenBack {
    let back = TakenBack(world.home.clone());
    let words = ["setup", "--yes", "--autostart", "none"];
    let ran = world.home.ait(words.iter().chain(flags)).ok();
    println!("{}", ran.text());
    back
}

#[test]
fn after_a_setup_both_agents_start_without_a_question() {
    story(&[CLAUDE, CODEX], |world| {
        let _back = set_up(world, &[]);
        for kind in [CLAUDE, CODEX] {
            let agent = world.start(kind, "alpha", kind.name);
            agent.ready();
            agent.turn("a question", "an-answer");
        }
    });
}

#[test]
fn a_hooked_claude_is_known_from_its_start_on() {
    story(&[CLAUDE], |world| {
        let _back = set_up(world, &[]);
        let agent = world.start(CLAUDE, "alpha", "work");
        agent.ready();
        let id = agent.record();
        let record = world.home.store_until("its conversation to be known", |home| {
            home.record(&id).filter(|record| record["codeagent_session_id"] != "")
        });
        assert_eq!(record["agent_kind"], "claude", "{record:#}");
        agent.turn("the first question", "first-answer");
        let before = crate::cycle::frozen(&agent, &id, "first-answer", &[]);
        crate::cycle::restored(world, CLAUDE, &before, &["hook", "registry"]);
    });
}

#[test]
fn hooks_for_codex_are_announced_and_open_its_review() {
    story(&[CODEX], |world| {
        let _back = set_up(world, &[]);
        let words = ["setup", "--yes", "--autostart", "none", "--hooks", "codex"];
        let said = world.home.ait(words).ok();
        let text = format!("{}{}", said.text(), said.errors()).to_lowercase();
        assert!(text.contains("review"), "setup says that Codex will ask: {said}");
        let agent = world.start(CODEX, "alpha", "work");
        agent.shows("the review that was announced", |screen| screen.contains("Hooks need review"));
        agent.recorded("hooks-review");
    });
}
