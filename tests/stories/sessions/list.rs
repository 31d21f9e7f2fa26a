//! Seeing: list, show, command, and who is meant by a word.

use super::{Asked, data, edit, envelope, habits, name, refusal};
use crate::support::{AIT, Agent, DEADLINE, Home, Ran, not_run, proc, wait_until};

#[test]
fn wrong_words_are_an_envelope_when_json_is_asked_for() {
    let home = Home::new();
    for (words, code) in [
        (&["list", "--format", "json", "--bad"][..], "parse-error"),
        (&["nope", "--format", "json"], "unknown-subcommand"),
        (&["list", "--host=-oX", "--format=JSON"], "invalid-host"),
    ] {
        let ran = home.ait(words).code(64);
        assert_eq!(envelope(&ran)["schema_version"], "cli.ait.error.v1", "{ran}");
        assert_eq!(refusal(&ran), code, "{ran}");
    }
    let text = home.ait(["list", "--host=-oX"]).code(64);
    assert_eq!((text.text().as_str(), text.errors().lines().count()), ("", 1), "{text}");
    assert!(text.errors().starts_with("error: "), "{text}");
}

#[test]
fn nothing_is_an_empty_list() {
    let home = Home::new();
    assert_eq!(home.ait(["list"]).ok().text(), "no agent sessions");
    assert_eq!(data(&home.ait(["list", "--format", "json"]).ok(), "list"), serde_json::json!([]));
}

#[test]
fn what_is_told_of_a_session() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    assert_eq!(home.ait(["list"]).ok().text(), "no agent sessions", "it was not started here");
    let all = data(&home.ait(["list", "--all", "--format", "json", "--host", "box"]).ok(), "list");
    let seen = &all[0];
    assert_eq!(all.as_array().unwrap().len(), 1, "{all:#}");
    for (field, value) in [
        ("id", agent.id.as_str()),
        ("agent", "claude"),
        ("mode", "interactive"),
        ("tmux_session", "main"),
        ("status", "running"),
        ("repo_name", "alpha"),
    ] {
        assert_eq!(seen[field], value, "{field}: {all:#}");
    }
    for absent in ["title", "prompt_file", "log_file"] {
        assert_eq!(seen.get(absent), Some(&serde_json::Value::Null), "{absent}: {all:#}");
    }
    assert!(seen["ssh_attach_command"].as_str().unwrap().starts_with("ssh -t box "), "{all:#}");
    assert!(seen["attach_command"].as_str().unwrap().contains(&agent.pane.id), "{all:#}");
    assert!(seen["last_terminal_activity_at"].as_str().unwrap().ends_with('Z'), "{all:#}");
    let shown = data(&home.ait(["show", &agent.id, "--format", "json", "--host", "box"]).ok(), "show");
    assert_eq!(shown["turn_state"]["schema_version"], "agent-session.turn-state.v1", "{shown:#}");
    assert_eq!(shown["location"]["pane"], agent.pane.id.as_str(), "{shown:#}");
    let text = home.ait(["command", &agent.id, "--host", "box"]).ok().text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], seen["ssh_attach_command"], "{text}");
    assert_eq!(lines[1], format!("local: {}", seen["attach_command"].as_str().unwrap()), "{text}");
    let line = home.ait(["list", "--all"]).ok().text();
    assert_eq!(line, format!("{}  claude  running  -  {}", agent.id, agent.root.display()), "nobody says");
}

#[test]
fn a_session_stays_listed_when_its_agent_has_ended() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "review");
    let line = home.ait(["list"]).ok().text();
    assert_eq!(line, format!("{}  claude  running  -  {}  review", agent.id, agent.root.display()));
    let process = agent.pane.process();
    tmux.ok(["kill-pane", "-t", &agent.pane.id]);
    assert!(process.dies(DEADLINE));
    let status = |words: &[&str]| data(&home.ait(words).ok(), words[0])["status"].clone();
    assert_eq!(status(&["show", "review", "--format", "json"]), "stopped", "its pane is gone");
    home.ait(["record", "end", &agent.id, "--reason", "exited"]).ok();
    assert!(home.record(&agent.id).is_none());
    assert_eq!(status(&["show", "review", "--format", "json"]), "stopped", "it is in the archive");
    let listed = data(&home.ait(["list", "--format", "json"]).ok(), "list");
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&agent.id.as_str().into(), &"archived".into()));
    assert_eq!(listed[0]["ended"], "exited", "{listed:#}");
}

#[test]
fn the_latest_is_listed_first_then_the_latest_begun_then_by_id() {
    let home = Home::new();
    let tmux = habits(&home);
    let agents: Vec<Agent> =
        ["a", "b", "c", "d"].iter().map(|window| Agent::start(&tmux, "main", window)).collect();
    let mut ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    ids.sort_unstable();
    // begun, and when something last happened to it
    let at = |minute: u32| serde_json::json!(format!("2026-01-01T00:{minute:02}:00Z"));
    let times = [(1, 5), (1, 5), (2, 5), (0, 9)];
    edit(&home, |records| {
        for record in records.iter_mut() {
            let place = ids.iter().position(|id| record["id"] == *id).unwrap();
            (record["started_at"], record["state_at"]) = (at(times[place].0), at(times[place].1));
        }
    });
    let listed = data(&home.ait(["list", "--all", "--format", "json"]).ok(), "list");
    let order: Vec<&str> = listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(order, [ids[3], ids[2], ids[0], ids[1]]);
}

#[test]
fn a_session_is_meant_by_its_id_a_beginning_or_a_name() {
    let home = Home::new();
    let tmux = habits(&home);
    let agents: Vec<Agent> =
        ["x", "x-1", "other"].iter().map(|window| Agent::start(&tmux, "main", window)).collect();
    name(&home, &agents[0].id, "x");
    name(&home, &agents[1].id, "x-1");
    let meant = |word: &str| data(&home.ait(["show", word, "--format", "json"]).ok(), "show")["id"].clone();
    assert_eq!(meant("x"), agents[0].id.as_str(), "a whole name goes before a beginning");
    assert_eq!(meant("x-"), agents[1].id.as_str());
    assert_eq!(meant(&agents[2].id), agents[2].id.as_str());
    name(&home, &agents[2].id, "x-2");
    let ran = home.ait(["command", "x-", "--format", "json"]).code(64);
    assert_eq!(refusal(&ran), "ambiguous-session-id");
    assert_eq!(envelope(&ran)["error"]["details"]["matches"], 2, "{ran}");
    let ran = home.ait(["show", "nobody", "--format", "json"]).code(1);
    assert_eq!(refusal(&ran), "session-not-found");
    assert!(envelope(&ran)["error"]["hint"].as_str().unwrap().contains("ait list"), "{ran}");
    let told = home.ait(["show", "nobody"]).code(1).errors();
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{told}");
    // the first is stopped: the one whose name begins alike is another
    tmux.ok(["kill-pane", "-t", &agents[0].pane.id]);
    let status =
        |word: &str| data(&home.ait(["show", word, "--format", "json"]).ok(), "show")["status"].clone();
    wait_until("x to be stopped", DEADLINE, || (status("x") == "stopped").then_some(()));
    assert_eq!(status("x-1"), "running");
}

#[test]
fn every_command_says_the_same_of_a_session_that_is_not_there_or_not_the_only_one() {
    let home = Home::new();
    let tmux = habits(&home);
    for window in ["x-1", "x-2"] {
        let agent = Agent::start(&tmux, "main", window);
        name(&home, &agent.id, window);
    }
    for words in [
        &["show"][..],
        &["command"],
        &["glance"],
        &["logs"],
        &["resume"],
        &["delete"],
        &["explain"],
        &["send", "--text", "x"],
        &["wait", "--until", "exited"],
        &["activity", "status"],
    ] {
        for (word, code, exit) in [("nobody", "session-not-found", 1), ("x-", "ambiguous-session-id", 64)] {
            let ran = home.ait([words, &["--format", "json", word]].concat()).code(exit);
            assert_eq!(refusal(&ran), code, "{words:?} {word}");
            let error = &envelope(&ran)["error"];
            assert!(error["details"]["id"] == word && error["hint"].is_string(), "{words:?}: {error:#}");
        }
    }
    assert_eq!(
        data(&home.ait(["list", "--all", "--format", "json"]).ok(), "list").as_array().unwrap().len(),
        2
    );
}

#[test]
fn no_word_becomes_a_path() {
    let home = Home::new();
    for word in ["../x", "a/b", ".", "", "a b", "$(x)"] {
        for command in ["show", "command", "glance", "logs", "resume", "delete", "explain"] {
            let ran = home.ait([command, word, "--format", "json"]).code(64);
            assert_eq!(refusal(&ran), "invalid-session-id", "{command} {word:?}");
        }
        let ran = home.ait(["send", word, "--text", "x", "--format", "json"]).code(64);
        assert_eq!(refusal(&ran), "invalid-session-id", "send {word:?}");
        assert!(home.ait(["attach", word]).code(64).errors().contains("no session id"), "attach {word:?}");
    }
}

#[test]
fn a_broken_record_is_a_warning_and_the_others_are_listed() {
    let home = Home::new();
    let tmux = habits(&home);
    let good = Agent::start(&tmux, "main", "good");
    let bad = Agent::start(&tmux, "main", "bad");
    name(&home, &good.id, "good");
    name(&home, &bad.id, "bad");
    edit(&home, |records| {
        records.iter_mut().filter(|record| record["id"] == bad.id.as_str()).for_each(|record| {
            record["state"] = "dreaming".into();
        });
    });
    let ran = home.ait(["list", "--format", "json"]).ok();
    let listed = data(&ran, "list");
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed[0]["id"], good.id.as_str());
    let warnings = envelope(&ran)["warnings"].to_string();
    assert!(warnings.contains(&bad.id) && warnings.contains("repair"), "{warnings}");
    let is_up = || data(&home.ait(["show", "good", "--format", "json"]).ok(), "show")["status"] == "running";
    assert!(is_up());
    // what writes no record works with the others
    home.ait(["send", "good", "--text", "hello", "--format", "json"]).ok();
    for command in ["glance", "logs", "command", "explain"] {
        home.ait([command, "good", "--format", "json"]).ok();
    }
    // what could not be written afterwards is not begun
    let refused = home.ait(["delete", "good", "--format", "json"]).code(65);
    assert_eq!(refusal(&refused), "store-corrupt", "{refused}");
    assert!(is_up(), "its agent is not ended for that");
    let gone = home.ait(["show", "bad", "--format", "json"]).code(1);
    assert!(envelope(&gone)["error"]["hint"].as_str().unwrap().contains("ait store repair"), "{gone}");
    home.ait(["store", "repair", "--yes"]).ok();
    home.ait(["delete", "good"]).ok();
}

#[test]
fn a_folder_that_leads_elsewhere_is_not_read() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "work");
    let sessions = home.home().join(".local/state/ait/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let folder = sessions.join(&agent.id);
    let _ = std::fs::remove_dir_all(&folder);
    std::os::unix::fs::symlink(home.home(), &folder).unwrap();
    let ran = home.ait(["command", "work", "--format", "json"]).code(64);
    assert_eq!(refusal(&ran), "session-path-escaped");
    let ran = home.ait(["list", "--format", "json"]).ok();
    assert!(envelope(&ran)["warnings"].to_string().contains(&agent.id), "{ran}");
    assert_eq!(data(&ran, "list").as_array().unwrap().len(), 1);
    home.ait(["delete", "work"]).ok();
    assert!(!folder.is_symlink() && home.store().exists(), "the link goes, and not what it leads to");
}

#[test]
fn of_one_that_is_stopped_by_its_record_no_server_is_asked() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "work");
    edit(&home, |records| {
        records.iter_mut().for_each(|record| record["state"] = "frozen".into());
    });
    let asked = home.root().join("asked");
    home.wrap_tmux(&format!("touch '{}'; exit 42", asked.display()));
    let seen = data(&home.ait(["glance", "work", "--format", "json"]).ok(), "glance");
    assert_eq!((&seen["status"], &seen["tail"]), (&"stopped".into(), &"".into()), "{seen:#}");
    assert!(!asked.exists(), "one that hangs would be waited for");
    home.unwrap_tmux();
}

#[test]
fn a_server_that_does_not_answer_is_unknown() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "work");
    home.wrap_tmux("echo 'no words' >&2; exit 42");
    let ran = home.ait(["list", "--format", "json"]).ok();
    let listed = data(&ran, "list");
    assert_eq!(listed[0]["status"], "unknown", "{listed:#}");
    assert!(listed[0].get("last_terminal_activity_at").is_none(), "{listed:#}");
    home.unwrap_tmux();
}

#[test]
fn a_session_is_told_without_its_windows_own_word() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "work");
    home.wrap_tmux("case \"$*\" in *display-message*) exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"");
    let seen = data(&home.ait(["command", "work", "--format", "json"]).ok(), "command");
    assert_eq!(seen["status"], "running", "{seen:#}");
    // a server that lists its windows without the time of their last output
    home.wrap_tmux("out=$(\"$TMUX_REAL\" \"$@\") || exit\necho \"$out\" | sed 's/ [0-9]* \\$/ x $/'");
    let seen = data(&home.ait(["command", "work", "--format", "json"]).ok(), "command");
    home.unwrap_tmux();
    assert_eq!(seen["status"], "running", "{seen:#}");
    assert!(seen.get("last_terminal_activity_at").is_none(), "{seen:#}");
}

/// How often tmux is asked, whatever the number of sessions, and what is opened.
#[test]
fn a_list_is_one_look() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Agent::start(&tmux, "main", "work");
    name(&home, &agent.id, "s");
    edit(&home, |records| {
        let first = records[0].clone();
        for number in 0..999u32 {
            let mut copy = first.clone();
            copy["id"] = format!("{:08x}", 0xabc0_0000u32 + number).into();
            copy["window_slot"] = (number + 10).into();
            copy["ait"]["session"]["name"] = format!("s{number}").into();
            records.push(copy);
        }
    });
    let asked = Asked::of(&home);
    let listed = data(&home.ait(["list", "--format", "json"]).ok(), "list");
    assert_eq!(listed.as_array().unwrap().len(), 1000);
    assert!(listed.as_array().unwrap().iter().all(|one| one["status"] == "running"), "{listed:#}");
    assert_eq!(asked.calls().len(), 1, "{:?}", asked.calls());
    drop(asked);
    if let Err(why) = proc::strace() {
        return not_run(&why);
    }
    let trace = home.root().join("trace");
    let mut traced = home.command("strace");
    traced.args(["-f", "-qq", "-e", "trace=file", "-o"]).arg(&trace).args([AIT, "list", "--format", "json"]);
    Ran::run(&mut traced).ok();
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains(home.store().to_str().unwrap()), "the store is read");
    let own: Vec<&str> = trace.lines().filter(|call| call.contains("/sessions/")).collect();
    assert_eq!(own, [""; 0], "no session's own file is looked at");
}

#[test]
fn completions_and_pages_come_out_of_the_program() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.ait(["completions", shell]).ok().text();
        assert!(script.contains("show") && script.contains("ait"), "{shell}");
    }
    assert!(home.ait(["man"]).ok().text().contains(".TH ait 1"));
    let folder = home.root().join("man1");
    std::fs::create_dir(&folder).unwrap();
    home.ait(["man", "--dir", folder.to_str().unwrap()]).ok();
    let page = std::fs::read_to_string(folder.join("ait-list.1")).unwrap();
    assert!(page.contains("ait\\-list") || page.contains("ait-list"), "{page}");
    assert!(!folder.join("ait-hold.1").exists(), "hidden commands have no page");
    let checked =
        Ran::run(home.command("bash").args(["-n", "-c", &home.ait(["completions", "bash"]).ok().text()]));
    checked.ok();
}
