//! How it is known who came back.

use serde_json::json;

use super::{Frozen, grace, manner, outcome, restore, running};
use crate::support::{Home, Tmux};

#[test]
fn another_conversation_is_not_taken_for_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let other = crate::support::fake::new_id();
    home.manners("claude", manner("other_id", json!(other)));
    let told = restore(&home, &frozen.id).code(1);
    assert_eq!(outcome(&told)["word"], "session_mismatch", "{told}");
    let detail = outcome(&told)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(&frozen.conversation) && detail.contains(&other), "both ids are said: {detail}");
    frozen.is_frozen(&home, "session_mismatch");
    frozen.stands(&tmux);
    assert_eq!(running(&home, &frozen.conversation), 0, "what came instead was ended");
    home.manners("claude", json!({}));
    restore(&home, &frozen.id).ok();
    frozen.back(&tmux);
}

#[test]
fn an_agent_that_ends_at_once_says_how_and_the_stand_in_returns() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.manners("claude", manner("exit", json!(7)));
    let told = restore(&home, &frozen.id).code(1);
    assert_eq!(outcome(&told)["word"], "agent_exited:7", "{told}");
    frozen.is_frozen(&home, "agent_exited:7");
    frozen.stands(&tmux);
    assert_eq!(frozen.record(&home)["restore_attempts"], 1, "one attempt, no loop");
}

#[test]
fn without_hook_and_registry_it_is_unverified_and_keeps_its_capture() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    grace(&home, 2);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.manners("claude", json!({ "no_registry": true, "no_hooks": true }));
    let told = restore(&home, &frozen.id).code(15);
    assert_eq!(outcome(&told)["word"], "unverified", "{told}");
    assert_eq!(frozen.record(&home)["ack"], "liveness");
    assert!(frozen.captured(&home), "unverified: the capture stays");
    frozen.back(&tmux).ready(&tmux);
}

#[test]
fn an_agent_at_a_dialog_is_blocked_and_keeps_its_capture() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    grace(&home, 2);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.manners("claude", json!({ "dialog": "trust", "no_registry": true }));
    let told = restore(&home, &frozen.id).code(15);
    assert_eq!(outcome(&told)["word"], "blocked:trust", "{told}");
    assert!(frozen.captured(&home));
    assert_eq!(frozen.record(&home)["state"], "live");
}

#[test]
fn the_hook_acknowledges_also_when_it_is_late_and_nothing_else_tells() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.manners("claude", json!({ "no_registry": true, "late_hook_ms": 1500 }));
    let told = restore(&home, &frozen.id).ok();
    assert_eq!(outcome(&told)["word"], "verified", "{told}");
    assert_eq!(frozen.record(&home)["ack"], "hook", "{:#}", frozen.record(&home));
    assert!(!frozen.captured(&home));
}

#[test]
fn a_nested_agent_is_not_taken_for_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    grace(&home, 3);
    home.hooked("claude");
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.manners("claude", json!({ "nested": true, "no_registry": true, "late_hook_ms": 1000 }));
    let told = restore(&home, &frozen.id).ok();
    assert_eq!(outcome(&told)["word"], "verified", "{told}");
    assert_eq!(frozen.record(&home)["codeagent_session_id"], frozen.conversation.as_str());
}
