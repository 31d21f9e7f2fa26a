//! The stand-in that behaves like a provider's agent: what it writes, fires, shows and how it ends.

use rustix::process::Signal;
use serde_json::json;

use crate::support::fake::new_id;
use crate::support::{DEADLINE, Fake, Home, Tmux, proc, wait_until};

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
            tmux.collect();
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
            tmux.collect();
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
    wait_until("the hook of the prompt", DEADLINE, || (events(&home).len() == 2).then_some(()));
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

#[test]
fn codex_holds_its_rollout_open_and_fires_from_the_first_prompt_on() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    home.hooks_watched("codex");
    home.manners("codex", json!({ "node": true }));
    let root = home.project("alpha");
    let agent = Fake::window(&tmux, "main", "one", &root, "codex", &["--no-daemon"]).up(&tmux);
    assert_eq!(tmux.format(&agent.pane.id, "#{alternate_on} #{pane_title}"), "1 alpha");
    assert!(proc::command(agent.pane.pid).starts_with("node /usr/local/bin/codex --no-daemon"));
    assert_eq!((agent.known_conversation(), home.hooks_fired("codex").len()), (None, 0));
    agent.prompt(&tmux, "one");
    let id = agent.conversation();
    let fired =
        |home: &Home| home.hooks_fired("codex").into_iter().map(|fired| fired.event).collect::<Vec<_>>();
    wait_until("the hooks", DEADLINE, || {
        (fired(&home) == ["SessionStart", "UserPromptSubmit", "Stop"]).then_some(())
    });
    let (outer, inner) = (agent.process(), agent.inner());
    assert_ne!(outer, inner, "the script stands in front");
    outer.signal(Signal::TERM);
    assert!(outer.dies(DEADLINE) && inner.dies(DEADLINE));
    wait_until("its end", DEADLINE, || {
        tmux.collect();
        (tmux.format(&agent.pane.id, "#{pane_dead_signal}") == "15").then_some(())
    });
    let again = Fake::window(&tmux, "main", "one", &root, "codex", &["resume", &id, "--no-daemon"]).up(&tmux);
    again.screen_until(&tmux, "what it remembers", |screen| screen.contains("1 earlier turns"));
    again.prompt(&tmux, "two");
    assert_eq!(home.turns("codex", &id), 2);
    // no SessionEnd at the signal before
    let turn = ["SessionStart", "UserPromptSubmit", "Stop"];
    wait_until("the second turn's hooks", DEADLINE, || (fired(&home) == [turn, turn].concat()).then_some(()));
    again.leave(&tmux);
}

#[test]
fn codexs_daemon_fires_with_the_pane_of_whoever_started_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooks_watched("codex");
    home.manners("codex", json!({ "daemon": true }));
    let first = Fake::window(&tmux, "main", "one", &home.project("alpha"), "codex", &[]).up(&tmux);
    let second = Fake::window(&tmux, "main", "two", &home.project("beta"), "codex", &[]).up(&tmux);
    second.prompt(&tmux, "from the second");
    wait_until("the hooks", DEADLINE, || (home.hooks_fired("codex").len() == 3).then_some(()));
    for fired in home.hooks_fired("codex") {
        assert_eq!(fired.pane, first.pane.id, "{fired:?}");
        assert_eq!(fired.payload["cwd"], home.project("beta").to_str().unwrap());
    }
    // a turn goes on when its pane is gone
    second.say(&tmux, "long [[ms=500]]");
    second.screen_until(&tmux, "the turn", |screen| screen.contains("esc to interrupt"));
    tmux.ok(["kill-pane", "-t", &second.pane.id]);
    wait_until("the end of the turn", DEADLINE, || {
        (home.hooks_fired("codex").last()?.event == "Stop" && home.hooks_fired("codex").len() == 5)
            .then_some(())
    });
    let daemon = home.codex_daemon().expect("the daemon outlives panes");
    first.leave(&tmux);
    assert!(daemon.alive());
    assert!(daemon.end(DEADLINE));
}

#[test]
fn geminis_wrapper_swallows_signals_and_its_file_is_there_at_once() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooks_watched("gemini");
    let id = new_id();
    let root = home.project("alpha");
    let agent = Fake::window(&tmux, "main", "one", &root, "gemini", &["--session-id", &id]).up(&tmux);
    assert!(home.conversation_file("gemini", &id).is_some(), "before the first prompt");
    agent.prompt(&tmux, "one");
    assert!(tmux.format(&agent.pane.id, "#{pane_title}").starts_with("◇  Ready (alpha)"));
    let (outer, inner) = (agent.process(), agent.inner());
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        assert!(outer.signal(signal));
    }
    agent.prompt(&tmux, "two");
    inner.signal(Signal::TERM);
    assert!(outer.dies(DEADLINE) && inner.dies(DEADLINE));
    let fired: Vec<_> = home.hooks_fired("gemini").into_iter().map(|fired| fired.event).collect();
    assert_eq!(fired[fired.len() - 3..], ["SessionEnd", "SessionEnd", "SessionEnd"]);
    let again = Fake::window(&tmux, "main", "one", &root, "gemini", &["--resume", &id]).up(&tmux);
    again.screen_until(&tmux, "what it remembers", |screen| screen.contains("2 earlier turns"));
    again.leave(&tmux);
}

#[test]
fn manners_are_as_asked() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    home.hooks_watched("claude");
    let root = home.project("alpha");
    // one that ends at once, in one folder only
    let beta = home.project("beta");
    home.manners("claude", json!({ "directories": { beta.to_str().unwrap(): { "exit": 3 } } }));
    let agent = Fake::window(&tmux, "main", "exit", &beta, "claude", &[]);
    wait_until("its status", DEADLINE, || {
        tmux.collect();
        (tmux.format(&agent.pane.id, "#{pane_dead_status}") == "3").then_some(())
    });
    // a conversation to come back to
    let agent = Fake::claude(&tmux, "main", "first", &root);
    agent.prompt(&tmux, "one");
    let id = agent.conversation();
    agent.leave(&tmux);
    // another id, an agent below, something left behind, no answer to HUP
    let other = new_id();
    let left = home.root().join("left");
    home.manners(
        "claude",
        json!({ "other_id": other, "nested": true, "leaves": left, "deaf": ["HUP"], "draft": "half a thought",
                "background": "a server" }),
    );
    let agent = Fake::window(&tmux, "main", "odd", &root, "claude", &["--resume", &id]);
    agent.screen_until(&tmux, "its draft", |screen| screen.contains("❯ half a thought"));
    assert_eq!(agent.conversation(), other);
    let starts = |home: &Home| {
        let fired = home.hooks_fired("claude").into_iter().filter(|fired| fired.event == "SessionStart");
        fired.map(|fired| fired.payload["session_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let started = wait_until("both starts", DEADLINE, || Some(starts(&home)).filter(|all| all.len() == 3));
    assert!(started.contains(&other), "{started:?}");
    assert!(started.iter().any(|one| *one != other && *one != id), "the nested one: {started:?}");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "C-u"]);
    agent.say(&tmux, "go on");
    let stop = wait_until("the end of the turn", DEADLINE, || {
        home.hooks_fired("claude")
            .into_iter()
            .rev()
            .find(|fired| fired.event == "Stop" && fired.payload["session_id"] == other.as_str())
    });
    assert_eq!(stop.payload["background_tasks"][0]["description"], "a server");
    let process = agent.process();
    process.signal(Signal::HUP);
    tmux.ok(["kill-pane", "-t", &agent.pane.id]);
    assert!(!process.dies(std::time::Duration::from_millis(300)), "it outlives its pane");
    process.signal(Signal::KILL);
    let left: u32 = std::fs::read_to_string(left).unwrap().parse().unwrap();
    let left = proc::Process::of(left).expect("it left a process behind");
    // started by one that blocks them, it hears neither HUP nor TERM
    assert!(left.signal(Signal::KILL) && left.dies(DEADLINE));
    // a dialog that leaves at a bare Enter
    home.manners("claude", json!({ "dialog": "trust" }));
    let agent = Fake::window(&tmux, "main", "trust", &root, "claude", &[]);
    agent.screen_until(&tmux, "the dialog", |screen| screen.contains("❯ No, exit"));
    assert_eq!(agent.known_conversation(), None, "nothing is told before it is trusted");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Down"]);
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    agent.ready(&tmux);
}

#[test]
fn the_callers_of_tmux_are_cut_short_where_the_story_says() {
    use crate::support::wrapper::{Act, Calls, When};
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let socket = tmux.socket_text();
    let three =
        format!("for n in 1 2 3; do tmux -S '{socket}' set-option -g @step $n; echo $n; done # coordinate");
    let caller = || {
        let mut command = home.command("/bin/sh");
        command.args(["-c", &three, "sh", "coordinate"]);
        crate::support::Ran::run(&mut command)
    };
    let step = || tmux.ok(["show-options", "-gv", "@step"]);
    let calls = Calls::of(&home, "coordinate");
    calls.none();
    assert_eq!(caller().ok().text(), "1\n2\n3");
    assert_eq!(calls.made().len(), 3);
    assert!(calls.made()[2].ends_with("set-option -g @step 3"), "{:?}", calls.made());
    for (number, when, said, step_after) in [
        (1, When::Before, "", "0"),
        (1, When::After, "", "1"),
        (3, When::Before, "1\n2", "2"),
        (3, When::After, "1\n2", "3"),
    ] {
        tmux.ok(["set-option", "-g", "@step", "0"]);
        calls.at(number, when, &Act::Kill);
        let ran = caller();
        assert_eq!(ran.text(), said, "{number} {when:?}");
        assert_eq!(ran.status.code(), None, "killed");
        assert!(calls.happened());
        assert_eq!(step(), step_after, "{number} {when:?}");
    }
    // something else happens, and the caller goes on
    calls.at(2, When::Before, &Act::Do(format!("tmux -S '{socket}' set-option -g @seen here")));
    assert_eq!(caller().ok().text(), "1\n2\n3");
    assert_eq!(tmux.ok(["show-options", "-gv", "@seen"]), "here");
    // stopped, it does nothing until it is continued
    tmux.ok(["set-option", "-g", "@step", "0"]);
    calls.at(2, When::After, &Act::Stop);
    let mut command = home.command("/bin/sh");
    command.args(["-c", &three, "sh", "coordinate"]).stdout(std::process::Stdio::null());
    let mut running = crate::support::run::Running::start(&mut command);
    let stopped = running.process();
    wait_until("it to be stopped", DEADLINE, || (proc::state(stopped.pid) == Some('T')).then_some(()));
    assert_eq!(step(), "2");
    stopped.signal(Signal::CONT);
    assert!(running.join(DEADLINE).success());
    assert_eq!(step(), "3");
    // others are not counted
    calls.none();
    crate::support::Ran::run(home.command("tmux").args(["-S", &socket, "list-sessions"])).ok();
    assert!(calls.made().is_empty());
}
