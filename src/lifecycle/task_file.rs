//! A task file on disk: read whole, replaced whole, and never if it changed in between.
//!
//! Its mode and a symlink to it stay. One that is not to be written (read only, another user's, of two names) is left as it is. Two
//! of us at once wait for each other, so that agents of several worktrees may be linked into one file side by side.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::service::{Change, ServiceError};
use crate::store::{Paths, StoreError, make_private};
use crate::task::{self, Entry, Format, Link, Unwritable};

/// The longest task file, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;
/// How long another of us is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a task file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Its name does not say how it is written.
    #[error("{0} is no task file: its name ends neither in .org nor in .md")]
    NoFormat(PathBuf),
    /// There is none.
    #[error("there is no file {0}")]
    Missing(PathBuf),
    /// It is no file that could be one.
    #[error("{path} is no task file: {why}")]
    Odd {
        /// The file.
        path: PathBuf,
        /// Why, as a lower-case fragment.
        why: &'static str,
    },
    /// A value cannot stand in it.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// It cannot be read or written, or is not to be.
    #[error(transparent)]
    File(#[from] ServiceError),
    /// Our own folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another of us does not come to its end.
    #[error("another ait is writing task files")]
    Busy,
}

/// What it says; what cannot be read as an entry is none.
///
/// # Errors
/// [`TaskError`].
pub fn entries(path: &Path) -> Result<Vec<Entry>, TaskError> {
    let (format, bytes) = read(path)?;
    Ok(task::entries(&bytes, format))
}

/// Links these in it. Whether that changed anything.
///
/// # Errors
/// [`TaskError`]; the file is then as it was.
pub fn link(paths: &Paths, path: &Path, links: &[Link]) -> Result<bool, TaskError> {
    let _turn = turn(paths)?;
    match plan(path, links)? {
        Some(change) => change.apply().map(|()| true).map_err(TaskError::from),
        None => Ok(false),
    }
}

/// The change that links these in it.
fn plan(path: &Path, links: &[Link]) -> Result<Option<Change>, TaskError> {
    let (format, before) = read(path)?;
    let mut after = before.clone();
    for link in links {
        after = task::link(&after, format, link)?;
    }
    match Change::of(path, Some(after))? {
        // it was read once more
        Some(change) if change.before() != Some(&before) => {
            Err(ServiceError::Changed { path: path.to_owned() }.into())
        }
        change => Ok(change),
    }
}

fn read(path: &Path) -> Result<(Format, Vec<u8>), TaskError> {
    let format = Format::of(path).ok_or_else(|| TaskError::NoFormat(path.to_owned()))?;
    let odd = |why| Err(TaskError::Odd { path: path.to_owned(), why });
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(TaskError::Missing(path.to_owned()));
        }
        Err(source) => return Err(ServiceError::Read { path: path.to_owned(), source }.into()),
        // what is no regular file (a pipe) would be waited for
        Ok(meta) if !meta.is_file() => return odd("it is no regular file"),
        Ok(meta) if meta.len() > LONGEST => return odd("it is too long"),
        Ok(_) => {}
    }
    let bytes = Change::read(path)?.ok_or_else(|| TaskError::Missing(path.to_owned()))?;
    Ok((format, bytes))
}

/// Our turn to write, until it is let go.
fn turn(paths: &Paths) -> Result<File, TaskError> {
    make_private(&paths.state)?;
    let path = paths.state.join("tasks.lock");
    let failed = |source| TaskError::File(ServiceError::Write { path: path.clone(), source });
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let lock = lock.map_err(failed)?;
    let (given, taken) = mpsc::channel();
    let waiting = std::thread::Builder::new().spawn(move || {
        let locked = flock(&lock, FlockOperation::LockExclusive);
        // nobody waits any more when it took too long
        let _ = given.send(locked.map(|()| lock));
    });
    waiting.map_err(failed)?;
    match taken.recv_timeout(PATIENCE) {
        Ok(locked) => locked.map_err(|errno| failed(errno.into())),
        Err(_) => Err(TaskError::Busy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_in_between_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task.md");
        std::fs::write(&path, "# A task\n").unwrap();
        let link = Link {
            worktree: "/srv/a".into(),
            backend: "claude".into(),
            session: Some("id".into()),
            earlier: Vec::new(),
        };
        let change = plan(&path, std::slice::from_ref(&link)).unwrap().unwrap();
        std::fs::write(&path, "# A task\n\nwritten meanwhile\n").unwrap();
        assert!(matches!(change.apply(), Err(ServiceError::Changed { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"# A task\n\nwritten meanwhile\n");
        plan(&path, std::slice::from_ref(&link)).unwrap().unwrap().apply().unwrap();
        assert!(plan(&path, &[link]).unwrap().is_none(), "it is linked");
        assert_eq!(entries(&path).unwrap().len(), 1);
    }
}
