//! The turn of each record's agent on disk, in the record's own folder `<state>/sessions/<record id>/`:
//!
//! | file | holds |
//! |---|---|
//! | `activity.json` | all that is known ([`Turns`]), replaced whole; the last event in it until the next one |
//! | `activity.replay.bin` | which events were taken, so that one told twice counts once |
//! | `activity.journal.jsonl` | the last events, for a person: [`journal`] |
//! | `activity.diagnostic.json` | why the last event of its hook was not taken as it should be: [`Diagnostic`] |
//!
//! An event is written in that order, and each writer first completes what the one before it left undone, so a crash between
//! any two writes loses nothing and doubles nothing. They are facts of the moment and not synced: after a power cut the agent is
//! gone too. Of text they hold names of events and tools; prompts, paths and the provider's own ids never.
//!
//! Events of one record are serialised by a lock on its folder that is waited for only so long: a hook may not hold up its
//! agent.

mod diagnostic;
mod journal;
mod replay;
mod sweep;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::paths::{Paths, make_private};
use super::{StoreError, file};
use crate::record::{Record, RecordId};
use crate::turn::{Event, Moment, Observation, Source, Turns, View};
pub use diagnostic::Diagnostic;
use replay::{Fault, Replay};
pub(super) use sweep::remove;

/// The most that is read of one file, in bytes.
const LIMIT: u64 = 256 * 1024;
/// The format of `activity.json`.
const FORMAT: &str = "ait.activity.v1";
/// How often what a source still shows is written again, so that it does not count as old.
pub const RENEWED: Duration = Duration::from_secs(30);
/// How often a writer looks whether another one is done, and how long it waits between.
const TRIES: (usize, Duration) = (20, Duration::from_millis(5));

/// Whose turn it is: the record, and this launch of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The record.
    pub record: RecordId,
    /// The launch.
    pub runtime: String,
    /// The provider's short name.
    pub provider: String,
}

impl Whose {
    /// That of a record as it is now.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self { record: record.id, runtime: record.runtime(), provider: record.agent_kind.clone() }
    }
}

/// Why a turn is not told.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The system refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was taken before cannot be known, so nothing more is taken of this launch.
    #[error("{path}: {fault}; events of this launch are no longer taken")]
    Replay {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// What is known cannot be read, so nothing more is taken of this launch.
    #[error("{path} cannot be read; events of this launch are no longer taken")]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

impl TurnError {
    /// The code in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(_) => "activity-write-failed",
            Self::Replay { fault, .. } => fault.code(),
            Self::Unreadable { .. } => "activity-unreadable",
        }
    }
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What is known after it.
    pub turns: Turns,
    /// It was told before; nothing changed.
    pub duplicate: bool,
}

/// The folder of a record's own files: its turn, and what belongs to its session.
#[must_use]
pub fn folder(paths: &Paths, record: RecordId) -> PathBuf {
    paths.state.join("sessions").join(record.to_string())
}

/// The file of what is known of a record's turn.
#[must_use]
pub fn path(paths: &Paths, record: RecordId) -> PathBuf {
    folder(paths, record).join("activity.json")
}

/// What is known of a record's turn, of whichever launch; `None` if nothing is, or what is there is none.
///
/// # Errors
/// [`StoreError::Io`] if there is a file that cannot be read.
pub fn read(paths: &Paths, record: RecordId) -> Result<Option<Turns>, StoreError> {
    Ok(match load(&path(paths, record))? {
        Known::Turns(turns) => Some(*turns),
        Known::Nothing | Known::Unreadable => None,
    })
}

/// What is known of the turn of this launch: of another one, and where it is not known which events were taken, nothing.
#[must_use]
pub fn of(paths: &Paths, whose: &Whose) -> Turns {
    let unknown = || Turns::new(&whose.runtime);
    let Ok(Some(turns)) = read(paths, whose.record) else { return unknown() };
    let whole = turns.accepted <= 1 || {
        let taken = replay::look(&replay_path(&folder(paths, whose.record)), &turns.runtime);
        taken.is_ok_and(|taken| taken + 1 >= turns.accepted)
    };
    if turns.runtime == whose.runtime && whole { turns } else { unknown() }
}

/// What a record's agent is at, as far as is written.
#[must_use]
pub fn view(paths: &Paths, whose: &Whose, now: Moment) -> View {
    of(paths, whose).view(now)
}

/// Tells an event, making the record's folder if need be. One of another launch than was known begins that one.
///
/// # Errors
/// [`TurnError`]; told once more, the event is taken or known to have been.
pub fn tell(paths: &Paths, whose: &Whose, event: &Event) -> Result<Told, TurnError> {
    let book = Book::open(paths, whose.record)?;
    let mut turns = book.current(whose, event.at)?;
    let mut replay = book.replay(&mut turns)?;
    book.complete(&turns)?;
    if replay.holds(&event.id) {
        return Ok(Told { turns, duplicate: true });
    }
    let event = event.clone().local(&whose.runtime, &whose.provider);
    turns.hear(&event);
    book.write(&turns)?;
    replay.add(&event.id)?;
    book.complete(&turns)?;
    Ok(Told { turns, duplicate: false })
}

/// Tells what a source shows now. What is known after it, or `None` where it is nothing new.
///
/// # Errors
/// [`TurnError`].
pub fn observe(paths: &Paths, whose: &Whose, seen: &Observation) -> Result<Option<Turns>, TurnError> {
    let book = Book::open(paths, whose.record)?;
    let mut turns = book.current(whose, seen.at)?;
    let heard = turns.claims.get(&seen.source).map(|claim| claim.seen);
    let news = turns.observe(seen);
    if news || heard.is_some_and(|heard| heard.age(seen.at) >= RENEWED) {
        book.write(&turns)?;
    }
    Ok(news.then_some(turns))
}

/// The agent was launched anew; where it was heard of already, nothing is to be said.
///
/// # Errors
/// [`TurnError`].
pub fn begin(paths: &Paths, whose: &Whose, at: Moment) -> Result<Turns, TurnError> {
    let book = Book::open(paths, whose.record)?;
    let mut turns = book.current(whose, at)?;
    if turns.accepted == 0 && turns.claims.keys().all(|source| *source == Source::Runtime) {
        turns.begin(&whose.runtime, at);
        book.write(&turns)?;
    }
    Ok(turns)
}

/// The last events of a record, the oldest first, as JSON lines.
///
/// # Errors
/// [`StoreError::Io`].
pub fn journal(paths: &Paths, record: RecordId) -> Result<Vec<journal::Entry>, StoreError> {
    journal::read(&folder(paths, record).join(journal::NAME))
}

fn replay_path(folder: &Path) -> PathBuf {
    folder.join("activity.replay.bin")
}

/// What `activity.json` holds.
enum Known {
    Nothing,
    Unreadable,
    Turns(Box<Turns>),
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Written<T> {
    schema_version: String,
    #[serde(flatten)]
    turns: T,
}

fn load(path: &Path) -> Result<Known, StoreError> {
    let failed = |error| StoreError::io("read", path, error);
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Known::Nothing),
        Err(error) => return Err(failed(error)),
    };
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).map_err(failed)?;
    Ok(match serde_json::from_slice::<Written<Turns>>(&text) {
        Ok(written) if written.schema_version == FORMAT => Known::Turns(Box::new(written.turns)),
        Ok(_) | Err(_) => Known::Unreadable,
    })
}

/// The folder of one record, held.
struct Book {
    folder: PathBuf,
    _held: File,
}

impl Book {
    fn open(paths: &Paths, record: RecordId) -> Result<Self, StoreError> {
        let folder = folder(paths, record);
        make_private(&folder)?;
        let held = File::open(&folder).map_err(|error| StoreError::io("open", &folder, error))?;
        for _ in 0..TRIES.0 {
            match flock(&held, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(TRIES.1),
                // a file system without locks: hooks side by side are rare
                Ok(()) | Err(_) => break,
            }
        }
        Ok(Self { folder, _held: held })
    }

    /// What is known of this launch. What was left undone of another one is completed; what cannot be read is put aside, unless
    /// it may be of this launch.
    fn current(&self, whose: &Whose, at: Moment) -> Result<Turns, TurnError> {
        let path = self.folder.join("activity.json");
        match load(&path)? {
            Known::Nothing => Ok(Turns::new(&whose.runtime)),
            Known::Turns(turns) if turns.runtime == whose.runtime => Ok(*turns),
            Known::Turns(mut turns) => {
                self.complete(&turns)?;
                turns.begin(&whose.runtime, at);
                Ok(*turns)
            }
            Known::Unreadable => {
                if replay::look(&replay_path(&self.folder), &whose.runtime).is_ok() {
                    return Err(TurnError::Unreadable { path });
                }
                let aside = path.with_file_name(format!("activity.quarantine.{}.json", at.millis()));
                fs::rename(&path, &aside).map_err(|error| StoreError::io("put aside", &path, error))?;
                Ok(Turns::new(&whose.runtime))
            }
        }
    }

    /// Which events of this launch were taken: with the last one, if its writer did not come to that.
    fn replay(&self, turns: &mut Turns) -> Result<Replay, TurnError> {
        let path = replay_path(&self.folder);
        let failed = |fault| TurnError::Replay { path: path.clone(), fault };
        let mut replay = match Replay::open(&path, &turns.runtime)? {
            Ok(replay) => replay,
            // of the launch before, or the very first
            Err(_) if turns.accepted <= 1 => Replay::create(&path, &turns.runtime)?,
            Err(fault) => return Err(failed(fault)),
        };
        match (turns.accepted.checked_sub(replay.taken()), &turns.latest) {
            (Some(0), _) => {}
            (Some(1), Some(latest)) => replay.add(&latest.id)?,
            (Some(_), _) => return Err(failed(Fault::Short)),
            // a power cut took the latest state, not what was taken
            (None, _) => turns.accepted = replay.taken(),
        }
        Ok(replay)
    }

    /// Puts the last event into the journal, if it is not there.
    fn complete(&self, turns: &Turns) -> Result<(), StoreError> {
        match &turns.latest {
            Some(latest) => journal::put(&self.folder.join(journal::NAME), turns, latest),
            None => Ok(()),
        }
    }

    fn write(&self, turns: &Turns) -> Result<(), StoreError> {
        let path = self.folder.join("activity.json");
        let written = Written { schema_version: FORMAT.to_owned(), turns };
        let mut text =
            serde_json::to_vec(&written).map_err(|error| StoreError::io("print", &path, error.into()))?;
        text.push(b'\n');
        file::put(&path, &text, false)
    }
}

#[cfg(test)]
mod tests;
