//! Which block answers which request.
//!
//! tmux answers the lines of one client in order, but blocks of hooks and of other people's `run-shell -bC` stand in
//! between. Only `flags` tells them apart: 1 for what this client wrote, 0 for the rest.

use std::collections::VecDeque;

use crate::{Block, Fault, Guard};

/// The requests that wait for their block, in the order in which their lines were written.
#[derive(Debug)]
pub struct Replies<T> {
    waiting: VecDeque<Waiting<T>>,
    capacity: usize,
    attached: Option<bool>,
}

#[derive(Debug)]
struct Waiting<T> {
    request: T,
    marker: Option<Box<[u8]>>,
}

/// As many requests as allowed wait already; the new one comes back and its line must not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{capacity} requests wait already")]
pub struct Full<T> {
    /// The request that found no place.
    pub request: T,
    /// How many may wait.
    pub capacity: usize,
}

impl<T> Replies<T> {
    /// Room for `capacity` requests.
    pub fn new(capacity: usize) -> Self {
        Self { waiting: VecDeque::new(), capacity, attached: None }
    }

    /// Notes a request whose one line brings exactly one block. Call it for each line, in the order of writing.
    ///
    /// # Errors
    /// [`Full`], with the request.
    pub fn push(&mut self, request: T) -> Result<(), Full<T>> {
        self.wait(request, None)
    }

    /// Notes a request whose line may bring any number of blocks (`if-shell`, `run-shell -C`, `source-file`, a
    /// command alias) and is followed by a line of its own, `display-message -p` with a `marker` that occurs nowhere
    /// else. The request is answered by the block whose body is the marker's line.
    ///
    /// # Errors
    /// [`Full`], with the request.
    pub fn push_until(&mut self, request: T, marker: &[u8]) -> Result<(), Full<T>> {
        self.wait(request, Some(marker.into()))
    }

    /// The request that a block answers, taken out; for a request with a marker, when the marker comes.
    ///
    /// Blocks with `flags` 0 answer none. The first of them is the result of the command line that attached.
    pub fn take(&mut self, block: &Block<'_>) -> Option<T> {
        self.settle(block.guard, block.ok, Some(block.body))
    }

    /// The request whose answer was too long to keep ([`Fault::BlockTooLong`]). Other faults answer none.
    pub fn take_lost(&mut self, fault: &Fault) -> Option<T> {
        match *fault {
            Fault::BlockTooLong { guard, ok, .. } => self.settle(guard, ok, None),
            Fault::LineTooLong { .. } | Fault::BadLine(_) => None,
        }
    }

    /// The request that the next block of this client belongs to. With a marker pending, the place to gather what
    /// comes before it.
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.waiting.front_mut().map(|waiting| &mut waiting.request)
    }

    /// Whether attaching succeeded, once its block has come. Nothing may be written before: on 3.3a a line that is
    /// there early can run before the attach.
    pub fn attached(&self) -> Option<bool> {
        self.attached
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives up all requests that wait, oldest first, as when the stream has ended.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.waiting.drain(..).map(|waiting| waiting.request)
    }

    fn wait(&mut self, request: T, marker: Option<Box<[u8]>>) -> Result<(), Full<T>> {
        if self.waiting.len() >= self.capacity {
            return Err(Full { request, capacity: self.capacity });
        }
        self.waiting.push_back(Waiting { request, marker });
        Ok(())
    }

    fn settle(&mut self, guard: Guard, ok: bool, body: Option<&[u8]>) -> Option<T> {
        if !guard.from_client() {
            if guard.flags == 0 && self.attached.is_none() {
                self.attached = Some(ok);
            }
            return None;
        }
        if let Some(marker) = self.waiting.front()?.marker.as_deref() {
            let line = body.and_then(|body| body.strip_suffix(b"\n"));
            if !ok || line != Some(marker) {
                return None;
            }
        }
        self.waiting.pop_front().map(|waiting| waiting.request)
    }
}
