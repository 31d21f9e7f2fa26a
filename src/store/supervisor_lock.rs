//! One supervisor per store, and the way clients find its socket: a file that its supervisor keeps locked as long as it
//! lives. What is in the file outlives it; whether it is held is asked of the kernel.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::lock::open_lock;
use super::paths::make_private;
use crate::record::Stamp;

/// Somebody who only looks holds the lock shared for an instant; a start that meets that looks again.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What a supervisor says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervising {
    /// Its process.
    pub pid: i32,
    /// Start of that process, opaque.
    pub started: String,
    /// The boot it runs, or ran, in.
    pub boot_id: String,
    /// Its socket.
    pub socket: PathBuf,
    /// Its version.
    pub version: String,
    /// Since when it supervises.
    pub since: Stamp,
    /// When it ended cleanly, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Stamp>,
}

/// The lock, held.
#[derive(Debug)]
pub struct SupervisorLock {
    file: File,
    path: PathBuf,
    said: Supervising,
}

/// What taking the lock came to.
#[derive(Debug)]
pub enum Taken {
    /// It is ours; with what the last supervisor left in it.
    Ours(SupervisorLock, Option<Supervising>),
    /// Another supervisor has it.
    Held(Option<Supervising>),
}

/// What a look at the lock shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A supervisor runs.
    Held(Option<Supervising>),
    /// None runs; with what the last one left.
    Free(Option<Supervising>),
}

impl SupervisorLock {
    /// Takes the lock for the supervisor that says this of itself.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn take(path: &Path, said: Supervising) -> Result<Taken, StoreError> {
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        let mut file = open_lock(path)?;
        for look in 0..LOOKS {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let last = read(&mut file);
                    let mut lock = Self { file, path: path.to_owned(), said };
                    lock.write()?;
                    return Ok(Taken::Ours(lock, last));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) if look + 1 < LOOKS => std::thread::sleep(BETWEEN_LOOKS),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("lock", path, error.into())),
            }
        }
        Ok(Taken::Held(read(&mut file)))
    }

    /// Looks, without disturbing whoever holds it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn look(path: &Path) -> Result<Seen, StoreError> {
        let mut file = match OpenOptions::new().read(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Seen::Free(None)),
            Err(error) => return Err(StoreError::io("open", path, error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                let last = read(&mut file);
                let _ = flock(&file, FlockOperation::Unlock);
                Ok(Seen::Free(last))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(Seen::Held(read(&mut file))),
            Err(error) => Err(StoreError::io("lock", path, error.into())),
        }
    }

    /// Says that the supervisor's socket is elsewhere now.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn move_socket(&mut self, socket: &Path) -> Result<(), StoreError> {
        self.said.socket = socket.to_owned();
        self.write()
    }

    /// Says that the supervisor ends cleanly, and lets go.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn stop(mut self, at: Stamp) -> Result<(), StoreError> {
        self.said.stopped_at = Some(at);
        self.write()
    }

    /// One line, written over the old one before the rest is cut, so that a reader finds a whole first line.
    fn write(&mut self) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec(&self.said).unwrap_or_default();
        text.push(b'\n');
        let written = self.file.write_all_at(&text, 0).and_then(|()| self.file.set_len(text.len() as u64));
        written.map_err(|e| StoreError::io("write", &self.path, e))
    }
}

fn read(file: &mut File) -> Option<Supervising> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.take(64 * 1024).read_to_end(&mut text)).ok()?;
    let line = text.split(|b| *b == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pid: i32) -> Supervising {
        Supervising {
            pid,
            started: "12".into(),
            boot_id: "b".into(),
            socket: "/run/ait/s".into(),
            version: "0.1.0".into(),
            since: Stamp::from_unix(0),
            stopped_at: None,
        }
    }

    #[test]
    fn one_holds_it_others_see_who_and_a_clean_end_is_told() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("s.supervisor.lock");
        assert_eq!(SupervisorLock::look(&path).unwrap(), Seen::Free(None));
        let Taken::Ours(mut first, None) = SupervisorLock::take(&path, said(1)).unwrap() else {
            panic!("held")
        };
        assert_eq!(SupervisorLock::look(&path).unwrap(), Seen::Held(Some(said(1))));
        let Taken::Held(Some(who)) = SupervisorLock::take(&path, said(2)).unwrap() else {
            panic!("two at once")
        };
        assert_eq!(who.pid, 1);
        first.move_socket(Path::new("/a")).unwrap();
        let Seen::Held(Some(moved)) = SupervisorLock::look(&path).unwrap() else { panic!("lost") };
        assert_eq!(moved.socket, Path::new("/a"));
        first.stop(Stamp::from_unix(60)).unwrap();
        let Seen::Free(Some(last)) = SupervisorLock::look(&path).unwrap() else { panic!("still held") };
        assert_eq!(last.stopped_at, Some(Stamp::from_unix(60)));
        let Taken::Ours(second, Some(last)) = SupervisorLock::take(&path, said(3)).unwrap() else {
            panic!("held")
        };
        assert_eq!(last.pid, 1);
        drop(second);
        assert_eq!(
            SupervisorLock::look(&path).unwrap(),
            Seen::Free(Some(said(3))),
            "a killed one never said it stopped"
        );
    }
}
