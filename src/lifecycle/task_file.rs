//! A task file on disk: read whole, replaced whole, and never if it changed in between.
//!
//! Its mode and a symlink to it stay. One that is not to be written (read only, another user's, of two names) is left as it is. Two
//! of us at once wait for each other, so that agents of several worktrees may be linked into one file side by side.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::identity;
use super::root::worktree;
use crate::provider::Catalog;
use crate::record::{Ours, Record, State, Step, Verb};
use crate::service::{Change, ServiceError};
use crate::store::{PATIENCE as PATIENT, Paths, Store, StoreError, System, make_private};
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

/// What it hands over: its latest section `Agent Handoff`.
///
/// # Errors
/// [`TaskError`].
pub fn handoff(path: &Path) -> Result<Option<String>, TaskError> {
    let (format, bytes) = read(path)?;
    Ok(task::handoff(&bytes, format))
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

/// Keeps on these records which file they were linked into, so that what becomes of their conversations can be written there.
///
/// # Errors
/// [`StoreError`].
pub fn remember(
    store: &Store,
    system: &System,
    records: &[Arc<Record>],
    path: &Path,
) -> Result<(), StoreError> {
    let Some(path) = std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok())
    else {
        return Ok(());
    };
    let known = |record: &&Arc<Record>| record.ait.task_file.as_ref() != Some(&path);
    let steps: Vec<Step> = records
        .iter()
        .filter(known)
        .map(|record| {
            let ours = Box::new(Ours { task_file: Some(path.clone()), ..Ours::default() });
            let verb = Verb::Enrich { at: record.location.clone(), ours, lost: None, replace: true };
            (Some(record.id), verb)
        })
        .collect();
    // one that is archived, or elsewhere by now, is linked all the same
    if steps.is_empty() { Ok(()) } else { store.apply(&steps, &system.facts(), PATIENT).map(drop) }
}

/// The worktree of a record: of the folder its agent works in, else its project.
#[must_use]
pub fn worktree_of(record: &Record) -> String {
    let cwd = record.ait.cwd.as_deref().filter(|cwd| !cwd.is_empty()).unwrap_or(&record.root);
    let found = worktree(Path::new(cwd)).and_then(|folder| folder.into_os_string().into_string().ok());
    found.unwrap_or_else(|| record.root.clone())
}

/// What is known of a record's conversation: by its provider's own account, else as it is recorded.
#[must_use]
pub fn link_of(catalog: &Catalog, record: &Record) -> Link {
    let mut earlier = record.ait.earlier.clone().unwrap_or_default();
    let recorded = record.codeagent_session_id.clone();
    let nothing = BTreeMap::new();
    let environment = record.ait.env.as_ref().unwrap_or(&nothing);
    let agent = record.agent_process().filter(|_| matches!(record.state, State::Live));
    let told = agent.and_then(|agent| identity::conversation(&record.agent_kind, &agent, environment));
    let session = match told {
        Some(told) if told != recorded => {
            earlier.push(recorded);
            told
        }
        Some(_) | None => recorded,
    };
    Link {
        worktree: worktree_of(record),
        backend: record.agent_kind.clone(),
        session: Some(session).filter(|id| catalog.fits(&record.agent_kind, id)),
        earlier: earlier.into_iter().filter(|id| !id.is_empty()).collect(),
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
