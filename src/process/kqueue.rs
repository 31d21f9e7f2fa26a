//! The instant of a process's death through a kqueue process filter, and signals. Untested.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::errno::Errno;
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
        let failed = |errno: Errno| ProcessError::Watch { pid: id.pid, source: errno.into() };
        if id.pid <= 0 {
            return Err(ProcessError::NotAPid(id.pid));
        }
        let queue = Kqueue::new().map_err(failed)?;
        let exit = KEvent::new(
            id.pid as usize,
            EventFilter::EVFILT_PROC,
            EvFlags::EV_ADD,
            FilterFlag::NOTE_EXIT,
            0,
            0,
        );
        match queue.kevent(&[exit], &mut [], None) {
            Ok(_) => {}
            Err(Errno::ESRCH) => return Ok(Opened::Gone),
            Err(errno) => return Err(failed(errno)),
        }
        match liveness(id) {
            Liveness::Alive => {}
            Liveness::Gone => return Ok(Opened::Gone),
            Liveness::Unknown => return Err(ProcessError::Unproven(id.pid)),
        }
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
