//! Bytes to frames: where a line ends, which lines are one block, and what belongs to neither.
//!
//! Knows guards and nothing else of the protocol. Bounded by construction: an over-long line or block is counted and
//! dropped while framing goes on, so one bad answer never costs the place in the stream.
//!
//! Whatever comes out depends on the bytes alone, never on how they were cut. That is why every decision waits for
//! a line feed, and why dropping early is allowed only where the end of the line cannot change the decision.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use crate::{Guard, Limits, notification::grammar};

/// Precedes the first line of `tmux -CC`.
const DEVICE_CONTROL: &[u8] = b"\x1bP1000p";
/// Follows the last line of `tmux -CC`.
const STRING_TERMINATOR: &[u8] = b"\x1b\\";
/// No closing guard is longer: `%error`, 20 + 10 + 3 digits, three spaces.
const LONGEST_GUARD: usize = 6 + 20 + 10 + 3 + 3;
/// How much of the stream's end is kept to look for a glued `%exit`; the longest reason has 26 bytes.
const TAIL: usize = 128;
/// A drained buffer larger than this is given back.
const SPARE: usize = 256 * 1024;

/// A frame, as places in the framer's buffer.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A line outside any block that begins with `%` and is no guard.
    Line(Range<usize>),
    /// Any other line outside a block, guards without a partner included.
    Stray(Range<usize>),
    /// A block with its body.
    Block { guard: Guard, ok: bool, body: Range<usize> },
    /// A line of so many bytes, longer than the limit.
    LongLine { length: u64 },
    /// A block whose body had so many bytes, more than the limit.
    LongBlock { guard: Guard, ok: bool, size: u64 },
}

/// Carriage returns of a terminal's output mode, removed on the way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// `-C`: a carriage return is data.
    Pipe,
    /// `-CC`: each line feed has one carriage return before it. `held`: one came last and its successor is unknown.
    Terminal { held: bool },
}

#[derive(Debug)]
struct Open {
    guard: Guard,
    /// Bytes of body dropped so far; with `lost` set, all of it is dropped.
    dropped: u64,
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct Framer {
    limits: Limits,
    ending: Ending,
    buffer: Vec<u8>,
    /// The first byte still needed: the current line's, or the open block's body.
    start: usize,
    /// The current line's first byte.
    line: usize,
    /// Where to look on for the current line's end.
    scan: usize,
    /// Bytes dropped from the front of the current line; in a block they are counted there too.
    skipped: u64,
    open: Option<Open>,
    /// The stream's last bytes.
    tail: Vec<u8>,
    /// The stream has ended; the next byte begins another.
    ended: bool,
}

impl Framer {
    pub(crate) fn new(limits: Limits, terminal: bool) -> Self {
        Self {
            limits,
            ending: if terminal { Ending::Terminal { held: false } } else { Ending::Pipe },
            buffer: Vec::new(),
            start: 0,
            line: 0,
            scan: 0,
            skipped: 0,
            open: None,
            tail: Vec::with_capacity(TAIL),
            ended: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.ended) {
            self.tail.clear();
        }
        self.compact(bytes.len());
        match self.ending {
            Ending::Pipe => self.append(bytes),
            Ending::Terminal { held } => self.append_from_terminal(held, bytes),
        }
    }

    /// The next whole frame, if the buffer holds one.
    #[inline]
    pub(crate) fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let Some(length) = memchr(b'\n', &self.buffer[self.scan..]) else {
                self.scan = self.buffer.len();
                self.drop_what_cannot_matter();
                return None;
            };
            let end = self.scan + length;
            let line = self.line..end;
            let skipped = std::mem::take(&mut self.skipped);
            self.line = end + 1;
            self.scan = end + 1;
            let frame = if self.open.is_some() {
                self.in_block(line, skipped)
            } else {
                self.start = end + 1;
                self.outside(line, skipped)
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    pub(crate) fn held(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Ends the stream: the guard of an open block, how many bytes were dropped, the rest that no line feed ended.
    pub(crate) fn finish(&mut self) -> (Option<Guard>, u64, Range<usize>) {
        if let Ending::Terminal { held: true } = self.ending {
            self.ending = Ending::Terminal { held: false };
            self.append(b"\r");
        }
        self.ended = true;
        let open = self.open.take();
        let dropped = open.as_ref().map_or(self.skipped, |open| open.dropped);
        let mut rest = self.start..self.buffer.len();
        if open.is_none() && self.skipped == 0 {
            rest = self.without_envelope(rest);
        }
        self.start = self.buffer.len();
        self.line = self.start;
        self.scan = self.start;
        self.skipped = 0;
        (open.map(|open| open.guard), dropped, rest)
    }

    /// The last line of the stream so far, whole or not, as far as the kept tail reaches.
    pub(crate) fn last_line(&self) -> &[u8] {
        let mut tail = &self.tail[..];
        if self.ending != Ending::Pipe {
            tail = tail.strip_suffix(STRING_TERMINATOR).unwrap_or(tail);
        }
        tail = tail.strip_suffix(b"\n").unwrap_or(tail);
        memchr::memrchr(b'\n', tail).map_or(tail, |end| &tail[end + 1..])
    }

    /// A line outside any block.
    fn outside(&mut self, line: Range<usize>, skipped: u64) -> Option<Frame> {
        let length = skipped + line.len() as u64;
        if length > self.limits.line as u64 {
            return Some(Frame::LongLine { length });
        }
        let line = self.without_envelope(line);
        let text = &self.buffer[line.clone()];
        if text.first() != Some(&b'%') {
            return Some(Frame::Stray(line));
        }
        if let Some(fields) = text.strip_prefix(b"%begin ") {
            let Some(guard) = grammar::triple(fields) else { return Some(Frame::Stray(line)) };
            self.open = Some(Open { guard, dropped: 0, lost: false });
            return None;
        }
        if is_guard(text) {
            return Some(Frame::Stray(line));
        }
        Some(Frame::Line(line))
    }

    /// A line while a block is open: its closing guard or more of its body.
    fn in_block(&mut self, line: Range<usize>, skipped: u64) -> Option<Frame> {
        let open = self.open.as_mut()?;
        if skipped == 0
            && let Some(ok) = closes(&self.buffer[line.clone()], &open.guard)
        {
            let (guard, dropped, lost) = (open.guard, open.dropped, open.lost);
            let body = self.start..line.start;
            self.open = None;
            self.start = self.line;
            return Some(if lost {
                Frame::LongBlock { guard, ok, size: dropped }
            } else {
                Frame::Block { guard, ok, body }
            });
        }
        let next = line.end + 1;
        if !open.lost && next - self.start > self.limits.block {
            open.lost = true;
        }
        if open.lost {
            open.dropped += (next - self.start) as u64;
            self.start = next;
        }
        None
    }

    /// Called when the buffer holds no further line feed: keeps memory within the limits.
    fn drop_what_cannot_matter(&mut self) {
        let partial = self.buffer.len() - self.line;
        match &mut self.open {
            None if self.skipped + partial as u64 <= self.limits.line as u64 => return,
            None => {}
            // What may still become the closing guard is not yet body.
            Some(_) if partial <= LONGEST_GUARD && self.skipped == 0 => return,
            Some(open) => {
                let body = self.buffer.len() - self.start;
                if !open.lost && body <= self.limits.block {
                    return;
                }
                open.lost = true;
                open.dropped += body as u64;
            }
        }
        self.skipped += partial as u64;
        self.buffer.clear();
        (self.start, self.line, self.scan) = (0, 0, 0);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if bytes.len() >= TAIL {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - TAIL..]);
        } else {
            let surplus = (self.tail.len() + bytes.len()).saturating_sub(TAIL);
            self.tail.drain(..surplus);
            self.tail.extend_from_slice(bytes);
        }
    }

    fn append_from_terminal(&mut self, held: bool, bytes: &[u8]) {
        let Some(&first) = bytes.first() else { return };
        if held && first != b'\n' {
            self.append(b"\r");
        }
        self.ending = Ending::Terminal { held: false };
        let mut from = 0;
        for at in memchr_iter(b'\r', bytes) {
            match bytes.get(at + 1) {
                Some(b'\n') => {
                    self.append(&bytes[from..at]);
                    from = at + 1;
                }
                Some(_) => {}
                None => {
                    self.append(&bytes[from..at]);
                    from = at + 1;
                    self.ending = Ending::Terminal { held: true };
                }
            }
        }
        self.append(&bytes[from..]);
    }

    /// Moves what is still needed to the front when that is cheap, and gives back a buffer that grew for one answer.
    fn compact(&mut self, coming: usize) {
        let kept = self.buffer.len() - self.start;
        if kept == 0 {
            self.buffer.clear();
            if self.buffer.capacity() > SPARE && coming <= SPARE {
                self.buffer.shrink_to(SPARE);
            }
        } else if self.start >= kept {
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(kept);
        } else {
            return;
        }
        self.line -= self.start;
        self.scan -= self.start;
        self.start = 0;
    }

    /// Without what a terminal client puts around the stream.
    fn without_envelope(&self, line: Range<usize>) -> Range<usize> {
        if self.ending == Ending::Pipe {
            return line;
        }
        let text = &self.buffer[line.clone()];
        match text.strip_prefix(DEVICE_CONTROL).or_else(|| text.strip_prefix(STRING_TERMINATOR)) {
            Some(inner) => line.end - inner.len()..line.end,
            None => line,
        }
    }
}

/// Whether the line is the guard that closes a block opened with `guard`, and with which word.
fn closes(line: &[u8], guard: &Guard) -> Option<bool> {
    let (fields, ok) = match line.strip_prefix(b"%end ") {
        Some(fields) => (fields, true),
        None => (line.strip_prefix(b"%error ")?, false),
    };
    (grammar::triple(fields)? == *guard).then_some(ok)
}

fn is_guard(line: &[u8]) -> bool {
    [&b"%begin"[..], b"%end", b"%error"]
        .iter()
        .any(|word| line.strip_prefix(*word).is_some_and(|after| matches!(after.first(), None | Some(b' '))))
}
