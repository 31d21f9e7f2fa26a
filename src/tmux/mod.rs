//! The user's tmux servers: watching one, asking one, and the few guarded acts upon one.
//!
//! | part | for |
//! |---|---|
//! | [`probe`] | who listens on a socket, without a word to it |
//! | [`OneShot`] | a question or an act through a short-lived plain `tmux` process |
//! | [`Client`], [`Events`] | the one long-lived control client on a server |
//! | [`guarded`] | acts that test and act in one command, and prove that they did |
//! | [`listing`] | the commands that list a server whole |
//! | [`places`] | a new pane, window or session for a program |
//! | [`settings`] | what the user has set about the end of panes |
//!
//! Refuses to: start a server (`-N` always), name a target by anything but its id, put text of the user's into a format, a
//! target or a shell word, put a change of windows and a kill on one line, and read a failure to reach a server as its absence.

use std::path::{Path, PathBuf};

pub mod guarded;
pub mod listing;
pub mod places;
pub mod say;
pub mod settings;

mod attach;
mod client;
mod identity;
mod oneshot;
mod queue;
mod socket;
mod stream;

pub use attach::AttachError;
pub use client::{Client, ReplyError, SendError};
pub use identity::Identity;
pub(crate) use oneshot::within;
pub use oneshot::{OneShot, Unanswered};
pub use queue::{ClientEvent, EndCause, Ended, Events, Heard};
pub use socket::{Probe, probe};

/// The name of the hidden session that the control client lives in.
pub const HOLD_SESSION: &str = "_ait";

/// The program named `tmux` that `PATH` finds first.
///
/// # Errors
/// [`Unanswered::NoBinary`] when no folder of `PATH` has an executable of that name.
pub fn binary() -> Result<PathBuf, Unanswered> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("tmux"))
        .find(|program| is_executable(program))
        .ok_or(Unanswered::NoBinary)
}

fn is_executable(program: &Path) -> bool {
    use rustix::fs::{Access, access};

    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}
