//! What an agent's title and screen show: whether it works, asks, is ready, or sits at a dialog.
//!
//! A sign is positive: where nothing is recognised the answer is unknown, never ready. Ready wants a prompt line in its
//! place, nothing that works, and, where a provider can work without showing it, a mark that the last turn is over.

use super::screen::Screen;

/// What is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// What the agent is at.
    pub phase: Phase,
    /// Whether its prompt line holds text that was not sent.
    pub composer: Composer,
    /// Whether it says that work goes on behind the prompt line.
    pub background: bool,
}

/// What an agent is at, as its screen shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A turn is running.
    Working,
    /// It wants an answer before it goes on: a permission or a question.
    Asking,
    /// The prompt line is open and nothing runs.
    Ready,
    /// Something stands before the conversation.
    Dialog(Dialog),
    /// Nothing that can be told.
    Unknown,
}

/// What stands between the agent's start and its prompt line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialog {
    /// Whether the folder is trusted.
    Trust,
    /// A login or a key.
    Login,
    /// New hooks are to be reviewed.
    HooksReview,
    /// Which folder to go on in.
    WorkingDirectory,
    /// The questions of a first start.
    Setup,
    /// A list of conversations.
    Picker,
    /// Another process has the conversation open.
    OpenElsewhere,
    /// Some other menu.
    Other,
}

/// The prompt line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composer {
    /// Nothing, or only a placeholder.
    Empty,
    /// Text.
    Text,
    /// No prompt line is seen, or the provider has no rule for it.
    Unknown,
}

impl Sight {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { phase: Phase::Unknown, composer: Composer::Unknown, background: false };

    /// This phase, and nothing of the prompt line.
    pub(super) const fn of(phase: Phase) -> Self {
        Self { phase, ..Self::UNKNOWN }
    }
}

impl Dialog {
    /// The word messages use: `blocked:trust`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Login => "login",
            Self::HooksReview => "hooks_review",
            Self::WorkingDirectory => "working_directory",
            Self::Setup => "setup",
            Self::Picker => "picker",
            Self::OpenElsewhere => "open_elsewhere",
            Self::Other => "dialog",
        }
    }
}

/// The words by which most providers' screens are read.
pub(super) struct Table {
    /// Beginnings of the title and what they say.
    pub(super) titles: &'static [(&'static str, Phase)],
    /// Whether a title that begins with a braille character says that it works.
    pub(super) braille: bool,
    /// Sets of words that are all near the bottom of the screen, and what they say; the first set counts.
    pub(super) words: &'static [(&'static [&'static str], Phase)],
}

/// Lines with something on them, from the bottom, in which the words are looked for: a menu with its question.
const NEAR: usize = 14;

impl Table {
    pub(super) const NONE: Self = Self { titles: &[], braille: false, words: &[] };

    /// Whether any of its words say this.
    pub(super) fn shows(&self, phase: Phase) -> bool {
        let titles = self.titles.iter().map(|(_, says)| *says);
        titles.chain(self.words.iter().map(|(_, says)| *says)).any(|says| says == phase)
    }

    pub(super) fn look(&self, title: &str, screen: &Screen) -> Sight {
        if screen.is_dead() {
            return Sight::UNKNOWN;
        }
        if self.braille && is_braille(title) {
            return Sight::of(Phase::Working);
        }
        let titled = self.titles.iter().find(|(begin, _)| title.starts_with(begin)).map(|(_, phase)| *phase);
        let shown = self.words.iter().find(|(all, _)| all.iter().all(|words| screen.says(NEAR, words)));
        let shown = shown.map(|(_, phase)| *phase);
        // a title of an idle agent does not outweigh a question or work on the screen
        let phase = match (titled, shown) {
            (Some(Phase::Ready) | None, Some(phase)) => phase,
            (Some(phase), _) => phase,
            (None, None) => Phase::Unknown,
        };
        Sight::of(phase)
    }
}

/// Whether a title begins with a spinner of braille characters.
pub(super) fn is_braille(title: &str) -> bool {
    title.chars().next().is_some_and(|c| ('\u{2801}'..='\u{28ff}').contains(&c))
}

#[cfg(test)]
mod tests;
