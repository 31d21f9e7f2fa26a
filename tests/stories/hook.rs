//! The hook as providers run it: from inside an agent's pane, its payload on standard input.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Home, Tmux, wait_until};

pub(crate) const ONE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
pub(crate) const TWO: &str = "11111111-2222-4333-8444-555555555555";

/// A shell that goes by a provider's name, in a pane of its own, and does what it is told: it is an agent to whoever looks at
/// processes, and its hooks are run from inside it.
pub(crate) struct Told<'a> {
    tmux: &'a Tmux,
    pub(crate) pane: Pane,
    steps: std::cell::Cell<usize>,
}

impl<'a> Told<'a> {
    pub(crate) fn start(tmux: &'a Tmux, provider: &str, window: &str) -> Told<'a> {
        let loops = r#"echo ready; while read -r line; do . "$line"; done"#;
        let shell = format!("exec -a {provider} bash -c '{loops}'");
        let pane = tmux.window("main", window, &tmux.home().project("alpha"), &["bash", "-c", &shell]);
        wait_until("the agent to be ready", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("ready").then_some(())
        });
        Told { tmux, pane, steps: std::cell::Cell::new(0) }
    }

    /// Does `script` inside the agent, waits for its end, and gives what it printed.
    pub(crate) fn does(&self, script: &str) -> String {
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
    pub(crate) fn hook(&self, event: &str, payload: &Value) {
        self.hook_of("claude", event, payload);
    }

    #[track_caller]
    pub(crate) fn hook_of(&self, provider: &str, event: &str, payload: &Value) {
        let said = self.does(&format!("{}; echo $?", hook(provider, event, payload)));
        assert_eq!(said, "0\n", "a hook says nothing and succeeds");
    }
}

/// The command line of a hook, its payload piped in.
pub(crate) fn hook(provider: &str, event: &str, payload: &Value) -> String {
    format!("printf '%s' '{payload}' | {AIT} hook {event} --provider {provider}")
}

pub(crate) fn start(id: &str) -> Value {
    json!({"session_id": id, "transcript_path": format!("/t/{id}.jsonl"), "cwd": "/w", "hook_event_name": "SessionStart", "source": "startup"})
}

pub(crate) fn log(home: &Home) -> String {
    fs::read_to_string(home.home().join(".local/state/ait/hook.log")).unwrap_or_default()
}

pub(crate) fn spool(home: &Home) -> Vec<PathBuf> {
    let folder = home.home().join(".local/state/ait/spool");
    fs::read_dir(folder).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// What the hooks said last of an agent's turn.
pub(crate) fn turn(home: &Home, id: &str) -> Value {
    let path = home.home().join(format!(".local/state/ait/sessions/{id}/activity.json"));
    let told: Value =
        fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let hook = &told["claims"]["hook"];
    json!({
        "state": hook["state"],
        "event": hook["event"],
        "background": hook["background"],
        "source": if hook.is_null() { Value::Null } else { json!("hook") },
        "open": told.get("open").cloned().unwrap_or_else(|| json!([])),
    })
}

pub(crate) fn only(home: &Home) -> Value {
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

/// What the record must say in the end, however the hook was hindered.
fn until_bound(home: &Home, conversation: &str) -> Value {
    home.store_until(&format!("a record with {conversation}"), |home| {
        home.records().into_iter().find(|record| record["codeagent_session_id"] == conversation)
    })
}

/// Holds the store's lock until it is dropped.
fn hold_lock(home: &Home) -> fs::File {
    let path = home.home().join(".config/aitasks/agent_sessions.json.lock");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    file
}

#[test]
fn an_id_told_while_the_store_is_locked_is_in_the_record_once_it_is_free() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let lock = hold_lock(&home);
    let other = Told::start(&tmux, "claude", "other");
    agent.hook("SessionStart", &json!({"session_id": TWO, "source": "clear"}));
    let third = "33333333-2222-4333-8444-555555555555";
    other.hook("SessionStart", &start(third));
    assert_eq!(spool(&home).len(), 2, "{}", log(&home));
    assert_eq!(only(&home)["codeagent_session_id"], ONE);
    drop(lock);
    // a writer of anything at all
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    home.ait(["record", "fill-task", &id, "--task-id", "7"]).ok();
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], TWO);
    assert_eq!(until_bound(&home, third)["pane_id"], other.pane.id.as_str());
    assert_eq!(spool(&home), Vec::<PathBuf>::new());
    assert_eq!(turn(&home, &id)["state"], "waiting", "its turn too");
}

#[test]
fn a_supervisor_drains_what_a_hook_could_not_write_as_soon_as_it_can() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    let _supervisor = crate::support::Supervisor::start(&home, &[&tmux]);
    let lock = hold_lock(&home);
    agent.hook("SessionStart", &start(ONE));
    assert_eq!(spool(&home).len(), 1, "{}", log(&home));
    drop(lock);
    assert_eq!(until_bound(&home, ONE)["pane_id"], agent.pane.id.as_str());
    wait_until("the spool to be empty", DEADLINE, || spool(&home).is_empty().then_some(()));
}

#[test]
fn a_corrupt_store_holds_up_no_hook_and_no_id() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let whole = fs::read(home.store()).unwrap();
    fs::write(home.store(), &whole[..whole.len() / 2]).unwrap();
    agent.hook("SessionStart", &json!({"session_id": TWO, "source": "resume"}));
    assert_eq!(spool(&home).len(), 1, "{}", log(&home));
    assert_eq!(fs::read(home.store()).unwrap(), &whole[..whole.len() / 2], "nothing is written over it");
    fs::write(home.store(), &whole).unwrap();
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    home.ait(["record", "fill-task", &id, "--task-id", "7"]).ok();
    assert_eq!(only(&home)["codeagent_session_id"], TWO);
}

#[test]
fn a_home_that_cannot_be_written_sends_the_id_to_the_runtime_folder() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    // what stands where the folders should be made: writable for nobody, root included
    let (config, state) = (home.home().join(".config/aitasks"), home.home().join(".local/state/ait"));
    for blocked in [&config, &state] {
        fs::write(blocked, "").unwrap();
    }
    agent.hook("SessionStart", &start(ONE));
    let kept = home.runtime().join("ait/spool");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    for blocked in [&config, &state] {
        fs::remove_file(blocked).unwrap();
    }
    agent.hook("Stop", &json!({"session_id": ONE}));
    assert_eq!(only(&home)["codeagent_session_id"], ONE);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
}

#[test]
fn the_last_resort_is_watched_and_each_store_has_its_own_there() {
    let (home, other) = (Home::new(), Home::new());
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    let above = PathBuf::from(format!("/tmp/ait-{}", rustix::process::getuid().as_raw()));
    let _ = fs::DirBuilder::new().mode(0o700).create(&above);
    let store: String =
        Sha256::digest(home.store().as_os_str().as_bytes())[..4].iter().map(|b| format!("{b:02x}")).collect();
    let folder = above.join(format!("spool-{store}"));
    let mut supervisor = crate::support::Supervisor::start(&home, &[&tmux]);
    let lock = hold_lock(&home);
    let line = hook("claude", "SessionStart", &start(ONE));
    agent.does(&format!("export XDG_STATE_HOME=/dev/null XDG_RUNTIME_DIR=/dev/null; {line}"));
    let kept =
        || -> Vec<PathBuf> { fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect() };
    assert_eq!(kept().len(), 1, "{}", log(&home));
    // a writer of another store
    let root = other.project("beta");
    let upsert = ["record", "upsert", "--window", "w", "--pane", "%1", "--pane-pid", "1", "--root"];
    other.ait(upsert.map(OsString::from).into_iter().chain([root.into()])).ok();
    assert_eq!(kept().len(), 1, "it is not another store's");
    drop(lock);
    assert_eq!(until_bound(&home, ONE)["pane_id"], agent.pane.id.as_str());
    wait_until("the spool to be empty", DEADLINE, || kept().is_empty().then_some(()));
    assert!(supervisor.stop().success());
    assert!(!folder.exists(), "nothing of it is left there");
}

#[test]
fn without_tmux_the_id_waits_until_the_agent_has_a_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    let said =
        agent.does(&format!("PATH=/nowhere; {}; echo $?", hook("claude", "SessionStart", &start(ONE))));
    assert_eq!(said, "0\n");
    assert_eq!(home.records().len(), 0);
    assert_eq!(spool(&home).len(), 1, "{}", log(&home));
    home.ait(["adopt", "--all"]).ok();
    assert_eq!(only(&home)["codeagent_session_id"], ONE);
    assert_eq!(spool(&home), Vec::<PathBuf>::new());
}

#[test]
fn a_nested_agent_a_strange_one_and_one_outside_tmux_are_not_heard() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let before = fs::read(home.store()).unwrap();
    // as a tool runs `claude -p`: with the environment of the agent, its pane included
    let inner = home.root().join("inner.sh");
    fs::write(&inner, format!("{}; echo $?\n", hook("claude", "SessionStart", &start(TWO)))).unwrap();
    let said = agent.does(&format!("setsid bash -c 'exec -a claude bash {}'", inner.display()));
    assert_eq!(said, "0\n");
    assert!(log(&home).contains("runs below another one"), "{}", log(&home));
    // a program that calls another provider's hooks
    agent.hook_of("codex", "SessionStart", &start(TWO));
    assert!(log(&home).contains("it is run by claude"), "{}", log(&home));
    agent.hook_of("nonsense", "SessionStart", &start(TWO));
    assert_eq!(fs::read(home.store()).unwrap(), before);
    assert_eq!(spool(&home), Vec::<PathBuf>::new());

    let elsewhere = Home::new();
    let inner = elsewhere.root().join("inner.sh");
    fs::write(&inner, format!("{}; echo $?\n", hook("claude", "SessionStart", &start(TWO)))).unwrap();
    let ran = crate::support::Ran::run(
        elsewhere.command("bash").arg("-c").arg(format!("exec -a claude bash {}", inner.display())),
    );
    assert_eq!((ran.text().as_str(), ran.errors().as_str()), ("0", ""));
    assert_eq!(fs::read_dir(elsewhere.home().join(".local/state")).unwrap().count(), 0, "no write at all");
}

#[test]
fn a_late_word_of_an_agent_that_is_gone_is_logged_and_nothing_else() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    // the agent's last child speaks when its agent is no more
    let late = home.root().join("late.sh");
    let go = home.root().join("go");
    fs::write(
        &late,
        format!(
            "until [ -e {} ]; do sleep 0.02; done\n{}\n",
            go.display(),
            hook("claude", "SessionStart", &start(TWO))
        ),
    )
    .unwrap();
    agent.does(&format!("setsid bash {} >/dev/null 2>&1 &", late.display()));
    tmux.ok(["send-keys", "-t", &agent.pane.id, "C-d"]);
    wait_until("the pane to be gone", DEADLINE, || {
        (!tmux.panes().iter().any(|pane| pane.id == agent.pane.id)).then_some(())
    });
    fs::write(&go, "").unwrap();
    wait_until("the late hook to be done", DEADLINE, || {
        home.processes()
            .iter()
            .all(|process| !crate::support::proc::command(process.pid).contains("late.sh"))
            .then_some(())
    });
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], ONE);
    assert_eq!(home.records().len(), 1);
}

#[test]
fn a_payload_that_never_ends_and_one_without_end_hold_up_nobody() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    let huge = format!(
        "{{ printf '{{\"session_id\":\"{ONE}\",\"source\":\"startup\",\"prompt\":\"'; head -c 5000000 /dev/zero | tr '\\0' x; printf '\"}}'; }} | {AIT} hook SessionStart --provider claude; echo $? ${{PIPESTATUS[0]}}"
    );
    assert_eq!(agent.does(&huge), "0 0\n", "the whole of it is read");
    assert_eq!(only(&home)["codeagent_session_id"], ONE);
    let fifo = home.root().join("fifo");
    let open = format!(
        "mkfifo {0}; exec 9<>{0}; printf '%s' '{1}' >&9; {AIT} hook SessionStart --provider claude <{0}; echo $?; {AIT} hook Stop --provider claude <{0}; echo $?; exec 9>&-",
        fifo.display(),
        json!({"session_id": TWO, "source": "clear"}),
    );
    assert_eq!(agent.does(&open), "0\n0\n");
    assert_eq!(only(&home)["codeagent_session_id"], TWO);
    for broken in [
        "",
        "hook",
        "hook --provider claude",
        "hook SessionStart",
        "hook SessionStart --provider claude --new-option x",
    ] {
        assert_eq!(
            agent.does(&format!("{AIT} {broken} </dev/null >/dev/null 2>&1; echo $?")),
            if broken.is_empty() { "64\n" } else { "0\n" }
        );
    }
}
