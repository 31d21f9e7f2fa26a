//! What is heard of an agent's turn: events, which come once each, and observations, which hold until the next one.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Moment;

/// What an agent is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It came up and has not been asked anything.
    Starting,
    /// A turn runs, or work goes on behind one.
    Working,
    /// It waits for the next prompt.
    Waiting,
    /// It asks for a permission or an answer.
    NeedsInput,
    /// Nobody says, nobody said lately, or those who say contradict each other.
    #[default]
    Unknown,
}

impl State {
    /// The word in files and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::NeedsInput => "needs_input",
            Self::Unknown => "unknown",
        }
    }
}

/// Who says so, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// The program's own status sequence.
    #[serde(rename = "osc7501")]
    Osc7501,
    /// The provider's hooks.
    #[serde(rename = "hook")]
    Hook,
    /// The provider's list of its processes.
    #[serde(rename = "registry")]
    Registry,
    /// The provider's own record of the conversation, as it grows.
    #[serde(rename = "rollout")]
    Rollout,
    /// The progress sequence.
    #[serde(rename = "osc9;4")]
    Osc94,
    /// Prompt marks.
    #[serde(rename = "osc133")]
    Osc133,
    /// The pane's title.
    #[serde(rename = "title")]
    Title,
    /// The screen.
    #[serde(rename = "screen")]
    Screen,
    /// When there was output; never more than a guess.
    #[serde(rename = "timing")]
    Timing,
    /// Whoever started the agent.
    #[serde(rename = "runtime")]
    Runtime,
}

impl Source {
    /// All of them, the strongest first.
    pub const ALL: [Self; 10] = [
        Self::Osc7501,
        Self::Hook,
        Self::Registry,
        Self::Rollout,
        Self::Osc94,
        Self::Osc133,
        Self::Title,
        Self::Screen,
        Self::Timing,
        Self::Runtime,
    ];

    /// The word in files and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Osc7501 => "osc7501",
            Self::Hook => "hook",
            Self::Registry => "registry",
            Self::Rollout => "rollout",
            Self::Osc94 => "osc9;4",
            Self::Osc133 => "osc133",
            Self::Title => "title",
            Self::Screen => "screen",
            Self::Timing => "timing",
            Self::Runtime => "runtime",
        }
    }
}

/// How sure a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Whoever says so decides it.
    Authoritative,
    /// The program said or showed it.
    Observed,
    /// It is concluded from what the program shows.
    Inferred,
}

/// One event: it happened once, at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id: the same event told twice counts once.
    pub id: String,
    /// When it was heard of.
    pub at: Moment,
    /// By whom.
    pub source: Source,
    /// The provider's own name of it.
    pub name: String,
    /// What it says.
    #[serde(flatten)]
    pub what: What,
    /// The prompt or turn it belongs to, where the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// The agent came up.
    Started,
    /// It began another conversation; its prompt line is open.
    Cleared,
    /// A prompt was handed in.
    TurnStarted,
    /// It is about to use a tool, or otherwise goes on: a turn runs.
    Progress {
        /// The tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// This use of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_use: Option<String>,
    },
    /// It asks for something.
    AttentionRequested {
        /// For what.
        attention: Need,
        /// The request's own id, where there is one: the use of a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        /// The tool it asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A request is over: allowed and done, denied, answered. It comes late and opens no turn.
    AttentionCleared {
        /// Which one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
        /// Else the oldest of this tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// Every request of this turn is over.
    AttentionsCleared,
    /// A turn may be over; somebody else may still let it go on.
    StopObserved,
    /// A turn is over.
    TurnCompleted {
        /// Work goes on behind it.
        #[serde(default)]
        background: bool,
    },
    /// A turn failed.
    TurnFailed,
    /// A turn was interrupted.
    TurnInterrupted,
    /// It has been waiting: a reminder, of no turn in particular.
    Idle,
}

/// What an agent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A permission.
    Approval,
    /// An answer.
    Clarification,
    /// A login.
    Authentication,
    /// Something else.
    Other,
}

impl Need {
    /// The word in files and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Clarification => "clarification",
            Self::Authentication => "authentication",
            Self::Other => "other",
        }
    }
}

/// What a source that can be looked at again and again shows now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Which source.
    pub source: Source,
    /// What it shows; `None` where it shows nothing of a turn.
    pub state: Option<State>,
    /// Since when it shows that, where it says so itself; else since it was first seen.
    pub since: Option<Moment>,
    /// When it was looked at.
    pub at: Moment,
    /// It would be seen to move if it were true: a spinner.
    pub moves: bool,
    /// Work goes on behind the turn.
    pub background: bool,
    /// What it asks for, where it says.
    pub need: Option<Need>,
    /// What was seen, in a few words; never text of the user's.
    pub detail: String,
}

impl Observation {
    /// This state, seen at this moment, and nothing else.
    #[must_use]
    pub fn of(source: Source, state: Option<State>, at: Moment, detail: &str) -> Self {
        Self {
            source,
            state,
            since: None,
            at,
            moves: false,
            background: false,
            need: None,
            detail: detail.to_owned(),
        }
    }
}

/// How ids of a provider's look once they are local.
const LOCAL: &str = "local:v1:";

/// An id of a provider's as our files hold it: it says nothing outside this runtime. One that is local already stays.
#[must_use]
pub fn local(runtime: &str, provider: &str, field: &str, id: &str) -> String {
    if is_local(id) {
        return id.to_owned();
    }
    let mut hash = Sha256::new();
    for part in ["ait turn id v1", runtime, provider, field, id] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut text = LOCAL.to_owned();
    for byte in hash.finalize() {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
    }
    text
}

/// Whether an id is local, and well formed.
#[must_use]
pub fn is_local(id: &str) -> bool {
    id.strip_prefix(LOCAL)
        .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

impl Event {
    /// The event with its ids made local to a runtime.
    #[must_use]
    pub fn local(mut self, runtime: &str, provider: &str) -> Self {
        let make = |field: &str, id: &mut Option<String>| {
            if let Some(id) = id {
                *id = local(runtime, provider, field, id);
            }
        };
        make("turn", &mut self.prompt);
        match &mut self.what {
            What::Progress { tool_use: id, .. }
            | What::AttentionRequested { request: id, .. }
            | What::AttentionCleared { request: id, .. } => make("request", id),
            What::Started
            | What::Cleared
            | What::TurnStarted
            | What::AttentionsCleared
            | What::StopObserved
            | What::TurnCompleted { .. }
            | What::TurnFailed
            | What::TurnInterrupted
            | What::Idle => {}
        }
        self
    }
}
