//! The last turn event of each record, as its agent's hook told it: `<state>/sessions/<record id>/turn.json`, replaced
//! whole. A fact of the moment: it is not synced, and one that cannot be read is no fact.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::paths::{Paths, make_private};
use super::{StoreError, file};
use crate::record::RecordId;
pub use crate::record::report::{Turn, TurnState};

/// The most that is read of a turn file, in bytes.
const LIMIT: u64 = 64 * 1024;

/// The folder of a record's own files: turn, and what belongs to its session.
#[must_use]
pub fn folder(paths: &Paths, record: RecordId) -> PathBuf {
    paths.state.join("sessions").join(record.to_string())
}

/// The file of a record's last turn event.
#[must_use]
pub fn path(paths: &Paths, record: RecordId) -> PathBuf {
    folder(paths, record).join("turn.json")
}

/// The last turn event of a record; `None` if none was told, or what is there is none.
///
/// # Errors
/// [`StoreError::Io`] if there is a file that cannot be read.
pub fn read(paths: &Paths, record: RecordId) -> Result<Option<Turn>, StoreError> {
    let path = path(paths, record);
    let failed = |error| StoreError::io("read", &path, error);
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).map_err(failed)?;
    Ok(serde_json::from_slice(&text).ok())
}

/// How often a writer looks whether another one is done, and how long it waits between.
const TRIES: (usize, Duration) = (20, Duration::from_millis(5));

/// Tells a turn event of a record, making its folder if need be: what is written is the turn after the one before it. Hooks of
/// one agent may run side by side; each waits a little for the other.
///
/// # Errors
/// [`StoreError::Io`].
pub fn write(paths: &Paths, record: RecordId, turn: &Turn) -> Result<(), StoreError> {
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
    let before = read(paths, record)?;
    let turn = turn.clone().after(before.as_ref());
    let path = path(paths, record);
    let mut text = serde_json::to_vec(&turn).map_err(|e| StoreError::io("print", &path, e.into()))?;
    text.push(b'\n');
    replace(&path, &text, false)
}

/// Puts a file of ours in place whole, 0600.
pub(super) fn replace(path: &Path, text: &[u8], sync: bool) -> Result<(), StoreError> {
    let new = file::temporary(path);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(&new, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        StoreError::io("write", path, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stamp;

    #[test]
    fn a_turn_goes_both_ways_and_what_is_none_is_no_fact() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let paths =
            Paths { store: at("s.json"), frozen: at("frozen"), state: at("state"), runtime: at("run") };
        let record = RecordId::from_bits(7);
        assert_eq!(read(&paths, record).unwrap(), None);
        let turn = Turn {
            state: TurnState::NeedsInput,
            source: "hook".into(),
            event: "PermissionRequest".into(),
            at: Stamp::from_unix(1_800_000_000),
            background: false,
            prompt: None,
            open: Vec::new(),
        };
        write(&paths, record, &turn).unwrap();
        assert_eq!(read(&paths, record).unwrap(), Some(turn.clone()));
        let file = path(&paths, record);
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            text.contains(r#""state":"needs_input""#) && text.contains(r#""at":"2027-01-15T08:00:00Z""#),
            "{text}"
        );
        let left: Vec<_> = fs::read_dir(folder(&paths, record)).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing beside it: {left:?}");
        fs::write(&file, "{").unwrap();
        assert_eq!(read(&paths, record).unwrap(), None);
    }
}
