//! Claude's own list of running processes: `sessions/<pid>.json` in its configuration folder.
//!
//! A crash leaves a file behind and a pid is handed out again, so a file counts only for a process that still is the one
//! that wrote it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::config;
use crate::history::disk::Disk;
use crate::history::environment::Environment;
use crate::record::{Liveness, ProcessId};
use crate::turn::{Moment, Need, Observation, Source, State};

/// What Claude says it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// A turn runs.
    Busy,
    /// Nothing runs.
    Idle,
    /// A question stands; `waiting_for` says which.
    Waiting,
    /// A shell command of the user runs in it.
    Shell,
}

/// The entry of one running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// The session id it has now; `/clear` and `/resume` change it.
    pub session_id: String,
    /// What it does; `None` in versions that do not say, and for a word that is not known.
    pub status: Option<Status>,
    /// What it waits for, in Claude's words: `permission prompt`, `input needed`, `dialog open` …
    pub waiting_for: Option<String>,
    /// When the status last changed.
    pub status_at: Option<Timestamp>,
    /// The folder it works in.
    pub cwd: Option<std::path::PathBuf>,
}

impl Registry {
    /// What it says of the turn, looked at now.
    #[must_use]
    pub fn observation(&self, at: Moment) -> Observation {
        let (state, background, detail) = match self.status {
            Some(Status::Busy) => (Some(State::Working), false, "busy"),
            Some(Status::Idle) => (Some(State::Waiting), false, "idle"),
            Some(Status::Waiting) => (Some(State::NeedsInput), false, "waiting"),
            Some(Status::Shell) => (Some(State::Waiting), true, "shell"),
            None => (None, false, ""),
        };
        let need = self.status.filter(|status| *status == Status::Waiting).map(|_| {
            match self.waiting_for.as_deref() {
                Some("permission prompt" | "sandbox request" | "worker request" | "goal proposal") => {
                    Need::Approval
                }
                Some("input needed") => Need::Clarification,
                Some(_) | None => Need::Other,
            }
        });
        // a clock that runs ahead of ours says nothing of what comes
        let since = self.status_at.map(Moment::from).map(|since| since.min(at));
        Observation { since, background, need, ..Observation::of(Source::Registry, state, at, detail) }
    }
}

/// The folder of the entries.
pub(in crate::history) fn registry_folder(env: &Environment) -> Option<PathBuf> {
    Some(config(env).ok()?.join("sessions"))
}

/// The entry of a process, if it is alive and the entry is its own.
pub(in crate::history) fn registry(disk: &Disk, process: &ProcessId, env: &Environment) -> Option<Registry> {
    let shelf = disk.shelf(&registry_folder(env)?).ok()??;
    let bytes = shelf.open(Path::new(&format!("{}.json", process.pid))).ok()??.whole().ok()?;
    let entry: Value = serde_json::from_slice(&bytes).ok()?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    if entry.get("pid").and_then(Value::as_i64).is_some_and(|pid| pid != i64::from(process.pid)) {
        return None;
    }
    // on Linux it is the kernel's own start; a date of another system's `ps` cannot be compared
    let told =
        entry.get("procStart").map(|start| start.as_str().map_or_else(|| start.to_string(), str::to_owned));
    let ticks = told.filter(|start| !start.is_empty() && start.bytes().all(|byte| byte.is_ascii_digit()));
    if ticks.is_some_and(|ticks| !process.started.is_empty() && ticks != process.started) {
        return None;
    }
    if crate::process::liveness(process) == Liveness::Gone {
        return None;
    }
    Some(Registry {
        session_id: text("sessionId").filter(|id| !id.is_empty())?.to_owned(),
        status: text("status").and_then(status),
        waiting_for: text("waitingFor").filter(|what| !what.is_empty()).map(str::to_owned),
        status_at: entry.get("statusUpdatedAt").and_then(time),
        cwd: text("cwd").map(std::path::PathBuf::from),
    })
}

fn status(word: &str) -> Option<Status> {
    match word {
        "busy" => Some(Status::Busy),
        "idle" => Some(Status::Idle),
        "waiting" => Some(Status::Waiting),
        "shell" => Some(Status::Shell),
        _ => None,
    }
}

/// Milliseconds since 1970, or RFC 3339.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        number => Timestamp::from_millisecond(number.as_f64()? as i64).ok(),
    }
}
