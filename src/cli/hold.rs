//! `ait hold`: the pane of the hidden session `_ait`. It says whose session this is and how to leave it, and sleeps in the
//! kernel until its owner is dead or its terminal goes: the session ends with the supervisor, however that ended. The owner's
//! control client must be gone before the session is: `tether` says why.
//!
//! Keys typed into it do nothing: whoever came here by accident must not end the session by a stray Ctrl-C.

use std::io::{self, IsTerminal, Write};

use clap::Args as ClapArgs;
use nix::sys::signal::{self as unix, SigSet};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::{Exit, Failure};
use crate::process::{Delivery, ProcessError, ProcessId, Signal, await_death, signal};

/// Hold the hidden session that a supervisor watches a server from.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The supervisor it ends with: its pid and start
    #[arg(long, value_name = "PID:START", value_parser = process)]
    owner: Option<ProcessId>,
    /// The owner's control client, which is ended before the session: its pid and start
    #[arg(long, value_name = "PID:START", value_parser = process)]
    client: Option<ProcessId>,
}

/// Clears the screen and hides the cursor, then the page.
const PAGE: &str = "\x1b[2J\x1b[H\x1b[?25l\n\
    \x20 This session belongs to ait.\n\n\
    \x20 From here it watches this tmux server, to keep your agents.\n\
    \x20 It ends by itself with the supervisor, and nothing of yours\n\
    \x20 is in it.\n\n\
    \x20 To leave: your tmux prefix, then  )  for the next session,\n\
    \x20 or  s  to choose one, or  d  to detach.\n";

pub(super) fn run(Args { owner, client }: Args) -> Result<Exit, Failure> {
    let deaf: SigSet = [unix::SIGINT, unix::SIGQUIT, unix::SIGTSTP].into_iter().collect();
    deaf.thread_block().map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    let stdin = io::stdin();
    if stdin.is_terminal()
        && let Ok(mut modes) = tcgetattr(&stdin)
    {
        modes.local_modes.remove(LocalModes::ECHO);
        // a terminal that went away meanwhile ends us by its signal
        let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
    }
    // whether anybody sees the page changes nothing about holding
    let _ = io::stdout().lock().write_all(PAGE.as_bytes()).and_then(|()| io::stdout().flush());
    let Some(owner) = owner else {
        loop {
            std::thread::park();
        }
    };
    let failed = |error: ProcessError| Failure::of(Exit::FAILED, &error);
    await_death(&owner).map_err(failed)?;
    if let Some(client) = client
        && signal(&client, Signal::KILL).map_err(failed)? == Delivery::Delivered
    {
        await_death(&client).map_err(failed)?;
    }
    Ok(Exit::OK)
}

/// Reads `PID:START`.
pub(super) fn process(text: &str) -> Result<ProcessId, String> {
    let (pid, started) = text.split_once(':').ok_or("not PID:START")?;
    let pid = pid.parse().map_err(|_| "not a pid")?;
    Ok(ProcessId { pid, started: started.to_owned() })
}
