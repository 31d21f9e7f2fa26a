//! The simulated driver: it feeds the real supervisor and does what the supervisor says, in order, unless it crashes first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ait::record::{ProcessId, RecordId, Records, Step, Verb};
use ait::supervisor::{
    Action, Ask, EndedEarlier, Examined, FoundServer, Input, LastStop, LinkEvent, LinkId, Now, ShellHost,
    Start, StoreView, Supervisor, Tag, Ticket, Written,
};

use crate::kernel::What;
use crate::mutants::Mutant;
use crate::world::{Conn, DEFAULT_SOCKET, Event, MS, SECOND, Sim};

/// One life of the supervisor.
pub(crate) struct Host {
    pub(crate) machine: Supervisor,
    pub(crate) life: u32,
    pub(crate) watching: BTreeSet<ProcessId>,
    /// Processes that were told to live.
    pub(crate) seen: BTreeSet<ProcessId>,
    /// The store as last told.
    pub(crate) told: Arc<Records>,
    told_version: Option<u64>,
    /// The thread that writes is busy until then.
    scribe_at: u64,
    tick_at: Option<u64>,
    /// Ticks in a row that came due at once.
    hurry: u32,
    stopping: Option<i64>,
}

impl Sim {
    pub(crate) fn start(&mut self) {
        if self.host.is_some() {
            // the lock is held: a second one says so and ends
            return;
        }
        self.lives += 1;
        let life = self.lives;
        let start = Start {
            boot_id: self.kernel.boot_id(),
            boot_began: self.kernel.boot_began,
            pid: 99,
            version: "sim".into(),
            store: PathBuf::from("/store"),
            sockets: Vec::new(),
            default_socket: PathBuf::from(DEFAULT_SOCKET),
            grace: if self.is(Mutant::KeepsLeases) { u64::MAX / 4 } else { 60 },
            ack_grace: 20,
            last_stop: self.disk.last_stop.take(),
            policies: self.policies.unwrap_or_default(),
        };
        self.oracle.last_stop = start.last_stop.clone();
        self.note(|| format!("supervisor {life} starts under {}", start.boot_id));
        self.host = Some(Host {
            machine: Supervisor::new(start),
            life,
            watching: BTreeSet::new(),
            seen: BTreeSet::new(),
            told: Arc::default(),
            told_version: None,
            scribe_at: self.now,
            tick_at: None,
            hurry: 0,
            stopping: None,
        });
        if self.policies.is_some() {
            self.tell_book(life, false);
        }
        for socket in self.files.clone() {
            self.after(0, 3 * MS, Event::Look { life, socket });
        }
        self.store_changed();
    }

    pub(crate) fn stop(&mut self) {
        let utc = self.utc();
        if let Some(host) = &mut self.host {
            host.stopping.get_or_insert(utc);
            let life = host.life;
            self.note(|| format!("supervisor {life} is told to end"));
            self.feed(life, Input::Stop);
        }
    }

    /// The supervisor is gone at once; its clients find their pipes closed.
    pub(crate) fn crash(&mut self) {
        let Some(host) = self.host.take() else { return };
        self.note(|| format!("supervisor {} crashes", host.life));
        self.leave_all(host.life);
    }

    fn leave_all(&mut self, life: u32) {
        for conn in 0..self.conns.len() {
            if self.conns[conn].life == life && !std::mem::replace(&mut self.conns[conn].closed, true) {
                self.after(100, 5 * MS, Event::Close { conn });
            }
        }
    }

    /// The store was changed by somebody else: the supervisor sees it by its watch.
    pub(crate) fn store_changed(&mut self) {
        let delay = self.dice.between(200, 5 * MS);
        let Some(host) = &self.host else { return };
        let (life, at) = (host.life, (self.now + delay).max(host.scribe_at));
        self.at(at, Event::Read { life });
    }

    pub(crate) fn socket_changed(&mut self, socket: &Path) {
        if let Some(life) = self.host.as_ref().map(|host| host.life) {
            self.after(100, 2 * MS, Event::Look { life, socket: socket.to_owned() });
        }
    }

    pub(crate) fn tell_death(&mut self, process: &ProcessId) {
        let Some(host) = &self.host else { return };
        if host.watching.contains(process) {
            let life = host.life;
            self.after(50, 2 * MS, feed(life, Input::Died(process.clone())));
        }
    }

    pub(crate) fn said(&mut self, conn: usize, event: LinkEvent) {
        if self.conns[conn].ended {
            return;
        }
        if let LinkEvent::Ended { .. } | LinkEvent::Failed(_) = event {
            self.conns[conn].ended = true;
        }
        let Conn { life, socket, link, server, .. } = &self.conns[conn];
        let (life, socket, link, server) = (*life, socket.clone(), *link, *server);
        if let (LinkEvent::Ended { exit }, Some(server)) = (&event, server)
            && self.host.as_ref().is_some_and(|host| host.life == life)
            && !self.conns[conn].closed
        {
            self.oracle.last_words.insert(server, (life, exit.clone(), self.now));
        }
        if let (LinkEvent::Attached(_), Some(server)) = (&event, server) {
            self.oracle.last_words.remove(&server);
        }
        if let LinkEvent::Mark(ait::world::mark::Mark::Client { client, .. }) = &event {
            self.oracle.announced.insert(client.to_string());
        }
        self.feed(life, Input::Link { socket, link, event });
    }

    pub(crate) fn feed(&mut self, life: u32, input: Input) {
        let now = Now::at(Duration::from_micros(self.now), self.utc());
        if self.trace.is_some() && !matches!(input, Input::Tick) {
            let text = brief(&input);
            self.note(|| format!("  <- {text}"));
        }
        let Some(host) = self.host.as_mut().filter(|host| host.life == life) else { return };
        host.machine.handle(now, input);
        let mut actions = Vec::new();
        while let Some(action) = host.machine.next_action() {
            actions.push(action);
        }
        for action in actions {
            if !self.calm && self.dice.below(3_000) == 0 {
                self.crash();
                self.after(5 * MS, 3 * SECOND, Event::Start);
                return;
            }
            if self.host.is_none() {
                return;
            }
            if self.trace.is_some() && !matches!(action, Action::Publish) {
                let text = format!("{action:?}");
                self.note(|| format!("  -> {}", text.chars().take(400).collect::<String>()));
            }
            for action in self.misbehave(action) {
                self.perform(life, action);
            }
        }
        self.arm(life);
    }

    /// Sets the clock for the supervisor's deadline.
    fn arm(&mut self, life: u32) {
        let polls = self.is(Mutant::Polls);
        let Some(host) = self.host.as_mut().filter(|host| host.life == life) else { return };
        let mut deadline =
            host.machine.deadline().map(|at| u64::try_from(at.as_micros()).unwrap_or(u64::MAX));
        if polls {
            deadline = deadline.or(Some(self.now + SECOND));
        }
        let at = deadline.map(|at| at.max(self.now));
        if at == Some(self.now) {
            host.hurry += 1;
            if host.hurry > 50 {
                self.fail("sleeps", format!("the deadline {deadline:?} stays in the past at {}", self.now));
                return;
            }
        } else {
            host.hurry = 0;
        }
        if at != host.tick_at || at == Some(self.now) {
            host.tick_at = at;
            if let Some(at) = at {
                self.at(at, Event::Tick { life });
            }
        }
    }

    pub(crate) fn tick(&mut self, life: u32) {
        let Some(host) = self.host.as_mut().filter(|host| host.life == life) else { return };
        if host.tick_at.is_none_or(|at| at > self.now) {
            // another deadline took its place
            return;
        }
        host.tick_at = None;
        self.feed(life, Input::Tick);
    }

    pub(crate) fn perform(&mut self, life: u32, action: Action) {
        match action {
            Action::Attach { socket, link } => self.begin_attach(life, socket, link),
            Action::Detach { socket, link } => self.detach(&socket, link),
            Action::Ask { socket, link, tag, ask } => self.ask(&socket, link, tag, ask),
            Action::Watch(process) => self.after(20, MS, Event::Watch { life, process }),
            Action::Unwatch(process) => {
                if let Some(host) = &mut self.host {
                    host.watching.remove(&process);
                }
            }
            Action::Examine { record, pid, .. } => {
                self.after(200, 4 * MS, Event::Examine { life, record, pid });
            }
            Action::Write { ticket, changes } => {
                self.check_emitted(&changes);
                let at = self.scribe(300, 3 * MS);
                self.at(at, Event::Write { life, ticket, changes });
            }
            Action::KeepScreen { socket, pane, .. } => {
                self.after(MS, 4 * MS, feed(life, Input::ScreenKept { socket, pane }));
            }
            Action::Checkpoint { record, .. } => {
                self.after(MS, 5 * MS, feed(life, Input::Checkpointed { record }));
            }
            Action::Recall { since } => {
                let at = self.scribe(200, 5 * MS);
                self.at(at, Event::Recall { life, since });
            }
            Action::RemakeSocket(process) => self.remake_socket(&process),
            Action::Recover { records } => self.recover(Some(life), records),
            // no turn is seen
            Action::KeepPlan(_)
            | Action::KeepSaid(_)
            | Action::NoteTurn { .. }
            | Action::Notify { .. }
            | Action::Publish => {}
            Action::Ended => self.ended(),
        }
    }

    /// When the thread that writes gets to the next job.
    fn scribe(&mut self, low: u64, high: u64) -> u64 {
        let delay = self.dice.between(low, high);
        let Some(host) = &mut self.host else { return self.now };
        host.scribe_at = host.scribe_at.max(self.now) + delay;
        host.scribe_at
    }

    fn begin_attach(&mut self, life: u32, socket: PathBuf, link: LinkId) {
        let open = |conn: &&Conn| conn.life == life && conn.socket == socket && !conn.ended;
        if let Some(other) = self.conns.iter().find(open) {
            let text = format!("{:?} on {} while {:?} is there", link, socket.display(), other.link);
            self.fail("one client", text);
            return;
        }
        let conn = self.conns.len();
        self.conns.push(Conn {
            life,
            socket,
            link,
            server: None,
            open: false,
            closed: false,
            ended: false,
            out_at: self.now,
            in_at: self.now,
            kills: 0,
            moves: 0,
            partial: Default::default(),
        });
        self.after(2 * MS, 12 * MS, Event::Arrive { conn });
    }

    fn conn(&self, socket: &Path, link: LinkId) -> Option<usize> {
        let life = self.host.as_ref()?.life;
        self.conns.iter().rposition(|c| c.life == life && c.link == link && c.socket == socket)
    }

    fn detach(&mut self, socket: &Path, link: LinkId) {
        let Some(conn) = self.conn(socket, link) else { return };
        if std::mem::replace(&mut self.conns[conn].closed, true) {
            return;
        }
        if self.conns[conn].server.is_none() {
            self.say(conn, LinkEvent::Ended { exit: None });
        } else {
            let at = (self.now + self.dice.between(50, 2 * MS)).max(self.conns[conn].in_at + 1);
            self.at(at, Event::Close { conn });
        }
    }

    fn ask(&mut self, socket: &Path, link: LinkId, tag: Tag, ask: Ask) {
        let Some(conn) = self.conn(socket, link) else { return };
        if self.conns[conn].ended || self.conns[conn].closed {
            return;
        }
        match &ask {
            Ask::KillDead { .. } => self.conns[conn].kills += 1,
            Ask::ExpelWindow { .. } | Ask::ExpelPane { .. } | Ask::ExpelClient { .. } => {
                self.conns[conn].moves += 1;
            }
            _ => {}
        }
        if self.conns[conn].kills > 0 && self.conns[conn].moves > 0 || self.conns[conn].kills > 1 {
            self.fail("one at a time", format!("{ask:?} while another change is not answered"));
        }
        let mut at = (self.now + self.dice.between(50, 1_500)).max(self.conns[conn].in_at + 1);
        // a listing is three commands, one after the other, and things happen in between
        let parts = if ask == Ask::Listing { 3 } else { 1 };
        for part in 0..parts {
            self.at(at, Event::Serve { conn, tag, ask: ask.clone(), part });
            self.conns[conn].in_at = at;
            at += if self.dice.percent(10) { self.dice.between(1, 3 * MS) } else { 10 };
        }
    }

    pub(crate) fn watch(&mut self, life: u32, process: ProcessId) {
        let lives = self.kernel.lives(&process);
        let Some(host) = self.host.as_mut().filter(|host| host.life == life) else { return };
        let input = if lives {
            host.watching.insert(process.clone());
            host.seen.insert(process.clone());
            Input::Watching(process)
        } else {
            Input::Died(process)
        };
        self.feed(life, input);
    }

    pub(crate) fn examine(&mut self, life: u32, record: RecordId, pid: i32) {
        let found = self.kernel.living.get(&pid).cloned().and_then(|process| {
            let server = process.terminal.map(|(server, _)| &self.servers[server]);
            let server = server
                .filter(|server| server.alive)
                .map(|server| FoundServer { socket: server.socket.clone(), process: server.id.clone() });
            let (agent, shell) = match process.what {
                What::Agent(_) => (process.id.clone(), None),
                What::Shell => {
                    let below = self.kernel.living.values().find(|other| {
                        other.terminal == process.terminal && matches!(other.what, What::Agent(_))
                    })?;
                    (below.id.clone(), Some(ShellHost { argv: vec!["sh".into()], cwd: String::new() }))
                }
                What::Tmux(_) | What::Tool | What::Viewer | What::Coordinator(_) | What::Stranger => {
                    return None;
                }
            };
            let argv = vec!["agent".to_owned()];
            Some(Examined { pane_process: process.id, agent, shell, server, argv, cwd: None })
        });
        self.feed(life, Input::Examined { record, pid, found });
    }

    pub(crate) fn read(&mut self, life: u32) {
        let (version, view) = (self.disk.version, self.disk.view());
        let Some(host) = self.host.as_mut().filter(|host| host.life == life) else { return };
        if host.told_version == Some(version) {
            return;
        }
        host.told_version = Some(version);
        host.told = Arc::clone(&view.records);
        self.feed(life, Input::Store(Ok(view)));
    }

    pub(crate) fn recall(&mut self, life: u32, since: i64) {
        let earlier = |line: &crate::disk::Line| EndedEarlier {
            record: Box::new(line.record.clone()),
            at: line.at,
            evidence: line.evidence.clone(),
            provisional: line.provisional,
        };
        let mut ends: Vec<EndedEarlier> = self.disk.ends_since(since).into_iter().map(earlier).collect();
        match self.mutant {
            Some(Mutant::ForgetsEnds) => ends.clear(),
            Some(Mutant::ClaimsAll) => {
                let utc = self.utc();
                ends = self.disk.ends_since(0).into_iter().map(earlier).collect();
                for end in &mut ends {
                    (end.at, end.provisional) = (utc, true);
                }
            }
            _ => {}
        }
        self.feed(life, Input::Recalled(ends));
    }

    pub(crate) fn write(&mut self, life: u32, ticket: Ticket, changes: Vec<(RecordId, Verb)>) {
        let here = self.host.as_ref().is_some_and(|host| host.life == life);
        // a crash may have come before the write, or between the archive and the store
        let torn = !here && self.dice.percent(40);
        if !here && self.dice.percent(50) {
            return;
        }
        if here && (self.disk.full || (!self.calm && self.dice.percent(3))) {
            let result = Err("the disk is full".to_owned());
            self.after(50, 300, feed(life, Input::Written { ticket, result }));
            return;
        }
        let steps: Vec<Step> = changes.into_iter().map(|(id, verb)| (Some(id), verb)).collect();
        let results = self.write_steps(&steps, torn);
        if torn || !here {
            return;
        }
        let view = StoreView { records: Arc::clone(&self.disk.records), trouble: None };
        let version = self.disk.version;
        let at = self.scribe(50, 400);
        if let Some(host) = &mut self.host {
            host.told_version = Some(version);
            host.told = Arc::clone(&view.records);
        }
        self.at(at, feed(life, Input::Written { ticket, result: Ok(Written { results, view }) }));
    }

    fn remake_socket(&mut self, process: &ProcessId) {
        if let Some(What::Tmux(server)) = self.kernel.process(process).map(|process| process.what) {
            let socket = self.servers[server].socket.clone();
            self.listening.insert(socket.clone(), server);
            self.files.insert(socket.clone());
            self.socket_changed(&socket);
        }
    }

    fn ended(&mut self) {
        let Some(host) = self.host.take() else { return };
        self.note(|| format!("supervisor {} has ended", host.life));
        let at = host.stopping.unwrap_or_else(|| self.utc());
        self.disk.last_stop = Some(LastStop { boot_id: self.kernel.boot_id(), at });
        self.leave_all(host.life);
    }
}

pub(crate) fn feed(life: u32, input: Input) -> Event {
    Event::Feed { life, input: Box::new(input) }
}

/// An input in a line of the trace.
fn brief(input: &Input) -> String {
    match input {
        Input::Store(Ok(view)) => format!("Store with {} records", view.records.len()),
        Input::Written { ticket, result: Ok(written) } => {
            format!("Written {ticket:?} {:?}", written.results)
        }
        Input::Link { link, event: LinkEvent::Answer { tag, answer }, .. } => {
            let text = format!("{answer:?}");
            format!("{link:?} {tag:?} {}", text.chars().take(300).collect::<String>())
        }
        other => format!("{other:?}").chars().take(300).collect(),
    }
}
