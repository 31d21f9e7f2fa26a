//! The stand-in that behaves like a provider's agent: what it writes, fires, shows and how it ends.

use rustix::process::Signal;
use serde_json::json;

use crate::support::fake::new_id;
use crate::support::{DEADLINE, Fake, Home, Tmux, wait_until};

fn events(home: &Home) -> Vec<String> {
    home.hooks_fired("claude").into_iter().map(|fired| fired.event).collect()
}

#[test]
fn claude_writes_at_the_first_prompt_and_comes_back_with_its_context() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooks_watched("claude");
    let root = home.project("alpha");
    let id = new_id();
    let agent = Fake::window(
        &tmux,
        "main",
        "cart",
        &root,
        "claude",
        &["--session-id", &id, "--model", "opus", "--dangerously-skip-permissions"],
    )
    .up(&tmux);
    assert_eq!(agent.conversation(), id);
    assert_eq!(agent.file(), None, "no file before the first prompt");
    wait_until("the registry to name the pane", DEADLINE, || {
        let registry = home.claude_registry(agent.pane.pid)?;
        let place = format!("main:{}.{}", agent.pane.window, agent.pane.id);
        (registry["tmux"] == place && registry["status"] == "idle").then_some(())
    });
    agent.prompt(&tmux, "one");
    agent.prompt(&tmux, "two");
    assert_eq!(agent.turns(), 2);
    let process = agent.process();
    process.signal(Signal::TERM);
    assert!(process.dies(DEADLINE));
    wait_until("the last hook", DEADLINE, || (events(&home).last()? == "SessionEnd").then_some(()));
    assert_eq!(
        events(&home),
        ["SessionStart", "UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop", "SessionEnd"]
    );
    for fired in home.hooks_fired("claude") {
        assert_eq!(fired.pane, agent.pane.id, "{fired:?}");
        assert_eq!(fired.project, root.to_str().unwrap(), "{fired:?}");
        assert_eq!(fired.payload["session_id"], id.as_str(), "{fired:?}");
        assert_eq!(fired.payload["hook_event_name"], fired.event.as_str(), "{fired:?}");
    }
    let again = Fake::window(&tmux, "main", "cart", &root, "claude", &["--resume", &id]).up(&tmux);
    again.screen_until(&tmux, "what it remembers", |screen| screen.contains("2 earlier turns"));
    again.prompt(&tmux, "three");
    assert_eq!(again.turns(), 3);
    again.leave(&tmux);
}

#[test]
fn claude_knows_a_conversation_only_by_its_id_and_its_folder() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    let (here, there) = (home.project("alpha"), home.project("beta"));
    let agent = Fake::claude(&tmux, "main", "one", &here);
    agent.prompt(&tmux, "one");
    let id = agent.conversation();
    agent.leave(&tmux);
    for (cwd, id) in [(&there, id.clone()), (&here, new_id())] {
        let agent = Fake::window(&tmux, "main", "two", cwd, "claude", &["--resume", &id]);
        agent.said_until(&tmux, &format!("No conversation found with session ID: {id}"));
        wait_until("its status", DEADLINE, || {
            tmux.ok(["run-shell", "true"]);
            (tmux.format(&agent.pane.id, "#{pane_dead_status}") == "1").then_some(())
        });
    }
    let agent = Fake::window(&tmux, "main", "two", &here, "claude", &["--session-id", &id]);
    agent.said_until(&tmux, "is already in use");
}

#[test]
fn claude_ends_on_signals_as_the_real_one_does() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    home.hooks_watched("claude");
    for (signal, status) in [(Signal::TERM, "143"), (Signal::HUP, "129"), (Signal::INT, "0")] {
        let agent = Fake::claude(&tmux, "main", "one", &home.project("alpha"));
        let process = agent.process();
        process.signal(signal);
        assert!(process.dies(DEADLINE));
        wait_until("its status", DEADLINE, || {
            tmux.ok(["run-shell", "true"]);
            (tmux.format(&agent.pane.id, "#{pane_dead_status}") == status).then_some(())
        });
        assert_eq!(home.claude_registry(process.pid), None, "{signal:?}");
        let last = home.hooks_fired("claude").pop().unwrap();
        assert_eq!((last.event.as_str(), &last.payload["reason"]), ("SessionEnd", &json!("other")));
    }
}

#[test]
fn a_turn_a_question_and_a_draft_are_seen_from_outside() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooks_watched("claude");
    let agent = Fake::claude(&tmux, "main", "one", &home.project("alpha"));
    let status = |status: &str| {
        wait_until(&format!("status {status}"), DEADLINE, || {
            (home.claude_registry(agent.pane.pid)?["status"] == status).then_some(())
        });
    };
    agent.say(&tmux, "long [[ms=1000000]]");
    agent.screen_until(&tmux, "the turn", |screen| screen.contains("esc to interrupt"));
    status("busy");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Escape"]);
    agent.ready(&tmux);
    status("idle");
    assert_eq!(events(&home), ["SessionStart", "UserPromptSubmit"], "an interrupt fires nothing");
    agent.say(&tmux, "ask me [[ask]]");
    agent.screen_until(&tmux, "the question", |screen| screen.contains("Do you want to proceed?"));
    status("waiting");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    agent.screen_until(&tmux, "the answer", |screen| screen.contains("earlier: ask me"));
    status("idle");
    let fired = ["UserPromptSubmit", "PreToolUse", "PermissionRequest", "Stop"];
    wait_until("the hooks", DEADLINE, || (events(&home).get(2..)? == fired).then_some(()));
    tmux.ok(["set-buffer", "half a thought\nand more"]);
    tmux.ok(["paste-buffer", "-p", "-t", &agent.pane.id]);
    agent.screen_until(&tmux, "the draft", |screen| screen.contains("❯ half a thought\n  and more"));
}
