//! What is unusual about a stand-in: `$HOME/.ait-fake/<provider>.json`, read once, at its start.
//!
//! A file that is missing means usual manners; one that is wrong ends the stand-in, so that no test runs with manners it did
//! not ask for. `directories` holds manners for agents of one working directory, over those of the file itself.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Exit, Failure, Kind};

/// The longest manners file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// The manners of one stand-in. All times in milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Manners {
    /// From start to the first sign of life on screen and disk.
    pub(super) start_ms: u64,
    /// How long a turn takes.
    pub(super) turn_ms: u64,
    /// No hook fires at all.
    pub(super) no_hooks: bool,
    /// `SessionStart` fires this much later (and all events behind it).
    pub(super) late_hook_ms: u64,
    /// What a turn writes to the conversation's file arrives this much later.
    pub(super) late_flush_ms: u64,
    /// A resumed conversation goes on under this id.
    pub(super) other_id: Option<String>,
    /// It ends at once with this status.
    pub(super) exit: Option<u8>,
    /// It stands at a dialog until Enter.
    pub(super) dialog: Option<Dialog>,
    /// An agent of the same kind runs below it, with its environment, and fires `SessionStart` under an id of its own.
    pub(super) nested: bool,
    /// Signals it does not hear: `TERM`, `HUP`, `INT`. Deaf to HUP, it outlives its terminal.
    pub(super) deaf: Vec<String>,
    /// It takes the whole screen (1049) and leaves no scrollback.
    pub(super) full_screen: bool,
    /// A task that goes on after each turn.
    pub(super) background: Option<String>,
    /// Text that stands in its composer from the start.
    pub(super) draft: Option<String>,
    /// So many presses of Enter are missed, as by a program that is still busy with a text.
    pub(super) missed_enters: u32,
    /// On SIGTERM, the process whose pid this file holds is killed (SIGKILL) first.
    pub(super) kill_on_term: Option<PathBuf>,
    /// Started, it leaves a process in a session of its own that outlives it; its pid is written to this file.
    pub(super) leaves: Option<PathBuf>,
    /// Its pid registry is not kept (Claude before it had one).
    pub(super) no_registry: bool,
    /// A script stands in front of it, `node …/codex` (Gemini: always).
    pub(super) node: bool,
    /// Codex: the shared daemon does the work, unless the command line says otherwise.
    pub(super) daemon: bool,
}

/// What a dialog is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dialog {
    /// Trust this folder?
    Trust,
    /// Log in.
    Login,
    /// Hooks to review.
    Hooks,
    /// The conversation was in another directory.
    Directory,
    /// Another process has the conversation open (Codex).
    Elsewhere,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            start_ms: 0,
            turn_ms: 50,
            no_hooks: false,
            late_hook_ms: 0,
            late_flush_ms: 0,
            other_id: None,
            exit: None,
            dialog: None,
            nested: false,
            deaf: Vec::new(),
            full_screen: false,
            background: None,
            draft: None,
            missed_enters: 0,
            kill_on_term: None,
            leaves: None,
            no_registry: false,
            node: false,
            daemon: false,
        }
    }
}

/// The manners of an agent of this kind that works in `cwd`.
pub(super) fn of(kind: Kind, home: &Path, cwd: &Path) -> Result<Manners, Failure> {
    let path = home.join(".ait-fake").join(format!("{}.json", kind.name()));
    let wrong = |why: String| Failure::new(Exit::BAD_DATA, format!("{}: {why}", path.display()));
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Manners::default()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut whole: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let directories = whole.remove("directories");
    let own = directories.as_ref().and_then(|all| all.get(cwd.to_str()?)).and_then(Value::as_object);
    whole.extend(own.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    serde_json::from_value(Value::Object(whole)).map_err(|error| wrong(error.to_string()))
}

fn read(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
