//! `ait activity event`: one event of an agent's turn, as JSON on standard input.
//!
//! It is checked in the order of its contract, so that a program meets the same code for the same fault. The clock of this
//! machine is the only one that counts: the provider's own time is checked and then left out.

use std::io::Read;
use std::time::Duration;

use clap::Args as ClapArgs;
use serde::Deserialize;

use super::answer;
use crate::cli::session::Meant;
use crate::cli::session::address::Found;
use crate::cli::session::envelope::{self, Trouble};
use crate::cli::session::view::now;
use crate::cli::{Exit, Failure};
use crate::record::Record;
use crate::store::turns::{self, TurnError, Whose};
use crate::turn::{Confidence, Event, Moment, Need, Source, What, local};

/// The longest event, in bytes.
const LIMIT: u64 = 65_536;
/// The longest id, in characters.
const LONGEST: usize = 256;
/// How far the provider's clock may be off.
const SKEW: Duration = Duration::from_secs(24 * 60 * 60);
/// The one version that is understood.
const VERSION: &str = "agent-session.turn-event.v1";
/// Whose events are taken.
const PROVIDERS: [&str; 3] = ["codex", "claude", "hermes"];

/// Tell one event of a session's turn.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    one: Meant,
    /// Read the event, one JSON object, from standard input
    #[arg(long, required = true)]
    stdin: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    envelope::say("activity-event", &args.one.given, || {
        let now = now();
        let given = Told::read(std::io::stdin().lock())?;
        let need = given.check(now)?;
        let (store, found) = args.one.found()?;
        given.check_session(&found)?;
        let event = given.event(&found.record, need, now);
        let told = turns::tell(store.paths(), &Whose::of(&found.record), &event).map_err(refused)?;
        answer(&found, &told.turns.view(now), told.duplicate)
    })
}

fn refused(error: TurnError) -> Trouble {
    let exit = match &error {
        TurnError::Store(_) => Exit::FAILED,
        TurnError::Replay { .. } | TurnError::Unreadable { .. } => Exit::BAD_DATA,
    };
    Trouble::new(exit, error.code(), error.to_string())
}

/// An event as it is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    schema_version: String,
    event_id: String,
    runtime_id: String,
    provider: String,
    kind: Kind,
    /// Only checked: how sure a state is, its source decides.
    #[serde(rename = "confidence")]
    _confidence: Confidence,
    provider_session_id: Option<String>,
    provider_turn_id: Option<String>,
    attention_id: Option<String>,
    attention_kind: Option<String>,
    source_kind: Option<SourceKind>,
    provider_time: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    TurnStarted,
    AttentionRequested,
    AttentionCleared,
    Progress,
    StopObserved,
    TurnCompleted,
    TurnFailed,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::TurnStarted => "turn_started",
            Self::AttentionRequested => "attention_requested",
            Self::AttentionCleared => "attention_cleared",
            Self::Progress => "progress",
            Self::StopObserved => "stop_observed",
            Self::TurnCompleted => "turn_completed",
            Self::TurnFailed => "turn_failed",
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceKind {
    ProviderHook,
    ConsoleObservation,
    TerminalHeuristic,
    Runtime,
}

fn bad(code: &'static str, message: impl Into<String>) -> Trouble {
    Trouble::new(Exit::BAD_DATA, code, message)
}

impl Told {
    fn read(input: impl Read) -> Result<Self, Trouble> {
        let mut text = Vec::new();
        let read = input.take(LIMIT + 1).read_to_end(&mut text);
        read.map_err(|wrong| bad("activity-event-invalid", format!("the event cannot be read: {wrong}")))?;
        if text.len() as u64 > LIMIT {
            return Err(bad("activity-event-too-large", format!("the event is longer than {LIMIT} bytes")));
        }
        // what is wrong is told by its place: the words of the event are not repeated
        serde_json::from_slice(&text).map_err(|wrong| {
            let place = format!("line {}, column {}", wrong.line(), wrong.column());
            bad("activity-event-invalid", format!("the event is not as it should be at {place}"))
        })
    }

    /// What can be checked without a session; the kind of the attention, where there is one.
    fn check(&self, now: Moment) -> Result<Option<Need>, Trouble> {
        if self.schema_version != VERSION {
            return Err(bad("unsupported-turn-event-version", format!("only {VERSION} is understood")));
        }
        let ids = [
            ("event_id", Some(&self.event_id)),
            ("runtime_id", Some(&self.runtime_id)),
            ("provider_session_id", self.provider_session_id.as_ref()),
            ("provider_turn_id", self.provider_turn_id.as_ref()),
            ("attention_id", self.attention_id.as_ref()),
        ];
        for (field, id) in ids {
            if id.is_some_and(|id| !is_id(id)) {
                let message = format!("{field} is not 1 to {LONGEST} characters without control characters");
                return Err(bad("activity-event-field-invalid", message).detail("field", field));
            }
        }
        if !PROVIDERS.contains(&self.provider.as_str()) {
            let message = format!("events are taken of {} only", PROVIDERS.join(", "));
            return Err(bad("activity-provider-unsupported", message));
        }
        let (id, kind) = (self.attention_id.is_some(), self.attention_kind.is_some());
        let whole = match self.kind {
            Kind::AttentionRequested => id && kind,
            Kind::AttentionCleared => id,
            Kind::TurnStarted
            | Kind::Progress
            | Kind::StopObserved
            | Kind::TurnCompleted
            | Kind::TurnFailed => true,
        };
        if !whole {
            let message = format!("{} needs the attention's id, a request its kind too", self.kind.word());
            return Err(bad("activity-attention-invalid", message));
        }
        let need = self.attention_kind.as_deref().map(need).transpose()?;
        self.check_time(now)?;
        Ok(need)
    }

    fn check_time(&self, now: Moment) -> Result<(), Trouble> {
        let Some(text) = &self.provider_time else { return Ok(()) };
        let Ok(time) = text.parse::<jiff::Timestamp>() else {
            return Err(bad("activity-provider-time-invalid", "provider_time is not RFC 3339"));
        };
        let time = Moment::from(time);
        if time.age(now).max(now.age(time)) > SKEW {
            return Err(bad("activity-provider-time-skewed", "provider_time is more than a day off"));
        }
        Ok(())
    }

    /// What the session has to say to it.
    fn check_session(&self, found: &Found) -> Result<(), Trouble> {
        let record = &found.record;
        if self.provider != record.agent_kind {
            return Err(bad("activity-provider-mismatch", "the session's agent is another provider's"));
        }
        let runtime = record.runtime();
        if found.archived.is_some() || self.runtime_id != runtime {
            return Err(bad("runtime-id-mismatch", "the session's agent is not in this launch"));
        }
        let known = &record.codeagent_session_id;
        let here = |id: &str| local(&runtime, &record.agent_kind, "session", id);
        match &self.provider_session_id {
            _ if known.is_empty() => Ok(()),
            None => Err(bad("provider-session-id-missing", "the session's conversation is known: name it")),
            Some(id) if here(id) == here(known) => Ok(()),
            Some(_) => Err(bad("provider-session-id-mismatch", "it is of another conversation")),
        }
    }

    fn event(self, record: &Record, need: Option<Need>, at: Moment) -> Event {
        let what = match self.kind {
            Kind::TurnStarted => What::TurnStarted,
            Kind::AttentionRequested => What::AttentionRequested {
                attention: need.unwrap_or(Need::Other),
                request: self.attention_id,
                tool: None,
            },
            Kind::AttentionCleared => What::AttentionCleared { request: self.attention_id, tool: None },
            Kind::Progress => What::Progress { tool: None, tool_use: None },
            Kind::StopObserved => What::StopObserved,
            Kind::TurnCompleted => What::TurnCompleted { background: false },
            Kind::TurnFailed => What::TurnFailed,
        };
        let source = match self.source_kind.unwrap_or(SourceKind::ProviderHook) {
            SourceKind::ProviderHook => Source::Hook,
            // the weakest of those that look at the console
            SourceKind::ConsoleObservation => Source::Title,
            SourceKind::TerminalHeuristic => Source::Screen,
            SourceKind::Runtime => Source::Runtime,
        };
        // a caller's id may say anything: in our files it says nothing
        let id = local(&record.runtime(), &record.agent_kind, "event", &self.event_id);
        let name = self.kind.word().to_owned();
        Event { id, at, source, name, what, prompt: self.provider_turn_id }
    }
}

fn is_id(id: &str) -> bool {
    (1..=LONGEST).contains(&id.chars().count()) && !id.chars().any(char::is_control)
}

fn need(word: &str) -> Result<Need, Trouble> {
    [Need::Approval, Need::Clarification, Need::Authentication, Need::Other]
        .into_iter()
        .find(|need| need.word() == word)
        .ok_or_else(|| bad("activity-attention-kind-invalid", "the attention's kind is not known"))
}
