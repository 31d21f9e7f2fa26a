//! What a coordinator says while it works and at its end: lines of JSON on its pipe.

use serde::{Deserialize, Serialize};

use crate::record::RecordId;

/// One line of progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What was done, one word: `captured`, `stamped`, `ending`, `ended` …
    pub step: String,
    /// More of it, for a reader; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Step {
    /// A step with what there is to say about it.
    #[must_use]
    pub fn new(step: &str, detail: impl Into<String>) -> Self {
        Self { step: step.to_owned(), detail: detail.into() }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Done.
    Done,
    /// It would be done: only the plan was asked for.
    Planned,
    /// Refused before anything was changed.
    Refused,
    /// It was begun, did not work, and was taken back.
    Failed,
    /// It was begun and is left on its way: reconcile finishes it.
    Left,
}

/// The end of an operation, told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How.
    pub end: End,
    /// One word: `frozen`, `dropped`, `verified` …, or the reason: `working`, `no_session`, `lease_held` …
    pub word: String,
    /// What was seen, for a reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What is not clean although it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Outcome {
    /// An end with its word and what was seen.
    #[must_use]
    pub fn new(end: End, word: &str, detail: impl Into<String>) -> Self {
        Self { end, word: word.to_owned(), detail: detail.into(), hint: None, warnings: Vec::new() }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// The same with warnings.
    #[must_use]
    pub fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// A line on a coordinator's pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// A step of one record.
    Step {
        /// The record.
        record: RecordId,
        /// The step.
        #[serde(flatten)]
        step: Step,
    },
    /// The end of one record's operation.
    Outcome {
        /// The record.
        record: RecordId,
        /// The end.
        #[serde(flatten)]
        outcome: Outcome,
    },
}
