//! `[notify]`: how the user is told of what happens to their sessions.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::supervisor::notify::note::Reason;

/// How long a command may take, unless the user says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `[notify]`. Without a way to tell, nothing is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Notify {
    /// A program and its arguments, run for each thing that is told, with one JSON object on its standard input.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
    /// What is told of.
    pub on: BTreeSet<Reason>,
    /// How long the command may take before it is ended.
    #[serde(deserialize_with = "super::duration")]
    pub timeout: Duration,
    /// Whether the terminals of the user's that are attached are told as well, by one of their own sequences.
    pub terminal: Terminal,
    /// Whether the desktop is told as well: over the session's D-Bus, on macOS through its notification centre.
    pub desktop: bool,
}

/// How a terminal is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Terminal {
    /// Not at all.
    #[default]
    Off,
    /// OSC 9: iTerm2, WezTerm, ghostty, Windows Terminal …
    Osc9,
    /// OSC 777: urxvt, foot, ghostty …
    Osc777,
}

impl Terminal {
    /// The word in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Osc9 => "osc9",
            Self::Osc777 => "osc777",
        }
    }
}

impl Notify {
    /// The keys of the table.
    pub(super) const KEYS: &[&str] = &["command", "on", "timeout", "terminal", "desktop"];

    /// What is told of, if anything is.
    #[must_use]
    pub fn reasons(&self) -> BTreeSet<Reason> {
        let told = !self.command.is_empty() || self.terminal != Terminal::Off || self.desktop;
        if told { self.on.clone() } else { BTreeSet::new() }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            on: Reason::ALL.into(),
            timeout: TIMEOUT,
            terminal: Terminal::Off,
            desktop: false,
        }
    }
}

/// The words of a command.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words: Vec<String> = Vec::deserialize(deserializer)?;
    let wrong = |why: &str| Err(serde::de::Error::custom(format!("{words:?} is no command: {why}")));
    match words.first() {
        None => wrong("it has no program"),
        Some(program) if program.trim().is_empty() => wrong("its program has no name"),
        Some(_) if words.iter().any(|word| word.contains('\0')) => wrong("a word of it holds a NUL"),
        Some(_) => Ok(words),
    }
}
