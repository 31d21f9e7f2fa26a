//! Two Codex whose turns are run by one daemon: what is done to one of them never disturbs the other.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::hook::log;
use crate::support::{DEADLINE, Fake, Home, Tmux, proc, wait_until};

#[test]
fn freezing_one_codex_leaves_the_daemon_and_the_other_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("codex", json!({ "daemon": true }));
    // the first starts the daemon: its hooks would all name the first's pane
    home.hooked("codex");
    let first = Fake::window(&tmux, "main", "one", &home.project("alpha"), "codex", &[]).up(&tmux);
    let second = Fake::window(&tmux, "main", "two", &home.project("beta"), "codex", &[]).up(&tmux);
    first.prompt(&tmux, "to the first");
    second.prompt(&tmux, "to the second");
    let daemon = home.codex_daemon().expect("the daemon runs");
    let record = first.adopt(&tmux);
    let other = second.adopt(&tmux);
    let process = first.process();
    // the other is in the middle of a turn, which the daemon runs
    second.say(&tmux, "a long one [[ms=4000]]");
    second.screen_until(&tmux, "the turn", |screen| screen.contains("esc to interrupt"));
    let ran = home.ait(["freeze", &record, "--force", "--json"]);
    println!("{ran}");
    ran.ok();
    assert!(!process.alive(), "the first has ended");
    assert_eq!(home.record(&record).unwrap()["state"], "frozen");
    assert!(daemon.alive(), "the daemon serves others and is never signalled");
    assert_eq!(home.record(&other).unwrap()["state"], "live");
    assert!(second.process().alive());
    let answer = "turn 2, 1 earlier: a long one";
    second.screen_until(&tmux, "the end of the turn", |screen| screen.contains(answer));
    wait_until("the turn in the rollout", DEADLINE, || {
        second.file().filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(answer)))
    });
    second.prompt(&tmux, "once more");
    assert!(daemon.alive());
    // this story started it
    second.leave(&tmux);
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
}

/// Nothing says which conversation a terminal shows: after `/new` the old one would come back for it.
#[test]
fn one_that_may_have_begun_another_conversation_is_not_frozen_as_the_first() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("codex", json!({ "daemon": true }));
    let alpha = home.project("alpha");
    let first = Fake::window(&tmux, "main", "first", &alpha, "codex", &[]).up(&tmux);
    first.prompt(&tmux, "to the first");
    let id = first.conversation();
    first.leave(&tmux);
    let agent = Fake::window(&tmux, "main", "one", &alpha, "codex", &["resume", &id]).up(&tmux);
    // in another folder, and nothing said in it yet
    let beta = Fake::window(&tmux, "main", "two", &home.project("beta"), "codex", &[]).up(&tmux);
    agent.prompt(&tmux, "once more");
    beta.prompt(&tmux, "to the second");
    let record = agent.adopt(&tmux);
    assert_eq!(home.record(&record).unwrap()["codeagent_session_id"], id.as_str());
    // the stand-in draws its prompt line where no Codex would
    let refused = home.ait(["freeze", &record]).code(12).text();
    assert!(!refused.contains("another_conversation"), "{refused}");
    agent.say(&tmux, "/new");
    agent.say(&tmux, "another conversation");
    agent.screen_until(&tmux, "its answer", |screen| screen.contains("turn 1, 0 earlier: another"));
    let other = wait_until("the other conversation", DEADLINE, || {
        let words = ["discover", "--provider", "codex", "--json", "--cwd", alpha.to_str().unwrap()];
        let found = home.ait(words).json();
        let ids = found["conversations"].as_array()?.iter().filter_map(|one| one["id"].as_str());
        ids.filter(|other| *other != id).map(str::to_owned).next()
    });
    let refused = home.ait(["freeze", &record]).code(12).text();
    assert!(refused.contains("another_conversation") && refused.contains(&other), "{refused}");
    assert!(agent.process().alive(), "it is left alone");
    home.ait(["freeze", &record, "--force"]).ok();
    let daemon = home.codex_daemon().expect("the daemon runs");
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
}

/// The record of the agent in this pane, once it is there.
#[track_caller]
fn recorded(home: &Home, agent: &Fake) -> Value {
    home.store_until("the record of the agent", |home| {
        home.records().into_iter().find(|record| record["pane_id"] == agent.pane.id.as_str())
    })
}

/// How many ends of a turn were told of a record.
fn ends(home: &Home, id: &str) -> usize {
    let journal = home.home().join(format!(".local/state/ait/sessions/{id}/activity.journal.jsonl"));
    fs::read_to_string(journal).unwrap_or_default().matches("\"Stop\"").count()
}

/// Waits until so many ends of a turn were told of a record.
#[track_caller]
fn told(home: &Home, id: &str, count: usize) {
    wait_until(&format!("end {count} to be told of {id}"), DEADLINE, || {
        (ends(home, id) == count).then_some(())
    });
}

#[test]
fn what_the_daemon_tells_is_told_of_the_agent_whose_turn_it_is() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("codex", json!({ "daemon": true }));
    home.hooked("codex");
    let first = Fake::window(&tmux, "main", "one", &home.project("alpha"), "codex", &[]).up(&tmux);
    let beta = home.project("beta");
    let second = Fake::window(&tmux, "main", "two", &beta, "codex", &[]).up(&tmux);
    // the daemon runs below the first, in the first's pane by its environment; the second speaks first
    second.prompt(&tmux, "to the second");
    let two = recorded(&home, &second);
    assert_eq!(two["codeagent_session_id"], second.conversation().as_str(), "{two:#}");
    assert_eq!(home.records().len(), 1, "{}", log(&home));
    first.prompt(&tmux, "to the first");
    let one = recorded(&home, &first);
    assert_eq!(one["codeagent_session_id"], first.conversation().as_str(), "{one:#}");
    let [one, two] = [&one, &two].map(|record| record["id"].as_str().unwrap().to_owned());
    told(&home, &one, 1);
    told(&home, &two, 1);
    // two in one folder: the one whose conversation is known is still known by it, the other is nobody's
    let third = Fake::window(&tmux, "main", "three", &beta, "codex", &[]).up(&tmux);
    third.say(&tmux, "whose am I");
    wait_until("it to be let go", DEADLINE, || {
        log(&home).contains("several agents on the shared server work in its folder").then_some(())
    });
    second.say(&tmux, "again");
    second.screen_until(&tmux, "the answer", |screen| screen.contains("turn 2, 1 earlier: again"));
    told(&home, &two, 2);
    // the daemon outlives its parent, and is in no pane then
    let daemon = home.codex_daemon().expect("the daemon runs");
    first.leave(&tmux);
    second.say(&tmux, "once more");
    second.screen_until(&tmux, "the answer", |screen| screen.contains("turn 3, 2 earlier: once more"));
    told(&home, &two, 3);
    let known: Vec<Value> = home.records().into_iter().map(|record| record["pane_id"].clone()).collect();
    assert!(!known.contains(&json!(third.pane.id)), "{known:?}");
    assert_eq!(ends(&home, &one), 1, "nothing of the others was told of the first");
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
}

/// The command line of the process that its pane has now.
fn words_of(tmux: &Tmux, agent: &Fake) -> String {
    proc::command(tmux.format(&agent.pane.id, "#{pane_pid}").parse().unwrap())
}

#[test]
fn one_that_was_frozen_goes_on_where_the_daemon_has_its_conversation_open() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let settings = home.home().join(".config/ait");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[frozen]\nrestore_ack_grace = \"1s\"\n").unwrap();
    home.manners("codex", json!({ "daemon": true }));
    home.hooked("codex");
    let first = Fake::window(&tmux, "main", "one", &home.project("alpha"), "codex", &[]).up(&tmux);
    let second = Fake::window(&tmux, "main", "two", &home.project("beta"), "codex", &[]).up(&tmux);
    first.prompt(&tmux, "to the first");
    second.prompt(&tmux, "to the second");
    let daemon = home.codex_daemon().expect("the daemon runs");
    let [one, two] = [&first, &second].map(|agent| recorded(&home, agent));
    let [one_id, two_id] = [&one, &two].map(|record| record["id"].as_str().unwrap().to_owned());
    let [one, two] = [&one, &two].map(|record| record["codeagent_session_id"].as_str().unwrap().to_owned());
    for id in [&one_id, &two_id] {
        told(&home, id, 1);
        // the stand-in draws its prompt line where no Codex would
        home.ait(["freeze", id, "--force"]).ok();
    }
    let ran = home.ait(["restore", &one_id]).code(15);
    assert!(ran.text().contains("unverified"), "no proof of its own: {ran}");
    assert_eq!(words_of(&tmux, &first), format!("codex resume {one}"));
    first.ready(&tmux);
    first.say(&tmux, "back again");
    first.screen_until(&tmux, "the answer", |screen| screen.contains("turn 2, 1 earlier: back again"));
    told(&home, &one_id, 2);
    assert!(daemon.alive());
    // without the daemon it has a server of its own
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
    home.ait(["restore", &two_id]).ok();
    assert_eq!(words_of(&tmux, &second), format!("codex --no-daemon resume {two}"));
    second.ready(&tmux);
    second.say(&tmux, "here I am");
    second.screen_until(&tmux, "the answer", |screen| screen.contains("turn 2, 1 earlier: here I am"));
}

#[test]
fn what_the_daemon_has_open_is_not_started_beside_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.manners("codex", json!({ "daemon": true }));
    let root = home.project("alpha");
    let own = Fake::window(&tmux, "main", "own", &root, "codex", &["-c", "a=b"]).up(&tmux);
    own.prompt(&tmux, "hello");
    let id = own.conversation();
    let record = own.adopt(&tmux);
    home.ait(["freeze", &record, "--force"]).ok();
    let other = Fake::window(&tmux, "main", "other", &root, "codex", &["resume", &id]).up(&tmux);
    other.prompt(&tmux, "from elsewhere");
    let daemon = home.codex_daemon().expect("the daemon runs");
    other.leave(&tmux);
    let before = home.record(&record);
    let refused = home.ait(["restore", &record]).code(12);
    assert!(refused.text().contains("open_elsewhere"), "{refused}");
    assert_eq!(home.record(&record), before, "nothing is begun");
    daemon.signal(Signal::TERM);
    assert!(daemon.dies(DEADLINE));
    home.ait(["restore", &record]).ok();
    own.ready(&tmux);
    own.say(&tmux, "and here");
    own.screen_until(&tmux, "the answer", |screen| screen.contains("turn 3, 2 earlier: and here"));
}
