//! OpenAI Responses, as Codex speaks it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::plan::{Plan, Turn, Who, text_of};
use super::{Answer, event, fresh, list, tool_names};

/// The conversation of a request, and the tools it offers.
pub(super) fn read(request: &Value) -> (Vec<Turn>, Vec<String>) {
    let tools = tool_names(&request["tools"], |tool| {
        tool["name"].as_str().or(tool["type"].as_str()).map(str::to_owned)
    });
    if let Some(prompt) = request["input"].as_str() {
        return (vec![Turn::new(Who::User, prompt)], tools);
    }
    let turns = list(&request["input"]).filter_map(|item| {
        let kind = item["type"].as_str().unwrap_or("message");
        let who = match (kind, item["role"].as_str()) {
            ("message", Some("assistant")) => Who::Model,
            ("message", Some("user")) => Who::User,
            ("message", _) => Who::System,
            _ if kind.ends_with("_output") => Who::Tool,
            _ if kind.ends_with("_call") => Who::Model,
            _ => return None,
        };
        Some(Turn::new(who, text_of(&item["content"])))
    });
    (turns.collect(), tools)
}

/// The answer as this protocol writes it.
pub(super) fn answer(request: &Value, plan: &Plan, streamed: bool) -> Answer {
    // what is asked beside the conversation wants JSON of a given shape
    let format = &request["text"]["format"];
    let text = match format["type"] == "json_schema" {
        true => {
            let wanted = format["schema"]["properties"].as_object().into_iter().flatten();
            Value::Object(wanted.map(|(name, _)| (name.clone(), json!("A title"))).collect()).to_string()
        }
        false => plan.text.clone(),
    };
    let item = match &plan.call {
        Some(call) => json!({
            "type": "function_call", "id": fresh("fc"), "call_id": fresh("call"), "name": call.tool,
            "arguments": call.arguments.to_string(), "status": "completed",
        }),
        None => json!({
            "type": "message", "id": fresh("msg"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
    };
    let response = json!({
        "id": fresh("resp"), "object": "response", "created_at": 1, "model": request["model"], "status": "completed",
        "output": [item], "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 105,
        },
    });
    if !streamed {
        return Answer::Whole(StatusCode::OK, response);
    }
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut number = 0;
    let mut say = |name: &str, mut data: Value| {
        number += 1;
        data["sequence_number"] = json!(number);
        event(name, data)
    };
    let before = vec![
        say("response.created", json!({"response": begun})),
        say("response.in_progress", json!({"response": begun})),
    ];
    let id = &item["id"];
    let mut open = item.clone();
    open["status"] = json!("in_progress");
    let mut after = Vec::new();
    if plan.call.is_some() {
        let arguments = &item["arguments"];
        open["arguments"] = json!("");
        let at = json!({"item_id": id, "output_index": 0});
        let with = |name: &str, value: &Value| {
            let mut data = at.clone();
            data[name] = value.clone();
            data
        };
        after.push(say("response.output_item.added", json!({"output_index": 0, "item": open})));
        after.push(say("response.function_call_arguments.delta", with("delta", arguments)));
        after.push(say("response.function_call_arguments.done", with("arguments", arguments)));
    } else {
        open["content"] = json!([]);
        let at = |data: Value| {
            let mut data = data;
            data["item_id"] = id.clone();
            data["output_index"] = json!(0);
            data["content_index"] = json!(0);
            data
        };
        let empty = json!({"type": "output_text", "text": "", "annotations": []});
        after.push(say("response.output_item.added", json!({"output_index": 0, "item": open})));
        after.push(say("response.content_part.added", at(json!({"part": empty}))));
        after.push(say("response.output_text.delta", at(json!({"delta": text}))));
        after.push(say("response.output_text.done", at(json!({"text": text}))));
        after.push(say("response.content_part.done", at(json!({"part": item["content"][0]}))));
    }
    after.push(say("response.output_item.done", json!({"output_index": 0, "item": item})));
    after.push(say("response.completed", json!({"response": response})));
    Answer::Stream(before, after)
}
