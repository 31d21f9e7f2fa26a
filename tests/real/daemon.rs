//! Codex on its shared server: what is done to one session never disturbs another.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agent::Real;
use crate::cycle::REFUSED;
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

/// Exit code of a restore that nothing proved.
const UNVERIFIED: i32 = 15;

/// Without a proof, no more than this is waited for one.
fn grace(world: &World) {
    let folder = world.home.home().join(".config/ait");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[frozen]\nrestore_ack_grace = \"3s\"\n").unwrap();
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
        // what the shared server has open it does not let go: its conversation goes on there, and nothing but the terminal's
        // staying proves it
        grace(world);
        let ran = world.home.ait(["restore", &record]).code(UNVERIFIED);
        assert!(ran.text().contains("unverified") && !ran.text().contains("open_elsewhere"), "{ran}");
        let capture = before["capture_txt"].as_str().unwrap();
        assert!(std::path::Path::new(capture).exists(), "what is not verified keeps its capture: {ran}");
        let now = world.record(&record);
        assert_eq!(now["codeagent_session_id"], id.as_str(), "{now:#}");
        let back = Real::in_pane(world, CODEX, now["pane_id"].as_str().unwrap());
        let words = proc::command(back.process().pid);
        assert!(words.contains(&format!("resume {id}")) && !words.contains("--no-daemon"), "{words}");
        back.shows("what was said before", |screen| screen.contains("answer-of-one"));
        back.ready();
        back.turn("another question of one", "more-of-one");
        assert!(shared.iter().all(|server| server.alive()), "the shared server runs on");
        two.turn("another question of two", "more-of-two");
        // nothing says that the terminal shows another conversation now, but that there is one
        back.typed("/new");
        world.tmux.ok(["send-keys", "-t", &back.pane, "Enter"]);
        back.shows("an empty conversation", |screen| !screen.contains("more-of-one"));
        back.turn("a question of three", "answer-of-three");
        let refused = world.home.ait(["freeze", &record]).code(REFUSED);
        assert!(refused.text().contains("another_conversation"), "{refused}");
        assert!(back.process().alive(), "it is left alone");
    });
}

/// Trusts the hooks of this home's settings, as the user does in Codex's review: by the hashes Codex itself gives.
#[track_caller]
fn trust_hooks(world: &World) {
    let mut server = world.home.command("codex");
    server.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let asked = [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "story", "version": "1"}}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [world.home.project("alpha")]}}),
    ];
    let mut input = server.stdin.take().unwrap();
    for line in asked {
        writeln!(input, "{line}").unwrap();
    }
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let answers = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let listed = answers.into_iter().find(|answer| answer["id"] == 2).expect("the hooks are listed");
    // the end of its input ends it
    drop(input);
    server.wait().unwrap();
    let hooks = listed["result"]["data"][0]["hooks"].as_array().unwrap();
    assert!(!hooks.is_empty(), "{listed:#}");
    let settings = world.home.home().join(".codex/config.toml");
    let mut text = std::fs::read_to_string(&settings).unwrap();
    for hook in hooks {
        let (key, hash) = (&hook["key"], &hook["currentHash"]);
        text += &format!("\n[hooks.state.{key}]\ntrusted_hash = {hash}\n");
    }
    std::fs::write(&settings, text).unwrap();
}

#[test]
fn what_the_shared_server_tells_is_told_of_the_terminal_whose_turn_it_is() {
    story(&[CODEX], |world| {
        let _ended = Ended(world);
        world.home.ait(["setup", "--yes", "--autostart", "none", "--hooks", "codex"]).ok();
        trust_hooks(world);
        let first = world.start_as(CODEX, "alpha", "first", &["codex"]);
        let two = world.start_as(CODEX, "beta", "two", &["codex"]);
        first.ready();
        two.ready();
        // the server runs in the first one's pane by its environment; the other speaks first
        two.turn("question of two", "answer-of-two");
        let shared = servers(world);
        assert!(!shared.is_empty(), "the shared server runs");
        let recorded = |pane: &str, project: &str| {
            let id = conversation(world, project);
            world.home.store_until("the record with its conversation", |home| {
                let mut all = home.records().into_iter();
                all.find(|record| record["pane_id"] == pane && record["codeagent_session_id"] == id.as_str())
            })
        };
        let record = recorded(&two.pane, "beta");
        first.turn("question of one", "answer-of-one");
        let other = recorded(&first.pane, "alpha");
        assert_ne!(record["id"], other["id"]);
        for agent in [&first, &two] {
            let id = agent.record();
            world.home.ait(["freeze", &id]).ok();
            assert_eq!(told(&world.record(&id)), "frozen");
        }
        world.home.ait(["setup", "--remove", "--yes"]).ok();
    });
}
