//! The process that brings lost agents back, step by step as `lifecycle::recover` goes: what cannot come back is told
//! apart, who outlived the server is ended, stand-ins are placed, and a fleet of restores takes their panes. Between any two
//! steps it may be killed or stopped, and whatever it works with may go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use ait::coordinator::{End, Outcome};
use ait::record::{Location, Ours, PaneId, ProcessId, Record, RecordId, Stamp, State, Verb, WindowId};
use ait::supervisor::recovery::{Attempt, AttemptEnd, Book, Choice, choose};
use ait::supervisor::{Action, Input};

use crate::driver::feed;
use crate::kernel::{How, What};
use crate::mutants::Mutant;
use crate::tmux::{Fall, Tmux};
use crate::world::{Event, MS, SECOND, Sim};

/// Where it is.
#[derive(Debug)]
enum Stage {
    /// Another one works: one at a time.
    Waits,
    /// The records whose agents may have outlived their server, and how often the first of them was told to end.
    SeesOut(VecDeque<RecordId>, u32),
    /// The windows still to be put back.
    Places(VecDeque<Window>),
    /// Its restores are under way.
    Listens,
}

/// A window of records that were in one.
#[derive(Clone, Debug)]
struct Window {
    socket: PathBuf,
    /// Those that have no pane yet.
    wanted: VecDeque<RecordId>,
    /// Those that have: server, pane and its process.
    made: Vec<(RecordId, usize, u32, ProcessId)>,
}

/// One such process.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The life of the supervisor that hears its end; none: somebody typed `ait recover`.
    life: Option<u32>,
    id: ProcessId,
    pub(crate) alive: bool,
    /// It is stopped, and whether a step waits for it to go on.
    paused: Option<bool>,
    stage: Stage,
    records: Vec<RecordId>,
    /// Those that can come back, in their order.
    ready: Vec<RecordId>,
    /// Those whose restore has not said its end.
    left: BTreeSet<RecordId>,
    /// When each was lost, as it was read.
    lost: BTreeMap<RecordId, Stamp>,
    book: Book,
}

/// Tries of one loss, as they were in truth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tries {
    /// By anybody, and by a supervisor's process.
    pub(crate) begun: u32,
    pub(crate) unasked: u32,
    /// One of them was over without success.
    pub(crate) failed: bool,
}

impl Sim {
    /// A process is to bring these back.
    pub(crate) fn recover(&mut self, life: Option<u32>, records: Vec<RecordId>) {
        self.check_wanted(life, &records);
        if self.kernel.living.len() + 40 > self.kernel.pids.len() {
            // no process can be started
            if let Some(life) = life {
                self.tell_book(life, true);
            }
            return;
        }
        let at = self.recoveries.len();
        let id = self.kernel.spawn(What::Coordinator(at), None);
        self.note(|| format!("recovery {at} starts as {id:?} for {records:?}"));
        self.recoveries.push(Recovery {
            life,
            id,
            alive: true,
            paused: None,
            stage: Stage::Waits,
            records,
            ready: Vec::new(),
            left: BTreeSet::new(),
            lost: BTreeMap::new(),
            book: Book::new(),
        });
        self.after(5 * MS, 30 * MS, Event::Recovery { at });
    }

    /// A supervisor reads the book.
    pub(crate) fn tell_book(&mut self, life: u32, ended: bool) {
        let book = if self.is(Mutant::ForgetsBook) { Book::new() } else { self.disk.book.clone() };
        self.after(MS, 8 * MS, feed(life, Input::Book { book, ended }));
    }

    /// One step of it.
    pub(crate) fn recovery_step(&mut self, at: usize) {
        let recovery = &mut self.recoveries[at];
        if !recovery.alive {
            return;
        }
        if let Some(waits) = &mut recovery.paused {
            *waits = true;
            return;
        }
        match std::mem::replace(&mut recovery.stage, Stage::Waits) {
            Stage::Waits => self.take_turn(at),
            Stage::SeesOut(queue, told) => self.see_out(at, queue, told),
            Stage::Places(windows) => self.place(at, windows),
            Stage::Listens => self.recoveries[at].stage = Stage::Listens,
        }
        self.meddle(at);
    }

    fn next(&mut self, at: usize, stage: Stage, low: u64, high: u64) {
        self.recoveries[at].stage = stage;
        self.after(low, high, Event::Recovery { at });
    }

    /// It gets the lock, and begins.
    fn take_turn(&mut self, at: usize) {
        let busy = self.recoveries.iter().any(|other| other.alive && !matches!(other.stage, Stage::Waits));
        if busy {
            return self.next(at, Stage::Waits, 50 * MS, SECOND);
        }
        self.recoveries[at].book = self.disk.book.clone();
        let mut lost = VecDeque::new();
        for id in self.recoveries[at].records.clone() {
            let record = self.disk.records.get(id).cloned();
            match record {
                Some(record)
                    if self.is_unheld(&record)
                        && record.state.lost().is_some()
                        && self.is_still_wanted(at, &record) =>
                {
                    self.begin_attempt(at, &record);
                    lost.push_back(id);
                }
                Some(_) | None => {}
            }
        }
        self.keep_book(at);
        self.next(at, Stage::SeesOut(lost, 0), MS, 20 * MS);
    }

    /// Whether it comes back by itself, where nobody asked.
    fn is_still_wanted(&self, at: usize, record: &Record) -> bool {
        let asked = self.recoveries[at].life.is_none() || self.is(Mutant::ForgetsBook);
        let before = self.recoveries[at].book.get(&record.id);
        asked || self.policies.and_then(|policies| choose(record, policies, before)) == Some(Choice::Recover)
    }

    fn begin_attempt(&mut self, at: usize, record: &Record) {
        let Some(lost) = record.state.lost() else { return };
        self.recoveries[at].lost.insert(record.id, lost.at);
        let by_supervisor = self.recoveries[at].life.is_some();
        self.check_tries(record.id, lost.at, by_supervisor);
        let now = Stamp::from_unix(self.utc());
        let book = &mut self.recoveries[at].book;
        let before = book.get(&record.id).filter(|attempt| attempt.lost_at == lost.at);
        let attempt = before.cloned().map_or_else(|| Attempt::first(lost.at), Attempt::again);
        book.insert(record.id, Attempt { at: now, ..attempt });
    }

    fn keep_book(&mut self, at: usize) {
        if !self.disk.full {
            self.disk.book.clone_from(&self.recoveries[at].book);
        }
    }

    /// One record's recovery is over; `known`: that is written down.
    fn end_recovery_of(&mut self, at: usize, id: RecordId, known: bool, outcome: &Outcome) {
        self.note(|| format!("recovery {at} of {id} ends: {:?} {}", outcome.end, outcome.word));
        let now = Stamp::from_unix(self.utc());
        let Some(attempt) = self.recoveries[at].book.get_mut(&id).filter(|_| known) else { return };
        attempt.at = now;
        match outcome.end {
            End::Done => attempt.end = AttemptEnd::Recovered,
            End::Refused | End::Failed
                if matches!(outcome.word.as_str(), "lease_held" | "stopped" | "not_begun") => {}
            End::Refused | End::Failed => attempt.end = AttemptEnd::Failed,
            End::Planned | End::Left => {}
        }
        let (lost_at, failed) = (attempt.lost_at, attempt.end == AttemptEnd::Failed);
        attempt.why.clone_from(&outcome.word);
        self.oracle.tries.entry((id, lost_at)).or_default().failed |= failed;
        self.keep_book(at);
    }

    // --- who outlived the server

    fn see_out(&mut self, at: usize, mut queue: VecDeque<RecordId>, told: u32) {
        let Some(id) = queue.front().copied() else {
            let windows = self.windows_of(&self.recoveries[at].ready.clone());
            return self.next(at, Stage::Places(windows), MS, 20 * MS);
        };
        let agent = self.disk.records.get(id).and_then(|record| self.outlived_by(record));
        let agent = agent.filter(|agent| !agent.started.is_empty());
        let alive = agent.filter(|agent| self.kernel.lives(agent) && !self.is(Mutant::ForgetsOutlived));
        let refused = (told == 0 && self.dice.percent(2)).then_some("transcript_missing");
        let refused = refused.or((alive.is_some() && told > 2).then_some("survivor"));
        match (refused, alive) {
            (Some(word), _) => {
                queue.pop_front();
                self.end_recovery_of(at, id, true, &Outcome::new(End::Refused, word, ""));
                self.next(at, Stage::SeesOut(queue, 0), MS, 20 * MS);
            }
            (None, None) => {
                queue.pop_front();
                self.recoveries[at].ready.push(id);
                self.next(at, Stage::SeesOut(queue, 0), MS, 20 * MS);
            }
            // most are on their way
            (None, Some(_)) if told == 0 => self.next(at, Stage::SeesOut(queue, 1), SECOND, SECOND),
            (None, Some(agent)) => {
                self.check_outlived(id, &agent);
                let below: Vec<ProcessId> = self.kernel.living.values().map(|one| one.id.clone()).collect();
                let family = below.into_iter().filter(|one| self.is_below(one, &agent));
                let signal = if told == 1 { 15 } else { 9 };
                for process in family.chain([agent.clone()]).collect::<Vec<_>>() {
                    self.signal(&process, signal);
                }
                self.next(at, Stage::SeesOut(queue, told + 1), 5 * SECOND, 5 * SECOND);
            }
        }
    }

    // --- stand-ins

    fn windows_of(&self, ready: &[RecordId]) -> VecDeque<Window> {
        let mut windows: BTreeMap<(PathBuf, i32, Option<u32>), Window> = BTreeMap::new();
        for id in ready {
            let Some(record) = self.disk.records.get(*id) else { continue };
            let Some(epoch) = &record.ait.server else { continue };
            let socket = PathBuf::from(&epoch.socket);
            let key = (socket.clone(), epoch.pid, record.ait.window_id.map(|window| window.0));
            let empty = Window { socket, wanted: VecDeque::new(), made: Vec::new() };
            windows.entry(key).or_insert(empty).wanted.push_back(*id);
        }
        windows.into_values().collect()
    }

    fn place(&mut self, at: usize, mut windows: VecDeque<Window>) {
        let Some(mut window) = windows.pop_front() else { return self.begin_restores(at) };
        let record = window.wanted.front().and_then(|id| self.disk.records.get(*id).cloned());
        let Some(id) = window.wanted.pop_front() else {
            if !self.sign(at, &window) {
                self.give_up(at, &window, &mut windows);
            }
            return self.next(at, Stage::Places(windows), MS, 20 * MS);
        };
        let made = record.and_then(|record| self.stand_in_for(&window, &record));
        match made {
            Some((server, pane, process)) => {
                window.made.push((id, server, pane, process));
                windows.push_front(window);
            }
            None => {
                window.wanted.push_front(id);
                self.give_up(at, &window, &mut windows);
            }
        }
        self.next(at, Stage::Places(windows), MS, 20 * MS);
    }

    /// Nothing more can be put on the socket of a window now: it is tried again.
    fn give_up(&mut self, at: usize, window: &Window, windows: &mut VecDeque<Window>) {
        let gone: Vec<RecordId> = self.recoveries[at]
            .ready
            .iter()
            .copied()
            .filter(|id| {
                let record = self.disk.records.get(*id);
                let epoch = record.and_then(|record| record.ait.server.as_ref());
                epoch.is_some_and(|epoch| std::path::Path::new(&epoch.socket) == window.socket)
            })
            .collect();
        windows.retain(|one| one.socket != window.socket);
        self.recoveries[at].ready.retain(|id| !gone.contains(id));
        for id in gone {
            self.end_recovery_of(at, id, false, &Outcome::new(End::Failed, "not_placed", ""));
        }
    }

    /// A pane with the record's stand-in: one that an earlier try left, or a new one where the record was.
    fn stand_in_for(&mut self, window: &Window, record: &Record) -> Option<(usize, u32, ProcessId)> {
        let socket = &window.socket;
        let listener = self.listening.get(socket).copied().filter(|server| {
            self.files.contains(socket) && self.servers[*server].alive && !self.servers[*server].exiting
        });
        let server = match listener {
            Some(server) if self.servers[server].paused => return None,
            Some(server) => server,
            None if !window.made.is_empty() => return None,
            None => {
                let number = self.servers.len();
                let id = self.kernel.spawn(What::Tmux(number), None);
                self.servers.push(Tmux::new(socket.clone(), id, self.kernel.boot, self.utc()));
                self.note(|| format!("server {number} is started on {} by a recovery", socket.display()));
                self.listening.insert(socket.clone(), number);
                self.files.insert(socket.clone());
                self.socket_changed(socket);
                number
            }
        };
        if window.made.iter().any(|made| made.1 != server) {
            return None;
        }
        let twice = self.is(Mutant::PlacesTwice);
        let stray = self.kernel.living.values().find(|one| one.stands_for == Some(record.id) && !twice);
        if let Some((on, pane)) = stray.and_then(|one| one.terminal)
            && on == server
        {
            let process = self.servers[server].panes.get(&pane)?.process.clone();
            return Some((server, pane, process));
        }
        let ids: Vec<String> = window
            .wanted
            .iter()
            .chain(window.made.iter().map(|made| &made.0))
            .map(ToString::to_string)
            .collect();
        let tmux = &self.servers[server];
        let standing = tmux.panes.iter().rfind(|(pane, there)| {
            let made = window.made.iter().any(|made| made.2 == **pane);
            !there.dead && (made || ids.contains(&there.stamp) || ids.contains(&there.frozen))
        });
        let beside = standing.and_then(|(pane, _)| tmux.window_of(*pane));
        let session = tmux.sessions.iter().find(|(_, session)| session.name == record.session);
        let session = session.map(|(session, _)| *session);
        let pane = tmux.next_pane();
        let process = self.kernel.spawn(What::Viewer, Some((server, pane)));
        if let Some(known) = self.kernel.living.get_mut(&process.pid) {
            known.stands_for = Some(record.id);
        }
        let tmux = &mut self.servers[server];
        let index = record.ait.window_index.unwrap_or(0).max(0);
        let made = match (beside, session) {
            (Some(window), _) => tmux.split(window, process.clone()),
            (None, Some(session)) => {
                let made = tmux.add_window_at(session, index, &record.window, process.clone());
                let made = made.or_else(|| tmux.add_window(session, &record.window, process.clone()));
                made.map(|made| made.1)
            }
            (None, None) => {
                let name = if record.session.is_empty() { "agents" } else { &record.session };
                let session = tmux.add_session(name);
                let made = tmux.add_window_at(session, index, &record.window, process.clone());
                made.map(|made| made.1)
            }
        };
        self.note(|| format!("a stand-in of {} is {process:?} in {made:?} of server {server}", record.id));
        let pane = made?;
        self.after(5 * MS, 800 * MS, Event::Drawn { server, pane, process: process.clone() });
        Some((server, pane, process))
    }

    /// Stamps the stand-ins of a window and writes where they are, if the store can be written.
    fn sign(&mut self, recovery: usize, window: &Window) -> bool {
        let owner = self.recoveries[recovery].id.clone();
        let was = self.recoveries[recovery].lost.clone();
        let mut taken = Vec::new();
        for (id, server, pane, process) in window.made.clone() {
            let tmux = &mut self.servers[server];
            let up = tmux.alive && !tmux.exiting && !tmux.paused;
            let Some(there) = tmux.panes.get_mut(&pane).filter(|there| up && there.process == process) else {
                continue;
            };
            (there.ready, there.own, there.frozen) = (false, Some(true), id.to_string());
            tmux.stirred = true;
            self.after(MS, 800 * MS, Event::Drawn { server, pane, process: process.clone() });
            if self.disk.full {
                continue;
            }
            let index = self.servers[server].window_of(pane);
            let ours = Ours {
                server: Some(self.epoch_of(server)),
                window_id: index.map(WindowId),
                window_index: index
                    .and_then(|at| self.servers[server].places(at).first().map(|place| place.1)),
                ..Ours::default()
            };
            let at = Location::pane(PaneId(pane), process);
            let lost = self.disk.records.get(id).and_then(|record| record.state.lost()).map(|lost| lost.at);
            if lost.is_none() || lost != was.get(&id).copied() {
                taken.push(id);
                continue;
            }
            // one write, as nothing comes between
            let claim = self.write_steps_of_others(&[(Some(id), Verb::LeaseTake { owner: owner.clone() })]);
            let Some(Ok((_, outcome))) = claim.into_iter().next() else {
                taken.push(id);
                continue;
            };
            let Some(nonce) = outcome.nonce() else { continue };
            let known = Verb::Enrich { at: at.clone(), ours: Box::new(ours), lost: None, replace: true };
            for verb in [Verb::StandinRespawned { nonce, at }, known] {
                self.write_steps_of_others(&[(Some(id), verb)]);
            }
        }
        if self.disk.full {
            return false;
        }
        for (id, server, pane, process) in &window.made {
            let record = self.disk.records.get(*id);
            let own = record.is_some_and(|record| {
                self.server_of(record) == Some(*server)
                    && record.location.pane_id().is_some_and(|own| own.0 == *pane)
            });
            let there = self.servers[*server]
                .panes
                .get(pane)
                .is_some_and(|there| there.process == *process && there.frozen == id.to_string());
            if taken.contains(id) && there && !own {
                self.note(|| format!("the stand-in of {id} in %{pane} is closed: another has it"));
                self.remove_pane(*server, *pane);
            }
        }
        for (id, server, pane, _) in &window.made {
            // one that had died when it was looked for, and was put back since
            let others = self.servers[*server].panes.iter().filter(|(other, there)| {
                let viewer = self.kernel.process(&there.process).is_some_and(|one| one.what == What::Viewer);
                *other != pane && there.frozen == id.to_string() && (there.dead || viewer)
            });
            let others: Vec<u32> = others.map(|(other, _)| *other).collect();
            let clears = !taken.contains(id) && !self.is(Mutant::PlacesTwice);
            for other in others.into_iter().filter(|_| clears) {
                self.note(|| format!("%{other} stands in for {id} as well: it is closed"));
                self.remove_pane(*server, other);
            }
        }
        self.recoveries[recovery].ready.retain(|id| !taken.contains(id));
        self.store_changed();
        true
    }

    // --- restores

    fn begin_restores(&mut self, at: usize) {
        let ready = self.recoveries[at].ready.clone();
        if ready.is_empty() {
            return self.end_recovery(at, How::Exit(0));
        }
        self.recoveries[at].left = ready.iter().copied().collect();
        self.recoveries[at].stage = Stage::Listens;
        self.launch_fleet(Some(at), ready);
    }

    /// A restore of it says its end.
    pub(crate) fn recovery_hears(&mut self, at: usize, id: RecordId, outcome: &Outcome) {
        if self.recoveries[at].alive {
            let known = self.recoveries[at].left.remove(&id);
            self.end_recovery_of(at, id, known, outcome);
        }
    }

    /// Its restores' process is gone.
    pub(crate) fn recovery_is_left(&mut self, at: usize) {
        if self.recoveries[at].alive {
            for id in std::mem::take(&mut self.recoveries[at].left) {
                self.end_recovery_of(at, id, false, &Outcome::new(End::Left, "cut_short", ""));
            }
            self.end_recovery(at, How::Exit(0));
        }
    }

    fn end_recovery(&mut self, at: usize, how: How) {
        if std::mem::replace(&mut self.recoveries[at].alive, false) {
            self.note(|| format!("recovery {at} is over: {how:?}"));
            let (id, life) = (self.recoveries[at].id.clone(), self.recoveries[at].life);
            self.end_process(&id, how);
            if let Some(life) = life {
                self.tell_book(life, true);
            }
        }
    }

    /// What may happen behind a step.
    fn meddle(&mut self, at: usize) {
        if self.calm || !self.dice.percent(8) {
            return;
        }
        match self.dice.below(12) {
            0..4 => self.end_recovery(at, How::Signal(9)),
            4 => {
                self.note(|| format!("recovery {at} is stopped by SIGSTOP"));
                self.recoveries[at].paused.get_or_insert(false);
                self.after(10 * MS, 90 * SECOND, Event::RecoveryGoesOn { at });
            }
            5..7 => {
                self.crash();
                self.after(5 * MS, 3 * SECOND, Event::Start);
            }
            7..10 => {
                if let Some(server) = self.some_server() {
                    self.fall(server, Fall::Crashed);
                }
            }
            10 => {
                if let Some(record) = self.recoveries[at].records.first().copied() {
                    let what = self.dice.between(9, 15);
                    self.disturb(record, what);
                }
            }
            _ => {
                let which = usize::try_from(self.dice.below(2)).unwrap_or_default();
                self.start_server(which);
            }
        }
    }

    /// SIGCONT.
    pub(crate) fn recovery_goes_on(&mut self, at: usize) {
        if self.recoveries[at].paused.take() == Some(true) {
            self.after(0, MS, Event::Recovery { at });
        }
    }

    /// Somebody types `ait recover`.
    pub(crate) fn recover_by_hand(&mut self) {
        let lost = |record: &&Record| matches!(record.state, State::Frozen { lost: Some(_) });
        let records: Vec<RecordId> = self.disk.records.iter().filter(lost).map(|record| record.id).collect();
        if !records.is_empty() {
            self.recover(None, records);
        }
    }

    /// What a supervisor does instead of bringing these back.
    pub(crate) fn misrecover(&self, mut records: Vec<RecordId>) -> Vec<Action> {
        match self.mutant {
            Some(Mutant::NeverRecovers) => return Vec::new(),
            Some(Mutant::RecoversAll) => {
                let lost = self.disk.records.iter().filter(|record| record.state.lost().is_some());
                records.extend(lost.map(|record| record.id));
            }
            Some(_) | None => {}
        }
        vec![Action::Recover { records }]
    }
}
