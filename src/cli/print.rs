//! Text and JSON to standard output, and bytes of tmux made safe to show.
//!
//! Names, titles and paths come from tmux and from files as bytes: a terminal must never obey what is in them. Here they
//! become text; nothing before this does.

use std::io::{self, Write};

use serde::Serialize;

use super::Failure;

/// Writes `text` to standard output as it is. A reader that went away ends the command quietly.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// The same for what need be no text.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes `value` as indented JSON with a newline at its end.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let mut out =
        serde_json::to_string_pretty(value).map_err(|wrong| Failure::of(super::Exit::INTERNAL, &wrong))?;
    out.push('\n');
    text(&out)
}

/// Writes `value` as one line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Result<(), Failure> {
    let mut out = serde_json::to_string(value).map_err(|wrong| Failure::of(super::Exit::INTERNAL, &wrong))?;
    out.push('\n');
    text(&out)
}

/// Bytes as text a terminal only shows: control characters, escapes, marks that turn the direction of writing and bytes
/// that are no text are written out (`\n`, `\x1b`, `\u{202e}`, `\xff`).
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if (c as u32) < 0x80 && c.is_control() => {
                    out.push_str(&format!("\\x{:02x}", c as u32));
                }
                c if c.is_control() || turns(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Characters that show nothing and change how their neighbours read.
fn turns(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_in_a_name() {
        for (bytes, text) in [
            (&b"plain | name"[..], "plain | name"),
            (b"a\tb\nc\rd", "a\\tb\\nc\\rd"),
            (b"\x1b]0;x\x07", "\\x1b]0;x\\x07"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("\u{202e}txt.exe".as_bytes(), "\\u{202e}txt.exe"),
            ("\u{1f680} ok".as_bytes(), "\u{1f680} ok"),
        ] {
            assert_eq!(shown(bytes), text);
        }
    }
}
