//! Scrollback and screen of a pane, with colours and without, written to where captures lie.

use std::path::Path;

use super::Performer;
use crate::coordinator::Captured;
use crate::record::PaneId;
use crate::tmux::OneShot;

impl Performer<'_> {
    /// Captures the record's pane; an earlier capture that holds more stays.
    pub(super) async fn capture(&self) -> Result<Captured, String> {
        let record = self.record.as_ref().ok_or("there is no record")?;
        let pane = record.location.pane_id().ok_or("its record names no pane")?;
        let (_, server) = self.server().ok_or("its record names no server")?;
        let server = server.map_err(|error| error.to_string())?;
        let ansi = text(&server, pane, self.world.capture_max_lines).await?;
        let lines = crate::store::screen_lines(&ansi);
        let earlier = &record.capture;
        let there = !earlier.is_empty() && Path::new(&earlier.ansi).is_file();
        if there && earlier.lines > lines {
            return Ok(Captured { capture: earlier.clone(), kept_earlier: true });
        }
        let capture = self.world.store.write_capture(self.id, &ansi).map_err(|error| {
            // half a capture is none; an earlier one the record names stays
            if !there {
                self.world.store.remove_captures(self.id);
            }
            error.to_string()
        })?;
        Ok(Captured { capture, kept_earlier: false })
    }
}

/// What tmux shows of a pane: at most `cap` lines of history and the screen, wrapped lines joined, colours kept.
async fn text(server: &OneShot, pane: PaneId, cap: u32) -> Result<Vec<u8>, String> {
    let (pane, from) = (pane.to_string(), format!("-{cap}"));
    let words = ["capture-pane", "-p", "-e", "-J", "-S", from.as_str(), "-t", pane.as_str()];
    // 50,000 coloured lines are some ten megabytes
    let server = server.clone().limit(128 << 20);
    let mut answer = server.run(words).await.map_err(|error| error.to_string())?;
    // the empty rest of the screen is no output
    while answer.ends_with(b"\n\n") || answer == b"\n" {
        answer.pop();
    }
    Ok(answer)
}
