//! The Gemini API, as Gemini CLI speaks it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::plan::{Plan, Turn, Who, text_of};
use super::{Answer, data, list};

/// The conversation of a request, and the tools it offers.
pub(super) fn read(request: &Value) -> (Vec<Turn>, Vec<String>) {
    let turns = list(&request["contents"]).map(|content| {
        let who = match content["role"].as_str() {
            Some("model") => Who::Model,
            _ if list(&content["parts"]).any(|part| !part["functionResponse"].is_null()) => Who::Tool,
            _ => Who::User,
        };
        Turn::new(who, text_of(&content["parts"]))
    });
    let declared = list(&request["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]));
    let tools = declared.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    (turns.collect(), tools)
}

/// The answer as this protocol writes it.
pub(super) fn answer(request: &Value, plan: &Plan, streamed: bool) -> Answer {
    let config = &request["generationConfig"];
    let schema = ["responseJsonSchema", "responseSchema"]
        .iter()
        .map(|key| &config[*key])
        .find(|schema| schema.is_object());
    let text = match schema {
        Some(schema) => shaped(schema).to_string(),
        None => plan.text.clone(),
    };
    let part = match &plan.call {
        Some(call) => json!({"functionCall": {"name": call.tool, "args": call.arguments}}),
        None => json!({"text": text}),
    };
    let body = json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105},
        "modelVersion": "mock", "responseId": "mock",
    });
    if streamed {
        return Answer::Stream(Vec::new(), vec![data(&body)]);
    }
    Answer::Whole(StatusCode::OK, body)
}

/// Something of the shape a side question wants.
fn shaped(schema: &Value) -> Value {
    let wanted = schema["properties"].as_object().into_iter().flatten();
    let value = |of: &Value| match (
        of["enum"].get(0),
        of["type"].as_str().unwrap_or_default().to_lowercase().as_str(),
    ) {
        (Some(first), _) => first.clone(),
        (None, "number" | "integer") => json!(1),
        (None, "boolean") => json!(false),
        (None, "array") => json!([]),
        (None, _) => json!("mock"),
    };
    Value::Object(wanted.map(|(name, of)| (name.clone(), value(of))).collect())
}
