//! Which tmux sockets there are: in the folder tmux uses, of the server this shell is in, and those that records name.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::record::Records;

/// The folder tmux puts its sockets in, as this process sees it: `$TMUX_TMPDIR` (else `/tmp`), then `tmux-<uid>`.
pub(super) fn folder() -> PathBuf {
    let base = std::env::var_os("TMUX_TMPDIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let uid = rustix::process::geteuid().as_raw();
    base.unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("tmux-{uid}"))
}

/// The socket of the server this process runs in, by `$TMUX`.
pub(super) fn own() -> Option<PathBuf> {
    let value = std::env::var("TMUX").ok()?;
    // the path may hold commas, the two numbers behind it cannot
    let socket = value.rsplitn(3, ',').nth(2)?;
    socket.starts_with('/').then(|| PathBuf::from(socket))
}

/// Every socket: those given, the folder's, this shell's server's, and those of `records`; each once, paths resolved.
pub(super) fn all(given: &[PathBuf], records: Option<&Records>) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> = given.to_vec();
    let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    named.extend(found);
    named.extend(own());
    let servers = records.into_iter().flat_map(Records::iter).filter_map(|record| record.ait.server.as_ref());
    named.extend(servers.map(|server| PathBuf::from(&server.socket)));
    let mut all: Vec<PathBuf> = Vec::new();
    for socket in named {
        let socket = resolved(&socket);
        if !all.contains(&socket) {
            all.push(socket);
        }
    }
    all
}

/// The path with its folder's symlinks followed; a socket that is gone keeps its name.
pub(super) fn resolved(socket: &Path) -> PathBuf {
    match (socket.parent().and_then(|folder| folder.canonicalize().ok()), socket.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        (Some(_) | None, _) => socket.to_owned(),
    }
}
