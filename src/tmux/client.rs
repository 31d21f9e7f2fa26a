//! The one long-lived control client on a server: asking through it, and the shapes of its answers.

use std::io::{PipeWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::BString;
use tmux_control::{Command, Refused};
use tokio::sync::oneshot;

use super::guarded::Dispatch;
use super::identity::Identity;
use super::queue::{Asker, Ended, Shared};

/// A control client, attached to the hidden session. [`Client::attach`] makes one. Dropping it ends the hidden session and with
/// it the client, whose process is reaped; its [`Events`](super::Events) then end with `Ended`. Where two supervisors share a
/// server they share the session: the other one's client ends too, and attaches again.
#[derive(Debug)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) identity: Identity,
    /// A byte wakes the draining thread, the end tells it to detach.
    pub(super) waker: Mutex<PipeWriter>,
}

/// Why a request has no body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// tmux ran the command and said no.
    #[error("tmux refused: {0}")]
    Refused(BString),
    /// The client ended before the answer. Whether the command was run is unknown.
    #[error("the control client ended before the answer")]
    Unanswered,
    /// The command was run, and its answer passed the bound of a block.
    #[error("the answer was too long to keep")]
    TooLong,
}

/// Why a request was not sent. Nothing of it reached tmux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The client has ended.
    #[error("the control client has ended")]
    Ended,
    /// Too much waits already: the server does not answer.
    #[error("too many requests wait for the server")]
    Full,
    /// The command cannot be written as a line.
    #[error(transparent)]
    Unsendable(#[from] Refused),
}

impl Client {
    /// Who the server and this client are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sends one command; its answer comes as an event with this tag. Never waits. Only for commands that give exactly one
    /// block: those that run others (`if-shell` and its kind) go through [`Client::dispatch`].
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn send(&self, tag: u64, command: &Command) -> Result<(), SendError> {
        self.request(Asker::Tag(tag), &command.to_line()?, None)
    }

    /// Sends a guarded act; its answer, for [`Dispatch::outcome`], comes as an event with this tag. Never waits.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn dispatch(&self, tag: u64, dispatch: &Dispatch) -> Result<(), SendError> {
        // two lines: the act with whatever blocks it brings, then the mark that they are over
        let mut lines = dispatch.command().to_line()?;
        lines.extend(dispatch.end_mark().to_line()?);
        self.request(Asker::Tag(tag), &lines, Some(dispatch.end_text().as_bytes()))
    }

    /// Sends one command and awaits its answer, past the events.
    ///
    /// # Errors
    /// Nothing was sent, or there is no answer.
    pub async fn ask(&self, command: &Command) -> Result<Result<Vec<u8>, ReplyError>, SendError> {
        let (sender, receiver) = oneshot::channel();
        self.request(Asker::Waiter(sender), &command.to_line()?, None)?;
        Ok(receiver.await.unwrap_or(Err(ReplyError::Unanswered)))
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        self.shared.lock().ended()
    }

    fn request(&self, asker: Asker, line: &[u8], marker: Option<&[u8]>) -> Result<(), SendError> {
        if self.shared.lock().request(asker, line, marker)? {
            // the pipe is full: the thread writes the rest when it takes more. It cannot be gone without having ended all.
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = waker.write(&[0]);
        }
        Ok(())
    }
}

/// Asks before there is a [`Client`]: nothing else waits then, so the pipe takes the line at once.
pub(super) async fn ask(
    shared: &Shared,
    command: &Command,
) -> Result<Result<Vec<u8>, ReplyError>, SendError> {
    let (sender, receiver) = oneshot::channel();
    let line = command.to_line()?;
    let _left_to_write = shared.lock().request(Asker::Waiter(sender), &line, None)?;
    Ok(receiver.await.unwrap_or(Err(ReplyError::Unanswered)))
}
