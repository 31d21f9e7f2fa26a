//! The hook as providers run it: from inside an agent's pane, its payload on standard input.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Home, Tmux, wait_until};

const ONE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const TWO: &str = "11111111-2222-4333-8444-555555555555";

/// A shell that goes by a provider's name, in a pane of its own, and does what it is told: it is an agent to whoever looks at
/// processes, and its hooks are run from inside it.
struct Told<'a> {
    tmux: &'a Tmux,
    pane: Pane,
    steps: std::cell::Cell<usize>,
}

impl<'a> Told<'a> {
    fn start(tmux: &'a Tmux, provider: &str, window: &str) -> Told<'a> {
        let loops = r#"echo ready; while read -r line; do . "$line"; done"#;
        let shell = format!("exec -a {provider} bash -c '{loops}'");
        let pane = tmux.window("main", window, &tmux.home().project("alpha"), &["bash", "-c", &shell]);
        wait_until("the agent to be ready", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("ready").then_some(())
        });
        Told { tmux, pane, steps: std::cell::Cell::new(0) }
    }

    /// Does `script` inside the agent, waits for its end, and gives what it printed.
    fn does(&self, script: &str) -> String {
        let step = self.steps.get() + 1;
        self.steps.set(step);
        let stem = self.tmux.home().root().join(format!("step{}-{step}", self.pane.pid));
        let (out, done) = (stem.with_extension("out"), stem.with_extension("done"));
        fs::write(
            &stem,
            format!("{{ {script}\n}} >{} 2>&1 </dev/null\necho >{}\n", out.display(), done.display()),
        )
        .unwrap();
        self.tmux.ok(["send-keys", "-t", &self.pane.id, "-l", stem.to_str().unwrap()]);
        self.tmux.ok(["send-keys", "-t", &self.pane.id, "Enter"]);
        wait_until("the agent to have done it", DEADLINE, || done.exists().then_some(()));
        fs::read_to_string(out).unwrap()
    }

    /// Runs a hook with this payload; it must succeed and be silent.
    #[track_caller]
    fn hook(&self, event: &str, payload: &Value) {
        self.hook_of("claude", event, payload);
    }

    #[track_caller]
    fn hook_of(&self, provider: &str, event: &str, payload: &Value) {
        let said = self.does(&format!("{}; echo $?", hook(provider, event, payload)));
        assert_eq!(said, "0\n", "a hook says nothing and succeeds");
    }
}

/// The command line of a hook, its payload piped in.
fn hook(provider: &str, event: &str, payload: &Value) -> String {
    format!("printf '%s' '{payload}' | {AIT} hook {event} --provider {provider}")
}

fn start(id: &str) -> Value {
    json!({"session_id": id, "transcript_path": format!("/t/{id}.jsonl"), "cwd": "/w", "hook_event_name": "SessionStart", "source": "startup"})
}

fn log(home: &Home) -> String {
    fs::read_to_string(home.home().join(".local/state/ait/hook.log")).unwrap_or_default()
}

fn spool(home: &Home) -> Vec<PathBuf> {
    let folder = home.home().join(".local/state/ait/spool");
    fs::read_dir(folder).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn turn(home: &Home, id: &str) -> Value {
    let path = home.home().join(format!(".local/state/ait/sessions/{id}/turn.json"));
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn only(home: &Home) -> Value {
    let mut records = home.records();
    assert_eq!(records.len(), 1, "{records:#?}\n{}", log(home));
    records.remove(0)
}

#[test]
fn a_start_makes_the_record_of_its_agent_and_clear_gives_it_another_conversation() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let record = only(&home);
    let id = record["id"].as_str().unwrap().to_owned();
    assert_eq!(record["codeagent_session_id"], ONE, "{record:#}");
    assert_eq!(record["transcript_path"], format!("/t/{ONE}.jsonl"));
    assert_eq!(record["pane_id"], agent.pane.id.as_str());
    assert_eq!(record["window"], "work");
    assert_eq!(record["root"], home.project("alpha").to_str().unwrap());
    assert_eq!(record["ait"]["origin"], "hook");
    assert_eq!(record["ait"]["agent"]["pid"], agent.pane.pid);
    assert_eq!(
        tmux.format(&agent.pane.id, "#{@aitask_record}|#{@aitask_agent_session}"),
        format!("{id}|{ONE}")
    );
    assert_eq!(turn(&home, &id)["state"], "starting");

    let before = fs::read(home.store()).unwrap();
    agent.hook("UserPromptSubmit", &json!({"session_id": ONE, "prompt": "x"}));
    assert_eq!(turn(&home, &id)["state"], "working");
    agent.hook("Stop", &json!({"session_id": ONE, "background_tasks": [{"id": 1}]}));
    let told = turn(&home, &id);
    assert_eq!(
        (&told["state"], &told["background"], &told["source"]),
        (&json!("waiting"), &json!(true), &json!("hook"))
    );
    assert_eq!(fs::read(home.store()).unwrap(), before, "a turn changes no record");

    agent.hook("SessionStart", &json!({"session_id": TWO, "source": "clear"}));
    let record = only(&home);
    assert_eq!(record["codeagent_session_id"], TWO);
    assert_eq!(record["transcript_path"], "", "the file of the conversation before is not this one's");
    assert_eq!(record["ait"]["earlier"], json!([ONE]), "the one before can still be found");
    assert_eq!(tmux.format(&agent.pane.id, "#{@aitask_agent_session}"), TWO);
    // a late word of the conversation before changes nothing
    agent.hook("SessionEnd", &json!({"session_id": ONE, "reason": "clear"}));
    agent.hook("Stop", &json!({"session_id": ONE}));
    assert_eq!(only(&home)["codeagent_session_id"], TWO);
    assert_eq!(spool(&home), Vec::<PathBuf>::new());
}
