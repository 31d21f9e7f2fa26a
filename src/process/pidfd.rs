//! The instant of a process's death, and signals that cannot hit another: both through a pidfd.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Delivery, Liveness, Opened, ProcessError, ProcessId, Signal, liveness, raw};

/// Waits for one process to die. Dropping it ends the watch and touches nothing.
#[derive(Debug)]
pub struct Watch {
    id: ProcessId,
    fd: AsyncFd<OwnedFd>,
}

impl Watch {
    /// Begins to watch. Must be called within a tokio runtime. The handle is taken first and the start compared after, so
    /// the handle is of that very process or the answer is [`Opened::Gone`].
    pub fn open(id: &ProcessId) -> Result<Opened, ProcessError> {
        let Some(fd) = handle(id)? else { return Ok(Opened::Gone) };
        let fd = register(fd).map_err(|source| ProcessError::Watch { pid: id.pid, source })?;
        Ok(Opened::Watching(Watch { id: id.clone(), fd }))
    }

    /// Who is watched.
    pub fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Resolves when the process has died, collected by its parent or not. Cancel safe; once dead it resolves at once.
    pub async fn died(&self) -> Result<(), ProcessError> {
        loop {
            let mut ready = self
                .fd
                .readable()
                .await
                .map_err(|source| ProcessError::Watch { pid: self.id.pid, source })?;
            if has_ended(self.fd.get_ref()) {
                return Ok(());
            }
            ready.clear_ready();
        }
    }

    /// Sends a signal to the watched process.
    pub fn signal(&self, signal: Signal) -> Result<Delivery, ProcessError> {
        send(self.fd.get_ref(), self.id.pid, signal)
    }
}

/// Blocks until that process has died; returns at once when it is gone. For programs that do nothing else.
pub fn await_death(id: &ProcessId) -> Result<(), ProcessError> {
    await_within(id, None).map(drop)
}

/// The same for no longer than `span`; whether it has died.
pub fn await_death_within(id: &ProcessId, span: Duration) -> Result<bool, ProcessError> {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    await_within(id, Some(Timespec { tv_sec: seconds, tv_nsec: span.subsec_nanos().into() }))
}

fn await_within(id: &ProcessId, span: Option<Timespec>) -> Result<bool, ProcessError> {
    let Some(fd) = handle(id)? else { return Ok(true) };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    loop {
        match poll(&mut fds, span.as_ref()) {
            Ok(ready) => return Ok(ready == 1),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ProcessError::Watch { pid: id.pid, source: errno.into() }),
        }
    }
}

/// Sends a signal to that process and to no other, whatever has become of its pid.
pub fn signal(id: &ProcessId, signal: Signal) -> Result<Delivery, ProcessError> {
    match handle(id)? {
        Some(fd) => send(&fd, id.pid, signal),
        None => Ok(Delivery::Gone),
    }
}

/// A pidfd proven to be of that process; `None` when it is gone.
fn handle(id: &ProcessId) -> Result<Option<OwnedFd>, ProcessError> {
    let pid = raw(id.pid).ok_or(ProcessError::NotAPid(id.pid))?;
    let fd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => fd,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(ProcessError::Watch { pid: id.pid, source: errno.into() }),
    };
    match liveness(id) {
        Liveness::Alive => Ok(Some(fd)),
        Liveness::Gone => Ok(None),
        Liveness::Unknown => Err(ProcessError::Unproven(id.pid)),
    }
}

fn send(fd: &impl AsFd, pid: i32, signal: Signal) -> Result<Delivery, ProcessError> {
    match pidfd_send_signal(fd, signal) {
        Ok(()) => Ok(Delivery::Delivered),
        Err(Errno::SRCH) => Ok(Delivery::Gone),
        Err(errno) => Err(ProcessError::Signal { pid, source: errno.into() }),
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe code; an `OwnedFd` keeps the promise it asks for by construction"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// A pidfd is readable once the process has ended.
fn has_ended(fd: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;
    use crate::process::{Table, environment, facts, identify, tmux_of};

    const DEADLINE: Duration = Duration::from_secs(20);

    fn sleeper() -> (Child, ProcessId) {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let id = identify(child.id() as i32).unwrap();
        (child, id)
    }

    fn watch(id: &ProcessId) -> Watch {
        match Watch::open(id).unwrap() {
            Opened::Watching(watch) => watch,
            Opened::Gone => panic!("{id:?} is not there"),
        }
    }

    #[tokio::test]
    async fn a_death_is_told_before_anybody_collects_it() {
        let (mut child, id) = sleeper();
        let watch = watch(&id);
        assert_eq!(liveness(&id), Liveness::Alive);
        assert_eq!(watch.signal(Signal::KILL).unwrap(), Delivery::Delivered);
        tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
        assert_eq!(liveness(&id), Liveness::Gone, "a zombie is gone");
        assert!(matches!(Watch::open(&id).unwrap(), Opened::Gone));
        assert_eq!(signal(&id, Signal::TERM).unwrap(), Delivery::Gone);
        child.wait().unwrap();
        assert_eq!(liveness(&id), Liveness::Gone);
        tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_watch_stays_silent_while_the_process_is_stopped() {
        let (mut child, id) = sleeper();
        let watch = watch(&id);
        assert_eq!(signal(&id, Signal::STOP).unwrap(), Delivery::Delivered);
        assert_eq!(liveness(&id), Liveness::Alive, "stopped is alive");
        tokio::select! {
            biased;
            told = watch.died() => panic!("told a death that was none: {told:?}"),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        child.kill().unwrap();
        tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn another_start_under_the_same_pid_is_neither_watched_nor_signalled() {
        let (mut child, id) = sleeper();
        let recycled = ProcessId { started: "1".to_owned(), ..id.clone() };
        assert_eq!(liveness(&recycled), Liveness::Gone);
        assert!(matches!(Watch::open(&recycled).unwrap(), Opened::Gone));
        assert_eq!(signal(&recycled, Signal::KILL).unwrap(), Delivery::Gone);
        assert_eq!(liveness(&id), Liveness::Alive, "the stranger was not hit");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_program_can_wait_for_a_death_and_nothing_else() {
        let (mut child, id) = sleeper();
        let waiter = std::thread::spawn({
            let id = id.clone();
            move || await_death(&id)
        });
        assert_eq!(signal(&id, Signal::STOP).unwrap(), Delivery::Delivered);
        assert!(!await_death_within(&id, Duration::from_millis(20)).unwrap(), "stopped is alive");
        assert!(!waiter.is_finished());
        child.kill().unwrap();
        waiter.join().unwrap().unwrap();
        child.wait().unwrap();
        await_death(&id).unwrap();
        assert!(await_death_within(&id, Duration::ZERO).unwrap());
    }

    #[test]
    fn a_bare_pid_proves_only_its_own_absence() {
        let (mut child, id) = sleeper();
        let bare = ProcessId::bare(id.pid);
        assert_eq!(liveness(&bare), Liveness::Unknown);
        assert!(matches!(signal(&bare, Signal::KILL), Err(ProcessError::Unproven(_))));
        assert_eq!(liveness(&id), Liveness::Alive, "it was not hit");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(liveness(&bare), Liveness::Gone);
    }

    #[test]
    fn numbers_that_are_no_pids_are_refused() {
        for pid in [0, -1, i32::MIN] {
            let id = ProcessId { pid, started: "1".to_owned() };
            assert!(matches!(signal(&id, Signal::KILL), Err(ProcessError::NotAPid(_))), "{pid}");
            assert_eq!(liveness(&id), Liveness::Gone);
        }
    }

    #[test]
    fn facts_family_and_named_variables_of_a_child() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 1000 & wait", "a b", ""])
            .env("TMUX", "/tmp/x,1,2")
            .env("AIT_SECRET", "hidden")
            .current_dir("/")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let until = std::time::Instant::now() + DEADLINE;
        let grandchild = loop {
            let table = Table::read().unwrap();
            if let Some(found) = table.children(pid).first().and_then(|id| facts(id.pid))
                && found.comm == b"sleep"
            {
                break found.id;
            }
            assert!(std::time::Instant::now() < until, "the shell has no child");
            std::thread::yield_now();
        };
        let seen = facts(pid).unwrap();
        assert_eq!(seen.ppid, std::process::id() as i32);
        assert_eq!(seen.argv[2..], [b"sleep 1000 & wait".to_vec(), b"a b".to_vec(), b"".to_vec()]);
        assert_eq!(seen.cwd.as_deref(), Some(std::path::Path::new("/")));
        assert!(seen.exe.is_some());
        assert!(Table::read().unwrap().descendants(std::process::id() as i32).contains(&grandchild));
        assert_eq!(environment(pid, &["TMUX"]).unwrap(), [("TMUX".to_owned(), b"/tmp/x,1,2".to_vec())]);
        assert_eq!(tmux_of(pid).unwrap().unwrap().session, 2);
        assert_eq!(signal(&grandchild, Signal::KILL).unwrap(), Delivery::Delivered);
        child.wait().unwrap();
        assert_eq!(facts(pid), None);
    }
}
