//! Servers that end: every way has its cause, all live records are lost in one write, none is archived; and they come back.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::store::Generations;
use crate::support::supervisor::{control_client, server_of};
use crate::support::wait::stays;
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, agents, proc, wait_until};

/// How long a busy machine may leave a process waiting; longer than the second between two heartbeats.
const WAITS: Duration = Duration::from_secs(2);

/// Agents in two sessions, some of them sharing a window, and an unrelated pane.
struct Fleet {
    home: Home,
    tmux: Tmux,
    supervisor: Supervisor,
    agents: Vec<Agent>,
}

impl Fleet {
    fn new() -> Fleet {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        tmux.session("other", &home.home(), &["sleep", "1000000"]);
        let supervisor = Supervisor::start(&home, &[&tmux]);
        let mut agents = Vec::new();
        for (session, window) in [("main", "one"), ("main", "two"), ("other", "three")] {
            let agent = Agent::start(&tmux, session, window);
            supervisor.attached(&tmux);
            agents.push(agent.beside(&tmux));
            agents.push(agent);
        }
        supervisor.watching(&tmux, agents.len() as u64);
        supervisor.settled(&tmux);
        supervisor.knows(&tmux, &agents.iter().collect::<Vec<_>>());
        Fleet { home, tmux, supervisor, agents }
    }

    /// All are lost for `cause`, in one write, and nothing is archived.
    fn all_lost(&self, cause: &str, mut generations: Generations) {
        self.home.store_until(&format!("all to be lost: {cause}"), |home| {
            let lost = |agent: &Agent| home.record(&agent.id).is_some_and(|r| agents::is_lost(&r, cause));
            self.agents.iter().all(lost).then_some(())
        });
        self.supervisor.status_until("the server to be known as gone", |status| {
            let of = server_of(status, &self.tmux)?;
            (of["state"]["is"] == "gone" && of["state"]["cause"] == cause).then_some(())
        });
        assert_eq!(generations.count(), 1, "one write for the whole server");
        assert_eq!(self.home.archived(), Vec::<serde_json::Value>::new(), "a loss archives nothing");
        assert_eq!(self.home.records().len(), self.agents.len());
        for agent in &self.agents {
            let record = self.home.record(&agent.id).unwrap();
            assert!(!record["ait"]["lost"]["at"].is_null(), "{record:#}");
            assert!(!record["ait"]["lost"]["evidence"].is_null(), "{record:#}");
        }
    }

    /// A new server on the socket; every agent starts again, last one first, and each finds its own record.
    fn rejoin(&self) {
        self.tmux.boot();
        self.supervisor.attached(&self.tmux);
        self.tmux.session("other", &self.home.home(), &["sleep", "1000000"]);
        let mut back = Vec::new();
        for agent in self.agents.iter().rev() {
            let (again, how) = agent.again(&self.tmux, "other");
            assert_eq!(again.id, agent.id, "the record finds its agent by session id ({how})");
            assert_eq!(how, "rejoined");
            back.push(again);
        }
        self.home.all_live(&back.iter().collect::<Vec<_>>());
        assert_eq!(self.home.records().len(), self.agents.len(), "none doubled");
        self.supervisor.watching(&self.tmux, back.len() as u64);
    }
}

#[test]
fn a_stopped_server_loses_its_agents_as_stopped() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    fleet.tmux.ok(["kill-server"]);
    fleet.all_lost("server_stopped", generations);
    fleet.rejoin();
}

#[test]
fn a_server_told_to_end_loses_its_agents_as_stopped() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    fleet.tmux.kill(Signal::TERM);
    fleet.all_lost("server_stopped", generations);
    fleet.rejoin();
}

#[test]
fn a_server_told_to_end_is_a_stopped_one_however_long_its_client_takes_to_leave() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    let client = control_client(&fleet.tmux).expect("a control client");
    let (server, agents) =
        (fleet.tmux.server(), fleet.agents.iter().map(|agent| agent.pane.process()).collect::<Vec<_>>());
    client.signal(Signal::STOP);
    server.signal(Signal::TERM);
    // it has closed all panes, answers questions, and has its heartbeat
    assert!(agents.iter().all(|agent| agent.dies(DEADLINE)));
    stays("the server waits for its client, and its agents are not said to have ended", WAITS, || {
        assert!(server.alive(), "it crashed");
        fleet.home.archived().is_empty()
    });
    client.signal(Signal::CONT);
    assert!(server.dies(DEADLINE));
    fleet.all_lost("server_stopped", generations);
    fleet.rejoin();
}

#[test]
fn a_killed_server_loses_its_agents_as_crashed() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    fleet.tmux.kill(Signal::KILL);
    fleet.all_lost("server_crashed", generations);
    fleet.rejoin();
}

#[test]
fn a_crashed_server_loses_its_agents_as_crashed() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    fleet.tmux.kill(Signal::SEGV);
    fleet.all_lost("server_crashed", generations);
    fleet.rejoin();
}

#[test]
fn a_killed_server_whose_client_has_no_time_to_say_so_is_a_crash_all_the_same() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    let client = control_client(&fleet.tmux).expect("a control client");
    client.signal(Signal::STOP);
    fleet.tmux.kill(Signal::KILL);
    stays("nobody is lost before it is known how", WAITS, || {
        fleet.agents.iter().all(|agent| fleet.home.record(&agent.id).unwrap()["state"] == "live")
    });
    client.signal(Signal::CONT);
    fleet.all_lost("server_crashed", generations);
}

#[test]
fn a_server_that_ended_while_nobody_watched_is_gone() {
    let mut fleet = Fleet::new();
    fleet.supervisor.kill();
    fleet.tmux.kill(Signal::KILL);
    assert!(fleet.agents.iter().all(|agent| fleet.home.record(&agent.id).unwrap()["state"] == "live"));
    let generations = Generations::of(&fleet.home);
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    // no end of a stream was seen: store.md, causes of a server's loss
    fleet.all_lost("server_gone", generations);
    fleet.rejoin();
}

#[test]
fn a_loss_is_not_told_twice_when_the_same_socket_serves_again() {
    let fleet = Fleet::new();
    let generations = Generations::of(&fleet.home);
    fleet.tmux.kill(Signal::KILL);
    // at once: the new server is there before the loss need be known
    fleet.tmux.boot();
    fleet.home.store_until("all to be lost", |home| {
        let lost =
            |agent: &Agent| home.record(&agent.id).is_some_and(|r| agents::is_lost(&r, "server_crashed"));
        fleet.agents.iter().all(lost).then_some(())
    });
    let mut generations = generations;
    assert_eq!(generations.count(), 1, "one write for the whole server");
    assert!(fleet.home.archived().is_empty());
    let unrelated = Agent::start(&fleet.tmux, "main", "one");
    assert!(fleet.agents.iter().all(|agent| agent.id != unrelated.id), "a lost record is nobody else's");
    fleet.home.all_live(&[&unrelated]);
    assert_eq!(fleet.home.records().len(), fleet.agents.len() + 1);
}

#[test]
fn two_agents_of_one_window_find_their_own_records() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let one = Agent::start(&tmux, "main", "pair");
    let two = one.beside(&tmux);
    assert_ne!(one.id, two.id);
    supervisor.watching(&tmux, 2);
    tmux.kill(Signal::KILL);
    home.until_lost(&one.id, "server_crashed");
    home.until_lost(&two.id, "server_crashed");
    tmux.boot();
    // the second one comes back first, into a pane that has the first one's old number
    let pane = tmux.window("main", "pair", &two.root, &home.stand_in(&[]));
    let (back, how) = Agent::sign_as(&tmux, pane, &two.root, "pair", &two.conversation);
    assert_eq!((back.id.as_str(), how.as_str()), (two.id.as_str(), "rejoined"));
    let pane = tmux.split(&back.pane, &one.root, &home.stand_in(&[]));
    let (first, how) = Agent::sign_as(&tmux, pane, &one.root, "pair", &one.conversation);
    assert_eq!((first.id.as_str(), how.as_str()), (one.id.as_str(), "rejoined"));
    assert_eq!(home.records().len(), 2, "no third record");
    home.all_live(&[&back, &first]);
    supervisor.watching(&tmux, 2);
}

#[test]
fn agents_that_outlive_their_server_are_lost_with_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let pane = tmux.window("main", "deaf", &root, &home.stand_in(&["--deaf"]));
    let agent = Agent::sign(&tmux, pane.clone(), &root, "deaf");
    supervisor.watching(&tmux, 1);
    let process = pane.process();
    tmux.kill(Signal::KILL);
    home.until_lost(&agent.id, "server_crashed");
    assert!(process.alive(), "it ignores HUP, and nobody of ours ended it");
    process.signal(Signal::KILL);
    assert!(process.dies(DEADLINE));
}

#[test]
fn a_deleted_socket_is_no_end() {
    let fleet = Fleet::new();
    let server = fleet.tmux.server();
    std::fs::remove_file(fleet.tmux.socket()).unwrap();
    // the connection goes on: an exit is still told of
    fleet.agents[0].pane.process().signal(Signal::KILL);
    fleet.home.until_lost(&fleet.agents[0].id, "agent_crashed");
    fleet.home.all_live(&fleet.agents[1..].iter().collect::<Vec<_>>());
    assert!(server.alive());
    server.signal(Signal::USR1);
    wait_until("the socket to be there again", DEADLINE, || fleet.tmux.socket().exists().then_some(()));
    let answer = wait_until("the server to answer", DEADLINE, || {
        let answer = fleet.tmux.run(["display-message", "-p", "#{pid}"]);
        answer.status.success().then(|| answer.text())
    });
    assert_eq!(answer, server.pid.to_string(), "the same server");
    fleet.tmux.ok(["rename-window", "-t", &fleet.agents[1].pane.window, "after"]);
    fleet.home.until_window(&fleet.agents[1].id, "after");
    proc::all_reaped(fleet.supervisor.process().pid);
}

#[test]
fn a_deleted_socket_is_unknown_to_a_supervisor_that_starts() {
    let mut fleet = Fleet::new();
    fleet.supervisor.kill();
    std::fs::remove_file(fleet.tmux.socket()).unwrap();
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    // a living server whose socket is gone: nothing is lost, started or retired
    fleet.supervisor.status_until("the server to be seen again, or to be unknown", |status| {
        let of = server_of(status, &fleet.tmux)?;
        matches!(of["state"]["is"].as_str(), Some("unknown" | "watching")).then_some(())
    });
    stays("all records are live", Duration::from_secs(2), || {
        fleet.agents.iter().all(|agent| fleet.home.record(&agent.id).is_some_and(|r| r["state"] == "live"))
    });
    assert!(fleet.tmux.server().alive());
    fleet.tmux.server().signal(Signal::USR1);
    fleet.supervisor.watching(&fleet.tmux, fleet.agents.len() as u64);
    fleet.home.all_live(&fleet.agents.iter().collect::<Vec<_>>());
}
