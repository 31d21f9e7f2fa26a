//! The record file and its archive as any other reader of the files sees them: plain JSON, no part of `store`.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One generation of the store and the archive beside it.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// The records.
    pub(super) records: Vec<Entry>,
    /// The archive's lines, oldest first.
    pub(super) archive: Vec<Line>,
}

/// What the demo looks at in a record.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    /// The record's id.
    pub(super) id: String,
    /// Its window's name.
    pub(super) window: String,
    /// Its state's name.
    pub(super) state: String,
    /// Its pane; empty once gone.
    #[serde(default)]
    pub(super) pane_id: String,
    #[serde(default)]
    ait: Ours,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Ours {
    #[serde(default)]
    lost: Option<Lost>,
    #[serde(default)]
    server: Option<Server>,
}

#[derive(Debug, Clone, Deserialize)]
struct Server {
    pid: i32,
}

#[derive(Debug, Clone, Deserialize)]
struct Lost {
    cause: String,
}

/// One line of the archive.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Line {
    /// Why the record was retired.
    #[serde(default)]
    pub(super) reason: String,
    /// The record as it was.
    pub(super) record: Option<Entry>,
}

#[derive(Deserialize)]
struct File {
    sessions: Vec<Entry>,
}

impl Entry {
    /// `live`, or `lost: <cause>`, or the state's name.
    pub(super) fn told(&self) -> String {
        match &self.ait.lost {
            Some(lost) => format!("lost: {}", lost.cause),
            None => self.state.clone(),
        }
    }

    /// Whether it is kept as lost for `cause`, with no location left.
    pub(super) fn lost_by(&self, cause: &str) -> bool {
        self.state == "frozen"
            && self.pane_id.is_empty()
            && self.ait.lost.as_ref().is_some_and(|l| l.cause == cause)
    }

    /// Whether it is frozen, and was not lost.
    pub(super) fn frozen(&self) -> bool {
        self.state == "frozen" && self.ait.lost.is_none()
    }

    /// Whether it is live on another server than the one of this process.
    pub(super) fn live_away_from(&self, server: i32) -> bool {
        self.live() && self.ait.server.as_ref().is_some_and(|own| own.pid != server)
    }

    /// Whether it is live and nothing of a loss is left.
    pub(super) fn live(&self) -> bool {
        self.state == "live" && self.ait.lost.is_none()
    }
}

impl Book {
    /// Reads both files; a missing one is empty.
    pub(super) fn read(store: &Path) -> io::Result<Book> {
        let records = match missing_is_empty(store)? {
            text if text.trim().is_empty() => Vec::new(),
            text => serde_json::from_str::<File>(&text)?.sessions,
        };
        let text = missing_is_empty(&archive_of(store))?;
        let archive = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Book { records, archive })
    }

    /// The record with this id.
    pub(super) fn record(&self, id: &str) -> Option<&Entry> {
        self.records.iter().find(|entry| entry.id == id)
    }

    /// Why this record was retired, if it was and is no longer in the store.
    pub(super) fn retired(&self, id: &str) -> Option<&str> {
        if self.record(id).is_some() {
            return None;
        }
        let mut lines = self.archive.iter().rev();
        lines.find(|line| line.record.as_ref().is_some_and(|r| r.id == id)).map(|line| line.reason.as_str())
    }

    /// Every record in a few words.
    pub(super) fn summary(&self) -> String {
        let words: Vec<String> = self
            .records
            .iter()
            .map(|entry| format!("{} `{}` {}", entry.id, entry.window, entry.told()))
            .collect();
        format!(
            "the store has {} records [{}], {} archived",
            words.len(),
            words.join(", "),
            self.archive.len()
        )
    }
}

fn archive_of(store: &Path) -> PathBuf {
    store.with_extension("archive.jsonl")
}

fn missing_is_empty(path: &Path) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}
