//! Terminal output as lines: found in one pass over the bytes, styled and laid out only where they are looked at.
//!
//! Colours carry over from line to line (`tmux capture-pane -e` writes only what changes), so what holds at the beginning of
//! a line is remembered every `STRIDE` lines as far down as somebody has looked.
//!
//! Nothing but printable characters comes out of here: an escape sequence is a colour or it is left out, and so are control
//! characters and the marks that turn the direction of writing.

use std::borrow::Cow;
use std::cell::RefCell;

use memchr::{memchr, memchr_iter};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use vte::{Params, Parser, Perform};

use super::ink::Ink;

/// How much of one line is shown, in bytes.
pub const LINE_LIMIT: usize = 64 * 1024;
/// Lines from one remembered colour to the next.
const STRIDE: usize = 256;
/// Columns from one tab stop to the next.
const TAB: usize = 8;
/// Stands where a line was cut.
const CUT: char = '…';

/// Lines of terminal output.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Where each line begins.
    starts: Vec<usize>,
    /// What holds at the beginning of every [`STRIDE`]th line, as far as known.
    inks: RefCell<Vec<Ink>>,
}

/// One row of the screen: a line, or what of it fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Pieces of one style each, side by side.
    pub pieces: Vec<(String, Style)>,
    /// Where its text begins in the line's plain text, in bytes.
    pub from: usize,
}

impl Lines {
    /// The lines of these bytes. A last line without an end counts.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Lines {
        let mut starts = Vec::with_capacity(bytes.len() / 64 + 1);
        let mut start = 0;
        for end in memchr_iter(b'\n', &bytes) {
            starts.push(start);
            start = end + 1;
        }
        if start < bytes.len() {
            starts.push(start);
        }
        Lines { bytes, starts, inks: RefCell::new(vec![Ink::default()]) }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// What is shown of a line, without colours. Empty past the end.
    #[must_use]
    pub fn plain(&self, line: usize) -> Cow<'_, str> {
        let (bytes, cut) = self.shown(line);
        if !cut
            && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Cow::Borrowed(text);
        }
        Cow::Owned(self.pieces(line, false).into_iter().map(|(text, _)| text).collect())
    }

    /// A line as rows of at most `width` columns; at least one. `coloured`: with the styles it was written in.
    #[must_use]
    pub fn rows(&self, line: usize, width: usize, coloured: bool) -> Vec<Row> {
        let width = width.max(1);
        let mut rows = vec![Row::default()];
        let (mut column, mut at) = (0, 0);
        for (text, ink) in self.pieces(line, coloured) {
            let style = ink.style();
            for cluster in text.graphemes(true) {
                let wide = cluster.width();
                if column + wide > width && column > 0 {
                    rows.push(Row { pieces: Vec::new(), from: at });
                    column = 0;
                }
                // a character wider than the pane cannot be shown in it
                let (shown, wide) = if wide > width { ("·", 1) } else { (cluster, wide) };
                if let Some(row) = rows.last_mut() {
                    match row.pieces.last_mut() {
                        Some((text, last)) if *last == style => text.push_str(shown),
                        Some(_) | None => row.pieces.push((shown.to_owned(), style)),
                    }
                }
                column += wide;
                at += cluster.len();
            }
        }
        rows
    }

    /// The bytes shown of a line, and whether it is longer than that.
    fn shown(&self, line: usize) -> (&[u8], bool) {
        let Some(start) = self.starts.get(line) else { return (&[], false) };
        let end = self.starts.get(line + 1).map_or(self.bytes.len(), |next| next - 1);
        let bytes = &self.bytes[*start..end];
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() > LINE_LIMIT { (&bytes[..LINE_LIMIT], true) } else { (bytes, false) }
    }

    fn pieces(&self, line: usize, coloured: bool) -> Vec<(String, Ink)> {
        let (bytes, cut) = self.shown(line);
        let ink = if coloured { self.ink_at(line) } else { Ink::default() };
        let mut writer = Writer { pieces: Vec::new(), ink, column: 0, coloured };
        Parser::new().advance(&mut writer, bytes);
        if cut {
            writer.print(CUT);
        }
        writer.pieces
    }

    /// What holds at the beginning of a line.
    fn ink_at(&self, line: usize) -> Ink {
        let line = line.min(self.len());
        let mut inks = self.inks.borrow_mut();
        while inks.len() <= line / STRIDE {
            let from = (inks.len() - 1) * STRIDE;
            let last = inks.last().copied().unwrap_or_default();
            inks.push(self.ink_after(last, from, from + STRIDE));
        }
        let near = line / STRIDE;
        self.ink_after(inks.get(near).copied().unwrap_or_default(), near * STRIDE, line)
    }

    /// What `ink` becomes over the lines `from` to `to`.
    fn ink_after(&self, ink: Ink, from: usize, to: usize) -> Ink {
        let place = |line: usize| self.starts.get(line).copied().unwrap_or(self.bytes.len());
        let bytes = &self.bytes[place(from)..place(to)];
        let mut pen = Pen(ink);
        let mut parser = Parser::new();
        let mut at = 0;
        while let Some(found) = memchr(0x1b, &bytes[at..]) {
            let start = at + found;
            at = match control_sequence(&bytes[start..]) {
                Some(length) => {
                    if bytes[start + length - 1] == b'm' {
                        parser.advance(&mut pen, &bytes[start..start + length]);
                    }
                    start + length
                }
                None => start + 1,
            };
        }
        pen.0
    }
}

/// The length of the control sequence (`ESC [` … final byte) that these bytes begin with.
fn control_sequence(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !matches!(byte, 0x20..=0x3f))?;
    matches!(rest[end], 0x40..=0x7e).then_some(end + 3)
}

/// Whether a character stands in a row: not one that a terminal would obey, nor one that turns the direction of writing.
fn is_shown(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}');
    !c.is_control() && !turns
}

/// A name or a message as one row of text: what is not shown in a row is left out, and no sequence is obeyed.
#[must_use]
pub fn one_row(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '\n' | '\t' | '\r') { ' ' } else { c })
        .filter(|c| is_shown(*c))
        .collect()
}

/// Collects what is printed.
struct Writer {
    pieces: Vec<(String, Ink)>,
    ink: Ink,
    column: usize,
    coloured: bool,
}

impl Perform for Writer {
    fn print(&mut self, c: char) {
        if !is_shown(c) {
            return;
        }
        self.column += c.width().unwrap_or(0);
        match self.pieces.last_mut() {
            Some((text, ink)) if *ink == self.ink => text.push(c),
            Some(_) | None => self.pieces.push((c.to_string(), self.ink)),
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            for _ in 0..TAB - self.column % TAB {
                self.print(' ');
            }
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if self.coloured && action == 'm' && intermediates.is_empty() {
            self.ink = self.ink.after(params);
        }
    }
}

/// Follows the colours alone.
struct Pen(Ink);

impl Perform for Pen {
    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if action == 'm' && intermediates.is_empty() {
            self.0 = self.0.after(params);
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| row.pieces.iter().map(|(text, _)| text.as_str()).collect()).collect()
    }

    #[test]
    fn lines_are_found_with_and_without_a_last_end() {
        for (bytes, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2), ("a\r\nb\r\n", 2)] {
            assert_eq!(Lines::new(bytes.into()).len(), count, "{bytes:?}");
        }
        let lines = Lines::new(b"a\r\nb\n".to_vec());
        assert_eq!((lines.plain(0), lines.plain(1), lines.plain(2)), ("a".into(), "b".into(), "".into()));
    }

    #[test]
    fn nothing_a_terminal_obeys_comes_out() {
        let hostile = "a\x1b]52;c;aGk=\x07b\x1b[2J\x1b[Hc\x1bP+q\x1b\\d\x08\x0e\u{9b}31me\u{202e}f\x1b[?1049hg\x7f\x00h\x1b]0;t";
        let lines = Lines::new(hostile.as_bytes().to_vec());
        assert_eq!(lines.plain(0), "abcd31mefgh");
        for c in texts(&lines.rows(0, 80, true)).concat().chars() {
            assert!(is_shown(c), "{c:?}");
        }
        assert_eq!(one_row("a\x1b[31mb\nc\u{202e}"), "a[31mb c");
    }

    #[test]
    fn any_bytes_at_all_come_out_as_printable_rows_that_fit() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..2_000 {
            let bytes: Vec<u8> = (0..200)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    // escapes, brackets and line ends are likelier than chance makes them
                    match seed % 8 {
                        0 => 0x1b,
                        1 => b'[',
                        2 => b'm',
                        _ => (seed >> 8) as u8,
                    }
                })
                .collect();
            let lines = Lines::new(bytes);
            for line in 0..lines.len() {
                for row in texts(&lines.rows(line, 7, true)) {
                    assert!(row.width() <= 7, "round {round}: {row:?}");
                    assert!(row.chars().all(is_shown), "round {round}: {row:?}");
                }
                assert_eq!(texts(&lines.rows(line, 1_000_000, false)).concat(), lines.plain(line));
            }
        }
    }

    #[test]
    fn rows_break_where_the_next_character_does_not_fit() {
        let rows = |text: &str, width| texts(&Lines::new(text.into()).rows(0, width, false));
        assert_eq!(rows("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(rows("日本語", 4), ["日本", "語"]);
        assert_eq!(rows("a日本", 2), ["a", "日", "本"]);
        assert_eq!(rows("日", 1), ["·"]);
        assert_eq!(rows("e\u{301}e\u{301}", 1), ["e\u{301}", "e\u{301}"]);
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("a\tb", 20), ["a       b"]);
        let long = Lines::new(vec![b'x'; LINE_LIMIT * 3]);
        assert_eq!(texts(&long.rows(0, LINE_LIMIT + 10, false))[0].chars().last(), Some(CUT));
    }

    #[test]
    fn a_row_knows_where_it_begins() {
        let lines = Lines::new("日本語x".into());
        let from: Vec<usize> = lines.rows(0, 2, true).iter().map(|row| row.from).collect();
        assert_eq!(from, [0, 3, 6, 9]);
    }

    #[test]
    fn a_colour_holds_until_it_is_changed_however_far_down() {
        let mut text = String::from("\x1b[31mred\n");
        for _ in 0..3 * STRIDE {
            text.push_str("still\n");
        }
        text.push_str("\x1b[39mplain\nafter\n");
        let lines = Lines::new(text.into());
        let front = |line| lines.rows(line, 80, true)[0].pieces[0].1.fg;
        let last = lines.len() - 1;
        assert_eq!((front(last), front(last - 1)), (None, None));
        assert_eq!(front(last - 2), Some(Color::Indexed(1)));
        assert_eq!(front(STRIDE), Some(Color::Indexed(1)));
        assert_eq!(front(0), Some(Color::Indexed(1)));
        assert_eq!(lines.rows(0, 80, false)[0].pieces[0].1, Style::default());
    }
}
