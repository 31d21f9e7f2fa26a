//! Checkpoints: what each live agent's terminal last showed, kept beside the store until it is lost or ends.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{KEEP_SCREEN, Store, StoreError, file};
use crate::record::{Capture, RecordId};

/// The two files of a checkpoint and of a capture.
const FILES: [&str; 2] = ["capture.ansi", "capture.txt"];

impl Store {
    /// Keeps what a live agent's terminal shows, in place of what was kept of it before.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_checkpoint(&self, id: RecordId, screen: &[u8]) -> Result<(), StoreError> {
        let folder = self.paths.make_checkpoint(id)?;
        for (name, text) in FILES.into_iter().zip([screen, &plain(screen)]) {
            write(&folder.join(name), text)?;
        }
        Ok(())
    }

    /// A lost record's checkpoint as its capture, moved to where captures lie: the agent that comes back is kept anew. What
    /// was moved before counts too, so that a loss whose write failed finds it again.
    #[must_use]
    pub fn take_checkpoint(&self, id: RecordId) -> Option<Capture> {
        let from = self.paths.checkpoint(id);
        if from.join(FILES[0]).is_file() {
            let to = self.paths.make_captures(id).ok()?;
            for name in FILES {
                fs::rename(from.join(name), to.join(name))
                    // another file system
                    .or_else(|_| fs::copy(from.join(name), to.join(name)).map(drop))
                    .ok()?;
            }
            self.remove_checkpoint(id);
        }
        let folder = self.paths.captures(id);
        let path = |name: &str| {
            let path = folder.join(name);
            path.is_file().then(|| path.into_os_string().into_string().ok()).flatten()
        };
        let (ansi, txt) = (path(FILES[0])?, path(FILES[1]).unwrap_or_default());
        let lines = fs::read(&ansi).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count() as u64);
        Some(Capture { ansi, lines, txt })
    }

    /// Removes old checkpoints of agents that are in the store no more.
    pub fn sweep_checkpoints(&self) {
        let Ok(snapshot) = self.read() else { return };
        let Ok(entries) = fs::read_dir(self.paths.state.join("checkpoints")) else { return };
        for entry in entries.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<RecordId>().ok()) else {
                continue;
            };
            let age = entry.metadata().and_then(|meta| meta.modified()).map(|at| at.elapsed());
            if snapshot.records.get(id).is_none() && matches!(age, Ok(Ok(age)) if age > KEEP_SCREEN) {
                self.remove_checkpoint(id);
            }
        }
    }

    /// Removes what was kept of an agent that is no longer live.
    pub fn remove_checkpoint(&self, id: RecordId) {
        let folder = self.paths.checkpoint(id);
        for name in FILES {
            let _ = fs::remove_file(folder.join(name));
        }
        let _ = fs::remove_dir(&folder);
    }
}

/// Writes a file whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let new = file::temporary(path);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_data()))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        StoreError::io("write", path, error)
    })
}

/// The text without its escape sequences, as a plain capture has it.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            0x1b => match bytes.next() {
                // colours and the like end with a letter
                Some(b'[') => while bytes.next().is_some_and(|b| !(0x40..=0x7e).contains(&b)) {},
                // links end with BEL or ESC \
                Some(b']') => {
                    while let Some(b) = bytes.next() {
                        if b == 0x07 {
                            break;
                        }
                        if b == 0x1b {
                            let _ = bytes.next_if_eq(&b'\\');
                            break;
                        }
                    }
                }
                Some(b'(' | b')') => {
                    let _ = bytes.next();
                }
                Some(_) | None => {}
            },
            // the other character set and back
            0x0e | 0x0f => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Paths;

    #[test]
    fn plain_text_has_no_sequence_left() {
        let coloured = b"\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07\n\x0eq\x0f\x1b(0x\x1b";
        assert_eq!(plain(coloured), b"red link\nqx");
    }

    #[test]
    fn a_loss_takes_the_checkpoint_along_once() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let store = Store::open(Paths {
            store: at("s.json"),
            frozen: at("frozen"),
            state: at("state"),
            runtime: at("run"),
        });
        let id: RecordId = "00000001".parse().unwrap();
        assert_eq!(store.take_checkpoint(id), None);
        store.write_checkpoint(id, b"one\n").unwrap();
        store.write_checkpoint(id, b"\x1b[1mtwo\x1b[0m\nlines\n").unwrap();
        let capture = store.take_checkpoint(id).unwrap();
        assert_eq!(capture.lines, 2);
        assert_eq!(fs::read(&capture.txt).unwrap(), b"two\nlines\n");
        assert!(Path::new(&capture.ansi).starts_with(at("frozen")));
        assert!(!store.paths().checkpoint(id).exists());
        assert_eq!(store.take_checkpoint(id), Some(capture), "a second try finds it where it is");
    }
}
