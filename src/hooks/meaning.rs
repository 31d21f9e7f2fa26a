//! What each provider's events say: of the conversation, and of the turn.

use super::payload::Payload;
use crate::provider::Provider;
use crate::record::report::{Names, TurnState};

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) names: Names,
    pub(super) turn: Option<TurnState>,
}

/// What this event of this provider says; of an unknown one, nothing but that its id runs.
pub(super) fn meaning(provider: Provider, event: &str, payload: &Payload) -> Meaning {
    use TurnState::{NeedsInput, Starting, Waiting, Working};
    let now = |turn| Meaning { names: Names::Now, turn };
    let while_running = |turn| Meaning { names: Names::IfBlank, turn: Some(turn) };
    let silent = Meaning { names: Names::IfBlank, turn: None };
    if !payload.agent_id.is_empty() {
        // a sub-agent's turn is not the agent's
        return Meaning { names: Names::Nothing, turn: None };
    }
    match event {
        "SessionStart" | "sessionStart" => now(match payload.source.as_str() {
            // in the middle of a turn, as a rule
            "compact" => None,
            "clear" => Some(Waiting),
            _ => Some(Starting),
        }),
        "UserPromptSubmit" | "userPromptSubmitted" | "BeforeAgent" | "on_session_start" | "pre_llm_call" => {
            now(Some(Working))
        }
        "PreToolUse"
        | "PostToolUse"
        | "PostToolUseFailure"
        | "PostToolBatch"
        | "AfterTool"
        | "postToolUse"
        | "postToolUseFailure"
        | "post_approval_response" => while_running(Working),
        // Copilot asks its policy first: no proof that anything is shown
        "PermissionRequest" | "pre_approval_request" => while_running(NeedsInput),
        "Notification" | "notification" => match payload.notification.as_str() {
            "permission_prompt"
            | "worker_permission_prompt"
            | "elicitation_dialog"
            | "agent_needs_input"
            | "ToolPermission" => while_running(NeedsInput),
            "idle_prompt" => while_running(Waiting),
            _ => silent,
        },
        "Stop" | "StopFailure" | "Interrupt" | "AfterAgent" | "agentStop" | "on_session_end" => {
            while_running(Waiting)
        }
        // the conversation that ends may not be the one that runs by now
        "SessionEnd" | "sessionEnd" | "on_session_finalize" => Meaning { names: Names::Nothing, turn: None },
        _ => match provider {
            // its title and summary threads have ids of their own
            Provider::Codex => Meaning { names: Names::Nothing, turn: None },
            Provider::Claude
            | Provider::Gemini
            | Provider::OpenCode
            | Provider::Hermes
            | Provider::Copilot
            | Provider::Qwen
            | Provider::Pi
            | Provider::Cursor
            | Provider::Amp
            | Provider::Kiro
            | Provider::Aider
            | Provider::Crush
            | Provider::Goose
            | Provider::Antigravity
            | Provider::Grok
            | Provider::Kimi => silent,
        },
    }
}
