//! The way there and back.

use super::{Frozen, freeze, outcome, restore, running};
use crate::support::{DEADLINE, Fake, Home, Tmux, proc, wait_until};

#[test]
fn the_same_conversation_comes_back_verified_and_the_capture_goes() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    assert!(frozen.captured(&home));
    frozen.stands(&tmux);
    let told = restore(&home, &frozen.id).ok();
    let outcome = outcome(&told);
    assert_eq!(
        (outcome["end"].as_str(), outcome["word"].as_str()),
        (Some("done"), Some("verified")),
        "{told}"
    );
    let agent = frozen.back(&tmux);
    assert_eq!(agent.pane.id, frozen.agent.pane.id, "in its own pane");
    assert_eq!(agent.conversation(), frozen.conversation);
    agent.screen_until(&tmux, "what it remembers", |screen| screen.contains("1 earlier turns"));
    agent.prompt(&tmux, "two");
    assert_eq!(agent.turns(), 2);
    assert!(!frozen.captured(&home), "verified: the capture is no longer needed");
    let stamps = "#{@aitask_record} #{@aitask_frozen}#{@aitask_restore_attempt}#{@aitask_standin_ready}.";
    assert_eq!(tmux.format(&agent.pane.id, stamps), format!("{} .", frozen.id));
    let record = frozen.record(&home);
    assert!(["registry", "hook"].contains(&record["ack"].as_str().unwrap()), "{record:#}");
    assert_eq!(record["restore_attempts"], 1, "{record:#}");
    // and again: nothing of the first time is in the way
    freeze(&home, &frozen.id);
    restore(&home, &frozen.id).ok();
    assert_eq!(frozen.back(&tmux).conversation(), frozen.conversation);
    restore(&home, &frozen.id).code(12);
}

#[test]
fn two_agents_of_one_directory_each_get_their_own_conversation() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let one = Frozen::claude(&tmux, "main", "one", "alpha");
    let two = Frozen::claude(&tmux, "main", "two", "alpha");
    assert_ne!(one.conversation, two.conversation);
    let planned = home.ait(["restore", "--all", "--dry-run"]).ok();
    assert!(
        planned.text().contains(&one.conversation) && planned.text().contains(&two.conversation),
        "{planned}"
    );
    assert_eq!(one.record(&home)["state"], "frozen");
    home.ait(["restore", "--all", "--json"]).ok();
    for frozen in [&one, &two] {
        let agent = frozen.back(&tmux);
        assert_eq!(agent.conversation(), frozen.conversation);
        assert_eq!(agent.pane.id, frozen.agent.pane.id);
        assert!(!frozen.captured(&home));
        assert_eq!(running(&home, &frozen.conversation), 1);
    }
    // safe to run again
    assert!(home.ait(["restore", "--all"]).ok().text().contains("no agent is frozen"));
}

#[test]
fn an_agent_typed_at_a_shell_comes_back_and_its_shell_after_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "typed", &root, &["sh"]);
    let id = crate::support::fake::new_id();
    let agent = Fake::typed(&tmux, &pane, &root, "claude", &["--session-id", &id]).up(&tmux);
    let frozen = Frozen::of(&tmux, agent);
    let told = restore(&home, &frozen.id).ok();
    assert_eq!(outcome(&told)["word"], "verified", "{told}");
    let agent = frozen.back(&tmux);
    assert_eq!(agent.conversation(), frozen.conversation);
    let process = agent.process();
    assert_ne!(process.pid, agent.pane.pid, "it runs below what becomes its shell again");
    let record = frozen.record(&home);
    assert_eq!(record["ait"]["agent"]["pid"], process.pid, "{record:#}");
    agent.leave(&tmux);
    wait_until("the shell", DEADLINE, || (proc::command(agent.pane.pid) == "sh").then_some(()));
    tmux.ok(["send-keys", "-t", &agent.pane.id, "echo \"in $PWD.\"", "Enter"]);
    agent.screen_until(&tmux, "its directory", |screen| screen.contains(&format!("in {}.", root.display())));
}

#[test]
fn a_task_picked_anew_begins_another_conversation_and_keeps_the_capture() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    home.ait(["restore", &frozen.id, "--mode", "repick"]).ok();
    let agent = frozen.back(&tmux);
    let conversation = agent.conversation();
    assert_ne!(conversation, frozen.conversation);
    assert_eq!(frozen.record(&home)["codeagent_session_id"], conversation.as_str());
    assert!(frozen.captured(&home), "a new conversation does not prove that the old one is back");
    assert_eq!(running(&home, &frozen.conversation), 0);
}

#[test]
fn the_viewer_brings_its_agent_back_and_says_why_it_cannot() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    frozen.stands(&tmux);
    let file = home.conversation_file("claude", &frozen.conversation).unwrap();
    let aside = home.root().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    tmux.ok(["send-keys", "-t", &frozen.agent.pane.id, "R"]);
    let viewer = frozen.agent.clone();
    viewer.screen_until(&tmux, "the reason", |screen| screen.contains("not restored: transcript_missing"));
    std::fs::rename(&aside, &file).unwrap();
    tmux.ok(["send-keys", "-t", &frozen.agent.pane.id, "R"]);
    home.store_until("the agent to be back", |home| {
        (home.record(&frozen.id)?["state"] == "live").then_some(())
    });
    let agent = frozen.back(&tmux);
    agent.ready(&tmux);
    assert_eq!(agent.conversation(), frozen.conversation);
}
