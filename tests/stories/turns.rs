//! What agents are at, as the supervisor tells it: from their hooks, their provider's list and their titles.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::support::{Agent, DEADLINE, Fake, Home, Supervisor, Tmux, wait_until};

/// What the supervisor says each live agent is at.
fn turns(home: &Home) -> Vec<Value> {
    let lock: Value = serde_json::from_slice(&fs::read(home.supervisor_lock()).unwrap()).unwrap();
    let stream = UnixStream::connect(lock["socket"].as_str().unwrap()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    lines.get_mut().write_all(b"{\"op\":\"turns\"}\n").unwrap();
    line.clear();
    lines.read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["is"], "turns", "{told}");
    told["turns"].as_array().unwrap().clone()
}

/// What one is at.
fn turn(home: &Home, id: &str) -> Value {
    let all = turns(home);
    all.iter().find(|one| one["record"] == id).map(|one| one["turn"].clone()).unwrap_or_default()
}

/// Waits until an agent is at this, by the word of one of `sources`.
#[track_caller]
fn until(home: &Home, id: &str, state: &str, sources: &[&str]) -> Value {
    let mut last = Value::Null;
    let told = wait_until(&format!("{id} to be {state} by {sources:?}"), DEADLINE, || {
        last = turn(home, id);
        let by = last["source"].as_str().unwrap_or("-");
        (last["state"] == state && sources.contains(&by)).then(|| last.clone())
    });
    assert!(told["why"].is_array(), "{told}");
    told
}

#[test]
fn an_interrupt_and_a_denial_are_told_by_the_providers_list() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(&tmux);
    supervisor.watching(&tmux, 1);
    until(&home, &id, "waiting", &["registry", "hook"]);
    agent.say(&tmux, "long [[ms=1000000]]");
    let told = until(&home, &id, "working", &["hook"]);
    assert_eq!(told["confidence"], "observed");
    assert!(told["current"]["started_at"].is_string(), "{told}");
    agent.screen_until(&tmux, "the turn", |screen| screen.contains("esc to interrupt"));
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Escape"]);
    let told = until(&home, &id, "waiting", &["registry"]);
    let hook = told["why"].as_array().unwrap().iter().find(|one| one["source"] == "hook").unwrap();
    assert_eq!((&hook["says"], &hook["verdict"]["is"]), (&json!("working"), &json!("corrected")), "{told:#}");
    agent.ready(&tmux);
    agent.say(&tmux, "ask me [[ask]]");
    let told = until(&home, &id, "needs_input", &["hook"]);
    assert_eq!((&told["attention"]["kind"], &told["pending"]), (&json!("approval"), &json!(1)), "{told:#}");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    until(&home, &id, "waiting", &["hook", "registry"]);
    // another supervisor knows it from what is written and from what it sees
    drop(supervisor);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.watching(&tmux, 1);
    until(&home, &id, "waiting", &["hook", "registry"]);
    let folder = home.home().join(".local/state/ait/sessions").join(&id);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text);
        for secret in ["ask me", "long", "alpha", agent.conversation().as_str()] {
            assert!(!text.contains(secret), "{}: {text}", path.display());
        }
    }
}

#[test]
fn an_agent_without_hooks_is_told_by_its_title() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let agent = Fake::window(&tmux, "main", "one", &root, "gemini", &[]).up(&tmux);
    let id = agent.adopt(&tmux);
    supervisor.watching(&tmux, 1);
    until(&home, &id, "waiting", &["title"]);
    agent.say(&tmux, "long [[ms=1000000]]");
    until(&home, &id, "working", &["title"]);
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Escape"]);
    let told = until(&home, &id, "waiting", &["title"]);
    // it is known with its age after a restart
    drop(supervisor);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.watching(&tmux, 1);
    let again = until(&home, &id, "waiting", &["title"]);
    assert_eq!(again["since"], told["since"]);
    agent.say(&tmux, "ask me [[ask]]");
    until(&home, &id, "needs_input", &["title"]);
    // that a title stands is written nowhere, and every command knows of it from the supervisor
    let told = heard_long_ago(&home, &id);
    assert_eq!(told["claims"]["title"]["state"], "needs_input", "{told:#}");
    assert_eq!(phases(&home, &id), ["needs_input"; 4]);
    home.ait(["wait", &id, "--until", "needs_input", "--timeout", "60s"]).ok();
    // without one it may be over since
    drop(supervisor);
    assert_eq!(phases(&home, &id), ["", "unknown", "unknown", "unknown"]);
    home.ait(["wait", &id, "--until", "needs_input", "--timeout", "1s"]).code(13);
}

/// Makes what is written of an agent's turn look as if no source had been heard for a day; what is written then.
fn heard_long_ago(home: &Home, id: &str) -> Value {
    let path = home.home().join(".local/state/ait/sessions").join(id).join("activity.json");
    let mut written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for claim in written["claims"].as_object_mut().unwrap().values_mut() {
        claim["seen"] = json!("2026-01-01T00:00:00.000Z");
    }
    fs::write(&path, serde_json::to_vec(&written).unwrap()).unwrap();
    written
}

/// What the commands that tell of a turn say of it: `list`, `show`, `glance`, `activity status`.
fn phases(home: &Home, id: &str) -> [String; 4] {
    let phase = |session: &Value| session["turn_state"]["phase"].as_str().unwrap_or_default().to_owned();
    let of = |words: &[&str]| home.ait([words, &["--format", "json"]].concat()).ok().json()["data"].clone();
    let list = of(&["list", "--all"]);
    let listed = list.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    [
        phase(listed),
        phase(&of(&["show", id])),
        phase(&of(&["glance", id])),
        phase(&of(&["activity", "status", id])),
    ]
}

#[test]
fn a_codex_is_told_by_its_conversation_as_it_is_written() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let agent = Fake::window(&tmux, "main", "one", &root, "codex", &["--no-daemon"]).up(&tmux);
    let id = agent.adopt(&tmux);
    supervisor.watching(&tmux, 1);
    assert_eq!(turn(&home, &id)["state"], "unknown", "a title without a mark says nothing yet");
    agent.say(&tmux, "long secret words [[ms=1000000]]");
    until(&home, &id, "working", &["rollout"]);
    // with its first prompt its conversation is known, and not only once it is over
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], agent.conversation().as_str());
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Escape"]);
    let told = until(&home, &id, "waiting", &["rollout"]);
    assert!(told["why"].as_array().unwrap().iter().any(|one| one["event"] == "turn_aborted"), "{told:#}");
    // a request is not written there: its title shows it, and that it is over
    agent.ready(&tmux);
    agent.say(&tmux, "ask me [[ask]]");
    let told = until(&home, &id, "needs_input", &["title"]);
    let rollout = told["why"].as_array().unwrap().iter().find(|one| one["source"] == "rollout").unwrap();
    assert_eq!(
        (&rollout["says"], &rollout["verdict"]["is"]),
        (&json!("working"), &json!("corrected")),
        "{told:#}"
    );
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    let told = until(&home, &id, "waiting", &["rollout"]);
    assert_eq!(told["attention"], Value::Null, "{told:#}");
    // another conversation in the same process is followed, and none that is somebody else's
    drop(supervisor);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.watching(&tmux, 1);
    let again = until(&home, &id, "waiting", &["rollout"]);
    assert_eq!(again["since"], told["since"], "known with its age after a restart");
    let other = Fake::window(&tmux, "main", "two", &root, "codex", &["--no-daemon"]).up(&tmux);
    other.say(&tmux, "of somebody else [[ms=1000000]]");
    wait_until("the other one's conversation", DEADLINE, || other.file());
    agent.ready(&tmux);
    agent.say(&tmux, "/new");
    agent.ready(&tmux);
    assert_eq!(turn(&home, &id)["state"], "waiting");
    agent.say(&tmux, "a new one [[ms=1000000]]");
    until(&home, &id, "working", &["rollout", "title"]);
    let new = wait_until("its conversation", DEADLINE, || {
        let known = home.record(&id)?["codeagent_session_id"].as_str()?.to_owned();
        (known == agent.known_conversation()?).then_some(known)
    });
    assert_ne!(Some(new), other.known_conversation());
    until(&home, &id, "working", &["rollout"]);
    let folder = home.home().join(".local/state/ait/sessions").join(&id);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text);
        for secret in ["secret", "ask me", "alpha", agent.conversation().as_str()] {
            assert!(!text.contains(secret), "{}: {text}", path.display());
        }
    }
}

#[test]
fn what_nobody_tells_is_unknown() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "one");
    supervisor.knows(&tmux, &[&agent]);
    let unknown = |told: &Value| {
        assert_eq!((&told["state"], &told["source"]), (&json!("unknown"), &Value::Null), "{told}");
    };
    unknown(&turn(&home, &agent.id));
    // a shell's marks, as if the agent were its command, and a title that looks like another provider's
    tmux.ok(["send-keys", "-t", &agent.pane.id, "-l", "print \u{1b}]133;A\u{7}\u{1b}]133;C\u{7}marked"]);
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    wait_until("the marks", DEADLINE, || {
        tmux.run(["capture-pane", "-p", "-t", &agent.pane.id]).text().contains("marked").then_some(())
    });
    unknown(&turn(&home, &agent.id));
    assert_eq!(turns(&home).len(), 1);
}

#[test]
fn list_and_status_say_what_an_agent_is_at_and_who_says_so() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let agent = Fake::claude(&tmux, "main", "cart", &root);
    let id = agent.adopt(&tmux);
    supervisor.watching(&tmux, 1);
    agent.say(&tmux, "ask me [[ask]]");
    until(&home, &id, "needs_input", &["hook"]);
    let listed = home.ait(["list", "--all"]).ok().text();
    assert!(listed.starts_with(&format!("{id}  claude  running  needs_input (hook, ")), "{listed}");
    assert!(listed.ends_with(&format!(")  {}", root.display())), "{listed}");
    let listed = home.ait(["list", "--all", "--format", "json"]).ok().json();
    assert_eq!(listed["data"][0]["turn_state"]["phase"], "needs_input", "{listed:#}");
    assert_eq!(listed["data"][0]["turn_state"]["source"]["kind"], "provider_hook", "{listed:#}");
    let status = home.ait(["status"]).ok();
    assert!(status.text().contains("  needs_input (hook, "), "{status}");
    let told = &home.ait(["status", "--json"]).ok().json()["records"][0]["turn"];
    assert_eq!((&told["state"], &told["source"]), (&json!("needs_input"), &json!("hook")), "{told:#}");
    assert_eq!(told["attention"]["kind"], "approval", "{told:#}");
    // without a supervisor nobody sees it: no state that was true once is told as if it were now
    drop(supervisor);
    let listed = home.ait(["list", "--all"]).ok().text();
    assert!(listed.starts_with(&format!("{id}  claude  running  -  ")), "{listed}");
    let status = home.ait(["status", "--json"]).code(11).json();
    assert_eq!(status["records"][0]["turn"], Value::Null, "{status:#}");
}
