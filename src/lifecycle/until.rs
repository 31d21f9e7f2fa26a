//! Waiting for what an agent is at: told by its files, its provider's list and the end of its process; no call is made while
//! nothing happens.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::identity;
use crate::client;
use crate::process::{self, Opened, ProcessId, Watch};
use crate::record::{Liveness, Record, RecordId, State as RecordState};
use crate::store::{Store, StoreError, turns};
use crate::turn::{Moment, State, View};
use crate::watch::Watcher;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It waits for the next prompt, and nothing goes on behind that.
    Waiting,
    /// It asks for something.
    NeedsInput,
    /// Its process is gone.
    Exited,
}

/// How the wait ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// It came; what the agent was at then, where it still runs.
    Reached(Option<Box<View>>),
    /// It did not come in time.
    Late(Option<Box<View>>),
    /// It cannot come any more: the agent is gone.
    Gone,
}

/// Why there was no waiting.
#[derive(Debug, thiserror::Error)]
pub enum NotWaited {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its files cannot be watched.
    #[error("its files cannot be watched: {0}")]
    Blind(std::io::Error),
    /// Its process cannot be watched.
    #[error("its process cannot be watched: {0}")]
    Process(String),
}

/// Waits, for so long at most.
///
/// # Errors
/// [`NotWaited`].
pub async fn wait(
    store: &Store,
    id: RecordId,
    until: Until,
    span: Option<Duration>,
) -> Result<Waited, NotWaited> {
    let mut last = None;
    let waited = come(store, id, until, &mut last);
    match span {
        None => waited.await,
        Some(span) => match tokio::time::timeout(span, waited).await {
            Ok(waited) => waited,
            Err(_) => Ok(Waited::Late(last)),
        },
    }
}

async fn come(
    store: &Store,
    id: RecordId,
    until: Until,
    last: &mut Option<Box<View>>,
) -> Result<Waited, NotWaited> {
    let mut watcher = watcher(store, id).map_err(NotWaited::Blind)?;
    let mut listed = None;
    let mut watched: Option<(ProcessId, Watch)> = None;
    loop {
        let snapshot = store.read()?;
        let Some(record) = snapshot.records.get(id) else { return Ok(gone(until)) };
        let folder = identity::listing(record);
        if let (Some(folder), true) = (&folder, listed != folder) {
            watcher.add(folder).map_err(NotWaited::Blind)?;
        }
        listed = folder;
        let Some(process) = running(record) else { return Ok(gone(until)) };
        // while it is being restored there is no agent yet: the record's next change says more
        let mut over = false;
        if let Some(process) = process {
            if watched.as_ref().is_none_or(|(of, _)| *of != process) {
                match Watch::open(&process) {
                    Ok(Opened::Watching(watch)) => watched = Some((process, watch)),
                    Ok(Opened::Gone) => over = true,
                    Err(error) => return Err(NotWaited::Process(error.to_string())),
                }
            }
            if over {
                return Ok(gone(until));
            }
            let view = Box::new(view(store, record));
            let reached = match until {
                Until::Waiting => view.state == State::Waiting,
                Until::NeedsInput => view.state == State::NeedsInput,
                Until::Exited => false,
            };
            if reached && !view.is_guess() {
                return Ok(Waited::Reached(Some(view)));
            }
            *last = Some(view);
        }
        tokio::select! {
            biased;
            died = died(watched.as_ref().map(|(_, watch)| watch)) => if died { watched = None },
            _ = watcher.next() => {}
        }
    }
}

fn gone(until: Until) -> Waited {
    match until {
        Until::Exited => Waited::Reached(None),
        Until::Waiting | Until::NeedsInput => Waited::Gone,
    }
}

/// The folders in which something is told: the session's own, and the store's.
fn watcher(store: &Store, id: RecordId) -> std::io::Result<Watcher> {
    let file = store.paths().files().store;
    let mut watcher = Watcher::new()?;
    watcher.add(file.parent().unwrap_or(Path::new("/")))?;
    watcher.add(&turns::folder(store.paths(), id))?;
    Ok(watcher)
}

/// The agent's process: `None` if there is none and none to come, `Some(None)` if one is to come.
#[expect(clippy::option_option, reason = "gone, not yet, there")]
fn running(record: &Record) -> Option<Option<ProcessId>> {
    match &record.state {
        RecordState::Live | RecordState::Freezing => {
            let process = record.agent_process().or_else(|| record.location.process().cloned())?;
            (process::liveness(&process) != Liveness::Gone).then_some(Some(process))
        }
        RecordState::Restoring { .. } | RecordState::Aborting { .. } => Some(None),
        RecordState::Frozen { .. } => None,
    }
}

fn view(store: &Store, record: &Record) -> View {
    let now = Moment::from(jiff::Timestamp::now());
    let mut turns = turns::of(store.paths(), &turns::Whose::of(record));
    let nothing = BTreeMap::new();
    let environment = record.ait.env.as_ref().unwrap_or(&nothing);
    if let Some(entry) = record.agent_process().and_then(|agent| identity::listed(&agent, environment)) {
        turns.observe(&entry.observation(now));
    }
    client::view(&store.paths().files(), record.id, turns, now)
}

/// The end of a process; never where none is watched or its watch fails.
async fn died(watch: Option<&Watch>) -> bool {
    match watch {
        Some(watch) => match watch.died().await {
            Ok(()) => true,
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
