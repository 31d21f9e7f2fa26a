//! The stream as events: frames with their meaning.

use memchr::memrchr_iter;

use crate::framer::{Frame, Framer};
use crate::notification::grammar;
use crate::{BadLine, Block, Guard, Notification};

/// How much of one line and one block is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line outside blocks, in bytes without the line feed. tmux itself writes up to 16.4 kB, and names
    /// or subscription values of any length.
    pub line: usize,
    /// The largest body of a block, in bytes with its line feeds. Lines inside are not limited on their own.
    pub block: usize,
}

impl Default for Limits {
    /// 1 MiB a line, 16 MiB a block.
    fn default() -> Self {
        Self { line: 1 << 20, block: 16 << 20 }
    }
}

/// What the stream said next. Borrows the decoder's buffer until the next call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A notification, known or not.
    Notification(Notification<'a>),
    /// A finished answer.
    Block(Block<'a>),
    /// A line outside any block that is neither: output of a foreground `run-shell`, the continuation of a value
    /// with a line feed in it, a guard without its partner.
    Stray(&'a [u8]),
    /// Something was lost or not understood; the stream goes on.
    Fault(Fault),
}

/// What could not be given as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line outside blocks was dropped.
    #[error("line of {length} bytes is over the limit of {limit}")]
    LineTooLong {
        /// Its length without the line feed.
        length: u64,
        /// [`Limits::line`].
        limit: usize,
    },
    /// The body of a block was dropped. The block did end, so its request is answered:
    /// [`Replies::take_lost`](crate::Replies::take_lost).
    #[error("block {guard} of {size} bytes is over the limit of {limit}")]
    BlockTooLong {
        /// What its guards agree on.
        guard: Guard,
        /// Closed by `%end` rather than `%error`.
        ok: bool,
        /// The body's size.
        size: u64,
        /// [`Limits::block`].
        limit: usize,
    },
    /// A known notification with fields that do not fit. Something happened, and what is not known.
    #[error(transparent)]
    BadLine(#[from] BadLine),
}

/// How the stream ended; see [`Decoder::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<'a> {
    /// The block that was open: its request was accepted and never answered.
    pub open: Option<Guard>,
    /// What came after the last whole event: the open block's body so far, or a line without its line feed.
    pub rest: &'a [u8],
    /// How many bytes of an over-long line or block, unfinished too, were dropped before `rest`.
    pub dropped: u64,
    /// Whether the last line is `%exit` or has it glued to its end, as happens when a server dies while the pipe is
    /// full: the reason, empty where none is given. A hint, since any program in a pane can write these letters.
    pub exit: Option<&'a [u8]>,
}

/// Turns the bytes of one control client into [`Event`]s.
///
/// - [`push`](Self::push) takes bytes, cut anywhere.
/// - [`next_event`](Self::next_event) gives the events those bytes complete, until `None`.
/// - [`finish`](Self::finish) is called once at the end of the stream, after the last `None`.
///
/// The events depend on the bytes and the limits alone, never on the cuts. No event allocates, except a
/// [`Fault::BadLine`]. What is [`held`](Self::held) stays within the larger of the two limits and a guard's length, plus
/// what was pushed and not yet taken; the buffer is at most a few times as large, and a large one is given back.
#[derive(Debug)]
pub struct Decoder {
    framer: Framer,
    limits: Limits,
}

impl Decoder {
    /// For `tmux -C`: lines end with a line feed, carriage returns are data.
    pub fn new(limits: Limits) -> Self {
        Self { framer: Framer::new(limits, false), limits }
    }

    /// For `tmux -CC` on a terminal: each line feed has a carriage return before it, and a device control string
    /// stands around the stream. Both are taken away, in bodies too.
    pub fn terminal(limits: Limits) -> Self {
        Self { framer: Framer::new(limits, true), limits }
    }

    /// Takes bytes from the stream. Take the events out before the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.framer.push(bytes);
    }

    /// The next event, or `None` until more bytes come.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        let event = match self.framer.next_frame()? {
            Frame::Line(line) => line_event(self.framer.bytes(line)),
            Frame::Stray(line) => Event::Stray(self.framer.bytes(line)),
            Frame::Block { guard, ok, body } => {
                Event::Block(Block { guard, ok, body: self.framer.bytes(body) })
            }
            Frame::LongLine { length } => {
                Event::Fault(Fault::LineTooLong { length, limit: self.limits.line })
            }
            Frame::LongBlock { guard, ok, size } => {
                Event::Fault(Fault::BlockTooLong { guard, ok, size, limit: self.limits.block })
            }
        };
        Some(event)
    }

    /// How many bytes are held for events that are not yet complete or not yet taken.
    pub fn held(&self) -> usize {
        self.framer.held()
    }

    /// Ends the stream and says what was left in the middle. The decoder is then as new for another stream.
    pub fn finish(&mut self) -> End<'_> {
        let (open, dropped, rest) = self.framer.finish();
        End { open, rest: self.framer.bytes(rest), dropped, exit: glued_exit(self.framer.last_line()) }
    }
}

#[inline]
fn line_event(line: &[u8]) -> Event<'_> {
    match grammar::notification(line) {
        Ok(notification) => Event::Notification(notification),
        Err(grammar::NONE) => Event::Stray(line),
        Err(name) => Event::Fault(Fault::BadLine(BadLine { name, line: line.to_vec() })),
    }
}

/// `glued-exit = *OCTET "%exit" [SP reason]`
fn glued_exit(line: &[u8]) -> Option<&[u8]> {
    let reason = memrchr_iter(b'%', line).find_map(|at| line[at..].strip_prefix(b"%exit"))?;
    if reason.is_empty() { Some(reason) } else { reason.strip_prefix(b" ") }
}
