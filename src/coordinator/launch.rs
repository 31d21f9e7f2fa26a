//! The words of a launch: what is asked, what is to be started, and where it came to be.

use std::time::Duration;

use super::Task;
use crate::record::{Nonce, PaneId, ProcessId, RestoreMode, ServerEpoch, WindowId};

/// What a restore is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreOrder {
    /// The record, and who coordinates.
    pub task: Task,
    /// The conversation, or its task anew.
    pub mode: RestoreMode,
    /// The session the user wants it in.
    pub session: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// How long it has for its acknowledgement.
    pub grace: Duration,
}

/// What is to be launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The token of the restore.
    pub nonce: Nonce,
    /// The agent's arguments, its program's plain name first.
    pub argv: Vec<String>,
    /// Below its shell.
    pub below_shell: bool,
    /// The session the user wants it in.
    pub session: Option<String>,
}

/// What became of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launched {
    /// It was started.
    Started(Box<Started>),
    /// Nothing was started: the reason, one word, and what was seen.
    Not {
        /// The word.
        word: String,
        /// What was seen.
        seen: String,
    },
    /// Nobody can say.
    Unknown(String),
}

/// Where something was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The pane.
    pub pane: PaneId,
    /// Its process.
    pub process: ProcessId,
    /// The life of its server.
    pub server: ServerEpoch,
    /// The names around it, for a pane that is new.
    pub around: Option<Around>,
}

/// The names around a new pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// The session's name.
    pub session: String,
    /// The window.
    pub window_id: WindowId,
    /// Its index.
    pub index: i64,
    /// Its name.
    pub window: String,
}
