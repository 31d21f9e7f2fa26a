//! A captured screen as the signs read it: lines of characters, each dim or not.
//!
//! The text comes with its colours (`capture-pane -e`), because a prompt line's placeholder differs from typed text only
//! by being dim. Everything else of the escapes is dropped.

/// Lines that are read, from the bottom: an agent's live part is at the end of its screen.
const MAX_LINES: usize = 200;

/// Characters of a line that are read.
const MAX_COLUMNS: usize = 2000;

/// One screen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    lines: Vec<Line>,
}

/// What of a character's looks matters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Ink {
    dim: bool,
    /// Turned round, as programs draw their own cursor.
    inverse: bool,
}

/// One line of it, without the space at its end.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    pub(super) text: String,
    /// How each character of the text looks.
    looks: Vec<Ink>,
}

impl Line {
    /// Whether there is anything on it.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// What stands after the first `skip` characters and is not dim.
    ///
    /// A cursor on the first letter of dim text is on a placeholder: that letter is none of the user's.
    pub(super) fn bright_after(&self, skip: usize) -> String {
        let cells: Vec<(char, Ink)> = self.text.chars().zip(self.looks.iter().copied()).skip(skip).collect();
        let first = cells.iter().position(|(c, _)| !c.is_whitespace());
        let on_placeholder = first.filter(|at| {
            cells[*at].1.inverse && cells.get(at + 1).is_some_and(|(_, ink)| ink.dim && !ink.inverse)
        });
        let bright = |(at, (c, ink)): (usize, &(char, Ink))| {
            if ink.dim || on_placeholder == Some(at) { ' ' } else { *c }
        };
        cells.iter().enumerate().map(bright).collect()
    }

    fn push(&mut self, c: char, ink: Ink) {
        if self.looks.len() < MAX_COLUMNS {
            self.text.push(c);
            self.looks.push(ink);
        }
    }

    fn end(mut self) -> Self {
        let kept = self.text.trim_end();
        self.looks.truncate(kept.chars().count());
        self.text.truncate(kept.len());
        self
    }
}

impl Screen {
    /// Reads captured text. The state of the colours goes on from line to line, as tmux writes it.
    pub(super) fn read(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut line = Line::default();
        let mut ink = Ink::default();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\n' => lines.push(std::mem::take(&mut line).end()),
                '\u{1b}' => match rest.next() {
                    Some('[') => {
                        let mut parameters = String::new();
                        for c in rest.by_ref() {
                            if ('@'..='~').contains(&c) {
                                if c == 'm' {
                                    ink = inked(&parameters, ink);
                                }
                                break;
                            }
                            parameters.push(c);
                        }
                    }
                    // a link: up to BEL or ST
                    Some(']') => {
                        while let Some(c) = rest.next() {
                            if c == '\u{7}' {
                                break;
                            }
                            if c == '\u{1b}' {
                                rest.next();
                                break;
                            }
                        }
                    }
                    // a character set: one letter more
                    Some('(' | ')') => {
                        rest.next();
                    }
                    _ => {}
                },
                c if c.is_control() => {}
                c => line.push(c, ink),
            }
        }
        if !line.text.is_empty() {
            lines.push(line.end());
        }
        // what an agent has not reached yet of a tall terminal is no part of what it shows
        let shown = lines.iter().rposition(|line| !line.is_blank()).map_or(0, |last| last + 1);
        lines.truncate(shown);
        let excess = lines.len().saturating_sub(MAX_LINES);
        lines.drain(..excess);
        Self { lines }
    }

    /// Every line, from the top to the last with something on it.
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines that have something on them, from the bottom.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().rev().filter(|line| !line.is_blank())
    }

    /// Whether one of the lowest `among` lines with something on them contains these words.
    pub(super) fn says(&self, among: usize, words: &str) -> bool {
        self.upwards().take(among).any(|line| line.text.contains(words))
    }

    /// Whether tmux wrote across it that the pane's process is gone.
    pub(super) fn is_dead(&self) -> bool {
        self.says(1, "Pane is dead (")
    }
}

/// How text looks after these parameters of an SGR sequence.
fn inked(parameters: &str, before: Ink) -> Ink {
    let mut ink = before;
    let mut words = parameters.split(';');
    while let Some(word) = words.next() {
        match word {
            "" | "0" => ink = Ink::default(),
            "2" => ink.dim = true,
            "22" => ink.dim = false,
            "7" => ink.inverse = true,
            "27" => ink.inverse = false,
            // a colour takes its own parameters; the form with colons is one word
            "38" | "48" | "58" => match words.next() {
                Some("5") => drop(words.next()),
                Some("2") => drop((words.next(), words.next(), words.next())),
                _ => {}
            },
            _ => {}
        }
    }
    ink
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dim_text_is_told_apart() {
        let screen =
            Screen::read("\u{1b}[1m›\u{1b}[0m \u{1b}[2mAsk \u{1b}[38;2;2;2;2mme\u{1b}[22m!\n\u{1b}[2m\nx");
        let lines = screen.lines();
        assert_eq!(lines[0].text, "› Ask me!");
        assert_eq!(lines[0].bright_after(1).trim(), "!");
        assert!(lines[1].is_blank());
        // the state goes on into the next line
        assert_eq!(lines[2].bright_after(0).trim(), "");
    }

    #[test]
    fn colours_and_links_are_no_text() {
        let screen = Screen::read(
            "\u{1b}[38;5;2mgreen\u{1b}[39m \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7} \u{1b}(Bx\r\n",
        );
        assert_eq!(screen.lines()[0].text, "green link x");
        assert_eq!(screen.lines()[0].bright_after(0), "green link x");
    }

    #[test]
    fn a_broken_escape_at_the_end_is_no_harm() {
        for text in ["\u{1b}", "\u{1b}[", "\u{1b}[38;5", "\u{1b}]8;;x", "\u{1b}]x\u{1b}", "\u{1b}("] {
            assert!(Screen::read(text).lines().is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_screen_is_read_within_bounds() {
        let tall = "x\n".repeat(10_000);
        assert_eq!(Screen::read(&tall).lines().len(), MAX_LINES);
        assert_eq!(Screen::read(&"é".repeat(10_000)).lines()[0].text.chars().count(), MAX_COLUMNS);
    }
}
