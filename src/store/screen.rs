//! What agents' terminals showed: checkpoints of live ones, captures of frozen ones.

use std::fs;
use std::io;
use std::path::Path;

use super::archive::Archive;
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
        put(&self.paths.make_checkpoint(id)?, screen)
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
        let lines = fs::read(&ansi).map_or(0, |text| lines(&text));
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
        remove(&self.paths.checkpoint(id));
    }

    /// Keeps what the terminal of an agent that is frozen showed, in place of what was kept of it before.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_capture(&self, id: RecordId, ansi: &[u8]) -> Result<Capture, StoreError> {
        let folder = self.paths.make_captures(id)?;
        put(&folder, ansi)?;
        let path = |name: &str| {
            let path = folder.join(name);
            let no_text = || io::Error::new(io::ErrorKind::InvalidFilename, "its folder is no text");
            path.to_str().map(str::to_owned).ok_or_else(|| StoreError::io("name", &path, no_text()))
        };
        Ok(Capture { ansi: path(FILES[0])?, lines: lines(ansi), txt: path(FILES[1])? })
    }

    /// Removes the capture files of a record, and their folder if nothing else is in it.
    pub fn remove_captures(&self, id: RecordId) {
        let folder = self.paths.captures(id);
        // A folder that is a link leads to files that are not ours.
        if folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            remove(&folder);
        }
    }

    /// The last screen of an ended agent as the capture of its record, copied to where captures lie: the archive lets go of
    /// its screens in time.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn revive_screen(&self, id: RecordId) -> Result<Option<Capture>, StoreError> {
        let Some(screen) = Archive::new(&self.paths.files()).screen(id) else { return Ok(None) };
        let bytes = fs::read(&screen).map_err(|e| StoreError::io("read", &screen, e))?;
        let path = self.paths.make_captures(id)?.join(FILES[0]);
        file::put(&path, &bytes, true)?;
        let Some(ansi) = path.to_str().map(str::to_owned) else { return Ok(None) };
        Ok(Some(Capture { ansi, lines: lines(&bytes), txt: String::new() }))
    }
}

/// How many lines were shown.
#[must_use]
pub fn lines(ansi: &[u8]) -> u64 {
    ansi.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Puts what a terminal showed into a folder: with its colours and without.
fn put(folder: &Path, ansi: &[u8]) -> Result<(), StoreError> {
    // without colours only after the sequences are out: one question to tmux, so both show the same moment
    file::put(&folder.join(FILES[1]), &plain(ansi), true)?;
    file::put(&folder.join(FILES[0]), ansi, true)?;
    file::sync_folder(&folder.join(FILES[0]));
    Ok(())
}

/// Removes what [`put`] put there, what a writer that was killed left of it, and the folder if nothing else is in it.
fn remove(folder: &Path) {
    for name in FILES {
        let _ = fs::remove_file(folder.join(name));
        file::remove_temporaries(&folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

/// The text without escape sequences, as a plain capture has it.
#[must_use]
pub fn plain(ansi: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ansi.len());
    let mut bytes = ansi.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != 0x1b {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            // a control sequence ends with a letter or one of `@[\]^_`{|}~`
            Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
            // a string (a title, a link) ends with BEL or ST
            Some(b']' | b'P' | b'_' | b'^' | b'X') => loop {
                match bytes.next() {
                    None | Some(0x07) => break,
                    Some(0x1b) => {
                        bytes.next_if_eq(&b'\\');
                        break;
                    }
                    Some(_) => {}
                }
            },
            // a character set is one byte more
            Some(b'(' | b')' | b'*' | b'+') => drop(bytes.next()),
            Some(_) | None => {}
        }
    }
    // SI and SO switch character sets where tmux prints lines with them
    out.retain(|byte| *byte != 0x0e && *byte != 0x0f);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Paths;

    #[test]
    fn plain_text_has_no_escapes() {
        for (ansi, text) in [
            (&b"\x1b[1;31mred\x1b[0m plain"[..], "red plain"),
            (b"\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\ after", "link after"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07\n", "link\n"),
            (b"\x1b]0;title\x07x", "x"),
            (b"\x1b(0\x0eqqq\x0f\x1b(B", "qqq"),
            (b"a\nb\x1b", "a\nb"),
            (b"\x1b[", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain(ansi)), text);
        }
    }

    /// A store of its own below a folder, and the id of a record.
    fn store(base: &Path) -> (Store, RecordId) {
        let at = |name: &str| base.join(name);
        let (frozen, state, runtime) = (at("frozen"), at("state"), at("run"));
        let store = Store::open(Paths { store: at("s.json"), frozen, state, runtime });
        (store, "00000001".parse().unwrap())
    }

    #[test]
    fn nothing_stays_of_a_screen_whose_writer_was_killed() {
        let base = tempfile::tempdir().unwrap();
        let (store, id) = store(base.path());
        store.write_checkpoint(id, b"one\n").unwrap();
        store.write_capture(id, b"one\n").unwrap();
        let folders = [store.paths().checkpoint(id), store.paths().captures(id)];
        for folder in &folders {
            for name in FILES {
                fs::write(file::temporary(&folder.join(name)), "half a scr").unwrap();
            }
            fs::write(folder.join("of_the_user"), "").unwrap();
        }
        store.remove_checkpoint(id);
        store.remove_captures(id);
        for folder in &folders {
            let left: Vec<_> =
                fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["of_the_user"]);
        }
    }

    #[test]
    fn a_loss_takes_the_checkpoint_along_once() {
        let base = tempfile::tempdir().unwrap();
        let (store, id) = store(base.path());
        assert_eq!(store.take_checkpoint(id), None);
        store.write_checkpoint(id, b"one\n").unwrap();
        store.write_checkpoint(id, b"\x1b[1mtwo\x1b[0m\nlines\n").unwrap();
        let capture = store.take_checkpoint(id).unwrap();
        assert_eq!(capture.lines, 2);
        assert_eq!(fs::read(&capture.txt).unwrap(), b"two\nlines\n");
        assert!(Path::new(&capture.ansi).starts_with(base.path().join("frozen")));
        assert!(!store.paths().checkpoint(id).exists());
        assert_eq!(store.take_checkpoint(id), Some(capture), "a second try finds it where it is");
    }
}
