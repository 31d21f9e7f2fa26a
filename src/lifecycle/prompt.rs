//! Pasting a session's first prompt: exact, bracketed where the agent asks for it, never in a command line ([`super::paste`]).

use bstr::ByteSlice;

use super::paste::{self, Hand};
use super::perform::World;
use crate::provider::{Composer, Phase};
use crate::record::Record;
use crate::tmux::OneShot;
use crate::tmux::guarded::{self, Epoch, Guard};

pub use super::paste::NotPasted;

/// What ends a bracketed paste: in a text it would let the rest be typed.
pub const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// Pastes a text into a live record's pane and hands it in. What is to be said besides.
///
/// # Errors
/// [`NotPasted`]; then the buffer is gone too.
pub async fn paste(world: &World, record: &Record, text: &[u8]) -> Result<Option<String>, NotPasted> {
    let (Some(pane), Some(process), Some(epoch)) =
        (record.location.pane_id(), record.location.process(), record.ait.server.as_ref())
    else {
        return Err(NotPasted::Gone);
    };
    let server = OneShot::new(&epoch.socket)?;
    let life = Epoch { pid: epoch.pid, started_at: epoch.started_at.unwrap_or_default() };
    let guard = Guard::new(tmux_control::PaneId(pane.0), life).process(process.pid);
    let commands = server.run(["list-commands", "paste-buffer"]).await.unwrap_or_default();
    let buffers = paste::buffers_of(record.id);
    let hand = Hand::new(&server, guard.clone(), &buffers, paste::knows_unchanged(&commands));
    // a line end before the one that hands it in would be one more
    let text = text.trim_end_with(|c| c == '\n');
    if !text.is_empty() {
        hand.text(text).await?;
        paste::settle().await;
    }
    hand.enter().await?;
    paste::settle().await;
    let Ok(Some(screen)) = guarded::capture(&server, &guard, 0).await else { return Ok(None) };
    let sight = world.catalog.look(&record.agent_kind, "", &screen.to_str_lossy());
    if sight.phase == Phase::Ready && sight.composer == Composer::Text {
        // it was still busy with the text
        hand.enter().await?;
    }
    Ok(match sight.phase {
        Phase::Dialog(dialog) => Some(format!("it waits at a dialog ({})", dialog.word())),
        Phase::Working | Phase::Asking | Phase::Ready | Phase::Unknown => None,
    })
}
