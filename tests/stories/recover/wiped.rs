//! A boot that wipes what is temporary, and one that brings back windows of the same names with nothing but shells in them.

use std::fs;

use super::{Fleet, running, supervisor};
use crate::support::tmux::Pane;

#[test]
fn nothing_that_is_needed_lies_where_a_boot_wipes() {
    let mut fleet = Fleet::new(&["alpha"]);
    let old = fleet.crash();
    fleet.supervisor.kill();
    let home = &fleet.home;
    for folder in [home.runtime(), home.tmux_tmpdir(), fleet.tmux.socket().parent().unwrap().to_owned()] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
    crate::reboot::another_boot(home);
    fleet.supervisor = supervisor(home, &fleet.tmux);
    fleet.all_back(old);
}

#[test]
fn a_shell_in_a_window_of_the_same_name_is_not_taken_for_the_agent() {
    let mut fleet = Fleet::new(&["alpha"]);
    let old = fleet.crash();
    fleet.supervisor.kill();
    fleet.tmux.boot();
    let root = fleet.home.project("alpha");
    let first = fleet.tmux.session("alpha", &root, &["/bin/sh"]);
    fleet.tmux.ok(["rename-window", "-t", &first.window, "pair"]);
    let shells: Vec<Pane> = ["alone", "below"]
        .iter()
        .map(|name| fleet.tmux.window("alpha", name, &root, &["/bin/sh"]))
        .chain([first])
        .collect();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.home.store_until("all to be back", |home| {
        fleet.agents.iter().all(|member| super::is_back(home, &member.id, old)).then_some(())
    });
    for member in &fleet.agents {
        assert_eq!(running(&fleet.home, &member.conversation), 1);
        let record = fleet.home.record(&member.id).unwrap();
        assert_eq!(record["codeagent_session_id"], member.conversation.as_str());
        assert!(shells.iter().all(|shell| record["pane_id"] != shell.id.as_str()), "{record:#}");
    }
    for shell in &shells {
        let told =
            fleet.tmux.format(&shell.id, "#{pane_pid} #{window_id} #{@aitask_record}#{@aitask_frozen}.");
        assert_eq!(told, format!("{} {} .", shell.pid, shell.window), "the user's shell is as it was");
    }
}
