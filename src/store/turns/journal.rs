//! The last events of a record, a JSON line each; at most [`LINES`] lines and [`BYTES`] bytes, the oldest go first. For a person:
//! nothing is decided by it.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::store::{StoreError, file};
use crate::turn::{Event, Turns};

/// The file's name.
pub(super) const NAME: &str = "activity.journal.jsonl";
/// The most lines.
const LINES: usize = 256;
/// The most bytes.
const BYTES: usize = 64 * 1024;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The launch it is of.
    pub runtime: String,
    /// Its number in it, from 1.
    pub number: u64,
    /// The event.
    pub event: Event,
}

/// Reads what is whole of it.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, StoreError> {
    let text = text(path)?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Puts the last event in, if it is not there.
pub(super) fn put(path: &Path, turns: &Turns, latest: &Event) -> Result<(), StoreError> {
    let text = text(path)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines: Vec<&[u8]> = text[..whole].split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines.last().and_then(|line| serde_json::from_slice::<Entry>(line).ok());
    if last.is_some_and(|last| last.runtime == turns.runtime && last.number == turns.accepted) {
        return Ok(());
    }
    let entry = Entry { runtime: turns.runtime.clone(), number: turns.accepted, event: latest.clone() };
    let mut line = serde_json::to_vec(&entry).map_err(|error| StoreError::io("print", path, error.into()))?;
    line.push(b'\n');
    let fits = lines.len() < LINES && text.len() + line.len() <= BYTES && whole == text.len();
    if fits {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
        return file
            .and_then(|mut file| file.write_all(&line))
            .map_err(|error| StoreError::io("write", path, error));
    }
    let (mut kept, mut size) = (Vec::new(), line.len());
    // half of it, so that it is not written anew for each line
    for line in lines.iter().rev().take(LINES / 2) {
        size += line.len();
        if size > BYTES / 2 {
            break;
        }
        kept.push(*line);
    }
    kept.reverse();
    kept.push(&line);
    file::put(path, &kept.concat(), false)
}

fn text(path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |error| StoreError::io("read", path, error);
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let mut text = Vec::new();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file.take(4 * BYTES as u64).read_to_end(&mut text).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(failed(error)),
    };
    Ok(text)
}
