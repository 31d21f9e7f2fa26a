//! What a hook says of a restore, of prompts that wait, and of a program that prints one answer.

use serde_json::{Value, json};

use crate::hook::{ONE, TWO, Told, hook, log, only, spool, start, turn};
use crate::support::fake::new_id;
use crate::support::{DEADLINE, Fake, Home, Tmux, wait_until};

/// A record of conversation [`ONE`] that is being restored: its id, and the attempt's token.
fn restoring(home: &Home, tmux: &Tmux) -> (String, String) {
    let agent = Told::start(tmux, "claude", "first");
    agent.hook("SessionStart", &start(ONE));
    let id = only(home)["id"].as_str().unwrap().to_owned();
    let owner = std::process::id().to_string();
    let nonce_of = |text: String| text.rsplit_once('|').unwrap().1.to_owned();
    let begin = ["record", "freeze-begin", &id, "--owner-pid", &owner, "--capture-ansi", "/a"];
    let nonce =
        nonce_of(home.ait(begin.into_iter().chain(["--capture-txt", "/t", "--lines", "3"])).ok().text());
    let commit = ["record", "freeze-commit", &id, "--nonce", &nonce, "--pane", "", "--pane-pid", "0"];
    home.ait(commit).ok();
    let begin = ["record", "restore-begin", &id, "--owner-pid", &owner, "--mode", "resume"];
    let nonce = nonce_of(home.ait(begin).ok().text());
    (id, nonce)
}

/// The agent has the environment of that restore from now on, as what it starts has.
fn of_restore(agent: &Told<'_>, id: &str, nonce: &str) {
    agent.does(&format!("export AITASK_RESTORE_RECORD={id} AITASK_RESTORE_NONCE={nonce}"));
}

fn launched(home: &Home, (id, nonce): (&str, &str), agent: &Told<'_>) {
    let pid = agent.pane.pid.to_string();
    let at = ["--nonce", nonce, "--pane", &agent.pane.id, "--pane-pid", &pid];
    home.ait(["record", "restore-launched", id].into_iter().chain(at)).ok();
}

fn is_back_in(home: &Home, id: &str, agent: &Told<'_>) {
    let record = home.record(id).unwrap();
    assert_eq!(
        (&record["state"], &record["ack"]),
        (&json!("live"), &json!("hook")),
        "{record:#}\n{}",
        log(home)
    );
    assert_eq!(record["pane_id"], agent.pane.id.as_str());
    assert_eq!(record["pane_pid"], agent.pane.pid);
    assert_eq!(record["codeagent_session_id"], ONE);
    assert_eq!(home.records().len(), 1);
}

#[test]
fn only_the_process_that_was_launched_acknowledges() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, nonce) = restoring(&home, &tmux);
    let back = Told::start(&tmux, "claude", "back");
    let other = Told::start(&tmux, "claude", "other");
    launched(&home, (&id, &nonce), &back);
    let is_still_out = |why: &str| {
        assert!(log(&home).contains(why), "{}", log(&home));
        assert_eq!(home.record(&id).unwrap()["state"], "restoring");
    };
    of_restore(&other, &id, &nonce);
    other.hook("SessionStart", &start(ONE));
    is_still_out("it is not from the process that was launched");
    // what the agent's own tools start has its environment
    of_restore(&back, &id, &nonce);
    let inner = home.root().join("inner.sh");
    std::fs::write(&inner, format!("{}; echo $?\n", hook("claude", "SessionStart", &start(ONE)))).unwrap();
    let said = back.does(&format!("setsid bash -c 'exec -a claude bash {}'", inner.display()));
    assert_eq!(said, "0\n");
    is_still_out("runs below another one");
    of_restore(&back, &id, "deadbeef");
    back.hook("SessionStart", &start(ONE));
    is_still_out("it belongs to another attempt");
    of_restore(&back, &id, &nonce);
    back.hook("SessionStart", &start(ONE));
    is_back_in(&home, &id, &back);
    assert_eq!(spool(&home).len(), 0);
    // it has that environment to its end, and is as any other agent now
    back.hook("UserPromptSubmit", &json!({"session_id": ONE}));
    assert_eq!(turn(&home, &id)["state"], "working");
    back.hook("SessionStart", &json!({"session_id": TWO, "source": "clear"}));
    assert_eq!(only(&home)["codeagent_session_id"], TWO);
}

#[test]
fn a_hook_that_is_faster_than_its_restore_is_believed_by_the_mark_on_its_pane() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, nonce) = restoring(&home, &tmux);
    let back = Told::start(&tmux, "claude", "back");
    of_restore(&back, &id, &nonce);
    back.hook("SessionStart", &start(ONE));
    assert_eq!(
        home.record(&id).unwrap()["state"],
        "restoring",
        "nothing says that this is the attempt's pane"
    );
    assert_eq!(spool(&home).len(), 1, "{}", log(&home));
    let mark = format!("{id}:{nonce}");
    tmux.ok(["set-option", "-p", "-t", &back.pane.id, "@aitask_restore_attempt", &mark]);
    back.hook("SessionStart", &start(ONE));
    is_back_in(&home, &id, &back);
}

#[test]
fn what_a_hook_said_too_early_is_taken_once_the_restore_says_what_it_launched() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, nonce) = restoring(&home, &tmux);
    let back = Told::start(&tmux, "claude", "back");
    of_restore(&back, &id, &nonce);
    back.hook("SessionStart", &start(ONE));
    assert_eq!(spool(&home).len(), 1, "{}", log(&home));
    launched(&home, (&id, &nonce), &back);
    // any writer
    home.ait(["record", "fill-task", &id, "--task-id", "7"]).ok();
    is_back_in(&home, &id, &back);
    assert_eq!(spool(&home).len(), 0);
}

#[test]
fn an_agent_whose_restore_was_given_up_gets_no_second_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, nonce) = restoring(&home, &tmux);
    let back = Told::start(&tmux, "claude", "back");
    of_restore(&back, &id, &nonce);
    launched(&home, (&id, &nonce), &back);
    home.ait(["record", "restore-abort", &id, "--nonce", &nonce, "--error", "ack_timeout"]).ok();
    let gone = ["--nonce", &nonce, "--pane", "", "--pane-pid", "0"];
    home.ait(["record", "standin-respawned", &id].into_iter().chain(gone)).ok();
    back.hook("SessionStart", &start(ONE));
    assert!(log(&home).contains("its restore was given up"), "{}", log(&home));
    assert_eq!(only(&home)["state"], "frozen");
    assert_eq!(spool(&home).len(), 0);
}

#[test]
fn a_late_hook_of_an_earlier_attempt_is_logged_and_binds_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, first) = restoring(&home, &tmux);
    let early = Told::start(&tmux, "claude", "early");
    of_restore(&early, &id, &first);
    launched(&home, (&id, &first), &early);
    home.ait(["record", "restore-abort", &id, "--nonce", &first, "--error", "ack_timeout"]).ok();
    let gone = ["--nonce", &first, "--pane", "", "--pane-pid", "0"];
    home.ait(["record", "standin-respawned", &id].into_iter().chain(gone)).ok();

    // the second attempt goes on
    let owner = std::process::id().to_string();
    let begin = ["record", "restore-begin", &id, "--owner-pid", &owner, "--mode", "resume"];
    let second = home.ait(begin).ok().text().rsplit_once('|').unwrap().1.to_owned();
    let back = Told::start(&tmux, "claude", "back");
    of_restore(&back, &id, &second);
    launched(&home, (&id, &second), &back);
    early.hook("SessionStart", &start(ONE));
    assert!(log(&home).contains("it belongs to another attempt of a restore"), "{}", log(&home));
    assert_eq!(home.record(&id).unwrap()["state"], "restoring", "the second attempt waits for its own");
    back.hook("SessionStart", &start(ONE));
    is_back_in(&home, &id, &back);

    // and is over
    let before = std::fs::read(home.store()).unwrap();
    early.hook("SessionStart", &start(ONE));
    early.hook("Stop", &json!({"session_id": ONE}));
    assert!(log(&home).contains("its restore is over"), "{}", log(&home));
    assert!(std::fs::read(home.store()).unwrap() == before, "nothing is bound");
    is_back_in(&home, &id, &back);
    assert_eq!(spool(&home).len(), 0, "and nothing waits to be");

    // the environment alone makes nobody a restored agent: a conversation of its own gets a record of its own
    early.hook("SessionStart", &start(TWO));
    let records = home.records();
    let own = records.iter().find(|record| record["codeagent_session_id"] == TWO).expect("its own record");
    assert_eq!(own["pane_id"], early.pane.id.as_str(), "{}", log(&home));
    assert_eq!((records.len(), &home.record(&id).unwrap()["codeagent_session_id"]), (2, &json!(ONE)));
}

#[test]
fn another_conversation_that_only_the_hook_tells_is_a_mismatch() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    agent.prompt(&tmux, "one");
    let (id, conversation, other) = (agent.adopt(&tmux), agent.conversation(), new_id());
    home.ait(["freeze", &id, "--force"]).ok();
    home.manners("claude", json!({ "other_id": &other, "no_registry": true }));
    let told = home.ait(["restore", &id, "--json"]).code(1);
    let last: Value = serde_json::from_str(told.text().lines().last().unwrap()).unwrap();
    assert_eq!(last["word"], "session_mismatch", "{told}\n{}", log(&home));
    let detail = last["detail"].as_str().unwrap();
    assert!(detail.contains(&conversation) && detail.contains(&other), "both ids are said: {detail}");
    let record = home.record(&id).unwrap();
    assert_eq!((&record["state"], &record["codeagent_session_id"]), (&json!("frozen"), &json!(conversation)));
    assert_eq!(record["ait"]["came_instead"], json!(other), "{record:#}");
    // the stand-in and the list say it too, for whoever did not see the answer
    let status = home.ait(["status"]);
    assert!(status.text().contains(&other), "{status}");
    let capture = home.home().join(".config/aitasks/frozen").join(&id).join("capture.ansi");
    assert!(capture.is_file(), "the capture is kept");
}

#[test]
fn a_turn_that_ends_while_a_prompt_waits_is_not_the_end() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    let of = |prompt: &str| json!({"session_id": ONE, "prompt_id": prompt});
    agent.hook("UserPromptSubmit", &of("a"));
    agent.hook("UserPromptSubmit", &of("b"));
    let local = |prompt| ait::turn::local("generation-1", "claude", "turn", prompt);
    assert_eq!(turn(&home, &id)["open"], json!([local("a"), local("b")]));
    agent.hook("Stop", &of("a"));
    assert_eq!(turn(&home, &id)["state"], "working", "the one that waited is worked on");
    let told = home.ait(["freeze", &id, "--json"]).code(12);
    assert!(told.text().contains("working"), "{told}");
    agent.hook("Stop", &of("b"));
    assert_eq!(turn(&home, &id)["state"], "waiting");
}

#[test]
fn the_prompts_of_an_agent_are_told_apart() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(&tmux);
    agent.say(&tmux, "short [[ms=2000]]");
    agent.say(&tmux, "long [[ms=1000000]]");
    wait_until("the end of the first turn to be told", DEADLINE, || {
        let turn = turn(&home, &id);
        (turn["event"] == "Stop").then_some(turn)
    });
    let told = turn(&home, &id);
    assert_eq!(
        (&told["state"], told["open"].as_array().map(Vec::len)),
        (&json!("working"), Some(1)),
        "{told}"
    );
}

#[test]
fn a_program_that_prints_one_answer_is_no_agent() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let printing = Fake::window(&tmux, "main", "once", &home.project("alpha"), "claude", &["-p", "one"]);
    wait_until("its hooks", DEADLINE, || log(&home).contains("it prints one answer").then_some(()));
    home.ait(["adopt", "--all"]);
    assert_eq!(home.records(), Vec::<Value>::new(), "{}", printing.screen(&tmux));
    assert_eq!(spool(&home).len(), 0);
}
