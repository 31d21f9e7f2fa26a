//! Claude Code: one file per conversation, in a folder per project.
//!
//! `${CLAUDE_CONFIG_DIR:-~/.claude}/projects/<slug>/<id>.jsonl`. The folder's name loses information, so what a conversation
//! is filed under is read inside: the first `cwd`, or the one of a later `relocated` record, whichever gives that folder.
//! Beside a conversation lies its side folder (`<id>/subagents/…`), which holds none of its own.

mod registry;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Entry, Kind, Shelf};
use super::environment::Environment;
use super::slug;
use super::{Conversation, Doubt, Located, Miss};
use crate::provider::Provider;

pub use registry::{Registry, Status};
pub(super) use registry::{registry, registry_folder};

/// Names a sibling folder list is read for, at most.
const ALIASES: usize = 64;
/// How much of a file's end is read for where it moved to, in bytes; Claude Code itself reads as little.
const END: u64 = 64 << 10;

/// Where all projects lie.
fn projects(env: &Environment) -> Result<PathBuf, Doubt> {
    Ok(config(env)?.join("projects"))
}

fn config(env: &Environment) -> Result<PathBuf, Doubt> {
    env.folder_or("CLAUDE_CONFIG_DIR", ".claude")
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, cwd: &Path, env: &Environment) -> Looked {
    if id.starts_with("agent-") {
        return Located::missing(Miss::SubSession);
    }
    let Some(shelf) = disk.shelf(&projects(env)?)? else { return Located::missing(Miss::NoStore) };
    let name = format!("{id}.jsonl");
    let near = folders_of(&shelf, cwd, env)?;
    let mut held = holding(&shelf, near.iter().map(String::as_str), &name);
    if held.found.is_empty() {
        let all = shelf.list("")?.unwrap_or_default();
        let others = all.iter().filter(|entry| is_folder(entry) && !near.contains(&entry.name));
        held.merge(holding(&shelf, others.map(|entry| entry.name.as_str()), &name));
    }
    // the same conversation under two names of one folder is one
    held.found.sort();
    held.found.dedup();
    let mut read = Vec::new();
    for found in &held.found {
        read.push((found, head(&shelf, found)?));
    }
    // of several only those that say so themselves are filed under the asked-for folder
    if read.len() > 1 {
        let (here, _): (Vec<_>, Vec<_>) = read
            .iter()
            .cloned()
            .partition(|(_, head)| head.home.as_deref().is_some_and(|home| same_folder(home, cwd)));
        if here.len() == 1 {
            read = here;
        }
    }
    match (read.as_slice(), held.doubt) {
        ([], Some(why)) => Err(why),
        ([], None) => Located::missing(Miss::NoConversation),
        ([(file, head)], _) => answer(file, head, cwd, &near),
        (many, _) => Located::ambiguous(id, many.iter().map(|(_, head)| head.file.clone())),
    }
}

fn answer(file: &Path, head: &Head, cwd: &Path, near: &[String]) -> Looked {
    if head.side {
        return Located::missing(Miss::SubSession);
    }
    if !head.turn {
        return Located::missing(Miss::NoTurn);
    }
    let folder = file.parent().and_then(Path::to_str).unwrap_or_default();
    let confirmed = head.home.as_deref().is_some_and(|home| same_folder(home, cwd));
    let files = confirmed && near.iter().any(|name| name == folder);
    Located::present(head.file.clone(), files, head.home.clone())
}

/// All conversations, or those filed under `cwd`.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let Some(shelf) = disk.shelf(&projects(env)?)? else { return Ok(Vec::new()) };
    let folders = match cwd {
        Some(cwd) => folders_of(&shelf, cwd, env)?,
        None => {
            let all = shelf.list("")?.unwrap_or_default();
            all.into_iter().filter(is_folder).map(|entry| entry.name).collect()
        }
    };
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for folder in folders {
        let entries = match shelf.list(&folder) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(doubt) => {
                doubts.push(doubt);
                continue;
            }
        };
        for entry in entries.iter().filter(|entry| matches!(entry.kind, Kind::File | Kind::Link)) {
            let Some(id) = entry.name.strip_suffix(".jsonl").filter(|id| !id.starts_with("agent-")) else {
                continue;
            };
            let file = Path::new(&folder).join(&entry.name);
            match head(&shelf, &file) {
                Ok(head) if head.side || !head.turn => {}
                Ok(head) => {
                    let here = |cwd| head.home.as_deref().is_some_and(|home| same_folder(home, cwd));
                    if cwd.is_none_or(here) && seen.insert(head.file.clone()) {
                        all.push(conversation(id, head));
                    }
                }
                Err(doubt) => doubts.push(doubt),
            }
        }
    }
    Ok(all)
}

fn conversation(id: &str, head: Head) -> Conversation {
    Conversation {
        provider: Provider::Claude,
        id: id.to_owned(),
        cwd: head.home,
        started: head.started,
        changed: head.changed,
        file: head.file,
        title: head.title,
    }
}

fn is_folder(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Folder | Kind::Link)
}

/// What was found in some folders, and the first that could not be read.
#[derive(Default)]
struct Held {
    found: Vec<PathBuf>,
    doubt: Option<Doubt>,
}

impl Held {
    fn merge(&mut self, other: Held) {
        self.found.extend(other.found);
        self.doubt = self.doubt.take().or(other.doubt);
    }
}

fn holding<'a>(shelf: &Shelf<'_>, folders: impl Iterator<Item = &'a str>, name: &str) -> Held {
    let mut held = Held::default();
    for folder in folders {
        let file = Path::new(folder).join(name);
        match shelf.holds(&file) {
            Ok(true) => held.found.push(file),
            Ok(false) => {}
            Err(doubt) => held.doubt = held.doubt.or(Some(doubt)),
        }
    }
    held
}

/// The folders that Claude looks for a project's conversations in, most likely first.
fn folders_of(shelf: &Shelf<'_>, cwd: &Path, env: &Environment) -> Result<Vec<String>, Doubt> {
    if let Some(name) = env.get("CLAUDE_CODE_PROJECT_DIR_NAME") {
        return Ok(vec![name.to_owned()]);
    }
    let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let mut folders: Vec<String> = Vec::new();
    for path in [real.as_path(), cwd] {
        let Some(path) = path.to_str() else { continue };
        let name = slug::claude(path);
        if !folders.contains(&name) {
            folders.push(name);
        }
        // another version hashed otherwise; what is inside decides
        if let Some(prefix) = slug::claude_long(path) {
            let all = shelf.list("")?.unwrap_or_default();
            for entry in all.into_iter().filter(|entry| is_folder(entry) && entry.name.starts_with(&prefix)) {
                if !folders.contains(&entry.name) {
                    folders.push(entry.name);
                }
            }
        }
    }
    for at in 0..folders.len() {
        for alias in aliases(shelf, &folders[at]) {
            if !folders.contains(&alias) {
                folders.push(alias);
            }
        }
    }
    Ok(folders)
}

/// The sibling folders a `.session-aliases` file names: a JSON list, or one a line. Anything but a plain name is not one.
fn aliases(shelf: &Shelf<'_>, folder: &str) -> Vec<String> {
    let Ok(Some(page)) = shelf.open(Path::new(folder).join(".session-aliases")) else { return Vec::new() };
    let Ok(bytes) = page.whole() else { return Vec::new() };
    let names: Vec<String> = match serde_json::from_slice::<Vec<String>>(&bytes) {
        Ok(names) => names,
        Err(_) => String::from_utf8_lossy(&bytes).lines().map(|line| line.trim().to_owned()).collect(),
    };
    let plain = |name: &String| !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    names.into_iter().filter(plain).take(ALIASES).collect()
}

/// What the first lines of a conversation say of it.
#[derive(Debug, Clone, Default)]
struct Head {
    file: PathBuf,
    /// The folder it is filed under.
    home: Option<PathBuf>,
    started: Option<Timestamp>,
    changed: Option<Timestamp>,
    title: Option<String>,
    /// Something was said in it.
    turn: bool,
    /// It is a sub-agent's.
    side: bool,
}

/// Reads up to the first line with a `cwd`; further only when that one does not give the folder the file lies in.
fn head(shelf: &Shelf<'_>, file: &Path) -> Result<Head, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(Head::default()) };
    let mut head = Head { file: page.path.clone(), changed: page.changed(), ..Head::default() };
    let folder = file.parent().and_then(Path::to_str).unwrap_or_default().to_owned();
    let mut lines = page.lines()?;
    while let Some(line) = lines.next_object()? {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        head.title = titled(&line).or(head.title);
        if head.started.is_none() {
            head.started = text("timestamp").and_then(|time| time.parse().ok());
        }
        if let Some(cwd) = text("cwd") {
            head.home = Some(PathBuf::from(cwd));
            head.turn = true;
            head.side = line.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
            break;
        }
    }
    let fits = |home: &Path| home.to_str().is_some_and(|home| names(&folder, home));
    if head.home.as_deref().is_none_or(fits) {
        return Ok(head);
    }
    // it moved, or it lies under a name of the user's choosing: the last word on where is the one that counts
    let end = shelf.open(file)?.map(|page| page.end(END)).transpose()?.unwrap_or_default();
    let moved = end.split(|byte| *byte == b'\n').rev().find_map(|line| {
        let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
        relocated(&line).map(PathBuf::from)
    });
    head.home = moved.or(head.home);
    Ok(head)
}

/// Whether a folder's name is that of a path, by this version's rule or another's.
fn names(folder: &str, path: &str) -> bool {
    slug::claude(path) == folder || slug::claude_long(path).is_some_and(|prefix| folder.starts_with(&prefix))
}

fn relocated(line: &Map<String, Value>) -> Option<&str> {
    (line.get("type")?.as_str()? == "relocated").then_some(())?;
    ["relocatedCwd", "cwd"].iter().find_map(|name| line.get(*name)?.as_str())
}

fn titled(line: &Map<String, Value>) -> Option<String> {
    let name = match line.get("type")?.as_str()? {
        "custom-title" => "customTitle",
        "ai-title" => "aiTitle",
        "summary" => "summary",
        _ => return None,
    };
    line.get(name).or_else(|| line.get("title"))?.as_str().map(str::to_owned)
}
