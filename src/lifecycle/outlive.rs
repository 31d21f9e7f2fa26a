//! Agents that outlived their server: they ignored the hang-up, and run on without a terminal.
//!
//! One must be gone before its conversation is brought back, or there would be two of it. It is ended only when its
//! conversation is safe on disk, by handles of the processes themselves, and its end is seen.

use std::time::Duration;

use crate::process::{self, Liveness, ProcessId, Signal, Table};

/// How long the hang-up of its terminal may take to end one.
const HANGUP: Duration = Duration::from_secs(1);
/// How long one has to end by itself once it is told to.
const GRACE: Duration = Duration::from_secs(5);
/// How long the kernel may take with one that is killed.
const KILLED: Duration = Duration::from_secs(5);

/// What became of a process that may have outlived its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlived {
    /// It is gone.
    Gone,
    /// It lives, and was left alone: its conversation is not known to be safe.
    Spared,
    /// It lives: it could not be ended, or not be seen.
    Survivor,
}

/// Sees to it that a lost agent's process is gone. `safe` says that its conversation is on disk.
///
/// Blocks for as long as it takes, ten seconds at the most.
#[must_use]
pub fn see_out(agent: &ProcessId, safe: bool) -> Outlived {
    if agent.started.is_empty() {
        // a bare pid proves nothing: it may be anybody's
        return Outlived::Gone;
    }
    // most are on their way: their terminal has just gone
    if process::await_death_within(agent, HANGUP).unwrap_or(false) {
        return Outlived::Gone;
    }
    match process::liveness(agent) {
        Liveness::Gone => return Outlived::Gone,
        Liveness::Unknown => return Outlived::Survivor,
        Liveness::Alive if !safe => return Outlived::Spared,
        Liveness::Alive => {}
    }
    let mut family = vec![agent.clone()];
    family.extend(Table::read().map(|table| table.descendants(agent.pid)).unwrap_or_default());
    for (signal, span) in [(Signal::TERM, GRACE), (Signal::KILL, KILLED)] {
        for process in &family {
            // one that is gone already is what is wanted
            let _ = process::signal(process, signal);
        }
        let end = std::time::Instant::now() + span;
        let gone = family.iter().all(|process| {
            let left = end.saturating_duration_since(std::time::Instant::now());
            process::await_death_within(process, left).unwrap_or(false)
        });
        if gone {
            return Outlived::Gone;
        }
    }
    match process::liveness(agent) {
        Liveness::Gone => Outlived::Gone,
        Liveness::Alive | Liveness::Unknown => Outlived::Survivor,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn start(script: &str) -> (Child, ProcessId) {
        let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        // it says when its traps are set
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
            .unwrap();
        let id = process::identify(i32::try_from(child.id()).unwrap()).unwrap();
        (child, id)
    }

    #[test]
    fn one_whose_conversation_is_not_safe_is_spared_and_one_that_is_safe_goes_with_its_children() {
        let (mut child, id) = start("trap '' HUP; echo; sleep 1000 & wait");
        assert_eq!(see_out(&id, false), Outlived::Spared);
        assert_eq!(process::liveness(&id), Liveness::Alive);
        let below = Table::read().unwrap().descendants(id.pid);
        assert_eq!(below.len(), 1);
        assert_eq!(see_out(&id, true), Outlived::Gone);
        child.wait().unwrap();
        assert_eq!(process::liveness(&below[0]), Liveness::Gone);
        assert_eq!(see_out(&id, true), Outlived::Gone, "gone is gone");
    }

    #[test]
    fn another_process_under_its_pid_is_nobody_to_end() {
        let (mut child, id) = start("echo; exec sleep 1000");
        let earlier = ProcessId::new(id.pid, "1");
        assert_eq!(see_out(&earlier, true), Outlived::Gone);
        assert_eq!(see_out(&ProcessId::bare(id.pid), true), Outlived::Gone);
        assert_eq!(process::liveness(&id), Liveness::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
