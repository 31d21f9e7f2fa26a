//! Another boot: all is back by itself, be there a server or none.

use rustix::process::Signal;

use crate::reboot::another_boot;
use crate::support::DEADLINE;

use super::{Fleet, supervisor};

/// SIGTERM to agents, server and supervisor as a shutdown sends it, then another boot; `between` runs as the agents have got
/// theirs and the server has not.
fn shut_down(fleet: &mut Fleet, between: impl FnOnce(&Fleet)) -> u32 {
    let agents: Vec<_> = fleet.agents.iter().map(|member| member.agent.process()).collect();
    let server = fleet.tmux.server();
    for process in &agents {
        process.signal(Signal::TERM);
    }
    between(fleet);
    server.signal(Signal::TERM);
    assert!(fleet.supervisor.stop().success());
    for process in agents.iter().chain([&server]) {
        assert!(process.dies(DEADLINE));
    }
    another_boot(&fleet.home);
    server.pid
}

#[test]
fn an_orderly_reboot_takes_nothing_with_it() {
    let mut fleet = Fleet::new(&["alpha", "beta"]);
    let old = shut_down(&mut fleet, |_| {});
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.all_back(old);
}

#[test]
fn after_a_reboot_all_is_back_beside_what_the_user_started_first() {
    let mut fleet = Fleet::new(&["alpha"]);
    let old = shut_down(&mut fleet, |_| {});
    fleet.tmux.boot();
    let shell = fleet.tmux.panes();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.all_back(old);
    let panes = fleet.tmux.panes();
    assert!(shell.iter().all(|pane| panes.contains(pane)), "the user's own shell is as it was");
}

#[test]
fn agents_whose_end_was_written_before_the_servers_are_back_with_their_companions() {
    let mut fleet = Fleet::new(&["alpha"]);
    let old = shut_down(&mut fleet, |fleet| {
        fleet.home.store_until("all to have ended", |home| home.records().is_empty().then_some(()));
    });
    fleet.tmux.boot();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.all_back(old);
}
