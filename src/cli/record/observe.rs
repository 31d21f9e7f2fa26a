//! What a plain `tmux` process sees of the servers that records name. A server that cannot be listed whole, or is
//! another life than the record's, is unknown.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use crate::process;
use crate::reconcile::purge::CaptureSight;
use crate::reconcile::settle::{Pane, PaneSight};
use crate::record::{PaneId, ProcessId, Record, ServerEpoch, StateName};
use crate::store::{Paths, liveness};
use crate::tmux::{OneShot, Probe, listing, probe};
use crate::world::rows::{PaneRow, Snapshot};

/// The servers looked at so far, by socket; `None` for one that could not be listed.
#[derive(Default)]
pub(super) struct Servers {
    seen: HashMap<PathBuf, Option<Server>>,
}

struct Server {
    epoch: ServerEpoch,
    snapshot: Snapshot,
}

impl Servers {
    /// Lists, once each, the servers that these records name.
    pub(super) fn look<'a>(records: impl Iterator<Item = &'a Record>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut servers = Self::default();
        for epoch in records.filter_map(|record| record.ait.server.as_ref()) {
            let socket = PathBuf::from(&epoch.socket);
            if let Entry::Vacant(unseen) = servers.seen.entry(socket) {
                let seen = runtime.block_on(list(unseen.key()));
                unseen.insert(seen);
            }
        }
        Ok(servers)
    }

    /// What was seen of a record's pane.
    pub(super) fn sight(&self, record: &Record) -> PaneSight {
        if let Some(there) = self.attempt(record) {
            return PaneSight::There(there);
        }
        let Some(server) = record.ait.server.as_ref().and_then(|epoch| self.of(epoch)) else {
            return PaneSight::Unknown;
        };
        let id = record.id.to_string();
        let stamped = |row: &&PaneRow| row.stamp == id.as_bytes() || row.frozen == id.as_bytes();
        let own = |row: &&PaneRow| {
            record.location.pane_id().is_some_and(|pane| row.id.to_string() == pane.to_string())
        };
        let rows = &server.snapshot.panes;
        let own = rows.iter().find(own);
        let Some(row) = own.filter(stamped).or_else(|| rows.iter().find(stamped)).or(own) else {
            let window = record.ait.window_id.map(|window| window.to_string());
            let window_there = server.snapshot.windows.iter().any(|row| Some(row.id.to_string()) == window);
            return PaneSight::Gone { window_there };
        };
        let (Ok(pane), Some(process)) = (row.id.to_string().parse::<PaneId>(), process_of(row, record))
        else {
            return PaneSight::Unknown;
        };
        PaneSight::There(Pane {
            id: pane,
            process,
            dead: row.dead,
            stamped: row.frozen == id.as_bytes(),
            ready: row.ready,
            attempt: false,
            elsewhere: None,
        })
    }

    /// The pane in which a restore of the record was begun, on whatever server.
    fn attempt(&self, record: &Record) -> Option<Pane> {
        if record.state.name() != StateName::Restoring {
            return None;
        }
        let (id, mark) = (record.id.to_string(), format!("{}:", record.id));
        self.seen.values().flatten().find_map(|server| {
            let row = server.snapshot.panes.iter().find(|row| row.attempt.starts_with(mark.as_bytes()))?;
            let own = record.ait.server.as_ref().is_some_and(|own| own.is_same_life(&server.epoch));
            Some(Pane {
                id: row.id.to_string().parse().ok()?,
                process: process_of(row, record)?,
                dead: row.dead,
                stamped: row.frozen == id.as_bytes(),
                ready: row.ready,
                attempt: true,
                elsewhere: (!own).then(|| server.epoch.clone()),
            })
        })
    }

    /// The server of that life, as listed.
    fn of(&self, epoch: &ServerEpoch) -> Option<&Server> {
        let server = self.seen.get(Path::new(&epoch.socket))?.as_ref()?;
        let same =
            server.epoch.pid == epoch.pid && liveness(&epoch.process()) == crate::record::Liveness::Alive;
        same.then_some(server)
    }
}

/// The pane's process; a dead pane's is the one the record knows.
fn process_of(row: &PaneRow, record: &Record) -> Option<ProcessId> {
    match row.pid.filter(|pid| *pid > 0) {
        Some(pid) => Some(process::identify(pid).unwrap_or_else(|| ProcessId::bare(pid))),
        None => record.location.process().cloned(),
    }
}

/// Lists a server, if the one that listens before is the one that listens after.
async fn list(socket: &Path) -> Option<Server> {
    let listener = || match probe(socket) {
        Probe::Listening(peer) => peer.pid,
        Probe::NoSocket | Probe::Refused | Probe::Unknown(_) => None,
    };
    let before = listener()?;
    let server = OneShot::new(socket).ok()?;
    let snapshot = listing::snapshot(&server).await.ok()?;
    let epoch = crate::lifecycle::adopt::epoch(&server).await.ok()?;
    (listener() == Some(before) && epoch.pid == before).then_some(Server { epoch, snapshot })
}

/// What is to be seen of a frozen record's capture: absent only if the folder above can be read and it is not in it.
pub(super) fn capture(record: &Record, paths: &Paths) -> CaptureSight {
    if record.capture.ansi.is_empty() {
        return CaptureSight::There;
    }
    let missing = |path: &Path| match path.symlink_metadata() {
        Ok(_) => Some(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(true),
        Err(_) => None,
    };
    // An unmounted disk shows no place, or an empty one: then nothing proves that the capture was ever there.
    if std::fs::read_dir(&paths.frozen).ok().and_then(|mut entries| entries.next()).is_none() {
        return CaptureSight::Unknown;
    }
    match missing(Path::new(&record.capture.ansi)) {
        Some(false) => CaptureSight::There,
        Some(true) if Path::new(&record.capture.ansi).starts_with(&paths.frozen) => CaptureSight::Absent,
        Some(true) | None => CaptureSight::Unknown,
    }
}
