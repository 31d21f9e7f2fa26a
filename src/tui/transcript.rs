//! A provider's conversation file as text to read: who said what, the tools by name. Knows no provider: it takes the parts
//! that read as text wherever the files of them keep them, and leaves out what has none.
//!
//! Written for lines of JSON (Claude, Codex, Qwen, pi) and for one JSON document with messages (Gemini). What is no JSON is
//! shown as it is.

use serde_json::Value;

/// The most of one part that is shown, in characters.
const PART_LIMIT: usize = 20_000;
/// How deep messages may lie in one another.
const DEPTH: usize = 6;

/// The text of a conversation's file, or of its end (`cut`), whose first line may then be half a line.
pub(super) fn text(bytes: &[u8], cut: bool) -> String {
    let whole = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    if !cut && let Ok(document @ Value::Object(_)) = serde_json::from_str::<Value>(&whole) {
        take(&document, &mut out);
        return out;
    }
    let mut lines = whole.lines();
    if cut {
        out.push_str("… the beginning is not shown\n\n");
        lines.next();
    }
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => take(&value, &mut out),
            // a last line that is still being written, or no JSON at all
            Err(_) if line.starts_with('{') => {}
            Err(_) => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// One entry: a message, something that wraps one, or a document of many.
fn take(value: &Value, out: &mut String) {
    if let Some(messages) = value.get("messages").and_then(Value::as_array) {
        messages.iter().for_each(|message| take(message, out));
        return;
    }
    let inner = ["message", "payload", "item"].into_iter().find_map(|name| value.get(name));
    let message = inner.filter(|inner| inner.is_object()).unwrap_or(value);
    let word =
        |name: &str| [message, value].into_iter().find_map(|from| from.get(name).and_then(Value::as_str));
    let mut said = Vec::new();
    if is_tool(message) {
        parts(message, DEPTH, &mut said);
    }
    for name in ["content", "text", "parts", "output", "summary"] {
        if let Some(content) = message.get(name) {
            parts(content, DEPTH, &mut said);
            break;
        }
    }
    said.retain(|part| !part.trim().is_empty());
    if said.is_empty() {
        return;
    }
    let who = word("role").or_else(|| word("type")).unwrap_or("");
    out.push_str("── ");
    out.push_str(who);
    if let Some(at) = word("timestamp") {
        out.push_str(" · ");
        out.push_str(at);
    }
    out.push('\n');
    for part in said {
        out.push_str(&shortened(&part));
        out.push('\n');
    }
    out.push('\n');
}

fn is_tool(part: &Value) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "tool_use" | "toolCall" | "function_call" | "custom_tool_call" | "functionCall")
}

/// The parts of a message's content that read as text.
fn parts(content: &Value, depth: usize, said: &mut Vec<String>) {
    match content {
        Value::String(text) => said.push(text.clone()),
        Value::Array(list) if depth > 0 => list.iter().for_each(|part| parts(part, depth - 1, said)),
        Value::Object(part) if depth > 0 => {
            let word = |name: &str| part.get(name).and_then(Value::as_str);
            if is_tool(content) {
                let input = ["input", "arguments", "args"].into_iter().find_map(|name| part.get(name));
                let input = match input {
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                said.push(format!("[{}] {input}", word("name").unwrap_or("tool")));
            } else if let Some(text) = word("text").or_else(|| word("thinking")) {
                said.push(text.to_owned());
            } else if let Some(inner) = part.get("content").or_else(|| part.get("output")) {
                parts(inner, depth - 1, said);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
    }
}

fn shortened(part: &str) -> String {
    match part.char_indices().nth(PART_LIMIT) {
        Some((end, _)) => format!("{}…", &part[..end]),
        None => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_lines() {
        let lines = concat!(
            r#"{"type":"summary","leafUuid":"x"}"#,
            "\n",
            r#"{"type":"user","timestamp":"2026-09-04T09:12:03Z","message":{"role":"user","content":"fix it"}}"#,
            "\n",
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"on it"},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}"#,
            "\n",
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a.rs"}]}]}}"#,
            "\n",
            r#"{"type":"user","message":{"ro"#,
        );
        assert_eq!(
            text(lines.as_bytes(), false),
            "── user · 2026-09-04T09:12:03Z\nfix it\n\n── assistant\non it\n[Bash] {\"command\":\"ls\"}\n\n── user\na.rs\n\n"
        );
    }

    #[test]
    fn codex_lines() {
        let lines = concat!(
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x","cwd":"/p"}}"#,
            "\n",
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#,
            "\n",
            r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"c\":1}"}}"#,
            "\n",
        );
        assert_eq!(
            text(lines.as_bytes(), false),
            "── user · t\nhi\n\n── function_call · t\n[shell] {\"c\":1}\n\n"
        );
    }

    #[test]
    fn a_document_of_messages() {
        let document = r#"{"sessionId":"x","messages":[
            {"type":"user","content":"hi"},{"type":"gemini","content":[{"text":"hello"}]}]}"#;
        assert_eq!(text(document.as_bytes(), false), "── user\nhi\n\n── gemini\nhello\n\n");
    }

    #[test]
    fn the_end_of_a_file_and_what_is_no_json() {
        assert_eq!(text(b"alf a line\nplain\n", true), "… the beginning is not shown\n\nplain\n");
        assert_eq!(text(b"", false), "");
        assert_eq!(text(b"\xff\n[1,2]\n7\n", false), "\u{fffd}\n");
        let long = format!("{{\"role\":\"user\",\"content\":\"{}\"}}", "x".repeat(PART_LIMIT * 2));
        assert!(text(long.as_bytes(), false).chars().count() < PART_LIMIT + 20);
        let deep = format!("{{\"role\":\"u\",\"content\":{}1{}}}", "[".repeat(100), "]".repeat(100));
        assert_eq!(text(deep.as_bytes(), false), "");
    }
}
