//! Where a session goes: the tmux session of its project, whatever the project's folder is called; and what is said of one that
//! is on its way.

use super::{ait, data, envelope, habits, refusal};
use crate::support::wrapper::{Act, Calls, When};
use crate::support::{Home, Ran, Supervisor, Tmux};

#[test]
fn a_project_whose_folder_has_an_odd_name_gets_a_session_that_tmux_calls_as_we_do() {
    let home = Home::new();
    let tmux = habits(&home);
    home.agent_program("claude");
    let mut supervisor = None;
    for (folder, session) in [
        ("back\\slash", "back_slash"),
        ("new\nline", "new_line"),
        ("tab\tx", "tab_x"),
        ("esc\x1b[31m", "esc_[31m"),
        ("dollar$x", "dollar_x"),
        // and where a supervisor writes what tmux calls them
        ("a\\b", "a_b"),
    ] {
        if session == "a_b" {
            supervisor = Some(Supervisor::start(&home, &[&tmux]));
        }
        let project = home.project(folder);
        let start = || {
            let mut command = home.ait_command(["start", "--agent", "claude", "--format", "json"]);
            data(&Ran::run(command.current_dir(&project)).ok(), "start")
        };
        let (one, two) = (start(), start());
        for seen in [&one, &two] {
            assert_eq!(seen["tmux_session"], session, "{seen:#}");
            let pane = seen["location"]["pane"].as_str().unwrap();
            assert_eq!(tmux.format(pane, "#{session_name}"), session, "the second goes to the first");
        }
        for seen in [one, two] {
            home.ait(["delete", seen["id"].as_str().unwrap()]).ok();
        }
    }
    assert_eq!(
        tmux.ok(["list-sessions", "-f", "#{!=:#{session_name},_ait}", "-F", "#{session_name}"]),
        "main"
    );
    drop(supervisor);
}

#[test]
fn one_whose_start_was_killed_on_its_way_is_not_said_to_be_stopped() {
    let home = Home::new();
    home.agent_program("claude");
    let _tmux = Tmux::start(&home);
    let calls = Calls::of(&home, "start");
    let start = |name: &str| ait(&home, &["start", "--agent", "claude", "--id", name]);
    start("whole").ok();
    let made = calls.made().len();
    let mut on_their_way = 0;
    for (number, when) in (1..=made).flat_map(|number| [(number, When::Before), (number, When::After)]) {
        let name = format!("cut-{number}-{when:?}");
        calls.at(number, when, &Act::Kill);
        start(&name);
        calls.none();
        let records = home.records();
        let Some(record) = records.iter().find(|one| one["ait"]["session"]["name"] == name.as_str()) else {
            continue;
        };
        let told = |command: &str| {
            data(&ait(&home, &[command, &name, "--format", "json"]).ok(), command)["status"].clone()
        };
        let status = told("show");
        assert_ne!(status, "stopped", "{record:#}");
        assert_eq!(told("glance"), status);
        if record["state"] == "restoring" && status == "unknown" {
            on_their_way += 1;
            let ran = ait(&home, &["resume", &name, "--format", "json"]).code(1);
            assert_eq!(refusal(&ran), "session-busy");
            assert!(envelope(&ran)["error"]["hint"].as_str().unwrap().contains("ait delete"), "{ran}");
        }
    }
    assert!(on_their_way > 3, "{on_their_way}");
}

#[test]
fn a_name_is_good_wherever_an_id_is() {
    let home = Home::new();
    let _tmux = habits(&home);
    let start = |words: &[&str]| {
        data(
            &ait(&home, &[&["start", "--agent", "claude", "--format", "json"], words].concat()).ok(),
            "start",
        )
    };
    let seen = start(&["--id", "review", "--title", "Fix API"]);
    let id = seen["id"].as_str().unwrap();
    let state = || home.record(id).map(|record| record["state"].clone());
    home.ait(["freeze", "review", "--force"]).ok();
    assert_eq!(state().unwrap(), "frozen");
    home.ait(["restore", "Fix API", "--mode", "repick"]);
    home.store_until("it to be back", |_| (state()? == "live").then_some(()));
    home.ait(["drop", "review", "--force"]).ok();
    assert_eq!(state(), None);
    for command in ["freeze", "restore", "drop"] {
        let told = home.ait([command, "review"]).code(64).errors();
        assert!(told.contains("no session's name") && told.contains("ait status"), "{told}");
    }
}
