//! Codex on its shared server: what is done to one session never disturbs another.

use crate::cycle::{REFUSED, proofs};
use crate::install::CODEX;
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
        // what the shared server has open it does not let go at once, and Codex says so: nothing is doubled, nothing is lost
        let ran = world.home.ait(["restore", &record]);
        let capture = before["capture_txt"].as_str().unwrap();
        let now = world.record(&record);
        let verified = proofs(CODEX).iter().any(|proof| now["ack"] == *proof);
        let blocked = format!("{}{}", ran.text(), ran.errors()).contains("open_elsewhere");
        assert!(verified || blocked, "{ran}\n{now:#}");
        assert!(
            verified || std::path::Path::new(capture).exists(),
            "what is not verified keeps its capture: {ran}"
        );
        assert_eq!(now["codeagent_session_id"], id.as_str(), "{now:#}");
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
        two.turn("another question of two", "more-of-two");
    });
}
