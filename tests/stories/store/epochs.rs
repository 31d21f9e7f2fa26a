//! Records on a real tmux: which life of a server they belong to, and what its end means.

use std::fs;

use rustix::process::Signal;

use super::super::support::{DEADLINE, Home, Tmux};
use super::{id_of, nonce_of, record, refused};

/// Tells the store of an agent in a pane, as a provider's hook does; gives the result line.
#[track_caller]
fn report(home: &Home, pane: &super::super::support::tmux::Pane, window: &str, session_id: &str) -> String {
    let pid = pane.pid.to_string();
    let root = home.project("p").to_string_lossy().into_owned();
    let words = ["upsert", "--root", &root, "--window", window, "--pane", &pane.id, "--pane-pid", &pid];
    let said = ["--session-id", session_id, "--agent-string", "claudecode/opus5"];
    home.ait(["record"].into_iter().chain(words).chain(said)).ok().text()
}

const AGENT: [&str; 2] = ["sleep", "600"];

#[test]
fn a_pane_tells_its_server_and_only_a_proven_end_takes_the_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let folder = home.project("p");
    let pane = tmux.window("main", "agent", &folder, &AGENT);
    let id = id_of(&report(&home, &pane, "agent", "s1"));
    let stored = home.record(&id).unwrap();
    assert_eq!(stored["ait"]["server"]["socket"], tmux.socket_text());
    assert_eq!(stored["ait"]["server"]["pid"], tmux.server().pid);
    refused(&home, 5, ["end", &id, "--reason", "exited"]);
    refused(&home, 5, ["lose", &id, "--cause", "server_gone"]);
    assert_eq!(record(&home, ["purge"]).ok().text(), "PURGED:0");

    let agent = pane.process();
    tmux.ok(["kill-pane", "-t", &pane.id]);
    assert!(agent.dies(DEADLINE), "the agent is gone");
    assert_eq!(record(&home, ["end", &id, "--reason", "window_closed"]).ok().text(), format!("ENDED:{id}"));
    let line = home.archived_record(&id).unwrap();
    assert_eq!(
        (line["reason"].as_str(), line["record"]["codeagent_session_id"].as_str()),
        (Some("window_closed"), Some("s1"))
    );
    assert_eq!(record(&home, ["revive", &id]).ok().text(), format!("REVIVED:{id}"));
    let revived = home.record(&id).unwrap();
    assert_eq!((revived["state"].as_str(), revived["pane_id"].as_str()), (Some("frozen"), Some("")));
    refused(&home, 5, ["revive", &id]);
}

#[test]
fn two_agents_of_one_window_are_known_again_after_the_server_died() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let folder = home.project("p");
    let first = tmux.window("main", "pair", &folder, &AGENT);
    let second = tmux.split(&first, &folder, &AGENT);
    let one = id_of(&report(&home, &first, "pair", "conversation-1"));
    let line = report(&home, &second, "pair", "conversation-2");
    let two = id_of(&line);
    assert_eq!(line, format!("UPSERTED:{two}|created_slot1"));
    let (agents, inode) = ([first.process(), second.process()], inode(&home));
    tmux.kill(Signal::KILL);
    assert!(agents.iter().all(|agent| agent.dies(DEADLINE)), "both agents are gone");
    let lost =
        record(&home, ["lose", &one, &two, "--cause", "server_crashed", "--evidence", "killed"]).ok().text();
    assert_eq!(lost, format!("LOST:{one}\nLOST:{two}"));
    let prev = fs::metadata(home.store().with_file_name("agent_sessions.json.prev")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&prev), inode, "one write for both");
    let stored = home.record(&one).unwrap();
    assert_eq!(
        (stored["state"].as_str(), stored["ait"]["lost"]["cause"].as_str()),
        (Some("frozen"), Some("server_crashed"))
    );

    tmux.boot();
    // The other way round, so that place and order say nothing.
    let second = tmux.window("main", "pair", &folder, &AGENT);
    let first = tmux.split(&second, &folder, &AGENT);
    assert_eq!(report(&home, &second, "pair", "conversation-2"), format!("UPSERTED:{two}|rejoined"));
    assert_eq!(report(&home, &first, "pair", "conversation-1"), format!("UPSERTED:{one}|rejoined"));
    let records = home.records();
    assert_eq!(records.len(), 2, "no third record: {records:?}");
    assert!(records.iter().all(|record| record["state"] == "live" && record["ait"]["lost"].is_null()));
    assert_eq!(home.record(&one).unwrap()["pane_id"], first.id);
}

fn inode(home: &Home) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(home.store()).unwrap())
}

#[test]
fn a_purge_needs_the_records_own_server_and_a_rename_is_a_rename() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let folder = home.project("p");
    let renamed = tmux.window("main", "old", &folder, &AGENT);
    let ended = tmux.window("main", "ended", &folder, &AGENT);
    let renamed_id = id_of(&report(&home, &renamed, "old", "s1"));
    let ended_id = id_of(&report(&home, &ended, "ended", "s2"));
    let root = folder.to_string_lossy().into_owned();
    let observed = home.root().join("observed");
    let purge = |text: &str| {
        fs::write(&observed, text).unwrap();
        record(&home, ["purge", "--observed", observed.to_str().unwrap()])
    };
    tmux.ok(["rename-window", "-t", &renamed.id, "new"]);
    assert_eq!(purge(&format!("ROOT\t{root}\n")).ok().text(), "PURGED:0", "both panes live on their server");
    let agent = ended.process();
    tmux.ok(["kill-pane", "-t", &ended.id]);
    assert!(agent.dies(DEADLINE), "the agent is gone");
    assert_eq!(purge(&format!("ROOT\t{root}\nINCOMPLETE\n")).ok().text(), "PURGED:0");
    purge("WHAT\tx\n").code(4);
    // A server that is stopped answers nothing: unknown is not gone.
    tmux.server().signal(Signal::STOP);
    let paused = purge(&format!("ROOT\t{root}\n"));
    tmux.server().signal(Signal::CONT);
    assert_eq!(paused.ok().text(), "PURGED:0");
    let text = purge(&format!("ROOT\t{root}\n")).ok().text();
    assert!(text.starts_with(&format!("DROPPED:{ended_id}|dead_")) && text.ends_with("PURGED:1"), "{text}");
    assert!(home.record(&renamed_id).is_some());
    assert!(home.archived_record(&ended_id).is_some(), "retiring never forgets");
}

#[test]
fn a_freeze_whose_coordinator_and_server_are_gone_is_settled() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.project("p"), &AGENT);
    let id = id_of(&report(&home, &pane, "agent", "s1"));
    let mut coordinator = home.command("sleep").arg("600").spawn().unwrap();
    let owner = coordinator.id().to_string();
    let begin = [
        "freeze-begin",
        &id,
        "--owner-pid",
        &owner,
        "--capture-ansi",
        "/a",
        "--capture-txt",
        "",
        "--lines",
        "1",
    ];
    nonce_of(&record(&home, begin).ok().text());
    let agent = pane.process();
    tmux.kill(Signal::KILL);
    assert!(agent.dies(DEADLINE), "the agent is gone");
    assert_eq!(record(&home, ["reconcile"]).ok().text(), "RECONCILED:0", "its coordinator lives");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    // The grace is over: the lease is moved back by more than it.
    let text = fs::read_to_string(home.store()).unwrap();
    let mut store: serde_json::Value = serde_json::from_str(&text).unwrap();
    let seconds = &mut store["sessions"][0]["ait"]["op_started_boot"]["seconds"];
    *seconds = (seconds.as_u64().unwrap().saturating_sub(61)).into();
    fs::write(home.store(), serde_json::to_string_pretty(&store).unwrap() + "\n").unwrap();
    assert_eq!(
        record(&home, ["reconcile", "--dry-run"]).ok().text(),
        format!("WOULD:{id}|freeze-commit\nRECONCILED:1")
    );
    assert_eq!(record(&home, ["reconcile"]).ok().text(), format!("FROZEN:{id}\nRECONCILED:1"));
    let stored = home.record(&id).unwrap();
    assert_eq!(
        (stored["state"].as_str(), stored["pane_id"].as_str(), stored["op_nonce"].as_str()),
        (Some("frozen"), Some(""), Some(""))
    );
}
