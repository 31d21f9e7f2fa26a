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

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

/// The variable that names another program than the `tmux` of `PATH`, for this process and those it starts.
pub const BINARY: &str = "AGENT_SESSION_TMUX_BIN";

/// The program that was chosen for this process.
static CHOSEN: OnceLock<OsString> = OnceLock::new();

/// Chooses the program that is run from here on, by its path or its name on `PATH`; the first choice stands.
pub fn choose(program: &OsStr) {
    // a path counts from where this process is now
    let path = Path::new(program);
    let whole = (path.components().count() > 1).then(|| std::path::absolute(path).ok()).flatten();
    let _ = CHOSEN.set(whole.map_or_else(|| program.to_owned(), PathBuf::into_os_string));
}

/// The choice of this process or of whoever started it, for processes that are started in turn.
#[must_use]
pub fn chosen() -> Option<OsString> {
    let set = || std::env::var_os(BINARY).filter(|set| !set.as_encoded_bytes().trim_ascii().is_empty());
    CHOSEN.get().cloned().or_else(set)
}

/// The program that is run: the chosen one, else the one [`BINARY`] names, else the `tmux` that `PATH` finds first.
///
/// # Errors
/// [`Unanswered::NoBinary`] when no folder of `PATH` has an executable of that name.
pub fn binary() -> Result<PathBuf, Unanswered> {
    let named = chosen().unwrap_or_else(|| "tmux".into());
    if Path::new(&named).components().count() > 1 {
        return std::path::absolute(&named)
            .ok()
            .filter(|program| is_executable(program))
            .ok_or(Unanswered::NoBinary);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&named))
        .find(|program| is_executable(program))
        .ok_or(Unanswered::NoBinary)
}

fn is_executable(program: &Path) -> bool {
    use rustix::fs::{Access, access};

    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}
