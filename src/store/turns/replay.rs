//! Which events of a launch were taken: a header with whose they are and how many went before, then sixteen bytes an event, the
//! oldest first. Appended to; once it holds [`MOST`] it is replaced by the newest half. So the last [`KEPT`] at least are known,
//! however many came.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::store::{StoreError, file};

/// Events after which the older half is let go.
const MOST: usize = 8192;
/// Events that stay known.
pub(super) const KEPT: usize = MOST / 2;
/// Bytes of one event.
const SLOT: usize = 16;
/// Bytes before the first: what it is, whose it is, how many went before, nothing.
const HEADER: usize = 64;
const MAGIC: &[u8; 16] = b"ait turn seen v1";

type Slot = [u8; SLOT];

/// Why it is not known which events were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no file.
    Missing,
    /// It is none of ours, or too long.
    Size,
    /// It is another launch's.
    Foreign,
    /// Events are missing in it.
    Short,
}

impl Fault {
    /// The code in JSON.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "activity-replay-missing",
            Self::Size => "activity-replay-size-invalid",
            Self::Foreign => "activity-replay-runtime-mismatch",
            Self::Short => "activity-replay-short",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the file of events that were taken is gone",
            Self::Size => "it is no file of events that were taken",
            Self::Foreign => "it holds the events of another launch",
            Self::Short => "events that were taken are missing in it",
        })
    }
}

/// The events that were taken.
#[derive(Debug)]
pub(super) struct Replay {
    path: PathBuf,
    runtime: [u8; 32],
    /// Events that are no longer in it.
    dropped: u64,
    slots: Vec<Slot>,
}

/// How many events were taken.
pub(super) fn look(path: &Path, runtime: &str) -> Result<u64, Fault> {
    match Replay::open(path, runtime) {
        Ok(Ok(replay)) => Ok(replay.taken()),
        Ok(Err(fault)) => Err(fault),
        Err(_) => Err(Fault::Missing),
    }
}

impl Replay {
    /// Reads it. A slot that was cut off while it was written counts for none.
    pub(super) fn open(path: &Path, runtime: &str) -> Result<Result<Self, Fault>, StoreError> {
        let failed = |error| StoreError::io("read", path, error);
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(Fault::Missing)),
            Err(error) => return Err(failed(error)),
        };
        let most = HEADER + (MOST + 1) * SLOT;
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        let runtime = hash(&["ait turn runtime v1", runtime]);
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>().filter(|_| bytes.len() <= most) else {
            return Ok(Err(Fault::Size));
        };
        if header[..16] != *MAGIC {
            return Ok(Err(Fault::Size));
        }
        if header[16..48] != runtime {
            return Ok(Err(Fault::Foreign));
        }
        let mut dropped = [0; 8];
        dropped.copy_from_slice(&header[48..56]);
        let (slots, torn) = rest.as_chunks::<SLOT>();
        let replay = Self {
            path: path.to_owned(),
            runtime,
            dropped: u64::from_be_bytes(dropped),
            slots: slots.to_vec(),
        };
        if !torn.is_empty() {
            // the next one must begin at its place
            replay.write(&replay.slots)?;
        }
        Ok(Ok(replay))
    }

    /// An empty one in place of whatever is there.
    pub(super) fn create(path: &Path, runtime: &str) -> Result<Self, StoreError> {
        let runtime = hash(&["ait turn runtime v1", runtime]);
        let replay = Self { path: path.to_owned(), runtime, dropped: 0, slots: Vec::new() };
        replay.write(&[])?;
        Ok(replay)
    }

    /// How many events were taken.
    pub(super) fn taken(&self) -> u64 {
        self.dropped + self.slots.len() as u64
    }

    /// Whether this one was.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.slots.contains(&self.slot(id))
    }

    /// Takes note of one.
    pub(super) fn add(&mut self, id: &str) -> Result<(), StoreError> {
        let slot = self.slot(id);
        if self.slots.len() + 1 >= MOST {
            let surplus = self.slots.len() + 1 - KEPT;
            let mut kept = self.slots.split_off(surplus);
            kept.push(slot);
            self.slots = kept;
            self.dropped += surplus as u64;
            return self.write(&self.slots);
        }
        self.slots.push(slot);
        let appended = File::options().append(true).open(&self.path);
        appended
            .and_then(|mut file| file.write_all(&slot))
            .map_err(|error| StoreError::io("write", &self.path, error))
    }

    fn write(&self, slots: &[Slot]) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(HEADER + slots.len() * SLOT);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.runtime);
        bytes.extend_from_slice(&self.dropped.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend(slots.iter().flatten());
        file::put(&self.path, &bytes, false)
    }

    fn slot(&self, id: &str) -> Slot {
        let mut hash = Sha256::new();
        hash.update(self.runtime);
        hash.update(id.as_bytes());
        let mut slot = [0; SLOT];
        slot.copy_from_slice(&hash.finalize()[..SLOT]);
        slot
    }
}

fn hash(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}
