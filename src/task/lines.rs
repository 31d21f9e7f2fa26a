//! A file as lines that give back the same bytes.

/// Lines with their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// The mark that some editors put at the beginning of a file.
    mark: &'static [u8],
    all: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: Vec<u8>,
    end: &'static [u8],
}

const LF: &[u8] = b"\n";
const CRLF: &[u8] = b"\r\n";
const NONE: &[u8] = b"";
const MARK: &[u8] = b"\xef\xbb\xbf";

impl Lines {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let line = |line: &[u8]| match (line.strip_suffix(CRLF), line.strip_suffix(LF)) {
            (Some(text), _) => Line { text: text.to_vec(), end: CRLF },
            (None, Some(text)) => Line { text: text.to_vec(), end: LF },
            (None, None) => Line { text: line.to_vec(), end: NONE },
        };
        let (mark, bytes) = bytes.strip_prefix(MARK).map_or((NONE, bytes), |rest| (MARK, rest));
        Self { mark, all: bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect() }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let lines = self.all.iter().flat_map(|line| [line.text.as_slice(), line.end].concat());
        self.mark.iter().copied().chain(lines).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A line's text; empty where it is none that could be ours.
    pub(super) fn text(&self, at: usize) -> &str {
        let Some(line) = self.all.get(at) else { return "" };
        std::str::from_utf8(&line.text).unwrap_or("\u{fffd}")
    }

    pub(super) fn is_empty_at(&self, at: usize) -> bool {
        self.text(at).trim().is_empty()
    }

    /// Puts another text in a line's place; its end stays.
    pub(super) fn replace(&mut self, at: usize, text: &str) {
        if let Some(line) = self.all.get_mut(at).filter(|line| line.text != text.as_bytes()) {
            line.text = text.as_bytes().to_vec();
        }
    }

    /// Puts new lines before the line `at`, with the ends of their neighbours; a file without a last end stays one.
    pub(super) fn insert(&mut self, at: usize, texts: &[String]) {
        let at = at.min(self.all.len());
        let near = at.checked_sub(1).and_then(|before| self.all.get(before)).map(|line| line.end);
        let near = near.filter(|end| !end.is_empty());
        let end = near.or_else(|| self.all.first().map(|line| line.end).filter(|end| !end.is_empty()));
        let end = end.unwrap_or(LF);
        let mut last = end;
        if at == self.all.len()
            && let Some(line) = self.all.last_mut().filter(|line| line.end.is_empty())
        {
            line.end = end;
            last = NONE;
        }
        let count = texts.len();
        let new = texts.iter().enumerate().map(|(number, text)| Line {
            text: text.as_bytes().to_vec(),
            end: if number + 1 == count { last } else { end },
        });
        self.all.splice(at..at, new);
    }
}
