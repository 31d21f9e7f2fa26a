//! `ait tether`: becomes the control client of a supervisor, and tells the page of the hidden session who that client is.
//!
//! A control client that nobody reads harms its server: it can keep it from ending, and tmux up to 3.6 crashes when the
//! heartbeat of a client fires whose session is gone. So the client must die with its owner: `ait hold` kills it the moment the
//! owner is dead, and lets the session go only then. Nothing may kill it earlier, so no death signal is tied to the owner: a
//! control client that dies while it still introduces itself takes the server down (3.3a: its loss looks at a control state
//! that is not there yet; once in some hundred kills of the owner at random moments). The page is there only after that.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;

use clap::Args as ClapArgs;

use super::{Exit, Failure};
use crate::process::{ProcessId, me};

/// Become the control client of its owner.
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

/// Refuses to begin for an owner that is dead already: its death is seen by our parent being another.
fn tie(owner: &ProcessId) -> Result<(), Failure> {
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) == Some(owner.pid) {
        Ok(())
    } else {
        Err(Failure::new(Exit::FAILED, format!("the owner {} did not start this", owner.pid)))
    }
}
