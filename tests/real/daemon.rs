//! Codex on its shared server: what is done to one session never disturbs another.

use crate::cycle::{REFUSED, proofs, restored};
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

/// The id of the one conversation filed under `project`.
#[track_caller]
fn conversation(world: &World, project: &str) -> String {
    let folder = world.home.project(project);
    wait_until("the conversation to be on disk", DEADLINE, || {
        let words = ["discover", "--provider", "codex", "--json", "--cwd", folder.to_str().unwrap()];
        let found = world.home.ait(words).json();
        let one = found["conversations"].as_array().filter(|all| all.len() == 1)?;
        one[0]["id"].as_str().map(str::to_owned)
    })
}

#[test]
fn freezing_one_codex_leaves_the_other_on_the_shared_server_alone() {
    story(&[CODEX], |world| {
        let _ended = Ended(world);
        let first = world.start_as(CODEX, "alpha", "first", &["codex"]);
        first.ready();
        first.turn("question of one", "answer-of-one");
        let shared = wait_until("the shared server", DEADLINE, || {
            let servers = servers(world);
            (!servers.is_empty()).then_some(servers)
        });
        let id = conversation(world, "alpha");
        world.tmux.ok(["kill-pane", "-t", &first.pane]);
        // on the shared server only the arguments say which conversation a terminal shows
        let one = world.start_as(CODEX, "alpha", "one", &["codex", "resume", &id]);
        let two = world.start_as(CODEX, "beta", "two", &["codex"]);
        one.ready();
        two.ready();
        two.turn("question of two", "answer-of-two");
        let record = world.adopted(&one);
        assert_eq!(world.record(&record)["codeagent_session_id"], id.as_str());
        let other = two.record();
        assert_eq!(world.record(&other)["codeagent_session_id"], "", "nobody says which the other shows");
        let refused = world.home.ait(["freeze", &other]).code(REFUSED);
        assert!(refused.text().contains("no_session"), "without an exact id: refused: {refused}");
        // the other one is in the middle of an answer
        let running = two.process();
        two.say("a held question [[hold=gate]][[text=held-answer]]");
        world.home.ait(["freeze", &record]).ok();
        let before = world.record(&record);
        assert_eq!(told(&before), "frozen", "{before:#}");
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
        assert!(running.alive() && told(&world.record(&other)) == "live");
        world.mock.let_go("gate");
        two.shows("its answer", |screen| screen.matches("held-answer").count() > 1);
        let one = restored(world, CODEX, &before, proofs(CODEX));
        let asked = one.turn("another question of one", "another-answer");
        assert!(asked.knows(Who::Model, "answer-of-one"), "{:#?}", asked.turns);
        assert!(!asked.knows(Who::Model, "answer-of-two"), "{:#?}", asked.turns);
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
        two.turn("another question of two", "more-of-two");
    });
}
