//! Called as `agent-session`: that command line's names, schemas, commands and exit codes.

use std::process::Command;

use serde_json::Value;

use super::{Asked, data, envelope, habits};
use crate::support::{AIT, Home, Ran};

#[track_caller]
pub(super) fn called(home: &Home, words: &[&str]) -> Ran {
    home.agent_program("claude");
    called_as_it_is(home, words)
}

/// The same with the agents that the story has put there.
#[track_caller]
fn called_as_it_is(home: &Home, words: &[&str]) -> Ran {
    Ran::run(&mut call(home, words))
}

fn call(home: &Home, words: &[&str]) -> Command {
    let link = home.bin().join("agent-session");
    let _ = std::os::unix::fs::symlink(AIT, &link);
    let mut command = home.command(link);
    command.args(words).current_dir(home.project("alpha"));
    command
}

#[track_caller]
fn told(ran: &Ran, command: &str) -> Value {
    let envelope = envelope(ran);
    assert_eq!(envelope["schema_version"], format!("cli.agent-session.{command}.v1"), "{envelope:#}");
    envelope["data"].clone()
}

#[test]
fn wrong_words_have_its_schema_and_its_codes() {
    let home = Home::new();
    for (words, code) in [
        (&["list", "--format", "json", "--bad"][..], "parse-error"),
        (&["freeze", "--format", "json"], "unknown-subcommand"),
        (&["--host=-oX", "list", "--format", "json"], "invalid-host"),
    ] {
        let ran = called(&home, words).code(64);
        told(&ran, "error");
        assert_eq!(envelope(&ran)["error"]["code"], code, "{ran}");
    }
    assert!(called(&home, &[]).code(2).errors().contains("Usage: agent-session"));
    assert!(called(&home, &["completion", "bash"]).ok().text().contains("agent-session"));
}

#[test]
fn without_a_home_it_says_so_unless_its_folder_is_named() {
    let home = Home::new();
    let named = home.home().join("named");
    let named = ["--state-dir", named.to_str().unwrap()];
    for (more, set, code) in [
        (&[][..], None, 1),
        (&[], Some(("XDG_STATE_HOME", "relative")), 1),
        (&[], Some(("XDG_STATE_HOME", "/nowhere")), 0),
        (&[], Some(("AGENT_SESSION_STATE_DIR", "/nowhere")), 0),
        (&[], Some(("AGENT_SESSION_STATE_DIR", "~/of_nobody")), 1),
        (&named, None, 0),
    ] {
        let mut list = call(&home, &[&["list", "--format", "json"], more].concat());
        list.env_remove("HOME").env_remove("XDG_STATE_HOME");
        // nor is anything read in the home of the user who runs this
        list.env("AITASKS_AGENT_SESSIONS_FILE", home.store()).env("AITASKS_FROZEN_DIR", home.home());
        list.envs(set);
        let ran = Ran::run(&mut list).code(code);
        if code == 0 {
            told(&ran, "list");
        } else {
            told(&ran, "error");
            assert_eq!(envelope(&ran)["error"]["code"], "home-unavailable", "{ran}");
        }
    }
}

#[test]
fn its_help_and_its_completions_are_of_what_it_has() {
    let home = Home::new();
    let help = called(&home, &["--help"]).ok().text();
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for command in &listed {
        let own = called(&home, &[command, "--help"]).ok().text();
        assert!(!own.split_whitespace().any(|word| word.trim_start_matches(['(', '`']) == "ait"), "{own}");
        let kept_apart = !["completions", "activity"].contains(command);
        assert_eq!(own.contains("--state-dir"), kept_apart, "{own}");
    }
    assert_eq!(listed.len(), 12, "{listed:?}");
    assert!(!listed.contains(&"freeze"), "{listed:?}");
    for word in ["Examples:\n", "Environment:\n", "AGENT_SESSION_STATE_DIR"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let script = called(&home, &["completion", "bash"]).ok().text();
    assert!(!script.contains("freeze") && script.contains("--state-dir"), "{script}");
}

#[test]
fn a_session_of_ours_goes_to_its_project_not_to_what_is_another_ones_alone() {
    let home = Home::new();
    let _tmux = habits(&home);
    let apart = told(&called(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
    let ours = |id: &str| {
        let words = ["start", "--agent", "claude", "--id", id, "--format", "json"];
        let ran = crate::sessions::ait(&home, &words).ok();
        data(&ran, "start")["tmux_session"].as_str().unwrap().to_owned()
    };
    assert!(apart["tmux_session"].as_str().unwrap().starts_with("hs-claude-"), "{apart:#}");
    assert_eq!([ours("one"), ours("two")], ["alpha", "alpha"]);
}

#[test]
fn a_session_is_told_and_meant_by_its_name() {
    let home = Home::new();
    let tmux = habits(&home);
    let words = ["--host", "box", "start", "--agent", "claude", "--title", "Fix API", "--format", "json"];
    let seen = told(&called(&home, &words).ok(), "start");
    let id = seen["id"].as_str().unwrap();
    assert!(id.ends_with("-claude-fix-api"), "{seen:#}");
    let session = format!("hs-claude-{id}");
    assert_eq!(seen["tmux_session"], session.as_str(), "{seen:#}");
    assert_eq!(seen["attach_command"], format!("tmux attach -t {session}"), "{seen:#}");
    assert!(seen["ssh_attach_command"].as_str().unwrap().starts_with("ssh -t box "), "{seen:#}");
    for absent in ["record", "state", "location", "name"] {
        assert!(seen.get(absent).is_none(), "{absent}: {seen:#}");
    }
    assert!(tmux.ok(["list-sessions", "-F", "#{session_name}"]).lines().any(|name| name == session));
    // both faces know it, each by its own id
    let ours = data(&home.ait(["show", id, "--format", "json"]).ok(), "show");
    assert_eq!(ours["name"], id, "{ours:#}");
    // by a beginning of what it was told as, and of nothing else
    let meant = |word: &str| called(&home, &["command", word, "--format", "json"]);
    assert_eq!(told(&meant(&id[..17]).ok(), "command")["id"], id);
    for other in [&ours["id"].as_str().unwrap()[..7], "Fix"] {
        assert_eq!(envelope(&meant(other).code(1))["error"]["code"], "session-not-found", "{other}");
        data(&home.ait(["show", other, "--format", "json"]).ok(), "show");
    }
    let listed = told(&called(&home, &["list", "--format", "json"]).ok(), "list");
    assert_eq!(listed[0]["id"], id, "{listed:#}");
    // two sessions of one title are two names
    let other = told(&called(&home, &words).ok(), "start");
    assert_ne!(other["id"], seen["id"]);
    let deleted = told(&called(&home, &["delete", id, "--format", "json"]).ok(), "delete");
    assert_eq!((&deleted["id"], &deleted["killed"]), (&seen["id"], &true.into()), "{deleted:#}");
    let left = told(&called(&home, &["list", "--format", "json"]).ok(), "list");
    assert_eq!(left.as_array().unwrap().len(), 1, "{left:#}");
    assert_eq!((&left[0]["id"], &left[0]["status"]), (&other["id"], &"running".into()));
}

/// An agent that writes down its words and its variables, and waits.
fn told_agent(home: &Home, name: &str) {
    home.script(
        name,
        &format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit\nprintf '%s\\n' \"$@\" > '{0}/{name}.words'\nenv > '{0}/{name}.env'\n\
             printf '\\033]0;✓ x\\007  >_ OpenAI Codex\\n❯ \\n› \\n? for shortcuts\\n'\ncat\n",
            home.root().display()
        ),
    );
}

#[test]
fn its_three_agents_start_with_its_words() {
    let home = Home::new();
    let tmux = habits(&home);
    let asked = Asked::of(&home);
    let cwd = home.project("alpha").display().to_string();
    let state = home.home().join(".local/state/ait").display().to_string();
    for (agent, own) in [
        ("codex", vec!["--no-daemon", "--cd", &cwd, "--no-alt-screen"]),
        ("claude", vec!["--session-id", "ID", "--name", "Fix API"]),
        ("hermes", vec!["chat"]),
    ] {
        told_agent(&home, agent);
        asked.forget();
        let words = [
            "start",
            "--agent",
            agent,
            "--title",
            "Fix API",
            "--agent-arg",
            "a; $(x)",
            "--agent-arg=b;",
            "--format",
            "json",
        ];
        let seen = told(&called_as_it_is(&home, &words).ok(), "start");
        let id = seen["id"].as_str().unwrap();
        let record =
            home.records().into_iter().find(|record| record["ait"]["session"]["name"] == id).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let conversation = text(&record["codeagent_session_id"]);
        let own: Vec<String> = own
            .iter()
            .map(|word| if *word == "ID" { conversation.clone() } else { (*word).to_owned() })
            .collect();
        let own: Vec<String> = own.into_iter().chain(["a; $(x)".to_owned(), "b;".to_owned()]).collect();
        let heard = std::fs::read_to_string(home.root().join(format!("{agent}.words"))).unwrap();
        assert_eq!(heard.lines().collect::<Vec<_>>(), own, "{agent}");
        // one command of tmux, word by word, behind the socket
        let [call] = &asked.with("new-session")[..] else { panic!("{agent}: {:#?}", asked.calls()) };
        let begin = call.iter().position(|word| word == "new-session").unwrap();
        let session = format!("hs-{agent}-{id}");
        let launch = text(&record["ait"]["runtime_id"]);
        let variables = [
            format!("AGENT_SESSION_ID={id}"),
            format!("AGENT_SESSION_STATE_DIR={state}"),
            format!("AGENT_SESSION_RUNTIME_ID={launch}"),
        ];
        let mut wanted = vec!["new-session", "-d", "-s", &session, "-c", &cwd];
        wanted.extend(variables.iter().flat_map(|variable| ["-e", variable]));
        wanted.extend(["-P", "-F"]);
        assert_eq!(call[begin..begin + wanted.len()], wanted, "{agent}");
        let rest = &call[begin + wanted.len() + 1..];
        assert_eq!((&*rest[0], &*rest[2]), ("--", "exec"), "{agent}: {rest:?}");
        let program = rest.iter().rposition(|word| word == "--").unwrap() + 1;
        let given: Vec<String> = own
            .iter()
            .map(|word| word.strip_suffix(';').map_or(word.clone(), |word| format!("{word}\\;")))
            .collect();
        assert_eq!((&*rest[program], &rest[program + 1..]), (agent, &given[..]));
        // the agent is told of itself, and so is whoever opens a window beside it
        let environment = std::fs::read_to_string(home.root().join(format!("{agent}.env"))).unwrap();
        for variable in &variables {
            assert!(environment.lines().any(|line| line == variable), "{agent}: {environment}");
            let name = variable.split('=').next().unwrap();
            assert_eq!(&tmux.ok(["show-environment", "-t", &format!("={session}"), name]), variable);
        }
        assert_eq!(
            tmux.ok(["list-windows", "-t", &format!("={session}"), "-F", "#{window_name}"]),
            "Fix API"
        );
    }
    drop(asked);
    let listed = told(&called(&home, &["list", "--format", "json"]).ok(), "list");
    let agents: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["agent"].as_str().unwrap()).collect();
    assert_eq!(agents.len(), 3, "{listed:#}");
    for word in ["gemini", "nobody", "Claude"] {
        let ran = called(&home, &["start", "--agent", word, "--format", "json"]).code(64);
        told(&ran, "error");
        assert_eq!(envelope(&ran)["error"]["code"], "parse-error", "{ran}");
    }
}

#[test]
fn a_conversation_comes_back_with_its_words() {
    let home = Home::new();
    let tmux = habits(&home);
    home.agent_program("codex");
    for (agent, method) in [("claude", "claude-explicit-session-id"), ("codex", "codex-session-meta")] {
        let own = ["--agent-arg=--model", "--agent-arg=some-model"];
        let words = ["start", "--agent", agent, "--id", agent, "--prompt", "one", "--format", "json"];
        let seen = told(&called(&home, &[&words[..], &own].concat()).ok(), "start");
        let resume = &seen["provider_resume"];
        let conversation = resume["session_id"].as_str().unwrap_or_else(|| panic!("{seen:#}")).to_owned();
        let cwd = home.project("alpha").display().to_string();
        let wanted = match agent {
            "claude" => vec!["--resume", &conversation],
            _ => vec!["resume", &conversation, "--cd", &cwd, "--no-alt-screen"],
        };
        assert_eq!((&resume["resume_args"], &resume["capture_method"]), (&wanted.into(), &method.into()));
        crate::support::wait_until("its turn", crate::support::DEADLINE, || {
            (home.turns(agent, &conversation) == 1).then_some(())
        });
        let launch = |home: &Home| {
            home.records().iter().find(|record| record["agent_kind"] == agent).unwrap()["ait"]["runtime_id"]
                .clone()
        };
        let before = launch(&home);
        let session = format!("hs-{agent}-{agent}");
        tmux.ok(["kill-session", "-t", &format!("={session}")]);
        crate::support::wait_until("it to be stopped", crate::support::DEADLINE, || {
            let seen = told(&called(&home, &["command", agent, "--format", "json"]).ok(), "command");
            (seen["status"] == "stopped").then_some(())
        });
        let asked = Asked::of(&home);
        let back = told(&called(&home, &["resume", agent, "--format", "json"]).ok(), "resume");
        assert_eq!(
            (&back["id"], &back["tmux_session"]),
            (&agent.into(), &session.as_str().into()),
            "{back:#}"
        );
        assert_eq!(back["provider_resume"]["session_id"], conversation.as_str());
        assert_ne!(launch(&home), before);
        let [call] = &asked.with("new-session")[..] else { panic!("{agent}: {:#?}", asked.calls()) };
        let told_of = format!("AGENT_SESSION_RUNTIME_ID={}", launch(&home).as_str().unwrap());
        assert!(call.contains(&told_of), "{call:?}");
        let program = call.iter().rposition(|word| word == "--").unwrap() + 1;
        let wanted = match agent {
            "claude" => vec!["--resume", &conversation, "--model", "some-model"],
            // Codex takes its options before the command
            _ => vec![
                "--no-daemon",
                "--cd",
                &cwd,
                "--no-alt-screen",
                "--model",
                "some-model",
                "resume",
                &conversation,
            ],
        };
        assert_eq!(
            (&*call[program], &call[program + 1..]),
            (agent, &wanted.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()[..])
        );
        assert_eq!(back["turn_state"]["phase"], "starting", "{back:#}");
        let record = home.records().into_iter().find(|record| record["agent_kind"] == agent).unwrap();
        assert_eq!(record["ait"]["generation"], 2, "{record:#}");
    }
}

#[test]
fn sessions_are_kept_apart_by_their_state_dir() {
    let home = Home::new();
    let _tmux = habits(&home);
    told_agent(&home, "hermes");
    let at = |dir: &str, words: &[&str]| {
        called(&home, &[&["--state-dir", dir], words, &["--format", "json"]].concat())
    };
    let start = ["start", "--agent", "claude", "--prompt", "P", "--id"];
    let one = told(&at("~/one", &[&start[..], &["a"]].concat()).ok(), "start");
    let two = told(
        &at(&home.root().join("x/../two/.").display().to_string(), &[&start[..], &["b"]].concat()).ok(),
        "start",
    );
    let folders = [home.home().join("one"), home.root().join("two")];
    for ((seen, id), folder) in [(&one, "a"), (&two, "b")].into_iter().zip(&folders) {
        let prompt = folder.join("sessions").join(id).join("prompt.md");
        assert_eq!(seen["prompt_file"], prompt.to_str().unwrap(), "{seen:#}");
        assert_eq!(std::fs::read_to_string(prompt).unwrap(), "P");
        let listed = told(&at(folder.to_str().unwrap(), &["list"]).ok(), "list");
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &id.into()), "{listed:#}");
    }
    // by its variable, which gives way to the option, and is none where it is blank
    let mut by_variable = home.command(home.bin().join("agent-session"));
    by_variable.args(["list", "--format", "json"]).env("AGENT_SESSION_STATE_DIR", &folders[0]);
    assert_eq!(told(&Ran::run(&mut by_variable).ok(), "list")[0]["id"], "a");
    by_variable.args(["--state-dir", folders[1].to_str().unwrap()]);
    assert_eq!(told(&Ran::run(&mut by_variable).ok(), "list")[0]["id"], "b");
    let mut blank = home.command(home.bin().join("agent-session"));
    blank.args(["list", "--format", "json"]).env("AGENT_SESSION_STATE_DIR", " ");
    assert_eq!(
        told(&Ran::run(&mut blank).ok(), "list").as_array().unwrap().len(),
        2,
        "all that the one store has"
    );
    // the other one's sessions are none of its business
    for words in [&["command", "b"][..], &["delete", "b"], &["send", "b", "--text", "x"], &["resume", "b"]] {
        let ran = at("~/one", words).code(1);
        assert_eq!(envelope(&ran)["error"]["code"], "session-not-found", "{words:?}: {ran}");
    }
    assert_eq!(called(&home, &["--state-dir", "/nowhere/at/all", "list"]).ok().text(), "no agent sessions");
    assert!(!std::path::Path::new("/nowhere").exists());
    // what belongs to it is told where it is looked for, and goes with it
    let deleted = told(&at("~/one", &["delete", "a"]).ok(), "delete");
    assert_eq!(deleted["session_dir"], folders[0].join("sessions/a").to_str().unwrap());
    assert_eq!(std::fs::read_dir(folders[0].join("sessions")).unwrap().count(), 0);
    assert!(folders[1].join("sessions/b/prompt.md").exists());
}

#[test]
fn an_agent_tells_of_itself_by_what_it_was_told() {
    let home = Home::new();
    let _tmux = habits(&home);
    told_agent(&home, "hermes");
    let folder = home.root().join("state");
    let words = ["start", "--agent", "hermes", "--state-dir", folder.to_str().unwrap(), "--format", "json"];
    let seen = told(&called_as_it_is(&home, &words).ok(), "start");
    assert_eq!(seen["turn_state"]["phase"], "starting", "{seen:#}");
    let environment = std::fs::read_to_string(home.root().join("hermes.env")).unwrap();
    let variable = |name: &str| {
        let line = environment.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{name}: {environment}")).to_owned()
    };
    let event = serde_json::json!({
        "schema_version": "agent-session.turn-event.v1", "event_id": "e1", "provider": "hermes", "kind": "turn_started",
        "confidence": "observed", "runtime_id": variable("AGENT_SESSION_RUNTIME_ID"),
    });
    let mut tell = home.command(home.bin().join("agent-session"));
    tell.args(["activity", "event", &variable("AGENT_SESSION_ID"), "--stdin", "--format", "json"]);
    tell.env("AGENT_SESSION_STATE_DIR", variable("AGENT_SESSION_STATE_DIR"));
    let said = told(&Ran::feed(&mut tell, Some(event.to_string().as_bytes())).ok(), "activity-event");
    assert_eq!((&said["id"], &said["turn_state"]["phase"]), (&seen["id"], &"working".into()), "{said:#}");
}

/// `hs-claude-x-1` lives, `hs-claude-x` does not: nothing that is meant for the one reaches the other.
#[test]
fn one_whose_name_only_begins_alike_is_left_alone() {
    let home = Home::new();
    let tmux = habits(&home);
    let start = |id: &str| {
        told(&called(&home, &["start", "--agent", "claude", "--id", id, "--format", "json"]).ok(), "start")
    };
    let (_, stays) = (start("x"), start("x-1"));
    let panes =
        || tmux.ok(["list-panes", "-t", "=hs-claude-x-1", "-F", "#{pane_id} #{pane_pid} #{pane_dead}"]);
    let before = panes();
    let json = |words: &[&str]| called(&home, &[words, &["--format", "json"]].concat());
    tmux.ok(["kill-session", "-t", "=hs-claude-x"]);
    crate::support::wait_until("it to be stopped", crate::support::DEADLINE, || {
        (told(&json(&["command", "x"]).ok(), "command")["status"] == "stopped").then_some(())
    });
    let glance = told(&json(&["glance", "x"]).ok(), "glance");
    assert_eq!((&glance["status"], &glance["tail"]), (&"stopped".into(), &"".into()), "{glance:#}");
    for words in [&["--text", "for nobody", "--key", "enter"][..], &["--key", "c-c"]] {
        let ran = json(&[&["send", "x"], words].concat()).code(1);
        told(&ran, "send");
        assert_eq!(envelope(&ran)["error"]["code"], "session-not-running", "{ran}");
    }
    let deleted = told(&json(&["delete", "x"]).ok(), "delete");
    assert_eq!((&deleted["id"], &deleted["killed"]), (&"x".into(), &false.into()), "{deleted:#}");
    assert_eq!(panes(), before, "its pane and its process are the same");
    let now = told(&json(&["glance", "x-1"]).ok(), "glance");
    assert_eq!((&now["id"], &now["status"]), (&stays["id"], &"running".into()), "{now:#}");
    assert!(!now["tail"].as_str().unwrap().contains("for nobody"), "{now:#}");
    assert_eq!(now["updated_at"], stays["updated_at"]);
    // what is sent to the one that lives says what was sent, and nothing of the text
    super::edit(&home, |records| {
        for at in ["started_at", "state_at"] {
            records[0][at] = "2026-01-01T00:00:00Z".into();
        }
    });
    let before = told(&json(&["command", "x-1"]).ok(), "command")["updated_at"].clone();
    let words = ["send", "x-1", "--text", "for the one", "--key", "enter", "--key", "c-c"];
    assert_eq!(called(&home, &words).ok().text(), "sent text + keys [enter c-c] to x-1");
    let after = told(&json(&["command", "x-1"]).ok(), "command")["updated_at"].clone();
    assert!(after.as_str() > before.as_str(), "{before} {after}");
}

#[test]
fn the_tmux_that_was_named_is_run() {
    let home = Home::new();
    let tmux = habits(&home);
    home.wrap_tmux("echo 'the wrong one' >&2; exit 1");
    let real = crate::support::tmux::real_binary();
    let mine = home.script("mine", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.display()));
    let words = ["start", "--agent", "claude", "--id", "s", "--prompt", "one", "--format", "json"];
    called(&home, &words).code(69);
    assert!(home.records().is_empty());
    let mine = ["--tmux-bin", mine.to_str().unwrap()];
    let seen = told(&called(&home, &[&words[..], &mine].concat()).ok(), "start");
    crate::support::wait_until("its turn", crate::support::DEADLINE, || {
        (home.turns("claude", seen["provider_resume"]["session_id"].as_str().unwrap()) == 1).then_some(())
    });
    for words in [&["glance", "s"][..], &["logs", "s"], &["send", "s", "--key", "escape"]] {
        told(&called(&home, &[words, &mine, &["--format", "json"]].concat()).ok(), words[0]);
    }
    tmux.ok(["kill-session", "-t", "=hs-claude-s"]);
    crate::support::wait_until("it to be stopped", crate::support::DEADLINE, || {
        let mut command = home.command(home.bin().join("agent-session"));
        // by its variable, and by a name on PATH
        command.args(["command", "s", "--format", "json"]).env("AGENT_SESSION_TMUX_BIN", "mine");
        (told(&Ran::run(&mut command).ok(), "command")["status"] == "stopped").then_some(())
    });
    told(&called(&home, &[&["resume", "s", "--format", "json"][..], &mine].concat()).ok(), "resume");
    told(&called(&home, &[&["delete", "s", "--format", "json"][..], &mine].concat()).ok(), "delete");
    assert!(home.records().is_empty());
    let none = called(&home, &["start", "--agent", "claude", "--tmux-bin", "/no/such/tmux"]).code(69);
    assert!(none.errors().starts_with("error: "), "{none}");
}
