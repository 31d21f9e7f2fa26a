//! Anthropic Messages, as Claude Code speaks it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::plan::{Plan, Turn, Who, text_of};
use super::{Answer, event, fresh, list, tool_names};

/// The conversation of a request, and the tools it offers.
pub(super) fn read(request: &Value) -> (Vec<Turn>, Vec<String>) {
    let turns = list(&request["messages"]).map(|message| {
        let content = &message["content"];
        let who = match message["role"].as_str() {
            Some("assistant") => Who::Model,
            Some("user") if is_result(content) => Who::Tool,
            Some("user") => Who::User,
            _ => Who::System,
        };
        Turn::new(who, text_of(content))
    });
    (turns.collect(), tool_names(&request["tools"], |tool| tool["name"].as_str().map(str::to_owned)))
}

/// Whether a message of the user is a tool's result: it holds one, and no words but the agent's reminders.
fn is_result(content: &Value) -> bool {
    let mut words = text_of(content);
    while let Some(start) = words.find("<system-reminder>") {
        let end = words[start..].find("</system-reminder>").map_or(words.len(), |at| start + at + 18);
        words.replace_range(start..end, "");
    }
    list(content).any(|part| part["type"] == "tool_result") && words.trim().is_empty()
}

/// The answer as this protocol writes it.
pub(super) fn answer(request: &Value, plan: &Plan, streamed: bool) -> Answer {
    // what is asked beside the conversation wants a title as JSON
    let formatted =
        ["output_config", "output_format"].iter().any(|key| request[*key].to_string().contains("json"));
    let text = match formatted && !plan.main {
        true => json!({"title": "A title", "isNewTopic": true}).to_string(),
        false => plan.text.clone(),
    };
    let block = match &plan.call {
        Some(call) => {
            json!({"type": "tool_use", "id": fresh("toolu"), "name": call.tool, "input": call.arguments})
        }
        None => json!({"type": "text", "text": text}),
    };
    let stop = if plan.call.is_some() { "tool_use" } else { "end_turn" };
    let mut message = json!({
        "id": fresh("msg"), "type": "message", "role": "assistant", "model": request["model"],
        "content": [block], "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    });
    if !streamed {
        return Answer::Whole(StatusCode::OK, message);
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let (empty, delta) = match &plan.call {
        Some(call) => {
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, json!({"type": "input_json_delta", "partial_json": call.arguments.to_string()}))
        }
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
    };
    let before = vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    let after = vec![
        event("content_block_start", json!({"index": 0, "content_block": empty})),
        event("content_block_delta", json!({"index": 0, "delta": delta})),
        event("content_block_stop", json!({"index": 0})),
        event(
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        ),
        event("message_stop", json!({})),
    ];
    Answer::Stream(before, after)
}
