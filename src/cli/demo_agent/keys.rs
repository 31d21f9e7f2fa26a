//! Keys out of the bytes a terminal sends: text, Enter, Escape, the control keys that end things, and pastes as one piece.

/// A key, or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// Typed text.
    Text(String),
    /// A bracketed paste, its line ends as `\n`.
    Paste(String),
    Enter,
    Backspace,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-U: the line is emptied.
    Clear,
    /// Anything else.
    Other,
}

/// What was begun and not yet ended: a paste, a character cut in two.
#[derive(Debug, Default)]
pub(super) struct Keys {
    kept: Vec<u8>,
}

/// The longest unfinished paste that is waited for, in bytes.
const LONGEST: usize = 1 << 20;

const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";

impl Keys {
    /// The keys that `bytes` complete.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.kept.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while let Some(rest) = self.kept.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((key, length)) = first(rest) else { break };
            keys.push(key);
            at += length;
        }
        self.kept.drain(..at);
        if self.kept.len() > LONGEST {
            self.kept.clear();
        }
        keys
    }
}

/// The first key and its length in bytes; `None` while it is not whole.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    if let Some(pasted) = bytes.strip_prefix(PASTE) {
        let end = pasted.windows(PASTED.len()).position(|window| window == PASTED)?;
        let text = String::from_utf8_lossy(&pasted[..end]).replace("\r\n", "\n").replace('\r', "\n");
        return Some((Key::Paste(text), PASTE.len() + end + PASTED.len()));
    }
    let key = match bytes.first()? {
        0x1b => return Some(escape(bytes)),
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Backspace,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x15 => Key::Clear,
        byte if *byte < 0x20 => Key::Other,
        _ => {
            let end = bytes.iter().position(|byte| *byte < 0x20 || *byte == 0x7f).unwrap_or(bytes.len());
            let text = &bytes[..end];
            return match std::str::from_utf8(text) {
                Ok(text) => Some((Key::Text(text.to_owned()), end)),
                // a character whose rest is still to come
                Err(cut) if cut.error_len().is_none() && end == bytes.len() => {
                    let whole = String::from_utf8_lossy(&text[..cut.valid_up_to()]).into_owned();
                    (!whole.is_empty()).then_some((Key::Text(whole), cut.valid_up_to()))
                }
                Err(_) => Some((Key::Text(String::from_utf8_lossy(text).into_owned()), end)),
            };
        }
    };
    Some((key, 1))
}

/// The Escape key itself, or a sequence that stands for some other key.
fn escape(bytes: &[u8]) -> (Key, usize) {
    match bytes.get(1) {
        Some(b'[') => {
            let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte));
            (Key::Other, end.map_or(bytes.len(), |end| end + 3))
        }
        Some(b'O') => (Key::Other, bytes.len().min(3)),
        Some(b']') => {
            let end = bytes.iter().position(|byte| *byte == 0x07 || *byte == b'\\');
            (Key::Other, end.map_or(bytes.len(), |end| end + 1))
        }
        Some(_) | None => (Key::Escape, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_whole_however_they_are_cut() {
        let bytes = "né\x1b[200~a\r\nb\x1b[201~\r\x1b[A\x7f\x03\x04".as_bytes();
        let text = |text: &str| Key::Text(text.to_owned());
        let end = [
            Key::Paste("a\nb".to_owned()),
            Key::Enter,
            Key::Other,
            Key::Backspace,
            Key::Interrupt,
            Key::EndOfInput,
        ];
        let mut whole = vec![text("né")];
        whole.extend(end.clone());
        assert_eq!(Keys::default().read(bytes), whole);
        // a character cut in two
        let mut keys = Keys::default();
        assert_eq!(keys.read(&bytes[..2]), [text("n")]);
        assert_eq!(keys.read(&bytes[2..3]), [text("é")]);
        // a paste cut in two
        assert_eq!(keys.read(&bytes[3..12]), []);
        assert_eq!(keys.read(&bytes[12..]), end);
        assert_eq!(Keys::default().read(b"\x1b"), [Key::Escape]);
    }
}
