//! The conversations of Codex as they are written, told of by their folders and read only: what its turns are at, sooner than
//! its title tells it, and which conversation an agent has opened, by its own process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::Driver;
use super::scribe::Job;
use crate::history::{Rollout, rollout_id};
use crate::lifecycle::identity;
use crate::provider::{Catalog, Provider};
use crate::record::{Record, RecordId};
use crate::supervisor::Input;
use crate::turn::Moment;
use crate::watch::{Touched, Watcher};

/// How often a file of nobody's is asked about before it is let be, and how many such are remembered.
const STRANGE: (u8, usize) = (3, 1024);

/// A Codex that is followed: its record as far as that matters.
type Followed = BTreeMap<RecordId, Arc<Record>>;

/// Starts the task; it is told which records are Codex's that live, and ends with the loop.
pub(super) fn start(
    catalog: Arc<Catalog>,
    inbox: mpsc::Sender<Input>,
    jobs: mpsc::Sender<Job>,
) -> watch::Sender<Followed> {
    let (tell, told) = watch::channel(Followed::new());
    tokio::spawn(async move {
        match Watcher::of_writes() {
            Ok(watcher) => {
                let ears = Ears {
                    catalog,
                    inbox,
                    jobs,
                    watcher,
                    followed: Followed::new(),
                    rollouts: BTreeMap::new(),
                    folders: BTreeMap::new(),
                    strange: BTreeMap::new(),
                };
                ears.listen(told).await;
            }
            Err(error) => tracing::warn!(%error, "the conversations of Codex are not heard of"),
        }
    });
    tell
}

impl Driver {
    /// Tells which agents are Codex's.
    pub(super) fn listen_to_rollouts(&self) {
        let codex = |record: &&Record| Provider::named(&record.agent_kind) == Some(Provider::Codex);
        let now: Vec<&Record> = self.supervisor.live_records().filter(codex).collect();
        self.rollouts.send_if_modified(|before| {
            let same = before.len() == now.len()
                && now.iter().all(|record| before.get(&record.id).is_some_and(|was| is_same(was, record)));
            if !same {
                let kept = |record: &&Record| (record.id, Arc::new(Record::clone(record)));
                *before = now.iter().map(kept).collect();
            }
            !same
        });
    }
}

/// Whether they are the same launch with the same conversation.
fn is_same(one: &Record, other: &Record) -> bool {
    let of =
        |record: &Record| (record.runtime(), record.codeagent_session_id.clone(), record.agent_process());
    of(one) == of(other)
}

/// All that the task has.
struct Ears {
    catalog: Arc<Catalog>,
    inbox: mpsc::Sender<Input>,
    jobs: mpsc::Sender<Job>,
    watcher: Watcher,
    followed: Followed,
    /// Where the conversation of each is read.
    rollouts: BTreeMap<RecordId, Rollout>,
    /// What is watched below each store.
    folders: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Files of nobody's, and how often they were asked about.
    strange: BTreeMap<PathBuf, u8>,
}

impl Ears {
    async fn listen(mut self, mut told: watch::Receiver<Followed>) {
        loop {
            tokio::select! {
                changed = told.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let now = told.borrow_and_update().clone();
                    self.follow(now).await;
                }
                touched = self.watcher.next() => self.touched(touched).await,
            }
        }
    }

    /// Follows these from now on.
    async fn follow(&mut self, now: Followed) {
        let before = std::mem::replace(&mut self.followed, now);
        let is_kept = |id: &RecordId| {
            let pair = before.get(id).zip(self.followed.get(id));
            pair.is_some_and(|(was, is)| is_same(was, is))
        };
        self.rollouts.retain(|id, _| is_kept(id));
        let new: Vec<Arc<Record>> = self
            .followed
            .values()
            .filter(|record| {
                !self.rollouts.contains_key(&record.id) && !record.codeagent_session_id.is_empty()
            })
            .map(Arc::clone)
            .collect();
        let catalog = Arc::clone(&self.catalog);
        let find = move || -> Vec<(RecordId, Rollout)> {
            let found = new.iter().filter_map(|record| {
                let path = identity::transcript(&catalog, record)?;
                Some((record.id, Rollout::new(&path, launched(record))))
            });
            found.collect()
        };
        // the loop may have ended
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        let ids: Vec<RecordId> = found.iter().map(|(id, _)| *id).collect();
        self.rollouts.extend(found);
        self.attend();
        for id in ids {
            self.look(id).await;
        }
    }

    /// Watches where their conversations lie, and where new ones appear today.
    fn attend(&mut self) {
        let mut wanted: BTreeMap<PathBuf, BTreeSet<PathBuf>> =
            self.folders.keys().map(|store| (store.clone(), BTreeSet::new())).collect();
        for record in self.followed.values() {
            let openings = identity::openings(record);
            let Some(store) = openings.last().cloned() else { continue };
            let below = wanted.entry(store.clone()).or_default();
            let rollout = self.rollouts.get(&record.id).and_then(|rollout| rollout.path().parent());
            for folder in openings.iter().map(PathBuf::as_path).chain(rollout) {
                // those above it too: a day that begins is a folder in one of them
                let up = folder.ancestors().take_while(|above| above.starts_with(&store));
                below.extend(up.map(Path::to_owned));
            }
        }
        for (store, folders) in &wanted {
            if self.folders.get(store) == Some(folders) {
                continue;
            }
            if let Err(error) = self.watcher.keep(store, folders) {
                tracing::warn!(%error, store = %store.display(), "conversations are not heard of");
            }
        }
        self.folders = wanted;
    }

    async fn touched(&mut self, touched: Touched) {
        let path = match touched {
            Touched::Path(path) => path,
            Touched::All => {
                self.attend();
                self.identify(|_| true).await;
                for id in self.rollouts.keys().copied().collect::<Vec<_>>() {
                    self.look(id).await;
                }
                return;
            }
        };
        let of_a_store = |store: &PathBuf| path.starts_with(store) || store.starts_with(&path);
        if !self.folders.keys().any(of_a_store) {
            return;
        }
        let Some(conversation) = rollout_id(&path) else {
            // the folder of a day that begins
            self.attend();
            return self.identify(|record| record.codeagent_session_id.is_empty()).await;
        };
        let own = self.followed.values().find(|record| record.codeagent_session_id == conversation);
        if let Some(record) = own.map(Arc::clone) {
            let rollout = self.rollouts.entry(record.id);
            rollout.or_insert_with(|| Rollout::new(&path, launched(&record)));
            return self.look(record.id).await;
        }
        if self.strange.len() > STRANGE.1 {
            self.strange.clear();
        }
        let asked = self.strange.entry(path).or_default();
        *asked = asked.saturating_add(1);
        if *asked <= STRANGE.0 {
            self.identify(|_| true).await;
        }
    }

    /// Notes which conversation these have opened, by what their processes hold open.
    async fn identify(&self, which: impl Fn(&Record) -> bool) {
        for record in self.followed.values().filter(|record| which(record)) {
            // the thread lives as long as we do
            let _ = self.jobs.send(Job::Identify(record.id)).await;
        }
    }

    /// Reads what was written since, and tells what it says.
    async fn look(&mut self, id: RecordId) {
        let Some(mut rollout) = self.rollouts.get(&id).cloned() else { return };
        let read = tokio::task::spawn_blocking(move || {
            let seen = rollout.look(Moment::from(jiff::Timestamp::now()));
            (rollout, seen)
        });
        let Ok((rollout, seen)) = read.await else { return };
        let call = rollout.call();
        let before = self.rollouts.insert(id, rollout);
        if before.is_some_and(|before| before.call() != call) {
            // the loop may have ended
            let _ = self.inbox.send(Input::Called { record: id, waits: call.is_some() }).await;
        }
        match seen {
            Ok(Some(seen)) => {
                // the loop may have ended
                let _ = self.inbox.send(Input::Observed { record: id, seen: Box::new(seen) }).await;
            }
            Ok(None) => {}
            Err(error) => tracing::info!(record = %id, %error, "its conversation is not read"),
        }
    }
}

/// When the launch of a live record was on record: what was written before is of an earlier one.
fn launched(record: &Record) -> Moment {
    let at = record.state_at.or(record.started_at);
    at.map_or_else(Moment::default, |at| Moment::from_millis(at.unix().saturating_mul(1000)))
}
