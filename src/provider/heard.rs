//! What an event of a provider's hook is to the turn, by its name and its meaning.

use super::meaning::{Meaning, Turn};
use crate::turn::{Event, Moment, Need, Source, What};

/// A prompt is handed in.
const PROMPTS: &[&str] = &[
    "UserPromptSubmit",
    "userPromptSubmitted",
    "userPromptSubmit",
    "beforeSubmitPrompt",
    "BeforeAgent",
    "pre_llm_call",
    "agent_start",
];

/// A tool has ended or was not allowed, a question was answered. They may come after the turn's end.
const RESULTS: &[&str] = &[
    "PostToolUse",
    "PostToolUseFailure",
    "postToolUse",
    "postToolUseFailure",
    "AfterTool",
    "PermissionDenied",
    "ElicitationResult",
    "post_approval_response",
    "permission.replied",
];

/// All tools of a step have ended.
const BATCHES: &[&str] = &["PostToolBatch"];

/// The turn was cut short.
const INTERRUPTS: &[&str] = &["Interrupt", "StopCancelled"];

/// Tools that are a question to the user.
const QUESTIONS: &[&str] = &["AskUserQuestion", "Elicitation"];

impl Meaning {
    /// The event of this meaning and of that name, heard at a moment; `None` if it says nothing of a turn. That an agent's
    /// session is over is told by its process.
    #[must_use]
    pub fn event(&self, name: &str, id: String, at: Moment) -> Option<Event> {
        let is_in = |names: &[&str]| names.contains(&name);
        let what = match self.turn? {
            Turn::Ended => return None,
            Turn::Starting => What::Started,
            Turn::Waiting if self.binds.is_some() => What::Cleared,
            Turn::Waiting if name == "Notification" => What::Idle,
            Turn::Waiting if name == "StopFailure" => What::TurnFailed,
            Turn::Waiting if is_in(INTERRUPTS) => What::TurnInterrupted,
            Turn::Waiting => What::TurnCompleted { background: self.background },
            Turn::NeedsInput => What::AttentionRequested {
                attention: self.need(name),
                request: self.tool_use.clone(),
                tool: self.tool.clone(),
            },
            Turn::Working if is_in(PROMPTS) => What::TurnStarted,
            Turn::Working if is_in(BATCHES) => What::AttentionsCleared,
            Turn::Working if is_in(RESULTS) => {
                What::AttentionCleared { request: self.tool_use.clone(), tool: self.tool.clone() }
            }
            Turn::Working => What::Progress { tool: self.tool.clone(), tool_use: self.tool_use.clone() },
        };
        let prompt = self.prompt_id.clone();
        Some(Event { id, at, source: Source::Hook, name: name.to_owned(), what, prompt })
    }

    fn need(&self, name: &str) -> Need {
        let tool = self.tool.as_deref().unwrap_or(name);
        if QUESTIONS.contains(&tool) { Need::Clarification } else { Need::Approval }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::provider::Catalog;
    use crate::turn::{Ending, Moment, Turns};

    /// The states after each event of a recorded session.
    fn states(kind: &str) -> (Vec<String>, Turns) {
        let path = format!("{}/fixtures/providers/{kind}-hooks.jsonl", env!("CARGO_MANIFEST_DIR"));
        let recorded = std::fs::read_to_string(path).unwrap();
        let mut turns = Turns::new("r");
        let mut states = Vec::new();
        for (ms, line) in (0..).step_by(100).zip(recorded.lines()) {
            let line: Value = serde_json::from_str(line).unwrap();
            let name = line["event"].as_str().unwrap();
            let at = Moment::from_millis(1_000_000 + ms);
            let meaning = Catalog::default().hook_meaning(kind, name, &line["payload"]);
            if let Some(event) = meaning.event(name, ms.to_string(), at) {
                turns.hear(&event);
            }
            states.push(format!("{name} {}", turns.view(at).state.word()));
        }
        (states, turns)
    }

    #[test]
    fn a_recorded_session_of_claude_goes_through_its_states() {
        let (states, turns) = states("claude");
        let expected = [
            "SessionStart starting",
            "UserPromptSubmit working",
            "MessageDisplay working",
            "Stop waiting",
            "UserPromptSubmit working",
            "PreToolUse working",
            "PermissionRequest needs_input",
            "Notification needs_input",
            "PostToolUse working",
            "PostToolBatch working",
            "MessageDisplay working",
            "Stop waiting",
            "UserPromptSubmit working",
            "MessageDisplay working",
            "Stop waiting",
            // it is interrupted, which no hook tells, and the next prompt fails
            "UserPromptSubmit working",
            "UserPromptSubmit working",
            "StopFailure waiting",
            "SessionEnd waiting",
        ];
        assert_eq!(states, expected);
        assert_eq!(turns.last.unwrap().outcome, Ending::Failed);
    }

    #[test]
    fn a_recorded_session_of_codex_goes_through_its_states() {
        let (states, _) = states("codex");
        let expected = [
            "SessionStart starting",
            "UserPromptSubmit working",
            "Stop waiting",
            "UserPromptSubmit working",
            "PreToolUse working",
            "PermissionRequest needs_input",
            "PostToolUse working",
            "Stop waiting",
            "UserPromptSubmit working",
            "Stop waiting",
            "UserPromptSubmit working",
            "UserPromptSubmit working",
            "SessionEnd working",
        ];
        assert_eq!(states, expected);
    }
}
