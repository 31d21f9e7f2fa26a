//! Agents that already run, taken under care: by their process, on a real tmux.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::tmux::{Pane, Start};
use crate::support::{AIT, DEADLINE, Fake, Home, Tmux, wait_until};

const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A program called `name` that is our stand-in.
fn agent(home: &Home, name: &str) -> PathBuf {
    let path = home.bin().join(name);
    if !path.exists() {
        symlink(AIT, &path).unwrap();
    }
    path
}

/// Waits until the stand-in in a pane has drawn: its process is what it will be.
fn ready(tmux: &Tmux, pane: &str) {
    wait_until("the stand-in to draw", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", pane]).contains("waiting").then_some(())
    });
}

fn agent_window(home: &Home, tmux: &Tmux, name: &str, provider: &str, project: &str) -> Pane {
    let program = agent(home, provider);
    let pane = tmux.window("main", name, &home.project(project), &[program.to_str().unwrap(), "demo-agent"]);
    ready(tmux, &pane.id);
    pane
}

fn stamp(tmux: &Tmux, pane: &str) -> String {
    tmux.format(pane, "#{@aitask_record}")
}

fn line<'a>(report: &'a Value, pane: &str) -> &'a Value {
    report["panes"].as_array().unwrap().iter().find(|line| line["pane"] == pane).expect("the pane is told")
}

#[test]
fn an_agent_in_its_own_pane_gets_a_record_and_then_a_stamp() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "work | here", "claude", "alpha");
    let report = home.ait(["adopt", "--all", "--json"]).ok().json();
    assert_eq!(line(&report, &pane.id)["is"], "adopted");
    assert_eq!(line(&report, &pane.id)["provider"], "claude");
    let records = home.records();
    assert_eq!(records.len(), 1, "{records:#?}");
    let record = &records[0];
    assert_eq!(record["id"], stamp(&tmux, &pane.id));
    assert_eq!(record["root"], home.project("alpha").to_str().unwrap());
    assert_eq!(record["window"], "work | here");
    assert_eq!(record["pane_id"], pane.id);
    assert_eq!(record["pane_pid"], pane.pid);
    assert_eq!(record["state"], "live");
    assert_eq!(record["agent_kind"], "claude");
    assert_eq!(record["ait"]["agent"]["pid"], pane.pid);
    assert_eq!(record["ait"]["host"]["kind"], "pane");
    assert_eq!(record["ait"]["origin"], "adopted");
    assert_eq!(record["ait"]["server"]["socket"], tmux.socket_text());
    assert_eq!(record["ait"]["server"]["pid"], tmux.server().pid);
    assert_eq!(record["ait"]["cwd"], home.project("alpha").to_str().unwrap());
    let options = tmux.ok(["show-options", "-p", "-t", &pane.id]);
    assert_eq!(
        options,
        format!("@aitask_record {}", record["id"].as_str().unwrap()),
        "the stamp and nothing else"
    );
}

#[test]
fn an_agent_typed_into_a_shell_is_found_below_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let program = agent(&home, "codex");
    let project = home.project("beta");
    let pane = tmux.window("main", "shell", &project, &[]);
    let inner = project.join("src");
    std::fs::create_dir(&inner).unwrap();
    let typed = format!("cd src && {} demo-agent -- resume {ID}", program.display());
    tmux.ok(["send-keys", "-t", &pane.id, &typed, "Enter"]);
    ready(&tmux, &pane.id);
    home.ait(["adopt", &pane.id]).ok();
    let record = &home.records()[0];
    assert_eq!(record["root"], project.to_str().unwrap(), "the project, not the folder the agent is in");
    assert_eq!(record["ait"]["cwd"], inner.to_str().unwrap());
    assert_eq!(record["pane_pid"], pane.pid, "the pane's process is the shell");
    let agent = record["ait"]["agent"]["pid"].as_u64().unwrap();
    assert_ne!(agent, u64::from(pane.pid));
    assert_eq!(record["ait"]["host"]["kind"], "shell");
    // what stands behind `--` is no option of the agent
    assert_eq!(record["codeagent_session_id"], "");
}

#[test]
fn a_shell_that_a_wrapper_started_hosts_the_agent_typed_into_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let program = agent(&home, "claude");
    let project = home.project("beta");
    let pane = tmux.window("main", "shell", &project, &["sh", "-c", "sh -i; true"]);
    tmux.ok(["send-keys", "-t", &pane.id, &format!("{} demo-agent", program.display()), "Enter"]);
    ready(&tmux, &pane.id);
    home.ait(["adopt", &pane.id]).ok();
    let record = &home.records()[0];
    assert_eq!(record["pane_pid"], pane.pid);
    assert_eq!(record["ait"]["host"]["kind"], "shell", "{record:#}");
    assert_eq!(record["ait"]["host"]["argv"], serde_json::json!(["sh", "-i"]), "the shell, not the wrapper");
    assert_ne!(record["ait"]["agent"]["pid"], pane.pid, "the agent's end is its own process's");
}

#[test]
fn an_exact_session_id_is_taken_and_no_prompt_is_kept() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let shell = home.bin().join("claude");
    std::fs::remove_file(&shell).unwrap();
    symlink("/bin/sh", &shell).unwrap();
    let words = [shell.to_str().unwrap(), "-c", "read x", "--session-id", ID, "a secret prompt"];
    let pane = tmux.window("main", "one", &home.project("alpha"), &words);
    home.ait(["adopt", &pane.id]).ok();
    let record = &home.records()[0];
    assert_eq!(record["codeagent_session_id"], ID);
    let text = std::fs::read_to_string(home.store()).unwrap();
    assert!(!text.contains("secret prompt"), "{text}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "w", "gemini", "alpha");
    let before = crate::cli_help::tree(&home);
    let report = home.ait(["adopt", "--all", "--dry-run", "--json"]).ok().json();
    assert_eq!(line(&report, &pane.id)["is"], "would_adopt");
    assert_eq!(crate::cli_help::tree(&home), before, "not even a folder");
    assert_eq!(tmux.ok(["show-options", "-p", "-t", &pane.id]), "");
}

#[test]
fn a_second_run_knows_what_is_known() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "w", "opencode", "alpha");
    home.ait(["adopt", "--all"]).ok();
    let (records, id) = (home.records(), stamp(&tmux, &pane.id));
    let report = home.ait(["adopt", "--all", "--json"]).ok().json();
    assert_eq!(line(&report, &pane.id)["is"], "known");
    assert_eq!(line(&report, &pane.id)["record"], id);
    assert_eq!(home.records(), records);
    // a stamp that was lost (a crash between the record and the stamp) is put back
    tmux.ok(["set-option", "-pu", "-t", &pane.id, "@aitask_record"]);
    home.ait(["adopt", "--all"]).ok();
    assert_eq!(stamp(&tmux, &pane.id), id);
    assert_eq!(home.records(), records);
}

#[test]
fn two_agents_of_one_window_are_two_records() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let first = agent_window(&home, &tmux, "w", "claude", "alpha");
    let program = home.bin().join("claude");
    let second = tmux.split(&first, &home.project("alpha"), &[program.to_str().unwrap(), "demo-agent"]);
    ready(&tmux, &second.id);
    home.ait(["adopt", "--all"]).ok();
    let mut slots: Vec<(u64, String)> = home
        .records()
        .iter()
        .map(|record| {
            (record["window_slot"].as_u64().unwrap(), record["pane_id"].as_str().unwrap().to_owned())
        })
        .collect();
    slots.sort();
    assert_eq!(slots.len(), 2);
    assert_ne!(slots[0].0, slots[1].0);
    assert_ne!(stamp(&tmux, &first.id), stamp(&tmux, &second.id));
}

#[test]
fn what_is_no_agent_is_refused_with_its_reason() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = &tmux.panes()[0];
    let ran = home.ait(["adopt", &pane.id]).code(1);
    assert!(ran.text().contains("no known agent runs in it (its process is -sh)"), "{ran}");
    let ran = home.ait(["adopt", "%4711"]).code(1);
    assert!(ran.errors().contains("there is no pane %4711"), "{ran}");
    assert_eq!(home.records().len(), 0);
    // a window that is called like an agent is none
    tmux.window("main", "claude", &home.home(), &["cat"]);
    home.ait(["adopt", "--all"]).ok();
    assert_eq!(home.records().len(), 0);
}

#[test]
fn a_window_in_two_sessions_is_one_pane() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "w", "claude", "alpha");
    tmux.ok(["new-session", "-d", "-s", "grouped", "-t", "main"]);
    let other = tmux.session("other", &home.home(), &[]);
    tmux.ok(["link-window", "-d", "-s", &pane.window, "-t", &format!("{}:", other.session)]);
    let report = home.ait(["adopt", "--all", "--json"]).ok().json();
    let told = report["panes"].as_array().unwrap().iter().filter(|line| line["pane"] == pane.id).count();
    assert_eq!(told, 1);
    assert_eq!(home.records().len(), 1);
}

#[test]
fn a_pane_id_needs_a_server() {
    let home = Home::new();
    let none = home.ait(["adopt", "%0"]).code(69);
    assert!(none.errors().contains("no tmux server runs"), "{none}");
    let first = Tmux::start(&home);
    let second = Tmux::start_with(&home, Start { socket: "second".into(), ..Start::default() });
    let pane = agent_window(&home, &second, "w", "claude", "alpha");
    let ran = home.ait(["adopt", &pane.id]).code(64);
    assert!(ran.errors().contains("does not say which server"), "{ran}");
    home.ait(["adopt", &pane.id, "--socket", &second.socket_text()]).ok();
    assert_eq!(home.records()[0]["ait"]["server"]["socket"], second.socket_text());
    drop(first);
}

#[test]
fn a_stopped_server_is_unknown_and_nothing_is_touched() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "w", "claude", "alpha");
    let server = tmux.server();
    server.signal(rustix::process::Signal::STOP);
    let ran = home.ait(["adopt", "--all"]).code(69);
    server.signal(rustix::process::Signal::CONT);
    assert!(ran.text().contains("unknown: "), "{ran}");
    assert_eq!(home.records().len(), 0);
    assert_eq!(tmux.ok(["show-options", "-p", "-t", &pane.id]), "");
}

#[test]
fn a_corrupt_store_is_neither_written_nor_read_as_empty() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = agent_window(&home, &tmux, "w", "claude", "alpha");
    std::fs::create_dir_all(home.store().parent().unwrap()).unwrap();
    std::fs::write(home.store(), "{ \"version\": 1,\n \"sessions\": [").unwrap();
    let ran = home.ait(["adopt", "--all"]).code(65);
    assert!(ran.errors().contains("line 2"), "{ran}");
    assert_eq!(std::fs::read(home.store()).unwrap(), b"{ \"version\": 1,\n \"sessions\": [");
    assert_eq!(stamp(&tmux, &pane.id), "");
}

#[test]
fn a_conversation_that_was_not_known_yet_is_noted_by_the_next_run() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Fake::window(&tmux, "main", "w", &home.project("alpha"), "claude", &[]).up(&tmux);
    // an agent that has just been started is not in its provider's list yet
    let list = home.home().join(".claude/sessions");
    let away = home.root().join("not-yet");
    wait_until("the agent to be in the list", DEADLINE, || agent.known_conversation());
    std::fs::rename(&list, &away).unwrap();
    // it writes there whenever something changes, when it is told its place in tmux too, and must not find it
    std::fs::write(&list, "").unwrap();
    let id = agent.adopt(&tmux);
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], "");
    std::fs::remove_file(&list).unwrap();
    std::fs::rename(&away, &list).unwrap();
    let planned = home.ait(["adopt", "--all", "--dry-run", "--json"]).ok().json();
    assert_eq!(line(&planned, &agent.pane.id)["note"], "");
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], "", "a plan writes nothing");
    let report = home.ait(["adopt", "--all", "--json"]).ok().json();
    assert_eq!(line(&report, &agent.pane.id)["note"], "its conversation is known now");
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], agent.conversation().as_str());
}
