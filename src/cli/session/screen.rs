//! What a session's pane shows, as plain text.

use super::address::Found;
use super::envelope::Trouble;
use crate::cli::{Exit, Failure};
use crate::tmux::OneShot;

/// The pane's screen below at most so many lines of its history. The pane must be the record's still.
pub(super) async fn capture(found: &Found, history: u32) -> Result<String, Trouble> {
    let record = &found.record;
    let failed = |why: String| Trouble::new(Exit::FAILED, "tmux-capture-failed", why);
    let (Some(pane), Some(epoch)) = (record.location.pane_id(), &record.ait.server) else {
        return Err(failed("it is in no pane".to_owned()));
    };
    let server = OneShot::new(&epoch.socket).map_err(Failure::from)?;
    let (pane, above) = (pane.to_string(), format!("-{}", history.max(1)));
    let words = ["capture-pane", "-p", "-t", pane.as_str(), "-S", above.as_str()];
    let screen = server.run(words).await.map_err(|why| failed(why.to_string()))?;
    Ok(String::from_utf8_lossy(&screen).into_owned())
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
