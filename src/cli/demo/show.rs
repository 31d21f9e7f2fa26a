//! What the audience reads: plain lines, wrapped to the terminal, coloured only where a terminal wants it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Width where none is known: a pipe, a file.
const PLAIN_WIDTH: usize = 100;
/// Narrower than this is not wrapped further.
const LEAST_WIDTH: usize = 24;
/// Where the text of a line begins.
const INDENT: usize = 9;

/// Writes the lines of the demo.
#[derive(Debug)]
pub(super) struct Show {
    colour: bool,
    width: usize,
}

#[derive(Clone, Copy)]
enum Ink {
    Bold,
    Green,
    Red,
    Dim,
}

impl Show {
    /// Standard output, as wide and as coloured as it is.
    pub(super) fn to_stdout() -> Show {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = rustix::termios::tcgetwinsize(&out).map(|size| usize::from(size.ws_col)).unwrap_or(0);
        let width = if terminal && columns > 0 { columns.max(LEAST_WIDTH) } else { PLAIN_WIDTH };
        Show { colour: terminal && !dumb && !no_colour, width }
    }

    /// The first lines.
    pub(super) fn open(&self, text: &str) -> io::Result<()> {
        self.line("", text, None)
    }

    /// The heading of an act.
    pub(super) fn act(&self, number: usize, title: &str) -> io::Result<()> {
        self.line("", "", None)?;
        self.line(&format!("{number}"), title, Some(Ink::Bold))
    }

    /// What was done to the server.
    pub(super) fn did(&self, text: &str) -> io::Result<()> {
        self.line("  did", text, Some(Ink::Dim))
    }

    /// What was then seen, and how long after the act.
    pub(super) fn saw(&self, text: &str, took: Duration) -> io::Result<()> {
        self.line("  saw", &format!("{text} ({})", milliseconds(took)), Some(Ink::Green))
    }

    /// Where the supervisor knows it from.
    pub(super) fn from(&self, text: &str) -> io::Result<()> {
        self.line("  from", text, Some(Ink::Dim))
    }

    /// What was not as it should be.
    pub(super) fn wrong(&self, text: &str) -> io::Result<()> {
        self.line("  WRONG", text, Some(Ink::Red))
    }

    /// How it ended.
    pub(super) fn close(&self, text: &str) -> io::Result<()> {
        self.line("", text, Some(Ink::Green))
    }

    /// What to do next.
    pub(super) fn next(&self, text: &str) -> io::Result<()> {
        self.line("", "", None)?;
        self.line("", text, Some(Ink::Bold))
    }

    fn line(&self, label: &str, text: &str, ink: Option<Ink>) -> io::Result<()> {
        let indent = if label.is_empty() { 0 } else { INDENT };
        let mut out = io::stdout().lock();
        for (index, part) in wrap(text, self.width.saturating_sub(indent)).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let part = match ink {
                Some(ink) if self.colour => {
                    let code = match ink {
                        Ink::Bold => "1",
                        Ink::Green => "32",
                        Ink::Red => "31",
                        Ink::Dim => "2",
                    };
                    format!("\x1b[{code}m{part}\x1b[0m")
                }
                Some(_) | None => part.clone(),
            };
            writeln!(out, "{label:<indent$}{part}")?;
        }
        out.flush()
    }
}

/// Milliseconds with one decimal below 100.
pub(super) fn milliseconds(span: Duration) -> String {
    let exact = span.as_secs_f64() * 1e3;
    if exact < 100.0 { format!("{exact:.1} ms") } else { format!("{exact:.0} ms") }
}

/// Breaks `text` at spaces into parts of at most `width` characters; a longer word is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut parts = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + word.len() > width {
            parts.push(String::new());
            length = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            parts.last_mut().into_iter().for_each(|part| part.extend(&word));
            parts.push(String::new());
            word = rest;
        }
        if let Some(part) = parts.last_mut() {
            if length > 0 {
                part.push(' ');
                length += 1;
            }
            part.extend(&word);
            length += word.len();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_never_pass_the_width() {
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a abcdefghij b", 4), ["a", "abcd", "efgh", "ij b"]);
        assert_eq!(wrap("ab cd", 5), ["ab cd"]);
        for width in 1..20 {
            for part in wrap("the quick brown fox jumpsoverthelazydog", width) {
                assert!(part.chars().count() <= width, "{part:?} at {width}");
            }
        }
    }

    #[test]
    fn short_times_have_a_decimal() {
        assert_eq!(milliseconds(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(milliseconds(Duration::from_millis(250)), "250 ms");
    }
}
