//! The supervisor ended in every way: nothing leaks, nothing is lost, tmux never goes down with it.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::supervisor::control_clients;
use crate::support::wait::{Dice, moment, trials};
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, proc, wait_until};

#[test]
fn killed_again_and_again_it_leaks_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let server = tmux.server();
    let one = Agent::start(&tmux, "main", "one");
    let two = one.beside(&tmux);
    let seed = 0x5eed_0001;
    println!("seed {seed:#x}");
    let mut dice = Dice::new(seed);
    for trial in 0..trials(60, 200) {
        let mut supervisor = Supervisor::launch(&home, &[&tmux], &[]);
        moment(Duration::from_micros(dice.below(120_000)));
        // something to write about, every now and then
        if dice.below(3) == 0 {
            tmux.ok(["rename-window", "-t", &one.pane.window, &format!("trial {trial}")]);
        }
        supervisor.kill();
        home.records();
    }
    wait_until("every control client to be gone", DEADLINE, || {
        control_clients(&tmux).is_empty().then_some(())
    });
    wait_until("no hidden session", DEADLINE, || {
        (tmux.ok(["list-sessions", "-F", "#{session_name}"]) == "main").then_some(())
    });
    assert!(server.alive(), "tmux has the process it had");
    assert_eq!(tmux.format("main:", "#{pid}"), server.pid.to_string());
    assert_eq!(proc::zombies(server.pid), []);
    let left: Vec<String> = home
        .processes()
        .into_iter()
        .filter(|process| *process != server && proc::parent(process.pid) != Some(server.pid))
        .map(|process| proc::command(process.pid))
        .collect();
    assert_eq!(left, [""; 0], "processes left by killed supervisors");
    home.all_live(&[&one, &two]);
    assert_eq!(home.records().len(), 2);
    assert!(home.archived().is_empty());

    // no stale lock: the next one starts and knows everything
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.watching(&tmux, 2);
    tmux.ok(["rename-window", "-t", &one.pane.window, "last"]);
    home.until_window(&one.id, "last");
    home.until_window(&two.id, "last");
    wait_until("what killed writers left to be cleaned away", DEADLINE, || {
        temporary_files(&home).is_empty().then_some(())
    });
    supervisor.kill();
    tmux.ok(["kill-session", "-t", "=main"]);
    assert!(server.dies(DEADLINE), "the server exits when its last session ends");
}

/// Files beside the store that are there only while somebody writes.
fn temporary_files(home: &Home) -> Vec<String> {
    let store = home.store();
    let names = std::fs::read_dir(store.parent().unwrap()).unwrap().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".tmp") || name.contains(".lockd"))
        .collect()
}

#[test]
fn a_clean_end_takes_back_what_was_set() {
    for way in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        let mut supervisor = Supervisor::start(&home, &[&tmux]);
        let agent = Agent::start(&tmux, "main", "one");
        supervisor.attached(&tmux);
        supervisor.watching(&tmux, 1);
        supervisor.process().signal(way);
        assert!(supervisor.stop().success(), "{way:?}");
        assert_eq!(tmux.ok(["list-sessions", "-F", "#{session_name}"]), "main");
        assert_eq!(tmux.ok(["list-clients"]), "");
        home.all_live(&[&agent]);
        assert!(agent.pane.process().alive(), "an agent outlives every supervisor");
        assert_eq!(home.ait(["status"]).status.code(), Some(11), "and status says that none runs");
    }
}

#[test]
fn a_second_one_says_so_and_ends_well() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let second = home.ait(["supervise"]).ok();
    let said = format!("{}{}", second.text(), second.errors());
    assert!(said.contains(&supervisor.process().pid.to_string()), "it names the first: {second}");
    assert!(supervisor.process().alive());
    // the lock goes with its holder, however it goes
    let mut supervisor = supervisor;
    supervisor.kill();
    let next = Supervisor::start(&home, &[&tmux]);
    assert!(next.process().alive());
}

#[test]
fn a_runtime_folder_that_vanished_is_made_again() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    std::fs::remove_dir_all(home.runtime().join("ait")).unwrap();
    wait_until("the socket to be there again", DEADLINE, || {
        (home.ait(["status", "--json"]).status.code() != Some(11)).then_some(())
    });
    assert!(supervisor.process().alive());
}

#[test]
fn a_server_on_another_socket_is_found_by_itself() {
    let home = Home::new();
    let supervisor = Supervisor::start(&home, &[]);
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "one");
    supervisor.watching(&tmux, 1);
    let start = crate::support::tmux::Start { socket: "work".to_owned(), ..Default::default() };
    let second = Tmux::start_with(&home, start);
    let other = Agent::start(&second, "main", "two");
    supervisor.watching(&second, 1);
    second.kill(Signal::KILL);
    home.until_lost(&other.id, "server_crashed");
    home.all_live(&[&agent]);
}

#[test]
fn a_paused_supervisor_catches_up() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let one = Agent::start(&tmux, "main", "one");
    let two = Agent::start(&tmux, "main", "two");
    let three = Agent::start(&tmux, "main", "three");
    supervisor.watching(&tmux, 3);
    supervisor.knows(&tmux, &[&one, &two, &three]);
    supervisor.process().signal(Signal::STOP);
    for turn in 0..200 {
        tmux.ok(["rename-window", "-t", &one.pane.window, &format!("name {turn}")]);
    }
    tmux.ok(["kill-window", "-t", &two.pane.window]);
    three.pane.process().signal(Signal::KILL);
    assert!(three.pane.process().dies(DEADLINE));
    supervisor.process().signal(Signal::CONT);
    home.until_window(&one.id, "name 199");
    home.until_ended(&two.id);
    home.until_lost(&three.id, "agent_crashed");
}
