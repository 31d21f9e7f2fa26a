//! The two locks of a writer: `flock` on `<store>.lock`, which the kernel frees when its holder dies, and inside it the
//! earlier scripts' directory `<store>.lockd`, so that both kinds of writer can live on one machine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::paths::{Files, make_private};
use super::{StoreError, system};
use crate::process;
use crate::record::{Liveness, ProcessId};

/// How the owner file of our own directory lock begins. Found while the flock is ours, its writer is dead.
const OURS: &str = "ait-";
/// A directory lock without a pid is an earlier script's that was killed between two steps, once it is this old.
const PIDLESS: Duration = Duration::from_secs(10);
/// How often a directory lock that an earlier script holds is looked at: those scripts hold it for milliseconds, and
/// tell nobody when they are done.
const LOOK: Duration = Duration::from_millis(5);

/// Both locks, held. Dropping it gives them back.
#[derive(Debug)]
pub(super) struct WriteLock {
    lockd: PathBuf,
    owner: String,
    // Dropped last: the flock covers the directory lock.
    _flock: File,
}

impl WriteLock {
    /// Takes both locks within `patience`.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if others hold one of them that long; [`StoreError::Io`].
    pub(super) fn take(files: &Files, patience: Duration) -> Result<Self, StoreError> {
        let deadline = Instant::now() + patience;
        if let Some(folder) = files.lock.parent() {
            make_private(folder)?;
        }
        let flock = take_flock(&files.lock, deadline)?;
        let owner = take_lockd(&files.lockd, deadline)?;
        Ok(Self { lockd: files.lockd.clone(), owner, _flock: flock })
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        let held =
            fs::read_to_string(self.lockd.join("owner")).is_ok_and(|owner| owner.trim_end() == self.owner);
        if held {
            // Moved away first, so that nobody ever sees it without its pid.
            let away = sibling(&self.lockd, &format!(".{}", self.owner));
            if fs::rename(&self.lockd, &away).is_ok() {
                let _ = fs::remove_dir_all(&away);
            }
        }
    }
}

/// Opens a file to lock, 0600.
pub(super) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(|e| StoreError::io("open", path, e))?;
    let meta = file.metadata().map_err(|e| StoreError::io("look at", path, e))?;
    if meta.mode() & 0o7777 != 0o600 && meta.uid() == rustix::process::geteuid().as_raw() {
        let narrowed = file.set_permissions(PermissionsExt::from_mode(0o600));
        narrowed.map_err(|e| StoreError::io("set the mode of", path, e))?;
    }
    Ok(file)
}

fn take_flock(path: &Path, deadline: Instant) -> Result<File, StoreError> {
    let file = open_lock(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(file),
        Err(Errno::WOULDBLOCK | Errno::INTR) => {}
        Err(error) => return Err(StoreError::io("lock", path, error.into())),
    }
    // The kernel queues waiters fairly but knows no deadline: a thread waits for it. If we go first, the thread finds
    // nobody to hand the lock to and lets go of it at once.
    let (hand_over, handed) = mpsc::sync_channel(0);
    std::thread::spawn(move || {
        let taken = loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                taken => break taken,
            }
        };
        let _ = hand_over.send(taken.map(|()| file));
    });
    match handed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(taken) => taken.map_err(|error| StoreError::io("lock", path, error.into())),
        Err(_) => Err(StoreError::Busy { path: path.to_owned() }),
    }
}

/// Takes the directory lock and gives the token in its owner file.
fn take_lockd(lockd: &Path, deadline: Instant) -> Result<String, StoreError> {
    let owner = format!("{OURS}{:08x}{:08x}", system::draw(), system::draw());
    let ready = sibling(lockd, &format!(".{owner}"));
    let prepared = prepare(&ready, &owner);
    let taken = prepared.and_then(|()| {
        loop {
            match rename_new(&ready, lockd) {
                Ok(()) => break Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Some file systems say so of a target that is a folder with content.
                Err(error) if error.raw_os_error() == Some(Errno::NOTEMPTY.raw_os_error()) => {}
                Err(error) => break Err(StoreError::io("take", lockd, error)),
            }
            if steal(lockd) {
                continue;
            }
            if Instant::now() >= deadline {
                break Err(StoreError::Busy { path: lockd.to_owned() });
            }
            std::thread::sleep(LOOK);
        }
    });
    if taken.is_err() {
        let _ = fs::remove_dir_all(&ready);
    }
    taken.map(|()| owner)
}

fn prepare(ready: &Path, owner: &str) -> Result<(), StoreError> {
    fs::create_dir(ready).map_err(|e| StoreError::io("make", ready, e))?;
    let write = |name: &str, text: String| {
        let path = ready.join(name);
        fs::write(&path, text).map_err(|e| StoreError::io("write", &path, e))
    };
    write("pid", format!("{}\n", std::process::id()))?;
    write("owner", format!("{owner}\n"))
}

/// Moves a directory lock aside whose holder is provably gone. Says whether it is worth trying again at once.
fn steal(lockd: &Path) -> bool {
    let Some(seen) = Holder::of(lockd) else { return true };
    if !seen.is_gone() {
        return false;
    }
    let away = sibling(lockd, &format!(".{OURS}dead-{:08x}", system::draw()));
    if fs::rename(lockd, &away).is_err() {
        return true;
    }
    // Between the look and the move another may have stolen it and taken it anew: then it goes back.
    match Holder::of(&away) {
        Some(moved) if moved.owner != seen.owner || moved.pid != seen.pid => {
            let _ = rename_new(&away, lockd);
            false
        }
        Some(_) | None => {
            let _ = fs::remove_dir_all(&away);
            true
        }
    }
}

/// What a directory lock says of its holder.
#[derive(Debug)]
struct Holder {
    pid: Option<i32>,
    owner: String,
    age: Duration,
}

impl Holder {
    /// `None` if there is no such folder any more.
    fn of(lockd: &Path) -> Option<Self> {
        let made = lockd.metadata().ok()?.modified().ok()?;
        let read = |name: &str| fs::read_to_string(lockd.join(name)).unwrap_or_default().trim().to_owned();
        let age = SystemTime::now().duration_since(made).unwrap_or_default();
        Some(Self { pid: read("pid").parse().ok().filter(|pid| *pid > 0), owner: read("owner"), age })
    }

    fn is_gone(&self) -> bool {
        if self.owner.starts_with(OURS) {
            return true;
        }
        let Some(pid) = self.pid else { return self.age > PIDLESS };
        match system::liveness(&ProcessId::bare(pid)) {
            Liveness::Gone => true,
            Liveness::Unknown => false,
            // The number was handed out again: a process younger than the lock did not make it.
            Liveness::Alive => age_of(pid).is_some_and(|age| age + PIDLESS < self.age),
        }
    }
}

/// How long a process has run.
fn age_of(pid: i32) -> Option<Duration> {
    let ticks: u64 = process::start_of(pid)?.parse().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    let started = Duration::from_millis(ticks.saturating_mul(1000) / per_second.max(1));
    Some(process::boot_age().saturating_sub(started))
}

/// Removes what killed writers left beside the lock; the flock must be held.
pub(super) fn sweep_lockd(lockd: &Path) {
    let Some(prefix) = lockd.file_name().map(|name| format!("{}.{OURS}", name.to_string_lossy())) else {
        return;
    };
    let Some(entries) = lockd.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Renames without replacing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems without that flag: making a folder is as exclusive, its content comes a moment later.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::create_dir(to)?;
            for name in ["pid", "owner"] {
                fs::rename(from.join(name), to.join(name))?;
            }
            fs::remove_dir(from)
        }
        done => done.map_err(Into::into),
    }
}
