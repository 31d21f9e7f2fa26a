//! The escaping of `%output` values: a byte below 0x20 or a backslash is a backslash and three octal digits.
//!
//! Everything else stands for itself, invalid UTF-8 included, and there is no other escape. A value is a piece of a
//! pane's output: a character may be cut between two of them.

use memchr::memchr;

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
    out.reserve(value.len());
    let mut bad: Option<BadEscapes> = None;
    let mut at = 0;
    while at < value.len() {
        if value[at] != b'\\' {
            let end = memchr(b'\\', &value[at..]).map_or(value.len(), |length| at + length);
            out.extend_from_slice(&value[at..end]);
            at = end;
        } else if let Some(byte) = octal(&value[at..]) {
            out.push(byte);
            at += 4;
        } else {
            out.push(b'\\');
            bad = Some(match bad {
                None => BadEscapes { first: at, count: 1 },
                Some(bad) => BadEscapes { count: bad.count + 1, ..bad },
            });
            at += 1;
        }
    }
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

/// `escape = "\" %x30-33 2(%x30-37)`
#[inline]
fn octal(text: &[u8]) -> Option<u8> {
    match *text {
        [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', ..] => {
            Some((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'))
        }
        _ => None,
    }
}
