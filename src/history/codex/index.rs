//! Codex's index of its conversations: `state_<n>.sqlite`, table `threads`.
//!
//! In `CODEX_SQLITE_HOME`, or where `sqlite_home` in `config.toml` says, or beside the sessions. The tree of files is the
//! truth; the index is a quicker way to it, and has titles.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::home;
use crate::history::Doubt;
use crate::history::database::{Base, read};
use crate::history::disk::{Disk, Shelf};
use crate::history::environment::Environment;

/// What the index says of one conversation.
pub(super) struct Row {
    /// Its file.
    pub(super) file: PathBuf,
}

fn place(disk: &Disk, env: &Environment) -> Result<PathBuf, Doubt> {
    if let Some(folder) = env.folder("CODEX_SQLITE_HOME")? {
        return Ok(folder);
    }
    let home = home(env)?;
    Ok(configured(disk, &home, env).unwrap_or(home))
}

/// `sqlite_home` of the user's settings; a file that cannot be read says nothing.
fn configured(disk: &Disk, home: &std::path::Path, env: &Environment) -> Option<PathBuf> {
    let bytes = disk.shelf(home).ok()??.open("config.toml").ok()??.whole().ok()?;
    let settings: toml::Table = std::str::from_utf8(&bytes).ok()?.parse().ok()?;
    let folder = settings.get("sqlite_home")?.as_str()?;
    match folder.strip_prefix("~/") {
        Some(below) => Some(env.home().ok()?.join(below)),
        None => Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
    }
}

/// The newest generation's file.
fn newest(shelf: &Shelf<'_>) -> Result<Option<String>, Doubt> {
    let number = |name: &str| name.strip_prefix("state_")?.strip_suffix(".sqlite")?.parse::<u32>().ok();
    let names = shelf.list("")?.unwrap_or_default().into_iter().map(|entry| entry.name);
    Ok(names.filter_map(|name| number(&name).map(|n| (n, name))).max().map(|(_, name)| name))
}

fn asked<T>(
    disk: &Disk,
    env: &Environment,
    ask: &dyn Fn(&Base) -> rusqlite::Result<T>,
) -> Result<Option<T>, Doubt> {
    let Some(shelf) = disk.shelf(&place(disk, env)?)? else { return Ok(None) };
    let Some(name) = newest(&shelf)? else { return Ok(None) };
    read(&shelf, name, ask)
}

/// The row of an id.
pub(super) fn row(disk: &Disk, id: &str, env: &Environment) -> Result<Option<Row>, Doubt> {
    let ask = |base: &Base| {
        let question = format!("{} WHERE id = ?1", base.select("threads", &["rollout_path"])?);
        base.rows(&question, &[&id], |row| row.get::<_, Option<String>>(0))
    };
    let rows = asked(disk, env, &ask)?.unwrap_or_default();
    Ok(rows.into_iter().flatten().next().map(|file| Row { file: PathBuf::from(file) }))
}

/// The titles of all.
pub(super) fn titles(disk: &Disk, env: &Environment) -> Result<BTreeMap<String, String>, Doubt> {
    let ask = |base: &Base| {
        let question = base.select("threads", &["id", "title"])?;
        base.rows(&question, &[], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
        })
    };
    let rows = asked(disk, env, &ask)?.unwrap_or_default();
    Ok(rows
        .into_iter()
        .filter_map(|(id, title)| Some((id?, title.filter(|title| !title.is_empty())?)))
        .collect())
}
