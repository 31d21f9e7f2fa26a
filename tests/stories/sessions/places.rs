//! Where a session goes: the tmux session of its project, whatever the project's folder is called.

use super::{data, habits};
use crate::support::{Home, Ran, Supervisor};

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
