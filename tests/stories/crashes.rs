//! The supervisor ended in every way: nothing leaks, nothing is lost, tmux never goes down with it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::run::Running;
use crate::support::supervisor::control_clients;
use crate::support::wait::{Dice, moment, stays, trials, within};
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
    // tmux may miss a child's end (R9), with nobody left to nudge it: the next end of a child makes it collect them all
    wait_until("no zombie of tmux", DEADLINE, || {
        tmux.collect();
        proc::zombies(server.pid).is_empty().then_some(())
    });
    // what a killed one asked last ends a moment after it
    let left = || -> Vec<String> {
        let all = home.processes().into_iter();
        all.filter(|process| *process != server && proc::parent(process.pid) != Some(server.pid))
            .map(|process| proc::command(process.pid))
            .collect()
    };
    let none = within(DEADLINE, || left().is_empty().then_some(()));
    assert!(none.is_some(), "processes left by killed supervisors: {:?}", left());
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
fn a_service_manager_is_told_when_it_is_ready() {
    let home = Home::new();
    let path = home.root().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let supervisor = Supervisor::launch(&home, &[], &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    let mut said = [0; 64];
    let length = manager.recv(&mut said).expect("it is told");
    assert_eq!(said[..length].trim_ascii_end(), b"READY=1");
    supervisor.ready();
}

#[test]
fn a_server_under_another_path_is_the_same_server() {
    let home = Home::new();
    let link = home.root().join("link");
    std::os::unix::fs::symlink(home.tmux_tmpdir(), &link).unwrap();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "one");
    let supervisor = Supervisor::launch(&home, &[], &[("TMUX_TMPDIR", link.to_str().unwrap())]);
    supervisor.ready();
    supervisor.watching(&tmux, 1);
    supervisor.knows(&tmux, &[&agent]);
    let servers = supervisor.status()["servers"].clone();
    assert_eq!(servers.as_array().map(Vec::len), Some(1), "{servers:#}");
    assert_eq!(control_clients(&tmux), ["_ait"]);
    let mut adopt = home.ait_command(["adopt", "--all", "--json"]);
    crate::support::Ran::run(adopt.env("TMUX_TMPDIR", &link)).ok();
    assert_eq!(home.records().len(), 1, "nor are its agents others");
}

#[test]
fn what_came_and_went_leaves_no_descriptor() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let stays = Agent::start(&tmux, "main", "stays");
    let open = || std::fs::read_dir(format!("/proc/{}/fd", supervisor.process().pid)).unwrap().count();
    let come_and_go = || {
        let agents: Vec<Agent> = (0..8).map(|at| Agent::start(&tmux, "main", &format!("w{at}"))).collect();
        supervisor.watching(&tmux, 9);
        supervisor.knows(&tmux, &agents.iter().collect::<Vec<_>>());
        for agent in &agents {
            tmux.ok(["rename-window", "-t", &agent.pane.window, "other"]);
            agent.told(&tmux, "exit 0");
        }
        for agent in &agents {
            home.until_ended(&agent.id);
        }
        supervisor.watching(&tmux, 1);
        wait_until("their panes to be closed", DEADLINE, || (tmux.panes().len() == 2).then_some(()));
        supervisor.settled(&tmux);
    };
    come_and_go();
    let before = open();
    for _ in 0..3 {
        come_and_go();
    }
    wait_until("no more descriptors than before", DEADLINE, || (open() <= before).then_some(()));
    proc::all_reaped(supervisor.process().pid);
    home.all_live(&[&stays]);
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

#[test]
fn a_paused_supervisor_holds_up_neither_a_pane_nor_the_end_of_its_server() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let one = Agent::start(&tmux, "main", "one");
    let two = one.beside(&tmux);
    supervisor.watching(&tmux, 2);
    supervisor.knows(&tmux, &[&one, &two]);
    let server = tmux.server();
    supervisor.process().signal(Signal::STOP);
    let mut turn = 0;
    stays("tmux serves", Duration::from_secs(5), || {
        turn += 1;
        tmux.ok(["rename-window", "-t", &one.pane.window, &format!("name {turn}")]);
        one.told(&tmux, &format!("print line {turn}"));
        wait_until("the pane to go on", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", &one.pane.id])
                .contains(&format!("line {turn}"))
                .then_some(true)
        })
    });
    tmux.ok(["kill-server"]);
    assert!(server.dies(DEADLINE), "the server ends although nobody reads its control client");
    assert_eq!(proc::state(supervisor.process().pid), Some('T'), "paused all the while");
    home.all_live(&[&one, &two]);
    supervisor.process().signal(Signal::CONT);
    home.until_lost(&one.id, "server_stopped");
    home.until_lost(&two.id, "server_stopped");
}

#[test]
fn a_flood_for_a_paused_supervisor_keeps_its_server_no_longer_than_the_pause() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "one");
    supervisor.watching(&tmux, 1);
    supervisor.knows(&tmux, &[&agent]);
    let server = tmux.server();
    supervisor.process().signal(Signal::STOP);
    // far more than a pipe holds
    let flood: String = (0..5_000)
        .map(|turn| {
            format!("rename-window -t {} \"{} {turn}\"\n", agent.pane.window, "long ".repeat(20).trim())
        })
        .collect();
    let file = home.root().join("flood");
    std::fs::write(&file, flood).unwrap();
    tmux.ok(["source-file", file.to_str().unwrap()]);
    let mut end = tmux.command(["kill-server"]);
    let mut end = Running::start(end.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    stays("nothing is made of it meanwhile", Duration::from_secs(1), || {
        home.record(&agent.id).is_some_and(|record| record["state"] == "live")
    });
    supervisor.process().signal(Signal::CONT);
    assert!(server.dies(DEADLINE), "the server ends once its client is read again");
    end.join(DEADLINE);
    // what tmux had no room to say it does not say: the cause may be told as a crash, never as an end of the agent
    home.store_until("the agent to be lost with its server", |home| {
        let record = home.record(&agent.id)?;
        record["ait"]["lost"]["cause"].as_str()?.starts_with("server_").then_some(())
    });
    assert!(home.archived().is_empty());
}
