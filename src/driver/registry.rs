//! The providers' own lists of their processes, told of by their folders and read only: Claude Code writes there what it is at,
//! an interrupt too, which no hook tells.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Driver;
use crate::lifecycle::identity;
use crate::process::ProcessId;
use crate::record::{Record, RecordId};
use crate::supervisor::Input;
use crate::turn::{Moment, Observation, Source};

impl Driver {
    /// Watches the folders in which live agents are listed, and looks at those not looked at before.
    pub(super) fn listen_to_registries(&mut self) {
        let mut listed: BTreeMap<PathBuf, BTreeSet<RecordId>> = BTreeMap::new();
        for record in self.supervisor.live_records() {
            if let Some(folder) = identity::listing(record) {
                listed.entry(folder).or_default().insert(record.id);
            }
        }
        // a folder stays watched: an agent of it may come again
        for folder in self.registries.keys() {
            listed.entry(folder.clone()).or_default();
        }
        let known = std::mem::replace(&mut self.registries, listed);
        let mut new = Vec::new();
        for (folder, records) in &self.registries {
            if !known.contains_key(folder)
                && let Err(error) = self.watcher.add(folder)
            {
                tracing::warn!(%error, folder = %folder.display(), "a provider's list is not heard of");
            }
            let before = known.get(folder);
            new.extend(records.iter().filter(|id| before.is_none_or(|before| !before.contains(id))).copied());
        }
        self.look_at(&new);
    }

    /// Looks at all of them.
    pub(super) fn look_at_registries(&self) {
        let all: Vec<RecordId> = self.registries.values().flatten().copied().collect();
        self.look_at(&all);
    }

    /// An entry changed: that of an agent's own process, else of one below some agent's.
    pub(super) fn registry_touched(&self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json"));
        // others keep files of theirs beside
        let Some(pid) = name.and_then(|name| name.parse::<i32>().ok()) else { return };
        let Some(folder) = path.parent() else { return };
        let here = self.registries.get(folder).into_iter().flatten().copied();
        let (own, others): (Vec<RecordId>, Vec<RecordId>) =
            here.partition(|id| self.agent(*id).is_some_and(|agent| agent.pid == pid));
        let has_own = |id: &RecordId| {
            self.agent(*id).is_some_and(|agent| folder.join(format!("{}.json", agent.pid)).exists())
        };
        if own.is_empty() {
            self.look_at(&others.into_iter().filter(|id| !has_own(id)).collect::<Vec<_>>());
        } else {
            self.look_at(&own);
        }
    }

    fn agent(&self, id: RecordId) -> Option<ProcessId> {
        self.supervisor.record(id).and_then(Record::agent_process)
    }

    /// Reads the entries of these agents, away from the loop.
    fn look_at(&self, records: &[RecordId]) {
        let agents: Vec<_> = records
            .iter()
            .filter_map(|id| {
                let record = self.supervisor.record(*id)?;
                let environment = record.ait.env.clone().unwrap_or_default();
                Some((*id, record.agent_process()?, environment, identity::listing(record)?))
            })
            .collect();
        if agents.is_empty() {
            return;
        }
        let inbox = self.inbox.clone();
        tokio::task::spawn_blocking(move || {
            for (record, agent, environment, folder) in agents {
                let at = Moment::from(jiff::Timestamp::now());
                let seen = match identity::listed(&agent, &environment) {
                    Some(entry) => entry.observation(at),
                    // it is being written: what it says is told again
                    None if folder.join(format!("{}.json", agent.pid)).exists() => continue,
                    None => Observation::of(Source::Registry, None, at, ""),
                };
                // the loop may have ended
                let _ = inbox.blocking_send(Input::Observed { record, seen: Box::new(seen) });
            }
        });
    }
}
