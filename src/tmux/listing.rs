//! The commands that list a server whole, for a control client and for plain processes.
//!
//! The three belong together: send them in one go, and make a [`Snapshot`] of the three answers or of none.

use tmux_control::{Command, PaneId};

use super::{OneShot, Unanswered};
use crate::world::rows::{BadListing, LIST_PANES, LIST_SESSIONS, LIST_WINDOWS, PaneRow, Snapshot, pane_rows};

/// A listing by a plain process failed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// No answer; only some kinds of it say anything about the server.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// An answer that is none.
    #[error(transparent)]
    Bad(#[from] BadListing),
}

/// `list-sessions`.
pub fn sessions() -> Command {
    Command::new("list-sessions").args(["-F", LIST_SESSIONS])
}

/// `list-windows -a`.
pub fn windows() -> Command {
    Command::new("list-windows").args(["-a", "-F", LIST_WINDOWS])
}

/// `list-panes -a`.
pub fn panes() -> Command {
    Command::new("list-panes").args(["-a", "-F", LIST_PANES])
}

/// `list-panes` of one pane. A pane that is nowhere is refused: `can't find pane`.
pub fn pane(id: PaneId) -> Command {
    let only = format!("#{{==:#{{pane_id}},{id}}}");
    Command::new("list-panes").args(["-t", &id.to_string(), "-f", &only, "-F", LIST_PANES])
}

/// The row of the one pane that was listed.
///
/// # Errors
/// The answer is not one row.
pub fn pane_row(body: &[u8]) -> Result<PaneRow, BadListing> {
    let mut rows = pane_rows(body)?;
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok(row),
        (Some(_) | None, _) => Err(BadListing::Row { listing: "list-panes", line: body.into() }),
    }
}

/// The whole server by one plain process. The three lists run in one go inside the server, so they are of one moment.
///
/// # Errors
/// No answer, or one that is no whole listing.
pub async fn snapshot(server: &OneShot) -> Result<Snapshot, ListError> {
    let words = [
        "list-sessions",
        "-F",
        LIST_SESSIONS,
        ";",
        "list-windows",
        "-a",
        "-F",
        LIST_WINDOWS,
        ";",
        "list-panes",
        "-a",
        "-F",
        LIST_PANES,
    ];
    let answer = server.run(words).await?;
    let lines = |letter: &[u8]| -> Vec<u8> {
        answer
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.starts_with(letter))
            .flatten()
            .copied()
            .collect()
    };
    let known =
        |line: &&[u8]| line.starts_with(b"S\t") || line.starts_with(b"W\t") || line.starts_with(b"P\t");
    if let Some(odd) = answer.split(|byte| *byte == b'\n').find(|line| !line.is_empty() && !known(line)) {
        return Err(BadListing::Row { listing: "the listing", line: odd.into() }.into());
    }
    Ok(Snapshot::parse(&lines(b"S\t"), &lines(b"W\t"), &lines(b"P\t"))?)
}
