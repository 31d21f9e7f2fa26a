//! The folders and files: there, ours, closed to others, whole, and nothing left behind by a writer that was killed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::finding::Finding;
use crate::cli::setup::diff::shown_path;
use crate::store::{Files, Paths};

/// Everything about the places of this user.
pub(super) fn check(paths: &Paths) -> Vec<Finding> {
    let mut all = Vec::new();
    let store_folder = paths.store.parent().unwrap_or(Path::new("/")).to_owned();
    for (path, what, wide) in [
        (&store_folder, "the store's folder", 0o022),
        (&paths.frozen, "the captures' folder", 0o077),
        (&paths.state, "the state folder", 0o077),
        (&paths.runtime, "the runtime folder", 0o077),
    ] {
        all.push(folder(path, what, wide));
    }
    let files = paths.files();
    all.extend([&files.store, &files.prev, &files.archive].into_iter().filter_map(|path| file(path)));
    all.extend(leftovers(&files));
    all
}

/// A folder: there, ours, and without the bits of `wide`.
fn folder(path: &Path, what: &str, wide: u32) -> Finding {
    let shown = shown_path(path);
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {
            return Finding::note("folders", format!("{what} {shown} is not there yet"))
                .hint("`ait setup` makes it");
        }
        Err(other) => return Finding::bad("folders", format!("{what} {shown} cannot be looked at: {other}")),
    };
    let mode = meta.permissions().mode() & 0o7777;
    if !meta.is_dir() {
        Finding::bad("folders", format!("{what} {shown} is no folder"))
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        Finding::bad("folders", format!("{what} {shown} belongs to user {}", meta.uid()))
    } else if mode & wide != 0 {
        Finding::bad("folders", format!("{what} {shown} is open to others (mode {mode:04o})"))
            .hint(format!("chmod 700 {}", quoted(path)))
    } else {
        Finding::good("folders", format!("{what} {shown} ({mode:04o})"))
    }
}

/// A file that only its owner may read.
fn file(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    let shown = shown_path(path);
    (mode & 0o177 != 0).then(|| {
        Finding::bad("store", format!("{shown} is open wider than 0600 (mode {mode:04o})"))
            .hint(format!("chmod 600 {}", quoted(path)))
    })
}

/// What a killed writer leaves: an unfinished file, a lock folder of a process that is gone.
fn leftovers(files: &Files) -> Vec<Finding> {
    let mut all = Vec::new();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (store, lockd) = (name(&files.store), name(&files.lockd));
    let known =
        [&files.store, &files.prev, &files.lock, &files.lockd, &files.supervisor_lock].map(|path| name(path));
    for folder in [files.store.parent(), files.lockd.parent()].into_iter().flatten() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let found = entry.file_name().to_string_lossy().into_owned();
            let unfinished =
                found.starts_with(&format!("{store}.")) || found.starts_with(&format!(".{store}."));
            if (unfinished || found.starts_with(&format!("{lockd}."))) && !known.contains(&found) {
                let what = format!("{} was left by a writer that was killed", shown_path(&entry.path()));
                if !all.iter().any(|finding: &Finding| finding.what == what) {
                    all.push(Finding::note("store", what).hint("the next writer removes what is its own"));
                }
            }
        }
    }
    if files.lockd.is_dir() {
        let pid =
            fs::read_to_string(files.lockd.join("pid")).ok().and_then(|text| text.trim().parse::<i32>().ok());
        let shown = shown_path(&files.lockd);
        match pid {
            Some(pid) if crate::process::identify(pid).is_none() => all.push(
                Finding::note("store", format!("{shown} is held by process {pid}, which is gone"))
                    .hint("the next writer takes it"),
            ),
            Some(pid) => {
                all.push(Finding::note("store", format!("{shown} is held by process {pid} right now")))
            }
            None => all.push(Finding::note("store", format!("{shown} names no process"))),
        }
    }
    all
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| shown_path(path), |quoted| quoted.into_owned())
}
