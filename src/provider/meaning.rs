//! What a hook event says of an agent: its turn, its conversation, or nothing.

use serde_json::Value;

/// Where an agent is in its turn, as one event says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It came up and has taken no prompt yet.
    Starting,
    /// It works on a prompt.
    Working,
    /// The turn is over and the prompt line is open.
    Waiting,
    /// It waits for an answer: a permission, a question.
    NeedsInput,
    /// The agent's session is over.
    Ended,
}

/// Why an agent is on a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A new one at its start.
    Startup,
    /// An earlier one brought back.
    Resume,
    /// The user began anew.
    Clear,
    /// The old one was compacted.
    Compact,
    /// The old one was branched.
    Fork,
    /// The provider did not say.
    Unsaid,
}

/// What an event says. All empty: noise (a sub-agent's event, another thread's, a chunk of output).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meaning {
    /// What it says of the turn. It holds only for the conversation [`Meaning::session_id`] names.
    pub turn: Option<Turn>,
    /// The agent is on the conversation of this event from now on, for this reason.
    pub binds: Option<Source>,
    /// The conversation, when the payload names one. Not checked: [`super::Catalog::fits`] does.
    pub session_id: Option<String>,
    /// The turn is over but work goes on behind it.
    pub background: bool,
    /// The prompt the event belongs to. A turn that ends for another prompt than the last one submitted is not the last:
    /// one typed while the agent worked still follows.
    pub prompt_id: Option<String>,
    /// The tool it is about.
    pub tool: Option<String>,
    /// Which use of it.
    pub tool_use: Option<String>,
}

impl Meaning {
    /// Whether nothing follows from the event.
    #[must_use]
    pub fn is_noise(&self) -> bool {
        self.turn.is_none() && self.binds.is_none()
    }
}

impl Turn {
    /// The word records and turn files write.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::NeedsInput => "needs_input",
            Self::Ended => "ended",
        }
    }
}

impl Source {
    /// The source a payload names.
    pub(super) fn of(payload: &Value) -> Self {
        match text(payload, "source") {
            Some("startup" | "new") => Self::Startup,
            Some("resume") => Self::Resume,
            Some("clear") => Self::Clear,
            Some("compact") => Self::Compact,
            Some("fork" | "branch") => Self::Fork,
            _ => Self::Unsaid,
        }
    }

    /// What the turn is after it: a start is a start, a change in mid-session leaves an open prompt line, and a compaction
    /// says nothing.
    pub(super) fn turn(self) -> Option<Turn> {
        match self {
            Self::Startup | Self::Resume | Self::Unsaid => Some(Turn::Starting),
            Self::Clear | Self::Fork => Some(Turn::Waiting),
            Self::Compact => None,
        }
    }
}

/// A word of a payload.
pub(super) fn text<'a>(payload: &'a Value, name: &str) -> Option<&'a str> {
    payload.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Whether a list or table of a payload has anything in it.
pub(super) fn holds(payload: &Value, name: &str) -> bool {
    match payload.get(name) {
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(table)) => !table.is_empty(),
        _ => false,
    }
}

/// Nothing at all.
pub(super) fn noise() -> Meaning {
    Meaning::default()
}

/// Where payloads name a tool, and the use of it.
const TOOL: [&str; 2] = ["tool_name", "toolName"];
const TOOL_USE: [&str; 3] = ["tool_use_id", "toolUseId", "toolCallId"];

/// A turn of the conversation that `id` names in the payload.
pub(super) fn turn(turn: Turn, payload: &Value, id: &str) -> Meaning {
    Meaning {
        turn: Some(turn),
        session_id: text(payload, id).map(str::to_owned),
        prompt_id: text(payload, "prompt_id").map(str::to_owned),
        tool: TOOL.iter().find_map(|name| text(payload, name)).map(str::to_owned),
        tool_use: TOOL_USE.iter().find_map(|name| text(payload, name)).map(str::to_owned),
        ..Meaning::default()
    }
}

/// The agent is on the conversation that `id` names in the payload.
pub(super) fn binds(source: Source, payload: &Value, id: &str) -> Meaning {
    Meaning {
        turn: source.turn(),
        binds: Some(source),
        session_id: text(payload, id).map(str::to_owned),
        ..Meaning::default()
    }
}

/// No event of this provider is known.
pub(super) fn silent(_event: &str, _payload: &Value) -> Meaning {
    noise()
}

/// The events Claude Code began and others took over, with snake_case payloads.
pub(super) fn as_claude(event: &str, payload: &Value) -> Meaning {
    // a sub-agent's events carry its parent's id; another program's payload that reads the same settings has no id there
    if text(payload, "agent_id").is_some() || text(payload, "session_id").is_none() {
        return noise();
    }
    let turn = |state| turn(state, payload, "session_id");
    match event {
        "SessionStart" => binds(Source::of(payload), payload, "session_id"),
        // the one after it says which conversation is on
        "SessionEnd" if matches!(text(payload, "reason"), Some("clear" | "resume")) => noise(),
        "SessionEnd" => turn(Turn::Ended),
        // the tool is a question to the user
        "PreToolUse" if matches!(text(payload, "tool_name"), Some("AskUserQuestion" | "ExitPlanMode")) => {
            turn(Turn::NeedsInput)
        }
        "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch"
        | "PermissionDenied" | "ElicitationResult" => turn(Turn::Working),
        "PermissionRequest" | "Elicitation" => turn(Turn::NeedsInput),
        "Notification" => match text(payload, "notification_type") {
            Some(
                "permission_prompt" | "elicitation_dialog" | "agent_needs_input" | "worker_permission_prompt",
            ) => turn(Turn::NeedsInput),
            Some("idle_prompt") => turn(Turn::Waiting),
            _ => noise(),
        },
        "Stop" => Meaning { background: holds(payload, "background_tasks"), ..turn(Turn::Waiting) },
        "StopFailure" | "StopCancelled" | "Interrupt" => turn(Turn::Waiting),
        _ => noise(),
    }
}

#[cfg(test)]
mod tests;
