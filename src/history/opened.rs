//! Which conversation a process has open, as the kernel tells it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::codex;

/// File descriptors of one process that are looked at.
const DESCRIPTORS: usize = 65_536;

/// The id of the one Codex rollout that a process or a descendant holds open; none when there is none or several.
pub(super) fn opened_by(pid: i32) -> Option<String> {
    let mut processes = vec![pid];
    // a family that cannot be seen leaves the process itself
    let below = crate::process::descendants(pid).unwrap_or_default();
    // whoever started the shared server first is its parent, and what it has open belongs to all of them
    processes.extend(below.into_iter().map(|process| process.pid).filter(|pid| !is_server(*pid)));
    let ids: BTreeSet<String> = processes.into_iter().flat_map(open_rollouts).collect();
    let mut ids = ids.into_iter();
    ids.next().filter(|_| ids.next().is_none())
}

/// Whether a process is a server of Codex, which runs the turns of several terminals.
fn is_server(pid: i32) -> bool {
    let argv = crate::process::facts(pid).map(|facts| facts.argv).unwrap_or_default();
    argv.iter().skip(1).any(|word| word.as_slice() == b"app-server")
}

/// Whether a process has the conversation open: its rollout, or the lock of whoever writes it.
pub(super) fn has_open(pid: i32, id: &str) -> bool {
    open_files(pid).any(|file| opened(&file).as_deref() == Some(id))
}

/// Every conversation a process has open.
pub(super) fn open_in(pid: i32) -> BTreeSet<String> {
    open_files(pid).filter_map(|file| opened(&file)).collect()
}

/// The conversation whose rollout or lock a file is.
fn opened(file: &Path) -> Option<String> {
    let folder = file.parent().and_then(Path::file_name);
    let locks = folder.is_some_and(|folder| folder == "thread-writer-locks");
    let locked = || file.file_name()?.to_str()?.strip_suffix(".lock").map(str::to_owned);
    rollout(file).or_else(|| locked().filter(|_| locks))
}

fn open_rollouts(pid: i32) -> Vec<String> {
    open_files(pid).filter_map(|file| rollout(&file)).collect()
}

fn open_files(pid: i32) -> impl Iterator<Item = PathBuf> {
    // gone, another user's, or a system without /proc: nothing is seen
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    entries.flatten().take(DESCRIPTORS).filter_map(|entry| std::fs::read_link(entry.path()).ok())
}

fn rollout(file: &Path) -> Option<String> {
    let in_store = file.components().any(|part| part.as_os_str() == "sessions");
    codex::id_in(file.file_name()?.to_str()?).filter(|_| in_store).map(str::to_owned)
}
