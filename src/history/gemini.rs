//! Gemini CLI: a folder per project, whose conversations carry no folder of their own.
//!
//! `${GEMINI_CLI_HOME:-$HOME}/.gemini/tmp/<project>/chats/session-<time>-<first 8 of the id>.jsonl` (earlier `.json`). Which
//! project a folder is of says `~/.gemini/projects.json`, the file `.project_root` in it, or its name: earlier the SHA-256 of
//! the root. A resume finds only what is of its project. Sub-agents lie below `chats/<parent>/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss, slug};
use crate::provider::Provider;

/// Lines that may stand before the one that says whose the file is.
const BEFORE: usize = 8;

fn home(env: &Environment) -> Result<PathBuf, Doubt> {
    let home = match env.folder("GEMINI_CLI_HOME")? {
        Some(home) => home,
        None => env.home()?,
    };
    Ok(home.join(".gemini"))
}

/// The project folders with their roots, where those can be told.
struct Projects {
    roots: BTreeMap<String, PathBuf>,
    names: Vec<String>,
}

impl Projects {
    fn read(shelf: &Shelf<'_>) -> Result<Projects, Doubt> {
        let mut roots = BTreeMap::new();
        if let Some(page) = shelf.open("projects.json")?
            && let Ok(map) = serde_json::from_slice::<Value>(&page.whole()?)
        {
            // either below `projects` or bare
            let map = map.get("projects").unwrap_or(&map).as_object().cloned().unwrap_or_default();
            for (root, name) in &map {
                if let Some(name) = name.as_str() {
                    roots.insert(name.to_owned(), PathBuf::from(root));
                }
                // an earlier form of the folder
                roots.insert(slug::sha256(root), PathBuf::from(root));
            }
        }
        let all = shelf.list("tmp")?.unwrap_or_default();
        let folders = all.into_iter().filter(|entry| matches!(entry.kind, Kind::Folder | Kind::Link));
        let names = folders.map(|entry| entry.name).collect();
        Ok(Projects { roots, names })
    }

    /// The root of a project folder: by its own marker, then by the map, then by the hash of the asked-for folder.
    fn root(&self, shelf: &Shelf<'_>, name: &str, cwd: Option<&Path>) -> Result<Option<PathBuf>, Doubt> {
        if let Some(page) = shelf.open(Path::new("tmp").join(name).join(".project_root"))? {
            let root = String::from_utf8_lossy(&page.whole()?).trim().to_owned();
            if !root.is_empty() {
                return Ok(Some(PathBuf::from(root)));
            }
        }
        if let Some(root) = self.roots.get(name) {
            return Ok(Some(root.clone()));
        }
        let real = cwd.and_then(|cwd| cwd.canonicalize().ok());
        let asked = [real.as_deref(), cwd].into_iter().flatten();
        Ok(asked
            .filter(|path| path.to_str().is_some_and(|path| slug::sha256(path) == name))
            .map(Path::to_owned)
            .next())
    }
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, cwd: &Path, env: &Environment) -> Looked {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Located::missing(Miss::NoStore) };
    let projects = Projects::read(&shelf)?;
    if projects.names.is_empty() {
        return Located::missing(Miss::NoStore);
    }
    let start: String = id.chars().take(8).collect();
    let (mut doubt, mut side) = (None, false);
    // per project the newest file: a resumed conversation goes on in a second one
    let mut held: Vec<(bool, PathBuf, Option<PathBuf>)> = Vec::new();
    for name in &projects.names {
        let found = of_project(&shelf, name, Some(&start));
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                doubt = doubt.or(Some(why));
                continue;
            }
        };
        let mut own: Vec<Head> = found.into_iter().filter(|head| head.id == id).collect();
        side |= own.iter().any(|head| head.side);
        own.retain(|head| !head.side);
        if let Some(newest) = own.pop() {
            let root = projects.root(&shelf, name, Some(cwd))?;
            let here = root.as_deref().is_some_and(|root| same_folder(root, cwd));
            held.push((here, newest.file, root));
        }
    }
    if held.iter().filter(|(here, _, _)| *here).count() == 1 {
        held.retain(|(here, _, _)| *here);
    }
    match (held.as_slice(), doubt) {
        ([(here, file, root)], _) => Located::present(file.clone(), *here, root.clone()),
        ([], Some(doubt)) => Err(doubt),
        ([], None) if side => Located::missing(Miss::SubSession),
        ([], None) => Located::missing(Miss::NoConversation),
        (many, _) => Located::ambiguous(id, many.iter().map(|(_, file, _)| file.clone())),
    }
}

/// All conversations, or those of a project.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Ok(Vec::new()) };
    let projects = Projects::read(&shelf)?;
    let mut all: BTreeMap<(String, String), Conversation> = BTreeMap::new();
    for name in &projects.names {
        let root = projects.root(&shelf, name, cwd)?;
        let here = |cwd| root.as_deref().is_some_and(|root| same_folder(root, cwd));
        if !cwd.is_none_or(here) {
            continue;
        }
        match of_project(&shelf, name, None) {
            Ok(heads) => {
                for head in heads.into_iter().filter(|head| !head.side) {
                    let key = (name.clone(), head.id.clone());
                    let began = all.get(&key).map_or(head.started, |first| first.started);
                    all.insert(key, Conversation { started: began, ..conversation(head, root.clone()) });
                }
            }
            Err(doubt) => doubts.push(doubt),
        }
    }
    Ok(all.into_values().collect())
}

fn conversation(head: Head, cwd: Option<PathBuf>) -> Conversation {
    Conversation {
        provider: Provider::Gemini,
        id: head.id,
        cwd,
        started: head.started,
        changed: head.changed,
        file: head.file,
        title: None,
    }
}

/// What a file says of its conversation.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) file: PathBuf,
    pub(super) started: Option<Timestamp>,
    pub(super) changed: Option<Timestamp>,
    pub(super) side: bool,
}

/// The conversations of a project folder, by name and so by time; with `start` only those whose name ends with it.
fn of_project(shelf: &Shelf<'_>, name: &str, start: Option<&str>) -> Result<Vec<Head>, Doubt> {
    let folder = Path::new("tmp").join(name).join("chats");
    chats(shelf, &folder, start)
}

/// The conversations in a folder of chats.
pub(super) fn chats(shelf: &Shelf<'_>, folder: &Path, start: Option<&str>) -> Result<Vec<Head>, Doubt> {
    let mut heads = Vec::new();
    for entry in shelf.list(folder)?.unwrap_or_default() {
        let stem = entry.name.strip_suffix(".jsonl").or_else(|| entry.name.strip_suffix(".json"));
        let Some(stem) = stem.filter(|stem| stem.starts_with("session-")) else { continue };
        let fits = start.is_none_or(|start| stem.ends_with(start));
        if fits && matches!(entry.kind, Kind::File | Kind::Link) {
            heads.extend(head(shelf, &folder.join(&entry.name))?);
        }
    }
    Ok(heads)
}

fn head(shelf: &Shelf<'_>, file: &Path) -> Result<Option<Head>, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let (path, changed) = (page.path.clone(), page.changed());
    let read = |object: &Map<String, Value>| {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        Some(Head {
            id: text("sessionId")?.to_owned(),
            file: path.clone(),
            started: text("startTime").and_then(|time| time.parse().ok()),
            changed,
            side: text("kind").is_some_and(|kind| kind != "main"),
        })
    };
    if file.extension().is_some_and(|ending| ending == "json") {
        // one object, which may be long: a torn one says nothing
        let object: Option<Map<String, Value>> = serde_json::from_slice(&page.whole()?).ok();
        return Ok(object.as_ref().and_then(read));
    }
    let mut lines = page.lines()?;
    for _ in 0..BEFORE {
        let Some(line) = lines.next_object()? else { return Ok(None) };
        if let Some(head) = read(&line) {
            return Ok(Some(head));
        }
    }
    Ok(None)
}
