//! What to answer: worked out from the conversation in a request and from the directives in its last prompt.
//!
//! | directive | the answer |
//! |---|---|
//! | `[[text=WORDS]]` | these words (default: `ok`) |
//! | `[[hold=NAME]]` | begins, and goes on when the story lets `NAME` go |
//! | `[[delay=SECONDS]]` | begins, and goes on after this long |
//! | `[[tool=COMMAND]]` | a call of the agent's shell tool; the answer after its result is the words |
//! | `[[escalate]]` | asks, with `tool`, to run outside the sandbox (Codex) |
//! | `[[background]]` | has `tool` go on behind the turn (Claude) |
//! | `[[error=STATUS]]` | this HTTP status |
//!
//! Only requests that offer tools obey more than `text`: what an agent asks beside the conversation (a title, a summary) is
//! answered at once.

use std::time::Duration;

use serde_json::{Value, json};

/// Names under which agents offer a shell.
const SHELLS: &[&str] = &[
    "Bash",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "run_shell_command",
    "terminal",
    "execute_command",
];

/// Who a turn of the conversation is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The user's prompt, or what the agent put in the user's place.
    User,
    /// The model.
    Model,
    /// The result of a tool.
    Tool,
    /// Instructions.
    System,
}

/// One turn as a request tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Whose.
    pub(crate) who: Who,
    /// All its text.
    pub(crate) text: String,
}

impl Turn {
    /// A turn.
    pub(crate) fn new(who: Who, text: impl Into<String>) -> Turn {
        Turn { who, text: text.into() }
    }
}

/// What the answer waits for before its content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wait {
    /// Nothing.
    No,
    /// The story lets this name go.
    Hold(String),
    /// A time.
    Delay(Duration),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) arguments: Value,
}

/// One answer, whatever the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The prompt it answers.
    pub(crate) prompt: String,
    /// Whether the request offers tools: the conversation itself.
    pub(crate) main: bool,
    /// What comes before the content.
    pub(crate) wait: Wait,
    /// The words.
    pub(crate) text: String,
    /// A tool call instead of the words.
    pub(crate) call: Option<Call>,
    /// A refusal instead of an answer.
    pub(crate) error: Option<u16>,
}

impl Plan {
    /// The answer to `turns` of an agent that offers `tools`.
    pub(crate) fn of(turns: &[Turn], tools: &[String]) -> Plan {
        let main = !tools.is_empty();
        let after_tool = turns.last().is_some_and(|turn| turn.who == Who::Tool);
        let prompt = prompt(turns, after_tool);
        let said = |name: &str| directives(&prompt).find(|(key, _)| *key == name).map(|(_, value)| value);
        let fresh = main && !after_tool;
        let wait = match (said("hold"), said("delay")) {
            (Some(name), _) if fresh => Wait::Hold(name.to_owned()),
            (None, Some(seconds)) if fresh => {
                Wait::Delay(Duration::from_secs_f64(seconds.parse().unwrap_or_default()))
            }
            _ => Wait::No,
        };
        let tool = SHELLS.iter().find(|name| tools.iter().any(|tool| tool == *name));
        let call = match (said("tool"), tool) {
            (Some(command), Some(tool)) if fresh => Some(Call {
                tool: (*tool).to_owned(),
                arguments: arguments(tool, command, said("escalate").is_some(), said("background").is_some()),
            }),
            _ => None,
        };
        let error = said("error").filter(|_| main).and_then(|status| status.parse().ok());
        let text = said("text").unwrap_or("ok").to_owned();
        Plan { main, wait, text, call, error, prompt }
    }
}

/// The last prompt with a directive since the last answer (an agent appends reminders as the user), else the last prompt.
fn prompt(turns: &[Turn], after_tool: bool) -> String {
    let mut last: Option<&str> = None;
    for turn in turns.iter().rev() {
        match turn.who {
            Who::User if directives(&turn.text).next().is_some() => return turn.text.clone(),
            Who::User => last = last.or(Some(&turn.text)),
            Who::Model if !after_tool => break,
            Who::Model | Who::Tool | Who::System => {}
        }
    }
    last.unwrap_or_default().to_owned()
}

/// The directives of a text in order, as name and value.
fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("[[").skip(1).filter_map(|rest| {
        let (inner, _) = rest.split_once("]]")?;
        let (name, value) = inner.split_once('=').unwrap_or((inner, ""));
        name.chars().all(|c| c.is_ascii_lowercase()).then_some((name, value))
    })
}

fn arguments(tool: &str, command: &str, escalate: bool, background: bool) -> Value {
    let mut arguments = match tool {
        "exec_command" => json!({"cmd": command}),
        "shell" => json!({"command": ["bash", "-lc", command]}),
        "Bash" | "bash" | "run_shell_command" => {
            json!({"command": command, "description": "a call of the mock"})
        }
        _ => json!({"command": command}),
    };
    if background {
        arguments["run_in_background"] = json!(true);
    }
    if escalate {
        arguments["sandbox_permissions"] = json!("require_escalated");
        arguments["justification"] = json!("the mock asks to run outside the sandbox");
    }
    arguments
}

/// All text in a message's content: a string, a part, or a list of parts.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(part) => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[test]
fn the_prompt_is_the_last_with_a_directive_since_the_last_answer() {
    let turns = [
        Turn::new(Who::User, "first [[text=one]]"),
        Turn::new(Who::Model, "one"),
        Turn::new(Who::User, "second [[text=two]][[hold=gate]]"),
        Turn::new(Who::User, "a reminder"),
    ];
    let plan = Plan::of(&turns, &["Bash".to_owned()]);
    assert_eq!((plan.text.as_str(), plan.wait), ("two", Wait::Hold("gate".to_owned())));
    let beside = Plan::of(&turns, &[]);
    assert_eq!((beside.text.as_str(), beside.wait, beside.main), ("two", Wait::No, false));
    let plain = Plan::of(&[turns[0].clone(), turns[1].clone(), Turn::new(Who::User, "third")], &[]);
    assert_eq!((plain.prompt.as_str(), plain.text.as_str()), ("third", "ok"));
}

#[test]
fn a_tool_is_called_once() {
    let tools = ["exec_command".to_owned()];
    let mut turns = vec![Turn::new(Who::User, "do [[tool=touch x]][[escalate]][[text=done]]")];
    let call = Plan::of(&turns, &tools).call.unwrap();
    assert_eq!(call.arguments["cmd"], "touch x");
    assert_eq!(call.arguments["sandbox_permissions"], "require_escalated");
    turns.extend([Turn::new(Who::Model, ""), Turn::new(Who::Tool, "")]);
    let after = Plan::of(&turns, &tools);
    assert_eq!((after.call, after.text.as_str()), (None, "done"));
}
