//! Marks on panes by the process that stands in them.

use std::ffi::OsString;

use crate::process::tmux_of;
use crate::record::{Nonce, RecordId};
use crate::tmux::OneShot;
use crate::tmux::guarded::PaneOption;

/// Marks the pane this process was started in as that of a restore: its attempt, and its record's stand-in to be, should it
/// fail. The pane is kept when it dies, so that what was said last can be read.
///
/// # Errors
/// Why it is not marked, as a lower-case fragment.
pub async fn mark_own_pane(record: RecordId, nonce: Nonce) -> Result<(), String> {
    let own = i32::try_from(std::process::id()).map_err(|wrong| wrong.to_string())?;
    let place = tmux_of(own).map_err(|wrong| wrong.to_string())?;
    let place = place.ok_or("this is no pane of tmux: TMUX is not set")?;
    let pane =
        place.pane.map(|pane| format!("%{pane}")).ok_or("this is no pane of tmux: TMUX_PANE is not set")?;
    let server = OneShot::new(&place.socket).map_err(|wrong| wrong.to_string())?;
    let id = record.to_string();
    let attempt = format!("{record}:{nonce}");
    let marks = [
        (PaneOption::RestoreAttempt.name(), attempt.as_str()),
        (PaneOption::Frozen.name(), id.as_str()),
        ("remain-on-exit", "on"),
    ];
    let mut words: Vec<OsString> = Vec::new();
    for (name, value) in marks {
        if !words.is_empty() {
            words.push(";".into());
        }
        words.extend(["set-option", "-p", "-t", &pane, name, value].map(OsString::from));
    }
    server.run(words).await.map(drop).map_err(|wrong| format!("this pane cannot be marked: {wrong}"))
}
