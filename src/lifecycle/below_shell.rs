//! The agent in front, its shell to come back: a pane whose agent was typed at a prompt.
//!
//! The process of the pane stays as the session's leader and waits. The agent runs as a foreground job in a group of its
//! own; when it ends, the terminal is put back as it was and this process becomes the shell. A pane that is hung up takes
//! both.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Leaves the alternate screen, mouse, paste and keyboard modes, and shows the cursor: what a killed agent leaves on.
const PLAIN: &[u8] =
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[>4;0m\x1b[?25h\x1b[0m\r\n";

/// Where a shell is looked for when the recorded one cannot be started.
const LAST_SHELL: &str = "/bin/sh";

/// Runs `agent` as the terminal's foreground job and becomes `shell` once it has ended. Returns only when the pane was hung
/// up (the status to end with), or when nothing can be started.
///
/// # Errors
/// The agent cannot be started, or no shell can.
pub fn host(agent: &mut Command, shell: Option<Command>) -> io::Result<u8> {
    let told = [
        Signal::SIGHUP,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTSTP,
        Signal::SIGTTIN,
        Signal::SIGTTOU,
        Signal::SIGCHLD,
    ];
    let told: SigSet = told.into_iter().collect();
    told.thread_block()?;
    let stdin = io::stdin();
    let modes = tcgetattr(&stdin).ok();
    let child = agent.process_group(0).spawn()?;
    let job = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    // both sides do it: whoever comes first, neither runs in the background
    let _ = to_front(job);
    let (status, hung_up) = wait(job, &told)?;
    if hung_up {
        return Ok(status);
    }
    let _ = to_front(nix::unistd::getpgrp());
    plain(modes.as_ref());
    SigSet::empty().thread_set_mask()?;
    let failed = match shell {
        Some(mut shell) => shell.exec(),
        None => return Ok(status),
    };
    tracing::warn!("the shell that was in this pane cannot be started: {failed}");
    Err(Command::new(LAST_SHELL).exec())
}

/// Makes this process's own group the terminal's foreground one, and listens to every signal again: the last step before
/// the agent, so that it starts in front and with nothing blocked.
///
/// # Errors
/// The signal mask cannot be set. A terminal that went away is none: its hang-up follows.
pub fn come_to_front() -> io::Result<()> {
    let _ = to_front(nix::unistd::getpgrp());
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

fn to_front(group: Pid) -> nix::Result<()> {
    nix::unistd::tcsetpgrp(io::stdin(), group)
}

/// Waits for the job's end: its status as a shell tells it, and whether the pane was hung up meanwhile.
fn wait(job: Pid, told: &SigSet) -> io::Result<(u8, bool)> {
    let mut hung_up = false;
    loop {
        match waitpid(job, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED))? {
            WaitStatus::Exited(_, status) => return Ok((u8::try_from(status & 255).unwrap_or(1), hung_up)),
            WaitStatus::Signaled(_, signal, _) => {
                return Ok((u8::try_from(128 + signal as i32).unwrap_or(1), hung_up));
            }
            // there is no prompt to put it behind: it goes on in front. Whoever stopped it by SIGSTOP means it.
            WaitStatus::Stopped(_, Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)
                if to_front(job).is_ok() =>
            {
                let _ = killpg(job, Signal::SIGCONT);
                continue;
            }
            _ => {}
        }
        if let signal @ (Signal::SIGHUP | Signal::SIGTERM) = told.wait()? {
            hung_up = true;
            // gone already: the next look says so
            let _ = killpg(job, signal);
            let _ = killpg(job, Signal::SIGCONT);
        }
    }
}

fn plain(modes: Option<&Termios>) {
    let mut out = io::stdout().lock();
    // a terminal that went away ends the shell by itself
    let _ = out.write_all(PLAIN).and_then(|()| out.flush());
    if let Some(modes) = modes {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, modes);
    }
}
