//! The server is killed: all is back by itself.

use super::{Fleet, settings, supervisor};
use crate::support::{DEADLINE, proc};

#[test]
fn a_killed_server_takes_nothing_of_three_projects_with_it() {
    let fleet = Fleet::new(&["alpha", "beta", "gamma"]);
    assert_eq!(fleet.agents.len(), 12);
    let old = fleet.crash();
    fleet.all_back(old);
}

#[test]
fn what_runs_in_a_server_that_was_brought_back_hears_the_hang_up() {
    let fleet = Fleet::new(&["alpha"]);
    let old = fleet.crash();
    fleet.all_back(old);
    let server = fleet.tmux.server();
    let shells: Vec<_> =
        fleet.tmux.panes().into_iter().filter(|pane| proc::command(pane.pid).ends_with("sh")).collect();
    assert!(!shells.is_empty(), "the companions are shells");
    for pane in &shells {
        assert_eq!(proc::blocked(pane.pid) & 1, 0, "SIGHUP: {} in {}", proc::command(pane.pid), pane.id);
    }
    let of_it: Vec<_> =
        fleet.tmux.panes().into_iter().map(|pane| pane.process()).chain(hold(server.pid)).collect();
    server.signal(rustix::process::Signal::KILL);
    for process in of_it {
        assert!(process.dies(DEADLINE), "{} goes with its server", proc::command(process.pid));
    }
}

/// What holds the hidden session of that server.
fn hold(server: u32) -> Option<proc::Process> {
    proc::children(server).into_iter().find(|child| proc::command(child.pid).contains(" hold "))
}

#[test]
fn a_server_that_goes_before_its_plan_is_kept_takes_no_companion_with_it() {
    let mut fleet = Fleet::with(&["alpha"], |home| settings(home, "recover = \"offer\"\n"));
    let old = fleet.lose();
    // nobody keeps what stands where on the next one
    fleet.supervisor.kill();
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
    let old = fleet.crash();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.until_lost();
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
}
