//! Claude Code's ways, as of 2.1.332: `projects/<slug>/<id>.jsonl` from the first prompt on, `sessions/<pid>.json` while it
//! runs, hooks out of `settings.json`.

use std::collections::VecDeque;
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
use super::ways::{Answer, Command, Doing, Event, Reason, Taken, Ways, Words};
use crate::cli::{Exit, Failure};

/// The version it says it is.
pub(super) const VERSION: &str = "2.1.332";

/// Characters of a folder's name before it is cut and hashed.
const SLUG: usize = 200;

/// One Claude Code.
#[derive(Debug)]
pub(super) struct Claude {
    config: PathBuf,
    cwd: PathBuf,
    id: String,
    resumed: bool,
    earlier: Vec<String>,
    last: Value,
    prompt: String,
    /// Prompts without an answer, the one it works on first.
    open: VecDeque<String>,
    settings: Vec<String>,
    /// Nothing is written: it believes to run inside another Claude.
    unsaved: bool,
    registry: Option<Registry>,
}

#[derive(Debug)]
struct Registry {
    path: PathBuf,
    started: i64,
    place: Option<String>,
    doing: Doing,
    /// It is there: not before the folder is trusted.
    told: bool,
}

impl Claude {
    /// The agent that was asked for, or what it says instead.
    pub(super) fn new(asked: &Asked, manners: &Manners, home: &Path, cwd: &Path) -> Result<Claude, Failure> {
        let config =
            std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from);
        let refused = |why: String| Failure::new(Exit::FAILED, why);
        let folder = config.join("projects").join(slug(cwd));
        let mut earlier = Vec::new();
        let id = match (&asked.resume, &asked.id) {
            (Some(id), _) => {
                let path = folder.join(format!("{id}.jsonl"));
                earlier = prompts(&path)
                    .map_err(|_| refused(format!("No conversation found with session ID: {id}")))?;
                manners.other_id.clone().unwrap_or_else(|| id.clone())
            }
            (None, Some(id)) => {
                Uuid::parse_str(id)
                    .map_err(|_| refused("Invalid session ID. Must be a valid UUID.".to_owned()))?;
                if folder.join(format!("{id}.jsonl")).exists() {
                    return Err(refused(format!("Session ID {id} is already in use.")));
                }
                id.clone()
            }
            (None, None) => Uuid::new_v4().to_string(),
        };
        let set = |name: &str| std::env::var_os(name).is_some();
        let unsaved = set("CLAUDE_CODE_CHILD_SESSION") && !set("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE");
        let registry = (!manners.no_registry && !asked.print).then(|| Registry {
            path: config.join("sessions").join(format!("{}.json", std::process::id())),
            started: jiff::Timestamp::now().as_millisecond(),
            place: None,
            doing: Doing::Idle,
            told: false,
        });
        Ok(Claude {
            settings: settings(asked, &config, cwd),
            resumed: asked.resume.is_some(),
            config,
            cwd: cwd.to_owned(),
            id,
            earlier,
            last: Value::Null,
            prompt: String::new(),
            open: VecDeque::new(),
            unsaved,
            registry,
        })
    }

    fn transcript(&self) -> PathBuf {
        self.config.join("projects").join(slug(&self.cwd)).join(format!("{}.jsonl", self.id))
    }

    fn event(&self, name: &'static str, about: &str, more: Value) -> Event {
        let mut payload = json!({
            "session_id": self.id,
            "transcript_path": self.transcript(),
            "cwd": self.cwd.to_string_lossy(),
            "hook_event_name": name,
        });
        if !matches!(name, "SessionStart" | "SessionEnd") {
            payload["prompt_id"] = json!(self.open.front().unwrap_or(&self.prompt));
            payload["permission_mode"] = json!("default");
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        Event { name, about: about.to_owned(), payload }
    }

    /// One record of the conversation, as a line.
    fn record(&mut self, kind: &str, more: &Value) -> String {
        let uuid = Uuid::new_v4().to_string();
        let mut record = json!({
            "parentUuid": std::mem::replace(&mut self.last, json!(uuid)),
            "isSidechain": false,
            "userType": "external",
            "cwd": self.cwd.to_string_lossy(),
            "sessionId": self.id,
            "version": VERSION,
            "gitBranch": "",
            "type": kind,
            "uuid": uuid,
            "timestamp": jiff::Timestamp::now().to_string(),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            record[key] = value.clone();
        }
        format!("{record}\n")
    }

    fn write_registry(&self) {
        let Some(registry) = self.registry.as_ref().filter(|registry| registry.told) else { return };
        let pid = std::process::id();
        let now = jiff::Timestamp::now().as_millisecond();
        let (status, waiting) = match registry.doing {
            Doing::Idle => ("idle", None),
            Doing::Working => ("busy", None),
            Doing::Asking => ("waiting", Some("permission prompt")),
        };
        let mut text = json!({
            "pid": pid,
            "sessionId": self.id,
            "cwd": self.cwd.to_string_lossy(),
            "startedAt": registry.started,
            "procStart": crate::process::start_of(pid as i32),
            "version": VERSION,
            "kind": "interactive",
            "entrypoint": "cli",
            "status": status,
            "updatedAt": now,
            "statusUpdatedAt": now,
        });
        if let Some(place) = &registry.place {
            text["tmux"] = json!(place);
        }
        if let Some(waiting) = waiting {
            text["waitingFor"] = json!(waiting);
        }
        // the registry is a convenience of the agent's: it runs without it
        let _ = registry.path.parent().map(fs::create_dir_all);
        let _ = fs::write(&registry.path, format!("{text}"));
    }
}

impl Ways for Claude {
    fn earlier(&self) -> &[String] {
        &self.earlier
    }

    fn words(&self) -> Words {
        let mut banner = vec![
            format!(" ▐▛███▛█   Claude Code v{VERSION}"),
            "▝▜██████▀  Stand-in · no model".to_owned(),
            format!(" ▝▝   ▝▝   {}", self.cwd.display()),
        ];
        if self.unsaved {
            let why = "Transcript saving is off — inherited CLAUDE_CODE_CHILD_SESSION marker";
            banner.push(why.to_owned());
        }
        Words {
            banner,
            mark: "❯",
            bullet: "●",
            placeholder: "",
            working: "✢ Composing…",
            ruled: true,
            idle_footer: "  ⏸ manual mode on · ? for shortcuts".to_owned(),
            working_footer: "  ⏸ manual mode on · esc to interrupt".to_owned(),
            asking: &[
                " Bash command",
                " touch permitted.txt",
                " Do you want to proceed?",
                " ❯ 1. Yes",
                "   2. Yes, and always allow access from this project",
                "   3. No",
                "",
                " Esc to cancel · Tab to amend",
            ],
            finished: "✻ Worked for 0s · done",
        }
    }

    fn dialog(&self, dialog: Dialog) -> Vec<String> {
        let cwd = self.cwd.display().to_string();
        let lines: &[&str] = match dialog {
            Dialog::Trust | Dialog::Hooks => &[
                " Accessing workspace:",
                &format!(" {cwd}"),
                "",
                " Quick safety check: Is this a project you created or one you trust?",
                "",
                " ❯ No, exit",
                "   Yes, I trust this folder",
                "",
                " Enter to confirm · Esc to cancel",
            ],
            Dialog::Login => &[
                " Claude Code can be used with your Claude subscription or billed based on API usage.",
                "",
                " Select login method:",
                "",
                " ❯ 1. Claude account with subscription",
                "   2. Anthropic Console account",
            ],
            Dialog::Directory | Dialog::Elsewhere => &[
                " This conversation is from a different directory.",
                "",
                " ❯ 1. Resume here",
                "   2. Cancel",
                "",
                " Enter to confirm · Esc to cancel",
            ],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn commands(&self) -> Vec<Command> {
        self.settings.iter().flat_map(|text| commands_of(text)).collect()
    }

    fn hook_environment(&self, event: &str) -> Vec<(String, String)> {
        let mut all = vec![
            ("CLAUDECODE", "1".to_owned()),
            ("CLAUDE_CODE_CHILD_SESSION", "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT", "cli".to_owned()),
            ("CLAUDE_CODE_SESSION_ID", self.id.clone()),
            ("CLAUDE_PID", std::process::id().to_string()),
            ("CLAUDE_PROJECT_DIR", self.cwd.to_string_lossy().into_owned()),
        ];
        if event == "SessionStart" {
            let file = self.config.join("session-env").join(&self.id).join("hook-0.sh");
            all.push(("CLAUDE_ENV_FILE", file.to_string_lossy().into_owned()));
        }
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn started(&mut self) -> Vec<Event> {
        let source = if self.resumed { "resume" } else { "startup" };
        let mut more = json!({ "source": source, "model": "claude-opus-5-5" });
        if self.resumed {
            more["seconds_since_last_response"] = json!(1);
            more["context_tokens"] = json!(self.earlier.len() * 10);
        }
        vec![self.event("SessionStart", source, more)]
    }

    fn submitted(&mut self, prompt: &str, _answer: &str, _length: Duration) -> Taken {
        self.prompt = Uuid::new_v4().to_string();
        let mut text = String::new();
        if self.earlier.is_empty() {
            for head in [
                json!({ "type": "mode", "mode": "normal", "sessionId": self.id }),
                json!({ "type": "permission-mode", "permissionMode": "default", "sessionId": self.id }),
                json!({ "type": "file-history-snapshot", "messageId": self.prompt, "isSnapshotUpdate": false }),
            ] {
                text += &format!("{head}\n");
            }
        }
        self.earlier.push(prompt.to_owned());
        let message = json!({ "role": "user", "content": prompt });
        text += &self
            .record("user", &json!({ "message": message, "promptId": self.prompt, "promptSource": "typed" }));
        self.open.push_back(self.prompt.clone());
        let more = json!({ "prompt": prompt, "prompt_id": self.prompt });
        Taken { text, events: vec![self.event("UserPromptSubmit", "", more)] }
    }

    fn asked(&mut self) -> Vec<Event> {
        let tool = json!({
            "tool_name": "Bash",
            "tool_input": { "command": "touch permitted.txt", "description": "Stand-in" },
        });
        let mut use_of_tool = tool.clone();
        use_of_tool["tool_use_id"] = json!(format!("toolu_{}", Uuid::new_v4().simple()));
        vec![self.event("PreToolUse", "Bash", use_of_tool), self.event("PermissionRequest", "Bash", tool)]
    }

    fn answered(&mut self, answer: &str, background: Option<&str>) -> Taken {
        let content = json!([{ "type": "text", "text": answer }]);
        let message = json!({ "role": "assistant", "model": "claude-opus-5-5", "content": content });
        let text = self.record("assistant", &json!({ "message": message }));
        let tasks: Vec<Value> = background
            .iter()
            .map(|task| json!({ "id": "b1", "type": "local_bash", "status": "running", "description": task }))
            .collect();
        let more = json!({
            "stop_hook_active": false,
            "last_assistant_message": answer,
            "background_tasks": tasks,
            "session_crons": [],
        });
        let events = vec![self.event("Stop", "", more)];
        self.open.pop_front();
        Taken { text, events }
    }

    fn interrupted(&mut self) {
        self.open.pop_front();
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        if self.unsaved {
            return Ok(());
        }
        let path = self.transcript();
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
    }

    fn cleared(&mut self) -> Vec<Event> {
        let mut events = self.ended(Reason::Cleared);
        self.id = Uuid::new_v4().to_string();
        self.earlier.clear();
        self.last = Value::Null;
        self.write_registry();
        events.push(self.event(
            "SessionStart",
            "clear",
            json!({ "source": "clear", "model": "claude-opus-5-5" }),
        ));
        events
    }

    fn ended(&mut self, reason: Reason) -> Vec<Event> {
        let reason = match reason {
            Reason::Left => "prompt_input_exit",
            Reason::Told => "other",
            Reason::Cleared => "clear",
        };
        vec![self.event("SessionEnd", reason, json!({ "reason": reason }))]
    }

    fn shows(&mut self, doing: Doing) -> String {
        if let Some(registry) = &mut self.registry {
            registry.doing = doing;
            registry.told = true;
            self.write_registry();
        }
        let title = self.earlier.first().map_or("Claude Code", String::as_str);
        super::plain::escape("0;", &format!("✳ {}", title.chars().take(40).collect::<String>()))
    }

    fn placed(&mut self, place: String) {
        if let Some(registry) = &mut self.registry {
            registry.place = Some(place);
            self.write_registry();
        }
    }

    fn meets(&self, signal: Signal) -> Answer {
        match signal {
            Signal::SIGHUP => Answer::Exit(129),
            Signal::SIGTERM => Answer::Exit(143),
            Signal::SIGINT => Answer::Exit(0),
            _ => Answer::Ignore,
        }
    }

    fn farewell(&self) -> Vec<String> {
        if self.earlier.is_empty() {
            return Vec::new();
        }
        vec!["Resume this session with:".to_owned(), format!("claude --resume {}", self.id)]
    }

    fn gone(&mut self) {
        if let Some(registry) = &self.registry {
            let _ = fs::remove_file(&registry.path);
        }
    }
}

/// The settings that count, the user's first.
fn settings(asked: &Asked, config: &Path, cwd: &Path) -> Vec<String> {
    let own = cwd.join(".claude");
    let mut files =
        vec![config.join("settings.json"), own.join("settings.json"), own.join("settings.local.json")];
    let mut texts = Vec::new();
    match &asked.settings {
        Some(text) if text.trim_start().starts_with('{') => texts.push(text.clone()),
        Some(path) => files.push(PathBuf::from(path)),
        None => {}
    }
    let mut all: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    all.append(&mut texts);
    all
}

/// The prompts of a conversation; an error when there is none.
fn prompts(path: &Path) -> io::Result<Vec<String>> {
    let mut prompts = Vec::new();
    for line in io::BufReader::new(fs::File::open(path)?).lines() {
        // a line cut short by a crash is no prompt
        let Ok(record) = serde_json::from_str::<Value>(&line?) else { continue };
        let prompt = record.pointer("/message/content").and_then(Value::as_str);
        if record.get("type").is_some_and(|kind| kind == "user")
            && let Some(prompt) = prompt
        {
            prompts.push(prompt.to_owned());
        }
    }
    Ok(prompts)
}

/// The folder of a working directory's conversations: every UTF-16 unit outside `[A-Za-z0-9]` is a dash; a long one is cut
/// and carries a hash of the whole. The composing of characters (NFC) is left out.
fn slug(cwd: &Path) -> String {
    if let Some(name) = std::env::var("CLAUDE_CODE_PROJECT_DIR_NAME").ok().filter(|name| !name.is_empty()) {
        return name;
    }
    slug_of(&cwd.to_string_lossy())
}

fn slug_of(path: &str) -> String {
    let units = path.encode_utf16();
    let letter =
        |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    let slug: String = units.clone().map(letter).collect();
    if slug.len() <= SLUG {
        return slug;
    }
    let hash = units.fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &slug[..SLUG], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_claude_names_them() {
        for (cwd, slug) in [
            ("/home/u/my.app", "-home-u-my-app"),
            ("/home/u/my app", "-home-u-my-app"),
            ("/home/u/.claude/worktrees/x", "-home-u--claude-worktrees-x"),
            ("/srv/🚀x", "-srv---x"),
            ("/srv/日本", "-srv---"),
        ] {
            assert_eq!(slug_of(cwd), slug);
        }
        let long = format!("/w/{}", "a".repeat(198));
        assert_eq!(slug_of(&long), format!("-w-{}-ipsd09", "a".repeat(197)));
    }
}
