//! Stand-ins that behave like a provider's agent: real argv, conversation files, registry, hooks, screen (`ait demo-agent
//! --provider`, see its module for what they do).
//!
//! ```text
//! let agent = Fake::claude(&tmux, "main", "cart", &root);     // `claude --session-id ID` in a new window
//! agent.prompt(&tmux, "hello");                               // typed, sent, answered: in the file when this returns
//! agent.conversation();  agent.turns();                       // its id, and how many prompts its file holds
//! home.manners("claude", json!({"late_hook_ms": 3000}));      // for agents started from here on
//! home.hooked("claude");                                      // its settings call `ait hook`
//! let record = agent.adopt(&tmux);                            // the record's id
//! ```
//!
//! The words of a prompt steer its turn: `[[ms=N]]` how long, `[[ask]]` a permission first (Enter grants), `[[background=X]]`
//! work that goes on. `exit N`, `die SIGNAL`, `/exit`, `/clear` are obeyed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::proc::{self, Process};
use super::tmux::Pane;
use super::{AIT, DEADLINE, Home, Tmux, wait_until};

/// A stand-in and where it was started.
#[derive(Debug, Clone)]
pub(crate) struct Fake {
    /// `claude`, `codex`, `gemini`.
    pub(crate) provider: &'static str,
    /// Its pane.
    pub(crate) pane: Pane,
    /// Where it works.
    pub(crate) cwd: PathBuf,
    home: Home,
}

/// An id for a new conversation, another one at each call.
pub(crate) fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

impl Fake {
    /// `claude --session-id <new>` in a new window, up.
    #[track_caller]
    pub(crate) fn claude(tmux: &Tmux, session: &str, window: &str, cwd: &Path) -> Fake {
        Fake::window(tmux, session, window, cwd, "claude", &["--session-id", &new_id()]).up(tmux)
    }

    /// The one that stands in `pane` already.
    pub(crate) fn of(home: &Home, provider: &'static str, pane: Pane, cwd: &Path) -> Fake {
        Fake { provider, pane, cwd: cwd.to_owned(), home: home.clone() }
    }

    /// A provider's agent with these words in a new window; not waited for.
    #[track_caller]
    pub(crate) fn window(
        tmux: &Tmux,
        session: &str,
        window: &str,
        cwd: &Path,
        provider: &'static str,
        words: &[&str],
    ) -> Fake {
        let program = tmux.home().agent_program(provider);
        let pane = tmux.window(session, window, cwd, &[&[program.to_str().unwrap()], words].concat());
        Fake { provider, pane, cwd: cwd.to_owned(), home: tmux.home().clone() }
    }

    /// A provider's agent in a split beside this one; not waited for.
    #[track_caller]
    pub(crate) fn beside(&self, tmux: &Tmux, provider: &'static str, words: &[&str]) -> Fake {
        let program = self.home.agent_program(provider);
        let pane = tmux.split(&self.pane, &self.cwd, &[&[program.to_str().unwrap()], words].concat());
        Fake { provider, pane, ..self.clone() }
    }

    /// Types the agent's command at the prompt of the shell in `pane`; not waited for.
    #[track_caller]
    pub(crate) fn typed(
        tmux: &Tmux,
        pane: &Pane,
        cwd: &Path,
        provider: &'static str,
        words: &[&str],
    ) -> Fake {
        let program = tmux.home().agent_program(provider);
        // a login shell has made itself a PATH of its own
        let folder = program.parent().unwrap().display().to_string();
        let line = format!("PATH={folder}:$PATH {}", [&[provider], words].concat().join(" "));
        tmux.ok(["send-keys", "-t", &pane.id, "-l", &line]);
        tmux.ok(["send-keys", "-t", &pane.id, "Enter"]);
        Fake { provider, pane: pane.clone(), cwd: cwd.to_owned(), home: tmux.home().clone() }
    }

    /// The same agent in another pane (after a restore).
    pub(crate) fn at(&self, pane: Pane) -> Fake {
        Fake { pane, ..self.clone() }
    }

    /// Waits until its composer stands.
    #[track_caller]
    pub(crate) fn up(self, tmux: &Tmux) -> Fake {
        self.ready(tmux);
        self
    }

    /// Waits until its composer stands and no turn runs.
    #[track_caller]
    pub(crate) fn ready(&self, tmux: &Tmux) {
        self.screen_until(tmux, "its composer", |screen| {
            let busy = ["esc to interrupt", "esc to cancel"].iter().any(|sign| screen.contains(sign));
            screen.contains(self.mark()) && screen.contains("? for shortcuts") && !busy
        });
    }

    /// What stands before its composer.
    pub(crate) fn mark(&self) -> &'static str {
        match self.provider {
            "claude" => "❯",
            "codex" => "›",
            _ => ">",
        }
    }

    /// What its pane shows.
    #[track_caller]
    pub(crate) fn screen(&self, tmux: &Tmux) -> String {
        tmux.ok(["capture-pane", "-p", "-J", "-t", &self.pane.id])
    }

    /// Waits until its pane shows what `shown` looks for.
    #[track_caller]
    pub(crate) fn screen_until(&self, tmux: &Tmux, what: &str, mut shown: impl FnMut(&str) -> bool) {
        let mut last = String::new();
        let seen = super::wait::within(DEADLINE, || {
            last = tmux.run(["capture-pane", "-p", "-J", "-t", &self.pane.id]).text();
            shown(&last).then_some(())
        });
        assert!(seen.is_some(), "waited for {what} of {} in {}:\n{last}", self.provider, self.pane.id);
    }

    /// Waits until it has said `text`, be it in the scrollback (where tmux moves the page when it writes that a pane is dead).
    #[track_caller]
    pub(crate) fn said_until(&self, tmux: &Tmux, text: &str) {
        wait_until(&format!("{} to say {text:?}", self.provider), DEADLINE, || {
            let told = tmux.run(["capture-pane", "-p", "-J", "-S", "-", "-t", &self.pane.id]).text();
            told.contains(text).then_some(())
        });
    }

    /// Types a line and sends it.
    #[track_caller]
    pub(crate) fn say(&self, tmux: &Tmux, line: &str) {
        tmux.ok(["send-keys", "-t", &self.pane.id, "-l", line]);
        tmux.ok(["send-keys", "-t", &self.pane.id, "Enter"]);
    }

    /// Sends a prompt to an agent that is ready, and waits until it is answered on the screen and in the file.
    #[track_caller]
    pub(crate) fn prompt(&self, tmux: &Tmux, text: &str) {
        let before = self.turns();
        self.say(tmux, text);
        let answer = format!("turn {}, {before} earlier: {text}", before + 1);
        self.screen_until(tmux, &format!("the answer `{answer}`"), |screen| screen.contains(&answer));
        wait_until("the turn in the conversation's file", DEADLINE, || {
            self.file().filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&answer)))
        });
        self.ready(tmux);
    }

    /// The user leaves it: `/exit`, and it is gone.
    #[track_caller]
    pub(crate) fn leave(&self, tmux: &Tmux) {
        let process = self.process();
        self.say(tmux, "/exit");
        assert!(process.dies(DEADLINE), "{} in {} leaves", self.provider, self.pane.id);
    }

    /// The agent's own process: the pane's, or the one below it that goes by the provider's name.
    #[track_caller]
    pub(crate) fn process(&self) -> Process {
        wait_until("the agent's process", DEADLINE, || self.find())
    }

    fn find(&self) -> Option<Process> {
        // `claude …`, or `node /path/codex …`: the outer of two processes
        let is_agent = |pid: u32| {
            let command = proc::command(pid);
            let mut names =
                command.split(' ').take(2).map(|word| word.rsplit('/').next().unwrap_or_default());
            let first = names.next().unwrap_or_default();
            first == self.provider || (first == "node" && names.next() == Some(self.provider))
        };
        let mut family = vec![Process::of(self.pane.pid)?];
        let mut next = 0;
        while let Some(process) = family.get(next).copied() {
            if is_agent(process.pid) {
                return Some(process);
            }
            family.extend(proc::children(process.pid));
            next += 1;
        }
        None
    }

    /// The process that does the work: below a script (`node …/codex`) its child, else the agent itself.
    #[track_caller]
    pub(crate) fn inner(&self) -> Process {
        let outer = self.process();
        if !proc::command(outer.pid).starts_with("node ") {
            return outer;
        }
        wait_until("the process below the script", DEADLINE, || proc::children(outer.pid).first().copied())
    }

    /// The id of its conversation: what its registry says (Claude), what its words say, what it has open (Codex).
    #[track_caller]
    pub(crate) fn conversation(&self) -> String {
        wait_until("the conversation's id", DEADLINE, || self.known_conversation())
    }

    /// Its conversation's id, if anything tells it yet.
    pub(crate) fn known_conversation(&self) -> Option<String> {
        let process = self.find()?;
        if self.provider == "claude" {
            let registry = self.home.claude_registry(process.pid)?;
            return registry["sessionId"].as_str().map(str::to_owned);
        }
        let words: Vec<String> = proc::command(process.pid).split(' ').map(str::to_owned).collect();
        let after =
            words.windows(2).find(|pair| matches!(pair[0].as_str(), "--session-id" | "--resume" | "resume"));
        let named = after.map(|pair| pair[1].clone()).or_else(|| rollout_of(process.pid));
        // one that neither says it nor has it open tells it in its file: Gemini, and Codex with the daemon
        named.or_else(|| self.home.newest_conversation(self.provider, &self.cwd))
    }

    /// The file of its conversation, once there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.home.conversation_file(self.provider, &self.known_conversation()?)
    }

    /// How many prompts its conversation's file holds.
    pub(crate) fn turns(&self) -> usize {
        self.known_conversation().map_or(0, |id| self.home.turns(self.provider, &id))
    }

    /// `ait adopt` of its pane; the record's id.
    #[track_caller]
    pub(crate) fn adopt(&self, tmux: &Tmux) -> String {
        self.home.ait(["adopt", &self.pane.id, "--socket", &tmux.socket_text()]).ok();
        let id = tmux.format(&self.pane.id, "#{@aitask_record}");
        assert!(!id.is_empty(), "pane {} is stamped", self.pane.id);
        id
    }
}

/// The id of the rollout a process or one of its children has open.
fn rollout_of(pid: u32) -> Option<String> {
    let own = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let mut open = own.filter_map(|entry| fs::read_link(entry.path()).ok());
    let rollout = open.find_map(|path| id_of_rollout(&path));
    // the daemon is a child of whoever started it, and what it has open is everybody's
    let own = |child: &Process| !proc::command(child.pid).contains("app-server");
    rollout.or_else(|| proc::children(pid).into_iter().filter(own).find_map(|child| rollout_of(child.pid)))
}

fn id_of_rollout(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(36)?..).map(str::to_owned)
}

/// Every file below `folder`, at any depth.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

impl Home {
    /// The program of a provider's agent, first on PATH; put there if it is missing.
    pub(crate) fn agent_program(&self, provider: &str) -> PathBuf {
        let path = self.bin().join(provider);
        // two threads of one story may both find it missing
        let _ = symlink(AIT, &path);
        path
    }

    /// Takes a provider's program off PATH.
    pub(crate) fn no_agent_program(&self, provider: &str) {
        fs::remove_file(self.bin().join(provider)).unwrap();
    }

    /// How that provider's agents behave from here on; see `demo_agent/manners.rs` for the names. `{}` is as usual.
    pub(crate) fn manners(&self, provider: &str, manners: Value) {
        let folder = self.home().join(".ait-fake");
        fs::create_dir_all(&folder).unwrap();
        let unfinished = folder.join(format!(".{provider}.new"));
        fs::write(&unfinished, manners.to_string()).unwrap();
        fs::rename(&unfinished, folder.join(format!("{provider}.json"))).unwrap();
    }

    /// The settings file of a provider's hooks.
    pub(crate) fn hook_settings(&self, provider: &str) -> PathBuf {
        self.home().join(match provider {
            "codex" => ".codex/hooks.json",
            "gemini" => ".gemini/settings.json",
            _ => ".claude/settings.json",
        })
    }

    /// Every event of the provider calls `ait hook EVENT --provider P`, in agents started from here on.
    pub(crate) fn hooked(&self, provider: &str) {
        self.hooked_with(provider, |event| format!("'{AIT}' hook {event} --provider {provider}"));
    }

    /// Every event of the provider runs the command `line` gives for it.
    pub(crate) fn hooked_with(&self, provider: &str, line: impl Fn(&str) -> String) {
        let events: &[&str] = match provider {
            "gemini" => &["SessionStart", "BeforeAgent", "AfterAgent", "Notification", "SessionEnd"],
            _ => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PermissionRequest",
                "Notification",
                "Stop",
                "SessionEnd",
            ],
        };
        let groups: serde_json::Map<String, Value> = events
            .iter()
            .map(|event| {
                let hook = json!({ "type": "command", "command": line(event) });
                ((*event).to_owned(), json!([{ "hooks": [hook] }]))
            })
            .collect();
        let path = self.hook_settings(provider);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json!({ "hooks": groups }).to_string()).unwrap();
    }

    /// Every event of the provider is written down by [`Home::hooks_fired`].
    pub(crate) fn hooks_watched(&self, provider: &str) {
        // `cat` reads the whole event before the line is written: lines of two hooks do not mix
        let file = self.root().join(format!("{provider}-hooks"));
        let script = self.script(
            &format!("{provider}-hook"),
            &format!(
                "#!/bin/sh\nevent=$(cat)\nprintf '%s\\t%s\\t%s\\t%s\\t%s\\n' \"$1\" \"$PPID\" \"$TMUX_PANE\" \
                 \"$CLAUDE_PROJECT_DIR\" \"$event\" >>'{}'\n",
                file.display()
            ),
        );
        self.hooked_with(provider, |event| format!("'{}' {event}", script.display()));
    }

    /// The events that fired, in order, since [`Home::hooks_watched`].
    pub(crate) fn hooks_fired(&self, provider: &str) -> Vec<Fired> {
        let text = fs::read_to_string(self.root().join(format!("{provider}-hooks"))).unwrap_or_default();
        // one that is being written has no end yet
        text.split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
            .map(|line| {
                let mut words = line.splitn(5, '\t').map(str::to_owned);
                let mut next = || words.next().unwrap_or_default();
                let (event, _shell, pane, project) = (next(), next(), next(), next());
                Fired { event, pane, project, payload: serde_json::from_str(&next()).unwrap() }
            })
            .collect()
    }

    /// `~/.claude/sessions/<pid>.json`, once it is whole.
    pub(crate) fn claude_registry(&self, pid: u32) -> Option<Value> {
        let path = self.home().join(format!(".claude/sessions/{pid}.json"));
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// The file of a conversation, found by its id.
    pub(crate) fn conversation_file(&self, provider: &str, id: &str) -> Option<PathBuf> {
        let store = self.home().join(match provider {
            "codex" => ".codex/sessions",
            "gemini" => ".gemini/tmp",
            _ => ".claude/projects",
        });
        let named = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let stem = name.trim_end_matches(".jsonl");
            if provider == "gemini" { stem.ends_with(&id[..8.min(id.len())]) } else { stem.ends_with(id) }
        };
        files_below(&store).into_iter().find(named)
    }

    /// The conversation begun last in `cwd`, by its file.
    fn newest_conversation(&self, provider: &str, cwd: &Path) -> Option<String> {
        let store = self.home().join(if provider == "codex" { ".codex/sessions" } else { ".gemini/tmp" });
        let folder = cwd.file_name()?.to_str()?;
        let mut files = files_below(&store);
        files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
        files.into_iter().rev().find_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let head: Value = serde_json::from_str(text.lines().next()?).ok()?;
            if provider == "codex" {
                let meta = &head["payload"];
                return (meta["cwd"].as_str()? == cwd.to_str()?)
                    .then(|| meta["id"].as_str().map(str::to_owned))?;
            }
            let below = path.parent()?.parent()?.file_name()?.to_str()? == folder;
            below.then(|| head["sessionId"].as_str().map(str::to_owned))?
        })
    }

    /// Codex's shared daemon, if one runs in this world.
    pub(crate) fn codex_daemon(&self) -> Option<Process> {
        let mut all = self.processes().into_iter();
        all.find(|process| proc::command(process.pid) == "codex app-server")
    }

    /// How many prompts a conversation's file holds; none while there is no file.
    pub(crate) fn turns(&self, provider: &str, id: &str) -> usize {
        let Some(path) = self.conversation_file(provider, id) else { return 0 };
        let text = fs::read_to_string(path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records
            .filter(|record| match provider {
                "codex" => record["payload"]["type"] == "user_message",
                "gemini" => record["type"] == "user",
                _ => record["type"] == "user" && record["message"]["content"].is_string(),
            })
            .count()
    }
}

/// One hook that fired.
#[derive(Debug, Clone)]
pub(crate) struct Fired {
    /// The event's name.
    pub(crate) event: String,
    /// `TMUX_PANE` of its environment.
    pub(crate) pane: String,
    /// `CLAUDE_PROJECT_DIR` of its environment.
    pub(crate) project: String,
    /// What it read.
    pub(crate) payload: Value,
}
