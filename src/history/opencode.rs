//! `OpenCode`: one database for all folders; before that, a tree of JSON files.
//!
//! `${XDG_DATA_HOME:-~/.local/share}/opencode/opencode.db`, or `OPENCODE_DB`; another channel's program has
//! `opencode-<channel>.db` beside it. The tree `storage/session/<project>/<id>.json` counts only where no database is: the
//! first start of a newer version moves it all. A session with a parent is a sub-agent's.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Looked, same_folder};
use super::database::{Base, read};
use super::disk::{Disk, Kind, Shelf};
use super::environment::Environment;
use super::{Conversation, Doubt, Located, Miss};
use crate::provider::Provider;

const COLUMNS: &[&str] = &["id", "parent_id", "directory", "title", "time_created", "time_updated"];

/// A session, of a database or of the tree.
#[derive(Debug, Clone, PartialEq)]
struct Session {
    id: String,
    parent: bool,
    directory: Option<PathBuf>,
    title: Option<String>,
    created: Option<i64>,
    updated: Option<i64>,
    file: PathBuf,
}

/// The folder of the store, and the database that the environment names.
fn store(env: &Environment) -> Result<(PathBuf, Option<PathBuf>), Doubt> {
    let folder = env.folder_or("XDG_DATA_HOME", ".local/share")?.join("opencode");
    // a bare name lies in the store
    let named = env.get("OPENCODE_DB").map(|path| folder.join(path));
    Ok((folder, named))
}

/// Every database there is, the usual one first.
fn databases(disk: &Disk, env: &Environment) -> Result<Vec<PathBuf>, Doubt> {
    let (folder, named) = store(env)?;
    if let Some(named) = named {
        return Ok(vec![named]);
    }
    let mut all = vec![folder.join("opencode.db")];
    if env.get("OPENCODE_DISABLE_CHANNEL_DB").is_none()
        && let Some(shelf) = disk.shelf(&folder)?
    {
        let channel = |name: &str| name.starts_with("opencode-") && name.ends_with(".db");
        let names = shelf.list("")?.unwrap_or_default().into_iter().map(|entry| entry.name);
        all.extend(names.filter(|name| channel(name)).map(|name| folder.join(name)));
    }
    Ok(all)
}

/// The conversation of an id.
pub(super) fn locate(disk: &Disk, id: &str, cwd: &Path, env: &Environment) -> Looked {
    let mut any = false;
    let mut held = Vec::new();
    for path in databases(disk, env)? {
        let Some(sessions) = of_database(disk, &path, Some(id))? else { continue };
        any = true;
        held.extend(sessions);
    }
    if !any {
        let Some(sessions) = of_tree(disk, env, Some(id), &mut Vec::new())? else {
            return Located::missing(Miss::NoStore);
        };
        held.extend(sessions);
    }
    match held.as_slice() {
        [] => Located::missing(Miss::NoConversation),
        [session] if session.parent => Located::missing(Miss::SubSession),
        [session] => {
            let files = session.directory.as_deref().is_some_and(|own| same_folder(own, cwd));
            Located::present(session.file.clone(), files, session.directory.clone())
        }
        many => Located::ambiguous(id, many.iter().map(|session| session.file.clone())),
    }
}

/// All conversations, or those of a folder.
pub(super) fn discover(
    disk: &Disk,
    cwd: Option<&Path>,
    env: &Environment,
    doubts: &mut Vec<Doubt>,
) -> Result<Vec<Conversation>, Doubt> {
    let mut any = false;
    let mut sessions = Vec::new();
    for path in databases(disk, env)? {
        match of_database(disk, &path, None) {
            Ok(Some(found)) => {
                any = true;
                sessions.extend(found);
            }
            Ok(None) => {}
            Err(doubt) => {
                any = true;
                doubts.push(doubt);
            }
        }
    }
    if !any {
        sessions = of_tree(disk, env, None, doubts)?.unwrap_or_default();
    }
    let here = |session: &Session| {
        cwd.is_none_or(|cwd| session.directory.as_deref().is_some_and(|own| same_folder(own, cwd)))
    };
    let own = sessions.into_iter().filter(|session| !session.parent && here(session));
    Ok(own.map(conversation).collect())
}

fn conversation(session: Session) -> Conversation {
    let time = |milliseconds: Option<i64>| Timestamp::from_millisecond(milliseconds?).ok();
    Conversation {
        provider: Provider::OpenCode,
        started: time(session.created),
        changed: time(session.updated),
        id: session.id,
        cwd: session.directory,
        file: session.file,
        title: session.title,
    }
}

fn of_database(disk: &Disk, path: &Path, id: Option<&str>) -> Result<Option<Vec<Session>>, Doubt> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let Some(shelf) = disk.shelf(folder)? else { return Ok(None) };
    let file = shelf.path().join(name);
    let ask = |base: &Base| {
        let select = base.select("session", COLUMNS)?;
        let question = if id.is_some() { format!("{select} WHERE id = ?1") } else { select };
        let parameters: &[&dyn rusqlite::ToSql] = match &id {
            Some(id) => &[id],
            None => &[],
        };
        base.rows(&question, parameters, |row| {
            let filled = |at| -> rusqlite::Result<Option<String>> {
                Ok(row.get::<_, Option<String>>(at)?.filter(|text| !text.is_empty()))
            };
            Ok(Session {
                id: row.get(0)?,
                parent: filled(1)?.is_some(),
                directory: filled(2)?.map(PathBuf::from),
                title: filled(3)?,
                created: row.get(4)?,
                updated: row.get(5)?,
                file: file.clone(),
            })
        })
    };
    read(&shelf, name, &ask)
}

/// The sessions of the tree, or the one of an id; `None` when there is no tree.
fn of_tree(
    disk: &Disk,
    env: &Environment,
    id: Option<&str>,
    doubts: &mut Vec<Doubt>,
) -> Result<Option<Vec<Session>>, Doubt> {
    let Some(shelf) = disk.shelf(&store(env)?.0.join("storage/session"))? else { return Ok(None) };
    let mut sessions = Vec::new();
    for project in shelf.list("")?.unwrap_or_default() {
        if !matches!(project.kind, Kind::Folder | Kind::Link) {
            continue;
        }
        let names: Vec<String> = match id {
            Some(id) => vec![format!("{id}.json")],
            None => {
                shelf.list(&project.name)?.unwrap_or_default().into_iter().map(|entry| entry.name).collect()
            }
        };
        for name in names.iter().filter(|name| name.ends_with(".json")) {
            match in_tree(&shelf, &Path::new(&project.name).join(name)) {
                Ok(session) => sessions.extend(session),
                // of the one that is asked for a doubt is the answer
                Err(doubt) if id.is_some() => return Err(doubt),
                Err(doubt) => doubts.push(doubt),
            }
        }
    }
    Ok(Some(sessions))
}

fn in_tree(shelf: &Shelf<'_>, file: &Path) -> Result<Option<Session>, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let path = page.path.clone();
    let session: Value = match serde_json::from_slice(&page.whole()?) {
        Ok(session) => session,
        Err(wrong) => return Err(Doubt::Malformed { path, why: wrong.to_string() }),
    };
    let text = |name: &str| session.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let time = |name: &str| session.get("time").and_then(|time| time.get(name)).and_then(Value::as_i64);
    Ok(text("id").map(|id| Session {
        id: id.to_owned(),
        parent: text("parentID").is_some(),
        directory: text("directory").map(PathBuf::from),
        title: text("title").map(str::to_owned),
        created: time("created"),
        updated: time("updated"),
        file: path.clone(),
    }))
}
