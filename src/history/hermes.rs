//! Hermes: one database per profile.
//!
//! `${HERMES_HOME:-~/.hermes}/state.db`, and `profiles/<name>/state.db` below the default home, of which `active_profile`
//! names the one in use. When Hermes condenses a conversation it goes on under a new id (`end_reason` is `compression`): the
//! chain is followed to its tip. Any other child of a conversation that is neither such nor a branch is a sub-agent's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::answer::Looked;
use super::database::{Base, read};
use super::disk::{Disk, Kind, Shelf};
use super::environment::Environment;
use super::{Candidate, Conversation, Doubt, Located, Miss};
use crate::provider::Provider;

const DATABASE: &str = "state.db";
const COLUMNS: &[&str] = &["id", "parent_session_id", "started_at", "ended_at", "end_reason", "cwd", "title"];

fn home(env: &Environment) -> Result<PathBuf, Doubt> {
    env.folder_or("HERMES_HOME", ".hermes")
}

/// The databases, the one that a resume takes first.
fn databases(shelf: &Shelf<'_>) -> Result<Vec<PathBuf>, Doubt> {
    let mut all = vec![PathBuf::from(DATABASE)];
    for entry in shelf.list("profiles")?.unwrap_or_default() {
        if matches!(entry.kind, Kind::Folder | Kind::Link) {
            all.push(Path::new("profiles").join(entry.name).join(DATABASE));
        }
    }
    let page = shelf.open("active_profile")?;
    let active = page.map(|page| page.whole()).transpose()?.unwrap_or_default();
    let active = String::from_utf8_lossy(&active).trim().to_owned();
    let active = Path::new("profiles").join(active).join(DATABASE);
    if let Some(at) = all.iter().position(|path| *path == active) {
        all.swap(0, at);
    }
    Ok(all)
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, _cwd: &Path, env: &Environment) -> Looked {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Located::missing(Miss::NoStore) };
    let mut any = false;
    let mut held = Vec::new();
    for (at, database) in databases(&shelf)?.into_iter().enumerate() {
        let Some(rows) = rows(&shelf, &database)? else { continue };
        any = true;
        if rows.contains_key(id) {
            held.push((at == 0, shelf.path().join(&database), rows));
            // the profile in use has it: a resume looks no further
            if at == 0 {
                break;
            }
        }
    }
    match held.as_slice() {
        [] if any => Located::missing(Miss::NoConversation),
        [] => Located::missing(Miss::NoStore),
        [(in_use, path, rows)] => told(id, *in_use, path, rows),
        many => Located::ambiguous(id, many.iter().map(|(_, path, _)| path.clone())),
    }
}

fn told(id: &str, in_use: bool, path: &Path, rows: &BTreeMap<String, Row>) -> Looked {
    if is_sub_session(id, rows) {
        return Located::missing(Miss::SubSession);
    }
    match tip(id, rows) {
        Ok(tip) => Ok(Located::Present {
            path: path.to_owned(),
            files_under_cwd: in_use,
            cwd: rows.get(tip).and_then(|row| row.cwd.clone()),
            now_id: (tip != id).then(|| tip.to_owned()),
        }),
        Err(tips) => Ok(Located::Ambiguous {
            candidates: tips.into_iter().map(|id| Candidate { id, path: path.to_owned() }).collect(),
        }),
    }
}

/// All conversations, or those of a folder: each once, by the tip of its chain.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let Some(shelf) = disk.shelf(&home(env)?)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for database in databases(&shelf)? {
        let rows = match rows(&shelf, &database) {
            Ok(rows) => rows.unwrap_or_default(),
            Err(doubt) => {
                doubts.push(doubt);
                continue;
            }
        };
        let file = shelf.path().join(&database);
        for (id, row) in &rows {
            let goes_on = row.condensed && children(id, &rows).next().is_some();
            let here = |cwd| row.cwd.as_deref().is_some_and(|own| super::answer::same_folder(own, cwd));
            if goes_on || is_sub_session(id, &rows) || !cwd.is_none_or(here) {
                continue;
            }
            all.push(Conversation {
                provider: Provider::Hermes,
                id: id.clone(),
                cwd: row.cwd.clone(),
                started: row.started.and_then(time),
                changed: row.ended.or(row.started).and_then(time),
                file: file.clone(),
                title: row.title.clone(),
            });
        }
    }
    Ok(all)
}

/// A row of `sessions`.
#[derive(Debug, Clone)]
struct Row {
    parent: Option<String>,
    started: Option<f64>,
    ended: Option<f64>,
    condensed: bool,
    branched: bool,
    cwd: Option<PathBuf>,
    title: Option<String>,
}

fn rows(shelf: &Shelf<'_>, database: &Path) -> Result<Option<BTreeMap<String, Row>>, Doubt> {
    let ask = |base: &Base| {
        base.rows(&base.select("sessions", COLUMNS)?, &[], |row| {
            let reason: Option<String> = row.get(4)?;
            let id: String = row.get(0)?;
            let found = Row {
                parent: row.get::<_, Option<String>>(1)?.filter(|parent| !parent.is_empty()),
                started: row.get(2)?,
                ended: row.get(3)?,
                condensed: reason.as_deref() == Some("compression"),
                branched: reason.as_deref() == Some("branched"),
                cwd: row.get::<_, Option<String>>(5)?.filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
                title: row.get::<_, Option<String>>(6)?.filter(|title| !title.is_empty()),
            };
            Ok((id, found))
        })
    };
    Ok(read(shelf, database, &ask)?.map(|rows| rows.into_iter().collect()))
}

/// The rows that go on from a condensed one: its children that began when it had ended.
fn children<'a>(id: &'a str, rows: &'a BTreeMap<String, Row>) -> impl Iterator<Item = &'a str> {
    let ended = rows.get(id).and_then(|row| row.ended);
    rows.iter()
        .filter(move |(_, row)| row.parent.as_deref() == Some(id))
        .filter(move |(_, row)| ended.is_none_or(|ended| row.started.is_none_or(|started| started >= ended)))
        .map(|(child, _)| child.as_str())
}

/// The last of the chain; all of them where it parts.
fn tip<'a>(id: &'a str, rows: &'a BTreeMap<String, Row>) -> Result<&'a str, Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut tip = id;
    while rows.get(tip).is_some_and(|row| row.condensed) && seen.insert(tip) {
        let next: Vec<&str> = children(tip, rows).collect();
        match next.as_slice() {
            [] => break,
            [one] => tip = one,
            many => return Err(many.iter().map(|id| (*id).to_owned()).collect()),
        }
    }
    Ok(tip)
}

/// A child that neither goes on from its parent nor branches off it.
fn is_sub_session(id: &str, rows: &BTreeMap<String, Row>) -> bool {
    let Some(name) = rows.get(id).and_then(|row| row.parent.as_deref()) else { return false };
    // a parent that was removed cannot be asked: the child stands for itself
    let Some(parent) = rows.get(name) else { return false };
    let goes_on = parent.condensed && children(name, rows).any(|child| child == id);
    !goes_on && !parent.branched
}

fn time(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_millisecond((seconds * 1000.0) as i64).ok()
}
