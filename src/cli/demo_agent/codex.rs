//! Codex's ways, as of 0.171.0: a rollout from the first prompt on, held open by whoever writes it; hooks out of
//! `hooks.json`, the first of them at the first prompt and none at a signal; title and OSC 7501 tell what it does; with the
//! shared daemon (manner `daemon`) another process writes and fires, in the environment of whoever started it first.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::asked::Asked;
use super::daemon::{self, Job};
use super::hooks::commands_of;
use super::manners::{Dialog, Manners};
use super::plain::escape;
use super::ways::{Answer, Command, Doing, Event, Reason, Taken, Ways, Words};
use crate::cli::{Exit, Failure};

/// The version it says it is.
pub(super) const VERSION: &str = "0.171.0";

/// One Codex.
#[derive(Debug)]
pub(super) struct Codex {
    root: PathBuf,
    cwd: PathBuf,
    id: String,
    turn: String,
    path: PathBuf,
    /// Open as long as the conversation is.
    rollout: Option<fs::File>,
    resumed: bool,
    /// `SessionStart` has fired in this process.
    begun: bool,
    earlier: Vec<String>,
    doing: Doing,
    full_screen: bool,
    /// The socket of the shared daemon, if that does the work.
    daemon: Option<PathBuf>,
}

/// Where Codex keeps everything.
pub(super) fn root(home: &Path) -> PathBuf {
    std::env::var_os("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from)
}

impl Codex {
    /// The agent that was asked for, or what it says instead.
    pub(super) fn new(asked: &Asked, manners: &Manners, home: &Path, cwd: &Path) -> Result<Codex, Failure> {
        let root = root(home);
        let embedded = ["--no-daemon", "-c", "--dangerously-bypass-hook-trust"];
        let daemon = (manners.daemon && !asked.words.iter().any(|word| embedded.contains(&word.as_str())))
            .then(|| daemon::socket(&root));
        if let Some(socket) = &daemon {
            daemon::ensure(socket)?;
        }
        let mut codex = Codex {
            turn: String::new(),
            rollout: None,
            resumed: asked.resume.is_some(),
            begun: false,
            earlier: Vec::new(),
            doing: Doing::Idle,
            full_screen: !asked.words.iter().any(|word| word == "--no-alt-screen"),
            cwd: cwd.to_owned(),
            id: new_id(),
            path: PathBuf::new(),
            root,
            daemon,
        };
        match &asked.resume {
            None => codex.path = codex.new_path(),
            Some(id) => {
                let why = format!("No saved session found with ID {id}");
                codex.path =
                    found(&codex.root.join("sessions"), id).ok_or_else(|| Failure::new(Exit::FAILED, why))?;
                codex.earlier = prompts(&codex.path)?;
                codex.id = id.clone();
                if let Some(other) = &manners.other_id {
                    codex.id = other.clone();
                    codex.path = codex.new_path();
                    // what it goes on with is in the new file from the start
                    codex.append(&codex.meta())?;
                } else {
                    codex.hold()?;
                }
            }
        }
        Ok(codex)
    }

    fn new_path(&self) -> PathBuf {
        // `2026-11-29T20:48:51…`
        let now = jiff::Timestamp::now().to_string();
        let (second, day) = (now.get(..19).unwrap_or(&now), now.get(..10).unwrap_or(&now));
        let name = format!("rollout-{}-{}.jsonl", second.replace(':', "-"), self.id);
        self.root.join("sessions").join(day.replace('-', "/")).join(name)
    }

    /// Opens the rollout for as long as the conversation is open here.
    fn hold(&mut self) -> io::Result<()> {
        if self.daemon.is_none() && self.rollout.is_none() {
            self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
            self.rollout = Some(fs::OpenOptions::new().create(true).append(true).open(&self.path)?);
        }
        Ok(())
    }

    fn meta(&self) -> String {
        let now = jiff::Timestamp::now().to_string();
        let source = if self.daemon.is_some() { "vscode" } else { "cli" };
        record(
            "session_meta",
            &json!({
                "id": self.id, "session_id": self.id, "timestamp": now, "cwd": self.cwd,
                "originator": "codex-tui", "cli_version": VERSION, "source": source, "model_provider": "none",
            }),
        )
    }

    fn event(&self, name: &'static str, about: &str, more: Value) -> Event {
        let mut payload = json!({
            "session_id": self.id,
            "transcript_path": self.path,
            "cwd": self.cwd,
            "hook_event_name": name,
            "model": "none",
            "permission_mode": "default",
        });
        if !matches!(name, "SessionStart" | "SessionEnd") {
            payload["turn_id"] = json!(self.turn);
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        Event { name, about: about.to_owned(), payload }
    }

    fn prompt_events(&mut self, prompt: &str) -> Vec<Event> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let source = if self.resumed { "resume" } else { "startup" };
            events.push(self.event("SessionStart", source, json!({ "source": source })));
        }
        events.push(self.event("UserPromptSubmit", "", json!({ "prompt": prompt })));
        events
    }

    fn answer_of(&self, answer: &str) -> (String, Vec<Event>) {
        let text = record("event_msg", &json!({ "type": "agent_message", "message": answer }))
            + &record("event_msg", &json!({ "type": "task_complete", "turn_id": self.turn }));
        let more = json!({ "stop_hook_active": false, "last_assistant_message": answer });
        (text, vec![self.event("Stop", "", more)])
    }
}

impl Ways for Codex {
    fn earlier(&self) -> &[String] {
        &self.earlier
    }

    fn words(&self) -> Words {
        let cwd = self.cwd.display();
        Words {
            banner: vec![format!("  >_ OpenAI Codex (v{VERSION})"), format!("     {cwd}"), String::new()],
            mark: "›",
            bullet: "•",
            placeholder: "Ask Codex to do anything",
            working: "• Working (0s • esc to interrupt)",
            ruled: false,
            idle_footer: "  ← for agents · ? for shortcuts".to_owned(),
            working_footer: "  ← for agents · ? for shortcuts".to_owned(),
            asking: &[
                "  Would you like to run the following command?",
                "",
                "  $ touch permitted.txt",
                "",
                "› 1. Yes, proceed (y)",
                "  2. No, and tell Codex what to do differently (esc)",
                "",
                "  Press enter to confirm or esc to cancel",
            ],
            finished: "  Worked for 0s",
        }
    }

    fn full_screen(&self) -> bool {
        self.full_screen
    }

    fn open_elsewhere(&self) -> bool {
        self.resumed && self.daemon.is_none() && daemon::is_locked(&self.root, &self.id)
    }

    fn dialog(&self, dialog: Dialog) -> Vec<String> {
        let cwd = format!("  {}", self.cwd.display());
        let lines: &[&str] = match dialog {
            Dialog::Trust => &[
                "  Folder access",
                &cwd,
                "",
                "  Trust this folder? Codex can read, edit, and run files here.",
                "",
                "› 1. Trust and continue",
                "  2. Back to Agent Command Center",
                "",
                "  enter continue · esc back",
            ],
            Dialog::Hooks => &[
                "  Hooks need review",
                "",
                "  1 hook is new or changed.",
                "",
                "› 1. Review hooks",
                "  2. Continue without trusting",
                "",
                "  Press enter to confirm or esc to go back",
            ],
            Dialog::Login => &[
                "  Welcome to Codex",
                "  Sign in with ChatGPT to use Codex as part of your paid plan",
                "",
                "› 1. Sign in with ChatGPT",
                "  2. Provide your own API key",
                "",
                "  Press Enter to continue",
            ],
            Dialog::Elsewhere => &[
                "  🔒  This conversation is open in another app    r to retry",
                "      Close it there and press R to continue here.",
                "",
                "   r retry   f fork   ←/esc command center   ^c/q exit   ^t transcript",
            ],
            Dialog::Directory => &[
                "  Choose working directory to resume this session",
                "",
                "› 1. Use session directory",
                "  2. Use current directory",
                "",
                "  Press enter to continue",
            ],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn commands(&self) -> Vec<Command> {
        // with the daemon, they are the daemon's
        if self.daemon.is_some() { Vec::new() } else { commands(&self.root) }
    }

    fn hook_environment(&self, _event: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    fn started(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn submitted(&mut self, prompt: &str, answer: &str, length: Duration) -> Taken {
        self.turn = new_id();
        let mut text = if self.earlier.is_empty() { self.meta() } else { String::new() };
        text += &record("event_msg", &json!({ "type": "task_started", "turn_id": self.turn }));
        let item = json!({
            "type": "message", "role": "user", "content": [{ "type": "input_text", "text": prompt }],
        });
        text += &record("response_item", &item);
        text += &record("event_msg", &json!({ "type": "user_message", "message": prompt }));
        self.earlier.push(prompt.to_owned());
        let events = self.prompt_events(prompt);
        let Some(socket) = &self.daemon else { return Taken { text, events } };
        let (end_text, end_events) = self.answer_of(answer);
        let job = Job {
            path: self.path.clone(),
            text,
            events: events.into_iter().map(daemon::Fired::from).collect(),
            milliseconds: u64::try_from(length.as_millis()).unwrap_or(u64::MAX),
            end_text,
            end_events: end_events.into_iter().map(daemon::Fired::from).collect(),
        };
        // a daemon that is gone does nothing, and the face goes on
        let _ = daemon::send(socket, &job);
        Taken::default()
    }

    fn asked(&mut self) -> Vec<Event> {
        let tool = json!({ "tool_name": "Bash", "tool_input": { "command": "touch permitted.txt" } });
        let mut use_of_tool = tool.clone();
        use_of_tool["tool_use_id"] = json!(format!("call_{}", Uuid::new_v4().simple()));
        vec![self.event("PreToolUse", "Bash", use_of_tool), self.event("PermissionRequest", "Bash", tool)]
    }

    fn answered(&mut self, answer: &str, _background: Option<&str>) -> Taken {
        if self.daemon.is_some() {
            return Taken::default();
        }
        let (text, events) = self.answer_of(answer);
        Taken { text, events }
    }

    fn interrupted(&mut self) {
        let told = json!({ "type": "turn_aborted", "turn_id": self.turn, "reason": "interrupted" });
        if self.daemon.is_none() {
            // a conversation that cannot be written goes on
            let _ = self.append(&record("event_msg", &told));
        }
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.hold()?;
        self.rollout.as_mut().map_or(Ok(()), |file| file.write_all(text.as_bytes()))
    }

    fn cleared(&mut self) -> Vec<Event> {
        self.id = new_id();
        self.path = self.new_path();
        self.rollout = None;
        self.earlier.clear();
        self.begun = false;
        self.resumed = false;
        Vec::new()
    }

    fn ended(&mut self, reason: Reason) -> Vec<Event> {
        match reason {
            Reason::Left if self.begun && self.daemon.is_none() => {
                vec![self.event("SessionEnd", "other", json!({ "reason": "other" }))]
            }
            Reason::Left | Reason::Told | Reason::Cleared => Vec::new(),
        }
    }

    fn shows(&mut self, doing: Doing) -> String {
        let before = std::mem::replace(&mut self.doing, doing);
        let folder = self.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let title = self.earlier.first().map_or("New chat", String::as_str);
        let (title, state) = match doing {
            Doing::Idle if before == Doing::Working => (folder, "done"),
            Doing::Idle => (folder, "idle"),
            Doing::Working => (format!("⠋ {title} | {folder}"), "working"),
            Doing::Asking => (format!("[ ! ] Action Required | {title} | {folder}"), "blocked"),
        };
        let kind = if doing == Doing::Asking { ":kind=permission" } else { "" };
        format!("{}\x1b]7501;state={state}:app=codex{kind}\x1b\\", escape("0;", &title))
    }

    fn placed(&mut self, _place: String) {}

    fn meets(&self, signal: Signal) -> Answer {
        match signal {
            Signal::SIGHUP | Signal::SIGTERM | Signal::SIGINT => Answer::Die(signal),
            _ => Answer::Ignore,
        }
    }

    fn leaves_at_once(&self) -> bool {
        true
    }

    fn farewell(&self) -> Vec<String> {
        let mut lines = vec!["\x1b]7501;state=clear:app=codex\x1b\\".to_owned()];
        if self.earlier.is_empty() {
            return lines;
        }
        lines.push("To continue this session, run:".to_owned());
        lines.push(format!("  codex resume {}", self.id));
        lines
    }

    fn gone(&mut self) {}
}

/// The hooks of `hooks.json`, taken as reviewed.
pub(super) fn commands(root: &Path) -> Vec<Command> {
    commands_of(&fs::read_to_string(root.join("hooks.json")).unwrap_or_default())
}

fn record(kind: &str, payload: &Value) -> String {
    let now = jiff::Timestamp::now().to_string();
    format!("{}\n", json!({ "timestamp": now, "type": kind, "payload": payload }))
}

/// A new id, of the seventh kind: it begins with the time.
fn new_id() -> String {
    let random = Uuid::new_v4();
    let mut tail = [0; 10];
    tail.copy_from_slice(&random.as_bytes()[..10]);
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(now, &tail).into_uuid().to_string()
}

/// The rollout of this id, wherever it lies below the store.
fn found(store: &Path, id: &str) -> Option<PathBuf> {
    let ending = format!("-{id}.jsonl");
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending)) {
                return Some(path);
            }
        }
    }
    None
}

/// The id in a rollout's name.
pub(super) fn id_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.get(stem.len().saturating_sub(36)..).unwrap_or_default().to_owned()
}

/// The prompts of a rollout.
fn prompts(path: &Path) -> io::Result<Vec<String>> {
    let mut prompts = Vec::new();
    for line in io::BufReader::new(fs::File::open(path)?).lines() {
        // a line cut short by a crash is no prompt
        let Ok(record) = serde_json::from_str::<Value>(&line?) else { continue };
        let prompt = record.pointer("/payload/message").and_then(Value::as_str);
        if record.pointer("/payload/type").is_some_and(|kind| kind == "user_message")
            && let Some(prompt) = prompt
        {
            prompts.push(prompt.to_owned());
        }
    }
    Ok(prompts)
}
