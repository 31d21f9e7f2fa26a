//! One control client as the loop sees it: a task that attaches and listens, and the questions asked on it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bstr::BString;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::ask::{Asked, NotAsked};
use crate::supervisor::{Answer, Ask, AttachFailure, Identity, LinkId, Tag};
use crate::tmux::{self, AttachError, Client, ClientEvent, EndCause, ReplyError, Unanswered};
use crate::world::mark::Mark;

/// A word of a client's task to the loop.
pub(super) struct Word {
    pub(super) socket: PathBuf,
    pub(super) link: LinkId,
    pub(super) said: Said,
}

/// What it says.
pub(super) enum Said {
    /// It is attached.
    Attached(Box<Client>, Identity),
    /// It could not attach; the task ends.
    Failed(AttachFailure),
    /// A notification, and when it was read.
    Mark(Instant, Mark),
    /// A reply to a command, by the number it was sent with.
    Reply(u64, Result<Vec<u8>, ReplyError>),
    /// Notifications were lost.
    Overflow,
    /// Its end, with the `%exit` reason where one came; the task ends.
    Ended(Option<BString>),
}

/// A client, attached or on its way.
pub(super) struct Linked {
    pub(super) link: LinkId,
    client: Option<Box<Client>>,
    asked: Asked,
    task: JoinHandle<()>,
}

impl Linked {
    /// Begins to attach.
    pub(super) fn start(link: LinkId, socket: PathBuf, hold: PathBuf, speaker: mpsc::Sender<Word>) -> Self {
        let task = tokio::spawn(live(link, socket, hold, speaker));
        Self { link, client: None, asked: Asked::default(), task }
    }

    /// The client is attached.
    pub(super) fn attached(&mut self, client: Box<Client>) {
        self.client = Some(client);
    }

    /// Asks on it.
    pub(super) fn put(&mut self, program: &Path, tag: Tag, ask: &Ask) -> Result<(), NotAsked> {
        match &self.client {
            Some(client) => self.asked.put(client, program, tag, ask),
            None => Err(NotAsked::Send(tmux::SendError::Ended)),
        }
    }

    /// Takes a reply; gives the answer once it is whole.
    pub(super) fn take(&mut self, number: u64, reply: Result<Vec<u8>, ReplyError>) -> Option<(Tag, Answer)> {
        self.asked.take(number, reply)
    }

    /// Lets the client go; its task tells its end. Whether there was none yet, so that nothing will be told.
    pub(super) fn leave(&mut self) -> bool {
        if self.client.take().is_some() {
            return false;
        }
        self.task.abort();
        true
    }
}

async fn live(link: LinkId, socket: PathBuf, hold: PathBuf, speaker: mpsc::Sender<Word>) {
    let say = async |said| speaker.send(Word { socket: socket.clone(), link, said }).await;
    let (client, mut events) = match Client::attach(&socket, &hold).await {
        Ok(attached) => attached,
        Err(error) => {
            // the loop may have ended; so below
            let _ = say(Said::Failed(failure(&error))).await;
            return;
        }
    };
    let identity = match identity(client.identity()) {
        Ok(identity) => identity,
        Err(why) => {
            let _ = say(Said::Failed(AttachFailure::Unknown(why))).await;
            return;
        }
    };
    if say(Said::Attached(Box::new(client), identity)).await.is_err() {
        return;
    }
    while let Some(heard) = events.next().await {
        let said = match heard.event {
            ClientEvent::Attached(_) => continue,
            ClientEvent::Mark(mark) => Said::Mark(heard.at, mark),
            ClientEvent::Reply { tag, reply } => Said::Reply(tag, reply),
            ClientEvent::Overflow => Said::Overflow,
            ClientEvent::Ended(ended) => {
                if !ended.stderr.is_empty() {
                    tracing::info!(words = %ended.stderr, "a control client ended");
                }
                let exit = match ended.cause {
                    EndCause::Stream => ended.exit,
                    // we left by ourselves: its last words say nothing of the server
                    EndCause::Closed | EndCause::Moved | EndCause::Stuck => None,
                };
                let _ = say(Said::Ended(exit)).await;
                return;
            }
        };
        if say(said).await.is_err() {
            return;
        }
    }
    let _ = say(Said::Ended(None)).await;
}

/// What a failure says of the server: that nobody listens, or nothing.
fn failure(error: &AttachError) -> AttachFailure {
    match error {
        AttachError::Unanswered(Unanswered::NoServer { .. }) => AttachFailure::NoServer,
        AttachError::Unanswered(
            Unanswered::Refused { .. }
            | Unanswered::Unreachable { .. }
            | Unanswered::ProtocolMismatch { .. }
            | Unanswered::Timeout { .. }
            | Unanswered::TooLong { .. }
            | Unanswered::NoBinary
            | Unanswered::Io { .. },
        )
        | AttachError::Refused { .. }
        | AttachError::NotOurs { .. }
        | AttachError::Lost { .. }
        | AttachError::HoldProgram(_)
        | AttachError::Start { .. } => AttachFailure::Unknown(error.to_string()),
    }
}

fn identity(found: &tmux::Identity) -> Result<Identity, String> {
    let Some(server) = &found.server else {
        return Err(format!("process {} of the server cannot be seen from here", found.pid));
    };
    Ok(Identity {
        process: server.clone(),
        started_at: found.started_at,
        version: found.version_text.to_string(),
        session: found.session,
        hold: found.hold,
        client: found.client.clone(),
        default_session: found.default_session,
    })
}
