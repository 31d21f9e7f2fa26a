//! What a program tells its terminal in passing: titles, progress, prompt marks and its status. Everything else is dropped.
//!
//! | sequence | becomes |
//! |---|---|
//! | `OSC 0` or `2 ; text` | [`Sign::Title`] |
//! | `OSC 9 ; 4 ; state [; percent]` | [`Sign::Progress`] |
//! | `OSC 133 ; A`, `B`, `C` or `D [; status]` | [`Sign::Prompt`] |
//! | `OSC 7501 ; key=value : …` | [`Sign::Status`], [`Sign::Query`] |
//! | `ESC c` | [`Sign::Reset`] |
//!
//! Bytes come in pieces cut anywhere and the signs are the same. A sequence ends with BEL or ST; one that is longer than
//! [`LONGEST`] is dropped whole. `ESC P tmux;` … `ESC \` is unwrapped, also within itself; of a wrapped and a bare copy of one
//! sequence, one after the other, one counts. Anybody in the pane can write all this: it is evidence, never proof.

use memchr::{memchr, memchr3};

use super::status::Status;

/// The longest sequence that is read, in bytes between its introducer and its end.
pub const LONGEST: usize = 4096;
/// The longest title that is kept, in bytes.
const TITLE: usize = 1024;
/// How deep sequences may be wrapped.
const DEPTH: usize = 4;

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;

/// One thing that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The title, without control characters.
    Title(String),
    /// The progress bar.
    Progress(Progress),
    /// A mark around a shell's prompt and command.
    Prompt(Mark),
    /// The program's own account of what it does.
    Status(Status),
    /// The program asks whether the terminal understands [`Sign::Status`].
    Query,
    /// The terminal is to forget everything.
    Reset,
}

/// The progress bar of `OSC 9;4`; percent where it was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Taken away: nothing runs.
    Removed,
    /// Something runs.
    Running(Option<u8>),
    /// It failed.
    Failed(Option<u8>),
    /// Something runs, nobody knows how long.
    Busy,
    /// It is held.
    Paused(Option<u8>),
}

/// A mark of `OSC 133`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `A`: a prompt begins. `redraws` is false for one that says `redraw=0`.
    Prompt {
        /// Whether the writer would draw it again.
        redraws: bool,
    },
    /// `B`: the prompt ends, input begins.
    Input,
    /// `C`: a command runs, its output begins.
    Output,
    /// `D`: it is over, with its status where it was said.
    Finished {
        /// The exit status.
        status: Option<i32>,
    },
}

/// Reads bytes and finds [`Sign`]s. See the module's own words.
#[derive(Debug, Default)]
pub struct Scanner {
    reading: Reading,
    /// The last sign, and how deep it was wrapped.
    last: Option<(Sign, usize)>,
}

/// The reading of one stream.
#[derive(Debug, Default)]
struct Reading {
    state: State,
    /// The sequence so far.
    gathered: Vec<u8>,
    /// The reading of a stream that is wrapped in it.
    inner: Option<Box<Reading>>,
}

/// Where in the bytes the reading is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Text.
    #[default]
    Ground,
    /// After an ESC.
    Escape,
    /// In an OSC.
    Osc,
    /// In an OSC, after an ESC.
    OscEscape,
    /// In an OSC that grew too long.
    Long,
    /// The same, after an ESC.
    LongEscape,
    /// In a DCS, of which so many bytes are those of [`WRAPPED`].
    Dcs(usize),
    /// In a string nobody wants.
    Other,
    /// The same, after an ESC.
    OtherEscape,
    /// In a wrapped stream.
    Wrapped,
    /// The same, after an ESC.
    WrappedEscape,
}

/// How a wrapped stream begins, after `ESC P`.
const WRAPPED: &[u8] = b"tmux;";

impl Scanner {
    /// Reads the next bytes and tells each sign in them, in order.
    pub fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(Sign)) {
        let last = &mut self.last;
        let mut tell = |sign: Sign, depth: usize| {
            // the same once more, wrapped another way: one program's two copies for two kinds of terminal
            if last.as_ref().is_some_and(|(before, at)| *at != depth && *before == sign) {
                *last = None;
            } else {
                *last = Some((sign.clone(), depth));
                tell(sign);
            }
        };
        self.reading.read(0, bytes, &mut tell);
    }

    /// The signs in these bytes, the next after those before.
    pub fn signs(&mut self, bytes: &[u8]) -> Vec<Sign> {
        let mut signs = Vec::new();
        self.feed(bytes, |sign| signs.push(sign));
        signs
    }
}

impl Reading {
    fn read(&mut self, depth: usize, bytes: &[u8], tell: &mut dyn FnMut(Sign, usize)) {
        let mut rest = bytes;
        while let Some(first) = rest.first().copied() {
            match self.state {
                State::Ground => match memchr(ESC, rest) {
                    Some(at) => {
                        rest = &rest[at + 1..];
                        self.state = State::Escape;
                    }
                    None => return,
                },
                State::Escape => {
                    rest = &rest[1..];
                    self.state = self.escaped(first, depth, tell);
                }
                State::Osc => {
                    let end = memchr3(BEL, ESC, CAN, rest).unwrap_or(rest.len());
                    let (text, after) = rest.split_at(end);
                    // SUB ends it as CAN does, and is as rare
                    let (text, cut) = match memchr(SUB, text) {
                        Some(at) => (&text[..at], Some(at)),
                        None => (text, None),
                    };
                    if self.gathered.len() + text.len() > LONGEST {
                        self.gathered.clear();
                        self.state = if cut.is_some() { State::Ground } else { State::Long };
                        rest = cut.map_or(after, |at| &rest[at + 1..]);
                        continue;
                    }
                    self.gathered.extend_from_slice(text);
                    if let Some(at) = cut {
                        self.gathered.clear();
                        self.state = State::Ground;
                        rest = &rest[at + 1..];
                        continue;
                    }
                    match after.first() {
                        None => return,
                        Some(&BEL) => {
                            self.finish(depth, tell);
                            self.state = State::Ground;
                        }
                        Some(&ESC) => self.state = State::OscEscape,
                        Some(_) => {
                            self.gathered.clear();
                            self.state = State::Ground;
                        }
                    }
                    rest = &after[1..];
                }
                State::OscEscape => {
                    if first == b'\\' {
                        self.finish(depth, tell);
                        self.state = State::Ground;
                        rest = &rest[1..];
                    } else {
                        // it was cut short by another sequence
                        self.gathered.clear();
                        self.state = State::Escape;
                    }
                }
                State::Long => {
                    let end = rest.iter().position(|byte| matches!(*byte, BEL | ESC | CAN | SUB));
                    let Some(at) = end else { return };
                    self.state = if rest[at] == ESC { State::LongEscape } else { State::Ground };
                    rest = &rest[at + 1..];
                }
                State::LongEscape | State::OtherEscape => {
                    if first == b'\\' {
                        self.state = State::Ground;
                        rest = &rest[1..];
                    } else {
                        self.state = State::Escape;
                    }
                }
                State::Dcs(matched) => {
                    if first == WRAPPED[matched] {
                        rest = &rest[1..];
                        self.state = if matched + 1 < WRAPPED.len() {
                            State::Dcs(matched + 1)
                        } else {
                            // what is wrapped too deep is passed over, to its own end
                            self.inner = (depth < DEPTH).then(Box::default);
                            State::Wrapped
                        };
                    } else {
                        self.state = State::Other;
                    }
                }
                State::Other => {
                    let Some(at) = memchr3(ESC, CAN, SUB, rest) else { return };
                    self.state = if rest[at] == ESC { State::OtherEscape } else { State::Ground };
                    rest = &rest[at + 1..];
                }
                State::Wrapped => {
                    let end = memchr3(ESC, CAN, SUB, rest).unwrap_or(rest.len());
                    self.pass(depth, &rest[..end], tell);
                    match rest.get(end) {
                        None => return,
                        Some(&ESC) => self.state = State::WrappedEscape,
                        Some(_) => {
                            self.inner = None;
                            self.state = State::Ground;
                        }
                    }
                    rest = &rest[end + 1..];
                }
                State::WrappedEscape => {
                    if first == ESC {
                        self.pass(depth, &[ESC], tell);
                        self.state = State::Wrapped;
                        rest = &rest[1..];
                    } else {
                        self.inner = None;
                        if first == b'\\' {
                            self.state = State::Ground;
                            rest = &rest[1..];
                        } else {
                            self.state = State::Escape;
                        }
                    }
                }
            }
        }
    }

    /// What follows an ESC.
    fn escaped(&mut self, byte: u8, depth: usize, tell: &mut dyn FnMut(Sign, usize)) -> State {
        match byte {
            b']' => {
                self.gathered.clear();
                State::Osc
            }
            b'P' => State::Dcs(0),
            // a window's name (`k`), and strings that are for nobody
            b'k' | b'X' | b'^' | b'_' => State::Other,
            b'c' => {
                tell(Sign::Reset, depth);
                State::Ground
            }
            ESC => State::Escape,
            _ => State::Ground,
        }
    }

    /// Hands bytes of a wrapped stream to what reads it.
    fn pass(&mut self, depth: usize, bytes: &[u8], tell: &mut dyn FnMut(Sign, usize)) {
        if let Some(inner) = &mut self.inner {
            inner.read(depth + 1, bytes, tell);
        }
    }

    /// A sequence is whole.
    fn finish(&mut self, depth: usize, tell: &mut dyn FnMut(Sign, usize)) {
        if let Some(sign) = sign(&self.gathered) {
            tell(sign, depth);
        }
        self.gathered.clear();
    }
}

/// What the text of one OSC says.
fn sign(text: &[u8]) -> Option<Sign> {
    let end = memchr(b';', text)?;
    let (number, body) = (&text[..end], &text[end + 1..]);
    match number {
        b"0" | b"2" => Some(Sign::Title(title(body))),
        b"9" => progress(body.strip_prefix(b"4;")?).map(Sign::Progress),
        b"133" => mark(body).map(Sign::Prompt),
        b"7501" if body == b"?" => Some(Sign::Query),
        b"7501" => Status::parse(body).map(Sign::Status),
        _ => None,
    }
}

fn title(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(TITLE)]);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// `state[;percent]`. A percent that is none (Grok writes `-1`) is not known.
fn progress(body: &[u8]) -> Option<Progress> {
    let mut fields = body.split(|byte| *byte == b';');
    let state = fields.next()?;
    let percent = fields
        .next()
        .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
        .filter(|percent| *percent <= 100);
    match state {
        b"0" => Some(Progress::Removed),
        b"1" => Some(Progress::Running(percent)),
        b"2" => Some(Progress::Failed(percent)),
        b"3" => Some(Progress::Busy),
        b"4" => Some(Progress::Paused(percent)),
        _ => None,
    }
}

/// `A`, `B`, `C` or `D[;status]`, each with options behind.
fn mark(body: &[u8]) -> Option<Mark> {
    let mut fields = body.split(|byte| *byte == b';');
    match fields.next()? {
        b"A" => Some(Mark::Prompt { redraws: !fields.any(|field| field == b"redraw=0") }),
        b"B" => Some(Mark::Input),
        b"C" => Some(Mark::Output),
        b"D" => {
            let status = fields.next().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            Some(Mark::Finished { status })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
