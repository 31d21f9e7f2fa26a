//! Pasting a session's first prompt: once its prompt line is open, exact, bracketed where the agent asks for it, never in a command
//! line ([`super::paste`]).

use std::time::Duration;

use bstr::ByteSlice;

use super::paste::{self, Hand};
use super::perform::World;
use crate::provider::{Composer, Dialog, Phase};
use crate::record::Record;
use crate::tmux::guarded::{self, Epoch, Guard};
use crate::tmux::{OneShot, Unanswered};

pub use super::paste::NotPasted;

/// What ends a bracketed paste: in a text it would let the rest be typed.
pub const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// What an agent that came up shows in the place of its prompt line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// It is open, or the agent is at work; so too where its provider's screen never tells.
    Open,
    /// A dialog stands before it.
    Behind(Dialog),
    /// It was not seen for as long as one is waited for.
    Unseen,
}

/// Waits until a live record's agent has its prompt line open: what is pasted before that may be lost.
///
/// # Errors
/// [`NotPasted::Gone`], and what tmux says where it cannot be asked.
pub async fn open(world: &World, record: &Record) -> Result<Line, NotPasted> {
    if !world.catalog.shows_ready(&record.agent_kind) {
        return Ok(Line::Open);
    }
    let (server, guard) = place(record)?;
    let pane = record.location.pane_id().map(|pane| pane.to_string()).unwrap_or_default();
    let mut steady = 0;
    for span in pauses() {
        let title = server.run(["display-message", "-p", "-t", &pane, "#{pane_title}"]).await;
        let title = title.unwrap_or_default();
        match guarded::capture(&server, &guard, 0).await {
            Ok(Some(screen)) => {
                let title = title.trim_end().to_str_lossy();
                let sight = world.catalog.look(&record.agent_kind, &title, &screen.to_str_lossy());
                match (sight.phase, sight.composer) {
                    (Phase::Dialog(dialog), _) => return Ok(Line::Behind(dialog)),
                    (Phase::Unknown, Composer::Unknown) => steady = 0,
                    // it may still be drawn
                    (Phase::Unknown, _) if steady < STEADY => steady += 1,
                    (Phase::Working | Phase::Asking | Phase::Ready | Phase::Unknown, _) => {
                        return Ok(Line::Open);
                    }
                }
            }
            Ok(None) | Err(Unanswered::NoServer { .. }) => return Err(NotPasted::Gone),
            // the next look may be answered
            Err(_) => {}
        }
        paste::pause(span).await;
    }
    Ok(Line::Unseen)
}

/// At so many looks one after the other a prompt line was there before it counts as open though nothing else tells so.
const STEADY: usize = 4;

/// What goes by between two looks for a prompt line: little while most agents come up, then a second. Some take 40 s.
fn pauses() -> impl Iterator<Item = Duration> {
    let soon = [50, 100, 200, 400, 800].map(Duration::from_millis);
    soon.into_iter().chain(std::iter::repeat_n(Duration::from_secs(1), 60))
}

/// The pane of a live record: its server, and what it must be for anything to be done.
fn place(record: &Record) -> Result<(OneShot, Guard), NotPasted> {
    let at = (record.location.pane_id(), record.location.process(), record.ait.server.as_ref());
    let (Some(pane), Some(process), Some(epoch)) = at else { return Err(NotPasted::Gone) };
    let life = Epoch { pid: epoch.pid, started_at: epoch.started_at.unwrap_or_default() };
    let guard = Guard::new(tmux_control::PaneId(pane.0), life).process(process.pid);
    Ok((OneShot::new(&epoch.socket)?, guard))
}

/// Pastes a text into a live record's pane and hands it in. What is to be said besides.
///
/// # Errors
/// [`NotPasted`]; then the buffer is gone too.
pub async fn paste(world: &World, record: &Record, text: &[u8]) -> Result<Option<String>, NotPasted> {
    let (server, guard) = place(record)?;
    let commands = server.run(["list-commands", "paste-buffer"]).await.unwrap_or_default();
    let buffers = paste::buffers_of(record.id);
    let hand = Hand::new(&server, guard.clone(), &buffers, paste::knows_unchanged(&commands));
    // a line end before the one that hands it in would be one more
    let text = text.trim_end_with(|c| c == '\n');
    if !text.is_empty() {
        hand.text(text, false).await?;
        paste::settle().await;
    }
    hand.enter().await?;
    let mut repeated = false;
    for _ in 0..LOOKS {
        paste::settle().await;
        let Ok(Some(screen)) = guarded::capture(&server, &guard, 0).await else { return Ok(None) };
        let sight = world.catalog.look(&record.agent_kind, "", &screen.to_str_lossy());
        match (sight.phase, sight.composer) {
            (Phase::Dialog(dialog), _) => {
                return Ok(Some(format!("it waits at a dialog ({})", dialog.word())));
            }
            (Phase::Ready, Composer::Text) if repeated => {}
            (Phase::Ready, Composer::Text) => {
                // it was still busy with the text
                hand.enter().await?;
                repeated = true;
            }
            (Phase::Working | Phase::Asking | Phase::Ready | Phase::Unknown, _) => return Ok(None),
        }
    }
    let id = record.id;
    Ok(Some(format!(
        "its prompt stands in its prompt line and was not taken; `ait send {id} --key enter` hands it in"
    )))
}

/// How often it is looked whether a prompt was taken, before it is said that it was not.
const LOOKS: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_line_that_opens_late_is_waited_for_with_few_looks() {
        assert!(pauses().sum::<Duration>() > Duration::from_secs(45), "some take 40 s");
        assert!(pauses().count() < 80);
    }
}
