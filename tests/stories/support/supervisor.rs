//! A supervisor in the foreground as a child of the story: ready when its lock names it, ended by SIGTERM.

use std::fs;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::proc::Process;
use super::run::Running;
use super::wait::within;
use super::{Agent, DEADLINE, Home, Tmux, wait_until};

/// How long a supervisor that starts is waited for at the servers it goes to.
const ARRIVAL: Duration = Duration::from_secs(10);

/// A running `ait supervise`.
#[derive(Debug)]
pub(crate) struct Supervisor {
    // ended before the home looks for what is left
    running: Running,
    home: Home,
}

impl Supervisor {
    /// Starts one for `home`, with `--socket` for each server, and waits until its lock names it, and until it has come to the
    /// servers that it has agents on: what a story does next is not to meet it on its way there ([`Supervisor::attached`]). Where
    /// it cannot come, the story goes on all the same.
    #[track_caller]
    pub(crate) fn start(home: &Home, servers: &[&Tmux]) -> Supervisor {
        let supervisor = Supervisor::launch(home, servers, &[]);
        supervisor.ready();
        let records = home.records();
        let is_wanted = |server: &Tmux| {
            let socket = server.socket_text();
            server.answers()
                && records
                    .iter()
                    .any(|one| one["state"] == "live" && one["ait"]["server"]["socket"] == *socket)
        };
        for server in servers.iter().filter(|server| is_wanted(server)) {
            within(ARRIVAL, || control_clients(server).contains(&"_ait".to_owned()).then_some(()));
        }
        supervisor
    }

    /// Starts one with more environment and does not wait.
    #[track_caller]
    pub(crate) fn launch(home: &Home, servers: &[&Tmux], environment: &[(&str, &str)]) -> Supervisor {
        let mut command = home.ait_command(["supervise"]);
        for server in servers {
            command.arg("--socket").arg(server.socket());
        }
        command.envs(environment.iter().copied());
        let log =
            fs::OpenOptions::new().create(true).append(true).open(home.root().join("supervise.log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Supervisor { home: home.clone(), running: Running::start(&mut command) }
    }

    /// Waits until the lock file names this process.
    #[track_caller]
    pub(crate) fn ready(&self) {
        let pid = self.process().pid.to_string();
        wait_until("the supervisor to be ready", DEADLINE, || {
            assert!(self.process().alive(), "the supervisor ended:\n{}", self.log());
            let text = fs::read_to_string(self.home.supervisor_lock()).ok()?;
            let named = text.split(|c: char| !c.is_ascii_digit()).any(|word| word == pid);
            (named && self.home.ait(["status", "--json"]).status.code() != Some(11)).then_some(())
        });
    }

    /// Who it is.
    pub(crate) fn process(&self) -> Process {
        self.running.process()
    }

    /// What it wrote so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.root().join("supervise.log")).unwrap_or_default()
    }

    /// `ait status --json`, whatever its exit code.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.home.ait(["status", "--json"]).json()
    }

    /// Waits until `found` gives something from `ait status --json`.
    #[track_caller]
    pub(crate) fn status_until<T>(&self, what: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        wait_until(what, DEADLINE, || {
            let status = self.status();
            found(&status)
        })
    }

    /// Waits until a control client of ours sits in `_ait` on `server`: a window that changes while one is on its way there
    /// crashes tmux before 3.7 (fault R4), the likelier the busier the machine.
    #[track_caller]
    pub(crate) fn attached(&self, server: &Tmux) {
        wait_until("the supervisor's control client", DEADLINE, || {
            assert!(self.process().alive(), "the supervisor ended:\n{}", self.log());
            control_clients(server).contains(&"_ait".to_owned()).then_some(())
        });
    }

    /// Waits until the supervisor watches `server` whole, with `live` live records on it.
    #[track_caller]
    pub(crate) fn watching(&self, server: &Tmux, live: u64) {
        self.status_until("the server to be watched", |status| {
            let of = server_of(status, server)?;
            (of["state"]["is"] == "watching" && of["live"] == live).then_some(())
        });
    }

    /// Waits until the supervisor knows all there is to know of `agents`: what it found is written, their panes are
    /// stamped, and the end of every pane that is the agent itself will be readable.
    #[track_caller]
    pub(crate) fn knows(&self, server: &Tmux, agents: &[&Agent]) {
        for agent in agents {
            wait_until("an agent to be known", DEADLINE, || {
                let record = self.home.record(&agent.id)?;
                let host = &record["ait"]["host"];
                let options = server.ok(["show-options", "-p", "-t", &agent.pane.id]);
                let stamped = options.lines().any(|line| line == format!("@aitask_record {}", agent.id));
                let kept = options.lines().any(|line| line == "remain-on-exit on");
                let kept_by_user = server.format(&agent.pane.id, "#{remain-on-exit}") != "off";
                let readable = kept || kept_by_user || host["kind"] == "shell";
                // layouts are written half a second late: nothing of what was done before is to be written after
                let layout =
                    record["ait"]["window_layout"] == server.format(&agent.pane.id, "#{window_layout}");
                (!host.is_null() && layout && stamped && readable).then_some(())
            });
        }
    }

    /// Waits until everything tmux told before this call has been taken in: a rename of a window of ours, made after all
    /// of it, has been followed. Needs no record and leaves none.
    #[track_caller]
    pub(crate) fn settled(&self, server: &Tmux) {
        let windows = |status: &Value| server_of(status, server).and_then(|of| of["windows"].as_u64());
        let before =
            server.panes().iter().map(|pane| pane.window.clone()).collect::<std::collections::BTreeSet<_>>();
        let probe = server.window_anywhere(&["sleep", "1000000"]);
        self.status_until("the probe window to be counted", |status| {
            (windows(status)? == before.len() as u64 + 1).then_some(())
        });
        server.ok(["kill-window", "-t", &probe.window]);
        self.status_until("the probe window to be gone", |status| {
            (windows(status)? == before.len() as u64).then_some(())
        });
    }

    /// SIGTERM, and the status it ends with.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.running.process().signal(Signal::TERM);
        self.running.join(DEADLINE)
    }

    /// SIGKILL, and reaped.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.running.process().signal(Signal::KILL);
        self.running.join(Duration::from_secs(10));
    }
}

/// The session of every control client on `server`.
#[track_caller]
pub(crate) fn control_clients(server: &Tmux) -> Vec<String> {
    let answer = server.run(["list-clients", "-F", "#{client_control_mode} #{session_name}"]);
    answer.text().lines().filter_map(|line| line.strip_prefix("1 ")).map(str::to_owned).collect()
}

/// The process of the supervisor's control client on `server`, if one sits in `_ait`.
#[track_caller]
pub(crate) fn control_client(server: &Tmux) -> Option<Process> {
    let answer = server.ok(["list-clients", "-F", "#{client_control_mode} #{session_name} #{client_pid}"]);
    let pid = answer.lines().find_map(|line| line.strip_prefix("1 _ait "))?.to_owned();
    Process::of(pid.parse().ok()?)
}

/// What a report says of `server`.
pub(crate) fn server_of<'a>(status: &'a Value, server: &Tmux) -> Option<&'a Value> {
    let servers = status["servers"].as_array()?;
    servers.iter().find(|of| of["socket"] == server.socket_text().as_str())
}
