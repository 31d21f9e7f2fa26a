//! Where coordinators run: in a process of their own, `ait coordinate`, which outlives the pane, the terminal and the command
//! that asked for it.
//!
//! [`spawn`] starts one and gives its progress, one line of JSON at a time; [`become_host`] is the first thing that process does.
//! The pipe may break at any moment and nobody is harmed by it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::coordinator::Told;
use crate::tmux;

/// A coordinator's process, seen from outside.
#[derive(Debug)]
pub struct Hosted {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Starts `ait coordinate` with these arguments. The process lives on when we end.
///
/// # Errors
/// It could not be started.
pub fn spawn(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> io::Result<Hosted> {
    let mut child = Command::new(program)
        .arg("coordinate")
        .args(arguments)
        .envs(tmux::chosen().map(|program| (tmux::BINARY, program)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(false)
        .spawn()?;
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("a pipe is missing"))?;
    Ok(Hosted { child, lines: BufReader::new(stdout).lines() })
}

impl Hosted {
    /// The coordinator's pid.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The next thing it says; `None` once it has ended. A line that is none of its words is left out. Cancel safe.
    pub async fn next(&mut self) -> Option<Told> {
        while let Ok(Some(line)) = self.lines.next_line().await {
            if let Ok(told) = serde_json::from_str(&line) {
                return Some(told);
            }
        }
        None
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system does not say.
    pub async fn ended(&mut self) -> io::Result<std::process::ExitStatus> {
        self.child.wait().await
    }
}

/// Makes this process a host of its own: a session without a terminal, in which SIGHUP does nothing from here on. It is heard,
/// not blocked: a blocked signal stays blocked in all that is started from here, a new tmux server and its panes first of all.
/// Must be called within a tokio runtime.
///
/// # Errors
/// The signal cannot be heard.
pub fn become_host() -> io::Result<Signal> {
    // a leader of its own session already when a service manager started it
    let _ = rustix::process::setsid();
    signal(SignalKind::hangup())
}

/// Says a line on the pipe; a reader that went away is no reason to stop.
pub fn tell(told: &Told) {
    let Ok(mut line) = serde_json::to_string(told) else { return };
    line.push('\n');
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
