//! Which conversation a session has: told by its agent's own process, never guessed by folder and time.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{ait, data, edit, habits, refusal};
use crate::support::fake::new_id;
use crate::support::tmux::Start;
use crate::support::{DEADLINE, Fake, Home, Ran, Tmux, wait_until};

/// A rollout that nobody has open, of a conversation begun now in the project `alpha`.
fn rollout(home: &Home, source: &str) -> (String, PathBuf) {
    let id = new_id();
    let now = jiff::Timestamp::now();
    let folder = home.home().join(".codex/sessions").join(now.strftime("%Y/%m/%d").to_string());
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-{}-{id}.jsonl", now.strftime("%Y-%m-%dT%H-%M-%S")));
    let meta = json!({
        "timestamp": now.to_string(),
        "type": "session_meta",
        "payload": {
            "id": id, "timestamp": now.to_string(), "cwd": home.project("alpha"), "source": source,
            "originator": "codex-tui", "cli_version": "0.171.0",
        },
    });
    fs::write(&path, format!("{meta}\n")).unwrap();
    (id, path)
}

#[track_caller]
fn started(home: &Home, words: &[&str]) -> Value {
    home.agent_program("codex");
    let all = [&["start", "--agent", "codex", "--format", "json"], words].concat();
    data(&ait(home, &all).ok(), "start")
}

#[track_caller]
fn shown(home: &Home, id: &str) -> Value {
    data(&ait(home, &["show", id, "--format", "json"]).ok(), "show")
}

#[track_caller]
fn listed(home: &Home) -> Value {
    data(&ait(home, &["list", "--format", "json"]).ok(), "list")[0].clone()
}

/// The pane of the session `word` as a stand-in to speak to.
fn agent(home: &Home, tmux: &Tmux, word: &str) -> Fake {
    let pane = shown(home, word)["location"]["pane"].as_str().unwrap().to_owned();
    let pane = tmux.panes().into_iter().find(|one| one.id == pane).unwrap();
    Fake::of(home, "codex", pane, &home.project("alpha"))
}

#[test]
fn the_conversation_of_a_codex_is_the_one_it_holds_open() {
    let home = Home::new();
    let tmux = habits(&home);
    // begun in the same folder, before and at the same time
    let (other, _) = rollout(&home, "cli");
    let seen = started(&home, &["--id", "c", "--prompt", "one"]);
    let resume = &seen["provider_resume"];
    let id =
        resume["session_id"].as_str().unwrap_or_else(|| panic!("known when it is told: {seen:#}")).to_owned();
    assert_ne!(id, other);
    assert_eq!(seen["resumable"], true, "{seen:#}");
    assert_eq!(agent(&home, &tmux, "c").conversation(), id);
    rollout(&home, "cli");
    assert_eq!(listed(&home)["provider_resume"]["session_id"], id.as_str());
    assert_eq!(home.records()[0]["codeagent_session_id"], id.as_str());
}

#[test]
fn a_conversation_that_nobody_holds_open_is_nobodys() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = started(&home, &["--id", "c"]);
    assert_eq!((&seen["resumable"], &seen["agent"]), (&false.into(), &"codex".into()), "{seen:#}");
    // one new conversation in its folder, then a part of another one, then one whose head is longer than a page
    for (source, more) in [("cli", 0), ("subagent", 0), ("cli", 70_000)] {
        let (_, path) = rollout(&home, source);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(
            &path,
            text.replace("\"cli_version\"", &format!("\"{}\":1,\"cli_version\"", "x".repeat(more))),
        )
        .unwrap();
        assert_eq!(listed(&home)["resumable"], false, "{source} {more}");
        let one = shown(&home, "c");
        assert_eq!((&one["resumable"], one.get("provider_resume")), (&false.into(), None), "{one:#}");
    }
    assert_eq!(home.records()[0]["codeagent_session_id"], "", "not even written down");
    // what its own process opens later is noted when somebody asks, and by a send
    let codex = agent(&home, &tmux, "c");
    codex.prompt(&tmux, "hello");
    let id = codex.conversation();
    assert_eq!(shown(&home, "c")["provider_resume"]["session_id"], id.as_str());
}

#[test]
fn a_first_prompt_that_is_sent_makes_a_session_known() {
    let home = Home::new();
    let tmux = habits(&home);
    started(&home, &["--id", "c"]);
    let codex = agent(&home, &tmux, "c").up(&tmux);
    edit(&home, |records| {
        for at in ["started_at", "state_at"] {
            records[0][at] = "2026-01-01T00:00:00Z".into();
        }
    });
    let before = shown(&home, "c")["updated_at"].clone();
    ait(&home, &["send", "c", "--text", "hello", "--submit"]).ok();
    wait_until("the conversation's file", DEADLINE, || codex.file());
    let now = listed(&home);
    assert_eq!(now["provider_resume"]["session_id"], codex.conversation().as_str(), "{now:#}");
    assert!(now["updated_at"].as_str() > before.as_str(), "{before} {now:#}");
}

#[test]
fn only_the_exact_conversation_of_the_right_kind_is_resumed() {
    let home = Home::new();
    let tmux = habits(&home);
    let words = ["start", "--agent", "claude", "--id", "s", "--prompt", "one", "--format", "json"];
    let seen = data(&ait(&home, &words).ok(), "start");
    let own = seen["provider_resume"]["session_id"].as_str().unwrap().to_owned();
    wait_until("its turn", DEADLINE, || (home.turns("claude", &own) == 1).then_some(()));
    let pane = seen["location"]["pane"].as_str().unwrap().to_owned();
    let process =
        crate::support::proc::Process::of(seen["location"]["pid"].as_u64().unwrap() as u32).unwrap();
    tmux.ok(["kill-pane", "-t", &pane]);
    assert!(process.dies(DEADLINE));
    let kept = home.records()[0].clone();
    let panes = tmux.panes();
    let put = |change: &dyn Fn(&mut Value)| {
        edit(&home, |records| {
            records[0] = kept.clone();
            change(&mut records[0]);
        });
    };
    // another provider's, one that nobody ever had, none at all
    put(&|record| record["agent_kind"] = "codex".into());
    assert_eq!(
        refusal(&ait(&home, &["resume", "s", "--format", "json"]).code(65)),
        "session-provider-mismatch"
    );
    put(&|record| record["codeagent_session_id"] = new_id().into());
    assert_eq!(refusal(&ait(&home, &["resume", "s", "--format", "json"]).code(65)), "session-not-resumable");
    put(&|record| record["codeagent_session_id"] = "".into());
    assert_eq!(refusal(&ait(&home, &["resume", "s", "--format", "json"]).code(65)), "session-not-resumable");
    assert_eq!(listed(&home)["resumable"], false);
    assert_eq!(tmux.panes(), panes, "nothing was started");
    // words that choose another one are not given to it again, wherever they came from
    put(&|record| {
        let argv = record["ait"]["argv"].as_array_mut().unwrap();
        argv.extend(["--continue", "--resume", &new_id(), "--model", "opus"].map(Value::from));
    });
    let back = data(&ait(&home, &["resume", "s", "--format", "json"]).ok(), "resume");
    assert_eq!(back["provider_resume"]["session_id"], own.as_str());
    let line = fs::read(format!("/proc/{}/cmdline", back["location"]["pid"])).unwrap();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    assert!(line.contains(&format!("--resume {own} ")) && line.contains("--model opus"), "{line}");
    assert!(!line.contains("--continue") && line.matches("--resume").count() == 1, "{line}");
}

#[test]
fn an_agent_has_the_account_of_whoever_starts_it_and_not_the_servers() {
    let home = Home::new();
    let [of_server, of_caller] = ["second", "third"].map(|name| {
        let folder = home.home().join("accounts").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder.to_string_lossy().into_owned()
    });
    let environment = vec![("CLAUDE_CONFIG_DIR".to_owned(), of_server)];
    let _tmux = Tmux::start_with(&home, Start { environment, ..Start::default() });
    home.agent_program("claude");
    // what the agent has, and what its record says
    let account = |id: &str, of_caller: Option<&str>| {
        let mut command = home.ait_command(["start", "--agent", "claude", "--id", id, "--format", "json"]);
        command
            .current_dir(home.project("alpha"))
            .envs(of_caller.map(|folder| ("CLAUDE_CONFIG_DIR", folder)));
        let session = data(&Ran::run(&mut command).ok(), "start");
        let environment = fs::read(format!("/proc/{}/environ", session["location"]["pid"])).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let has = environment.split('\0').find_map(|one| one.strip_prefix("CLAUDE_CONFIG_DIR="));
        let kept =
            home.record(session["id"].as_str().unwrap()).unwrap()["ait"]["env"]["CLAUDE_CONFIG_DIR"].clone();
        (has.map(str::to_owned), kept)
    };
    assert_eq!(account("own", Some(&of_caller)), (Some(of_caller.clone()), json!(of_caller)));
    assert_eq!(account("plain", None), (None, Value::Null));
}
