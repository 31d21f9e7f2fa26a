//! The simulated machine: one queue of events in time, and what each does to kernel, servers, disk and supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ait::coordinator::{Outcome, PaneAct};
use ait::record::{ProcessId, RecordId, Verb};
use ait::supervisor::recovery::Policies;
use ait::supervisor::{Answer, Ask, Input, LinkEvent, LinkId, Tag, Ticket};
use ait::world::mark::Mark;
use ait::world::rows::Snapshot;

use crate::actors::{Actor, Turn};
use crate::agents::Agent;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::driver::Host;
use crate::fleet::Crew;
use crate::kernel::{How, Kernel, Term, What};
use crate::mutants::Mutant;
use crate::oracle::Oracle;
use crate::recovery::Recovery;
use crate::tmux::{Fall, Tmux};

/// Where a start goes that names no server.
pub(crate) const DEFAULT_SOCKET: &str = "/tmp/tmux-1/default";
/// One millisecond, in the microseconds of the simulated clock.
pub(crate) const MS: u64 = 1_000;
/// One second.
pub(crate) const SECOND: u64 = 1_000 * MS;

/// What happens at its time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An input for that life of the supervisor.
    Feed { life: u32, input: Box<Input> },
    /// A word of a control client.
    Say { conn: usize, event: Box<LinkEvent> },
    /// A client reaches its server.
    Arrive { conn: usize },
    /// A server carries out what a client asked; a listing in three parts.
    Serve { conn: usize, tag: Tag, ask: Ask, part: usize },
    /// A server finds a client's pipe closed.
    Close { conn: usize },
    /// A server hears of the end of a pane's process.
    PaneExit { server: usize, pane: u32, process: ProcessId, how: How },
    /// A server collects its dead children.
    Reap { server: usize },
    /// A server tells what only its heartbeat sees.
    Heartbeat { server: usize },
    /// A server's process ends.
    Fall { server: usize, fall: Fall },
    /// A stopped server goes on.
    Resume { server: usize },
    /// A signal reaches a process.
    Signal { process: ProcessId, signal: i32 },
    /// A process ends by itself.
    Exit { process: ProcessId, status: i32 },
    /// A supervisor's write reaches the disk.
    Write { life: u32, ticket: Ticket, changes: Vec<(RecordId, Verb)> },
    /// A supervisor reads the store.
    Read { life: u32 },
    /// A supervisor reads the archive.
    Recall { life: u32, since: i64 },
    /// A supervisor begins to watch a process.
    Watch { life: u32, process: ProcessId },
    /// A supervisor looks at a process.
    Examine { life: u32, record: RecordId, pid: i32 },
    /// A supervisor looks whether a socket's file is there.
    Look { life: u32, socket: PathBuf },
    /// A supervisor's deadline.
    Tick { life: u32 },
    /// A supervisor starts, unless one runs.
    Start,
    /// It is told to end.
    Stop,
    /// Somebody does something.
    Act,
    /// A hook or a script reports an agent.
    Report { agent: usize, full: bool },
    /// The machine goes down and another boot begins.
    Boot { gap: u64 },
    /// No fault and no act from now on.
    Calm,
    /// A coordinator's turn.
    Turn { actor: usize, turn: Box<Turn> },
    /// A stopped coordinator goes on.
    Continue { actor: usize },
    /// A deed that a stopped server was asked for.
    Deed { server: usize, record: RecordId, act: PaneAct },
    /// A stand-in has drawn its first frame.
    Drawn { server: usize, pane: u32, process: ProcessId },
    /// A restored agent marks the pane it was split into, and begins.
    Marked { server: usize, pane: u32, mark: String, agent: usize, roll: u64 },
    /// The hook of a restored agent.
    Hook { agent: usize, nested: bool, tries: u32 },
    /// A provider's own list of running agents names one.
    Listed { agent: usize },
    /// A recovery's next step.
    Recovery { at: usize },
    /// A stopped recovery goes on.
    RecoveryGoesOn { at: usize },
    /// A recovery reads how one of its restores ended.
    FleetTells { at: usize, record: RecordId, outcome: Box<Outcome> },
    /// A recovery hears that the process of its restores is gone.
    FleetEnds { at: usize },
}

/// A control client.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) life: u32,
    pub(crate) socket: PathBuf,
    pub(crate) link: LinkId,
    /// The server it is attached to.
    pub(crate) server: Option<usize>,
    /// The server has it as a client.
    pub(crate) open: bool,
    /// Our end of the pipe is closed.
    pub(crate) closed: bool,
    /// Its end was told.
    pub(crate) ended: bool,
    pub(crate) out_at: u64,
    pub(crate) in_at: u64,
    /// Orders without an answer: kills, and moves of windows, panes and clients.
    pub(crate) kills: u32,
    pub(crate) moves: u32,
    /// The listing under way.
    pub(crate) partial: Snapshot,
}

pub(crate) struct Sim {
    pub(crate) now: u64,
    /// The wall clock at time zero, unix seconds.
    pub(crate) epoch: i64,
    pub(crate) dice: Dice,
    pub(crate) kernel: Kernel,
    pub(crate) disk: Disk,
    pub(crate) servers: Vec<Tmux>,
    /// The server that listens on a path.
    pub(crate) listening: BTreeMap<PathBuf, usize>,
    /// The socket files that are there.
    pub(crate) files: BTreeSet<PathBuf>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) conns: Vec<Conn>,
    pub(crate) host: Option<Host>,
    pub(crate) lives: u32,
    pub(crate) calm: bool,
    /// Coordinators are part of this run.
    pub(crate) crewed: bool,
    pub(crate) actors: Vec<Actor>,
    /// Lost agents come back by themselves, as these say; else the supervisor is never told of the book.
    pub(crate) policies: Option<Policies>,
    /// The agents' program is gone: none of them starts.
    pub(crate) no_program: bool,
    pub(crate) recoveries: Vec<Recovery>,
    pub(crate) crews: Vec<Crew>,
    pub(crate) oracle: Oracle,
    pub(crate) mutant: Option<Mutant>,
    /// What a stopped server will do when it goes on.
    backlog: BTreeMap<usize, Vec<Event>>,
    queue: BTreeMap<(u64, u64), Event>,
    order: u64,
    beating: BTreeSet<usize>,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) steps: u64,
}

impl Sim {
    pub(crate) fn new(seed: u64, mutant: Option<Mutant>, traced: bool) -> Self {
        let mut dice = Dice::new(seed);
        let epoch = 1_790_000_000;
        let trusting = match mutant {
            Some(Mutant::UnknownIsGone) => Some(true),
            Some(Mutant::EndsTheLiving | Mutant::PartialView) => Some(false),
            Some(_) | None => None,
        };
        let lawless = match mutant {
            Some(Mutant::StealsLeases) => Some(true),
            Some(Mutant::KeepsLeases) => Some(false),
            Some(_) | None => None,
        };
        let disk = Disk { lawless, bits: Some(Dice::new(dice.roll())), trusting, ..Disk::default() };
        Self {
            now: 0,
            epoch,
            dice,
            kernel: Kernel::new(epoch - 600),
            disk,
            servers: Vec::new(),
            listening: BTreeMap::new(),
            files: BTreeSet::new(),
            agents: Vec::new(),
            conns: Vec::new(),
            host: None,
            lives: 0,
            calm: false,
            crewed: false,
            actors: Vec::new(),
            policies: None,
            no_program: false,
            recoveries: Vec::new(),
            crews: Vec::new(),
            oracle: Oracle::default(),
            mutant,
            backlog: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            beating: BTreeSet::new(),
            trace: traced.then(Vec::new),
            steps: 0,
        }
    }

    /// The wall clock, unix seconds.
    pub(crate) fn utc(&self) -> i64 {
        self.epoch + i64::try_from(self.now / SECOND).unwrap_or_default()
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let (seconds, micros) = (self.now / SECOND, self.now % SECOND);
            trace.push(format!("{seconds:>4}.{micros:06} {}", text()));
        }
    }

    /// Breaks the run off: something is not as it must be.
    pub(crate) fn fail(&mut self, rule: &'static str, text: String) {
        self.note(|| format!("BROKEN {rule}: {text}"));
        if self.oracle.broken.is_none() {
            self.oracle.broken = Some((rule, text));
        }
    }

    pub(crate) fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.queue.insert((time, self.order), event);
    }

    pub(crate) fn after(&mut self, low: u64, high: u64, event: Event) {
        let time = self.now + self.dice.between(low, high);
        self.at(time, event);
    }

    /// Runs until the queue is empty or that time is reached.
    pub(crate) fn run_until(&mut self, end: u64) {
        while let Some((&(time, _), _)) = self.queue.first_key_value() {
            if time > end || self.oracle.broken.is_some() {
                break;
            }
            let Some((_, event)) = self.queue.pop_first() else { break };
            self.now = self.now.max(time);
            self.steps += 1;
            if self.steps > 100_000 {
                self.fail("sleeps", "it never comes to rest".to_owned());
            }
            self.happen(event);
            self.flush();
            self.check_always();
        }
        if self.oracle.broken.is_none() {
            self.now = self.now.max(end);
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn first_pending(&self) -> Option<&Event> {
        self.queue.first_key_value().map(|(_, event)| event)
    }

    pub(crate) fn forget_acts(&mut self) {
        self.queue.retain(|_, event| !matches!(event, Event::Act | Event::Boot { .. } | Event::Calm));
    }

    /// A boot ends: nothing that was on its way arrives.
    pub(crate) fn forget_all_but_calm(&mut self) {
        self.queue.retain(|_, event| matches!(event, Event::Calm));
        self.backlog.clear();
        self.beating.clear();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Feed { life, input } => self.feed(life, *input),
            Event::Say { conn, event } => self.said(conn, *event),
            Event::Arrive { conn } => self.arrive(conn),
            Event::Serve { conn, tag, ask, part } => self.serve(conn, tag, ask, part),
            Event::Close { conn } => self.close(conn),
            Event::PaneExit { server, pane, process, how } => self.pane_exit(server, pane, process, how),
            Event::Reap { server } => self.reap(server),
            Event::Heartbeat { server } => self.heartbeat(server),
            Event::Fall { server, fall } => self.fall(server, fall),
            Event::Resume { server } => self.resume(server),
            Event::Signal { process, signal } => self.signal(&process, signal),
            Event::Exit { process, status } => self.end_process(&process, How::Exit(status)),
            Event::Write { life, ticket, changes } => self.write(life, ticket, changes),
            Event::Read { life } => self.read(life),
            Event::Recall { life, since } => self.recall(life, since),
            Event::Watch { life, process } => self.watch(life, process),
            Event::Examine { life, record, pid } => self.examine(life, record, pid),
            Event::Look { life, socket } => {
                let present = self.files.contains(&socket);
                self.feed(life, Input::Socket { socket, present });
            }
            Event::Tick { life } => self.tick(life),
            Event::Start => self.start(),
            Event::Stop => self.stop(),
            Event::Act => self.act(),
            Event::Report { agent, full } => self.report(agent, full),
            Event::Boot { gap } => self.boot(gap),
            Event::Calm => self.calm_down(),
            Event::Turn { actor, turn } => self.turn(actor, *turn),
            Event::Continue { actor } => self.go_on(actor),
            Event::Deed { server, record, act } => {
                self.deed(server, record, &act);
            }
            Event::Drawn { server, pane, process } => self.drawn(server, pane, &process),
            Event::Marked { server, pane, mark, agent, roll } => {
                self.mark_itself(server, pane, mark, agent, roll);
            }
            Event::Hook { agent, nested, tries } => self.hook(agent, nested, tries),
            Event::Listed { agent } => self.listed(agent),
            Event::Recovery { at } => self.recovery_step(at),
            Event::RecoveryGoesOn { at } => self.recovery_goes_on(at),
            Event::FleetTells { at, record, outcome } => self.recovery_hears(at, record, &outcome),
            Event::FleetEnds { at } => self.recovery_is_left(at),
        }
    }

    // --- processes

    pub(crate) fn signal(&mut self, process: &ProcessId, signal: i32) {
        let Some(known) = self.kernel.process(process) else { return };
        if signal == 1 && known.deaf {
            return;
        }
        match (signal, known.term) {
            (15, Term::Ignores) => return,
            (15, Term::Dawdles) => {
                let process = process.clone();
                return self.after(SECOND, 8 * SECOND, Event::Exit { process, status: 0 });
            }
            _ => {}
        }
        match known.what {
            What::Tmux(server) if signal == 15 => self.stop_server(server),
            What::Tmux(server) => self.fall(server, Fall::Crashed),
            What::Agent(_) if signal == 15 && self.dice.percent(40) => {
                self.end_process(process, How::Exit(143));
            }
            What::Agent(_)
            | What::Shell
            | What::Tool
            | What::Viewer
            | What::Coordinator(_)
            | What::Stranger => self.end_process(process, How::Signal(signal)),
        }
    }

    /// A process ends; whoever watches it is told.
    pub(crate) fn end_process(&mut self, process: &ProcessId, how: How) {
        if !self.kernel.lives(process) {
            return;
        }
        let Some(gone) = self.kernel.living.remove(&process.pid) else { return };
        self.note(|| format!("process {} {:?} ends: {how:?}", process.pid, gone.what));
        if let What::Agent(agent) = gone.what
            && let Some(agent) = self.agents.get_mut(agent)
        {
            agent.fate = Some((how, self.epoch + i64::try_from(self.now / SECOND).unwrap_or_default()));
        }
        self.tell_death(process);
        self.tell_actors_of_death(process);
        let Some((server, pane)) = gone.terminal else { return };
        let own = self.servers[server].panes.get(&pane).is_some_and(|pane| pane.process == *process);
        if own {
            let process = process.clone();
            self.after(0, 2 * MS, Event::PaneExit { server, pane, process, how });
            for below in self.kernel.on_terminal(server, pane) {
                self.after(100, 2 * MS, Event::Signal { process: below, signal: 1 });
            }
        }
    }

    fn pane_exit(&mut self, server: usize, pane: u32, process: ProcessId, how: How) {
        if self.park(server, || Event::PaneExit { server, pane, process: process.clone(), how }) {
            return;
        }
        let slow = self.servers[server].utempter && self.dice.percent(40);
        let shows = self.dice.percent(50);
        let Some(known) = self.servers[server].panes.get_mut(&pane) else { return };
        if known.process != process || known.dead || known.held {
            return;
        }
        if slow {
            known.unreaped = Some(how);
            known.dead = shows && known.own == Some(true);
            self.servers[server].stirred = true;
            return;
        }
        self.settle_pane(server, pane, how);
        self.reap(server);
    }

    fn reap(&mut self, server: usize) {
        if self.park(server, || Event::Reap { server }) {
            return;
        }
        let of = |(id, pane): (&u32, &crate::tmux::Pane)| pane.unreaped.map(|how| (*id, how));
        let waiting: Vec<_> = self.servers[server].panes.iter().filter_map(of).collect();
        for (pane, how) in waiting {
            self.settle_pane(server, pane, how);
        }
    }

    fn settle_pane(&mut self, server: usize, pane: u32, how: How) {
        let tmux = &mut self.servers[server];
        let Some(known) = tmux.panes.get(&pane) else { return };
        if tmux.is_kept(known) {
            if let Some(known) = tmux.panes.get_mut(&pane) {
                known.dead = true;
                known.how = Some(how);
                known.unreaped = None;
            }
            tmux.stirred = true;
        } else {
            self.remove_pane(server, pane);
        }
    }

    /// A pane goes: its terminal hangs up, and the server with its last session.
    pub(crate) fn remove_pane(&mut self, server: usize, pane: u32) {
        self.servers[server].remove_pane(pane);
        self.hang_up(server, pane);
        self.end_if_empty(server);
    }

    pub(crate) fn hang_up(&mut self, server: usize, pane: u32) {
        for process in self.kernel.on_terminal(server, pane) {
            self.after(200, 5 * MS, Event::Signal { process, signal: 1 });
        }
    }

    pub(crate) fn remove_session(&mut self, server: usize, session: u32) {
        let ours = self.servers[server].ours.is_some_and(|ours| ours.0 == session);
        for pane in self.servers[server].remove_session(session) {
            self.servers[server].remove_pane(pane);
            self.hang_up(server, pane);
        }
        if ours {
            self.servers[server].guests.clear();
            self.drop_clients(server, Some("".into()));
        }
        self.end_if_empty(server);
    }

    pub(crate) fn end_if_empty(&mut self, server: usize) {
        let tmux = &self.servers[server];
        if tmux.alive && !tmux.exiting && tmux.sessions.is_empty() && tmux.exit_empty {
            self.stop_server(server);
        }
    }

    // --- servers

    /// Keeps an event of a stopped server for later; whether it was kept or the server is gone.
    pub(crate) fn park(&mut self, server: usize, event: impl FnOnce() -> Event) -> bool {
        let tmux = &self.servers[server];
        if !tmux.alive || tmux.exiting {
            return true;
        }
        if tmux.paused {
            self.backlog.entry(server).or_default().push(event());
            return true;
        }
        false
    }

    fn resume(&mut self, server: usize) {
        if !std::mem::take(&mut self.servers[server].paused) {
            return;
        }
        self.note(|| format!("server {server} goes on"));
        for (at, event) in self.backlog.remove(&server).unwrap_or_default().into_iter().enumerate() {
            let later = u64::try_from(at).unwrap_or_default() * 50;
            self.at(self.now + later, event);
        }
    }

    pub(crate) fn stop_server(&mut self, server: usize) {
        let tmux = &mut self.servers[server];
        if !tmux.alive || tmux.exiting {
            return;
        }
        if tmux.paused {
            // a stopped process takes the signal when it goes on
            let process = tmux.id.clone();
            self.backlog.entry(server).or_default().push(Event::Signal { process, signal: 15 });
            return;
        }
        tmux.exiting = true;
        self.note(|| format!("server {server} is stopping"));
        let panes: Vec<u32> = self.servers[server].panes.keys().copied().collect();
        for pane in panes {
            self.hang_up(server, pane);
        }
        let exit = (!self.dice.percent(5)).then(|| "".into());
        self.drop_clients(server, exit);
        self.after(MS, 10 * MS, Event::Fall { server, fall: Fall::Stopped });
    }

    pub(crate) fn fall(&mut self, server: usize, fall: Fall) {
        let utc = self.utc();
        let tmux = &mut self.servers[server];
        if !tmux.alive {
            return;
        }
        tmux.alive = false;
        tmux.fall = Some(fall);
        tmux.fell_at = Some((utc, self.now));
        let id = tmux.id.clone();
        self.note(|| format!("server {server} is gone: {fall:?}"));
        self.backlog.remove(&server);
        if fall == Fall::Crashed {
            let panes: Vec<u32> = self.servers[server].panes.keys().copied().collect();
            for pane in panes {
                self.hang_up(server, pane);
            }
            let exit = (!self.dice.percent(10)).then(|| "server exited unexpectedly".into());
            self.drop_clients(server, exit);
        }
        self.end_process(&id, How::Signal(9));
    }

    /// The clients of a server go, with these last words.
    pub(crate) fn drop_clients(&mut self, server: usize, exit: Option<bstr::BString>) {
        let conns: Vec<usize> = (0..self.conns.len())
            .filter(|at| self.conns[*at].open && self.conns[*at].server == Some(server))
            .collect();
        for conn in conns {
            self.conns[conn].open = false;
            self.say(conn, LinkEvent::Ended { exit: exit.clone() });
        }
        if let Some((session, ..)) = self.servers[server].ours.take() {
            for pane in self.servers[server].remove_session(session) {
                self.servers[server].remove_pane(pane);
                self.hang_up(server, pane);
            }
            self.servers[server].guests.clear();
        }
    }

    fn heartbeat(&mut self, server: usize) {
        self.beating.remove(&server);
        if self.park(server, || Event::Heartbeat { server }) {
            return;
        }
        self.servers[server].marks.push(Mark::Heartbeat);
    }

    /// Delivers what servers have to tell.
    fn flush(&mut self) {
        for server in 0..self.servers.len() {
            if std::mem::take(&mut self.servers[server].stirred) && self.beating.insert(server) {
                self.after(MS, SECOND, Event::Heartbeat { server });
            }
            if self.servers[server].marks.is_empty() {
                continue;
            }
            let marks = std::mem::take(&mut self.servers[server].marks);
            for conn in 0..self.conns.len() {
                if !self.conns[conn].open || self.conns[conn].server != Some(server) {
                    continue;
                }
                if !self.calm && self.dice.percent(3) {
                    self.say(conn, LinkEvent::Overflow);
                    continue;
                }
                for mark in &marks {
                    if self.is(Mutant::FollowsNothing)
                        && matches!(mark, Mark::WindowRenamed { .. } | Mark::SessionRenamed { .. })
                    {
                        continue;
                    }
                    self.say(conn, LinkEvent::Mark(mark.clone()));
                }
            }
        }
    }

    // --- clients, the server's side

    /// Puts a word on a client's stream, behind all before it.
    pub(crate) fn say(&mut self, conn: usize, event: LinkEvent) {
        let delay = if self.dice.percent(5) {
            self.dice.between(2 * MS, 40 * MS)
        } else {
            self.dice.between(50, 900)
        };
        let at = (self.now + delay).max(self.conns[conn].out_at + 1);
        self.conns[conn].out_at = at;
        self.at(at, Event::Say { conn, event: Box::new(event) });
    }

    fn arrive(&mut self, conn: usize) {
        if self.conns[conn].closed {
            return;
        }
        let socket = self.conns[conn].socket.clone();
        let found = self.listening.get(&socket).copied().filter(|server| {
            self.files.contains(&socket) && self.servers[*server].alive && !self.servers[*server].exiting
        });
        let Some(server) = found else {
            self.conns[conn].closed = true;
            self.say(conn, LinkEvent::Failed(ait::supervisor::AttachFailure::NoServer));
            return;
        };
        let why = if self.servers[server].paused {
            Some("no answer in 3 s")
        } else if !self.calm && self.dice.percent(4) {
            Some("protocol version mismatch")
        } else {
            None
        };
        if let Some(why) = why {
            self.conns[conn].closed = true;
            let patience = if self.servers[server].paused { 3 * SECOND } else { 0 };
            self.conns[conn].out_at = self.now + patience;
            self.say(conn, LinkEvent::Failed(ait::supervisor::AttachFailure::Unknown(why.into())));
            return;
        }
        self.attach(conn, server);
    }

    fn attach(&mut self, conn: usize, server: usize) {
        let default_session = self.servers[server].users_sessions().last().copied();
        if self.servers[server].ours.is_none() {
            let session = self.servers[server].add_session("_ait");
            let pane = self.servers[server].next_pane();
            let hold = self.kernel.spawn(What::Stranger, Some((server, pane)));
            if let Some((window, pane)) = self.servers[server].add_window(session, "hold", hold) {
                self.servers[server].ours = Some((session, window, pane));
            }
        }
        let Some((session, _, hold)) = self.servers[server].ours else { return };
        let tmux = &self.servers[server];
        let identity = ait::supervisor::Identity {
            process: tmux.id.clone(),
            started_at: tmux.started_at,
            version: "3.3a".into(),
            session: tmux_control::SessionId(session),
            hold: tmux_control::PaneId(hold),
            client: format!("client-{conn}").into(),
            default_session: default_session.map(tmux_control::SessionId),
        };
        self.conns[conn].server = Some(server);
        self.conns[conn].open = true;
        self.say(conn, LinkEvent::Attached(identity));
    }

    fn serve(&mut self, conn: usize, tag: Tag, ask: Ask, part: usize) {
        let Some(server) = self.conns[conn].server.filter(|_| self.conns[conn].open) else { return };
        if self.park(server, || Event::Serve { conn, tag, ask: ask.clone(), part }) {
            return;
        }
        match ask {
            Ask::Listing => {
                if part == 0 {
                    self.conns[conn].partial = Snapshot::default();
                }
                self.servers[server].list(part, &mut self.conns[conn].partial);
                if part == 2 {
                    let mut answer = Answer::Listing(std::mem::take(&mut self.conns[conn].partial));
                    if !self.calm && self.dice.percent(2) {
                        answer = Answer::Failed("a row makes no sense".into());
                    }
                    self.spoil_answer(conn, &mut answer);
                    self.say(conn, LinkEvent::Answer { tag, answer });
                }
            }
            Ask::Nudge { .. } => {
                self.after(MS, 3 * MS, Event::Reap { server });
                self.say(conn, LinkEvent::Answer { tag, answer: Answer::Done });
            }
            ask => {
                self.check_order(server, &ask);
                let answer = self.obey(server, &ask);
                self.note(|| format!("server {server} does {ask:?}: {answer:?}"));
                match &ask {
                    Ask::KillDead { .. } => self.conns[conn].kills -= 1,
                    Ask::ExpelWindow { .. } | Ask::ExpelPane { .. } | Ask::ExpelClient { .. } => {
                        self.conns[conn].moves -= 1;
                    }
                    _ => {}
                }
                self.end_if_empty(server);
                self.say(conn, LinkEvent::Answer { tag, answer });
            }
        }
    }

    /// A client's pipe is closed: `_ait` goes with it.
    fn close(&mut self, conn: usize) {
        let Some(server) = self.conns[conn].server.filter(|_| self.conns[conn].open) else { return };
        if self.park(server, || Event::Close { conn }) {
            return;
        }
        self.conns[conn].open = false;
        self.say(conn, LinkEvent::Ended { exit: None });
        let others = self.conns.iter().any(|other| other.open && other.server == Some(server));
        if let (false, false, Some((session, ..))) =
            (others, self.is(Mutant::LeavesAit), self.servers[server].ours)
        {
            self.remove_session(server, session);
        }
    }
}
