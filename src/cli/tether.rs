//! `ait tether`: becomes the control client of a supervisor, tied to its life.
//!
//! A control client that nobody reads harms its server: it can keep it from ending, and tmux up to 3.6 crashes when the
//! heartbeat of a client fires whose session is gone. So the client must die with its owner, at once and not by a detach. The
//! kernel sees to that on Linux, for the program that is put in this one's place too; elsewhere `ait hold` does.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;

use clap::Args as ClapArgs;

use super::{Exit, Failure};
use crate::process::{ProcessId, me};

/// Become a control client that dies with its owner.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The supervisor, which started this: its pid and start
    #[arg(long, value_name = "PID:START", value_parser = super::hold::process)]
    owner: ProcessId,
    /// The client's command line; the word `{client}` in it becomes the client's own PID:START
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

pub(super) fn run(Args { owner, words }: Args) -> Result<Exit, Failure> {
    tie(&owner)?;
    let me = me().map_err(|error| Failure::of(Exit::FAILED, &error))?;
    let own = OsString::from(format!("{}:{}", me.pid, me.started));
    let mut words =
        words.into_iter().map(|word| if word == OsStr::new("{client}") { own.clone() } else { word });
    let Some(program) = words.next() else {
        return Err(Failure::new(Exit::USAGE, "there is no program to become"));
    };
    // only comes back when it failed
    Err(Failure::of(Exit::UNAVAILABLE, &std::process::Command::new(program).args(words).exec()))
}

/// Dies when the thread that started us does. Its death before this is seen by the parent being another.
#[cfg(target_os = "linux")]
fn tie(owner: &ProcessId) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    if getppid().map(|pid| pid.as_raw_nonzero().get()) == Some(owner.pid) {
        Ok(())
    } else {
        Err(Failure::new(Exit::FAILED, format!("the owner {} did not start this", owner.pid)))
    }
}

#[cfg(not(target_os = "linux"))]
fn tie(_owner: &ProcessId) -> Result<(), Failure> {
    Ok(())
}
