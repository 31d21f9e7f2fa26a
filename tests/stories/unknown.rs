//! Unknown is not gone: a stopped, flooded, unreachable or foreign server changes nothing, and heals by itself.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::run::Running;
use crate::support::store::Generations;
use crate::support::supervisor::{control_client, server_of};
use crate::support::{Agent, Home, Supervisor, Tmux, proc, wait};

/// How long a thing that heals by itself may take to do so.
const HEALING: Duration = Duration::from_secs(60);

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
        let supervisor = Supervisor::start(&home, &[&tmux]);
        let one = Agent::start(&tmux, "main", "one");
        supervisor.attached(&tmux);
        let two = one.beside(&tmux);
        let agents = vec![one, two, Agent::start(&tmux, "main", "three")];
        supervisor.watching(&tmux, 3);
        supervisor.settled(&tmux);
        supervisor.knows(&tmux, &agents.iter().collect::<Vec<_>>());
        Fleet { home, tmux, supervisor, agents }
    }

    /// Nothing was retired, lost or started.
    fn nothing_happened(&self) -> bool {
        let live =
            |agent: &Agent| self.home.record(&agent.id).is_some_and(|record| record["state"] == "live");
        self.agents.iter().all(live)
            && self.home.records().len() == self.agents.len()
            && self.home.archived().is_empty()
            && self.tmux.server().alive()
    }

    /// Status says that the server is unknown, and why.
    fn unknown(&self) -> String {
        wait::wait_until("the server to be unknown", HEALING, || {
            let status = self.home.ait(["status", "--json"]);
            let report = status.json();
            let of = server_of(&report, &self.tmux)?;
            if of["state"]["is"] != "unknown" {
                return None;
            }
            assert_eq!(status.status.code(), Some(10), "an unknown server is not healthy: {status}");
            of["state"]["why"].as_str().map(str::to_owned)
        })
    }

    /// The server is watched again, and what happens on it is followed.
    fn heals(&self) {
        let mut last = String::new();
        let healed = wait::within(HEALING, || {
            let status = self.supervisor.status();
            let of = server_of(&status, &self.tmux)?;
            last = format!("{of:#}");
            (of["state"]["is"] == "watching" && of["live"] == 3).then_some(())
        });
        assert!(healed.is_some(), "not watched again after {HEALING:?}: {last}\n{}", self.supervisor.log());
        assert!(self.nothing_happened());
        self.home.all_live(&self.agents.iter().collect::<Vec<_>>());
        proc::all_reaped(self.supervisor.process().pid);
        self.tmux.ok(["rename-window", "-t", &self.agents[2].pane.window, "healed"]);
        self.home.until_window(&self.agents[2].id, "healed");
    }
}

#[test]
fn a_server_stopped_for_ten_seconds_changes_nothing() {
    let fleet = Fleet::new();
    let mut generations = Generations::of(&fleet.home);
    assert!(fleet.tmux.server().signal(Signal::STOP));
    wait::stays("nothing retired, lost or started", Duration::from_secs(10), || fleet.nothing_happened());
    assert!(!fleet.unknown().is_empty(), "status says unknown, and why");
    assert!(fleet.nothing_happened());
    assert_eq!(generations.count(), 0, "nothing written");
    fleet.tmux.server().signal(Signal::CONT);
    fleet.heals();
}

#[test]
fn a_death_on_a_stopped_server_waits_for_its_answer() {
    let fleet = Fleet::new();
    let mut generations = Generations::of(&fleet.home);
    assert!(fleet.tmux.server().signal(Signal::STOP));
    assert!(fleet.agents[0].pane.process().signal(Signal::KILL));
    fleet.unknown();
    assert!(fleet.nothing_happened(), "no answer, no verdict");
    assert_eq!(generations.count(), 0, "nothing written");
    fleet.tmux.server().signal(Signal::CONT);
    fleet.home.until_lost(&fleet.agents[0].id, "agent_crashed");
    fleet.home.all_live(&[&fleet.agents[1], &fleet.agents[2]]);
}

#[test]
fn a_server_that_is_stopped_and_then_killed_is_one_loss() {
    let fleet = Fleet::new();
    let mut generations = Generations::of(&fleet.home);
    assert!(fleet.tmux.server().signal(Signal::STOP));
    for agent in &fleet.agents {
        agent.pane.process().signal(Signal::KILL);
    }
    fleet.unknown();
    assert!(fleet.nothing_happened());
    fleet.tmux.kill(Signal::KILL);
    for agent in &fleet.agents {
        fleet.home.until_lost(&agent.id, "server_crashed");
    }
    assert_eq!(generations.count(), 1, "one write");
    assert!(fleet.home.archived().is_empty());
}

#[test]
fn a_supervisor_that_meets_a_stopped_server_says_unknown() {
    let mut fleet = Fleet::new();
    assert!(fleet.supervisor.stop().success());
    assert!(fleet.tmux.server().signal(Signal::STOP));
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    assert!(!fleet.unknown().is_empty(), "and why");
    wait::stays("nothing retired, lost or started", Duration::from_secs(3), || fleet.nothing_happened());
    fleet.tmux.server().signal(Signal::CONT);
    fleet.heals();
}

#[test]
fn five_hundred_clients_at_once_change_nothing() {
    let mut fleet = Fleet::new();
    assert!(fleet.tmux.server().signal(Signal::STOP));
    let mut clients: Vec<Running> = (0..500)
        .map(|_| {
            let mut client = fleet.tmux.command(["display-message", "-p", "x"]);
            client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            Running::start(&mut client)
        })
        .collect();
    // one that starts in the middle of it meets a full backlog
    fleet.supervisor.kill();
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    wait::stays("nothing retired, lost or started", Duration::from_secs(3), || fleet.nothing_happened());
    fleet.tmux.server().signal(Signal::CONT);
    for client in &mut clients {
        client.join(HEALING);
    }
    fleet.heals();
}

#[test]
fn a_tmux_that_fails_changes_nothing() {
    for (words, status) in [
        ("lost server", 1),
        ("protocol version mismatch (client 8, server 7)", 1),
        ("server exited unexpectedly", 1),
    ] {
        let mut fleet = Fleet::new();
        fleet.supervisor.kill();
        fleet.home.wrap_tmux(&format!("echo '{words}' >&2\nexit {status}"));
        fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
        let why = fleet.unknown();
        let first = words.split(" (").next().unwrap_or(words);
        assert!(why.contains(first), "status says why: {why:?}, tmux said {words:?}");
        let doctor = fleet.home.ait(["doctor"]).code(10);
        assert!(doctor.text().contains(first), "and doctor too: {doctor}");
        wait::stays("nothing retired, lost or started", Duration::from_secs(2), || fleet.nothing_happened());
        fleet.home.unwrap_tmux();
        fleet.heals();
    }
}

#[test]
fn a_tmux_that_hangs_changes_nothing() {
    let mut fleet = Fleet::new();
    fleet.supervisor.kill();
    fleet.home.wrap_tmux("exec sleep 1000000");
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    assert!(!fleet.unknown().is_empty());
    wait::stays("nothing retired, lost or started", Duration::from_secs(2), || fleet.nothing_happened());
    fleet.home.unwrap_tmux();
    fleet.heals();
}

#[test]
fn a_listing_that_fails_once_removes_nothing() {
    let mut fleet = Fleet::new();
    fleet.supervisor.kill();
    let flag = fleet.home.root().join("failed-once");
    fleet.home.wrap_tmux(&format!(
        "if [ -e '{flag}' ]; then exec \"$TMUX_REAL\" \"$@\"; fi\n: > '{flag}'\necho 'lost server' >&2\nexit 1",
        flag = flag.display()
    ));
    fleet.supervisor = Supervisor::start(&fleet.home, &[&fleet.tmux]);
    fleet.heals();
    assert!(flag.exists(), "the first one failed");
}

#[test]
fn a_client_that_is_killed_or_detached_is_made_again() {
    let fleet = Fleet::new();
    for way in ["kill", "detach", "session"] {
        let before = control_client(&fleet.tmux).expect("a control client");
        match way {
            "kill" => assert!(before.signal(Signal::KILL)),
            "detach" => drop(fleet.tmux.ok(["detach-client", "-s", "=_ait"])),
            _ => drop(fleet.tmux.ok(["kill-session", "-t", "=_ait"])),
        }
        wait::wait_until("another client", HEALING, || {
            control_client(&fleet.tmux).filter(|now| *now != before)
        });
        fleet.supervisor.watching(&fleet.tmux, 3);
        assert!(fleet.nothing_happened(), "{way}");
        let sessions = fleet.tmux.ok(["list-sessions", "-F", "#{session_name}"]);
        assert_eq!(sessions.lines().filter(|name| *name == "_ait").count(), 1, "{way}: {sessions}");
    }
    fleet.heals();
}

#[test]
fn every_command_ends_while_a_server_is_stopped() {
    let fleet = Fleet::new();
    assert!(fleet.tmux.server().signal(Signal::STOP));
    fleet.unknown();
    for (words, code) in [
        (&["status"][..], 10),
        (&["doctor"], 10),
        (&["doctor", "--touched"], 10),
        (&["adopt", "--all"], 69),
        (&["adopt", "--all", "--dry-run"], 69),
        (&["record", "reconcile"], 0),
        (&["record", "purge"], 0),
        (&["setup", "--dry-run"], 0),
        (&["setup", "--remove", "--yes"], 1),
    ] {
        // each within the suite's deadline for a command
        let ran = fleet.home.ait(words).code(code);
        assert!(code == 0 || !ran.text().is_empty() || !ran.errors().is_empty(), "it says why: {ran}");
        assert!(fleet.nothing_happened(), "{ran}");
    }
    fleet.tmux.server().signal(Signal::CONT);
    wait::wait_until("the server to serve again", HEALING, || {
        (fleet.tmux.run(["has-session", "-t", "=_ait"]).status.code() == Some(1)).then_some(())
    });
    fleet.home.all_live(&fleet.agents.iter().collect::<Vec<_>>());
}
