//! Who a process is, and the instant it dies.
//!
//! A pid alone proves nothing: it is handed out again. A process is known here by pid and start, and everything that
//! acts or waits holds a kernel handle (a pidfd on Linux, a kqueue filter on macOS) and proves, after taking it, that the
//! process behind it is still the one that was meant.
//!
//! Refuses to: guess. What the system does not let us see is [`Liveness::Unknown`], never gone; and no function here ends,
//! stops or signals a process by its bare pid.
//!
//! macOS (`macos.rs`) is written from the manuals and untested.

use std::io;

use thiserror::Error;

mod boot;
mod inherited;
mod peer;
mod tmux_env;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod pidfd;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(target_os = "macos")]
mod kqueue;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as system;

pub use crate::record::{Liveness, ProcessId};
pub use boot::{boot_age, boot_id, boot_time};
pub use inherited::close_inherited;
#[cfg(target_os = "macos")]
pub use kqueue::{Watch, await_death, await_death_within, signal};
pub use peer::{Peer, peer};
#[cfg(target_os = "linux")]
pub use pidfd::{Watch, await_death, await_death_within, signal};
pub use rustix::process::Signal;
pub use tmux_env::{TmuxEnv, tmux_of};

/// What a signal met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Delivery {
    /// It was handed to that very process.
    Delivered,
    /// That process is gone; nothing was signalled.
    Gone,
}

/// What opening a [`Watch`] found.
#[derive(Debug)]
#[must_use]
pub enum Opened {
    /// The process lives and its death will be told.
    Watching(Watch),
    /// It is gone already.
    Gone,
}

/// A process could not be looked at, watched or signalled.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The pid is not one (zero or negative): nothing was tried.
    #[error("{0} is not a pid")]
    NotAPid(i32),
    /// No handle could be had for it.
    #[error("cannot watch process {pid}: {source}")]
    Watch {
        /// The process.
        pid: i32,
        /// What the system said.
        source: io::Error,
    },
    /// The handle was had, but its start could not be read, so nothing proves who it is.
    #[error("cannot prove who process {0} is: its start time is not readable")]
    Unproven(i32),
    /// The signal was refused.
    #[error("cannot signal process {pid}: {source}")]
    Signal {
        /// The process.
        pid: i32,
        /// What the system said.
        source: io::Error,
    },
    /// Something about the process or the boot could not be read.
    #[error("cannot read {what}: {source}")]
    Read {
        /// The file or call.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

/// What can be seen of one process. Fields that cannot be read (another user's, already gone) are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Who it is.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgrp: i32,
    /// The short name of the kernel (15 bytes at most on Linux; a program may change its own).
    pub comm: Vec<u8>,
    /// Its arguments, bytes as given, at most 1 MiB of them in all.
    pub argv: Vec<Vec<u8>>,
    /// The program file. Linux adds ` (deleted)` to a replaced one; that is cut here.
    pub exe: Option<std::path::PathBuf>,
    /// Its working directory.
    pub cwd: Option<std::path::PathBuf>,
}

/// One row of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Who it is.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgrp: i32,
    /// Ended, but not collected by its parent.
    pub zombie: bool,
    /// The short name of the kernel.
    pub comm: Vec<u8>,
}

/// Every process of the machine at one moment: one scan serves any number of questions about families.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Reads the table. Processes that end during the scan are left out; so are those the system hides from us.
    pub fn read() -> Result<Table, ProcessError> {
        system::rows().map(|rows| Table { rows })
    }

    /// All rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of a pid.
    pub fn row(&self, pid: i32) -> Option<&Row> {
        self.rows.iter().find(|row| row.id.pid == pid)
    }

    /// The direct children, zombies left out.
    pub fn children(&self, pid: i32) -> Vec<ProcessId> {
        self.rows.iter().filter(|row| row.ppid == pid && !row.zombie).map(|row| row.id.clone()).collect()
    }

    /// The whole family below a process, nearest first, without the process itself and without zombies. The children of a
    /// zombie belong to the reaper, so they are not below it.
    pub fn descendants(&self, pid: i32) -> Vec<ProcessId> {
        let mut family: Vec<ProcessId> = self.children(pid);
        let mut next = 0;
        while let Some(parent) = family.get(next).map(|id| id.pid) {
            for child in self.children(parent) {
                // the table is no snapshot: a pid reused during the scan must not make a loop
                if child.pid != pid && !family.contains(&child) {
                    family.push(child);
                }
            }
            next += 1;
        }
        family
    }
}

/// When a process started, opaque: only equality means anything, and only within one boot. Linux: field 22 of
/// `/proc/PID/stat` (ticks since boot); macOS: the start time `ps` prints. `None` when there is no such process or it cannot be seen.
pub fn start_of(pid: i32) -> Option<String> {
    system::start_of(pid)
}

/// A process by its pid as it is now; `None` when there is none or it cannot be seen.
pub fn identify(pid: i32) -> Option<ProcessId> {
    start_of(pid).map(|started| ProcessId { pid, started })
}

/// Who we are ourselves.
pub fn me() -> Result<ProcessId, ProcessError> {
    let pid = std::process::id() as i32;
    identify(pid).ok_or(ProcessError::Unproven(pid))
}

/// Whether a process still lives. A stopped one does, and so does one of another user; a zombie does not. A bare pid (no
/// start) proves only its own absence: while there is such a process, it is unknown whether it is the one that was meant.
pub fn liveness(id: &ProcessId) -> Liveness {
    system::liveness(id)
}

/// The direct children of a process. For several questions at once read one [`Table`].
pub fn children(pid: i32) -> Result<Vec<ProcessId>, ProcessError> {
    Table::read().map(|table| table.children(pid))
}

/// The whole family below a process, nearest first.
pub fn descendants(pid: i32) -> Result<Vec<ProcessId>, ProcessError> {
    Table::read().map(|table| table.descendants(pid))
}

/// What can be seen of a process; `None` when it is gone.
pub fn facts(pid: i32) -> Option<Facts> {
    system::facts(pid)
}

/// What a process has of memory to itself, in bytes: what lies in memory and is neither a file's nor shared. It is an estimate of
/// what its end gives back. `None` when it is gone or nobody can say (macOS).
pub fn own_memory(pid: i32) -> Option<u64> {
    system::own_memory(pid)
}

/// The named variables of a process's environment as it was started, bytes as they are; names that are not set are left
/// out. Nothing else of the environment is kept: it holds secrets.
pub fn environment(pid: i32, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>, ProcessError> {
    system::environment(pid, names)
}

/// A number as a pid; zero and negative ones mean groups to the kernel and are refused here.
fn raw(pid: i32) -> Option<rustix::process::Pid> {
    if pid > 0 { rustix::process::Pid::from_raw(pid) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, ppid: i32, zombie: bool) -> Row {
        Row { id: ProcessId { pid, started: pid.to_string() }, ppid, pgrp: pid, zombie, comm: b"x".to_vec() }
    }

    #[test]
    fn a_family_is_walked_nearest_first_and_ends_at_zombies() {
        let table = Table {
            rows: vec![
                row(1, 0, false),
                row(10, 1, false),
                row(11, 10, false),
                row(12, 11, false),
                row(13, 10, true),
            ],
        };
        let pids = |ids: Vec<ProcessId>| ids.into_iter().map(|id| id.pid).collect::<Vec<_>>();
        assert_eq!(pids(table.children(10)), [11]);
        assert_eq!(pids(table.descendants(1)), [10, 11, 12]);
        assert_eq!(pids(table.descendants(12)), [0i32; 0]);
    }

    #[test]
    fn a_loop_in_a_torn_table_ends() {
        let table = Table { rows: vec![row(10, 11, false), row(11, 10, false)] };
        assert_eq!(table.descendants(10).len(), 1);
    }
}
