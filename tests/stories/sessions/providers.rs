//! The hooks of the providers, as `ait activity` puts them in, takes them out and tells how they are.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::inotify;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{data, refusal};
use crate::hook::{ONE, Told, only, start};
use crate::support::run::Running;
use crate::support::{AIT, DEADLINE, Home, Tmux, proc, wait_until};

/// What users have in their settings: comments, odd order, hooks of others.
const USERS: [(&str, &str, &str); 3] = [
    (
        "claude",
        ".claude/settings.json",
        "{\n  \"model\" : \"opus\",\n  \"hooks\": { \"Stop\": [ {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]} ] }\n}\n",
    ),
    (
        "codex",
        ".codex/hooks.json",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\",\"timeout\":9}]}]}}",
    ),
    (
        "hermes",
        ".hermes/config.yaml",
        "# mine\nmodel: x   # as I like it\nhooks:\n  post_llm_call:\n    - command: say done\n",
    ),
];

#[test]
fn hooks_go_in_once_and_out_again_and_every_other_byte_stays() {
    let home = Home::new();
    for (provider, file, users) in USERS {
        let path = home.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, users).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let set_up = |how: &str| {
            let ran = home.ait(["activity", "setup", "--agent", provider, how, "--format", "json"]).ok();
            let told = data(&ran, "activity-setup");
            assert_eq!(
                (&told["provider"], &told["config_path"]),
                (&json!(provider), &json!(path)),
                "{told:#}"
            );
            ["changed", "would_change", "configured", "would_configure"].map(|name| told[name] == true)
        };
        let now = || fs::read_to_string(&path).unwrap();
        assert_eq!(set_up("--dry-run"), [false, true, false, true], "{provider}");
        assert_eq!(now(), users, "{provider}: nothing is written");
        assert_eq!(set_up("--apply"), [true, true, true, true], "{provider}");
        let with = now();
        assert!(with.contains("say done") && with.contains(&format!("--provider {provider}")), "{with}");
        assert_eq!(set_up("--apply"), [false, false, true, true], "{provider}");
        assert_eq!(set_up("--repair"), [false, false, true, true], "{provider}");
        assert_eq!(set_up("--dry-run"), [false, false, true, true], "{provider}");
        assert_eq!(now(), with, "{provider}: once is enough");
        assert_eq!(set_up("--remove"), [true, true, false, false], "{provider}");
        assert_eq!(now(), users, "{provider}: all is as it was");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "{provider}");
        fs::write(&path, "{ not: [whole").unwrap();
        for how in ["--apply", "--dry-run"] {
            let broken =
                home.ait(["activity", "setup", "--agent", provider, how, "--format", "json"]).code(65);
            assert_eq!(refusal(&broken), "provider-config-invalid", "{broken}");
        }
        assert_eq!(now(), "{ not: [whole", "{provider}: what is broken is untouched");
    }
    let none = home.ait(["activity", "setup", "--agent", "gemini", "--apply", "--format", "json"]).code(69);
    assert_eq!(refusal(&none), "provider-home-unavailable", "{none}");
    assert!(!home.home().join(".gemini").exists(), "a provider's home is never made");
    home.ait(["activity", "setup", "--agent", "claude"]).code(64);
    home.ait(["activity", "setup", "--agent", "claude", "--apply", "--remove"]).code(64);
    let other = home.ait(["activity", "setup", "--agent", "nobody", "--apply", "--format", "json"]).code(64);
    assert_eq!(refusal(&other), "invalid-agent", "{other}");
}

/// Tells when somebody who only read a file closes it.
struct Reads(OwnedFd);

impl Reads {
    fn of(path: &Path) -> Reads {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&fd, path, inotify::WatchFlags::CLOSE_NOWRITE).unwrap();
        Reads(fd)
    }

    fn one(&self) {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        inotify::Reader::new(&self.0, &mut buffer).next().unwrap();
    }
}

#[test]
fn what_somebody_else_writes_into_the_settings_meanwhile_stays() {
    let home = Home::new();
    let folder = home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("settings.json");
    // long, so that it is read for a while
    let long = format!("{{\"model\": \"opus\", \"mine\": [{}]}}\n", vec!["0"; 200_000].join(", "));
    let newer = "{\"model\": \"haiku\"}\n";
    let is_written = || {
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name != "settings.json")
    };
    wait_until("a set-up that is stopped between its reading and its writing", DEADLINE, || {
        // a file that nobody else has read
        let _ = fs::remove_file(&path);
        fs::write(&path, &long).unwrap();
        let reads = Reads::of(&path);
        let mut command =
            home.ait_command(["activity", "setup", "--agent", "claude", "--apply", "--format", "json"]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut set_up = Running::start(command);
        reads.one();
        let process = set_up.process();
        process.signal(Signal::STOP);
        wait_until("it to stand still", DEADLINE, || {
            matches!(proc::state(process.pid), None | Some('T' | 'Z')).then_some(())
        });
        let early =
            process.alive() && !is_written() && fs::metadata(&path).unwrap().len() == long.len() as u64;
        if early {
            fs::write(&path, newer).unwrap();
        }
        process.signal(Signal::CONT);
        let ended = set_up.join(DEADLINE);
        if !early {
            // it was quicker
            assert!(ended.success(), "{ended}");
            return None;
        }
        let mut told = String::new();
        set_up.child().stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["error"]["code"], "provider-config-concurrent-modification", "{told:#}");
        assert_eq!(ended.code(), Some(1), "{told:#}");
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
        assert!(!is_written(), "nothing is left beside it");
        Some(())
    });
}

/// What the doctor says of one provider.
fn doctor(home: &Home, provider: &str) -> Value {
    let ran = home.ait(["activity", "doctor", "--agent", provider, "--format", "json"]).ok();
    data(&ran, "activity-doctor")["providers"][0].clone()
}

#[test]
fn the_doctor_tells_of_each_provider_and_waits_for_none() {
    let home = Home::new();
    fs::create_dir_all(home.home().join(".claude")).unwrap();
    // whatever it starts goes with it
    home.script("claude", "#!/bin/sh\nsleep 1000000 &\nwait\n");
    home.script("codex", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'codex-cli 0.150.0'\n");
    home.script("hermes", "#!/bin/sh\nexit 3\n");
    let told = data(&home.ait(["activity", "doctor", "--format", "json"]).ok(), "activity-doctor");
    let all = told["providers"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|one| one["provider"] == name).unwrap();
    let said = |name: &str| {
        let one = of(name);
        [&one["classification"], &one["version"], &one["version_error"]].map(Value::clone)
    };
    assert_eq!(said("claude"), [json!("unavailable"), Value::Null, json!("timeout")]);
    assert_eq!(said("codex"), [json!("partial"), json!("codex-cli 0.150.0"), Value::Null]);
    assert_eq!(said("hermes"), [json!("unavailable"), Value::Null, json!("exit-3")]);
    assert_eq!(said("gemini"), [json!("unavailable"), Value::Null, json!("unavailable")]);
    assert!(home.processes().is_empty(), "nothing that was asked runs on");
    assert_eq!(of("claude")["configured"], false);
    assert_eq!(
        (of("claude")["trust"].as_str(), of("codex")["trust"].as_str()),
        (Some("not-needed"), Some("asks-at-next-start"))
    );
    home.ait(["activity", "setup", "--agent", "claude", "--apply"]).ok();
    assert_eq!(doctor(&home, "claude")["configured"], true);
    fs::write(home.home().join(".claude/settings.json"), "{").unwrap();
    let broken = doctor(&home, "claude");
    assert!(broken["config_error"].as_str().unwrap().contains("settings.json"), "{broken:#}");
    let text = home.ait(["activity", "doctor"]).ok().text();
    assert!(text.contains("codex: partial, codex-cli 0.150.0\n"), "{text}");
    // another program than the one on PATH
    let mine = home.script("mine", "#!/bin/sh\necho 'hermes 0.19.1'\n");
    let mut asked = home.ait_command(["activity", "doctor", "--agent", "hermes", "--format", "json"]);
    let told =
        data(&crate::support::Ran::run(asked.env("AGENT_SESSION_HERMES_BIN", mine)).ok(), "activity-doctor");
    assert_eq!(told["providers"][0]["classification"], "supported", "{told:#}");
}

#[test]
fn the_doctor_asks_all_providers_before_it_gives_one_up() {
    let home = Home::new();
    let (begun, met) = (home.root().join("begun"), home.root().join("met"));
    let all = ["claude", "codex", "copilot", "gemini", "hermes", "qwen"];
    for name in all {
        // none ever answers; each says whether it lived to see the others asked
        home.script(
            name,
            &format!(
                "#!/bin/sh\necho {name} >> '{0}'\n\
                 until [ $(wc -l < '{0}') -ge {2} ]; do sleep 0.02; done\n\
                 echo {name} >> '{1}'\nexec sleep 1000000\n",
                begun.display(),
                met.display(),
                all.len()
            ),
        );
    }
    wait_until("all of them at once", DEADLINE, || {
        let _ = (fs::remove_file(&begun), fs::remove_file(&met));
        let told = data(&home.ait(["activity", "doctor", "--format", "json"]).ok(), "activity-doctor");
        for one in told["providers"].as_array().unwrap() {
            assert_eq!(
                (&one["version"], &one["version_error"]),
                (&Value::Null, &json!("timeout")),
                "{one:#}"
            );
        }
        assert_eq!(told["providers"].as_array().unwrap().len(), all.len(), "{told:#}");
        // a machine that is busy may not have begun the last of them by then
        let text = fs::read_to_string(&met).unwrap_or_default();
        let mut lived: Vec<&str> = text.lines().collect();
        lived.sort_unstable();
        (lived == all).then_some(())
    });
}

#[test]
fn a_codex_works_and_waits_by_its_hooks_and_nothing_of_its_words_is_kept() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "codex", "work");
    agent.hook_of("codex", "SessionStart", &start(ONE));
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    let turn = "0199f0a2-5b1c-7a10-8000-00000000beef";
    let secrets = ["hush-hush", "/hidden/place", "call_raw_1", turn, ONE];
    for (event, more, phase) in [
        ("UserPromptSubmit", json!({"prompt": "hush-hush"}), "working"),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_use_id": "call_raw_1", "tool_input": {"command": "echo hush-hush"}}),
            "working",
        ),
        (
            "PostToolUse",
            json!({"tool_name": "Bash", "tool_use_id": "call_raw_1", "tool_response": "hush-hush"}),
            "working",
        ),
        ("Stop", json!({"last_assistant_message": "hush-hush", "stop_hook_active": false}), "waiting"),
    ] {
        let mut payload = json!({
            "session_id": ONE, "turn_id": turn, "hook_event_name": event, "cwd": "/hidden/place",
            "transcript_path": "/hidden/place/rollout.jsonl",
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let line = format!("printf '%s' '{payload}' | {AIT} activity hook --agent codex; echo $?");
        assert_eq!(agent.does(&line), "0\n", "silent");
        let told = data(&home.ait(["activity", "status", &id, "--format", "json"]).ok(), "activity-status");
        assert_eq!(told["turn_state"]["phase"], phase, "{event}: {told:#}");
        let shown = told.to_string() + &home.ait(["explain", &id]).ok().text();
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
    }
    let state = home.home().join(".local/state/ait");
    let own = fs::read_dir(state.join("sessions").join(&id)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = own.collect();
    assert!(files.len() >= 3, "{files:?}");
    files.extend(Some(state.join("hook.log")).filter(|log| log.exists()));
    for path in files {
        let text = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{}: {text}", path.display());
    }
}

#[test]
fn what_a_hook_was_given_wrong_is_told_until_it_is_right_again() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Told::start(&tmux, "claude", "work");
    agent.hook("SessionStart", &start(ONE));
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    let path = home.home().join(".local/state/ait/sessions").join(&id).join("activity.diagnostic.json");
    let give = |event: &str, text: &str| {
        let line =
            format!("printf '%s' '{text}' | {AIT} activity hook --agent claude --event {event}; echo $?");
        assert_eq!(agent.does(&line), "0\n", "silent, whatever it is given");
    };
    let payload = json!({"session_id": ONE, "prompt": "a secret"}).to_string();
    give("UserPromptSubmit", &payload);
    assert!(!path.exists(), "nothing is wrong");
    give("PostToolUse", "{\"session_id\": \"a secret");
    let wrong: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        (&wrong["code"], &wrong["provider"]),
        (&json!("provider-hook-invalid"), &json!("claude")),
        "{wrong:#}"
    );
    assert!(!wrong.to_string().contains("secret"), "{wrong}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(doctor(&home, "claude")["last_error"], "provider-hook-invalid");
    give("NobodyKnowsThis", &payload);
    assert!(path.exists(), "an event that says nothing of a turn does not put it right");
    give("Stop", &payload);
    assert!(!path.exists(), "it is right again");
    let told = doctor(&home, "claude");
    assert_eq!(told.get("last_error"), None, "{told:#}");
    assert!(told["last_event_at"].is_string(), "{told:#}");
    // the name of the event from the payload itself
    let line = format!(
        "printf '%s' '{}' | {AIT} activity hook --agent=claude",
        json!({"session_id": ONE, "hook_event_name": "UserPromptSubmit"})
    );
    assert_eq!(agent.does(&line), "");
    assert_eq!(crate::hook::turn(&home, &id)["event"], "UserPromptSubmit");
}
