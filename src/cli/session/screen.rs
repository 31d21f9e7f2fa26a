//! What a session's pane shows, as plain text.

use bstr::ByteSlice;

use super::address::Found;
use super::envelope::Trouble;
use super::look::{self, Look};
use crate::cli::{Exit, Failure};
use crate::tmux::{OneShot, Unanswered};

/// Parts a listing from the screen after it; no row of a listing is that.
const PART: &str = "screen";

/// One look at a session's server and its screen, in one call; no screen where that was not to be had so.
pub(super) async fn glance(found: &Found, history: u32) -> (Look, Option<String>) {
    if let Some((socket, pane)) = place(found).filter(|_| look::is_placed(&found.record))
        && let Ok(server) = OneShot::new(socket)
    {
        let capture = capturing(&pane, history);
        let mut words = look::LISTING.to_vec();
        words.extend([";", "display-message", "-p", "-t", &pane, PART, ";"]);
        words.extend(capture.iter().map(String::as_str));
        match server.deadline(look::DEADLINE).run(words).await {
            Ok(said) => {
                if let Some((listing, screen)) = said.split_once_str(&format!("\n{PART}\n")) {
                    let screen = String::from_utf8_lossy(screen).into_owned();
                    return (Look::of(socket, Ok(listing)), Some(screen));
                }
            }
            // the pane may be gone: the others are listed all the same
            Err(Unanswered::Refused { .. }) => {}
            Err(why) => return (Look::of(socket, Err(why)), None),
        }
    }
    (Look::at(std::iter::once(&*found.record)).await, None)
}

/// The pane's screen below at most so many lines of its history. The pane must be the record's still.
pub(super) async fn capture(found: &Found, history: u32) -> Result<String, Trouble> {
    let failed = |why: String| Trouble::new(Exit::FAILED, "tmux-capture-failed", why);
    let Some((socket, pane)) = place(found) else { return Err(failed("it is in no pane".to_owned())) };
    let server = OneShot::new(socket).map_err(Failure::from)?;
    let screen = server.run(capturing(&pane, history)).await.map_err(|why| failed(why.to_string()))?;
    Ok(String::from_utf8_lossy(&screen).into_owned())
}

/// The socket and the pane of a session that has one.
fn place(found: &Found) -> Option<(&str, String)> {
    let record = &found.record;
    record
        .ait
        .server
        .as_ref()
        .map(|server| server.socket.as_str())
        .zip(record.location.pane_id().map(|pane| pane.to_string()))
}

fn capturing(pane: &str, history: u32) -> [String; 6] {
    ["capture-pane", "-p", "-t", pane, "-S", &format!("-{}", history.max(1))].map(str::to_owned)
}

/// The last lines of a text, each ended by a line end; blank ones at its end are left out.
pub(super) fn last(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_without_blank_ones_at_the_end() {
        assert_eq!(last("a\nb\nc\n\n  \n", 2), "b\nc\n");
        assert_eq!(last("a\n\nb", 10), "a\n\nb\n");
        assert_eq!(
            (last("a\n", 0), last("", 5), last("\n\n", 5)),
            (String::new(), String::new(), String::new())
        );
    }
}
