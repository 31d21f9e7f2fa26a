//! What follows for the records: who is watched, who is attached, what is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::judge::{Dying, Verdict, judge};
use super::{
    Action, Ask, EndedEarlier, Happening, LAST_ENDS, Left, Life, Link, LinkId, Now, Recall, RecordId, Stamp,
    StateName, Supervisor, Ticket, Told, WRITE_PAUSE, Watched, Writing, Written, shutdown,
};
use crate::record::{
    BootTime, Follow, Host, Location, LossCause, Ours, PaneId, ProcessId, Record, ServerEpoch, State,
    UNNAMED, Verb, WindowId,
};
use crate::supervisor::input::Examined;
use crate::world::Place;

/// Layout changes come in bursts while somebody drags a border: they wait this long.
const LAYOUT_PAUSE: Duration = Duration::from_millis(500);

/// Deaths at once up to which each pane is asked about alone.
pub(super) const FEW: usize = 8;

/// A change and what is told of it.
struct Proposal {
    verb: Verb,
    told: Told,
}

impl Supervisor {
    /// Makes the acquaintance of every server a record names.
    pub(super) fn meet_servers(&mut self) {
        let sockets: BTreeSet<PathBuf> = self
            .records()
            .filter_map(|record| Some((record, record.ait.server.as_ref()?)))
            .filter(|(record, epoch)| {
                // a restore of an earlier boot may have gone to a server of this one
                let sought = matches!(record.state, State::Restoring { .. });
                sought || epoch.boot_id.is_empty() || epoch.boot_id == self.start.boot_id
            })
            .map(|(_, epoch)| PathBuf::from(&epoch.socket))
            .chain(self.default_is_sought().then(|| self.start.default_socket.clone()))
            .collect();
        for socket in sockets {
            self.servers.entry(socket).or_default();
        }
    }

    /// Watches the processes that matter now, and no others.
    pub(super) fn watch(&mut self) {
        let mut wanted: BTreeSet<ProcessId> =
            self.servers.values().filter_map(|server| server.speaking_of().cloned()).collect();
        wanted.extend(self.untidy.values().flatten().cloned());
        for record in self.records() {
            // what was lost with an earlier boot can be held in this one
            let past = |boot: &BootTime| boot.boot_id != self.start.boot_id;
            if let Some(lease) = &record.lease
                && !lease.owner.started.is_empty()
                && !lease.since_boot.as_ref().is_some_and(past)
            {
                wanted.insert(lease.owner.clone());
            }
            if let Life::Unnamed | Life::PastBoot = self.life(record) {
                continue;
            }
            let Some(epoch) = &record.ait.server else { continue };
            if record.location != Location::Gone || is_on_its_way(record) {
                wanted.insert(epoch.process());
            }
            // a freeze that was cut short is taken back while its agent lives
            if let (State::Live | State::Freezing | State::Restoring { .. }, Some(agent)) =
                (&record.state, record.agent_process())
                && !agent.started.is_empty()
            {
                wanted.insert(agent);
            }
        }
        let gone: Vec<ProcessId> =
            self.watched.keys().filter(|process| !wanted.contains(process)).cloned().collect();
        for process in gone {
            if let Some(Watched::Asked | Watched::Alive) = self.watched.remove(&process) {
                self.actions.push_back(Action::Unwatch(process));
            }
        }
        for process in wanted {
            if !self.watched.contains_key(&process) {
                self.watched.insert(process.clone(), Watched::Asked);
                self.actions.push_back(Action::Watch(process));
            }
        }
    }

    /// Looks at the pane processes of records that do not say enough about them.
    pub(super) fn look(&mut self) {
        let mut looks = Vec::new();
        for record in self.records() {
            let Location::Pane { pane, process } = &record.location else { continue };
            if record.state.name() != StateName::Live || self.life(record) == Life::PastBoot {
                continue;
            }
            let named =
                record.ait.server.as_ref().is_some_and(|e| !e.started.is_empty() && !e.boot_id.is_empty());
            let known = named
                && !process.started.is_empty()
                && record.ait.agent.as_ref().is_some_and(|agent| !agent.started.is_empty())
                && record.ait.host.is_some();
            if !known && self.examined.get(&record.id) != Some(&process.pid) {
                looks.push((record.id, tmux_control::PaneId(pane.0), process.pid));
            }
        }
        for (record, pane, pid) in looks {
            self.examined.insert(record, pid);
            self.actions.push_back(Action::Examine { record, pane, pid });
        }
    }

    /// Attaches to the servers that hold a record's pane, and leaves the others.
    pub(super) fn attach(&mut self, now: Now) {
        let mut wanted: BTreeMap<PathBuf, Vec<ProcessId>> = BTreeMap::new();
        let mut sought: BTreeSet<PathBuf> = BTreeSet::new();
        // a server of this boot can look like one of an earlier boot: who is lost with that one is lost first
        let past = self
            .records()
            .any(|record| record.state.name() == StateName::Live && self.life(record) == Life::PastBoot);
        for record in self.records() {
            let Some(epoch) = &record.ait.server else { continue };
            // a restore may have gone to whatever server listens there now, unless its own lives
            if let State::Restoring { .. } = record.state
                && !past
                && (self.life(record) != Life::On
                    || self.watched.get(&epoch.process()) != Some(&Watched::Alive))
            {
                sought.insert(PathBuf::from(&epoch.socket));
            }
            if self.life(record) == Life::On && (record.location != Location::Gone || is_on_its_way(record)) {
                wanted.entry(PathBuf::from(&epoch.socket)).or_default().push(epoch.process());
            }
        }
        sought.extend(self.default_is_sought().then(|| self.start.default_socket.clone()));
        // what an earlier script's write dropped is about to be put back
        for epoch in self.stripped.values().filter_map(|record| record.ait.server.as_ref()) {
            if epoch.boot_id == self.start.boot_id {
                wanted.entry(PathBuf::from(&epoch.socket)).or_default().push(epoch.process());
            }
        }
        for (socket, processes) in &self.untidy {
            wanted.entry(socket.clone()).or_default().extend(processes.iter().cloned());
        }
        let dying: Vec<(PathBuf, RecordId)> = self
            .records()
            .filter(|record| self.dying.contains_key(&record.id))
            .filter_map(|record| Some((PathBuf::from(&record.ait.server.as_ref()?.socket), record.id)))
            .collect();
        let unsettled: BTreeSet<ProcessId> = self
            .records()
            .filter(|record| record.state.name() == StateName::Live)
            .filter_map(|record| record.ait.server.as_ref().map(ServerEpoch::process))
            .collect();
        // an operation there is brought to its end from what the server shows: what it launched may not be heard of yet; a restore
        // that has not said what it launched may have gone to another that has the socket now
        let under_way: BTreeSet<(ProcessId, bool)> = self
            .records()
            .filter(|record| is_on_its_way(record))
            .filter_map(|record| {
                let placed = !matches!(record.state, State::Restoring { launch: None, .. });
                Some((record.ait.server.as_ref()?.process(), placed))
            })
            .collect();
        let known = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let ending: BTreeSet<PathBuf> = self
            .servers
            .iter()
            .filter(|(_, server)| self.last_words_due(server).is_some())
            .map(|(socket, _)| socket.clone())
            .collect();
        // what was done is said where somebody listens again, although no agent may be there
        let unsaid: BTreeSet<PathBuf> = self
            .servers
            .iter()
            .filter(|(socket, server)| {
                server.present == Some(true) && !server.refused && self.has_word(socket)
            })
            .map(|(socket, _)| socket.clone())
            .collect();
        let mut naming: BTreeMap<PathBuf, BTreeSet<(RecordId, PaneId)>> = BTreeMap::new();
        for record in known.iter() {
            if let (Some(epoch), Some(pane)) = (&record.ait.server, record.location.pane_id()) {
                naming.entry(PathBuf::from(&epoch.socket)).or_default().insert((record.id, pane));
            }
        }
        let mut leaving = Vec::new();
        for (socket, server) in &mut self.servers {
            // a client of a dead server is not sent away: its last words say how the server ended
            if ending.contains(socket) {
                continue;
            }
            let dying: Vec<RecordId> =
                dying.iter().filter(|(of, _)| of == socket).map(|(_, id)| *id).collect();
            let named = naming.remove(socket).unwrap_or_default();
            let lives = wanted.get(socket).map(Vec::as_slice).unwrap_or_default();
            let busy = server
                .up()
                .is_some_and(|up| up.closing.is_some() || up.orphan(&self.buried, &known).is_some());
            if let Some(up) = server.up_mut() {
                up.named |= lives.contains(&up.identity.process);
                // one that is looked through for a restore is not left over and over again
                let process = up.identity.process.clone();
                let busy = under_way.contains(&(process.clone(), true))
                    || !up.moved && under_way.contains(&(process, false));
                let empty = up.world.only_ours_left() && !sought.contains(socket) && !busy;
                up.empty = empty.then(|| up.empty.unwrap_or(now.mono));
                // the ends of the last agents are told within moments
                if up.empty.is_some() && !unsettled.contains(&up.identity.process) {
                    up.empty = Some(Duration::ZERO);
                }
            }
            // nobody comes back to a server for what it was left for, but for an end that only it can tell
            let left = server.left.as_ref().is_some_and(|left| {
                lives.iter().all(|life| left.wanted.contains(life))
                    && !(left.empty.is_some() && dying.iter().any(|id| !left.dying.contains(id)))
                    // one that was empty was filled again
                    && (left.empty.is_none() || named.is_subset(&left.named))
            });
            let sought = sought.contains(socket) || unsaid.contains(socket);
            let want = sought || !lives.is_empty() && !left;
            match &server.link {
                Link::Down if want => {}
                Link::Paused { until } if want && now.mono >= *until => {}
                Link::Paused { .. } if !want => {
                    // nothing to wait for
                    server.link = Link::Down;
                    continue;
                }
                // one that came back too late for the last end on it still looks what that left
                Link::Up(up)
                    if (!busy
                        && (!sought || up.moved)
                        // what was done last may have left a pane that only the next listing shows
                        && (up.answered > 0 && up.dirty.is_none() || up.silent)
                        && !lives.contains(&up.identity.process))
                        || up.empty.is_some_and(|since| since.is_zero() || now.mono >= since + LAST_ENDS) =>
                {
                    // what was ordered last is to be carried out before the client goes
                    if up.silent || up.open.is_empty() {
                        let process = up.identity.process.clone();
                        let empty = up.empty.is_some().then_some(process);
                        let wanted = empty.clone().map_or_else(|| lives.to_vec(), |empty| vec![empty]);
                        let why = Left { at: now.mono, wanted, empty, dying, named: named.clone() };
                        // one that was left when its last record went is come back to at once
                        server.left = (why.empty.is_some() || !up.named && !up.moved).then_some(why);
                        leaving.push(socket.clone());
                    }
                    continue;
                }
                Link::Down
                | Link::Paused { .. }
                | Link::Attaching { .. }
                | Link::Up(_)
                | Link::Leaving { .. } => continue,
            }
            // a server whose socket was deleted lives on, and makes it again when told to
            let gone = server.present.map_or(server.refused, |present| !present);
            if gone && !server.remade {
                let alive = wanted
                    .get(socket)
                    .into_iter()
                    .flatten()
                    .find(|p| self.watched.get(p) == Some(&Watched::Alive));
                if let Some(process) = alive {
                    server.remade = true;
                    self.actions.push_back(Action::RemakeSocket(process.clone()));
                    server.pause(now.mono);
                    continue;
                }
            }
            self.numbers += 1;
            let link = LinkId(self.numbers);
            server.link = Link::Attaching { link };
            self.actions.push_back(Action::Attach { socket: socket.clone(), link });
            self.news = true;
        }
        for socket in leaving {
            self.leave(&socket);
        }
    }

    /// Follows up on agents whose process has ended: the server is asked, and made to notice where it has not.
    pub(super) fn attend_dying(&mut self, now: Now) {
        let mut fresh = Vec::new();
        for record in self.records() {
            if record.state.name() != StateName::Live || self.dying.contains_key(&record.id) {
                continue;
            }
            let Some(agent) = record.agent_process() else { continue };
            let Some(Watched::Dead { at, .. }) = self.watched.get(&agent) else { continue };
            let (Some(epoch), Some(pane)) = (&record.ait.server, record.location.pane_id()) else { continue };
            fresh.push((record.id, agent, tmux_control::PaneId(pane.0), PathBuf::from(&epoch.socket), *at));
        }
        // one pane is a small question; the end of many is a listing
        let few = fresh.len() <= FEW;
        for (record, agent, pane, socket, at) in fresh {
            let up = self.servers.get_mut(&socket).and_then(super::Server::up_mut);
            let small = few && up.as_ref().is_some_and(|up| up.world.is_complete() && !up.silent);
            let after = up.map_or(0, |up| {
                if !small {
                    up.soil(now.mono);
                }
                up.heard = at;
                up.asked
            });
            // tmux hears of it when we do: it is told once more, so that the first answer mostly is the last
            let asked = if small {
                self.ask(now, &socket, Ask::Nudge { by_child: false });
                self.ask(now, &socket, Ask::Pane(pane))
            } else {
                None
            };
            self.dying.insert(record, Dying { asked, ..Dying::new(agent, at, after) });
        }
    }

    /// Writes what follows from what is known, in one write, unless one is under way.
    pub(super) fn write(&mut self, now: Now) {
        let failures = match &self.writing {
            Writing::Idle => 0,
            Writing::Paused { until, failures, .. } if now.mono >= *until => *failures,
            Writing::UnderWay { .. } | Writing::Paused { .. } => return,
        };
        self.writing = Writing::Idle;
        let mut changes = Vec::new();
        let mut told = Vec::new();
        let records = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let ends: &[EndedEarlier] = match &self.recall {
            Recall::Have(ends) => ends,
            Recall::Wanted | Recall::Asked | Recall::Done => &[],
        };
        for (id, verb) in shutdown::claimed(&records, ends, &self.start, now.utc) {
            if self.is_stuck(id, &verb) {
                continue;
            }
            told.push(self.told(id, None, "lost", "boot", "reboot", now.mono));
            changes.push((id, verb));
        }
        let waiting = std::mem::take(&mut self.layouts);
        for record in records.iter() {
            if let Some(proposal) = self.propose(now, record, &waiting) {
                if self.is_stuck(record.id, &proposal.verb) {
                    continue;
                }
                changes.push((record.id, proposal.verb));
                told.push(proposal.told);
            }
        }
        if changes.is_empty() {
            self.recall = Recall::Done;
            return;
        }
        let ticket = Ticket(self.number());
        let verbs = changes.iter().map(|(_, verb)| verb.clone()).collect();
        self.writing = Writing::UnderWay { ticket, told, verbs, failures };
        self.actions.push_back(Action::Write { ticket, changes });
    }

    fn told(
        &self,
        record: RecordId,
        socket: Option<&str>,
        what: &'static str,
        source: &'static str,
        detail: impl Into<String>,
        heard: Duration,
    ) -> Told {
        Told {
            record,
            socket: socket.map(PathBuf::from),
            what,
            source,
            detail: detail.into(),
            heard,
            unstamp: None,
        }
    }

    /// The one change a record needs now, if any.
    fn propose(
        &mut self,
        now: Now,
        record: &Record,
        waiting: &BTreeMap<RecordId, Duration>,
    ) -> Option<Proposal> {
        if let Some(stripped) = self.stripped.get(&record.id) {
            let verb = Verb::Enrich {
                at: stripped.location.clone(),
                ours: Box::new(stripped.ait.clone()),
                lost: stripped.state.lost().cloned().map(Box::new),
                replace: false,
            };
            let socket = stripped.ait.server.as_ref().map(|epoch| epoch.socket.as_str());
            let detail = "an earlier script's write had dropped it";
            let told = self.told(record.id, socket, "known", "store", detail, now.mono);
            return Some(Proposal { verb, told });
        }
        let epoch = record.ait.server.as_ref();
        let socket = epoch.map(|epoch| epoch.socket.as_str());
        match (&record.state, self.life(record)) {
            (State::Live, Life::PastBoot) => {
                let evidence = "its server belonged to an earlier boot".to_owned();
                let told = self.told(record.id, socket, "lost", "boot", "reboot", now.mono);
                Some(Proposal { verb: lose(LossCause::Reboot, evidence), told })
            }
            (State::Live, Life::Over { cause, evidence, heard }) => {
                self.propose_loss(record, socket, cause, evidence, heard)
            }
            (State::Live, Life::On) => {
                self.unfreeze(now, record);
                self.propose_end(record).or_else(|| self.propose_follow(now, record, waiting))
            }
            (State::Live, Life::Unnamed) => self.propose_enrich(now, record),
            (State::Live, Life::Ending) => None,
            (
                State::Freezing | State::Frozen { .. } | State::Restoring { .. } | State::Aborting { .. },
                Life::Unnamed | Life::PastBoot | Life::Over { .. } | Life::Ending | Life::On,
            ) => self.propose_settling(now, record).map(|(verb, told)| Proposal { verb, told }),
        }
    }

    /// The server is over: its agents are lost with it, all in one write. That goes for one whose pane was closed before and
    /// that had not ended yet: an end is settled within its epoch or not at all.
    fn propose_loss(
        &self,
        record: &Record,
        socket: Option<&str>,
        cause: LossCause,
        evidence: String,
        heard: Duration,
    ) -> Option<Proposal> {
        let told = self.told(record.id, socket, "lost", "process", cause.word(), heard);
        Some(Proposal { verb: lose(cause, evidence), told })
    }

    /// What the death of a live record's agent means, once the server has answered after it.
    fn propose_end(&mut self, record: &Record) -> Option<Proposal> {
        let epoch = record.ait.server.as_ref()?;
        let (pane, process) = match &record.location {
            Location::Pane { pane, process } => (tmux_control::PaneId(pane.0), process),
            Location::Gone => return None,
        };
        let up = self.servers.get_mut(Path::new(&epoch.socket))?.up_mut()?;
        if up.identity.process != epoch.process() || !up.world.is_complete() {
            return None;
        }
        let dying = self.dying.get_mut(&record.id)?;
        if !dying.is_answered(up.answered) {
            return None;
        }
        let below_shell = matches!(record.ait.host, Some(Host::Shell { .. }));
        let (what, verb, detail, unstamp) = match judge(up.world.pane(pane), process.pid, below_shell, dying)
        {
            // asked by `order`, which knows the time
            Verdict::Nudge => return None,
            Verdict::Ended { reason, evidence, provisional, pane_lives } => {
                let detail = format!("{reason}: {evidence}");
                (
                    "ended",
                    end(reason, evidence, provisional),
                    detail,
                    pane_lives.then_some((pane, !below_shell)),
                )
            }
            Verdict::Lost { evidence, exit_status, signal } => {
                let detail = format!("agent_crashed: {evidence}");
                let cause = LossCause::AgentCrashed;
                ("lost", Verb::Lose { cause, evidence, exit_status, signal, checkpoint: None }, detail, None)
            }
        };
        let at = dying.at;
        let mut told = self.told(record.id, Some(&epoch.socket), what, "answer", detail, at);
        told.unstamp = unstamp;
        Some(Proposal { verb, told })
    }

    /// Names and places around a live agent's pane, as the world has them now.
    fn propose_follow(
        &mut self,
        now: Now,
        record: &Record,
        waiting: &BTreeMap<RecordId, Duration>,
    ) -> Option<Proposal> {
        let epoch = record.ait.server.as_ref()?;
        let Location::Pane { pane, process } = &record.location else { return None };
        let up = self.servers.get(Path::new(&epoch.socket))?.up()?;
        if up.identity.process != epoch.process() || !up.world.is_complete() {
            return None;
        }
        let row = up.world.pane(tmux_control::PaneId(pane.0))?;
        if row.pid != Some(process.pid) {
            return None;
        }
        if let Some(proposal) = self.propose_enrich(now, record) {
            return Some(proposal);
        }
        let place = up.world.place(tmux_control::PaneId(pane.0), record.session.as_bytes())?;
        let (follow, what) = follow(record, *pane, epoch, &place)?;
        if what == "layout" {
            let due = waiting.get(&record.id).copied().unwrap_or(now.mono + LAYOUT_PAUSE);
            if now.mono < due {
                self.layouts.insert(record.id, due);
                return None;
            }
        }
        let told = self.told(
            record.id,
            Some(&epoch.socket),
            what,
            "notification",
            place.window_name.to_string(),
            up.heard,
        );
        Some(Proposal { verb: Verb::Follow(Box::new(follow)), told })
    }

    /// What looking at the pane's process found, where the record lacks it; and the server's own word on its start.
    fn propose_enrich(&self, now: Now, record: &Record) -> Option<Proposal> {
        let of = record.location.process();
        let found = self.found.get(&record.id).filter(|found| {
            of.is_some_and(|of| {
                of.pid == found.pane_process.pid
                    && (of.started.is_empty() || of.started == found.pane_process.started)
            })
        });
        let mut ours =
            found.map_or_else(Ours::default, |found| enrichment(record, found, &self.start.boot_id));
        if let Some(epoch) = ours.server.as_ref().or(record.ait.server.as_ref())
            && epoch.started_at.is_none()
            && let Some(up) = self.servers.get(Path::new(&epoch.socket)).and_then(super::Server::up)
            && up.identity.process == epoch.process()
        {
            ours.server = Some(ServerEpoch { started_at: Some(up.identity.started_at), ..epoch.clone() });
        }
        let Location::Pane { pane, process } = &record.location else { return None };
        let started =
            found.map(|found| found.pane_process.started.clone()).filter(|_| process.started.is_empty());
        if ours == Ours::default() && started.is_none() {
            return None;
        }
        let at = Location::pane(
            *pane,
            ProcessId::new(process.pid, started.unwrap_or_else(|| process.started.clone())),
        );
        let socket = record.ait.server.as_ref().map(|epoch| epoch.socket.as_str());
        let told = self.told(record.id, socket, "known", "process", "", now.mono);
        Some(Proposal { verb: Verb::Enrich { at, ours: Box::new(ours), lost: None, replace: true }, told })
    }

    /// A write came back.
    pub(super) fn written(&mut self, now: Now, ticket: Ticket, result: Result<Written, String>) {
        let Writing::UnderWay { ticket: under_way, .. } = &self.writing else { return };
        if *under_way != ticket {
            return;
        }
        let Writing::UnderWay { told, verbs, failures, .. } =
            std::mem::replace(&mut self.writing, Writing::Idle)
        else {
            return;
        };
        self.news = true;
        let Written { results, view } = match result {
            Ok(written) => written,
            Err(why) => {
                let pause = WRITE_PAUSE.0.saturating_mul(1 << failures.min(10)).min(WRITE_PAUSE.1);
                self.writing = Writing::Paused { until: now.mono + pause, failures: failures + 1, why };
                return;
            }
        };
        self.recall = Recall::Done;
        for told in &told {
            self.layouts.remove(&told.record);
        }
        let records = Arc::clone(&view.records);
        self.take_view(now, view);
        for ((told, verb), result) in told.into_iter().zip(verbs).zip(results) {
            match result {
                Ok(()) => self.applied(now, told),
                Err(refused) => {
                    if let Some(record) = records.get(told.record) {
                        self.stuck.insert(told.record, (verb, record.as_ref().clone()));
                    }
                    self.remember(Happening {
                        at: Stamp::from_unix(now.utc).to_string(),
                        socket: told.socket,
                        record: Some(told.record.to_string()),
                        what: "refused".into(),
                        source: told.source.into(),
                        detail: format!("{} was not written: {refused}", told.what),
                        to_store_us: None,
                    });
                }
            }
        }
    }

    /// Whether that very change of that very record was refused before.
    fn is_stuck(&self, id: RecordId, verb: &Verb) -> bool {
        let record = self.store.as_ref().and_then(|view| view.records.get(id));
        self.stuck.get(&id).is_some_and(|(refused, of)| {
            refused == verb && record.is_some_and(|record| record.as_ref() == of)
        })
    }

    fn applied(&mut self, now: Now, told: Told) {
        let elapsed = now.mono.saturating_sub(told.heard);
        let happening = Happening {
            at: Stamp::from_unix(now.utc).to_string(),
            socket: told.socket.clone(),
            record: Some(told.record.to_string()),
            what: told.what.into(),
            source: told.source.into(),
            detail: told.detail,
            to_store_us: Some(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)),
        };
        if let Some(server) = told.socket.as_ref().and_then(|socket| self.servers.get_mut(socket)) {
            server.last_event = Some(happening.clone());
            if told.what == "lost" && told.source == "process" {
                self.news = true;
            }
        }
        self.remember(happening);
        if let (Some((pane, hosted)), Some(socket)) = (told.unstamp, told.socket) {
            let asks = self.servers.get_mut(&socket).and_then(super::Server::up_mut);
            let asks = asks.map(|up| {
                let asks = up.take_off(pane, told.record, hosted);
                // whoever comes into the pane next is asked about anew
                up.keeping.remove(&pane);
                asks
            });
            for ask in asks.into_iter().flatten() {
                self.ask(now, &socket, ask);
            }
        }
    }
}

fn lose(cause: LossCause, evidence: String) -> Verb {
    Verb::Lose { cause, evidence, exit_status: None, signal: None, checkpoint: None }
}

fn end(reason: &str, evidence: String, provisional: bool) -> Verb {
    Verb::End { reason: reason.into(), evidence, provisional }
}

/// What differs between a record and its pane's place, and what to call it.
fn follow(
    record: &Record,
    pane: crate::record::PaneId,
    epoch: &ServerEpoch,
    place: &Place<'_>,
) -> Option<(Follow, &'static str)> {
    let mut follow = Follow::new(pane, epoch.clone());
    let mut what = None;
    let layout = place.layout.to_string();
    // tmux says nothing where a layout is longer than it prints
    if !layout.is_empty() && record.ait.window_layout.as_ref() != Some(&layout) {
        follow.window_layout = Some(layout);
        what = Some("layout");
    }
    let window_id = WindowId(place.window.0);
    let session = place.session.to_string();
    if record.ait.window_id != Some(window_id)
        || record.ait.window_index != Some(place.window_index)
        || record.session != session
    {
        follow.window_id = Some(window_id);
        follow.window_index = Some(place.window_index);
        follow.session = Some(session);
        what = Some("moved");
    }
    let name = if place.window_name.is_empty() { UNNAMED.to_owned() } else { place.window_name.to_string() };
    if record.window != name {
        follow.window = Some(name);
        what = Some("renamed");
    }
    what.map(|what| (follow, what))
}

/// Whether the record lacks a part of what was found: what came while another write of it was under way stays wanted.
pub(super) fn lacks(record: &Record, found: &Examined, boot_id: &str) -> bool {
    enrichment(record, found, boot_id) != Ours::default()
        || record.location.process().is_some_and(|process| process.started.is_empty())
}

/// The parts of what was found that the record lacks.
fn enrichment(record: &Record, found: &Examined, boot_id: &str) -> Ours {
    let known = &record.ait;
    let mut ours = Ours::default();
    let named = known.server.as_ref().is_some_and(|e| !e.started.is_empty() && !e.boot_id.is_empty());
    if !named && let Some(server) = &found.server {
        ours.server = Some(ServerEpoch {
            socket: server.socket.to_string_lossy().into_owned(),
            pid: server.process.pid,
            started: server.process.started.clone(),
            started_at: None,
            boot_id: boot_id.to_owned(),
            unknown: Default::default(),
        });
    }
    if known.agent.as_ref().is_none_or(|agent| agent.started.is_empty()) || known.host.is_none() {
        ours.agent = Some(found.agent.clone());
        ours.host = Some(match &found.shell {
            None => Host::Pane,
            Some(shell) => Host::Shell { argv: shell.argv.clone(), cwd: shell.cwd.clone() },
        });
    }
    if known.argv.is_none() {
        ours.argv = Some(found.argv.clone());
    }
    if known.cwd.is_none() {
        ours.cwd = found.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
    }
    ours
}

/// Whether an operation on it is under way, or was cut short.
fn is_on_its_way(record: &Record) -> bool {
    match &record.state {
        State::Freezing | State::Restoring { .. } | State::Aborting { .. } => true,
        // nothing but its lease says that it is dropped
        State::Frozen { .. } => record.lease.is_some(),
        State::Live => false,
    }
}
