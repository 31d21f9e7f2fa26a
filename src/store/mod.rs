//! The record file on disk: its locks, its atomic replace, the archive, captures and checkpoints.
//!
//! Readers take no lock, ever; writers take both (`lock`), read, apply a batch of verbs through
//! [`Records::step`], and write once ([`Store::apply`], [`Store::update`]). An unchanged store is not rewritten. It
//! decides nothing about records, never reads a broken file as empty, and never writes over one.
//!
//! ```text
//! lock → read → apply → archive lines synced → temporary file, fsync → .prev → rename → fsync folder → captures deleted
//! ```

mod archive;
mod book;
mod file;
mod lock;
mod paths;
mod peek;
mod plans;
mod repair;
mod screen;
pub mod sends;
pub mod spool;
mod supervisor_lock;
mod system;
pub mod turns;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use archive::{
    Archive, Archived, COMPACT_AT, Compacted, DROPPED, KEEP, KEEP_SCREEN, Listed, SCREENS, without,
};
pub use file::Narrowed;
pub use paths::{Files, Paths, make_private, real_path};
pub use repair::{Cure, Repair};
pub use screen::{lines as screen_lines, plain as plain_screen};
pub use supervisor_lock::{Seen, Supervising, SupervisorLock, Taken};
pub use system::{System, draw, liveness};

use crate::record::read::{BadRecord, Fault, Parsed, read};
use crate::record::report::{Report, Settled};
use crate::record::{Captures, Done, Facts, Record, RecordId, Records, Refused, Stamp, Step, VERSION, Verb};
use crate::turn::Event;

/// How long a verb waits for the locks.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long purge and reconcile wait for the locks.
pub const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a provider's hook waits for the locks before it spools.
pub const HOOK_PATIENCE: Duration = Duration::from_millis(100);

/// Why the store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Others held a lock too long; nothing was written.
    #[error("the store is locked by another writer: {path}")]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// The file is broken as a whole.
    #[error("corrupt store {path}: {fault}")]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What and where.
        fault: Fault,
    },
    /// Some records are broken: nothing is written until they are repaired or dropped.
    #[error("store {path} holds {} broken record(s), the first on line {}: {}", bad.len(), first(bad).0, first(bad).1)]
    BadRecords {
        /// The store.
        path: PathBuf,
        /// The broken records.
        bad: Vec<BadRecord>,
    },
    /// A newer program wrote it: it is read as far as it goes and never written.
    #[error("store {path} has format {version}, this program writes {VERSION}")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        version: i64,
    },
    /// The system refused.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder that must be ours alone is not.
    #[error("refusing to use {path}: {why}")]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// Nobody says where home is.
    #[error("neither HOME nor the user database names a home")]
    NoHome,
}

impl StoreError {
    fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    /// The exit code of `ait record`.
    #[must_use]
    pub fn record_exit(&self) -> u8 {
        match self {
            Self::Busy { .. } => 3,
            Self::Corrupt { .. } | Self::BadRecords { .. } | Self::Newer { .. } => 4,
            Self::Io { .. } | Self::NotOurs { .. } | Self::NoHome => 1,
        }
    }
}

fn first(bad: &[BadRecord]) -> (usize, &str) {
    bad.first().map_or((0, ""), |bad| (bad.line, bad.reason.as_str()))
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The store file.
    Store,
    /// There is no store file yet.
    Missing,
    /// The store file is broken; this is the generation before.
    Previous(Fault),
}

/// The store as read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The good records.
    pub records: Records,
    /// The broken ones, each named.
    pub bad: Vec<BadRecord>,
    /// Where it comes from.
    pub origin: Origin,
    /// The file's format.
    pub version: i64,
}

/// What a writer last read or wrote, and which generation of the file that is.
#[derive(Debug)]
struct Cached {
    generation: file::Generation,
    snapshot: Arc<Snapshot>,
}

/// The store of one user.
#[derive(Debug)]
pub struct Store {
    paths: Paths,
    keep: Duration,
    cached: Mutex<Option<Cached>>,
    swept: Mutex<bool>,
}

/// A batch of verbs, applied in order under the locks and written at once.
pub struct Batch<'a> {
    records: Records,
    facts: &'a Facts<'a>,
    done: Vec<Done>,
}

impl Batch<'_> {
    /// The records as they are so far.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Applies one verb.
    ///
    /// # Errors
    /// [`Refused`]; then nothing changed, and the batch goes on.
    pub fn step(&mut self, id: Option<RecordId>, verb: &Verb) -> Result<Done, Refused> {
        let done = self.records.step(id, verb, self.facts)?;
        self.done.push(done.clone());
        Ok(done)
    }

    /// Takes what a hook reports.
    pub fn report(&mut self, report: &Report) -> Heard {
        match report.settle(&self.records, self.facts) {
            Settled::Known(id) => Heard::Record(id),
            Settled::Unknown => Heard::Unknown,
            Settled::Unproven(id) => Heard::Unproven(id),
            Settled::Late(why) => Heard::Refused(why.to_owned()),
            Settled::Step(step) => match self.step(step.0, &step.1) {
                Ok(done) => Heard::Record(done.id),
                Err(refused) => Heard::Refused(refused.to_string()),
            },
        }
    }
}

/// What came of a hook's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// This record knows it.
    Record(RecordId),
    /// Its agent has no record yet.
    Unknown,
    /// The restore it belongs to has not said yet what it launched.
    Unproven(RecordId),
    /// It is let go: why.
    Refused(String),
}

impl Store {
    /// The store at these places. Touches nothing yet.
    #[must_use]
    pub fn open(paths: Paths) -> Self {
        Self { paths, keep: KEEP, cached: Mutex::new(None), swept: Mutex::new(false) }
    }

    /// The same, with another time that retired records are kept ([`KEEP`] unless given).
    #[must_use]
    pub fn keeping(self, keep: Duration) -> Self {
        Self { keep, ..self }
    }

    /// Its places.
    #[must_use]
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Reads without a lock; parses only if the file changed since the last read or write of this process. A broken
    /// store gives the generation before, labelled so, if that one reads.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if neither generation reads; [`StoreError::Io`].
    pub fn read(&self) -> Result<Arc<Snapshot>, StoreError> {
        let files = self.paths.files();
        match self.load(&files) {
            Err(StoreError::Corrupt { path, fault }) => {
                match file::read(&files.prev)?.map(|(_, text)| read(&text)) {
                    Some(Ok(parsed)) => Ok(Arc::new(snapshot(parsed, Origin::Previous(fault)))),
                    Some(Err(_)) | None => Err(StoreError::Corrupt { path, fault }),
                }
            }
            read => read,
        }
    }

    /// Applies verbs in order, each to the record named beside it, and writes once. The answers come in the same order;
    /// a refused verb does not stop the others.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was written (an archive line may have been: it is folded on reading).
    pub fn apply(
        &self,
        steps: &[Step],
        facts: &Facts<'_>,
        patience: Duration,
    ) -> Result<Vec<Result<Done, Refused>>, StoreError> {
        self.update(facts, patience, |batch| steps.iter().map(|(id, verb)| batch.step(*id, verb)).collect())
    }

    /// Lets `change` look at the records and apply verbs under the locks, then writes once.
    ///
    /// # Errors
    /// As [`Store::apply`].
    pub fn update<T>(
        &self,
        facts: &Facts<'_>,
        patience: Duration,
        change: impl FnOnce(&mut Batch<'_>) -> T,
    ) -> Result<T, StoreError> {
        let files = self.paths.files();
        let _lock = lock::WriteLock::take(&files, patience)?;
        self.sweep(&files);
        let before = self.load(&files)?;
        if before.version > VERSION {
            return Err(StoreError::Newer { path: files.store, version: before.version });
        }
        if !before.bad.is_empty() {
            return Err(StoreError::BadRecords { path: files.store, bad: before.bad.clone() });
        }
        let mut batch = Batch { records: before.records.clone(), facts, done: Vec::new() };
        let mut settled = Vec::new();
        // what finds no record yet may find the one that is made now
        let left = drain(&mut batch, spool::waiting(&self.paths), &mut settled);
        let answer = change(&mut batch);
        drain(&mut batch, left, &mut settled);
        let Batch { mut records, done, .. } = batch;
        if done.iter().any(|done| done.changed) {
            let retired: Vec<Archived> = done.iter().filter_map(|done| archived(done, facts.now)).collect();
            let archive = Archive::new(&files);
            archive.append(&retired)?;
            records.sort();
            if records != before.records {
                self.write(&files, records)?;
            }
            if !retired.is_empty() {
                self.compact(&files, facts.now)?;
            }
        }
        for done in done.iter().filter(|done| done.captures == Captures::Remove) {
            self.remove_captures(done.id);
        }
        // an end that a reboot may still claim is shown by its checkpoint then
        for done in &done {
            if done.archive.as_ref().is_some_and(|(_, farewell)| !farewell.provisional) {
                self.remove_checkpoint(done.id);
            }
        }
        self.let_go(settled);
        Ok(answer)
    }

    /// Writes what hooks could not write, if anything waits.
    ///
    /// # Errors
    /// As [`Store::apply`]; then it still waits.
    pub fn drain(&self, facts: &Facts<'_>, patience: Duration) -> Result<(), StoreError> {
        if spool::is_waiting(&self.paths) { self.update(facts, patience, |_| ()) } else { Ok(()) }
    }

    /// Forgets what is on disk now, and tells the turns of it where nothing later was told.
    fn let_go(&self, settled: Vec<Gone>) {
        for Gone { path, turn } in settled {
            if let Some((whose, event)) = turn
                && turns::of(&self.paths, &whose).latest.is_none_or(|latest| latest.at <= event.at)
                && let Err(error) = turns::tell(&self.paths, &whose, &event)
            {
                tracing::info!(%error, "a turn is not told");
            }
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "a settled report stays");
            }
        }
    }

    /// The record of the agent that reports, read from the file without parsing the rest of it where that can be done.
    ///
    /// # Errors
    /// [`StoreError`] if it takes a whole reading and that fails.
    pub fn record_of(&self, report: &Report) -> Result<Option<Record>, StoreError> {
        match peek::record_of(&self.paths.files(), report)? {
            Some(record) => Ok(Some(record)),
            None => Ok(report.record_of(self.read()?.records.iter()).cloned()),
        }
    }

    /// Deletes a retired record for good.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn delete_archived(&self, id: RecordId, at: Stamp, patience: Duration) -> Result<(), StoreError> {
        let files = self.paths.files();
        let _lock = lock::WriteLock::take(&files, patience)?;
        let archive = Archive::new(&files);
        archive.delete(id, at)?;
        self.compact(&files, at)
    }

    /// Compacts the archive where that is due; what it knows no more loses its folder. The lock must be held.
    fn compact(&self, files: &Files, now: Stamp) -> Result<(), StoreError> {
        let Some(told) = Archive::new(files).compact(now, self.keep)? else { return Ok(()) };
        tracing::info!("archive {} compacted: {told:?}", files.archive.display());
        // what came back is in the store again; one that is missing or broken does not say what is not
        match self.load(files) {
            Ok(there) if there.origin == Origin::Store && there.bad.is_empty() => {
                for id in told.forgotten.into_iter().filter(|id| there.records.get(*id).is_none()) {
                    turns::remove(&turns::folder(&self.paths, id));
                }
            }
            Ok(_) | Err(_) => tracing::info!("the folders of what was forgotten stay"),
        }
        Ok(())
    }

    /// What is wrong with the store and what would cure it; `None` if it is well.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn diagnose(&self) -> Result<Option<Repair>, StoreError> {
        repair::diagnose(&self.paths.files())
    }

    /// Carries a cure out, if it is still the cure for what is there. The broken file is kept aside.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn repair(&self, repair: &Repair, now: Stamp) -> Result<PathBuf, StoreError> {
        let files = self.paths.files();
        let _lock = lock::WriteLock::take(&files, LONG_PATIENCE)?;
        *self.cache() = None;
        repair::carry_out(&files, repair, now)
    }

    fn load(&self, files: &Files) -> Result<Arc<Snapshot>, StoreError> {
        let now = file::look(&files.store)?;
        if let Some(cached) = self.cache().as_ref()
            && Some(cached.generation.mark) == now
        {
            return Ok(Arc::clone(&cached.snapshot));
        }
        let Some((generation, text)) = file::read(&files.store)? else {
            return Ok(Arc::new(snapshot(Parsed { version: VERSION, ..Parsed::default() }, Origin::Missing)));
        };
        if text.is_empty()
            && let Some((_, before)) = file::read(&files.prev)?
            && !before.is_empty()
        {
            let reason = format!("the file is empty, the generation before it holds {} bytes", before.len());
            let fault = Fault { reason, line: 1, column: 1, offset: 0 };
            return Err(StoreError::Corrupt { path: files.store.clone(), fault });
        }
        let mut parsed =
            read(&text).map_err(|fault| StoreError::Corrupt { path: files.store.clone(), fault })?;
        parsed.records.map_roots(&mut |root| {
            let real = real_path(Path::new(root));
            real.into_os_string().into_string().ok()
        });
        let snapshot = Arc::new(snapshot(parsed, Origin::Store));
        *self.cache() = Some(Cached { generation, snapshot: Arc::clone(&snapshot) });
        Ok(snapshot)
    }

    fn write(&self, files: &Files, records: Records) -> Result<(), StoreError> {
        let text = records.print().map_err(|e| StoreError::io("print", &files.store, e.into()))?;
        let (generation, narrowed) = file::replace(files, &text)?;
        if let Some(mode) = narrowed.from {
            tracing::warn!(
                "{} could be used by others (mode {mode:04o}); it is narrowed",
                files.store.display()
            );
        }
        let parsed = Parsed { records, bad: Vec::new(), version: VERSION };
        *self.cache() = Some(Cached { generation, snapshot: Arc::new(snapshot(parsed, Origin::Store)) });
        Ok(())
    }

    /// Once per process: what killed writers left.
    fn sweep(&self, files: &Files) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if !*swept {
            file::sweep(files);
            lock::sweep_lockd(&files.lockd);
            *swept = true;
        }
    }

    fn cache(&self) -> MutexGuard<'_, Option<Cached>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A report that is settled: where it lies, and the turn it tells.
struct Gone {
    path: PathBuf,
    turn: Option<(turns::Whose, Event)>,
}

/// Applies reports that waited, in their order. Gives those that wait on.
fn drain(
    batch: &mut Batch<'_>,
    waiting: Vec<spool::Waiting>,
    settled: &mut Vec<Gone>,
) -> Vec<spool::Waiting> {
    let mut left = Vec::new();
    for waiting in waiting {
        let report = &waiting.report;
        match batch.report(report) {
            Heard::Record(id) => {
                let turn = batch
                    .records()
                    .get(id)
                    .and_then(|record| Some((turns::Whose::of(record), report.turn_of(record)?.clone())));
                settled.push(Gone { path: waiting.path, turn });
            }
            Heard::Refused(why) => {
                tracing::info!(provider = report.provider, event = report.event, %why, "a hook's report is let go");
                settled.push(Gone { path: waiting.path, turn: None });
            }
            // its record is on the way, as long as the agent lives
            Heard::Unknown | Heard::Unproven(_) => left.push(waiting),
        }
    }
    left
}

fn snapshot(parsed: Parsed, origin: Origin) -> Snapshot {
    Snapshot { records: parsed.records, bad: parsed.bad, origin, version: parsed.version }
}

fn archived(done: &Done, at: Stamp) -> Option<Archived> {
    let (record, farewell) = done.archive.as_ref()?;
    Some(Archived {
        at,
        evidence: farewell.evidence.clone(),
        provisional: farewell.provisional,
        reason: farewell.reason.clone(),
        record: record.as_ref().clone(),
    })
}
