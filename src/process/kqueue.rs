//! The instant of a process's death through a kqueue process filter, and signals. Untested.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use rustix::process::kill_process;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Delivery, Liveness, Opened, ProcessError, ProcessId, Signal, liveness, raw};

/// Waits for one process to die. Dropping it ends the watch and touches nothing.
#[derive(Debug)]
pub struct Watch {
    id: ProcessId,
    queue: AsyncFd<Queue>,
}

#[derive(Debug)]
struct Queue(Kqueue);

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Watch {
    /// Begins to watch. Must be called within a tokio runtime. The filter is set first and the start compared after.
    pub fn open(id: &ProcessId) -> Result<Opened, ProcessError> {
        let Some(queue) = filter(id)? else { return Ok(Opened::Gone) };
        let queue = register(Queue(queue)).map_err(|source| ProcessError::Watch { pid: id.pid, source })?;
        Ok(Opened::Watching(Watch { id: id.clone(), queue }))
    }

    /// Who is watched.
    pub fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Resolves when the process has died. Cancel safe: the event stays in the queue, which nobody reads.
    pub async fn died(&self) -> Result<(), ProcessError> {
        let ready =
            self.queue.readable().await.map_err(|source| ProcessError::Watch { pid: self.id.pid, source })?;
        drop(ready);
        Ok(())
    }

    /// Sends a signal to the watched process.
    pub fn signal(&self, signal: Signal) -> Result<Delivery, ProcessError> {
        self::signal(&self.id, signal)
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe code; a `Kqueue` keeps the promise it asks for by construction"
)]
fn register(queue: Queue) -> io::Result<AsyncFd<Queue>> {
    AsyncFd::with_interest(queue, Interest::READABLE)
}

/// Blocks until that process has died; returns at once when it is gone. For programs that do nothing else.
pub fn await_death(id: &ProcessId) -> Result<(), ProcessError> {
    await_within(id, None).map(drop)
}

/// The same for no longer than `span`; whether it has died.
pub fn await_death_within(id: &ProcessId, span: Duration) -> Result<bool, ProcessError> {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    await_within(id, Some(libc::timespec { tv_sec: seconds, tv_nsec: span.subsec_nanos().into() }))
}

fn await_within(id: &ProcessId, span: Option<libc::timespec>) -> Result<bool, ProcessError> {
    let Some(queue) = filter(id)? else { return Ok(true) };
    let mut seen = [KEvent::new(0, EventFilter::EVFILT_PROC, EvFlags::empty(), FilterFlag::empty(), 0, 0)];
    loop {
        match queue.kevent(&[], &mut seen, span) {
            Ok(count) => return Ok(count == 1),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(ProcessError::Watch { pid: id.pid, source: errno.into() }),
        }
    }
}

/// Sends a signal to that process. The system has no handle for this, so the start is compared just before.
pub fn signal(id: &ProcessId, signal: Signal) -> Result<Delivery, ProcessError> {
    let pid = raw(id.pid).ok_or(ProcessError::NotAPid(id.pid))?;
    match liveness(id) {
        Liveness::Alive => {}
        Liveness::Gone => return Ok(Delivery::Gone),
        Liveness::Unknown => return Err(ProcessError::Unproven(id.pid)),
    }
    match kill_process(pid, signal) {
        Ok(()) => Ok(Delivery::Delivered),
        Err(rustix::io::Errno::SRCH) => Ok(Delivery::Gone),
        Err(errno) => Err(ProcessError::Signal { pid: id.pid, source: errno.into() }),
    }
}
