//! What an agent is at: told by programs, asked by them, explained to a person.

use serde_json::{Value, json};

use super::{data, habits, refusal};
use crate::support::{Agent, Home, Ran};

/// The launch a session's agent is in, as it is told.
fn runtime(home: &Home, id: &str) -> String {
    let told = data(&home.ait(["explain", id, "--format", "json"]).ok(), "explain");
    told["runtime_id"].as_str().unwrap().to_owned()
}

/// An event of this session with these fields besides, or instead; null takes one out.
fn event(home: &Home, id: &str, change: &Value) -> Value {
    let shown = home.ait(["record", "show", id]).ok().text();
    let known = shown.lines().find_map(|line| line.strip_prefix("codeagent_session_id:")).unwrap();
    let mut event = json!({
        "schema_version": "agent-session.turn-event.v1",
        "event_id": "e1",
        "runtime_id": runtime(home, id),
        "provider": "claude",
        "kind": "progress",
        "confidence": "observed",
        "provider_session_id": known,
    });
    for (name, value) in change.as_object().unwrap() {
        match value {
            Value::Null => drop(event.as_object_mut().unwrap().remove(name)),
            value => event[name] = value.clone(),
        }
    }
    event
}

/// `ait activity event` with this on standard input.
fn tell(home: &Home, id: &str, text: &str) -> Ran {
    let mut command = home.ait_command(["activity", "event", id, "--stdin", "--format", "json"]);
    Ran::feed(&mut command, Some(text.as_bytes()))
}

#[test]
fn events_in_order_and_one_told_twice() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let dash = home.ait(["explain", &agent.id]).ok().text();
    assert!(dash.contains("state   -\n") && dash.contains("no signal was heard"), "{dash}");
    let steps = [
        (json!({"event_id": "e1", "kind": "turn_started"}), "working"),
        (
            json!({"event_id": "e2", "kind": "attention_requested", "attention_id": "secret-a", "attention_kind": "approval"}),
            "needs_input",
        ),
        (json!({"event_id": "e3", "kind": "progress"}), "needs_input"),
        (json!({"event_id": "e4", "kind": "turn_completed"}), "waiting"),
    ];
    let mut last = Value::Null;
    for (change, phase) in &steps {
        last = data(
            &tell(&home, &agent.id, &event(&home, &agent.id, change).to_string()).ok(),
            "activity-event",
        );
        assert_eq!(last["turn_state"]["phase"], *phase, "{last:#}");
        assert_eq!(last["duplicate"], false, "{last:#}");
        let attention = &last["turn_state"]["current_turn"]["attention"];
        assert_eq!(attention["pending_count"] == 1, *phase == "needs_input", "{last:#}");
    }
    let again = event(&home, &agent.id, &steps[3].0).to_string();
    let again = data(&tell(&home, &agent.id, &again).ok(), "activity-event");
    assert_eq!((&again["duplicate"], &again["turn_state"]), (&json!(true), &last["turn_state"]), "{again:#}");
    let status = home.ait(["activity", "status", &agent.id, "--format", "json"]).ok();
    assert_eq!(data(&status, "activity-status")["turn_state"], last["turn_state"], "{status}");
    let why = home.ait(["explain", &agent.id]).ok().text();
    assert!(why.contains("state   waiting\nsource  hook\n") && why.contains("counts"), "{why}");
    for entry in std::fs::read_dir(home.home().join(".local/state/ait/sessions").join(&agent.id)).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("secret-a"), "{}", path.display());
    }
}

#[test]
fn each_fault_of_an_event_has_its_code() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let refused = |text: &str, code: &str| {
        let ran = tell(&home, &agent.id, text).code(65);
        assert_eq!(refusal(&ran), code, "{ran}");
    };
    refused("{", "activity-event-invalid");
    refused(&" ".repeat(65_537), "activity-event-too-large");
    for (change, code) in [
        (json!({"prompt": "x"}), "activity-event-invalid"),
        (json!({"confidence": null}), "activity-event-invalid"),
        (json!({"schema_version": "v9", "event_id": ""}), "unsupported-turn-event-version"),
        (json!({"event_id": "", "provider": "pi"}), "activity-event-field-invalid"),
        (json!({"event_id": "x".repeat(257)}), "activity-event-field-invalid"),
        (json!({"provider_turn_id": "a\nb"}), "activity-event-field-invalid"),
        (json!({"provider": "pi", "kind": "attention_cleared"}), "activity-provider-unsupported"),
        (json!({"kind": "attention_requested", "attention_id": "a"}), "activity-attention-invalid"),
        (json!({"kind": "attention_cleared", "attention_kind": "odd"}), "activity-attention-invalid"),
        (json!({"attention_kind": "odd", "provider_time": "now"}), "activity-attention-kind-invalid"),
        (json!({"provider_time": "now"}), "activity-provider-time-invalid"),
        (
            json!({"provider_time": "2020-01-01T00:00:00Z", "provider": "codex"}),
            "activity-provider-time-skewed",
        ),
        (json!({"provider": "codex", "runtime_id": "old"}), "activity-provider-mismatch"),
        (json!({"runtime_id": "old", "provider_session_id": "other"}), "runtime-id-mismatch"),
        (json!({"provider_session_id": "other"}), "provider-session-id-mismatch"),
        (json!({"provider_session_id": null}), "provider-session-id-missing"),
    ] {
        refused(&event(&home, &agent.id, &change).to_string(), code);
    }
    let nobody = tell(&home, "nobody", &event(&home, &agent.id, &json!({})).to_string()).code(1);
    assert_eq!(refusal(&nobody), "session-not-found", "{nobody}");
    let folder = home.home().join(".local/state/ait/sessions").join(&agent.id);
    assert!(!folder.join("activity.json").exists(), "nothing was written");
    home.ait(["activity", "event", &agent.id]).code(64);
}

/// The folder of a record's own files.
fn folder(home: &Home, id: &str) -> std::path::PathBuf {
    home.home().join(".local/state/ait/sessions").join(id)
}

/// Tells an event that must be taken; the turn state after it.
#[track_caller]
fn told(home: &Home, id: &str, change: &Value) -> Value {
    data(&tell(home, id, &event(home, id, change).to_string()).ok(), "activity-event")["turn_state"].clone()
}

#[test]
fn each_request_is_cleared_by_its_own_name_however_many_there_are() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let wants = |event: &str, name: &str| json!({"event_id": event, "kind": "attention_requested", "attention_id": name, "attention_kind": "approval"});
    let clears = |event: &str, name: &str| json!({"event_id": event, "kind": "attention_cleared", "attention_id": name});
    told(&home, &agent.id, &wants("e1", "a"));
    told(&home, &agent.id, &wants("e2", "b"));
    assert_eq!(told(&home, &agent.id, &clears("e3", "a"))["phase"], "needs_input", "b is asked for still");
    assert_eq!(told(&home, &agent.id, &clears("e4", "b"))["phase"], "working");
    for number in 0..84 {
        told(&home, &agent.id, &wants(&format!("many{number}"), &format!("n{number}")));
    }
    let state =
        data(&home.ait(["activity", "status", &agent.id, "--format", "json"]).ok(), "activity-status");
    assert_eq!(state["turn_state"]["current_turn"]["attention"]["pending_count"], 84, "{state:#}");
}

#[test]
fn a_late_end_of_a_turn_that_was_interrupted_changes_nothing() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let mut last = Value::Null;
    for (number, kind, turn) in [
        (1, "turn_started", "A"),
        (2, "turn_started", "B"),
        (3, "turn_completed", "B"),
        (4, "turn_failed", "A"),
    ] {
        let change = json!({"event_id": format!("e{number}"), "kind": kind, "provider_turn_id": turn});
        let state = told(&home, &agent.id, &change);
        if number == 4 {
            assert_eq!(state["last_turn"], last, "it is still the other one");
        }
        last = state["last_turn"].clone();
        if number >= 3 {
            assert_eq!(
                (&state["phase"], &state["last_turn"]["outcome"]),
                (&json!("waiting"), &json!("completed")),
                "{state:#}"
            );
        } else {
            assert_eq!(state["phase"], "working", "{state:#}");
        }
    }
}

#[test]
fn an_event_whose_writing_failed_is_taken_once_when_it_is_told_again() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let journal = folder(&home, &agent.id).join("activity.journal.jsonl");
    std::fs::create_dir_all(&journal).unwrap();
    let text = event(&home, &agent.id, &json!({"kind": "turn_started"})).to_string();
    let failed = tell(&home, &agent.id, &text).code(1);
    assert_eq!(refusal(&failed), "activity-write-failed", "{failed}");
    std::fs::remove_dir(&journal).unwrap();
    let again = data(&tell(&home, &agent.id, &text).ok(), "activity-event");
    assert_eq!(
        (&again["duplicate"], &again["turn_state"]["phase"]),
        (&json!(true), &json!("working")),
        "{again:#}"
    );
    assert_eq!(data(&tell(&home, &agent.id, &text).ok(), "activity-event")["duplicate"], true);
    assert_eq!(std::fs::read_to_string(&journal).unwrap().lines().count(), 1);
}

#[test]
fn without_its_list_of_what_was_taken_nothing_is_told_of_a_launch() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    for number in 1..=3 {
        told(&home, &agent.id, &json!({"event_id": format!("e{number}"), "kind": "turn_started"}));
    }
    let list = folder(&home, &agent.id).join("activity.replay.bin");
    let whole = std::fs::read(&list).unwrap();
    for (bytes, code) in
        [(None, "activity-replay-missing"), (Some(&whole[..whole.len() / 2]), "activity-replay-size-invalid")]
    {
        match bytes {
            None => std::fs::remove_file(&list).unwrap(),
            Some(bytes) => std::fs::write(&list, bytes).unwrap(),
        }
        let status =
            data(&home.ait(["activity", "status", &agent.id, "--format", "json"]).ok(), "activity-status");
        assert_eq!(
            (&status["turn_state"]["phase"], &status["turn_state"]["revision"]),
            (&json!("unknown"), &json!(0)),
            "{status:#}"
        );
        let refused =
            tell(&home, &agent.id, &event(&home, &agent.id, &json!({"event_id": "e1"})).to_string()).code(65);
        assert_eq!(refusal(&refused), code, "{refused}");
    }
}
