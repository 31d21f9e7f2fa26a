//! The escaping of `%output` values: a byte below 0x20 or a backslash is a backslash and three octal digits.
//!
//! Everything else stands for itself, invalid UTF-8 included, and there is no other escape. A value is a piece of a
//! pane's output: a character may be cut between two of them.

use memchr::memchr;

/// How much text is copied at once.
const STEP: usize = 8;

/// Backslashes that no escape begins with. They were kept as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} bad escapes, the first at byte {first}")]
pub struct BadEscapes {
    /// Where in the value the first one stands.
    pub first: usize,
    /// How many there are.
    pub count: usize,
}

/// Part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// Bytes that stand for themselves; not empty.
    Text(&'a [u8]),
    /// The byte an escape stands for.
    Byte(u8),
    /// A backslash that begins no escape.
    Bad,
}

/// Appends the bytes that an escaped value stands for.
///
/// # Errors
/// A backslash without three octal digits up to `\377` after it. All is appended even so, such backslashes as they
/// are.
pub fn unescape(value: &[u8], out: &mut Vec<u8>) -> Result<(), BadEscapes> {
    let mut bad = None;
    // Text between escapes is mostly short, a line of a program's output, so it is copied in whole steps and the
    // surplus written over; the room for that is made once and cut off at the end.
    let mut to = out.len();
    out.resize(to + value.len() + STEP, 0);
    let room = &mut out[..];
    let mut rest = value;
    loop {
        if let Some(step) = rest.first_chunk::<STEP>() {
            room[to..to + STEP].copy_from_slice(step);
            let text = before_backslash(*step);
            if text == STEP {
                // Apart, so that the next step need not wait for the count of this one.
                to += STEP;
                rest = &rest[STEP..];
                continue;
            }
            to += text;
            rest = &rest[text..];
        } else {
            let Some((&byte, after)) = rest.split_first() else { break };
            if byte != b'\\' {
                room[to] = byte;
                to += 1;
                rest = after;
                continue;
            }
        }
        while let Some(byte) = octal(rest) {
            room[to] = byte;
            to += 1;
            rest = &rest[4..];
        }
        if let Some(after) = rest.strip_prefix(b"\\") {
            bad = Some(one_more(bad, value.len() - rest.len()));
            room[to] = b'\\';
            to += 1;
            rest = after;
        }
    }
    out.truncate(to);
    bad.map_or(Ok(()), Err)
}

/// Appends bytes as tmux would escape them in an `%output` value.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len());
    for &byte in bytes {
        if byte < 0x20 || byte == b'\\' {
            out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
        } else {
            out.push(byte);
        }
    }
}

/// The parts of an escaped value, without copying it.
pub fn chunks(value: &[u8]) -> Chunks<'_> {
    Chunks { rest: value }
}

/// The parts of a value; see [`chunks`].
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        let (chunk, length) = match *self.rest.first()? {
            b'\\' => match octal(self.rest) {
                Some(byte) => (Chunk::Byte(byte), 4),
                None => (Chunk::Bad, 1),
            },
            _ => {
                let length = memchr(b'\\', self.rest).unwrap_or(self.rest.len());
                (Chunk::Text(&self.rest[..length]), length)
            }
        };
        self.rest = &self.rest[length..];
        Some(chunk)
    }
}

#[cold]
fn one_more(bad: Option<BadEscapes>, at: usize) -> BadEscapes {
    match bad {
        None => BadEscapes { first: at, count: 1 },
        Some(bad) => BadEscapes { count: bad.count + 1, ..bad },
    }
}

/// How many bytes come before the first backslash, or all. A byte is found by the borrow that subtracting one from a
/// zero byte leaves; nothing below the first such byte can be taken for one.
#[inline]
fn before_backslash(step: [u8; STEP]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; STEP]);
    const TOPS: u64 = u64::from_le_bytes([0x80; STEP]);
    const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; STEP]);
    let zeros = u64::from_le_bytes(step) ^ BACKSLASHES;
    let found = zeros.wrapping_sub(ONES) & !zeros & TOPS;
    // 64 zeros when there is none: eight bytes.
    (found.trailing_zeros() / 8) as usize
}

/// `escape = "\" %x30-33 2(%x30-37)`, all four bytes looked at as one number.
#[inline]
fn octal(text: &[u8]) -> Option<u8> {
    let [backslash, high, middle, low] = *text.first_chunk::<4>()?;
    let fixed = u32::from_le_bytes([backslash, high & !3, middle & !7, low & !7]);
    (fixed == u32::from_le_bytes(*b"\\000")).then_some(high << 6 | (middle & 7) << 3 | low & 7)
}
