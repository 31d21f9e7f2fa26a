//! Reports of hooks that could not be written into the store at once: a file each, made whole by a rename, drained in their
//! order by whoever writes next. An exact id of a conversation is never thrown away.
//!
//! They lie in the state folder; where that cannot be written, in the runtime folder, and at last in `/tmp/ait-<uid>`, in a folder
//! of the store's own there: the user's other stores have that one in common.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::paths::{Paths, make_private};
use super::{StoreError, file, system};
use crate::record::report::{Names, Report};

/// The most that is read of a report, in bytes.
const LIMIT: u64 = 256 * 1024;
/// Reports in one folder beyond which those that name no conversation go, and older ones of the same agent.
const CROWD: usize = 1_000;
/// Reports in one folder beyond which none is added, and that are drained in one go.
const MOST: usize = 4_000;

/// A report that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) path: PathBuf,
    pub(super) report: Report,
}

/// The folders reports wait in, the preferred one first.
#[must_use]
pub fn folders(paths: &Paths) -> Vec<PathBuf> {
    let last = last_resort();
    let mut all = vec![paths.state.join("spool")];
    if paths.runtime != last {
        all.push(paths.runtime.join("spool"));
    }
    let store = Sha256::digest(paths.store.as_os_str().as_bytes());
    let own: String = store.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    all.push(last.join(format!("spool-{own}")));
    all
}

fn last_resort() -> PathBuf {
    PathBuf::from(format!("/tmp/ait-{}", rustix::process::getuid().as_raw()))
}

/// Makes the folders that can be made and gives those to watch. The one in `/tmp` is made only beside what is there already: else
/// the next writer looks into it.
#[must_use]
pub fn watched(paths: &Paths) -> Vec<PathBuf> {
    let last = last_resort();
    let wanted = |folder: &PathBuf| !folder.starts_with(&last) || paths.runtime == last || is_ours(&last);
    let made = |folder: &PathBuf| make_private(folder).is_ok() && is_ours(folder);
    folders(paths).into_iter().filter(wanted).filter(made).collect()
}

/// Takes away what was made in `/tmp` to be watched, where it is empty.
pub fn unwatch(paths: &Paths) {
    let last = last_resort();
    for folder in folders(paths).into_iter().filter(|folder| folder.starts_with(&last)) {
        // one that is not empty, or that nobody made, stays as it is
        let _ = fs::remove_dir(folder);
    }
    if paths.runtime != last {
        let _ = fs::remove_dir(last);
    }
}

/// Keeps a report until somebody can write it; gives where. `order` is the moment in nanoseconds since 1970.
///
/// # Errors
/// The error of the preferred folder, if none takes it.
pub fn keep(paths: &Paths, report: &Report, order: u128) -> Result<PathBuf, StoreError> {
    let name = format!("{order:024}-{:08x}.json", system::draw());
    let mut first = None;
    for folder in folders(paths) {
        match keep_in(&folder, &name, report) {
            Ok(path) => return Ok(path),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(StoreError::NoHome))
}

fn keep_in(folder: &Path, name: &str, report: &Report) -> Result<PathBuf, StoreError> {
    make_private(folder)?;
    if !is_ours(folder) {
        return Err(StoreError::NotOurs { path: folder.to_owned(), why: "it belongs to another user" });
    }
    let names = names(folder);
    if names.len() >= CROWD {
        thin(names, report);
    }
    if self::names(folder).len() >= MOST {
        return Err(StoreError::io("add to", folder, std::io::ErrorKind::StorageFull.into()));
    }
    let path = folder.join(name);
    let text = serde_json::to_vec(report).map_err(|e| StoreError::io("print", &path, e.into()))?;
    file::put(&path, &text, true)?;
    Ok(path)
}

/// Makes room: what names no conversation, and what this report's agent said before.
fn thin(names: Vec<PathBuf>, report: &Report) {
    for path in names {
        if read(&path).is_none_or(|old| old.names == Names::Nothing || old.agent == report.agent) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether anything waits.
#[must_use]
pub fn is_waiting(paths: &Paths) -> bool {
    folders(paths).iter().any(|folder| is_ours(folder) && !names(folder).is_empty())
}

/// Everything that waits, in the order it was told; what is no report is removed.
pub(super) fn waiting(paths: &Paths) -> Vec<Waiting> {
    let mut all: Vec<PathBuf> =
        folders(paths).iter().filter(|folder| is_ours(folder)).flat_map(|f| names(f)).collect();
    all.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    all.truncate(MOST);
    let mut waiting = Vec::new();
    for path in all {
        match read(&path) {
            Some(report) => waiting.push(Waiting { path, report }),
            None => {
                let _ = fs::remove_file(path);
            }
        }
    }
    waiting
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_report = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && name.ends_with(".json")
    };
    entries.flatten().map(|entry| entry.path()).filter(is_report).take(2 * MOST).collect()
}

fn read(path: &Path) -> Option<Report> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A folder that somebody else made tells nothing.
fn is_ours(folder: &Path) -> bool {
    folder
        .symlink_metadata()
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}
