//! Codex's shared daemon, `codex app-server`: started by the first Codex that finds none, in a session of its own, it runs
//! the turns of every Codex of one `CODEX_HOME`. Its hooks have its own environment: the pane of whoever started it, which is
//! its parent as long as that lives. What it has once had open it keeps, with a lock (`thread-writer-locks/<id>.lock`), and
//! whoever wants to go on with it without the daemon cannot.
//!
//! It outlives every pane; whoever made it start ends it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hooks::Hooks;
use super::ways::Event;
use super::{Exit, Failure, codex, plain};

/// How long a Codex waits for the daemon it started.
const START: Duration = Duration::from_secs(10);

/// Jobs that may wait to be begun.
const WAITING: usize = 64;

/// One turn: what is written and fired at its start and at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// The rollout.
    pub(super) path: PathBuf,
    /// Written at the start.
    pub(super) text: String,
    /// Fired at the start.
    pub(super) events: Vec<Fired>,
    /// How long the turn takes.
    pub(super) milliseconds: u64,
    /// Written at the end.
    pub(super) end_text: String,
    /// Fired at the end.
    pub(super) end_events: Vec<Fired>,
}

/// An event on its way to the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fired {
    about: String,
    payload: Value,
}

impl From<Event> for Fired {
    fn from(event: Event) -> Fired {
        Fired { about: event.about, payload: event.payload }
    }
}

impl Fired {
    fn event(self) -> Event {
        let name = match self.payload.get("hook_event_name").and_then(Value::as_str) {
            Some("SessionStart") => "SessionStart",
            Some("Stop") => "Stop",
            Some(_) | None => "UserPromptSubmit",
        };
        Event { name, about: self.about, payload: self.payload }
    }
}

/// The daemon's socket.
pub(super) fn socket(root: &Path) -> PathBuf {
    root.join("app-server.sock")
}

/// Starts the daemon unless one answers.
pub(super) fn ensure(socket: &Path) -> Result<(), Failure> {
    if UnixStream::connect(socket).is_ok() {
        return Ok(());
    }
    let mut daemon = Command::new(std::env::current_exe()?);
    daemon.arg0("codex").args(["app-server"]);
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = Instant::now();
    // nobody ever sends here: a pause between two looks
    let (_kept, never) = mpsc::channel::<()>();
    while UnixStream::connect(socket).is_err() {
        if begun.elapsed() > START {
            return Err(Failure::new(Exit::FAILED, "the app-server does not answer"));
        }
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
    Ok(())
}

/// Gives the daemon a turn.
pub(super) fn send(socket: &Path, job: &Job) -> io::Result<()> {
    let mut line = serde_json::to_string(job)?;
    line.push('\n');
    UnixStream::connect(socket)?.write_all(line.as_bytes())
}

/// Is the daemon, until it is ended.
pub(super) fn serve(home: &Path) -> Result<Exit, Failure> {
    // a session of its own: no pane's end reaches it
    nix::unistd::setsid().map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    plain::block(&[Signal::SIGHUP])?;
    // what `ps` shows of the real one
    let _ = fs::write("/proc/self/comm", "codex");
    let root = codex::root(home);
    fs::create_dir_all(&root)?;
    let path = socket(&root);
    if UnixStream::connect(&path).is_ok() {
        return Ok(Exit::OK);
    }
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let (jobs, taken) = mpsc::sync_channel::<Job>(WAITING);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            // a look whether somebody listens says nothing
            if io::BufReader::new(stream).read_line(&mut line).is_err() || line.is_empty() {
                continue;
            }
            if let Ok(job) = serde_json::from_str(&line)
                && jobs.send(job).is_err()
            {
                return;
            }
        }
    });
    let hooks = Hooks::start(codex::commands(&root), Duration::ZERO);
    let mut rollouts = HashMap::new();
    let mut open: Vec<(Instant, Job)> = Vec::new();
    loop {
        let next = open.iter().map(|(at, _)| *at).min();
        let heard = match next {
            Some(at) => taken.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => taken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(job) => {
                append(&root, &mut rollouts, &job.path, &job.text)?;
                job.events.iter().cloned().for_each(|fired| hooks.fire(fired.event(), Vec::new()));
                open.push((Instant::now() + Duration::from_millis(job.milliseconds), job));
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                for (_, job) in open.extract_if(.., |(at, _)| *at <= now) {
                    append(&root, &mut rollouts, &job.path, &job.end_text)?;
                    job.end_events.into_iter().for_each(|fired| hooks.fire(fired.event(), Vec::new()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(Exit::OK),
        }
    }
}

/// Writes to a rollout, which stays open and locked.
fn append(root: &Path, rollouts: &mut HashMap<PathBuf, Held>, path: &Path, text: &str) -> io::Result<()> {
    if !rollouts.contains_key(path) {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let lock = lock_file(root, &codex::id_of(path))?;
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        let file = fs::OpenOptions::new().create(true).append(true).open(path)?;
        rollouts.insert(path.to_owned(), Held { file, _lock: lock });
    }
    rollouts.get_mut(path).map_or(Ok(()), |held| held.file.write_all(text.as_bytes()))
}

/// A rollout that is open.
struct Held {
    file: fs::File,
    _lock: fs::File,
}

fn lock_file(root: &Path, id: &str) -> io::Result<fs::File> {
    let folder = root.join("thread-writer-locks");
    fs::create_dir_all(&folder)?;
    fs::OpenOptions::new().create(true).append(true).open(folder.join(format!("{id}.lock")))
}

/// Whether a process has this conversation open and locked.
pub(super) fn is_locked(root: &Path, id: &str) -> bool {
    let free = |lock: fs::File| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    !lock_file(root, id).is_ok_and(free)
}
