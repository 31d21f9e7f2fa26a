//! What a stand-in draws: what was said flows up, the composer and its footer stay below it; or, on the alternate screen,
//! the whole page.

use unicode_width::UnicodeWidthChar;

use super::plain::show;
use super::ways::Words;
use crate::cli::Failure;

/// Lines kept for a page that is drawn as a whole.
const KEPT: usize = 200;

/// The lower part of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Below {
    /// Nothing, while it starts.
    Nothing,
    /// The composer, idle.
    Composer(String),
    /// The composer, while a turn runs; and what is queued behind it.
    Working(String, usize),
    /// A question or a dialog.
    Question(Vec<String>),
}

/// The page of one agent.
#[derive(Debug)]
pub(super) struct Face {
    words: Words,
    /// The whole screen is ours.
    full: bool,
    said: Vec<String>,
    below: Below,
    /// Rows the lower part takes on the screen now.
    drawn: usize,
    /// In place of the footer, once.
    hint: Option<String>,
}

impl Face {
    /// A page with nothing on it.
    pub(super) fn new(words: Words, full: bool) -> Face {
        Face { words, full, said: Vec::new(), below: Below::Nothing, drawn: 0, hint: None }
    }

    /// Takes the terminal: the page of its own, paste brackets.
    pub(super) fn open(&self) -> Result<(), Failure> {
        show(if self.full { "\x1b[?1049h\x1b[2J\x1b[?2004h" } else { "\x1b[?2004h" })
    }

    /// Gives the terminal back and leaves `lines`.
    pub(super) fn close(&mut self, lines: &[String]) -> Result<(), Failure> {
        let mut text = if self.full { String::new() } else { "\r\n".to_owned() };
        text += if self.full { "\x1b[?2004l\x1b[?1049l" } else { "\x1b[?2004l" };
        for line in lines {
            text += line;
            text += "\r\n";
        }
        show(&text)
    }

    /// Says more lines above the composer.
    pub(super) fn say(&mut self, lines: &[String]) -> Result<(), Failure> {
        self.said.extend_from_slice(lines);
        let spare = self.said.len().saturating_sub(KEPT);
        self.said.drain(..spare);
        if self.full {
            return self.draw();
        }
        let mut text = self.erase();
        for line in lines {
            text += line;
            text += "\r\n";
        }
        text += &self.lower();
        show(&text)
    }

    /// The lower part becomes `below`.
    pub(super) fn put(&mut self, below: Below) -> Result<(), Failure> {
        self.hint = None;
        self.below = below;
        self.draw()
    }

    /// The footer says `hint` until the next key.
    pub(super) fn hint(&mut self, hint: &str) -> Result<(), Failure> {
        self.hint = Some(hint.to_owned());
        self.draw()
    }

    /// Draws again, after a change of size.
    pub(super) fn draw(&mut self) -> Result<(), Failure> {
        if !self.full {
            let text = self.erase() + &self.lower();
            return show(&text);
        }
        let (width, height) = size();
        let lower = self.lower();
        let room = height.saturating_sub(self.drawn);
        let from = self.said.len().saturating_sub(room);
        let mut text = "\x1b[H\x1b[2J".to_owned();
        for line in &self.said[from..] {
            text += &cut(line, width);
            text += "\r\n";
        }
        show(&(text + &lower))
    }

    /// Takes the lower part away.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }

    /// The lower part, its last row without an end of line.
    fn lower(&mut self) -> String {
        let (width, _) = size();
        let words = &self.words;
        let footer = |usual: &str| self.hint.clone().unwrap_or_else(|| usual.to_owned());
        let mut rows: Vec<String> = Vec::new();
        let (text, footer) = match &self.below {
            Below::Nothing => {
                self.drawn = 0;
                return String::new();
            }
            Below::Question(lines) => {
                rows.extend(lines.iter().map(|line| cut(line, width)));
                self.drawn = rows.len();
                return rows.join("\r\n");
            }
            Below::Composer(text) => (text, footer(&words.idle_footer)),
            Below::Working(text, queued) => {
                rows.push(cut(words.working, width));
                if *queued > 0 {
                    rows.push(format!("  Queued: {queued}"));
                }
                (text, footer(&words.working_footer))
            }
        };
        let rule = "─".repeat(width);
        if words.ruled {
            rows.push(rule.clone());
        }
        for (at, line) in text.split('\n').enumerate() {
            let mark = if at == 0 { words.mark } else { " " };
            rows.push(cut(&format!("{mark} {line}"), width));
        }
        if text.is_empty() && !words.placeholder.is_empty() {
            rows.pop();
            rows.push(format!("{} \x1b[2m{}\x1b[0m", words.mark, words.placeholder));
        }
        // without a rule an empty row parts what is typed from the footer
        rows.push(if words.ruled { rule } else { String::new() });
        rows.push(cut(&footer, width));
        self.drawn = rows.len();
        rows.join("\r\n")
    }
}

/// The line as far as it fits in one row.
fn cut(line: &str, width: usize) -> String {
    let mut room = width;
    let fits = |c: &char| match room.checked_sub(c.width().unwrap_or(0)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    line.chars().take_while(fits).collect()
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        Ok(_) | Err(_) => (80, 24),
    }
}
