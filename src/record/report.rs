//! What a provider's hook reported of an agent, and which verb that comes to. Pure: the processes, the payload's words and
//! the records come in; nothing is looked up.
//!
//! An exact id of a conversation is never thrown away: a report whose agent has no record yet says so ([`Settled::Unknown`])
//! and is kept by whoever asked until it has one or is gone.

use serde::{Deserialize, Serialize};

use super::{
    Bind, Facts, Host, Liveness, Location, Nonce, Ours, PaneId, ProcessId, Record, RecordId, Records,
    ServerEpoch, Stamp, State, Step, Upsert, Verb,
};
use crate::turn::Event;

/// How much a report's session id says of which conversation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// This conversation runs now, whichever ran before.
    Now,
    /// It runs, unless another is known already: the event may be late.
    IfBlank,
    /// Nothing.
    Nothing,
}

/// The record an agent had when it reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The record.
    pub record: RecordId,
    /// Its launch count then.
    pub generation: Option<u64>,
}

/// The restore an agent was started by, as its environment says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfRestore {
    /// The record.
    pub record: RecordId,
    /// The attempt's token.
    pub nonce: Nonce,
    /// The pane, proven to be the attempt's, where the record does not say yet what was launched.
    pub pane: Option<Seen>,
}

/// A pane of one life of a server, and its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The pane.
    pub pane: PaneId,
    /// Its process.
    pub process: ProcessId,
    /// The server.
    pub server: ServerEpoch,
}

/// What one event of a provider's hook says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The provider's short name.
    pub provider: String,
    /// The provider's own name of the event.
    pub event: String,
    /// When it came.
    pub at: Stamp,
    /// The boot it came in; empty if unknown.
    pub boot_id: String,
    /// The agent's processes from the one that ran the hook up to its pane's own, nearest first; none below another agent.
    pub line: Vec<ProcessId>,
    /// The provider's outermost own process among them.
    pub agent: ProcessId,
    /// The id of the conversation, or empty.
    pub session_id: String,
    /// Its file, or empty.
    pub transcript: String,
    /// What the id says.
    pub names: Names,
    /// The record it had then, as far as that could be read.
    pub known: Option<Known>,
    /// The restore it was started by.
    pub restore: Option<OfRestore>,
    /// What it does now.
    pub turn: Option<Event>,
    /// The record it would get, if it has none; its id means nothing.
    pub newborn: Option<Box<Record>>,
}

/// What a report comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// This verb.
    Step(Box<Step>),
    /// Its record knows all of it already.
    Known(RecordId),
    /// The agent runs and has no record yet.
    Unknown,
    /// It belongs to a restore that has not said yet what it launched.
    Unproven(RecordId),
    /// It is nobody's: why.
    Late(&'static str),
}

impl Report {
    /// The record of the reporting agent.
    #[must_use]
    pub fn record_of<'a>(&self, records: impl Iterator<Item = &'a Record> + Clone) -> Option<&'a Record> {
        record_of(&self.line, &self.boot_id, records)
    }

    /// Which verb this report comes to over these records.
    #[must_use]
    pub fn settle(&self, records: &Records, facts: &Facts<'_>) -> Settled {
        if let Some(restore) = &self.restore
            && let Some(record) = records.get(restore.record)
            && matches!(record.state, State::Restoring { .. })
            && !self.is_stray(record, restore)
        {
            return self.acknowledge(record, restore);
        }
        if let Some(record) = self.record_of(records.iter()) {
            return self.of(record);
        }
        let same_boot = self.boot_id.is_empty() || facts.boot_id.is_empty() || self.boot_id == facts.boot_id;
        let lives = same_boot && (facts.alive)(&self.agent) != Liveness::Gone;
        if let Some(known) = self.known
            && let Some(record) = records.get(known.record)
            && matches!(record.state, State::Frozen { .. })
            && record.ait.generation == known.generation
        {
            return self.of(record);
        }
        if lives && let Some(record) = self.restore.as_ref().and_then(|restore| records.get(restore.record)) {
            // what starts below a restored agent has its environment: only its own process or its conversation make it that one
            let own = [record.restore.last_launch, record.location.process().map_or(0, |own| own.pid)];
            let same = self.session_id.is_empty()
                || self.session_id == record.codeagent_session_id
                || self.line.iter().any(|process| own.contains(&process.pid));
            match &record.state {
                // its conversation has a record, which will bring it back
                State::Frozen { .. } | State::Aborting { .. } if same => {
                    return Settled::Late("its restore was given up");
                }
                State::Live
                    if same
                        && record
                            .agent_process()
                            .is_some_and(|own| (facts.alive)(&own) == Liveness::Alive) =>
                {
                    return Settled::Late("its restore is over, and another process has its conversation");
                }
                State::Live
                | State::Freezing
                | State::Frozen { .. }
                | State::Restoring { .. }
                | State::Aborting { .. } => {}
            }
        }
        match (&self.newborn, lives) {
            (_, false) => Settled::Late("its agent is gone"),
            (None, true) => Settled::Unknown,
            (Some(newborn), true) => Settled::Step(Box::new((None, self.birth(newborn)))),
        }
    }

    /// Whether it comes from an agent that only has the environment of a restore that goes on: of an earlier attempt, or from
    /// above. Its conversation is another one, and it is not what was launched.
    fn is_stray(&self, record: &Record, restore: &OfRestore) -> bool {
        let State::Restoring { launch, .. } = &record.state else { return false };
        let another = record.lease.as_ref().is_none_or(|lease| lease.nonce != restore.nonce);
        !self.session_id.is_empty()
            && self.session_id != record.codeagent_session_id
            && (another || launch.is_some())
            && !self.line.iter().any(|process| Some(process.pid) == *launch)
    }

    /// The turn it tells of that record's agent; none if it is about a conversation that runs no more.
    #[must_use]
    pub fn turn_of(&self, record: &Record) -> Option<&Event> {
        let current = self.session_id.is_empty() || self.session_id == record.codeagent_session_id;
        self.turn.as_ref().filter(|_| current)
    }

    /// What this report comes to for the record of its agent.
    #[must_use]
    pub fn of(&self, record: &Record) -> Settled {
        let known = &record.codeagent_session_id;
        let takes = match self.names {
            Names::Now => !self.session_id.is_empty(),
            Names::IfBlank => !self.session_id.is_empty() && known.is_empty(),
            Names::Nothing => false,
        };
        let nothing_new = *known == self.session_id
            && (self.transcript.is_empty() || record.transcript_path == self.transcript);
        if !takes || nothing_new {
            return Settled::Known(record.id);
        }
        let bind = Bind {
            line: self.line.clone(),
            agent: self.agent.clone(),
            generation: self
                .known
                .filter(|known| known.record == record.id)
                .and_then(|known| known.generation),
            session_id: self.session_id.clone(),
            transcript: self.transcript.clone(),
            instead_of: None,
        };
        Settled::Step(Box::new((Some(record.id), Verb::Bind(Box::new(bind)))))
    }

    /// The hook of a restored agent: only from what was launched, and only under the attempt's own token.
    fn acknowledge(&self, record: &Record, restore: &OfRestore) -> Settled {
        if record.lease.as_ref().is_none_or(|lease| lease.nonce != restore.nonce) {
            return Settled::Late("it belongs to another attempt of a restore");
        }
        if self.session_id.is_empty() || self.names != Names::Now {
            return Settled::Late("it does not say which conversation came back");
        }
        let State::Restoring { launch, .. } = &record.state else {
            return Settled::Late("its record is not being restored");
        };
        let (at, mut ours) = match (launch, &restore.pane) {
            (Some(launch), _) => {
                let own = ProcessId::new(
                    *launch,
                    record
                        .location
                        .process()
                        .filter(|own| own.pid == *launch)
                        .map_or("", |own| own.started.as_str()),
                );
                if !self.line.iter().any(|process| is_same(&own, process)) {
                    return Settled::Late("it is not from the process that was launched");
                }
                (record.location.clone(), Ours::default())
            }
            (None, Some(seen)) => {
                let ours = Ours {
                    server: Some(seen.server.clone()),
                    host: record.ait.host.clone(),
                    ..Ours::default()
                };
                (Location::pane(seen.pane, seen.process.clone()), ours)
            }
            (None, None) => return Settled::Unproven(record.id),
        };
        ours.agent = match &record.ait.host {
            Some(Host::Shell { .. }) => Some(self.agent.clone()),
            Some(Host::Pane) | None => at.process().cloned(),
        };
        let mut upsert = Upsert::new(record.root.clone(), record.window.clone(), at);
        upsert.session_id.clone_from(&self.session_id);
        upsert.transcript.clone_from(&self.transcript);
        upsert.restore_of = Some((record.id, restore.nonce));
        upsert.ours = ours;
        Settled::Step(Box::new((Some(record.id), Verb::Upsert(Box::new(upsert)))))
    }

    fn birth(&self, newborn: &Record) -> Verb {
        let mut upsert = Upsert::new(newborn.root.clone(), newborn.window.clone(), newborn.location.clone());
        upsert.session.clone_from(&newborn.session);
        upsert.agent_string.clone_from(&newborn.agent_string);
        upsert.ours = Ours { generation: None, ..newborn.ait.clone() };
        upsert.session_id.clone_from(&newborn.codeagent_session_id);
        if self.names != Names::Nothing && !self.session_id.is_empty() {
            upsert.session_id.clone_from(&self.session_id);
            upsert.transcript.clone_from(&self.transcript);
        }
        Verb::Upsert(Box::new(upsert))
    }
}

/// The record of an agent by its line of processes, in the boot `boot_id` (empty if unknown): the one whose agent's process is
/// nearest in the line.
#[must_use]
pub fn record_of<'a>(
    line: &[ProcessId],
    boot_id: &str,
    mut records: impl Iterator<Item = &'a Record> + Clone,
) -> Option<&'a Record> {
    let is_same_boot = |record: &Record| {
        let boot = record.ait.server.as_ref().map_or("", |server| server.boot_id.as_str());
        boot.is_empty() || boot_id.is_empty() || boot == boot_id
    };
    let is_agent = |record: &Record, process: &ProcessId| {
        matches!(record.state, State::Live | State::Freezing)
            && is_same_boot(record)
            && record.agent_process().is_some_and(|agent| is_same(&agent, process))
    };
    let is_below = |record: &Record| {
        matches!(record.state, State::Live)
            && is_same_boot(record)
            && record.ait.agent.is_none()
            && record.location.process().is_some_and(|own| line.iter().any(|process| is_same(own, process)))
    };
    line.iter().find_map(|process| records.clone().find(|record| is_agent(record, process))).or_else(|| {
        // below a shell whose agent nobody has seen yet
        records.find(|record| matches!(record.ait.host, Some(Host::Shell { .. })) && is_below(record))
    })
}

/// Whether both are one process, as far as their starts say.
pub(super) fn is_same(one: &ProcessId, other: &ProcessId) -> bool {
    one.pid == other.pid
        && (one.started.is_empty() || other.started.is_empty() || one.started == other.started)
}

#[cfg(test)]
mod tests;
