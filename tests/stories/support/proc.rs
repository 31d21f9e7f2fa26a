//! Processes as the kernel tells of them: start times, children, zombies, deaths, signals.
//!
//! A process is named by pid and start time wherever it is signalled, so that a recycled pid is never hit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::DEADLINE;
use super::wait::within;

/// A process that cannot be mistaken for a later one under the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Process {
    /// The pid.
    pub(crate) pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: clock ticks since boot.
    pub(crate) started: u64,
}

impl Process {
    /// The process under `pid` now, if there is one.
    pub(crate) fn of(pid: u32) -> Option<Process> {
        stat(pid).map(|stat| Process { pid, started: stat.started })
    }

    /// Whether it still runs (a zombie does not).
    pub(crate) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && !matches!(stat.state, 'Z' | 'X'))
    }

    /// Sends `signal`; false when it is gone already.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return false };
        self.alive() && kill_process(pid, signal).is_ok()
    }

    /// Waits until the kernel says it died (by pidfd); false after `deadline`.
    pub(crate) fn dies(self, deadline: Duration) -> bool {
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return true };
        let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
        if !self.alive() {
            return true;
        }
        let span = Timespec { tv_sec: deadline.as_secs() as i64, tv_nsec: deadline.subsec_nanos() as i64 };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&span)), Ok(1..))
    }

    /// SIGTERM, then SIGKILL after `grace`; true when it is gone.
    pub(crate) fn end(self, grace: Duration) -> bool {
        // A stopped process takes no SIGTERM before it continues.
        self.signal(Signal::CONT);
        if !self.signal(Signal::TERM) || self.dies(grace) {
            return true;
        }
        self.signal(Signal::KILL);
        self.dies(Duration::from_secs(5))
    }

    /// Bytes of resident memory: all of it, and what of it is not a mapped file.
    pub(crate) fn resident(self) -> Option<Resident> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let bytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Some(Resident { all: bytes("VmRSS:")?, own: bytes("RssAnon:")? })
    }
}

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    /// All of it, the program's own text among it.
    pub(crate) all: u64,
    /// Heap and stacks.
    pub(crate) own: u64,
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command stands in parentheses and may itself hold spaces and parentheses.
    let rest = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// The state letter of `/proc/<pid>/stat` (`S` sleeping, `T` stopped, `Z` zombie), if the process exists.
pub(crate) fn state(pid: u32) -> Option<char> {
    stat(pid).map(|stat| stat.state)
}

/// The parent of `pid`.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

/// Every pid there is now.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of `pid`, zombies included.
pub(crate) fn children(pid: u32) -> Vec<Process> {
    all()
        .into_iter()
        .filter(|child| stat(*child).is_some_and(|s| s.parent == pid))
        .filter_map(Process::of)
        .collect()
}

/// The children of `pid` that died and were not waited for.
pub(crate) fn zombies(pid: u32) -> Vec<Process> {
    children(pid).into_iter().filter(|child| state(child.pid) == Some('Z')).collect()
}

/// The signals it does not take now, a bit each: SIGHUP is the lowest.
pub(crate) fn blocked(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// Waits until no child of `pid` is a zombie: one that ended this instant is not waited for yet.
#[track_caller]
pub(crate) fn all_reaped(pid: u32) {
    let none = within(DEADLINE, || zombies(pid).is_empty().then_some(()));
    assert!(none.is_some(), "children of {pid} that nobody waits for: {:?}", zombies(pid));
}

/// The command line, words joined by a space; empty for a zombie or a kernel thread.
pub(crate) fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// The processes that have a file below `folder` open.
pub(crate) fn holders(folder: &Path) -> Vec<u32> {
    let holds = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file.starts_with(folder))
    };
    all().into_iter().filter(holds).collect()
}

/// The living processes whose environment or command line names `folder`: everything a story started.
pub(crate) fn below(folder: &Path) -> Vec<Process> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let names = |pid: u32, file: &str| {
        fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle))
    };
    all()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| names(*pid, "environ") || names(*pid, "cmdline"))
        .filter_map(Process::of)
        .filter(|process| process.alive())
        .collect()
}

/// Whether strace is installed and may trace here; else the reason.
pub(crate) fn strace() -> Result<(), String> {
    let traced = std::process::Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .output()
        .map_err(|error| format!("strace cannot be started: {error}"))?;
    if traced.status.success() {
        return Ok(());
    }
    Err(format!("strace is refused here: {}", String::from_utf8_lossy(&traced.stderr).trim()))
}
