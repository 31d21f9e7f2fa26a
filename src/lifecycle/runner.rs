//! One prompt to its end: the process of a run's pane. It waits until its record is live, gives the agent its prompt on standard
//! input, passes what it says to the pane and to the log, and writes how it ended into the record.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::exec::{RESTORE_NONCE, RESTORE_RECORD};
use crate::record::{Ours, Record, RecordId, State, Verb};
use crate::store::{LONG_PATIENCE, Store, StoreError, System, turns};
use crate::watch::Watcher;

/// How long its record may take to say that it was launched.
const BIRTH: Duration = Duration::from_secs(20);
/// What is passed on at once, in bytes.
const PIECE: usize = 16 * 1024;
/// What of its output is still passed on once it has ended, in bytes: no pipe holds more.
const LEFT: usize = 1024 * 1024;

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// Its record never came to life: the start was taken back.
    #[error("record {0} is not live: nothing was run")]
    NotBorn(RecordId),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or the process.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

/// Waits until the record is live.
///
/// # Errors
/// [`NotRun`].
pub async fn born(store: &Store, id: RecordId) -> Result<(), NotRun> {
    let file = store.paths().files().store;
    let folder = file.parent().unwrap_or(&file);
    let failed = |error| NotRun::Io(folder.display().to_string(), error);
    let mut watcher = Watcher::new().map_err(failed)?;
    watcher.add(folder).map_err(failed)?;
    let live = async {
        loop {
            match store.read()?.records.get(id).map(|record| record.state.name()) {
                Some(crate::record::StateName::Live) => return Ok(()),
                Some(_) => {}
                None => return Err(NotRun::NotBorn(id)),
            }
            watcher.next().await;
        }
    };
    tokio::time::timeout(BIRTH, live).await.unwrap_or(Err(NotRun::NotBorn(id)))
}

/// Runs these words to their end; how they ended, as a shell tells it.
///
/// # Errors
/// [`NotRun`].
pub fn run(store: &Store, id: RecordId, words: &[OsString]) -> Result<u8, NotRun> {
    let folder = turns::folder(store.paths(), id);
    let named = |name: &str| {
        let path = folder.join(name);
        let shown = path.display().to_string();
        (path, move |error: io::Error| NotRun::Io(shown.clone(), error))
    };
    let (path, failed) = named("prompt.md");
    let prompt = File::open(path).map_err(failed)?;
    let (path, failed) = named("output.log");
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(failed)?;
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| NotRun::Io("no program".to_owned(), io::ErrorKind::NotFound.into()))?;
    let failed = |error| NotRun::Io(program.display().to_string(), error);
    let (from, to) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(RESTORE_RECORD).env_remove(RESTORE_NONCE);
    command.stdin(prompt).stdout(to.try_clone().map_err(failed)?).stderr(to);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let said = format!("{}: {error}\n", program.display());
            let _ = (&log).write_all(said.as_bytes());
            ended(store, id, 127)?;
            return Err(failed(error));
        }
    };
    // its ends of the pipe are the child's alone from here on
    drop(command);
    let (over, ends) = io::pipe().map_err(failed)?;
    let waited = std::thread::scope(|threads| {
        let waiter = threads.spawn(move || {
            let status = child.wait();
            drop(ends);
            status
        });
        pass(from, log, &over);
        waiter.join()
    });
    let code = code(waited.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(failed)?);
    ended(store, id, code)?;
    Ok(code)
}

/// Passes everything on until the agent's own process is `over`: what it left running may hold its output open for ever. A pane that
/// is gone or a full disk ends neither the other nor the agent.
fn pass(mut from: PipeReader, mut log: File, over: &PipeReader) {
    let mut piece = [0; PIECE];
    let mut pane = io::stdout().lock();
    let mut left = LEFT;
    loop {
        let mut fds = [PollFd::new(&from, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let [output, ended] = fds.map(|fd| !fd.revents().is_empty());
        if ended && (!output || left == 0) {
            return;
        }
        if !output {
            continue;
        }
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(size) => {
                if ended {
                    left = left.saturating_sub(size);
                }
                let _ = log.write_all(&piece[..size]);
                let _ = pane.write_all(&piece[..size]).and_then(|()| pane.flush());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Writes how it ended.
fn ended(store: &Store, id: RecordId, code: u8) -> Result<(), NotRun> {
    let snapshot = store.read()?;
    let Some(record) = snapshot.records.get(id).filter(|record| record.state == State::Live) else {
        return Ok(());
    };
    store.apply(&[(Some(id), exit(record, code))], &System::here().facts(), LONG_PATIENCE)?;
    Ok(())
}

fn exit(record: &Record, code: u8) -> Verb {
    let mut session = record.ait.session.clone().unwrap_or_default();
    session.exit = Some(code.into());
    let ours = Box::new(Ours { session: Some(session), ..Ours::default() });
    Verb::Enrich { at: record.location.clone(), ours, lost: None, replace: true }
}

/// As a shell tells of it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
