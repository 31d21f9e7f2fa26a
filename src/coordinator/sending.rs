//! What is sent to an agent: the keys there are, what keeps a text from being sent, and what is known of it afterwards.

use std::str::FromStr;

use super::sight::{Composer, Mood, Sight};

/// A key by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Pasted as a CR, so that neither a mode nor synchronized panes change it.
    Enter,
    /// Esc.
    Escape,
    /// Ctrl-C.
    CtrlC,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// Tab.
    Tab,
    /// Shift and Tab.
    ShiftTab,
    /// Backspace.
    Backspace,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
}

impl Key {
    /// Every key: its name, and tmux's name for it.
    pub const ALL: [(Key, &'static str, &'static str); 14] = [
        (Key::Enter, "enter", "Enter"),
        (Key::Escape, "escape", "Escape"),
        (Key::CtrlC, "c-c", "C-c"),
        (Key::Up, "up", "Up"),
        (Key::Down, "down", "Down"),
        (Key::Left, "left", "Left"),
        (Key::Right, "right", "Right"),
        (Key::Tab, "tab", "Tab"),
        (Key::ShiftTab, "shift-tab", "BTab"),
        (Key::Backspace, "backspace", "BSpace"),
        (Key::Home, "home", "Home"),
        (Key::End, "end", "End"),
        (Key::PageUp, "page-up", "PPage"),
        (Key::PageDown, "page-down", "NPage"),
    ];

    fn names(self) -> (&'static str, &'static str) {
        let found = Key::ALL.iter().find(|(key, _, _)| *key == self);
        found.map_or(("enter", "Enter"), |(_, name, tmux)| (name, tmux))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// tmux's name for it.
    #[must_use]
    pub fn tmux(self) -> &'static str {
        self.names().1
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Key::ALL.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(key, _, _)| *key).ok_or_else(|| {
            let names: Vec<&str> = Key::ALL.iter().map(|(_, name, _)| *name).collect();
            format!("there is no key {text:?}; there are {}", names.join(", "))
        })
    }
}

/// Why nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsendable {
    /// One word.
    pub word: &'static str,
    /// What was seen.
    pub seen: String,
}

impl Unsendable {
    /// With its word and what was seen.
    #[must_use]
    pub fn new(word: &'static str, seen: impl Into<String>) -> Self {
        Self { word, seen: seen.into() }
    }
}

/// What ends a bracketed paste: in a text it would let the rest be typed.
const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// What of a text cannot be sent as it is. `brackets`: whether its pane brackets pastes, or may.
#[must_use]
pub fn unsendable(text: &[u8], brackets: bool) -> Option<Unsendable> {
    if text.contains(&0) {
        return Some(Unsendable::new("nul", "the text holds a NUL byte"));
    }
    let ends = brackets && text.windows(END_OF_PASTE.len()).any(|window| window == END_OF_PASTE);
    ends.then(|| Unsendable::new("end_of_paste", "the text holds ESC[201~, which would end its own paste"))
}

/// Whether a text is one only between brackets: without them a program reads its line ends, tabs and escapes as keys.
#[must_use]
pub fn needs_brackets(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_control)
}

/// Whether an agent that is seen so takes a text as a prompt; `None` if it does.
#[must_use]
pub fn takes_no_text(sight: &Sight) -> Option<Unsendable> {
    match &sight.mood {
        Mood::Dialog(what) => {
            return Some(Unsendable::new("dialog", format!("it stands at a dialog: {what}")));
        }
        Mood::Asking => return Some(Unsendable::new("needs_input", "it asks for an answer")),
        Mood::Starting | Mood::Working | Mood::Ready | Mood::Unknown => {}
    }
    let drafted = sight.composer == Composer::Text;
    drafted.then(|| Unsendable::new("composer", "its prompt line holds text that was not sent"))
}

/// What the screen says of a prompt after Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Yes,
    /// It still stands in the prompt line.
    No,
    /// Nothing that can be told.
    Unknown,
}

/// What two looks at an agent say of a prompt: one before Enter with the text in place, one after it.
#[must_use]
pub fn taken(before: &Sight, after: &Sight) -> Taken {
    let began = after.mood == Mood::Working && before.mood == Mood::Ready;
    match (before.composer, after.composer, &after.mood) {
        (_, _, Mood::Dialog(_)) => Taken::Unknown,
        (Composer::Text, Composer::Empty, _) => Taken::Yes,
        (_, Composer::Text, _) => Taken::No,
        (_, _, Mood::Working) if began => Taken::Yes,
        _ => Taken::Unknown,
    }
}

/// What is known of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The agent took it as a prompt.
    Submitted,
    /// It was written to the pane; what was to hand it in, if anything was, is known not to have.
    Typed,
    /// It was written to the pane, and nobody says whether it was taken; or it is not even known whether it was written.
    Unconfirmed,
}

impl Known {
    /// The word in text and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Typed => "typed",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(mood: Mood, composer: Composer) -> Sight {
        Sight { mood, composer, ..Sight::unknown() }
    }

    #[test]
    fn every_key_has_a_name_and_is_read_by_it() {
        for (key, name, tmux) in Key::ALL {
            assert_eq!(name.parse(), Ok(key));
            assert_eq!((key.name(), key.tmux()), (name, tmux));
        }
        assert_eq!("Enter".parse(), Ok(Key::Enter));
        assert!("f13".parse::<Key>().is_err());
    }

    #[test]
    fn text_that_tmux_or_a_bracket_would_change_is_not_sent() {
        let word = |text: &[u8], brackets| unsendable(text, brackets).map(|one| one.word);
        assert_eq!(word(b"a\0b", false), Some("nul"));
        assert_eq!(word(b"a\x1b[201~b", true), Some("end_of_paste"));
        assert_eq!(word(b"a\x1b[201~b", false), None);
        assert_eq!(word(";\\;#{pane_id}\t\r\n".as_bytes(), true), None);
    }

    #[test]
    fn a_dialog_a_question_and_a_draft_take_no_text() {
        let word = |mood, composer| takes_no_text(&seen(mood, composer)).map(|one| one.word);
        assert_eq!(word(Mood::Dialog("trust".into()), Composer::Unknown), Some("dialog"));
        assert_eq!(word(Mood::Asking, Composer::Empty), Some("needs_input"));
        assert_eq!(word(Mood::Ready, Composer::Text), Some("composer"));
        for mood in [Mood::Ready, Mood::Working, Mood::Starting, Mood::Unknown] {
            assert_eq!(word(mood.clone(), Composer::Empty), None);
            assert_eq!(word(mood, Composer::Unknown), None);
        }
    }

    #[test]
    fn only_a_prompt_line_that_was_emptied_or_work_that_began_says_that_it_was_taken() {
        let ready = |composer| seen(Mood::Ready, composer);
        let held = ready(Composer::Text);
        assert_eq!(taken(&held, &ready(Composer::Empty)), Taken::Yes);
        assert_eq!(taken(&held, &ready(Composer::Text)), Taken::No);
        assert_eq!(taken(&held, &seen(Mood::Working, Composer::Unknown)), Taken::Yes);
        assert_eq!(
            taken(&ready(Composer::Empty), &ready(Composer::Empty)),
            Taken::Unknown,
            "it redrew, no more"
        );
        assert_eq!(
            taken(&seen(Mood::Working, Composer::Unknown), &seen(Mood::Working, Composer::Unknown)),
            Taken::Unknown
        );
        assert_eq!(taken(&held, &seen(Mood::Dialog("trust".into()), Composer::Unknown)), Taken::Unknown);
    }
}
