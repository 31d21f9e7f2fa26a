//! A change of a file as a unified diff, safe to show on a terminal.

use std::path::Path;

use crate::cli::print::shown;
use crate::service::Change;

/// Lines shown before and after what changes.
const CONTEXT: usize = 3;

/// The diff, with `/dev/null` where there was or will be no file. The words are the file's bytes, made safe; a missing last
/// line end is said.
pub(super) fn unified(change: &Change) -> String {
    let text = |bytes: Option<&[u8]>| bytes.map(safe).unwrap_or_default();
    let name = |side: Option<&[u8]>| match side {
        Some(_) => shown_path(change.path()),
        None => "/dev/null".to_owned(),
    };
    let (before, after) = (text(change.before()), text(change.after()));
    let made = similar::TextDiff::from_lines(&before, &after);
    let mut out = made
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&name(change.before()), &name(change.after()))
        .to_string();
    if out.is_empty() {
        // an empty file that comes or goes has no lines to show
        out = format!("--- {}\n+++ {}\n", name(change.before()), name(change.after()));
    }
    out
}

pub(in crate::cli) fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

/// Each line made safe, its line end kept.
fn safe(bytes: &[u8]) -> String {
    let mut out = String::new();
    for piece in bytes.split_inclusive(|b| *b == b'\n') {
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        // a tab in a settings file is no danger and reads better as it is
        let parts: Vec<String> = text.split(|b| *b == b'\t').map(shown).collect();
        out.push_str(&parts.join("\t"));
        if text.len() < piece.len() {
            out.push('\n');
        }
    }
    out
}
