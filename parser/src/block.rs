//! One answer of tmux: everything between a `%begin` and the closing guard that repeats its triple.
//!
//! The body is bytes and nothing in it is interpreted: an answer may contain any text, protocol lines included.

use std::fmt;

use memchr::memchr;

use crate::Notification;

/// The triple that a `%begin` and its `%end` or `%error` share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Unix seconds at which the server ran the command.
    pub time: u64,
    /// The server's counter of queue items: increasing, with gaps, and it may wrap at 2³².
    pub number: u32,
    /// 1 for a command read from this client's standard input, 0 for the command line it was started with,
    /// for hooks and for anything else. The man page calls the field unused.
    pub flags: u8,
}

impl Guard {
    /// Whether the command came over this client's standard input. Only such blocks answer requests.
    pub fn from_client(&self) -> bool {
        self.flags == 1
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.time, self.number, self.flags)
    }
}

/// A finished block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// What the opening and the closing line agree on.
    pub guard: Guard,
    /// Closed by `%end` rather than `%error`.
    pub ok: bool,
    /// The lines between the guards, each with its line feed. Empty when there was no line at all.
    pub body: &'a [u8],
}

impl<'a> Block<'a> {
    /// Whether the command came over this client's standard input (`flags` 1).
    pub fn from_client(&self) -> bool {
        self.guard.from_client()
    }

    /// The body's lines without their line feeds. An empty body has no line, `"\n"` has one empty line.
    pub fn lines(&self) -> Lines<'a> {
        Lines { rest: self.body }
    }

    /// Body lines that read as the four notifications tmux up to 3.7c writes straight into an open block:
    /// `%message`, `%pause`, `%continue` and `%config-error` (3.8: `%message` only).
    ///
    /// Nothing in the stream tells them from an answer that has the same text, so this is for requests whose own
    /// answer cannot begin with `%`.
    pub fn notices(&self) -> impl Iterator<Item = Notification<'a>> {
        self.lines().filter(|line| line.first() == Some(&b'%')).filter_map(|line| {
            Notification::parse(line).ok().filter(|notice| {
                matches!(
                    notice,
                    Notification::Message { .. }
                        | Notification::Pause { .. }
                        | Notification::Continue { .. }
                        | Notification::ConfigError { .. }
                )
            })
        })
    }
}

/// The lines of a block's body; see [`Block::lines`].
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &b""[..]),
        };
        self.rest = rest;
        Some(line)
    }
}
