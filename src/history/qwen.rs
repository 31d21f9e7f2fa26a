//! Qwen Code: one file per conversation in a folder per project.
//!
//! `~/.qwen/projects/<dashed path>/chats/<id>.jsonl`, its records with `sessionId` and `cwd`; earlier
//! `~/.qwen/tmp/<SHA-256 of the root>/chats/session-*.json`. `QWEN_RUNTIME_DIR`, then `QWEN_HOME`, stand for `~/.qwen`. A
//! resume finds only what is of its project.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Entry, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss, gemini, slug};
use crate::provider::Provider;

fn home(env: &Environment) -> Result<PathBuf, Doubt> {
    match env.folder("QWEN_RUNTIME_DIR")? {
        Some(folder) => Ok(folder),
        None => env.folder_or("QWEN_HOME", ".qwen"),
    }
}

/// A conversation with the folder of its project.
#[derive(Debug, Clone)]
struct Held {
    conversation: Conversation,
    turn: bool,
    side: bool,
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, cwd: &Path, env: &Environment) -> Looked {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Located::missing(Miss::NoStore) };
    let mut doubt = None;
    let mut held = Vec::new();
    let projects = folders(&shelf, "projects")?;
    // the project's own folder first; the others are not opened when it is there
    let near = |name: &str| asked(cwd).any(|path| slug::dashed(&path) == name);
    let (own, others): (Vec<_>, Vec<_>) = projects.into_iter().partition(|name| near(name));
    for names in [own, others] {
        for name in names {
            let file = Path::new("projects").join(name).join("chats").join(format!("{id}.jsonl"));
            match head(&shelf, &file, id) {
                Ok(found) => held.extend(found),
                Err(why) => doubt = doubt.or(Some(why)),
            }
        }
        if !held.is_empty() {
            break;
        }
    }
    if held.is_empty() {
        held.extend(
            older(&shelf, cwd, None, &mut doubt)?.into_iter().filter(|held| held.conversation.id == id),
        );
    }
    let here = |held: &Held| held.conversation.cwd.as_deref().is_some_and(|own| same_folder(own, cwd));
    if held.iter().filter(|held| here(held)).count() == 1 {
        held.retain(here);
    }
    match (held.as_slice(), doubt) {
        ([one], _) if one.side => Located::missing(Miss::SubSession),
        ([one], _) if !one.turn => Located::missing(Miss::NoTurn),
        ([one], _) => {
            Located::present(one.conversation.file.clone(), here(one), one.conversation.cwd.clone())
        }
        ([], Some(doubt)) => Err(doubt),
        ([], None) => Located::missing(Miss::NoConversation),
        (many, _) => Located::ambiguous(id, many.iter().map(|held| held.conversation.file.clone())),
    }
}

/// All conversations, or those of a folder.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for name in folders(&shelf, "projects")? {
        if cwd.is_some_and(|cwd| !asked(cwd).any(|path| slug::dashed(&path) == name)) {
            continue;
        }
        let folder = Path::new("projects").join(name).join("chats");
        for entry in shelf.list(&folder)?.unwrap_or_default() {
            let Some(id) = entry.name.strip_suffix(".jsonl") else { continue };
            match head(&shelf, &folder.join(&entry.name), id) {
                Ok(held) => all.extend(held),
                Err(doubt) => doubts.push(doubt),
            }
        }
    }
    let mut doubt = None;
    all.extend(older(&shelf, cwd.unwrap_or(Path::new("")), cwd, &mut doubt)?);
    doubts.extend(doubt);
    let here = |held: &Held| {
        cwd.is_none_or(|cwd| held.conversation.cwd.as_deref().is_some_and(|own| same_folder(own, cwd)))
    };
    let own = all.into_iter().filter(|held| held.turn && !held.side && here(held));
    Ok(own.map(|held| held.conversation).collect())
}

fn folders(shelf: &Shelf<'_>, below: &str) -> Result<Vec<String>, Doubt> {
    let is_folder = |entry: &Entry| matches!(entry.kind, Kind::Folder | Kind::Link);
    Ok(shelf.list(below)?.unwrap_or_default().into_iter().filter(is_folder).map(|entry| entry.name).collect())
}

/// The folder as it was given and as it really lies.
fn asked(cwd: &Path) -> impl Iterator<Item = String> {
    let real = cwd.canonicalize().ok();
    [real, Some(cwd.to_owned())].into_iter().flatten().filter_map(|path| path.to_str().map(str::to_owned))
}

fn head(shelf: &Shelf<'_>, file: &Path, id: &str) -> Result<Option<Held>, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let mut found = Conversation {
        provider: Provider::Qwen,
        id: id.to_owned(),
        cwd: None,
        started: None,
        changed: page.changed(),
        file: page.path.clone(),
        title: None,
    };
    let mut side = false;
    let mut lines = page.lines()?;
    while let Some(line) = lines.next_object()? {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        if found.started.is_none() {
            found.started = text("timestamp").and_then(|time| time.parse().ok());
        }
        if let Some(cwd) = text("cwd") {
            found.cwd = Some(PathBuf::from(cwd));
            side = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
            break;
        }
    }
    let turn = found.cwd.is_some();
    Ok(Some(Held { conversation: found, turn, side }))
}

/// The conversations of the earlier form; their folder is known only where its hash is that of a folder that was asked for.
fn older(
    shelf: &Shelf<'_>,
    cwd: &Path,
    only: Option<&Path>,
    doubt: &mut Option<Doubt>,
) -> Result<Vec<Held>, Doubt> {
    let mut all = Vec::new();
    for name in folders(shelf, "tmp")? {
        let root = asked(cwd).find(|path| slug::sha256(path) == name).map(PathBuf::from);
        if only.is_some() && root.is_none() {
            continue;
        }
        match gemini::chats(shelf, &Path::new("tmp").join(&name).join("chats"), None) {
            Ok(heads) => all.extend(heads.into_iter().map(|head| held(head, root.clone()))),
            Err(why) => *doubt = doubt.take().or(Some(why)),
        }
    }
    Ok(all)
}

fn held(head: gemini::Head, cwd: Option<PathBuf>) -> Held {
    let started: Option<Timestamp> = head.started;
    let conversation = Conversation {
        provider: Provider::Qwen,
        id: head.id,
        cwd,
        started,
        changed: head.changed,
        file: head.file,
        title: None,
    };
    Held { conversation, turn: true, side: head.side }
}
