//! Operations that were cut short: records on their way whose coordinator is gone are brought to rest, by the table of
//! [`crate::reconcile::settle`] and from a complete answer only.

use std::path::Path;
use std::time::Duration;

use tmux_control::PaneId;

use super::{Ask, Life, Now, Supervisor, Told, Up, Watched};
use crate::reconcile::settle::{Pane, PaneSight, Settle, settle, waited};
use crate::record::{
    Ack, Facts, Follow, Liveness, Location, Nonce, ProcessId, Record, RecordId, ServerEpoch, Stamp, State,
    StateName, Verb, is_lease_free,
};

/// How long a stand-in has until it has drawn.
const COMES_UP: Duration = Duration::from_secs(10);
/// The pause before an operation that is waited for is looked at again.
const AGAIN: Duration = Duration::from_secs(2);

impl Supervisor {
    /// What a record on its way comes to now: a change, and what to ask of its server besides.
    pub(super) fn propose_settling(&mut self, now: Now, record: &Record) -> Option<(Verb, Told)> {
        let life = self.life(record);
        if record.state.name() == StateName::Live {
            return None;
        }
        let attempt = self.attempt(record);
        let nowhere = attempt.is_none() && is_nowhere(record);
        if (life == Life::Ending || life == Life::Unnamed) && attempt.is_none() && !nowhere {
            return None;
        }
        // once it is launched, the record names the server
        let unplaced = matches!(record.state, State::Restoring { launch: None, .. });
        if unplaced && attempt.is_none() && !self.is_sought(record) {
            return None;
        }
        let gone = PaneSight::Gone { window_there: false };
        let sight = if nowhere { gone } else { attempt.map_or_else(|| self.sight(record), PaneSight::There) };
        let ack_grace = self.start.ack_grace;
        // what was launched on a server nobody named yet has its time to say so
        let waits =
            |facts: &Facts<'_>| nowhere && is_lease_free(record, facts) && waited(record, facts) < ack_grace;
        let outcome = self.with_facts(now, |facts| match settle(record, &sight, facts, ack_grace) {
            Settle::AbortRestore { .. } if waits(facts) => Settle::Wait("acknowledgement"),
            outcome => outcome,
        });
        let nonce = record.lease.as_ref().map(|lease| lease.nonce);
        let (verb, what) = match (outcome, nonce) {
            (Settle::Rest, _) => return self.propose_standin(now, record),
            (Settle::Unknown, _) => return None,
            (Settle::Held, _) => {
                // a living coordinator's end will be told; a dead one's lease runs out by the clock
                if record.lease.as_ref().is_some_and(|lease| self.is_dead(&lease.owner)) {
                    self.look_again(now);
                }
                return None;
            }
            (Settle::Wait(_), _) => {
                self.look_again(now);
                return None;
            }
            (Settle::StampFrozen(pane), _) => {
                self.claim_pane(now, record, PaneId(pane.0));
                return None;
            }
            (Settle::Respawn(pane), nonce) => {
                if !self.is_strange(record, PaneId(pane.0)) {
                    self.respawn_standin(now, record, PaneId(pane.0));
                    return None;
                }
                // somebody else lives in its pane by now: the record goes on without one
                match (record.state.name(), nonce) {
                    (StateName::Freezing, Some(nonce)) => {
                        (Verb::FreezeCommit { nonce, at: Location::Gone }, "frozen")
                    }
                    (StateName::Aborting, Some(nonce)) => {
                        (Verb::StandinRespawned { nonce, at: Location::Gone }, "frozen")
                    }
                    (StateName::Frozen | StateName::Live | StateName::Restoring, _) | (_, None) => {
                        return None;
                    }
                }
            }
            (_, None) => return None,
            // stamps and respawns are told late: what was done a moment ago must be seen before it is undone or taken for good
            (
                Settle::AbortFreeze(_)
                | Settle::Commit(Location::Gone)
                | Settle::AbortRestore { .. }
                | Settle::Confirm(_)
                | Settle::Forget
                | Settle::Release,
                Some(nonce),
            ) if self.relist(now, record, nonce) => {
                self.look_again(now);
                return None;
            }
            (Settle::Commit(at), Some(nonce)) => (Verb::FreezeCommit { nonce, at }, "frozen"),
            (Settle::AbortFreeze(pane), Some(nonce)) => {
                if let Some(socket) = record.ait.server.as_ref().map(|epoch| epoch.socket.clone()) {
                    let ask = Ask::UnstampFrozen { pane: PaneId(pane.0), record: record.id };
                    self.ask(now, Path::new(&socket), ask);
                }
                (Verb::FreezeAbort { nonce }, "unfrozen")
            }
            (Settle::AbortRestore { error, .. }, Some(nonce)) => {
                (Verb::RestoreAbort { nonce, error: error.to_owned() }, "restore_failed")
            }
            (Settle::Launched { at, server }, Some(nonce)) => {
                let verb = Verb::RestoreLaunched { nonce, at, server, runtime_id: None };
                (verb, "launched")
            }
            (Settle::Confirm(at), Some(nonce)) => (confirm(nonce, at), "restored"),
            (Settle::StandInBack(at), Some(nonce)) => (Verb::StandinRespawned { nonce, at }, "frozen"),
            (Settle::Forget, Some(nonce)) => (Verb::Drop { nonce: Some(nonce) }, "dropped"),
            (Settle::Release, Some(nonce)) => (Verb::LeaseRelease { nonce }, "released"),
        };
        let socket = record.ait.server.as_ref().map(|epoch| Path::new(&epoch.socket).to_owned());
        let told = Told {
            record: record.id,
            socket,
            what,
            source: "answer",
            detail: "an operation that was cut short is settled".into(),
            heard: now.mono,
            unstamp: None,
        };
        Some((verb, told))
    }

    /// A stand-in that was put back has another process than the record says.
    fn propose_standin(&self, now: Now, record: &Record) -> Option<(Verb, Told)> {
        if record.state.name() != StateName::Frozen || record.lease.is_some() {
            return None;
        }
        let epoch = record.ait.server.as_ref()?;
        let (pane, process) = (record.location.pane_id()?, record.location.process()?);
        let up = self.servers.get(Path::new(&epoch.socket))?.up()?;
        let row = up.world.pane(PaneId(pane.0))?;
        let pid = row.pid.filter(|pid| *pid != process.pid)?;
        let stands = row.frozen == record.id.to_string() && row.ready && !row.dead;
        if up.identity.process != epoch.process() || !is_current(up) || !stands {
            return None;
        }
        let mut follow = Follow::new(pane, epoch.clone());
        follow.standin = Some(ProcessId::bare(pid));
        let told = Told {
            record: record.id,
            socket: Some(Path::new(&epoch.socket).to_owned()),
            what: "stand_in",
            source: "answer",
            detail: format!("process {pid}"),
            heard: now.mono,
            unstamp: None,
        };
        Some((Verb::Follow(Box::new(follow)), told))
    }

    /// Whether the guard said that something else than the record's lives in that pane.
    fn is_strange(&self, record: &Record, pane: PaneId) -> bool {
        let socket = record.ait.server.as_ref().map(|epoch| Path::new(&epoch.socket));
        let up = socket.and_then(|socket| self.servers.get(socket)).and_then(super::Server::up);
        up.is_some_and(|up| respawn_key(up, pane, record.id).is_some_and(|key| up.strange.contains(&key)))
    }

    /// What is known of processes here: those that are watched.
    fn with_facts<T>(&self, now: Now, judge: impl FnOnce(&Facts<'_>) -> T) -> T {
        let alive = |process: &ProcessId| match self.watched.get(process) {
            Some(Watched::Dead { .. }) => Liveness::Gone,
            Some(Watched::Alive) => Liveness::Alive,
            Some(Watched::Asked | Watched::Blind(_)) | None => Liveness::Unknown,
        };
        judge(&Facts {
            now: Stamp::from_unix(now.utc),
            since_boot: now.mono.as_secs(),
            boot_id: &self.start.boot_id,
            grace: self.start.grace,
            alive: &alive,
            started: &|_| None,
            draw: &|| 0,
        })
    }

    /// Whether nobody holds the record.
    pub(super) fn is_free(&self, now: Now, record: &Record) -> bool {
        self.with_facts(now, |facts| is_lease_free(record, facts))
    }

    /// A restore that was cut short after its proof leaves the stand-in's stamp on a pane whose agent runs.
    pub(super) fn unfreeze(&mut self, now: Now, record: &Record) {
        let Some(epoch) = &record.ait.server else { return };
        let socket = Path::new(&epoch.socket).to_owned();
        let Some(up) = self.servers.get_mut(&socket).and_then(super::Server::up_mut) else { return };
        let free = record.lease.is_none() && up.identity.process == epoch.process();
        let Some(pane) = record.location.pane_id().map(|pane| PaneId(pane.0)).filter(|_| free) else {
            return;
        };
        let id = record.id.to_string();
        let Some(row) = up.world.pane(pane) else { return };
        let key = (pane, record.id, row.pid.unwrap_or_default());
        if row.frozen != id || row.dead {
            up.unfrozen.remove(&key);
            return;
        }
        // the server may tell of a freeze before the store does
        let since = *up.unfrozen.entry(key).or_insert(now.mono);
        if since == Duration::MAX {
            return;
        }
        if now.mono < since + AGAIN {
            return self.look_again(now);
        }
        up.unfrozen.insert(key, Duration::MAX);
        self.ask(now, &socket, Ask::UnstampFrozen { pane, record: record.id });
    }

    /// Whether a start was cut short before it said where it went: to the default server, if it went at all. As long as its
    /// coordinator lives nobody looks there: some old servers crash when windows change while a control client attaches.
    pub(super) fn default_is_sought(&self) -> bool {
        let is_free = |record: &Record| record.lease.as_ref().is_none_or(|lease| self.is_dead(&lease.owner));
        let is_restoring = |record: &Record| matches!(record.state, State::Restoring { .. });
        self.records().any(|record| is_nowhere(record) && is_restoring(record) && is_free(record))
    }

    /// Whether the socket of a record was looked at whole: a server on it is listed, or nobody listens there.
    fn is_sought(&self, record: &Record) -> bool {
        let began = record.lease.as_ref().and_then(|lease| lease.since_boot.as_ref());
        // whatever a start of an earlier boot launched went with that
        if record.ait.server.is_none() && began.is_some_and(|began| began.boot_id != self.start.boot_id) {
            return true;
        }
        let socket =
            record.ait.server.as_ref().map_or(&*self.start.default_socket, |epoch| Path::new(&epoch.socket));
        let Some(server) = self.servers.get(socket) else { return false };
        match server.up() {
            Some(up) => is_current(up) && !up.moved,
            None => server.refused || server.present == Some(false),
        }
    }

    /// The pane in which a restore of the record was begun, on whatever server that answered in full.
    fn attempt(&self, record: &Record) -> Option<Pane> {
        if record.state.name() != StateName::Restoring {
            return None;
        }
        let (id, mark) = (record.id.to_string(), format!("{}:", record.id));
        self.servers.iter().find_map(|(socket, server)| {
            let up = server.up().filter(|up| is_current(up))?;
            let row = up.world.panes().find(|row| row.attempt.starts_with(mark.as_bytes()))?;
            let own = record.ait.server.as_ref().is_some_and(|epoch| {
                Path::new(&epoch.socket) == socket && up.identity.process == epoch.process()
            });
            let elsewhere = (!own).then(|| ServerEpoch {
                socket: socket.to_string_lossy().into_owned(),
                pid: up.identity.process.pid,
                started: up.identity.process.started.clone(),
                started_at: Some(up.identity.started_at),
                boot_id: self.start.boot_id.clone(),
                ..ServerEpoch::default()
            });
            Some(Pane {
                id: crate::record::PaneId(row.id.0),
                process: process_of(record, row.pid),
                dead: row.dead,
                stamped: row.frozen == id,
                ready: row.ready,
                attempt: true,
                elsewhere,
            })
        })
    }

    /// Lists the record's server anew, once for each restore that was cut short; whether it was asked now.
    fn relist(&mut self, now: Now, record: &Record, nonce: Nonce) -> bool {
        let Some(epoch) = &record.ait.server else { return false };
        let socket = Path::new(&epoch.socket).to_owned();
        let Some(up) = self.servers.get_mut(&socket).and_then(super::Server::up_mut) else { return false };
        let fresh = up.relisted.insert((record.id, nonce));
        if fresh {
            self.ask(now, &socket, Ask::Listing);
        }
        fresh
    }

    pub(super) fn is_dead(&self, process: &ProcessId) -> bool {
        matches!(self.watched.get(process), Some(Watched::Dead { .. }))
    }

    pub(super) fn look_again(&mut self, now: Now) {
        let due = now.mono + AGAIN;
        self.again =
            Some(self.again.map_or(due, |again| if again > now.mono { again.min(due) } else { due }));
    }

    /// What a complete answer shows of the record's pane: by the stamp of its stand-in first, and of several its own; then by
    /// its id.
    fn sight(&self, record: &Record) -> PaneSight {
        let Some(epoch) = &record.ait.server else { return PaneSight::Unknown };
        let Some(up) = self.servers.get(Path::new(&epoch.socket)).and_then(super::Server::up) else {
            return PaneSight::Unknown;
        };
        if up.identity.process != epoch.process() || !is_current(up) {
            return PaneSight::Unknown;
        }
        let id = record.id.to_string();
        let stamped = up.world.panes().find(|row| row.frozen == id);
        let own = record.location.pane_id().and_then(|pane| up.world.pane(PaneId(pane.0)));
        let Some(row) = own.filter(|row| row.frozen == id).or(stamped).or(own) else {
            let window = record.ait.window_id.map(|window| window.0);
            return PaneSight::Gone {
                window_there: up.world.windows().any(|(there, _)| Some(there.0) == window),
            };
        };
        let process = process_of(record, row.pid);
        PaneSight::There(Pane {
            id: crate::record::PaneId(row.id.0),
            process,
            dead: row.dead,
            stamped: row.frozen == id,
            ready: row.ready,
            attempt: false,
            elsewhere: None,
        })
    }

    /// Stamps a dead pane for the record's stand-in, once.
    fn claim_pane(&mut self, now: Now, record: &Record, pane: PaneId) {
        let Some(socket) = record.ait.server.as_ref().map(|epoch| epoch.socket.clone()) else { return };
        let Some(up) = self.servers.get_mut(Path::new(&socket)).and_then(super::Server::up_mut) else {
            return;
        };
        if up.claimed.insert((pane, record.id)) {
            self.ask(now, Path::new(&socket), Ask::StampFrozen { pane, record: record.id });
        } else {
            self.look_again(now);
        }
    }

    /// Puts the stand-in back into its dead pane, once per death of it.
    fn respawn_standin(&mut self, now: Now, record: &Record, pane: PaneId) {
        let Some(socket) = record.ait.server.as_ref().map(|epoch| epoch.socket.clone()) else { return };
        let Some(up) = self.servers.get_mut(Path::new(&socket)).and_then(super::Server::up_mut) else {
            return;
        };
        let Some(key) = respawn_key(up, pane, record.id) else { return };
        let place = (pane, record.id);
        let runs = up.world.pane(pane).is_some_and(|row| !row.dead);
        if runs && up.stood.get(&place).is_some_and(|at| now.mono < *at + COMES_UP) {
            return self.look_again(now);
        }
        if up.respawned.insert(key) {
            up.stood.insert(place, now.mono);
            let over = record.location.process().map(|process| process.pid);
            self.ask(now, Path::new(&socket), Ask::RespawnStandin { pane, record: record.id, over });
        }
    }
}

/// Whether what is known of a server is its complete answer of now.
fn is_current(up: &Up) -> bool {
    up.world.is_complete() && up.dirty.is_none() && up.answered == up.asked && !up.silent
}

/// The pane's process. A start is only known of processes we watch: the pane's own when it is still the record's.
fn process_of(record: &Record, pid: Option<i32>) -> ProcessId {
    match (&record.location, pid) {
        (Location::Pane { process, .. }, Some(pid)) if process.pid == pid => process.clone(),
        (Location::Pane { .. } | Location::Gone, pid) => ProcessId::bare(pid.unwrap_or_default()),
    }
}

/// A start that was cut short before it said what it launched and where; nobody can be asked about it.
fn is_nowhere(record: &Record) -> bool {
    let unsaid = matches!(record.state, State::Restoring { launch: None, .. } | State::Aborting { .. });
    record.ait.server.is_none() && record.location == Location::Gone && unsaid
}

fn confirm(nonce: Nonce, at: Location) -> Verb {
    Verb::RestoreConfirm { nonce, at, ack: Ack::Liveness, agent: None, session_id: None }
}

/// Which death of which stand-in: the pane with the process that died in it.
fn respawn_key(up: &Up, pane: PaneId, record: RecordId) -> Option<(PaneId, RecordId, i32)> {
    up.world.pane(pane).map(|row| (pane, record, row.pid.unwrap_or_default()))
}
