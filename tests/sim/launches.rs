//! How agents are brought back: what preflight finds, where they are started, how they behave then, and what shows of it.

use std::path::PathBuf;

use ait::coordinator::place::{Known, Place, Stamped, choose};
use ait::coordinator::preflight::{Ready, Survivor};
use ait::coordinator::{Around, Conversation, Heard, Launch, Launched, Named, PaneNow, Proof, Started};
use ait::record::report::{Names, OfRestore, Report, Seen, Settled};
use ait::record::{
    Ack, Facts, Location, Nonce, PaneId, ProcessId, Record, RecordId, RestoreMode, ServerEpoch, Stamp, State,
    WindowId,
};

use crate::actors::Turn;
use crate::agents::Agent;
use crate::deeds::Reach;
use crate::kernel::{How, Term, What};
use crate::mutants::Mutant;
use crate::tmux::Tmux;
use crate::world::{DEFAULT_SOCKET, Event, MS, SECOND, Sim};

/// How an agent that was brought back behaves.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The restore it was started by.
    pub(crate) record: RecordId,
    pub(crate) nonce: Nonce,
    /// The conversation its arguments name.
    pub(crate) asked: String,
    /// Its provider's own list names it.
    pub(crate) listed: bool,
    /// It sits at a dialog.
    pub(crate) dialog: bool,
}

impl Sim {
    /// A new agent's ways, and what it started.
    pub(crate) fn settle_in(&mut self, number: usize) {
        let id = self.agents[number].id.clone();
        let terminal = self.kernel.process(&id).and_then(|process| process.terminal);
        let term = match self.dice.below(10) {
            0 => Term::Ignores,
            1 => Term::Dawdles,
            _ => Term::Obeys,
        };
        let pane = terminal.and_then(|(server, pane)| self.servers[server].panes.get(&pane));
        let own = pane.map(|pane| pane.process.clone());
        if let Some(process) = self.kernel.living.get_mut(&id.pid) {
            process.term = term;
            process.parent = own.filter(|own| *own != id);
        }
        for _ in 0..self.dice.below(3) {
            let tool = self.kernel.spawn(What::Tool, terminal);
            let deaf = self.dice.percent(30);
            let term = if self.dice.percent(30) { Term::Ignores } else { Term::Obeys };
            if let Some(process) = self.kernel.living.get_mut(&tool.pid) {
                (process.parent, process.deaf, process.term) = (Some(id.clone()), deaf, term);
            }
        }
    }

    // --- preflight

    pub(crate) fn ready_for(&mut self, at: usize, mode: RestoreMode) -> Ready {
        self.actors[at].looked = self.now;
        let record = self.read_record(at);
        let mut ready = Ready {
            argv: Err("no_record".to_owned()),
            session_id: None,
            binary: !self.dice.percent(2) && !self.no_program,
            folder: ("/".to_owned(), !self.dice.percent(2)),
            conversation: Conversation::Unknown("a new one begins".to_owned()),
            filed: None,
            twin: None,
            survivors: Vec::new(),
            elsewhere: None,
            unknown: None,
        };
        let Some(record) = record else { return ready };
        let id = record.codeagent_session_id.clone();
        if mode == RestoreMode::Resume {
            let argv = vec!["claude".to_owned(), "--resume".to_owned(), id.clone()];
            ready.argv = if id.is_empty() { Err("no_session".to_owned()) } else { Ok(argv) };
            ready.session_id = Some(id.clone());
            ready.conversation = if self.dice.percent(3) {
                Conversation::Missing("no_turn".to_owned())
            } else {
                Conversation::Present { path: String::new() }
            };
        } else {
            ready.argv = Ok(vec!["claude".to_owned()]);
            ready.session_id = self.dice.percent(50).then(|| format!("picked-{}", self.agents.len()));
        }
        if self.is(Mutant::SeesNoSurvivor) || self.is(Mutant::ForgetsOutlived) {
            return ready;
        }
        let same = |other: &&Record| {
            other.id != record.id
                && !id.is_empty()
                && other.codeagent_session_id == id
                && matches!(other.state, State::Live | State::Restoring { .. })
        };
        let twin = self.disk.records.iter().find(same);
        ready.twin = twin.map(|twin| (twin.id, twin.location.pane_id()));
        self.survivors(&record, &mut ready);
        ready
    }

    fn survivors(&self, record: &Record, ready: &mut Ready) {
        let socket = record.ait.server.as_ref().map(|epoch| PathBuf::from(&epoch.socket));
        let listeners: Vec<usize> = socket
            .into_iter()
            .filter_map(|socket| {
                self.listening.get(&socket).copied().filter(|_| self.files.contains(&socket))
            })
            .filter(|server| self.servers[*server].alive)
            .collect();
        let mark = format!("{}:", record.id);
        for server in listeners {
            let tmux = &self.servers[server];
            if tmux.paused || tmux.exiting {
                ready.unknown = Some("no answer".to_owned());
                continue;
            }
            for (pane, there) in &tmux.panes {
                if there.dead || !there.attempt.starts_with(&mark) || !self.kernel.lives(&there.process) {
                    continue;
                }
                let proven = self.living_agents().into_iter().any(|agent| {
                    let id = &self.agents[agent].id;
                    (*id == there.process || self.is_below(id, &there.process)) && self.has(agent, record)
                });
                ready.survivors.push(Survivor {
                    pane: Some((PaneId(*pane), self.epoch_of(server), there.process.clone())),
                    process: there.process.clone(),
                    proven,
                    attempt: true,
                });
            }
        }
        for agent in self.living_agents() {
            let process = self.agents[agent].id.clone();
            let known = |one: &Survivor| one.process == process || self.is_below(&process, &one.process);
            if !self.has(agent, record) || ready.survivors.iter().any(known) {
                continue;
            }
            let at = self.kernel.process(&process).and_then(|process| process.terminal);
            let pane = at.and_then(|(server, pane)| {
                let there = self.servers[server].panes.get(&pane).filter(|_| self.servers[server].alive)?;
                Some((PaneId(pane), self.epoch_of(server), there.process.clone()))
            });
            ready.survivors.push(Survivor { pane, process, proven: true, attempt: false });
        }
        let old = self.outlived_by(record);
        if let Some(old) = old.filter(|old| !old.started.is_empty() && self.kernel.lives(old))
            && !ready.survivors.iter().any(|one| one.process == old)
        {
            ready.survivors.push(Survivor { pane: None, process: old, proven: false, attempt: false });
        }
    }

    /// Whether an agent shows that it has the record's conversation: by its provider's list, else by its arguments.
    fn has(&self, agent: usize, record: &Record) -> bool {
        let id = &record.codeagent_session_id;
        match &self.agents[agent].manner {
            Some(manner) if !manner.listed => manner.asked == *id,
            Some(_) | None => self.agents[agent].conversation == *id,
        }
    }

    pub(crate) fn epoch_of(&self, server: usize) -> ServerEpoch {
        let tmux = &self.servers[server];
        ServerEpoch {
            socket: tmux.socket.to_string_lossy().into_owned(),
            pid: tmux.id.pid,
            started: tmux.id.started.clone(),
            started_at: Some(tmux.started_at),
            boot_id: self.kernel.boot_id(),
            unknown: Default::default(),
        }
    }

    // --- the launch

    pub(crate) fn launch_for(&mut self, at: usize, launch: &Launch) -> Launched {
        let Some(record) = self.read_record(at) else { return not("no_record") };
        let socket = record.ait.server.as_ref().map_or(DEFAULT_SOCKET, |epoch| &epoch.socket);
        let socket = PathBuf::from(socket);
        let own = record.ait.server.as_ref().is_some_and(|epoch| {
            epoch.boot_id == self.kernel.boot_id() && self.kernel.lives(&epoch.process())
        });
        let listener = self.listening.get(&socket).copied().filter(|server| {
            self.files.contains(&socket) && self.servers[*server].alive && !self.servers[*server].exiting
        });
        let server = match listener {
            None if own => return not("server_unreachable"),
            None => return self.launch_server(at, socket, &record, launch),
            Some(server) if self.servers[server].paused => return not("server_unknown"),
            Some(server) => server,
        };
        let same = self.server_of(&record) == Some(server);
        if own && !same {
            return not("server_unknown");
        }
        let known = self.known_sessions(server);
        let started = match choose(&record, &self.snapshot(server), &known, same, launch.session.as_deref()) {
            Place::StandIn(pane) => {
                let there = self.servers[server].panes.get(&pane.0);
                if there.is_none_or(|there| there.frozen != record.id.to_string()) {
                    return not("pane_changed");
                }
                self.check_launch_place(server, record.id, pane.0);
                let what = self.what(launch);
                let process = self.respawn_pane(server, pane.0, what);
                Some((pane.0, process))
            }
            Place::Beside { window, .. } => {
                let process = self.in_next_pane(server, launch);
                self.servers[server].split(window.0, process.clone()).map(|pane| (pane, process))
            }
            Place::Window { session, index } => {
                let process = self.in_next_pane(server, launch);
                let made =
                    self.servers[server].add_window_at(session.0, index, &record.window, process.clone());
                made.map(|(_, pane)| (pane, process))
            }
            Place::Session { name, index } => {
                let process = self.in_next_pane(server, launch);
                let session = self.servers[server].add_session(&name);
                let index = index.unwrap_or(0).max(0);
                let made =
                    self.servers[server].add_window_at(session, index, &record.window, process.clone());
                made.map(|(_, pane)| (pane, process))
            }
        };
        let Some((pane, process)) = started else { return not("refused") };
        self.begin(at, server, pane, process, &record, launch)
    }

    fn what(&self, launch: &Launch) -> What {
        if launch.below_shell { What::Shell } else { What::Agent(self.agents.len()) }
    }

    fn in_next_pane(&mut self, server: usize, launch: &Launch) -> ProcessId {
        let (pane, what) = (self.servers[server].next_pane(), self.what(launch));
        self.kernel.spawn(what, Some((server, pane)))
    }

    fn launch_server(&mut self, at: usize, socket: PathBuf, record: &Record, launch: &Launch) -> Launched {
        let number = self.servers.len();
        let id = self.kernel.spawn(What::Tmux(number), None);
        self.servers.push(Tmux::new(socket.clone(), id, self.kernel.boot, self.utc()));
        self.note(|| format!("server {number} is started on {} for {}", socket.display(), record.id));
        let name = if record.session.is_empty() { "agents" } else { &record.session };
        let session = self.servers[number].add_session(name);
        let process = self.in_next_pane(number, launch);
        let index = record.ait.window_index.unwrap_or(0).max(0);
        let made = self.servers[number].add_window_at(session, index, &record.window, process.clone());
        self.listening.insert(socket.clone(), number);
        self.files.insert(socket.clone());
        self.socket_changed(&socket);
        let Some((_, pane)) = made else { return not("refused") };
        self.begin(at, number, pane, process, record, launch)
    }

    /// The agent of a launch begins.
    fn begin(
        &mut self,
        at: usize,
        server: usize,
        pane: u32,
        process: ProcessId,
        record: &Record,
        launch: &Launch,
    ) -> Launched {
        let number = self.agents.len();
        let below_shell = launch.below_shell;
        let id = if below_shell {
            self.kernel.spawn(What::Agent(number), Some((server, pane)))
        } else {
            process.clone()
        };
        let asked = launch.argv.get(2).cloned().unwrap_or_else(|| format!("fresh-{number}"));
        let roll = self.dice.below(100);
        let conversation = if (55..63).contains(&roll) { format!("other-{number}") } else { asked.clone() };
        self.note(|| {
            format!("agent {number} ({roll}) is brought back as {id:?} in %{pane} of server {server}")
        });
        let manner = Manner {
            record: record.id,
            nonce: launch.nonce,
            asked: asked.clone(),
            listed: false,
            dialog: (63..68).contains(&roll),
        };
        self.check_one_agent(at, &conversation);
        self.agents.push(Agent {
            id: id.clone(),
            boot: self.kernel.boot,
            conversation,
            below_shell,
            server,
            pane,
            root: record.root.clone(),
            fate: None,
            born: self.now,
            by_hand: false,
            manner: Some(manner),
        });
        self.settle_in(number);
        let mark = format!("{}:{}", record.id, launch.nonce);
        let window =
            self.servers[server].window_of(pane).and_then(|at| self.servers[server].windows.get(&at));
        let stamp = self.servers[server].panes.get(&pane).map(|there| there.frozen.clone());
        if window.is_some_and(|window| window.panes.len() > 1) && stamp.is_some_and(|stamp| stamp.is_empty())
        {
            // a split cannot be marked in its own command: the program does it first of all
            self.after(MS, 20 * MS, Event::Marked { server, pane, mark, agent: number, roll });
        } else {
            self.marked(server, pane, mark);
            self.behave(number, roll);
        }
        if self.is(Mutant::LaunchesTwice) {
            let again = Launch { argv: launch.argv.clone(), ..launch.clone() };
            let process = self.in_next_pane(server, &again);
            if let Some(session) = self.servers[server].users_sessions().first().copied() {
                self.servers[server].add_window(session, "twice", process.clone());
                let conversation = self.agents[number].conversation.clone();
                self.check_one_agent(at, &conversation);
            }
        }
        if !self.calm && self.dice.percent(3) {
            return Launched::Unknown("tmux did not say which process it started".to_owned());
        }
        Launched::Started(Box::new(Started {
            pane: PaneId(pane),
            process,
            server: self.epoch_of(server),
            around: self.around(server, pane),
        }))
    }

    /// The program in a split marks its pane, then becomes the agent.
    pub(crate) fn mark_itself(&mut self, server: usize, pane: u32, mark: String, agent: usize, roll: u64) {
        if self.park(server, || Event::Marked { server, pane, mark: mark.clone(), agent, roll }) {
            return;
        }
        let process = &self.agents[agent].id;
        let on = self.kernel.process(process).and_then(|process| process.terminal) == Some((server, pane));
        if on && self.is_living(agent) {
            self.marked(server, pane, mark);
            self.behave(agent, roll);
        }
    }

    fn marked(&mut self, server: usize, pane: u32, mark: String) {
        let record = mark.split(':').next().unwrap_or_default().to_owned();
        self.servers[server].stirred = true;
        let Some(there) = self.servers[server].panes.get_mut(&pane) else { return };
        (there.frozen, there.ready, there.own) = (record, false, Some(true));
        there.attempt = mark;
    }

    fn around(&self, server: usize, pane: u32) -> Option<Around> {
        let tmux = &self.servers[server];
        let window = tmux.window_of(pane)?;
        let (session, index) = tmux.places(window).first().copied()?;
        Some(Around {
            session: tmux.sessions[&session].name.clone(),
            window_id: WindowId(window),
            index,
            window: tmux.windows[&window].name.clone(),
        })
    }

    /// What the agent does in its first minute.
    fn behave(&mut self, agent: usize, roll: u64) {
        let hook = |nested| Event::Hook { agent, nested, tries: 0 };
        match roll {
            // its hook, and mostly its list as well
            0..45 => {
                self.after(5 * MS, 3 * SECOND, hook(false));
                self.after(50 * MS, 5 * SECOND, Event::Listed { agent });
            }
            45..55 => self.after(50 * MS, 5 * SECOND, Event::Listed { agent }),
            // another conversation
            55..59 => self.after(5 * MS, 3 * SECOND, hook(false)),
            59..63 => self.after(50 * MS, 5 * SECOND, Event::Listed { agent }),
            // a dialog, answered late or never
            63..66 => self.after(10 * SECOND, 60 * SECOND, hook(false)),
            66..74 => {}
            // it ends at once
            74..82 => {
                let process = self.agents[agent].id.clone();
                let status = self.dice.pick(&[0, 1, 1, 127]).unwrap_or(1);
                self.after(MS, 2 * SECOND, Event::Exit { process, status });
            }
            // a late hook
            82..88 => self.after(15 * SECOND, 40 * SECOND, hook(false)),
            // one that it starts at once inherits its surroundings
            88..94 => {
                self.after(MS, 2 * SECOND, hook(true));
                self.after(50 * MS, 4 * SECOND, hook(false));
            }
            _ => {
                self.after(MS, 20 * MS, hook(false));
            }
        }
    }

    pub(crate) fn listed(&mut self, agent: usize) {
        if !self.is_living(agent) {
            return;
        }
        if let Some(manner) = &mut self.agents[agent].manner {
            manner.listed = true;
        }
        for at in 0..self.actors.len() {
            if self.actors[at].attending && self.actors[at].alive {
                self.turn_after(100, 3 * MS, at, Turn::Unasked(Heard::Touched));
            }
        }
    }

    /// The hook of an agent that was brought back, judged by the real rules.
    pub(crate) fn hook(&mut self, agent: usize, nested: bool, tries: u32) {
        let known = self.agents[agent].clone();
        let Some(manner) = known.manner.clone().filter(|_| self.is_living(agent)) else { return };
        if self.disk.full {
            return self.after(100 * MS, SECOND, Event::Hook { agent, nested, tries });
        }
        let tmux = &self.servers[known.server];
        let Some(there) = tmux.panes.get(&known.pane).filter(|_| tmux.alive && !tmux.exiting) else { return };
        let own = there.process.clone();
        let mark = format!("{}:{}", manner.record, manner.nonce);
        let stamp = manner.record.to_string();
        let marked = there.attempt == mark || there.stamp == stamp || there.frozen == stamp;
        let seen =
            Seen { pane: PaneId(known.pane), process: own.clone(), server: self.epoch_of(known.server) };
        // none below another agent: the line of a nested one ends with itself
        let nested_id = ProcessId::new(known.id.pid + 1000, "1");
        let mut line = if nested { vec![nested_id.clone()] } else { vec![known.id.clone()] };
        if !nested && own != known.id {
            line.push(own.clone());
        }
        let mut session_id = if nested { format!("nested-{agent}") } else { known.conversation.clone() };
        if self.is(Mutant::TrustsAnyHook) {
            (line, session_id) = (vec![known.id.clone(), own.clone()], manner.asked.clone());
        }
        let restore = OfRestore {
            record: manner.record,
            nonce: manner.nonce,
            pane: (marked && tries > 0 && line.contains(&own)).then_some(seen),
        };
        let report = Report {
            provider: "claude".to_owned(),
            event: "SessionStart".to_owned(),
            at: Stamp::from_unix(self.utc()),
            boot_id: self.kernel.boot_id(),
            line,
            agent: if nested { nested_id } else { known.id.clone() },
            session_id,
            transcript: String::new(),
            names: Names::Now,
            known: None,
            restore: Some(restore),
            turn: None,
            newborn: None,
        };
        let settled = {
            let (kernel, boot_id) = (&self.kernel, self.kernel.boot_id());
            let facts = Facts {
                now: Stamp::from_unix(self.utc()),
                since_boot: self.now / SECOND,
                boot_id: &boot_id,
                grace: 60,
                alive: &|id| kernel.liveness(id),
                started: &|pid| kernel.living.get(&pid).map(|process| process.id.started.clone()),
                draw: &|| 0,
            };
            report.settle(&self.disk.records, &facts)
        };
        let text = format!("{settled:?}");
        self.note(|| {
            format!("hook of agent {agent}, nested {nested}: {}", text.chars().take(160).collect::<String>())
        });
        match settled {
            Settled::Step(step) => {
                for result in self.write_steps_of_others(&[*step]) {
                    self.note(|| format!("  {result:?}"));
                }
                self.store_changed();
            }
            Settled::Unproven(_) | Settled::Unknown if tries < 60 => {
                self.after(MS, 2 * SECOND, Event::Hook { agent, nested, tries: tries + 1 });
            }
            Settled::Unproven(_) | Settled::Unknown | Settled::Known(_) | Settled::Late(_) => {}
        }
    }

    // --- proof

    pub(crate) fn prove_for(&mut self, at: usize) -> Proof {
        let mut proof = Proof {
            pane: PaneNow::Unknown,
            named: Vec::new(),
            agent: None,
            dialog: None,
            up: false,
            lines: Vec::new(),
        };
        let Some(record) = self.read_record(at) else { return proof };
        let Location::Pane { pane, process } = record.location.clone() else { return proof };
        let below = |id: &ProcessId| *id == process || self.is_below(id, &process);
        let agent = self.living_agents().into_iter().find(|agent| below(&self.agents[*agent].id));
        if let Some(agent) = agent {
            let known = &self.agents[agent];
            proof.agent = Some(known.id.clone());
            proof.up = self.now > known.born + SECOND;
            if let Some(manner) = &known.manner {
                proof.dialog = manner.dialog.then(|| "trust".to_owned());
                if manner.listed {
                    proof.named.push(Named {
                        session_id: known.conversation.clone(),
                        by: Ack::Registry,
                        process: known.id.clone(),
                    });
                }
            }
        }
        proof.pane = match self.reach(Some(&record)) {
            Reach::Over | Reach::Other(_) => PaneNow::Gone,
            Reach::Unnamed | Reach::Unknown => PaneNow::Unknown,
            Reach::Up(server) => match self.servers[server].panes.get(&pane.0) {
                None => PaneNow::Gone,
                Some(there) if there.dead => match there.how {
                    Some(How::Exit(status)) => PaneNow::Dead { status: Some(status), signal: None },
                    Some(How::Signal(signal)) => PaneNow::Dead { status: None, signal: Some(signal) },
                    None => PaneNow::Dead { status: None, signal: None },
                },
                Some(there) if there.process.pid != process.pid => PaneNow::Gone,
                Some(_) if !self.kernel.lives(&process) => PaneNow::Dead { status: None, signal: None },
                Some(_) => PaneNow::Runs,
            },
        };
        proof
    }

    fn known_sessions(&self, server: usize) -> Vec<Known> {
        let tmux = &self.servers[server];
        let stamped = |session: u32| {
            let windows = tmux.sessions[&session].links.values();
            let panes = windows
                .flat_map(|window| tmux.windows.get(window).map(|w| w.panes.clone()).unwrap_or_default());
            panes.filter_map(|pane| {
                let pane = tmux.panes.get(&pane)?;
                let stamp = if pane.frozen.is_empty() { &pane.stamp } else { &pane.frozen };
                let record = self.disk.records.get(stamp.parse().ok()?)?;
                (self.server_of(record) == Some(server))
                    .then(|| Stamped { root: record.root.clone(), came_back: record.restore.attempts > 0 })
            })
        };
        tmux.sessions
            .keys()
            .map(|session| Known {
                id: tmux_control::SessionId(*session),
                created: tmux.started_at,
                project: None,
                stamped: stamped(*session).collect(),
            })
            .collect()
    }
}

fn not(word: &str) -> Launched {
    Launched::Not { word: word.to_owned(), seen: String::new() }
}
