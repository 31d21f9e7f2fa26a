//! The events as the real programs sent them (`fixtures/providers/*-hooks.jsonl`), and the traps among them.

use serde_json::{Value, json};

use super::*;
use crate::provider::Catalog;

fn meant(kind: &str, event: &str, payload: Value) -> Meaning {
    Catalog::default().hook_meaning(kind, event, &payload)
}

fn turns(kind: &str) -> Vec<(String, Option<Turn>)> {
    let path = format!("{}/fixtures/providers/{kind}-hooks.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(path).unwrap();
    let events = recorded.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .map(|line| {
            let event = line["event"].as_str().unwrap().to_owned();
            let meaning = meant(kind, &event, line["payload"].clone());
            (event, meaning.turn)
        })
        .collect()
}

#[test]
fn a_recorded_session_of_claude() {
    use Turn::{Ended, NeedsInput, Starting, Waiting, Working};
    let expected = [
        ("SessionStart", Some(Starting)),
        ("UserPromptSubmit", Some(Working)),
        ("MessageDisplay", None),
        ("Stop", Some(Waiting)),
        ("UserPromptSubmit", Some(Working)),
        ("PreToolUse", Some(Working)),
        ("PermissionRequest", Some(NeedsInput)),
        ("Notification", Some(NeedsInput)),
        // the answer takes the question away
        ("PostToolUse", Some(Working)),
        ("PostToolBatch", Some(Working)),
        ("MessageDisplay", None),
        ("Stop", Some(Waiting)),
        ("UserPromptSubmit", Some(Working)),
        ("MessageDisplay", None),
        ("Stop", Some(Waiting)),
        // an interrupt fires nothing
        ("UserPromptSubmit", Some(Working)),
        ("UserPromptSubmit", Some(Working)),
        ("StopFailure", Some(Waiting)),
        ("SessionEnd", Some(Ended)),
    ];
    let seen = turns("claude");
    let seen: Vec<_> = seen.iter().map(|(event, turn)| (event.as_str(), *turn)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_recorded_session_of_codex() {
    use Turn::{Ended, NeedsInput, Starting, Waiting, Working};
    let expected = [
        Starting, Working, Waiting, Working, Working, NeedsInput, Working, Waiting, Working, Waiting,
        Working, Working, Ended,
    ];
    let seen: Vec<_> = turns("codex").into_iter().map(|(_, turn)| turn.unwrap()).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_start_binds_the_conversation() {
    for (source, binds, turn) in [
        ("startup", Source::Startup, Some(Turn::Starting)),
        ("resume", Source::Resume, Some(Turn::Starting)),
        ("clear", Source::Clear, Some(Turn::Waiting)),
        ("compact", Source::Compact, None),
        ("fork", Source::Fork, Some(Turn::Waiting)),
        ("tomorrow", Source::Unsaid, Some(Turn::Starting)),
    ] {
        for kind in ["claude", "codex", "gemini", "qwen"] {
            let said = meant(kind, "SessionStart", json!({"session_id": "a", "source": source}));
            assert_eq!((said.binds, said.turn), (Some(binds), turn), "{kind} {source}");
            assert_eq!(said.session_id.as_deref(), Some("a"));
        }
    }
    for (kind, event, payload) in [
        ("copilot", "sessionStart", json!({"sessionId": "a", "source": "new"})),
        ("copilot", "SessionStart", json!({"session_id": "a"})),
        ("hermes", "on_session_start", json!({"session_id": "a"})),
        ("opencode", "session.created", json!({"info": {"id": "a"}})),
        ("pi", "session_start", json!({"sessionId": "a"})),
        ("grok", "SessionStart", json!({"sessionId": "a", "source": "startup"})),
        ("cursor", "sessionStart", json!({"conversation_id": "a"})),
        ("kiro", "agentSpawn", json!({"session_id": "a"})),
        ("antigravity", "PreInvocation", json!({"conversationId": "a"})),
    ] {
        let said = meant(kind, event, payload);
        assert!(said.binds.is_some() && said.session_id.as_deref() == Some("a"), "{kind}: {said:?}");
    }
}

#[test]
fn noise_is_noise() {
    for (kind, event, payload) in [
        // a sub-agent's end is not its parent's
        ("claude", "Stop", json!({"session_id": "a", "agent_id": "sub"})),
        ("claude", "SessionStart", json!({"session_id": "a", "agent_id": "sub", "source": "startup"})),
        ("claude", "SubagentStop", json!({"session_id": "a"})),
        ("claude", "SubagentStart", json!({"session_id": "a"})),
        ("claude", "SessionEnd", json!({"session_id": "a", "reason": "clear"})),
        ("claude", "SessionEnd", json!({"session_id": "a", "reason": "resume"})),
        ("claude", "Notification", json!({"session_id": "a", "notification_type": "auth_success"})),
        ("claude", "PostCompact", json!({"session_id": "a"})),
        ("claude", "Tomorrow", json!({"session_id": "a"})),
        // another program that reads the same settings
        ("claude", "Stop", json!({"hookEventName": "Stop", "sessionId": "a"})),
        ("claude", "Stop", json!({})),
        ("claude", "Stop", Value::Null),
        ("claude", "Stop", json!([1])),
        ("claude", "Stop", json!({"session_id": 5})),
        (
            "codex",
            "UserPromptSubmit",
            json!({"session_id": "t", "prompt": "Generate a concise, single-line task title for"}),
        ),
        (
            "codex",
            "notify",
            json!({"type": "agent-turn-complete", "thread-id": "t",
            "input-messages": ["Generate a concise, single-line task title for: x"]}),
        ),
        ("codex", "Stop", json!({"session_id": "a", "agent_id": "sub"})),
        ("gemini", "BeforeModel", json!({"session_id": "a"})),
        ("gemini", "AfterModel", json!({"session_id": "a"})),
        ("gemini", "PreCompress", json!({"session_id": "a"})),
        ("hermes", "subagent_stop", json!({"session_id": "a"})),
        ("hermes", "post_api_request", json!({"session_id": "a"})),
        ("copilot", "permissionRequest", json!({"sessionId": "a"})),
        ("copilot", "subagentStop", json!({"sessionId": "a"})),
        ("opencode", "session.created", json!({"info": {"id": "b", "parentID": "a"}})),
        ("opencode", "message.updated", json!({"sessionID": "a"})),
        ("crush", "PreToolUse", json!({"session_id": "a"})),
        ("aider", "Stop", json!({"session_id": "a"})),
        ("vim", "Stop", json!({"session_id": "a"})),
    ] {
        assert!(meant(kind, event, payload.clone()).is_noise(), "{kind} {event} {payload}");
    }
}

#[test]
fn a_turn_that_ends_says_what_goes_on_behind_it() {
    let with = json!({"session_id": "a", "background_tasks": [{"id": "1"}]});
    let said = meant("claude", "Stop", with);
    assert_eq!((said.turn, said.background), (Some(Turn::Waiting), true));
    let without = meant("claude", "Stop", json!({"session_id": "a", "background_tasks": []}));
    assert_eq!((without.turn, without.background), (Some(Turn::Waiting), false));
    // one typed meanwhile is told by the prompt the end belongs to
    let first = meant("claude", "Stop", json!({"session_id": "a", "prompt_id": "1"}));
    assert_eq!(first.prompt_id.as_deref(), Some("1"));
}

#[test]
fn questions_and_their_answers() {
    for (kind, event, payload, turn) in [
        (
            "claude",
            "PreToolUse",
            json!({"session_id": "a", "tool_name": "AskUserQuestion"}),
            Turn::NeedsInput,
        ),
        (
            "claude",
            "Notification",
            json!({"session_id": "a", "notification_type": "idle_prompt"}),
            Turn::Waiting,
        ),
        ("claude", "PermissionDenied", json!({"session_id": "a"}), Turn::Working),
        ("codex", "Interrupt", json!({"session_id": "a"}), Turn::Waiting),
        (
            "gemini",
            "Notification",
            json!({"session_id": "a", "notification_type": "ToolPermission"}),
            Turn::NeedsInput,
        ),
        ("gemini", "AfterTool", json!({"session_id": "a"}), Turn::Working),
        ("gemini", "AfterAgent", json!({"session_id": "a"}), Turn::Waiting),
        ("hermes", "pre_approval_request", json!({"session_id": ""}), Turn::NeedsInput),
        ("hermes", "post_approval_response", json!({"session_id": ""}), Turn::Working),
        // the end of a turn, whatever its name says
        ("hermes", "on_session_end", json!({"session_id": "a", "interrupted": true}), Turn::Waiting),
        ("hermes", "on_session_finalize", json!({"session_id": "a"}), Turn::Ended),
        (
            "copilot",
            "notification",
            json!({"sessionId": "a", "notificationType": "permission_prompt"}),
            Turn::NeedsInput,
        ),
        ("copilot", "agentStop", json!({"sessionId": "a"}), Turn::Waiting),
        ("opencode", "session.status", json!({"sessionID": "a", "status": {"type": "busy"}}), Turn::Working),
        ("opencode", "session.status", json!({"sessionID": "a", "status": {"type": "idle"}}), Turn::Waiting),
        ("opencode", "permission.asked", json!({"sessionID": "a"}), Turn::NeedsInput),
        ("pi", "agent_end", json!({"sessionId": "a"}), Turn::Waiting),
        ("grok", "StopCancelled", json!({"sessionId": "a"}), Turn::Waiting),
        ("qwen", "UserPromptSubmit", json!({"session_id": "a"}), Turn::Working),
    ] {
        assert_eq!(meant(kind, event, payload).turn, Some(turn), "{kind} {event}");
    }
}

#[test]
fn the_events_asked_for_all_mean_something() {
    let catalog = Catalog::default();
    let full = json!({
        "session_id": "a", "sessionId": "a", "sessionID": "a", "conversation_id": "a", "conversationId": "a",
        "info": {"id": "a"}, "status": {"type": "busy"}, "notificationType": "permission_prompt",
        "source": "startup",
    });
    for kind in catalog.kinds() {
        for event in catalog.hook_events(kind) {
            let mut payload = full.clone();
            let asks = if kind == "gemini" { "ToolPermission" } else { "permission_prompt" };
            payload["notification_type"] = asks.into();
            assert!(!catalog.hook_meaning(kind, event, &payload).is_noise(), "{kind} {event}");
        }
    }
}

#[test]
fn pi_never_needs_input_and_waits_once_its_turn_is_over() {
    let catalog = Catalog::default();
    for event in catalog.hook_events("pi").iter().copied().chain(["tool_call", "input", "turn_end"]) {
        for payload in [json!({}), json!({"sessionId": "a", "notification_type": "permission_prompt"})] {
            assert_ne!(meant("pi", event, payload).turn, Some(Turn::NeedsInput), "{event}");
        }
    }
    assert_eq!(meant("pi", "agent_end", json!({"sessionId": "a"})).turn, Some(Turn::Waiting));
}
