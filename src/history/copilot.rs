//! GitHub Copilot CLI: a folder per conversation.
//!
//! `${COPILOT_HOME:-~/.copilot}/session-state/<name>/events.jsonl`, whose `session.start` event has the id (the folder's name
//! may be another), and `workspace.yaml` beside it; earlier `session-state/<id>.jsonl`, and before that one JSON file each in
//! `history-session-state/`. A resume finds an id from any folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Entry, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss};
use crate::provider::Provider;

/// Events that may stand before `session.start`.
const BEFORE: usize = 64;

/// What a file says of its conversation.
#[derive(Debug, Clone, Default)]
struct Head {
    id: String,
    file: PathBuf,
    cwd: Option<PathBuf>,
    started: Option<Timestamp>,
    changed: Option<Timestamp>,
    title: Option<String>,
}

fn home(env: &Environment) -> Result<PathBuf, Doubt> {
    env.folder_or("COPILOT_HOME", ".copilot")
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, _cwd: &Path, env: &Environment) -> Looked {
    let mut store = false;
    let mut doubt = None;
    for (folder, head) in FORMS {
        let Some(shelf) = disk.shelf(&home(env)?.join(folder))? else { continue };
        store = true;
        let mut entries = shelf.list("")?.unwrap_or_default();
        // the one whose name says it first; the others only when it does not hold what it says
        entries.sort_by_key(|entry| !entry.name.contains(id));
        let mut held: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
        for entry in entries {
            if !held.is_empty() && !entry.name.contains(id) {
                break;
            }
            match head(&shelf, &entry) {
                Ok(Some(head)) if head.id == id => drop(held.insert(head.file, head.cwd)),
                Ok(_) => {}
                Err(why) => doubt = doubt.or(Some(why)),
            }
        }
        match held.len() {
            0 => {}
            1 => {
                let (path, cwd) = held.pop_first().unwrap_or_default();
                return Located::present(path, true, cwd);
            }
            _ => return Located::ambiguous(id, held.into_keys()),
        }
    }
    match doubt {
        Some(doubt) => Err(doubt),
        None if store => Located::missing(Miss::NoConversation),
        None => Located::missing(Miss::NoStore),
    }
}

/// All conversations, or those of a folder.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let mut all: BTreeMap<String, Head> = BTreeMap::new();
    for (folder, head) in FORMS {
        let Some(shelf) = disk.shelf(&home(env)?.join(folder))? else { continue };
        for entry in shelf.list("")?.unwrap_or_default() {
            match head(&shelf, &entry) {
                // what was moved to the newer form is there first
                Ok(Some(head)) => drop(all.entry(head.id.clone()).or_insert(head)),
                Ok(None) => {}
                Err(doubt) => doubts.push(doubt),
            }
        }
    }
    let here =
        |head: &Head| cwd.is_none_or(|cwd| head.cwd.as_deref().is_some_and(|own| same_folder(own, cwd)));
    Ok(all.into_values().filter(here).map(conversation).collect())
}

fn conversation(head: Head) -> Conversation {
    Conversation {
        provider: Provider::Copilot,
        id: head.id,
        cwd: head.cwd,
        started: head.started,
        changed: head.changed,
        file: head.file,
        title: head.title,
    }
}

type Read = fn(&Shelf<'_>, &Entry) -> Result<Option<Head>, Doubt>;

/// The folders below the home and how an entry of each is read, the newest form first.
const FORMS: &[(&str, Read)] = &[("session-state", of_events), ("history-session-state", of_history)];

fn of_events(shelf: &Shelf<'_>, entry: &Entry) -> Result<Option<Head>, Doubt> {
    let own = Path::new(&entry.name);
    let (file, beside) = match entry.kind {
        Kind::Folder | Kind::Link => (own.join("events.jsonl"), Some(own.join("workspace.yaml"))),
        Kind::File if entry.name.ends_with(".jsonl") => (own.to_owned(), None),
        Kind::File | Kind::Other => return Ok(None),
    };
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let mut head = Head { file: page.path.clone(), changed: page.changed(), ..Head::default() };
    let mut lines = page.lines()?;
    for _ in 0..BEFORE {
        let Some(line) = lines.next_object()? else { return Ok(None) };
        if line.get("type").and_then(Value::as_str) != Some("session.start") {
            continue;
        }
        let Some(data) = line.get("data") else { return Ok(None) };
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = text(data, "sessionId") else { return Ok(None) };
        head.id = id;
        head.cwd = data.get("context").and_then(|context| text(context, "cwd")).map(PathBuf::from);
        head.started = text(data, "startTime").and_then(|time| time.parse().ok());
        // a file of notes that cannot be read only costs a title
        let notes = beside.and_then(|beside| workspace(shelf, &beside)).unwrap_or_default();
        head.title = notes.get("name").or_else(|| notes.get("summary")).cloned();
        head.cwd = head.cwd.or_else(|| notes.get("cwd").map(PathBuf::from));
        return Ok(Some(head));
    }
    Ok(None)
}

/// The plain `name: value` lines of a `workspace.yaml`.
fn workspace(shelf: &Shelf<'_>, file: &Path) -> Option<BTreeMap<String, String>> {
    let bytes = shelf.open(file).ok()??.whole().ok()?;
    let pairs = String::from_utf8_lossy(&bytes)
        .lines()
        .filter(|line| !line.starts_with([' ', '#', '-']))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.trim().trim_matches(['"', '\'']).to_owned()))
        .filter(|(_, value)| !value.is_empty() && !value.starts_with(['|', '>']))
        .collect();
    Some(pairs)
}

fn of_history(shelf: &Shelf<'_>, entry: &Entry) -> Result<Option<Head>, Doubt> {
    if !matches!(entry.kind, Kind::File | Kind::Link) || !entry.name.ends_with(".json") {
        return Ok(None);
    }
    let Some(page) = shelf.open(&entry.name)? else { return Ok(None) };
    let (file, changed) = (page.path.clone(), page.changed());
    let session: Value = match serde_json::from_slice(&page.whole()?) {
        Ok(session) => session,
        Err(wrong) => return Err(Doubt::Malformed { path: file, why: wrong.to_string() }),
    };
    let text = |name: &str| session.get(name).and_then(Value::as_str);
    Ok(text("sessionId").map(|id| Head {
        id: id.to_owned(),
        file: file.clone(),
        cwd: text("cwd").map(PathBuf::from),
        started: text("startTime").and_then(|time| time.parse().ok()),
        changed,
        title: None,
    }))
}
