//! What is kept in mind beside the records: the store as it was, ended records whose panes may still stand.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{
    BURIED, Closing, ClosingStep, EndedEarlier, Now, Server, StoreView, Supervisor, Watched, decide,
};
use crate::record::{Host, Ours, Record, RecordId, Records, StateName};

impl Supervisor {
    /// Keeps the ids of ended records bounded: past the bound only those that a pane still carries.
    fn forget_buried(&mut self) {
        if self.buried.len() <= BURIED {
            return;
        }
        let stamps: BTreeSet<RecordId> = self
            .servers
            .values()
            .filter_map(Server::up)
            .flat_map(|up| up.world.panes())
            .filter_map(|row| std::str::from_utf8(&row.stamp).ok()?.parse().ok())
            .collect();
        self.buried.retain(|id| stamps.contains(id));
    }

    /// Takes the store as it is now. Records that are new here, or moved, want their server listed again.
    pub(super) fn take_view(&mut self, now: Now, view: StoreView) {
        let records = view.records.clone();
        if let Some(before) = self.store.replace(view) {
            let gone = before.records.iter().map(|record| record.id);
            self.buried.extend(gone.filter(|id| records.get(*id).is_none()));
            self.forget_buried();
            self.note_moved(&before, &records);
            self.note_stripped(&before, &records);
            self.record_news(now, &before, &records);
        }
        let live: BTreeSet<RecordId> = records
            .iter()
            .filter(|record| record.state.name() == StateName::Live)
            .map(|record| record.id)
            .collect();
        self.dying.retain(|id, dying| {
            live.contains(id)
                && records
                    .get(*id)
                    .is_some_and(|record| record.agent_process().as_ref() == Some(&dying.agent))
        });
        self.layouts.retain(|id, _| live.contains(id));
        self.found.retain(|id, found| {
            let lacking =
                records.get(*id).is_some_and(|record| decide::lacks(record, found, &self.start.boot_id));
            live.contains(id) && lacking
        });
        // one that was on its way meanwhile is looked at again
        self.examined.retain(|id, pid| {
            let pane = records.get(*id).and_then(|record| record.location.process());
            live.contains(id) && pane.is_some_and(|process| process.pid == *pid)
        });
        for record in records.iter() {
            let Some(pane) = record.location.pane_id() else { continue };
            let Some(epoch) = &record.ait.server else { continue };
            let Some(up) = self.servers.get_mut(Path::new(&epoch.socket)).and_then(Server::up_mut) else {
                continue;
            };
            if up.world.pane(tmux_control::PaneId(pane.0)).is_none() {
                up.soil(now.mono);
            }
        }
    }

    /// An earlier script writes the shared fields and drops our object: what it dropped is put back for a record that is
    /// otherwise where it was.
    fn note_stripped(&mut self, before: &StoreView, records: &Records) {
        // until it is back; a write that was under way meanwhile says nothing of it
        self.stripped.retain(|id, _| records.get(*id).is_some_and(|record| record.ait == Ours::default()));
        for record in records.iter().filter(|record| record.ait == Ours::default()) {
            let Some(known) = before.records.get(record.id).filter(|known| known.ait != Ours::default())
            else {
                continue;
            };
            let pane =
                |record: &Record| (record.location.pane_id(), record.location.process().map(|p| p.pid));
            if pane(known) == pane(record) {
                self.stripped.insert(record.id, Box::new(known.as_ref().clone()));
            }
        }
    }

    /// A record that went to another server, its agent gone from the one before, may have left a kept pane there.
    fn note_moved(&mut self, before: &StoreView, records: &Records) {
        for was in before.records.iter().filter(|was| was.ait.host == Some(Host::Pane)) {
            let (Some(epoch), Some(is)) = (&was.ait.server, records.get(was.id)) else { continue };
            let moved = is.state.name() == StateName::Live
                && is.ait.server.as_ref().is_some_and(|to| to.process() != epoch.process());
            if moved && epoch.boot_id == self.start.boot_id && !epoch.started.is_empty() {
                self.untidy.entry(PathBuf::from(&epoch.socket)).or_default().insert(epoch.process());
            }
        }
    }

    /// Agents that ended in this boot may have left a kept pane, if the supervisor before this one ended before it closed it.
    pub(super) fn remember_panes(&mut self, ends: &[EndedEarlier]) {
        for EndedEarlier { record, .. } in ends {
            let Some(epoch) = record.ait.server.as_ref().filter(|e| e.boot_id == self.start.boot_id) else {
                continue;
            };
            self.buried.insert(record.id);
            if record.ait.host == Some(Host::Pane) && !epoch.started.is_empty() {
                let socket = PathBuf::from(&epoch.socket);
                self.servers.entry(socket.clone()).or_default();
                self.untidy.entry(socket).or_default().insert(epoch.process());
            }
        }
    }

    /// Ends closings one round trip after their kill, and forgets what needs no tidying: servers that are over, and those that show no dead pane of ours.
    pub(super) fn tidy(&mut self) {
        let known = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let Self { untidy, servers, watched, buried, .. } = self;
        for up in servers.values_mut().filter_map(Server::up_mut) {
            if let Some(Closing { step: ClosingStep::Settle { after }, .. }) = up.closing
                && up.answered > after
            {
                up.closing = None;
            }
        }
        untidy.retain(|socket, processes| {
            let up = servers.get(socket).and_then(Server::up);
            processes.retain(|process| {
                let over = matches!(watched.get(process), Some(Watched::Dead { .. }));
                let seen = up.is_some_and(|up| {
                    up.identity.process != *process
                        || (up.world.is_complete()
                            && up.closing.is_none()
                            && up.orphan(buried, &known).is_none())
                });
                !over && !seen
            });
            // it is not worth more than a few tries
            let unknown = servers.get(socket).is_some_and(|server| server.failures >= 5);
            !processes.is_empty() && !unknown
        });
    }
}
