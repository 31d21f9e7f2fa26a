//! OpenAI Chat Completions, as OpenCode, pi and Hermes speak it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::plan::{Plan, Turn, Who, text_of};
use super::{Answer, data, fresh, list, tool_names};

/// The conversation of a request, and the tools it offers.
pub(super) fn read(request: &Value) -> (Vec<Turn>, Vec<String>) {
    let turns = list(&request["messages"]).map(|message| {
        let who = match message["role"].as_str() {
            Some("assistant") => Who::Model,
            Some("user") => Who::User,
            Some("tool") => Who::Tool,
            _ => Who::System,
        };
        Turn::new(who, text_of(&message["content"]))
    });
    let tools = tool_names(&request["tools"], |tool| tool["function"]["name"].as_str().map(str::to_owned));
    (turns.collect(), tools)
}

/// The answer as this protocol writes it.
pub(super) fn answer(request: &Value, plan: &Plan, streamed: bool) -> Answer {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105});
    let call = plan.call.as_ref().map(|call| {
        let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
        json!({"index": 0, "id": fresh("call"), "type": "function", "function": function})
    });
    let finish = if call.is_some() { "tool_calls" } else { "stop" };
    let base = json!({"id": fresh("chatcmpl"), "created": 1, "model": request["model"]});
    let with = |object: &str, choices: Value| {
        let mut body = base.clone();
        body["object"] = json!(object);
        body["choices"] = choices;
        body
    };
    if !streamed {
        let mut message = json!({"role": "assistant", "content": plan.text});
        if let Some(call) = call {
            message["tool_calls"] = json!([call]);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        let mut body = with("chat.completion", json!([choice]));
        body["usage"] = usage;
        return Answer::Whole(StatusCode::OK, body);
    }
    let chunk = |delta: Value, finish: Option<&str>| {
        data(&with("chat.completion.chunk", json!([{"index": 0, "delta": delta, "finish_reason": finish}])))
    };
    let content = match call {
        Some(call) => json!({"tool_calls": [call]}),
        None => json!({"content": plan.text}),
    };
    let mut last = with("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    Answer::Stream(
        vec![chunk(json!({"role": "assistant", "content": ""}), None)],
        vec![
            chunk(content, None),
            chunk(json!({}), Some(finish)),
            data(&last),
            "data: [DONE]\n\n".to_owned(),
        ],
    )
}
