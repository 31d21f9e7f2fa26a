//! pi: one file per conversation, whose first line says whose it is.
//!
//! `~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl`. `PI_CODING_AGENT_DIR` stands for `~/.pi/agent`;
//! `PI_CODING_AGENT_SESSION_DIR` is itself the folder of the files. A look-up by id sees only the folder's own.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss, slug};
use crate::provider::Provider;

/// Lines that may stand before the first that says whose the file is.
const BEFORE: usize = 8;

/// Where the conversations lie, and whether in one folder for all projects.
fn store(env: &Environment) -> Result<(PathBuf, bool), Doubt> {
    if let Some(folder) = env.folder("PI_CODING_AGENT_SESSION_DIR")? {
        return Ok((folder, true));
    }
    Ok((env.folder_or("PI_CODING_AGENT_DIR", ".pi/agent")?.join("sessions"), false))
}

/// The folders with conversations in them: the store itself, and those of the projects, the asked-for one first.
fn folders(shelf: &Shelf<'_>, cwd: Option<&Path>) -> Result<Vec<(bool, PathBuf)>, Doubt> {
    let own = |name: &str| {
        let real = cwd.and_then(|cwd| cwd.canonicalize().ok());
        let asked = [real.as_deref(), cwd].into_iter().flatten().filter_map(Path::to_str);
        asked.map(slug::pi).any(|slug| slug == name)
    };
    let all = shelf.list("")?.unwrap_or_default();
    let named = all.into_iter().filter(|entry| matches!(entry.kind, Kind::Folder | Kind::Link));
    let mut folders: Vec<(bool, PathBuf)> =
        named.map(|entry| (own(&entry.name), PathBuf::from(entry.name))).collect();
    folders.push((false, PathBuf::new()));
    folders.sort_by_key(|(own, _)| !own);
    Ok(folders)
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, cwd: &Path, env: &Environment) -> Looked {
    let (folder, flat) = store(env)?;
    let Some(shelf) = disk.shelf(&folder)? else { return Located::missing(Miss::NoStore) };
    let end = format!("_{id}.jsonl");
    let (mut doubt, mut other) = (None, false);
    let mut held = Vec::new();
    for (own, folder) in folders(&shelf, Some(cwd))? {
        let entries = match shelf.list(&folder) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(why) => {
                doubt = doubt.or(Some(why));
                continue;
            }
        };
        for entry in entries.iter().filter(|entry| entry.name.ends_with(&end)) {
            match head(&shelf, &folder.join(&entry.name)) {
                Ok(Some(head)) if head.id == id => {
                    let here = head.cwd.as_deref().is_some_and(|own| same_folder(own, cwd));
                    held.push((here && (own || flat), head));
                }
                Ok(_) => other = true,
                Err(why) => doubt = doubt.or(Some(why)),
            }
        }
    }
    if held.iter().filter(|(files, _)| *files).count() == 1 {
        held.retain(|(files, _)| *files);
    }
    match (held.as_slice(), doubt) {
        ([(files, head)], _) => Located::present(head.file.clone(), *files, head.cwd.clone()),
        ([], Some(doubt)) => Err(doubt),
        ([], None) if other => Located::missing(Miss::OtherId),
        ([], None) => Located::missing(Miss::NoConversation),
        (many, _) => Located::ambiguous(id, many.iter().map(|(_, head)| head.file.clone())),
    }
}

/// All conversations, or those of a folder.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let (folder, flat) = store(env)?;
    let Some(shelf) = disk.shelf(&folder)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (own, folder) in folders(&shelf, cwd)? {
        if cwd.is_some() && !own && !flat {
            continue;
        }
        let entries = match shelf.list(&folder) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(doubt) => {
                doubts.push(doubt);
                continue;
            }
        };
        for entry in entries.iter().filter(|entry| entry.name.ends_with(".jsonl")) {
            match head(&shelf, &folder.join(&entry.name)) {
                Ok(head) => all.extend(head),
                Err(doubt) => doubts.push(doubt),
            }
        }
    }
    let here = |found: &Conversation| {
        cwd.is_none_or(|cwd| found.cwd.as_deref().is_some_and(|own| same_folder(own, cwd)))
    };
    all.retain(here);
    Ok(all)
}

fn head(shelf: &Shelf<'_>, file: &Path) -> Result<Option<Conversation>, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let (path, changed) = (page.path.clone(), page.changed());
    let mut lines = page.lines()?;
    for _ in 0..BEFORE {
        let Some(line) = lines.next_object()? else { return Ok(None) };
        let text = |name: &str| line.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if text("type") != Some("session") {
            continue;
        }
        let started: Option<Timestamp> = text("timestamp").and_then(|time| time.parse().ok());
        return Ok(text("id").map(|id| Conversation {
            provider: Provider::Pi,
            id: id.to_owned(),
            cwd: text("cwd").map(PathBuf::from),
            started,
            changed,
            file: path.clone(),
            title: None,
        }));
    }
    Ok(None)
}
