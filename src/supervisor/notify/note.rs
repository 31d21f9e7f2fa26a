//! What is told of a session: one object, for the user's own command and for the line of a terminal.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::turn::{Moment, Need};

/// The schema of the object.
pub const SCHEMA: &str = "ait.notify.v1";
/// Sessions that one object names; more are counted.
const NAMED: usize = 20;
/// The longest name in a line, in characters.
const NAME: usize = 48;

/// Why something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It asks for a permission or an answer.
    NeedsInput,
    /// Its turn is over.
    Waiting,
    /// It was lost.
    Lost,
    /// It is back.
    Recovered,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NeedsInput, Self::Waiting, Self::Lost, Self::Recovered];

    /// It in a person's words, of one or of several.
    fn words(self, several: bool) -> &'static str {
        match (self, several) {
            (Self::NeedsInput, false) => "needs input",
            (Self::NeedsInput, true) => "need input",
            (Self::Waiting, false) => "is done and waits",
            (Self::Waiting, true) => "are done and wait",
            (Self::Lost, _) => "lost",
            (Self::Recovered, false) => "is back",
            (Self::Recovered, true) => "are back",
        }
    }
}

/// Words of a provider's or a user's: for the one who is told, and for no log.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Words(pub String);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The session it is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The record's id.
    pub id: String,
    /// The name it was given, else its title.
    pub name: Option<String>,
    /// The provider.
    pub agent: String,
    /// The folder of its project.
    pub project: String,
    /// The name of its window.
    pub window: String,
    /// The socket of its tmux server; `null` while it is in no pane.
    pub socket: Option<String>,
    /// Its pane.
    pub pane: Option<String>,
}

impl Subject {
    /// Whoever this record is of, where it is now.
    pub(super) fn of(record: &Record) -> Self {
        let named = record.ait.session.as_ref();
        let name = named.and_then(|named| named.name.clone().or_else(|| named.title.clone()));
        let pane = record.location.pane_id();
        let socket = record.ait.server.as_ref().filter(|_| pane.is_some()).map(|epoch| epoch.socket.clone());
        Self {
            id: record.id.to_string(),
            name,
            agent: record.agent_kind.clone(),
            project: record.root.clone(),
            window: record.window.clone(),
            socket,
            pane: pane.map(|pane| pane.to_string()),
        }
    }

    /// It in a person's words, fit for a terminal.
    fn words(&self) -> String {
        let name = [self.name.as_deref(), Some(self.window.as_str()), Some(self.id.as_str())];
        let name = name.into_iter().flatten().find(|name| !name.trim().is_empty()).unwrap_or_default();
        format!("{} ({})", plain(name), plain(&self.agent))
    }
}

/// What it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// For what.
    pub kind: Need,
    /// For which tool, where that is said.
    pub tool: Option<String>,
    /// How many requests stand.
    pub pending: u64,
}

/// One session and why it is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Why.
    pub reason: Reason,
    /// Which.
    pub session: Subject,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// [`SCHEMA`].
    pub schema_version: &'static str,
    /// When it happened; of several, the latest.
    pub at: Moment,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
    /// What was not told since the last time: it was over, or something newer of the same session came, before it could be.
    pub held: u64,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum What {
    /// Something of one session.
    One {
        /// Which, and why.
        #[serde(flatten)]
        item: Item,
        /// What it asks for; only if it needs input.
        attention: Option<Asked>,
        /// The question in the provider's words, where it gave it.
        question: Option<Words>,
        /// Who says so (`hook`, `registry`, `title` …), or what it was lost by (`server_crashed` …).
        source: String,
    },
    /// Something of several at once.
    Several {
        /// `several`.
        reason: &'static str,
        /// How many of each.
        counts: BTreeMap<Reason, usize>,
        /// The first of them.
        sessions: Vec<Item>,
        /// How many are not named.
        more: usize,
    },
}

impl What {
    /// Several at once.
    pub(super) fn several(items: Vec<Item>) -> Self {
        let mut counts = BTreeMap::new();
        for item in &items {
            *counts.entry(item.reason).or_default() += 1;
        }
        let more = items.len().saturating_sub(NAMED);
        let sessions = items.into_iter().take(NAMED).collect();
        Self::Several { reason: "several", counts, sessions, more }
    }
}

impl Note {
    /// What happened.
    pub(super) fn new(at: Moment, what: What, held: u64) -> Self {
        Self { schema_version: SCHEMA, at, what, held }
    }

    /// It in one line for a person: names and counts, and never what an agent asks or was asked.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.what {
            What::One { item: Item { reason, session }, source, .. } => match reason {
                Reason::Lost => format!("{} lost: {}", session.words(), plain(source)),
                Reason::NeedsInput | Reason::Waiting | Reason::Recovered => {
                    format!("{} {}", session.words(), reason.words(false))
                }
            },
            What::Several { counts, .. } => {
                let one =
                    |(reason, count): (&Reason, &usize)| format!("{count} {}", reason.words(*count > 1));
                format!("agents: {}", counts.iter().map(one).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A name without anything that a terminal would obey or take for an end.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && *c != ';').take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(reason: Reason, name: Option<&str>) -> Item {
        let session = Subject {
            id: "0000000a".into(),
            name: name.map(Into::into),
            agent: "claude".into(),
            project: "/srv/app".into(),
            window: "cart".into(),
            socket: Some("/tmp/s".into()),
            pane: Some("%5".into()),
        };
        Item { reason, session }
    }

    fn one(reason: Reason, name: Option<&str>) -> Note {
        let what = What::One {
            item: item(reason, name),
            attention: None,
            question: Some(Words("May I?".into())),
            source: "hook".into(),
        };
        Note::new(Moment::from_millis(0), what, 2)
    }

    #[test]
    fn the_object_is_that_of_the_schema() {
        let mut note = one(Reason::NeedsInput, None);
        if let What::One { attention, .. } = &mut note.what {
            *attention = Some(Asked { kind: Need::Approval, tool: Some("Bash".into()), pending: 1 });
        }
        insta::assert_json_snapshot!(note, @r#"
        {
          "schema_version": "ait.notify.v1",
          "at": "1970-01-01T00:00:00.000Z",
          "reason": "needs_input",
          "session": {
            "id": "0000000a",
            "name": null,
            "agent": "claude",
            "project": "/srv/app",
            "window": "cart",
            "socket": "/tmp/s",
            "pane": "%5"
          },
          "attention": {
            "kind": "approval",
            "tool": "Bash",
            "pending": 1
          },
          "question": "May I?",
          "source": "hook",
          "held": 2
        }
        "#);
        let items = (0..25).map(|_| item(Reason::Lost, None)).chain([item(Reason::Waiting, None)]);
        let several = Note::new(Moment::from_millis(0), What::several(items.collect()), 0);
        let object = serde_json::to_value(&several).unwrap();
        assert_eq!(object["reason"], "several");
        assert_eq!(object["counts"], serde_json::json!({"waiting": 1, "lost": 25}));
        assert_eq!((object["sessions"].as_array().unwrap().len(), &object["more"]), (20, &6.into()));
        assert_eq!(several.line(), "agents: 1 is done and waits, 25 lost");
    }

    #[test]
    fn a_line_holds_names_alone_and_nothing_a_terminal_obeys() {
        assert_eq!(one(Reason::NeedsInput, None).line(), "cart (claude) needs input");
        assert_eq!(
            one(Reason::Waiting, Some("a;b\u{1b}]\u{7}\u{9c}c")).line(),
            "ab]c (claude) is done and waits"
        );
        assert_eq!(one(Reason::Lost, Some(" ")).line(), "cart (claude) lost: hook");
        let long = "x".repeat(99);
        assert_eq!(
            one(Reason::Recovered, Some(&long)).line(),
            format!("{} (claude) is back", "x".repeat(48))
        );
    }
}
