//! What a record knows of the session it was started as: its names, its way of working, how it ended.

use serde::{Deserialize, Serialize, Serializer};

use super::json::{Unknown, print_object, read_object};

/// A session that `ait start` or `ait run` began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The exit status of a run that is over; 128 and the signal's number for one that a signal ended.
    pub exit: Option<i32>,
    /// One prompt to its end, or a conversation.
    pub mode: Mode,
    /// The name it was given, usable in place of its id.
    pub name: Option<String>,
    /// Whether it was begun with a prompt, which lies in the session's folder.
    pub prompt: bool,
    /// Its title, usable in place of its id.
    pub title: Option<String>,
    /// Fields this version does not know.
    pub unknown: Unknown,
}

/// How a session works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A person, or a script in their place, talks with it.
    #[default]
    Interactive,
    /// It answers one prompt and leaves; its output is in a log.
    Run,
}

impl Mode {
    /// The word in files and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Run => "run",
        }
    }
}

impl Session {
    /// Whether it goes by this name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.title].into_iter().flatten().any(|own| own == name)
    }
}

read_object! {
    #[derive(Default)]
    struct SessionFields {
        exit: Option<i32>,
        mode: Mode,
        name: Option<String>,
        prompt: bool,
        title: Option<String>,
    }
}

impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SessionFields { exit, mode, name, prompt, title, unknown } =
            Deserialize::deserialize(deserializer)?;
        Ok(Self { exit, mode, name, prompt, title, unknown })
    }
}

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        print_object!(serializer, self.unknown, {
            exit: self.exit,
            mode: Some(self.mode),
            name: self.name.as_ref(),
            prompt: self.prompt.then_some(true),
            title: self.title.as_ref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_wrote_is_kept() {
        let text = r#"{"later":[1,2],"mode":"run","name":"x","prompt":true}"#;
        let read: Session = serde_json::from_str(text).unwrap();
        assert_eq!((read.mode, read.name.as_deref(), read.prompt), (Mode::Run, Some("x"), true));
        let back = serde_json::to_string(&read).unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&back).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
    }
}
