//! Codex on its shared server: what is done to one session never disturbs another.

use crate::cycle::{proofs, restored};
use crate::install::CODEX;
use crate::mock::plan::Who;
use crate::support::agents::told;
use crate::support::proc::{self, Process};
use crate::support::{DEADLINE, wait_until};
use crate::world::{World, story};

/// The shared servers of this story's home.
fn servers(world: &World) -> Vec<Process> {
    let all = world.home.processes().into_iter();
    all.filter(|process| proc::command(process.pid).contains("app-server")).collect()
}

/// Ends the shared servers, and what updates them, when the story is over.
struct Ended<'w>(&'w World);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        for process in self.0.home.processes() {
            if proc::command(process.pid).contains("app-server") {
                process.end(DEADLINE);
            }
        }
    }
}

#[test]
fn freezing_one_codex_leaves_the_other_on_the_shared_server_alone() {
    story(&[CODEX], |world| {
        let _ended = Ended(world);
        let one = world.start_as(CODEX, "alpha", "one", &["codex"]);
        one.ready();
        let two = world.start_as(CODEX, "beta", "two", &["codex"]);
        two.ready();
        let shared = wait_until("the shared server", DEADLINE, || {
            let servers = servers(world);
            (!servers.is_empty()).then_some(servers)
        });
        one.turn("question of one", "answer-of-one");
        two.turn("question of two", "answer-of-two");
        let ids = [world.adopted(&one), world.adopted(&two)];
        // the other one is in the middle of an answer
        two.say("a held question [[hold=gate]][[text=held-answer]]");
        world.home.ait(["freeze", &ids[0]]).ok();
        let before = world.record(&ids[0]);
        assert_eq!(told(&before), "frozen", "{before:#}");
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
        assert_eq!(told(&world.record(&ids[1])), "live");
        world.mock.let_go("gate");
        two.shows("its answer", |screen| screen.matches("held-answer").count() > 1);
        let one = restored(world, CODEX, &before, proofs(CODEX));
        let asked = one.turn("another question of one", "another-answer");
        assert!(asked.knows(Who::Model, "answer-of-one"), "{:#?}", asked.turns);
        assert!(!asked.knows(Who::Model, "answer-of-two"), "{:#?}", asked.turns);
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
    });
}
