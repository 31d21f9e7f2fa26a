//! The script in front of an agent: `node …/codex` hands every signal on to the program below it, `node …/gemini` swallows
//! them and ends when the program does.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use nix::sys::signal::Signal;

use super::life::fall_by;
use super::plain::block;
use super::{Exit, Failure, Kind};
use crate::process;

/// Signals that do not end a wrapper by themselves.
const MET: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// The words that make the inner of two processes.
pub(super) const INNER: &str = "--max-old-space-size=8192";

/// Becomes the wrapper of an agent: the same process under a script's command line.
pub(super) fn become_one(kind: Kind, words: &[String]) -> Result<Exit, Failure> {
    let mut node = Command::new(std::env::current_exe()?);
    node.arg0("node").arg(format!("/usr/local/bin/{}", kind.name())).args(words);
    Err(Failure::of(Exit::FAILED, &node.exec()))
}

/// Runs the agent below and ends as it ends.
pub(super) fn wrap(kind: Kind, words: &[String]) -> Result<Exit, Failure> {
    let set = block(&MET)?;
    let mut inner = Command::new(std::env::current_exe()?);
    match kind {
        Kind::Gemini => inner.arg0("node").arg(INNER).arg("/usr/local/bin/gemini"),
        Kind::Claude | Kind::Codex => inner.arg0(format!("{}-x86_64-unknown-linux-musl", kind.name())),
    };
    let mut child = inner.args(words).spawn()?;
    let below = process::identify(child.id() as i32);
    std::thread::spawn(move || {
        while let Ok(signal) = set.wait() {
            let forwarded = match signal {
                Signal::SIGHUP => process::Signal::HUP,
                Signal::SIGINT => process::Signal::INT,
                _ => process::Signal::TERM,
            };
            if kind != Kind::Gemini
                && let Some(below) = &below
            {
                let _ = process::signal(below, forwarded);
            }
        }
    });
    let status = child.wait()?;
    match status.signal().and_then(|number| Signal::try_from(number).ok()) {
        Some(signal) => fall_by(signal),
        None => Ok(Exit::code(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}
