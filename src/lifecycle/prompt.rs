//! Pasting a session's first prompt: exact, bracketed where the agent asks for it, never in a command line.
//!
//! The text goes into a buffer of its own through a pipe; the pane is tested and the buffer pasted in one command, which also
//! deletes it. Enter is a pasted CR: `send-keys Enter` is swallowed in copy mode and doubled by `synchronize-panes`.

use std::time::Duration;

use bstr::ByteSlice;

use super::perform::World;
use crate::provider::{Composer, Phase};
use crate::record::Record;
use crate::tmux::guarded::{self, BadValue, Epoch, Guard, Outcome, Token};
use crate::tmux::{OneShot, Unanswered};

/// How long a program has to take a text before Enter follows.
const SETTLE: Duration = Duration::from_millis(200);
/// What ends a bracketed paste: in a text it would let the rest be typed.
pub const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// Why a prompt did not reach its agent.
#[derive(Debug, thiserror::Error)]
pub enum NotPasted {
    /// Its pane runs it no more.
    #[error("its agent is gone")]
    Gone,
    /// tmux refused or did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// A value that cannot be given to tmux.
    #[error(transparent)]
    Value(#[from] BadValue),
}

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
    // a line end before the one that hands it in would be one more
    let text = text.trim_end_with(|c| c == '\n');
    if !text.is_empty() {
        one(&server, &guard, text, true).await?;
        settle().await;
    }
    one(&server, &guard, b"\r", false).await?;
    settle().await;
    let Ok(Some(screen)) = guarded::capture(&server, &guard, 0).await else { return Ok(None) };
    let sight = world.catalog.look(&record.agent_kind, "", &screen.to_str_lossy());
    if sight.phase == Phase::Ready && sight.composer == Composer::Text {
        // it was still busy with the text
        one(&server, &guard, b"\r", false).await?;
    }
    Ok(match sight.phase {
        Phase::Dialog(dialog) => Some(format!("it waits at a dialog ({})", dialog.word())),
        Phase::Working | Phase::Asking | Phase::Ready | Phase::Unknown => None,
    })
}

async fn one(server: &OneShot, guard: &Guard, text: &[u8], bracketed: bool) -> Result<(), NotPasted> {
    let token = Token::random()?;
    let buffer = format!("ait-{}", token.as_str());
    server.feed(["load-buffer", "-b", &buffer, "-"], Some(text)).await?;
    let pasted = guarded::paste(guard.clone(), &buffer, bracketed, token).run(server).await;
    if !matches!(pasted, Ok(Outcome::Done)) {
        let _ = server.run(["delete-buffer", "-b", &buffer]).await;
    }
    match pasted? {
        Outcome::Done => Ok(()),
        Outcome::NotMet => Err(NotPasted::Gone),
        Outcome::Refused(words) => Err(Unanswered::Refused { words }.into()),
        Outcome::Unknown => Err(Unanswered::Refused { words: "no proof that it was done".into() }.into()),
    }
}

/// Nothing comes: only the time passes.
async fn settle() {
    let _ = tokio::time::timeout(SETTLE, std::future::pending::<()>()).await;
}
