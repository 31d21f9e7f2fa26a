//! What a check found: what it is about, how bad it is, and what to do.

use serde::Serialize;

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What it is about: `tmux`, `store`, `autostart` …
    pub(super) about: &'static str,
    /// How bad it is.
    pub(super) level: Level,
    /// What was seen, as a fragment. Names in it may hold anything; the face makes them safe.
    pub(super) what: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// As it should be.
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something is wrong or may hide something: the exit code says so.
    Bad,
}

impl Level {
    /// Its word at the start of a line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "BAD",
        }
    }
}

impl Finding {
    pub(super) fn good(about: &'static str, what: impl Into<String>) -> Self {
        Self { about, level: Level::Good, what: what.into(), hint: None }
    }

    pub(super) fn note(about: &'static str, what: impl Into<String>) -> Self {
        Self { about, level: Level::Note, what: what.into(), hint: None }
    }

    pub(super) fn bad(about: &'static str, what: impl Into<String>) -> Self {
        Self { about, level: Level::Bad, what: what.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
