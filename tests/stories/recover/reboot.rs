//! Another boot: all is back by itself, be there a server or none.

use rustix::process::Signal;

use crate::reboot::another_boot;
use crate::support::DEADLINE;

use super::{Fleet, running, supervisor};

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

#[test]
fn what_was_dropped_on_purpose_is_not_brought_back() {
    let mut fleet = Fleet::new(&["alpha"]);
    let at = fleet.agents.iter().position(|member| member.place.window == "alone").expect("one by itself");
    let dropped = fleet.agents.remove(at);
    fleet.home.ait(["drop", "--force", &dropped.id]).ok();
    assert!(fleet.home.record(&dropped.id).is_none());
    let old = shut_down(&mut fleet, |_| {});
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.all_back(old);
    assert!(fleet.home.record(&dropped.id).is_none(), "its record is not back");
    assert_eq!(running(&fleet.home, &dropped.conversation), 0);
    let names = fleet.tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]);
    assert!(!names.lines().any(|name| name == dropped.place.window), "nor is its window: {names}");
    // all of them, and nothing is left to come back
    for member in &fleet.agents {
        fleet.home.ait(["drop", "--force", &member.id]).ok();
    }
    fleet.agents.clear();
    shut_down(&mut fleet, |_| {});
    fleet.tmux.boot();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    let told = fleet.home.ait(["recover"]).ok().text();
    assert!(fleet.home.records().is_empty(), "{told}");
    assert_eq!(fleet.tmux.panes().len(), 1, "only what the user started: {told}");
}
