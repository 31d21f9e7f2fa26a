//! What an agent asks, in its provider's words: for the supervisor, which tells the user. It goes over the supervisor's socket and
//! is never written anywhere; where no supervisor runs, nobody is told.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::client::{self, Client, Found};
use crate::record::RecordId;
use crate::store::Files;

/// The longest question, in bytes.
const LONGEST: usize = 1024;
/// How long a supervisor has to take it.
const PATIENCE: Duration = Duration::from_millis(300);

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question(String);

impl Question {
    /// The question of a payload: a message, what a tool asks, or what a tool is wanted for. A command itself is none.
    pub(super) fn of(payload: &Value) -> Option<Self> {
        let input = ["tool_input", "toolInput", "toolArgs"].iter().find_map(|name| payload.get(name));
        let asked = input.and_then(|input| input.get("questions")).and_then(Value::as_array);
        let asked: Vec<&str> =
            asked.into_iter().flatten().filter_map(|one| one.get("question")?.as_str()).collect();
        let words = ["question", "description", "justification", "message"];
        let told = words.iter().find_map(|name| input?.get(name)?.as_str());
        let message = payload.get("message").and_then(Value::as_str);
        let text = if asked.is_empty() { message.or(told)?.to_owned() } else { asked.join(" ") };
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text[..text.floor_char_boundary(LONGEST)].to_owned()))
    }

    /// Tells it to the supervisor of this store. It is not waited for longer than [`PATIENCE`].
    pub(super) fn tell(&self, files: &Files, record: RecordId) {
        let (files, text) = (files.clone(), self.0.clone());
        let (done, ended) = mpsc::channel::<()>();
        let telling = std::thread::Builder::new().spawn(move || {
            if let Ok(Found::Running(Some(said))) = client::find(&files) {
                // nobody else would be told of it
                let _ = Client::connect(&said).and_then(|mut client| client.question(record, &text));
            }
            drop(done);
        });
        if telling.is_ok() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(payload: &Value) -> Option<String> {
        Question::of(payload).map(|question| question.0)
    }

    #[test]
    fn the_question_is_the_providers_own_words_and_never_a_command() {
        for (payload, question) in [
            (json!({"message": "Claude needs your permission"}), Some("Claude needs your permission")),
            (
                json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf x", "description": "Tidy\nup"}}),
                Some("Tidy up"),
            ),
            (json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf x"}}), None),
            (
                json!({"tool_input": {"questions": [{"question": "Which?"}, {"question": "When?"}, {"x": 1}]}}),
                Some("Which? When?"),
            ),
            (json!({"tool_input": "rm", "message": " \n"}), None),
            (json!({"prompt": "a secret"}), None),
        ] {
            assert_eq!(of(&payload).as_deref(), question, "{payload}");
        }
        let long = of(&json!({"message": "é".repeat(LONGEST)})).unwrap();
        assert_eq!(long.len(), LONGEST);
    }
}
