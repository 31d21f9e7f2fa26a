//! What a record knows of the session it was started as: its names, its way of working, how it ended.

use serde::{Deserialize, Serialize, Serializer};

use super::json::{Unknown, print_object, read_object};
use super::{Record, Stamp};

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
    /// When text or keys were last sent to it.
    pub sent_at: Option<Stamp>,
    /// The folder that those who began it keep their sessions apart by, where they do: its agent is told of it.
    pub state_dir: Option<String>,
    /// Since when it is stopped, where its record was moved since: a resume that came to nothing is no news of it.
    pub stopped_at: Option<Stamp>,
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

impl Record {
    /// What the agent of a session that is kept apart is told of itself, in the earlier command line's variables: its id, that
    /// folder, and this launch.
    #[must_use]
    pub fn session_variables(&self, launch: &str) -> Vec<(&'static str, String)> {
        let Some((session, folder)) =
            self.ait.session.as_ref().and_then(|session| Some((session, session.state_dir.clone()?)))
        else {
            return Vec::new();
        };
        vec![
            ("AGENT_SESSION_ID", session.name.clone().unwrap_or_else(|| self.id.to_string())),
            ("AGENT_SESSION_STATE_DIR", folder),
            ("AGENT_SESSION_RUNTIME_ID", launch.to_owned()),
        ]
    }
}

read_object! {
    #[derive(Default)]
    struct SessionFields {
        exit: Option<i32>,
        mode: Mode,
        name: Option<String>,
        prompt: bool,
        sent_at: Option<Stamp>,
        state_dir: Option<String>,
        stopped_at: Option<Stamp>,
        title: Option<String>,
    }
}

impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SessionFields { exit, mode, name, prompt, sent_at, state_dir, stopped_at, title, unknown } =
            Deserialize::deserialize(deserializer)?;
        Ok(Self { exit, mode, name, prompt, sent_at, state_dir, stopped_at, title, unknown })
    }
}

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        print_object!(serializer, self.unknown, {
            exit: self.exit,
            mode: Some(self.mode),
            name: self.name.as_ref(),
            prompt: self.prompt.then_some(true),
            sent_at: self.sent_at.as_ref(),
            state_dir: self.state_dir.as_ref(),
            stopped_at: self.stopped_at.as_ref(),
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
