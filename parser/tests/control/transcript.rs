//! What a decoder said of a stream, kept: to compare replays, to print, and to give the stream back.

use std::fmt::Write as _;
use std::path::PathBuf;

use tmux_control::{BadLine, Block, Decoder, Event, Fault, Guard, Limits, Notification};

/// One event, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Notification(Vec<u8>),
    Block { guard: Guard, ok: bool, body: Vec<u8> },
    Stray(Vec<u8>),
    Fault(Fault),
}

/// The end of a stream, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) open: Option<Guard>,
    pub(crate) rest: Vec<u8>,
    pub(crate) dropped: u64,
    pub(crate) exit: Option<Vec<u8>>,
}

impl Seen {
    pub(crate) fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Notification(notification) => Self::Notification(notification.to_line()),
            Event::Block(Block { guard, ok, body }) => {
                Self::Block { guard: *guard, ok: *ok, body: body.to_vec() }
            }
            Event::Stray(text) => Self::Stray(text.to_vec()),
            Event::Fault(fault) => Self::Fault(fault.clone()),
        }
    }

    /// The same event, borrowed.
    pub(crate) fn event(&self) -> Event<'_> {
        match self {
            Self::Notification(line) => Event::Notification(Notification::parse(line).unwrap()),
            Self::Block { guard, ok, body } => Event::Block(Block { guard: *guard, ok: *ok, body }),
            Self::Stray(text) => Event::Stray(text),
            Self::Fault(fault) => Event::Fault(fault.clone()),
        }
    }

    /// The bytes tmux wrote, where they were kept.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Notification(line) | Self::Stray(line) => [line, &b"\n"[..]].concat(),
            Self::Block { guard, ok, body } => {
                let word = if *ok { "end" } else { "error" };
                let open = format!("%begin {guard}\n");
                [open.as_bytes(), body, format!("%{word} {guard}\n").as_bytes()].concat()
            }
            Self::Fault(Fault::BadLine(BadLine { line, .. })) => [line, &b"\n"[..]].concat(),
            Self::Fault(fault @ (Fault::LineTooLong { .. } | Fault::BlockTooLong { .. })) => {
                panic!("nothing was kept: {fault}")
            }
        }
    }

    /// One line of a summary: long text is cut and given with its length.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Notification(line) => format!("notification {}", brief(line)),
            Self::Stray(text) => format!("stray        {}", brief(text)),
            Self::Fault(fault) => format!("fault        {fault}"),
            Self::Block { guard, ok, body } => {
                let mut text = format!("block        {guard} {}", if *ok { "ok" } else { "failed" });
                for line in (Block { guard: *guard, ok: *ok, body }).lines() {
                    write!(text, "\n             | {}", brief(line)).unwrap();
                }
                text
            }
        }
    }
}

fn brief(text: &[u8]) -> String {
    const KEPT: usize = 200;
    match text.len() {
        length if length > KEPT => format!("{} … {length} bytes", text[..KEPT].escape_ascii()),
        _ => text.escape_ascii().to_string(),
    }
}

/// Gives a decoder the pieces of a stream and keeps what it says.
pub(crate) fn replay<'a>(
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, Ended) {
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event() {
            seen.push(Seen::of(&event));
        }
    }
    let ended = ended(&mut decoder);
    (seen, ended)
}

pub(crate) fn ended(decoder: &mut Decoder) -> Ended {
    let end = decoder.finish();
    Ended {
        open: end.open,
        rest: end.rest.to_vec(),
        dropped: end.dropped,
        exit: end.exit.map(<[u8]>::to_vec),
    }
}

/// All of `-C`'s bytes at once, under the default limits.
pub(crate) fn of(stream: &[u8]) -> (Vec<Seen>, Ended) {
    replay(Decoder::new(Limits::default()), [stream])
}

/// A recorded stream.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Stream {
    /// Recorded from `-CC` on a terminal.
    pub(crate) fn terminal(&self) -> bool {
        self.name.starts_with("16-")
    }

    pub(crate) fn decoder(&self) -> Decoder {
        if self.terminal() { Decoder::terminal(Limits::default()) } else { Decoder::new(Limits::default()) }
    }

    pub(crate) fn named(name: &str) -> Stream {
        let path = folder().join(format!("{name}.ctl"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Stream { name: name.to_owned(), bytes }
    }
}

/// Every recorded stream, by name.
pub(crate) fn streams() -> Vec<Stream> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".ctl").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 60, "twenty scenarios of three versions, found {}", names.len());
    names.iter().map(|name| Stream::named(name)).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/control-mode")
}
