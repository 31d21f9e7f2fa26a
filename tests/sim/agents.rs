//! Agents, the users who start, move and end them, and the scripts that report them to the store.

use std::path::PathBuf;
use std::sync::Arc;

use ait::record::{
    Host as Sits, Location, Ours, Outcome, PaneId, Policy, ProcessId, Record, Records, ServerEpoch, State,
    StateName, Step, Upsert, Verb,
};

use crate::kernel::{How, What};
use crate::launches::Manner;
use crate::mutants::Mutant;
use crate::tmux::{Fall, Tmux};
use crate::world::{Event, MS, SECOND, Sim};

/// An agent's process, alive or not.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) id: ProcessId,
    pub(crate) boot: u32,
    pub(crate) conversation: String,
    pub(crate) below_shell: bool,
    pub(crate) server: usize,
    pub(crate) pane: u32,
    pub(crate) root: String,
    /// How it ended, and when by the wall clock.
    pub(crate) fate: Option<(How, i64)>,
    /// When it was started.
    pub(crate) born: u64,
    /// By hand, and not by a coordinator.
    pub(crate) by_hand: bool,
    /// How it behaves when it is brought back.
    pub(crate) manner: Option<Manner>,
}

const SOCKETS: [&str; 2] = ["/tmp/tmux-1/default", "/tmp/tmux-1/work"];
const NAMES: [&str; 5] = ["agent", "agent", "fix | it", "#{pid}", ""];

impl Sim {
    /// How a run begins: one or two servers, perhaps with agents, and the supervisor.
    pub(crate) fn set_up(&mut self) {
        self.start_server(0);
        if self.dice.percent(40) {
            self.start_server(1);
        }
        let most = if self.no_program { 9 } else { 4 };
        for _ in 0..self.dice.between(1, most) {
            self.start_agent(None);
        }
        self.after(0, SECOND, Event::Start);
        let acts = self.dice.between(4, 22);
        let mut at = self.now + 50 * MS;
        for _ in 0..acts {
            at += match self.dice.below(4) {
                0 => self.dice.between(0, 4 * MS),
                1 => self.dice.between(0, 200 * MS),
                2 => self.dice.between(0, 3 * SECOND),
                _ => self.dice.between(0, 30 * SECOND),
            };
            self.at(at, Event::Act);
        }
        self.at(at + SECOND, Event::Calm);
    }

    pub(crate) fn start_server(&mut self, which: usize) {
        let socket = PathBuf::from(SOCKETS[which]);
        let taken = self.listening.get(&socket).is_some_and(|at| self.servers[*at].alive);
        if taken && self.files.contains(&socket) {
            return;
        }
        let number = self.servers.len();
        let id = self.kernel.spawn(What::Tmux(number), None);
        let mut tmux = Tmux::new(socket.clone(), id, self.kernel.boot, self.utc());
        tmux.keeps = self.dice.percent(8);
        tmux.hooks = self.dice.percent(8);
        tmux.exit_empty = !self.dice.percent(4);
        tmux.utempter = self.dice.percent(40);
        self.servers.push(tmux);
        self.note(|| format!("server {number} starts on {}", socket.display()));
        for _ in 0..self.dice.between(1, 2) {
            self.new_session(number);
        }
        self.listening.insert(socket.clone(), number);
        self.files.insert(socket.clone());
        self.socket_changed(&socket);
    }

    pub(crate) fn new_session(&mut self, server: usize) {
        let name = format!("s{}", self.dice.below(1_000_000));
        let session = self.servers[server].add_session(&name);
        let pane = self.servers[server].next_pane();
        let shell = self.kernel.spawn(What::Shell, Some((server, pane)));
        self.servers[server].add_window(session, "sh", shell);
    }

    pub(crate) fn some_server(&mut self) -> Option<usize> {
        let up: Vec<usize> = (0..self.servers.len())
            .filter(|at| {
                let tmux = &self.servers[*at];
                tmux.alive && !tmux.exiting && !tmux.paused && !tmux.users_sessions().is_empty()
            })
            .collect();
        self.dice.pick(&up)
    }

    /// Starts an agent, in a window of its own, split into another, or typed into a shell; perhaps an old conversation.
    pub(crate) fn start_agent(&mut self, conversation: Option<(String, String)>) {
        let Some(server) = self.some_server() else { return };
        let number = self.agents.len();
        let (conversation, root) =
            conversation.unwrap_or_else(|| (format!("talk-{number}"), format!("/p{}", self.dice.below(2))));
        let below_shell = self.dice.percent(25);
        let what = if below_shell { What::Shell } else { What::Agent(number) };
        let pane = self.servers[server].next_pane();
        let first = self.kernel.spawn(what, Some((server, pane)));
        let windows: Vec<u32> = self.users_windows(server);
        let split = self.dice.percent(30);
        match self.dice.pick(&windows).filter(|_| split) {
            Some(window) => {
                self.servers[server].split(window, first.clone());
            }
            None => {
                let sessions = self.servers[server].users_sessions();
                let Some(session) = self.dice.pick(&sessions) else { return };
                let name = self.dice.pick(&NAMES).unwrap_or_default();
                self.servers[server].add_window(session, name, first.clone());
            }
        }
        let id =
            if below_shell { self.kernel.spawn(What::Agent(number), Some((server, pane))) } else { first };
        let deaf = self.dice.percent(10);
        if let Some(process) = self.kernel.living.get_mut(&id.pid) {
            process.deaf = deaf;
        }
        if let Some(pane) = self.servers[server].panes.get_mut(&pane) {
            pane.held = !below_shell && self.dice.percent(3);
            if self.dice.percent(4) {
                (pane.own, pane.own_is_theirs) = (Some(self.dice.percent(50)), true);
            }
        }
        let boot = self.kernel.boot;
        self.note(|| format!("agent {number} starts as {id:?} in %{pane} of server {server}"));
        self.agents.push(Agent {
            id,
            boot,
            conversation,
            below_shell,
            server,
            pane,
            root,
            fate: None,
            born: self.now,
            by_hand: true,
            manner: None,
        });
        if self.crewed {
            self.settle_in(number);
        }
        if self.dice.percent(85) {
            let full = self.dice.percent(60) || self.crewed;
            self.after(MS, 400 * MS, Event::Report { agent: number, full });
        }
    }

    pub(crate) fn users_windows(&self, server: usize) -> Vec<u32> {
        let tmux = &self.servers[server];
        tmux.windows.keys().copied().filter(|id| tmux.ours.is_none_or(|ours| ours.1 != *id)).collect()
    }

    pub(crate) fn living_agents(&self) -> Vec<usize> {
        (0..self.agents.len()).filter(|at| self.is_living(*at)).collect()
    }

    pub(crate) fn is_living(&self, agent: usize) -> bool {
        let agent = &self.agents[agent];
        agent.boot == self.kernel.boot && agent.fate.is_none() && self.kernel.lives(&agent.id)
    }

    /// A hook or a script writes what it sees of an agent into the store, then stamps the pane.
    pub(crate) fn report(&mut self, agent: usize, full: bool) {
        if !self.is_living(agent) {
            return;
        }
        let known = self.agents[agent].clone();
        // one that comes from a restore is told of by its hook, until that is over
        let restored = known.manner.as_ref().and_then(|manner| self.disk.records.get(manner.record));
        if restored.is_some_and(|record| record.state.name() != StateName::Live) {
            return;
        }
        let tmux = &self.servers[known.server];
        let Some(pane) = tmux.panes.get(&known.pane).filter(|_| tmux.alive && !tmux.exiting) else { return };
        let shell = self.kernel.process(&pane.process).is_some_and(|process| process.what == What::Shell);
        if if known.below_shell { !shell } else { pane.process != known.id } {
            return;
        }
        let Some(window) = tmux.window_of(known.pane) else { return };
        let Some((session, index)) = tmux.places(window).first().copied() else { return };
        let mut process = pane.process.clone();
        if !full {
            process.started.clear();
        }
        let name = &tmux.windows[&window].name;
        let mut upsert = Upsert::new(&known.root, name, Location::pane(PaneId(known.pane), process));
        upsert.session = tmux.sessions[&session].name.clone();
        upsert.session_id = known.conversation.clone();
        upsert.agent_string = "claudecode/opus".into();
        upsert.id = pane.stamp.parse().ok().filter(|id| self.disk.records.get(*id).is_some());
        if full {
            let epoch = ServerEpoch {
                socket: tmux.socket.to_string_lossy().into_owned(),
                pid: tmux.id.pid,
                started: tmux.id.started.clone(),
                started_at: self.dice.percent(50).then_some(tmux.started_at),
                boot_id: self.kernel.boot_id(),
                unknown: Default::default(),
            };
            let shell = Sits::Shell { argv: vec!["sh".into()], cwd: String::new() };
            upsert.ours = Ours {
                agent: Some(known.id.clone()),
                host: Some(if known.below_shell { shell } else { Sits::Pane }),
                server: Some(epoch),
                window_index: Some(index),
                ..Ours::default()
            };
            if self.policies.is_some() && self.dice.percent(10) {
                upsert.ours.recover = self.dice.pick(&[Policy::Auto, Policy::Offer, Policy::Off]);
            }
        }
        self.note(|| format!("agent {agent} is reported, full: {full}"));
        let step: Step = (None, Verb::Upsert(Box::new(upsert)));
        self.check_upsert(&known, &step);
        for result in self.write_steps_of_others(&[step]) {
            let Ok((id, outcome)) = result else { continue };
            self.note(|| format!("  {}", outcome.line(id)));
            let made = matches!(
                outcome,
                Outcome::Created { .. } | Outcome::Updated | Outcome::Rejoined | Outcome::Restored
            );
            if made && self.dice.percent(70) {
                let tmux = &mut self.servers[known.server];
                if let Some(pane) = tmux.panes.get_mut(&known.pane) {
                    pane.stamp = id.to_string();
                }
            }
        }
        self.store_changed();
    }

    /// One act of somebody.
    pub(crate) fn act(&mut self) {
        if self.policies.is_some() {
            match self.dice.below(100) {
                0..20 => return self.crash_some_server(),
                20..27 => return self.start_agent(None),
                27..30 => return self.recover_by_hand(),
                _ => {}
            }
        }
        if self.crewed && self.dice.percent(60) {
            return self.operate();
        }
        let act = self.dice.below(100);
        match act {
            0..12 => self.start_agent(None),
            12..22 => self.end_some_agent(),
            22..30 => self.rename_something(),
            30..36 => self.move_something(),
            36..44 => self.close_something(),
            44..47 => self.respawn_something(),
            47..53 => self.end_some_server(),
            53..57 => {
                let which = usize::try_from(self.dice.below(2)).unwrap_or_default();
                self.start_server(which);
            }
            57..61 => self.resume_by_hand(),
            61..65 => self.pause_some_server(),
            65..68 => self.delete_socket(),
            68..71 => self.visit_ours(),
            71..74 => self.disturb_client(),
            74..78 => self.drop_ours(),
            78..82 => {
                self.crash();
                self.after(MS, 5 * SECOND, Event::Start);
            }
            82..84 => {
                self.at(self.now, Event::Stop);
                self.after(3 * SECOND, 8 * SECOND, Event::Start);
            }
            84..86 => self.at(self.now, Event::Start),
            86..88 => self.disk.full = !self.disk.full,
            88..90 => {
                let step = i64::try_from(self.dice.below(40)).unwrap_or_default() - 20;
                self.note(|| format!("the wall clock steps by {step} s"));
                self.epoch += step;
            }
            90..92 => self.now += self.dice.between(SECOND, 600 * SECOND),
            92..95 => self.report_again(),
            _ => self.shut_down(),
        }
    }

    fn end_some_agent(&mut self) {
        let living = self.living_agents();
        let Some(agent) = self.dice.pick(&living) else { return };
        let process = self.agents[agent].id.clone();
        let event = if self.dice.percent(50) {
            let status = self.dice.pick(&[0, 0, 1, 2, 130, 143]).unwrap_or_default();
            Event::Exit { process, status }
        } else {
            let signal = self.dice.pick(&[1, 2, 9, 9, 11, 15]).unwrap_or(9);
            Event::Signal { process, signal }
        };
        self.at(self.now, event);
    }

    fn rename_something(&mut self) {
        let Some(server) = self.some_server() else { return };
        let windows = self.users_windows(server);
        let sessions = self.servers[server].users_sessions();
        if self.dice.percent(70) {
            let name = self.dice.pick(&NAMES).unwrap_or_default();
            if let Some(window) = self.dice.pick(&windows) {
                self.note(|| format!("window @{window} of server {server} is now {name:?}"));
                self.servers[server].rename_window(window, name);
            }
        } else if let Some(session) = self.dice.pick(&sessions) {
            let name = format!("t{}", self.dice.below(1_000_000));
            self.servers[server].rename_session(session, &name);
        }
    }

    fn move_something(&mut self) {
        let Some(server) = self.some_server() else { return };
        if self.dice.percent(30) {
            self.new_session(server);
        }
        let windows = self.users_windows(server);
        let sessions = self.servers[server].users_sessions();
        let (Some(window), Some(to)) = (self.dice.pick(&windows), self.dice.pick(&sessions)) else { return };
        if self.servers[server].places(window).iter().any(|(session, _)| *session == to) {
            return;
        }
        if self.dice.percent(50) {
            self.servers[server].link(window, to);
        } else {
            self.servers[server].move_window(window, to);
        }
    }

    fn close_something(&mut self) {
        let Some(server) = self.some_server() else { return };
        let panes = self.servers[server].users_panes();
        let sessions = self.servers[server].users_sessions();
        match self.dice.below(4) {
            0 | 1 => {
                if let Some(pane) = self.dice.pick(&panes) {
                    self.note(|| format!("%{pane} of server {server} is closed"));
                    self.remove_pane(server, pane);
                }
            }
            2 => {
                let windows = self.users_windows(server);
                let Some(window) = self.dice.pick(&windows) else { return };
                self.note(|| format!("window @{window} of server {server} is closed"));
                for pane in self.servers[server].windows[&window].panes.clone() {
                    self.remove_pane(server, pane);
                }
            }
            _ => {
                let Some(session) = self.dice.pick(&sessions) else { return };
                self.note(|| format!("session ${session} of server {server} is closed"));
                self.remove_session(server, session);
            }
        }
    }

    /// `respawn-pane -k`: the pane stays, its process goes, a stranger comes.
    fn respawn_something(&mut self) {
        let Some(server) = self.some_server() else { return };
        let panes = self.servers[server].users_panes();
        let Some(pane) = self.dice.pick(&panes) else { return };
        let before = self.kernel.on_terminal(server, pane);
        let stranger = self.kernel.spawn(What::Stranger, Some((server, pane)));
        self.note(|| format!("%{pane} of server {server} is respawned as {stranger:?}"));
        if let Some(pane) = self.servers[server].panes.get_mut(&pane) {
            (pane.process, pane.dead, pane.how, pane.unreaped) = (stranger, false, None, None);
            pane.held = false;
        }
        for process in before {
            self.after(100, 2 * MS, Event::Signal { process, signal: 1 });
        }
    }

    fn end_some_server(&mut self) {
        let up: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].alive).collect();
        let Some(server) = self.dice.pick(&up) else { return };
        if self.dice.percent(50) {
            self.stop_server(server);
        } else {
            self.fall(server, Fall::Crashed);
        }
    }

    fn crash_some_server(&mut self) {
        if let Some(server) = self.some_server() {
            self.fall(server, Fall::Crashed);
        }
    }

    /// An agent that was lost or had ended is started again by hand, with its old conversation.
    fn resume_by_hand(&mut self) {
        let lost = |record: &&Record| matches!(record.state, State::Frozen { lost: Some(_) });
        let talks: Vec<(String, String)> = self
            .disk
            .records
            .iter()
            .filter(lost)
            .map(|record| (record.codeagent_session_id.clone(), record.root.clone()))
            .filter(|(talk, _)| {
                !(0..self.agents.len()).any(|at| self.is_living(at) && self.agents[at].conversation == *talk)
            })
            .collect();
        if let Some(talk) = self.dice.pick(&talks) {
            self.start_agent(Some(talk));
        }
    }

    fn pause_some_server(&mut self) {
        let Some(server) = self.some_server() else { return };
        self.note(|| format!("server {server} is stopped by SIGSTOP"));
        self.servers[server].paused = true;
        self.after(10 * MS, 15 * SECOND, Event::Resume { server });
        if self.is(Mutant::UnknownIsGone) {
            let process = self.servers[server].id.clone();
            self.tell_death(&process);
        }
    }

    fn delete_socket(&mut self) {
        let Some(socket) = self.files.iter().next().cloned() else { return };
        self.note(|| format!("{} is deleted", socket.display()));
        self.files.remove(&socket);
        self.socket_changed(&socket);
    }

    /// A command without a target ends up in `_ait`.
    fn visit_ours(&mut self) {
        let Some(server) = self.some_server() else { return };
        let Some((session, window, _)) = self.servers[server].ours else { return };
        match self.dice.below(3) {
            0 => {
                let client = format!("/dev/pts/{}", self.dice.below(1_000));
                self.servers[server].guests.push(client.clone());
                let session = tmux_control::SessionId(session);
                let mark = ait::world::mark::Mark::Client { client: client.into(), session };
                self.servers[server].marks.push(mark);
            }
            1 => {
                let pane = self.servers[server].next_pane();
                let shell = self.kernel.spawn(What::Shell, Some((server, pane)));
                self.servers[server].add_window(session, "lost", shell);
            }
            _ => {
                let pane = self.servers[server].next_pane();
                let shell = self.kernel.spawn(What::Shell, Some((server, pane)));
                self.servers[server].split(window, shell);
            }
        }
    }

    /// Our client is detached, or our session is closed, by somebody.
    fn disturb_client(&mut self) {
        let Some(server) = self.some_server() else { return };
        if self.servers[server].ours.is_some() {
            self.note(|| format!("our client on server {server} is detached"));
            self.drop_clients(server, Some("".into()));
            self.end_if_empty(server);
        }
    }

    /// An earlier script rewrites the file and drops what it does not know.
    fn drop_ours(&mut self) {
        let list = self.disk.records.iter().map(|record| {
            let mut record = record.clone();
            record.ait = Ours::default();
            if let State::Frozen { lost } = &mut record.state {
                *lost = None;
            }
            if let Location::Pane { process, .. } = &mut record.location {
                process.started.clear();
            }
            Arc::new(record)
        });
        let list = list.collect();
        self.note(|| "an earlier script drops what is ours".to_owned());
        self.disk.records = Arc::new(Records::from_list(list, Default::default()));
        self.disk.version += 1;
        self.oracle.stripped = true;
        self.store_changed();
    }

    /// The same agent is reported once more, perhaps by a full report where there was a bare one.
    fn report_again(&mut self) {
        let living = self.living_agents();
        if let Some(agent) = self.dice.pick(&living) {
            let full = self.dice.percent(60);
            self.at(self.now, Event::Report { agent, full });
        }
    }

    /// The machine goes down: everybody is told to end within two seconds, in any order; or the power fails.
    pub(crate) fn shut_down(&mut self) {
        self.begin_shutdown();
        let gap = self.dice.between(3, 40);
        self.forget_acts();
        let mut down = self.now;
        if self.dice.percent(70) {
            for agent in self.living_agents() {
                let process = self.agents[agent].id.clone();
                self.after(0, 2 * SECOND, Event::Signal { process, signal: 15 });
            }
            for server in 0..self.servers.len() {
                if self.servers[server].alive {
                    let process = self.servers[server].id.clone();
                    self.after(0, 2 * SECOND, Event::Signal { process, signal: 15 });
                }
            }
            self.after(0, 2 * SECOND, Event::Stop);
            down += 4 * SECOND;
        }
        self.at(down, Event::Boot { gap });
        self.at(down + 5 * SECOND + gap * SECOND, Event::Calm);
    }

    pub(crate) fn boot(&mut self, gap: u64) {
        self.crash();
        self.abandon_actors();
        self.forget_all_but_calm();
        self.now += gap * SECOND;
        let began = self.utc();
        self.kernel.reboot(began);
        for server in &mut self.servers {
            (server.alive, server.exiting, server.paused) = (false, false, false);
        }
        for conn in &mut self.conns {
            (conn.closed, conn.ended, conn.open) = (true, true, false);
        }
        self.listening.clear();
        self.files.clear();
        self.note(|| format!("another boot begins at {began}"));
        self.after(0, 3 * SECOND, Event::Start);
        if self.dice.percent(70) {
            self.start_server(0);
        }
    }
}
