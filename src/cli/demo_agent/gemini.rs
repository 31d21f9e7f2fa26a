//! Gemini CLI's ways, as of 0.61.0: its conversation's file from the start on, its title tells what it does, its hooks run
//! in the inner of two processes; the outer one swallows signals ([`super::wrapper`]).

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::asked::Asked;
use super::hooks::commands_of;
use super::manners::{Dialog, Manners};
use super::plain::escape;
use super::ways::{Answer, Command, Doing, Event, Reason, Taken, Ways, Words};
use crate::cli::{Exit, Failure};

/// The version it says it is.
pub(super) const VERSION: &str = "0.61.0";

/// Columns its title is filled up to.
const TITLE: usize = 80;

/// One Gemini CLI.
#[derive(Debug)]
pub(super) struct Gemini {
    root: PathBuf,
    cwd: PathBuf,
    id: String,
    path: PathBuf,
    resumed: bool,
    earlier: Vec<String>,
}

impl Gemini {
    /// The agent that was asked for, or what it says instead.
    pub(super) fn new(asked: &Asked, manners: &Manners, home: &Path, cwd: &Path) -> Result<Gemini, Failure> {
        let base = std::env::var_os("GEMINI_CLI_HOME").map_or_else(|| home.to_owned(), PathBuf::from);
        let root = base.join(".gemini");
        let project = project(&root, cwd)?;
        let chats = root.join("tmp").join(project).join("chats");
        let mut gemini = Gemini {
            id: asked.id.clone().unwrap_or_else(|| Uuid::new_v4().to_string()),
            path: PathBuf::new(),
            resumed: asked.resume.is_some(),
            earlier: Vec::new(),
            cwd: cwd.to_owned(),
            root,
        };
        if let Some(id) = &asked.resume {
            let why = format!("Error resuming session: Invalid session identifier \"{id}\".");
            let known = found(&chats, id).ok_or_else(|| Failure::new(Exit::FAILED, why))?;
            gemini.earlier = prompts(&known)?;
            gemini.path = known;
            gemini.id = id.clone();
            if let Some(other) = &manners.other_id {
                gemini.id = other.clone();
                gemini.path = PathBuf::new();
            }
        }
        if gemini.path.as_os_str().is_empty() {
            let begun = jiff::Timestamp::now().to_string();
            let minute = begun.get(..16).unwrap_or(&begun).replace(':', "-");
            let short: String = gemini.id.chars().take(8).collect();
            gemini.path = chats.join(format!("session-{minute}-{short}.jsonl"));
            let head =
                json!({ "sessionId": gemini.id, "projectHash": "0", "startTime": begun, "kind": "main" });
            gemini.append(&format!("{head}\n"))?;
        }
        Ok(gemini)
    }

    fn event(&self, name: &'static str, about: &str, more: Value) -> Event {
        let mut payload = json!({
            "session_id": self.id,
            "transcript_path": self.path,
            "cwd": self.cwd,
            "hook_event_name": name,
            "timestamp": jiff::Timestamp::now().to_string(),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        Event { name, about: about.to_owned(), payload }
    }
}

impl Ways for Gemini {
    fn earlier(&self) -> &[String] {
        &self.earlier
    }

    fn words(&self) -> Words {
        Words {
            banner: vec![format!(" Gemini CLI v{VERSION}"), format!(" {}", self.cwd.display())],
            mark: ">",
            bullet: "✦",
            placeholder: "Type your message or @path/to/file",
            working: "⠏ Thinking... (esc to cancel, 0s)",
            ruled: true,
            idle_footer: " ? for shortcuts".to_owned(),
            working_footer: " esc to cancel".to_owned(),
            asking: &[
                " Action Required",
                " Allow execution of: 'touch'?",
                " ● 1. Allow once",
                "   2. Allow for this session",
                "   3. No, suggest changes (esc)",
            ],
            finished: "",
        }
    }

    fn dialog(&self, dialog: Dialog) -> Vec<String> {
        let lines: &[&str] = match dialog {
            Dialog::Trust | Dialog::Hooks | Dialog::Directory | Dialog::Elsewhere => {
                &[" Do you trust this folder?", "", " ● 1. Trust folder", "   2. Don't trust"]
            }
            Dialog::Login => &[" How would you like to authenticate for this project?", "", " ● 1. Login"],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn commands(&self) -> Vec<Command> {
        commands_of(&fs::read_to_string(self.root.join("settings.json")).unwrap_or_default())
    }

    fn hook_environment(&self, _event: &str) -> Vec<(String, String)> {
        let cwd = self.cwd.to_string_lossy().into_owned();
        [("GEMINI_SESSION_ID", self.id.clone()), ("GEMINI_CWD", cwd.clone()), ("GEMINI_PROJECT_DIR", cwd)]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }

    fn started(&mut self) -> Vec<Event> {
        let source = if self.resumed { "resume" } else { "startup" };
        vec![self.event("SessionStart", source, json!({ "source": source }))]
    }

    fn submitted(&mut self, prompt: &str, _answer: &str, _length: Duration) -> Taken {
        self.earlier.push(prompt.to_owned());
        let text = json!({ "id": Uuid::new_v4().to_string(), "type": "user", "content": prompt });
        Taken {
            text: format!("{text}\n"),
            events: vec![self.event("BeforeAgent", "", json!({ "prompt": prompt }))],
        }
    }

    fn asked(&mut self) -> Vec<Event> {
        let more = json!({ "notification_type": "ToolPermission", "message": "Allow execution of touch?" });
        vec![self.event("Notification", "ToolPermission", more)]
    }

    fn answered(&mut self, answer: &str, _background: Option<&str>) -> Taken {
        let text = json!({ "id": Uuid::new_v4().to_string(), "type": "gemini", "content": answer });
        let events = vec![self.event("AfterAgent", "", json!({ "prompt_response": answer }))];
        Taken { text: format!("{text}\n"), events }
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
    }

    fn cleared(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn ended(&mut self, _reason: Reason) -> Vec<Event> {
        vec![self.event("SessionEnd", "exit", json!({ "reason": "exit" })); 3]
    }

    fn shows(&mut self, doing: Doing) -> String {
        let folder = self.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sign = match doing {
            Doing::Idle => "◇  Ready",
            Doing::Working => "✦  Working…",
            Doing::Asking => "✋  Action Required",
        };
        escape("0;", &format!("{:<TITLE$}", format!("{sign} ({folder})")))
    }

    fn placed(&mut self, _place: String) {}

    fn meets(&self, signal: Signal) -> Answer {
        match signal {
            Signal::SIGTERM => Answer::Exit(0),
            _ => Answer::Ignore,
        }
    }

    fn meets_the_end_of_its_terminal(&self) -> Answer {
        Answer::Exit(0)
    }

    fn farewell(&self) -> Vec<String> {
        vec![format!("gemini --resume {}", self.id)]
    }

    fn gone(&mut self) {}
}

/// The short name of a directory, out of `projects.json`, where it is put if it is new.
fn project(root: &Path, cwd: &Path) -> Result<String, Failure> {
    fs::create_dir_all(root)?;
    let path = root.join("projects.json");
    let mut all: Value = fs::read_to_string(&path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| json!({ "projects": {} }));
    let key = cwd.to_string_lossy().into_owned();
    if let Some(known) = all["projects"][&key].as_str() {
        return Ok(known.to_owned());
    }
    let name = cwd.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let taken =
        |name: &str| all["projects"].as_object().is_some_and(|all| all.values().any(|one| one == name));
    let mut short = name.clone();
    let mut number = 0;
    while taken(&short) {
        number += 1;
        short = format!("{name}-{number}");
    }
    all["projects"][&key] = json!(short);
    fs::write(&path, all.to_string())?;
    Ok(short)
}

/// The newest file of this conversation.
fn found(chats: &Path, id: &str) -> Option<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(chats).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_it = |path: &PathBuf| {
        let file = fs::File::open(path).ok();
        let head = file.and_then(|file| io::BufReader::new(file).lines().next()?.ok());
        let head = head.and_then(|line| serde_json::from_str::<Value>(&line).ok());
        head.is_some_and(|head| head["sessionId"] == id)
    };
    paths.into_iter().rev().find(is_it)
}

/// The prompts of a conversation.
fn prompts(path: &Path) -> io::Result<Vec<String>> {
    let lines = io::BufReader::new(fs::File::open(path)?).lines();
    let records = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let prompts = records.filter(|record| record["type"] == "user");
    Ok(prompts.filter_map(|record| record["content"].as_str().map(str::to_owned)).collect())
}
