//! Called as `agent-session`: that command line's names, schemas, commands and exit codes.

use serde_json::Value;

use super::{data, envelope, habits};
use crate::support::{AIT, Home, Ran};

#[track_caller]
fn called(home: &Home, words: &[&str]) -> Ran {
    let link = home.bin().join("agent-session");
    let _ = std::os::unix::fs::symlink(AIT, &link);
    home.agent_program("claude");
    let mut command = home.command(link);
    command.args(words).current_dir(home.project("alpha"));
    Ran::run(&mut command)
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
