//! Codex: one rollout file per conversation, by the day it began, and an index database.
//!
//! `${CODEX_HOME:-~/.codex}/sessions/YYYY/MM/DD/rollout-<local time>-<id>.jsonl`, later perhaps packed (`.jsonl.zst`), or
//! put aside into `archived_sessions/`. A resume finds an id from any folder. A sub-agent's rollout is no conversation.

mod head;
mod index;
mod turn;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;

use super::answer::{Looked, same_folder};
use super::disk::{Disk, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss};
use crate::provider::Provider;
use head::{Head, head};
pub use turn::Rollout;

/// What is appended to the id in a rollout's name.
const ENDINGS: &[&str] = &[".jsonl", ".jsonl.zst", ".json"];
/// Folders below `sessions`: year, month, day.
const DEPTH: usize = 3;

fn home(env: &Environment) -> Result<PathBuf, Doubt> {
    env.folder_or("CODEX_HOME", ".codex")
}

/// Where the rollouts lie.
pub(super) fn rollouts(env: &Environment) -> Option<PathBuf> {
    home(env).ok().map(|home| home.join("sessions"))
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, _cwd: &Path, env: &Environment) -> Looked {
    let home = home(env)?;
    let mut doubt = None;
    let mut any = false;
    if let Some(shelf) = disk.shelf(&home.join("sessions"))? {
        any = true;
        let file = by_day(&shelf, id, &mut doubt)
            .or_else(|| by_index(&shelf, id, env, &mut doubt))
            .or_else(|| by_name(&shelf, id, &mut doubt));
        if let Some(file) = file {
            return present(&shelf, &file, id);
        }
    }
    if let Some(shelf) = disk.shelf(&home.join("archived_sessions"))? {
        any = true;
        if by_name(&shelf, id, &mut doubt).is_some() {
            return Located::missing(Miss::Archived);
        }
    }
    match doubt {
        Some(doubt) => Err(doubt),
        None if any => Located::missing(Miss::NoConversation),
        None => Located::missing(Miss::NoStore),
    }
}

fn present(shelf: &Shelf<'_>, file: &Path, id: &str) -> Looked {
    let Some(head) = head(shelf, file)? else { return Located::missing(Miss::NoTurn) };
    if head.id.as_deref().is_some_and(|own| own != id) {
        return Located::missing(Miss::OtherId);
    }
    if head.sub_agent {
        return Located::missing(Miss::SubSession);
    }
    Located::present(head.file, true, head.cwd)
}

/// An id of version 7 carries its own time: the days around it are looked at first.
fn by_day(shelf: &Shelf<'_>, id: &str, doubt: &mut Option<Doubt>) -> Option<PathBuf> {
    let time = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?;
    let (seconds, _) = time.to_unix();
    let began = Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    let day = jiff::tz::TimeZone::UTC.to_datetime(began).date();
    // the folder is of the local day, which may be the one before or after
    let days = [Some(day), day.yesterday().ok(), day.tomorrow().ok()];
    days.into_iter().flatten().find_map(|day| in_folder(shelf, &folder(day), id, doubt))
}

/// The file that the index names, if it is in the tree and still there.
fn by_index(shelf: &Shelf<'_>, id: &str, env: &Environment, doubt: &mut Option<Doubt>) -> Option<PathBuf> {
    let row = match index::row(shelf.disk(), id, env) {
        Ok(row) => row?,
        Err(why) => {
            // the tree itself is still to be looked through
            tracing::debug!(%why, "the index of Codex");
            return None;
        }
    };
    // a home that is a link is written down either way
    let real = row.file.canonicalize().ok()?;
    let Ok(below) = real.strip_prefix(shelf.path()) else {
        let archived = real.components().any(|part| part.as_os_str() == "archived_sessions");
        if !archived {
            doubt.get_or_insert(Doubt::LeadsOut { path: row.file });
        }
        return None;
    };
    Some(below.to_owned())
}

fn folder(day: Date) -> PathBuf {
    PathBuf::from(format!("{:04}/{:02}/{:02}", day.year(), day.month(), day.day()))
}

/// Looks through the whole tree, newest day first; only names are read.
fn by_name(shelf: &Shelf<'_>, id: &str, doubt: &mut Option<Doubt>) -> Option<PathBuf> {
    let mut found = None;
    walk(
        shelf,
        Path::new(""),
        0,
        &mut |file, name| {
            if is_rollout_of(name, id) {
                found = Some(file.to_owned());
            }
            found.is_some()
        },
        doubt,
    );
    found
}

fn in_folder(shelf: &Shelf<'_>, folder: &Path, id: &str, doubt: &mut Option<Doubt>) -> Option<PathBuf> {
    let entries = match shelf.list(folder) {
        Ok(entries) => entries?,
        Err(why) => {
            doubt.get_or_insert(why);
            return None;
        }
    };
    let file = entries.iter().find(|entry| is_file(entry.kind) && is_rollout_of(&entry.name, id))?;
    Some(folder.join(&file.name))
}

/// Visits the files of the tree until `visit` says that it is enough. Links to folders are not walked: what they show
/// inside the store is met where it lies.
fn walk(
    shelf: &Shelf<'_>,
    folder: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Path, &str) -> bool,
    doubt: &mut Option<Doubt>,
) -> bool {
    let entries = match shelf.list(folder) {
        Ok(entries) => entries.unwrap_or_default(),
        Err(why) => {
            doubt.get_or_insert(why);
            return false;
        }
    };
    entries.iter().rev().any(|entry| {
        let path = folder.join(&entry.name);
        match entry.kind {
            Kind::Folder => depth < DEPTH && walk(shelf, &path, depth + 1, visit, doubt),
            Kind::File | Kind::Link => visit(&path, &entry.name),
            Kind::Other => false,
        }
    })
}

fn is_file(kind: Kind) -> bool {
    matches!(kind, Kind::File | Kind::Link)
}

fn is_rollout(name: &str) -> bool {
    name.starts_with("rollout-") && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_rollout_of(name: &str, id: &str) -> bool {
    is_rollout(name) && id_in(name).is_some_and(|own| own.eq_ignore_ascii_case(id))
}

/// The id in a rollout's name: the uuid at its end.
pub(super) fn id_in(name: &str) -> Option<&str> {
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))?.strip_prefix("rollout-")?;
    let at = stem.len().checked_sub(36)?;
    let id = stem.get(at..)?;
    uuid::Uuid::parse_str(id).is_ok().then_some(id)
}

/// All conversations, or those that began in `cwd`.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let Some(shelf) = disk.shelf(&home(env)?.join("sessions"))? else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    let mut doubt = None;
    walk(
        &shelf,
        Path::new(""),
        0,
        &mut |file, name| {
            if is_rollout(name) {
                files.push(file.to_owned());
            }
            false
        },
        &mut doubt,
    );
    doubts.extend(doubt);
    let titles = index::titles(disk, env).unwrap_or_else(|why| {
        doubts.push(why);
        Default::default()
    });
    let mut all = Vec::new();
    for file in files {
        match head(&shelf, &file) {
            Ok(Some(head)) if !head.sub_agent => {
                let here = |cwd| head.cwd.as_deref().is_some_and(|own| same_folder(own, cwd));
                if cwd.is_none_or(here) {
                    all.extend(conversation(&file, head, &titles));
                }
            }
            Ok(_) => {}
            Err(doubt) => doubts.push(doubt),
        }
    }
    Ok(all)
}

fn conversation(file: &Path, head: Head, titles: &BTreeMap<String, String>) -> Option<Conversation> {
    let named = file.file_name().and_then(|name| name.to_str()).and_then(id_in);
    let id = head.id.or_else(|| named.map(str::to_owned))?;
    Some(Conversation {
        provider: Provider::Codex,
        title: titles.get(&id).cloned(),
        id,
        cwd: head.cwd,
        started: head.started,
        changed: head.changed,
        file: head.file,
    })
}
