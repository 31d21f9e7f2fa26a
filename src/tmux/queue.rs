//! What lies between the thread that drains a control client and the one who reads its events: one bounded queue, the
//! requests that wait, and what is still to be written.
//!
//! Marks are dropped when the queue is full, and the reader is told so once; answers never are, since no more requests may
//! wait than [`REQUESTS`].

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};
use tmux_control::{Block, Event, Fault, Notification, Replies, SessionId};
use tokio::sync::{Notify, oneshot};

use super::client::{ReplyError, SendError};
use super::identity::Identity;
use crate::process::ProcessId;
use crate::world::mark::Mark;

/// How many events may wait for the reader.
const EVENTS: usize = 4096;
/// How many requests may wait for their answer.
pub(super) const REQUESTS: usize = 256;
/// How much may wait to be written, in bytes. A server that reads nothing for that long is stopped or overloaded.
const OUTBOX: usize = 1 << 20;
/// How much of the answers of one guarded act is kept, in bytes.
const GATHERED: usize = 64 << 10;
/// How long the queue may stay full while tmux goes on talking, before the client gives up its connection: a control client
/// that nobody reads harms the server (R5).
const STUCK: Duration = Duration::from_secs(10);

/// What a control client tells.
#[derive(Debug)]
pub enum ClientEvent {
    /// Attached; always the first event.
    Attached(Identity),
    /// A notification, as far as it says something about sessions, windows, panes or clients.
    Mark(Mark),
    /// The answer to a request.
    Reply {
        /// As given to [`Client::send`](super::Client::send).
        tag: u64,
        /// The body, or why there is none.
        reply: Result<Vec<u8>, ReplyError>,
    },
    /// Marks were lost: nothing that was known from them holds until the server is listed again.
    Overflow,
    /// The end of this client; always the last event, and its process is reaped by then.
    Ended(Ended),
}

/// How a control client ended. What became of the server is decided by the server's process, never by this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Who ended it.
    pub cause: EndCause,
    /// `%exit`, if one was seen, with its reason (mostly empty). A hint.
    pub exit: Option<BString>,
    /// What the client wrote to standard error, 16 KiB at most.
    pub stderr: BString,
}

/// Who ended a control client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// The stream ended: the server, its hidden session, the client process, or somebody who detached it.
    Stream,
    /// We closed it.
    Closed,
    /// Somebody switched it to a session of the user's, where it must not stay: it left. The hidden session is still there.
    Moved,
    /// Nobody took its events for 10 s: it left, to spare the server. The hidden session is still there.
    Stuck,
}

/// An event and when its line was read.
#[derive(Debug)]
pub struct Heard {
    /// When the bytes that completed it were read.
    pub at: Instant,
    /// What it was.
    pub event: ClientEvent,
}

/// The events of one control client, in order.
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
    over: bool,
}

impl Events {
    pub(super) fn new(shared: Arc<Shared>) -> Events {
        Events { shared, over: false }
    }

    /// The next event; `None` after [`ClientEvent::Ended`]. Cancel safe.
    pub async fn next(&mut self) -> Option<Heard> {
        if self.over {
            return None;
        }
        loop {
            // taken before the look, so that nothing that comes in between is slept through
            let woken = self.shared.woken.notified();
            if let Some(heard) = self.shared.lock().take() {
                self.over = matches!(heard.event, ClientEvent::Ended(_));
                return Some(heard);
            }
            woken.await;
        }
    }
}

/// What both sides of a control client hold.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    woken: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    events: VecDeque<Heard>,
    overflow: Option<Instant>,
    full_since: Option<Instant>,
    replies: Replies<Request>,
    outbox: Vec<u8>,
    stdin: Option<ChildStdin>,
    holder: Option<ProcessId>,
    leaving: bool,
    attached: Option<oneshot::Sender<Result<(), BString>>>,
    session: Option<SessionId>,
    exit: Option<BString>,
    ended: Option<Ended>,
}

/// Who wants an answer.
#[derive(Debug)]
pub(super) enum Asker {
    /// The reader of the events, by tag.
    Tag(u64),
    /// Somebody who awaits it.
    Waiter(oneshot::Sender<Result<Vec<u8>, ReplyError>>),
}

/// A request that waits for its blocks.
#[derive(Debug)]
pub(super) struct Request {
    asker: Asker,
    /// Answered by all blocks up to a marker's, rather than by one.
    many: bool,
    gathered: Vec<u8>,
    refused: Option<BString>,
}

/// What the draining thread must do after an event.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Then {
    Go,
    End(EndCause),
}

impl Shared {
    pub(super) fn new(stdin: ChildStdin, attached: oneshot::Sender<Result<(), BString>>) -> Arc<Shared> {
        Arc::new(Shared {
            state: Mutex::new(State {
                events: VecDeque::new(),
                overflow: None,
                full_since: None,
                replies: Replies::new(REQUESTS),
                outbox: Vec::new(),
                stdin: Some(stdin),
                holder: None,
                leaving: false,
                attached: Some(attached),
                session: None,
                exit: None,
                ended: None,
            }),
            woken: Notify::new(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // nothing in here panics between two states that belong together
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the reader.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }
}

impl Request {
    fn gather(&mut self, block: &Block<'_>) {
        if !block.ok {
            self.refused.get_or_insert_with(|| block.body.trim().into());
        } else if !self.many || self.gathered.len() + block.body.len() <= GATHERED {
            self.gathered.extend_from_slice(block.body);
        }
    }
}

impl State {
    /// Says that the client is attached and who it is; the first event. `holder` runs in the pane of the hidden session.
    pub(super) fn open(&mut self, identity: Identity, holder: ProcessId) {
        self.holder = Some(holder);
        self.events.push_front(Heard { at: Instant::now(), event: ClientEvent::Attached(identity) });
    }

    /// Notes a request and writes its line, or keeps what the pipe does not take. A request with a marker is answered by
    /// all that comes before it. Gives whether something is left to write.
    pub(super) fn request(
        &mut self,
        asker: Asker,
        line: &[u8],
        marker: Option<&[u8]>,
    ) -> Result<bool, SendError> {
        if self.stdin.is_none() || self.leaving {
            return Err(SendError::Ended);
        }
        if self.outbox.len() + line.len() > OUTBOX {
            return Err(SendError::Full);
        }
        let request = Request { asker, many: marker.is_some(), gathered: Vec::new(), refused: None };
        match marker {
            Some(marker) => self.replies.push_until(request, marker),
            None => self.replies.push(request),
        }
        .map_err(|_| SendError::Full)?;
        self.outbox.extend_from_slice(line);
        self.flush();
        Ok(!self.outbox.is_empty())
    }

    /// Writes what waits, as far as the pipe takes it.
    pub(super) fn flush(&mut self) {
        while let Some(stdin) = self.stdin.as_mut().filter(|_| !self.outbox.is_empty()) {
            match stdin.write(&self.outbox) {
                Ok(written) => drop(self.outbox.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // the other end is closed: the end of the stream will say so too
                Err(_) => self.close(),
            }
        }
    }

    /// Whether something waits to be written, and the pipe for it.
    pub(super) fn to_write(&self) -> Option<&ChildStdin> {
        self.stdin.as_ref().filter(|_| !self.outbox.is_empty())
    }

    /// Takes no more requests.
    pub(super) fn leave(&mut self) {
        self.leaving = true;
    }

    /// The process whose end is the end of the hidden session.
    pub(super) fn holder(&self) -> Option<ProcessId> {
        self.holder.clone()
    }

    fn close(&mut self) {
        self.stdin = None;
        self.outbox.clear();
    }

    /// Takes one event of the stream.
    pub(super) fn hear(&mut self, event: Event<'_>, at: Instant) -> Then {
        match event {
            Event::Notification(notification) => self.notice(&notification, at),
            Event::Block(block) => {
                self.answer(&block, at);
                Then::Go
            }
            // output of a `run-shell` of somebody's, the rest of a value with a line feed in it
            Event::Stray(_) => Then::Go,
            Event::Fault(fault) => {
                if let Some(request) = self.replies.take_lost(&fault) {
                    self.reply(request.asker, Err(ReplyError::TooLong), at);
                }
                match fault {
                    Fault::BlockTooLong { .. } => {}
                    // a notification that could not be read: something happened, and what is not known
                    Fault::LineTooLong { .. } | Fault::BadLine(_) => self.overflow = Some(at),
                }
                Then::Go
            }
        }
    }

    /// The end of everything: who still waits gets no answer, and the reader is told.
    pub(super) fn end(&mut self, cause: EndCause, glued_exit: Option<BString>, stderr: BString) {
        let at = Instant::now();
        self.close();
        let waiting: Vec<Request> = self.replies.drain().collect();
        for request in waiting {
            self.reply(request.asker, Err(ReplyError::Unanswered), at);
        }
        let ended = Ended { cause, exit: self.exit.take().or(glued_exit), stderr };
        self.ended = Some(ended.clone());
        self.events.push_back(Heard { at, event: ClientEvent::Ended(ended) });
        // whoever waits for the attach learns of its failure by the channel's end
        self.attached = None;
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.clone()
    }

    fn take(&mut self) -> Option<Heard> {
        let attached_first =
            matches!(self.events.front(), Some(Heard { event: ClientEvent::Attached(_), .. }));
        if let Some(at) = self.overflow.take_if(|_| !attached_first) {
            return Some(Heard { at, event: ClientEvent::Overflow });
        }
        let heard = self.events.pop_front();
        if self.events.len() < EVENTS {
            self.full_since = None;
        }
        heard
    }

    fn notice(&mut self, notification: &Notification<'_>, at: Instant) -> Then {
        match *notification {
            Notification::Exit { reason } => self.exit = Some(reason.unwrap_or_default().into()),
            Notification::SessionChanged { session, .. }
                if *self.session.get_or_insert(session) != session =>
            {
                return Then::End(EndCause::Moved);
            }
            _ => {}
        }
        match Mark::from_notification(notification) {
            Some(mark) => self.mark(mark, at),
            None => Then::Go,
        }
    }

    fn mark(&mut self, mark: Mark, at: Instant) -> Then {
        if matches!(self.events.back(), Some(Heard { event: ClientEvent::Mark(last), .. }) if *last == mark) {
            return Then::Go;
        }
        if self.events.len() < EVENTS {
            self.events.push_back(Heard { at, event: ClientEvent::Mark(mark) });
            return Then::Go;
        }
        self.overflow = Some(at);
        if at.duration_since(*self.full_since.get_or_insert(at)) > STUCK {
            Then::End(EndCause::Stuck)
        } else {
            Then::Go
        }
    }

    fn answer(&mut self, block: &Block<'_>, at: Instant) {
        match self.replies.take(block) {
            Some(mut request) => {
                // the marker's own block says nothing
                if !request.many {
                    request.gather(block);
                }
                let Request { asker, gathered, refused, many: _ } = request;
                let reply = match refused {
                    Some(words) => Err(ReplyError::Refused(words)),
                    None => Ok(gathered),
                };
                self.reply(asker, reply, at);
            }
            None if block.from_client() => {
                if let Some(request) = self.replies.front_mut() {
                    request.gather(block);
                }
            }
            None => {}
        }
        if let Some(ok) = self.replies.attached()
            && let Some(attached) = self.attached.take()
        {
            let words = block.body.trim();
            // nobody waits any more when the attach ran out of time
            let _ = attached.send(if ok { Ok(()) } else { Err(words.into()) });
        }
    }

    fn reply(&mut self, asker: Asker, reply: Result<Vec<u8>, ReplyError>, at: Instant) {
        match asker {
            Asker::Tag(tag) => self.events.push_back(Heard { at, event: ClientEvent::Reply { tag, reply } }),
            // the waiter may have given up
            Asker::Waiter(waiter) => drop(waiter.send(reply)),
        }
    }
}
