//! The turn state of a session in the words of its contract (`agent-session.turn-state.v1`).

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::turn::{Ending, Moment, Source, View};

/// The object of a view, for an agent of this provider.
pub(super) fn told(view: &View, provider: &str, otherwise: &str) -> Value {
    let mut told = Map::new();
    told.insert("schema_version".to_owned(), "agent-session.turn-state.v1".into());
    told.insert("phase".to_owned(), view.state.word().into());
    told.insert("phase_changed_at".to_owned(), view.since.map_or_else(|| otherwise.to_owned(), at).into());
    told.insert("revision".to_owned(), view.revision.into());
    let mut source = json!({"kind": kind(view.source), "confidence": view.confidence});
    if view.source != Some(Source::Runtime) && !provider.is_empty() {
        source["provider"] = provider.into();
    }
    if view.confidence.is_none() {
        source["confidence"] = "inferred".into();
    }
    told.insert("source".to_owned(), source);
    if let Some(current) = &view.current {
        let mut turn = json!({"started_at": at(current.started_at)});
        if let Some(id) = &current.id {
            turn["provider_turn_id"] = id.as_str().into();
        }
        if let Some(attention) = &view.attention {
            turn["attention"] = json!({
                "kind": attention.kind,
                "requested_at": at(attention.requested_at),
                "pending_count": view.pending,
            });
        }
        told.insert("current_turn".to_owned(), turn);
    }
    if let Some(last) = &view.last {
        let mut turn = json!({"completed_at": at(last.completed_at), "outcome": ending(last.outcome)});
        if let Some(id) = &last.id {
            turn["provider_turn_id"] = id.as_str().into();
        }
        if let Some(started) = last.started_at {
            turn["started_at"] = at(started).into();
        }
        told.insert("last_turn".to_owned(), turn);
    }
    Value::Object(told)
}

fn kind(source: Option<Source>) -> &'static str {
    match source {
        Some(Source::Hook) => "provider_hook",
        Some(
            Source::Osc7501
            | Source::Osc94
            | Source::Osc133
            | Source::Registry
            | Source::Rollout
            | Source::Title,
        ) => "console_observation",
        Some(Source::Screen | Source::Timing) => "terminal_heuristic",
        Some(Source::Runtime) | None => "runtime",
    }
}

fn ending(ending: Ending) -> Value {
    serde_json::to_value(ending).unwrap_or(Value::Null)
}

/// A moment as JSON has it.
fn at(moment: Moment) -> String {
    Timestamp::from_millisecond(moment.millis()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_is_unknown() {
        let told = told(&View::unknown(), "claude", "2026-07-11T08:15:00Z");
        assert_eq!(told["phase"], "unknown");
        assert_eq!(told["revision"], 0);
        assert_eq!(told["phase_changed_at"], "2026-07-11T08:15:00Z");
        assert!(told.get("current_turn").is_none());
    }
}
