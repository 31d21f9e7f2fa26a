//! The word at the next attach: what came back and what is offered, said once to whoever comes.

use std::time::Duration;

use rustix::process::Signal;

use super::Fleet;
use crate::support::terminal::Terminal;
use crate::support::wait::stays;
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

/// The lines that were shown in status lines, as the server's own log of messages has them.
fn said(tmux: &Tmux) -> Vec<String> {
    let log = tmux.ok(["show-messages"]);
    log.lines().filter_map(|line| Some(line.split_once(" message: ait: ")?.1.to_owned())).collect()
}

#[track_caller]
fn until_said(tmux: &Tmux, line: &str) {
    wait_until("the word", DEADLINE, || {
        let said = said(tmux);
        (said.first().map(String::as_str) == Some(line)).then_some(()).or_else(|| {
            eprintln!("not yet {line:?}: {said:?}");
            None
        })
    });
}

#[test]
fn what_came_back_is_said_once_to_who_attaches_next() {
    let mut fleet = Fleet::new(&["alpha"]);
    let old = fleet.crash();
    fleet.all_back(old);
    assert!(said(&fleet.tmux).is_empty(), "nobody was there");
    let first = Terminal::attach(&fleet.tmux, Some("alpha"));
    until_said(&fleet.tmux, "4 agents recovered: ait status");
    let seen = fleet.tmux.format("alpha:", "#{pane_in_mode} #{session_name}");
    assert_eq!(seen, "0 alpha", "nothing is opened");
    assert_eq!(first.session(&fleet.tmux), "alpha");
    let once = |what: &str| {
        stays(what, Duration::from_secs(1), || said(&fleet.tmux).len() == 1);
    };
    let second = Terminal::attach(&fleet.tmux, Some("alpha"));
    once("the next one hears nothing");
    drop(second);
    drop(first);
    fleet.supervisor.kill();
    fleet.supervisor = super::supervisor(&fleet.home, &fleet.tmux);
    fleet.supervisor.watching(&fleet.tmux, 4);
    let _third = Terminal::attach(&fleet.tmux, Some("alpha"));
    stays("nor by another supervisor", Duration::from_secs(1), || said(&fleet.tmux).len() == 1);
}

#[test]
fn what_is_offered_is_said_with_its_reason_where_a_server_listens_again() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.knows(&tmux, &[&agent]);
    tmux.kill(Signal::TERM);
    home.until_lost(&agent.id, "server_stopped");
    tmux.boot();
    let _terminal = Terminal::attach(&tmux, Some("main"));
    until_said(&tmux, "1 agent offered (its server was stopped, which may have been meant): ait status");
    wait_until("the supervisor to leave a server without agents", DEADLINE, || {
        (tmux.ok(["list-sessions", "-F", "#{session_name}"]) == "main").then_some(())
    });
    assert_eq!(said(&tmux).len(), 1);
}
