//! Agents that do not hear the end of their terminal.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::Fleet;

#[test]
fn an_agent_that_outlived_its_server_is_ended_before_it_comes_back() {
    let fleet = Fleet::with(&["alpha"], |home| home.manners("claude", json!({ "deaf": ["HUP"] })));
    // those that come back hear it, or they would outlive the story
    fleet.home.manners("claude", json!({}));
    let before: Vec<_> = fleet.agents.iter().map(|member| member.agent.process()).collect();
    let old = fleet.crash();
    fleet.all_back(old);
    assert!(!before.iter().any(|process| process.alive()), "those of before are gone");
}

#[test]
fn an_agent_that_outlived_its_server_and_whose_conversation_is_not_on_disk_is_left_alone() {
    let fleet = Fleet::with(&["alpha"], |home| home.manners("claude", json!({ "deaf": ["HUP"] })));
    fleet.home.manners("claude", json!({}));
    let spared = &fleet.agents[0];
    let process = spared.agent.process();
    let file = spared.agent.file().unwrap();
    let aside = fleet.home.root().join("aside");
    fs::rename(&file, &aside).unwrap();
    let old = fleet.crash();
    fleet.home.store_until("the others to be back", |home| {
        fleet.agents[1..].iter().all(|member| super::is_back(home, &member.id, old)).then_some(())
    });
    fleet
        .supervisor
        .status_until("its offer", |status| status.to_string().contains("transcript_missing").then_some(()));
    assert!(process.alive(), "what nobody could bring back is not ended");
    assert_eq!(super::running(&fleet.home, &spared.conversation), 1);
    // its file again: by hand it comes back, and it is not doubled
    fs::rename(&aside, &file).unwrap();
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
    assert!(!process.signal(Signal::CONT), "the one of before is gone");
}
