//! What the user's settings hold is held to: an agent of the user's own, what is kept of an agent's environment, and what a
//! command says of settings that it cannot take.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Fake, Home, Tmux, proc, wait_until};

/// A provider of the user's own, and two variables to be kept with every agent.
const OWN: &str = r#"
[env]
keep = ["MY_PLACE", "MY_API_KEY"]

[frozen]
restore_ack_grace = "1s"

[providers.mine]
binary = "mine"
launch = ["--session", "{session}"]
resume = ["--resume", "{session}"]
store = "~/.mine"
keep = ["MINE_HOME"]
"#;

/// What is started with the agent's own words.
const ENVIRONMENT: [&str; 3] = ["MINE_HOME=/mine/home", "MY_PLACE=here", "MY_API_KEY=sk-1"];

fn settings(home: &Home, text: &str) {
    let folder = home.home().join(".config/ait");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// The user's own agent: it writes its conversation's file, and calls hooks where `$HOME/.hooked` is.
fn mine(home: &Home) -> String {
    let text = format!(
        r#"#!/bin/bash
[ "$1" = as-mine ] || exec -a mine bash "$0" as-mine "$@"
id=$3
mkdir -p "$HOME/.mine"
echo turn >> "$HOME/.mine/$id.log"
if [ -e "$HOME/.hooked" ]; then
    for event in SessionStart Stop; do
        printf '{{"session_id":"%s"}}' "$id" | '{AIT}' hook $event --provider mine
    done
fi
echo "mine is up"
while read -r line; do [ "$line" = exit ] && exit 0; done
"#
    );
    home.script("mine", &text).to_str().unwrap().to_owned()
}

#[track_caller]
fn start(tmux: &Tmux, id: &str) -> Pane {
    let program = mine(tmux.home());
    let words = [&["env"][..], &ENVIRONMENT, &[&program, "--session", id]].concat();
    let pane = tmux.window("main", "own", &tmux.home().project("alpha"), &words);
    up(tmux, &pane);
    pane
}

#[track_caller]
fn up(tmux: &Tmux, pane: &Pane) {
    wait_until("the agent to be up", DEADLINE, || {
        tmux.run(["capture-pane", "-p", "-t", &pane.id]).text().contains("mine is up").then_some(())
    });
}

/// The environment of the pane's process.
fn environment(tmux: &Tmux, pane: &Pane) -> BTreeMap<String, String> {
    let pid = tmux.format(&pane.id, "#{pane_pid}");
    let bytes = fs::read(Path::new("/proc").join(&pid).join("environ")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.split('\0').filter_map(|pair| pair.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
}

#[track_caller]
fn is_as_it_was(tmux: &Tmux, pane: &Pane, id: &str) {
    let pid = tmux.format(&pane.id, "#{pane_pid}").parse().unwrap();
    let words = proc::command(pid);
    assert!(words.starts_with("mine ") && words.ends_with(&format!("as-mine --resume {id}")), "{words}");
    let seen = environment(tmux, pane);
    assert_eq!(seen.get("MINE_HOME").map(String::as_str), Some("/mine/home"), "its provider's `keep`");
    assert_eq!(seen.get("MY_PLACE").map(String::as_str), Some("here"), "`[env] keep`");
    assert_eq!(seen.get("MY_API_KEY"), None, "a secret is kept by nobody");
}

#[test]
fn an_agent_of_the_users_own_comes_back_with_what_is_kept_of_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, OWN);
    let pane = start(&tmux, "a1");
    let told = home.ait(["adopt", &pane.id, "--socket", &tmux.socket_text(), "--json"]).ok();
    assert!(told.text().contains("\"mine\""), "{told}");
    let id = tmux.format(&pane.id, "#{@aitask_record}");
    let record = home.record(&id).unwrap();
    assert_eq!((&record["agent_kind"], &record["codeagent_session_id"]), (&"mine".into(), &"a1".into()));
    let whole = record.to_string();
    assert!(whole.contains("/mine/home") && !whole.contains("sk-1"), "{record:#}");
    // nobody says what it is doing, and its prompt line has no rule
    home.ait(["freeze", &id]).code(12);
    home.ait(["freeze", &id, "--force"]).ok();
    // its conversation is looked for where the settings say they lie
    let file = home.home().join(".mine/a1.log");
    let aside = home.home().join("aside");
    fs::rename(&file, &aside).unwrap();
    let refused = home.ait(["restore", &id]).code(12);
    assert!(refused.text().contains("transcript_missing"), "{refused}");
    fs::rename(&aside, &file).unwrap();
    // without a hook only its staying says that it is up: for as long as `restore_ack_grace` says
    let ran = home.ait(["restore", &id]).code(15);
    assert!(ran.text().contains("unverified"), "{ran}");
    up(&tmux, &pane);
    is_as_it_was(&tmux, &pane, "a1");
}

#[test]
fn the_hook_of_an_agent_of_the_users_own_makes_its_record_and_proves_its_return() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, OWN);
    fs::write(home.home().join(".hooked"), "").unwrap();
    let pane = start(&tmux, "b2");
    let id = home.store_until("the record of the agent", |home| {
        let record = home.records().into_iter().find(|record| record["agent_kind"] == "mine")?;
        record["id"].as_str().map(str::to_owned)
    });
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], "b2");
    home.ait(["freeze", &id, "--force"]).ok();
    home.ait(["restore", &id]).ok();
    assert_eq!(home.record(&id).unwrap()["ack"], "hook");
    is_as_it_was(&tmux, &pane, "b2");
}

#[test]
fn what_the_settings_keep_of_every_agent_is_kept_of_a_built_in_one() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, OWN);
    let id = crate::support::fake::new_id();
    let program = home.agent_program("claude");
    let words = [&["env"][..], &ENVIRONMENT, &[program.to_str().unwrap(), "--session-id", &id]].concat();
    let cwd = home.project("alpha");
    let pane = tmux.window("main", "one", &cwd, &words);
    let agent = Fake::window(&tmux, "main", "other", &cwd, "claude", &[]).at(pane.clone()).up(&tmux);
    agent.prompt(&tmux, "hello");
    let record = agent.adopt(&tmux);
    home.ait(["freeze", &record]).ok();
    home.ait(["restore", &record]).ok();
    let seen = environment(&tmux, &pane);
    assert_eq!(seen.get("MY_PLACE").map(String::as_str), Some("here"));
    assert_eq!((seen.get("MY_API_KEY"), seen.get("MINE_HOME")), (None, None));
}

#[test]
fn settings_that_cannot_be_taken_are_said_and_nothing_is_done() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    agent.prompt(&tmux, "hello");
    let live = agent.adopt(&tmux);
    let other = Fake::claude(&tmux, "main", "lamp", &home.project("beta"));
    other.prompt(&tmux, "hello");
    let frozen = other.adopt(&tmux);
    // its hook tells of the end of the turn after the screen does
    home.ait(["wait", &frozen, "--until", "waiting", "--timeout", "60s"]).ok();
    home.ait(["freeze", &frozen]).ok();
    let process = agent.process();
    let built_in = "[providers.claude]\nbinary = \"mine\"\n";
    for (text, told, hint) in [
        ("recover = \"auto\"\nrecover_agents = 7\n", "config.toml:2: ", "put it right, or move it away"),
        (built_in, "the name `claude` is taken", "built-in agents keep their names"),
    ] {
        settings(&home, text);
        let before = fs::read(home.store()).unwrap();
        let socket = tmux.socket_text();
        for words in [
            &["freeze", &live][..],
            &["freeze", &agent.pane.id, "--socket", &socket],
            &["freeze", "--all"],
            &["restore", &frozen],
            &["restore", "--all", "--json"],
            &["drop", &frozen],
            &["adopt", "--all"],
        ] {
            let ran = home.ait(words).code(65);
            assert!(ran.errors().contains(told) && ran.errors().contains(hint), "{words:?}: {ran}");
        }
        // what runs an agent from a pane's command line says it there
        let ran = home.ait(["exec", "--record", &frozen, "--", "claude"]).code(65);
        assert!(ran.errors().contains(told), "{ran}");
        assert_eq!(fs::read(home.store()).unwrap(), before, "nothing is written");
        assert!(process.alive());
        // an agent's screen is no place to say it
        agent.prompt(&tmux, "more");
        let ran = home.ait(["hook", "Stop", "--provider", "claude"]).ok();
        assert_eq!((ran.text(), ran.errors()), (String::new(), String::new()));
    }
    settings(&home, "recover = 7\n");
    for words in [&["recover", "-n"][..], &["record", "reconcile"]] {
        let ran = home.ait(words).code(65);
        assert!(ran.errors().contains("config.toml:1: "), "{words:?}: {ran}");
    }
    fs::remove_file(home.home().join(".config/ait/config.toml")).unwrap();
    home.ait(["restore", &frozen]).ok();
}
