//! Where one is in a text: moving, searching, choosing a range. Plain data; drawn elsewhere.
//!
//! A place is a line and a row of it, since a long line takes several rows of a narrow pane. There is always a cursor; what
//! is on the screen follows it.

use super::lines::{Lines, Row};

/// The most that is copied at once, in bytes.
pub const COPY_LIMIT: usize = 1024 * 1024;

/// A row of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 0.
    pub line: usize,
    /// The row of it, from 0.
    pub row: usize,
}

/// A text and where one is in it.
#[derive(Debug)]
pub struct Pager {
    lines: Lines,
    top: Place,
    cursor: Place,
    /// The line a range began at.
    anchor: Option<usize>,
    width: usize,
    height: usize,
    coloured: bool,
    needle: Option<Needle>,
}

/// What is searched for. Case counts only if there is a capital in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needle {
    text: String,
    exact: bool,
}

/// A movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// So many rows; up is negative.
    Rows(isize),
    /// So many half pages.
    HalfPages(isize),
    /// So many pages, less one row each.
    Pages(isize),
    /// To the first row.
    Start,
    /// To the last row.
    End,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Down.
    On,
    /// Up.
    Back,
}

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The cursor is there.
    Here,
    /// It is there after going on from the other end.
    Around,
    /// Nowhere.
    Nowhere,
    /// Nothing was asked for yet.
    Unasked,
}

/// What of the text would be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// This text.
    Text(String),
    /// More than [`COPY_LIMIT`].
    TooMuch,
}

/// One row on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its pieces.
    pub row: Row,
    /// The line it belongs to.
    pub place: Place,
    /// Whether the cursor is on it.
    pub cursor: bool,
    /// Whether it is chosen.
    pub chosen: bool,
    /// What the search found in it, as byte ranges of its text.
    pub hits: Vec<std::ops::Range<usize>>,
}

impl Pager {
    /// At the beginning of a text.
    #[must_use]
    pub fn new(lines: Lines, coloured: bool) -> Pager {
        Pager {
            lines,
            top: Place::default(),
            cursor: Place::default(),
            anchor: None,
            width: 80,
            height: 24,
            coloured,
            needle: None,
        }
    }

    /// The text.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Where the cursor is.
    #[must_use]
    pub fn cursor(&self) -> Place {
        self.cursor
    }

    /// Whether colours are shown.
    #[must_use]
    pub fn coloured(&self) -> bool {
        self.coloured
    }

    /// Shows colours, or not.
    pub fn set_coloured(&mut self, coloured: bool) {
        self.coloured = coloured;
    }

    /// Takes another text in its place; one that was at the end stays at the end.
    pub fn replace(&mut self, lines: Lines) {
        let was_last = self.cursor.line + 1 >= self.lines.len();
        self.lines = lines;
        self.anchor = None;
        if was_last { self.go(Move::End) } else { self.settle() }
    }

    /// Takes the room there is, in columns and rows.
    pub fn resize(&mut self, width: usize, height: usize) {
        if (self.width, self.height) != (width, height) {
            (self.width, self.height) = (width, height);
            self.settle();
        }
    }

    /// Moves the cursor; a range goes on only by [`Pager::extend`].
    pub fn go(&mut self, to: Move) {
        self.anchor = None;
        self.travel(to);
    }

    /// Moves the cursor and chooses what it passes.
    pub fn extend(&mut self, to: Move) {
        self.anchor.get_or_insert(self.cursor.line);
        self.travel(to);
    }

    /// Ends a range; false if there was none.
    pub fn forget_range(&mut self) -> bool {
        self.anchor.take().is_some()
    }

    /// Searches from the cursor on for another text. An empty one asks for the last one again.
    pub fn search(&mut self, text: &str) -> Found {
        if !text.is_empty() {
            let exact = text.chars().any(char::is_uppercase);
            let text = if exact { text.to_owned() } else { text.to_lowercase() };
            self.needle = Some(Needle { text, exact });
            if self.found(self.cursor.line).is_some() {
                return self.land(self.cursor.line, Found::Here);
            }
        }
        self.next(Way::On)
    }

    /// Goes to the next line that holds what was searched for.
    pub fn next(&mut self, way: Way) -> Found {
        let count = self.lines.len();
        if self.needle.is_none() {
            return Found::Unasked;
        }
        let here = self.cursor.line;
        for steps in 1..=count {
            let (line, around) = match way {
                Way::On => ((here + steps) % count, here + steps >= count),
                Way::Back => ((here + count - steps) % count, steps > here),
            };
            if self.found(line).is_some() {
                return self.land(line, if around { Found::Around } else { Found::Here });
            }
        }
        Found::Nowhere
    }

    /// The chosen lines, else the cursor's.
    #[must_use]
    pub fn chosen(&self) -> Chosen {
        let (first, last) = self.range();
        let mut text = String::new();
        for line in first..=last {
            if line > first {
                text.push('\n');
            }
            text.push_str(self.lines.plain(line).trim_end());
            if text.len() > COPY_LIMIT {
                return Chosen::TooMuch;
            }
        }
        Chosen::Text(text)
    }

    /// The lines that would be copied, first and last.
    #[must_use]
    pub fn range(&self) -> (usize, usize) {
        let anchor = self.anchor.unwrap_or(self.cursor.line);
        (anchor.min(self.cursor.line), anchor.max(self.cursor.line))
    }

    /// What is on the screen.
    #[must_use]
    pub fn screen(&self) -> Vec<Seen> {
        let (first, last) = self.range();
        let mut screen = Vec::with_capacity(self.height);
        let mut line = self.top.line;
        while line < self.lines.len() && screen.len() < self.height {
            let plain = self.needle.as_ref().map(|_| self.lines.plain(line));
            let skip = if line == self.top.line { self.top.row } else { 0 };
            let rows = self.lines.rows(line, self.width, self.coloured).into_iter().enumerate().skip(skip);
            for (row, content) in rows.take(self.height - screen.len()) {
                let place = Place { line, row };
                let hits = plain.as_deref().map(|plain| self.hits(plain, &content)).unwrap_or_default();
                screen.push(Seen {
                    row: content,
                    place,
                    cursor: place == self.cursor,
                    chosen: self.anchor.is_some() && (first..=last).contains(&line),
                    hits,
                });
            }
            line += 1;
        }
        screen
    }

    fn travel(&mut self, to: Move) {
        let half = (self.height / 2).max(1).cast_signed();
        let page = self.height.saturating_sub(1).max(1).cast_signed();
        match to {
            Move::Rows(rows) => self.cursor = self.step(self.cursor, rows),
            Move::HalfPages(count) => self.shift(count.saturating_mul(half)),
            Move::Pages(count) => self.shift(count.saturating_mul(page)),
            Move::Start => self.cursor = Place::default(),
            Move::End => self.cursor = self.end(),
        }
        self.settle();
    }

    /// Moves the screen and the cursor alike.
    fn shift(&mut self, rows: isize) {
        self.top = self.step(self.top, rows).min(self.last_top());
        self.cursor = self.step(self.cursor, rows);
    }

    /// Brings the cursor back into the text and the screen to the cursor.
    fn settle(&mut self) {
        self.cursor = self.held(self.cursor);
        self.top = self.held(self.top).min(self.cursor).min(self.last_top());
        let lowest = self.step(self.cursor, 1 - self.height.max(1).cast_signed());
        self.top = self.top.max(lowest);
    }

    /// The place, or the nearest one that is there.
    fn held(&self, place: Place) -> Place {
        let line = place.line.min(self.lines.len().saturating_sub(1));
        Place { line, row: place.row.min(self.rows(line) - 1) }
    }

    fn end(&self) -> Place {
        let line = self.lines.len().saturating_sub(1);
        Place { line, row: self.rows(line) - 1 }
    }

    /// Where the screen begins when it shows the end.
    fn last_top(&self) -> Place {
        self.step(self.end(), 1 - self.height.max(1).cast_signed())
    }

    fn rows(&self, line: usize) -> usize {
        self.lines.rows(line, self.width, false).len()
    }

    /// The place so many rows away, as far as the text goes.
    fn step(&self, from: Place, rows: isize) -> Place {
        let mut place = from;
        let mut left = rows.unsigned_abs();
        while left > 0 {
            if rows < 0 {
                let take = left.min(place.row);
                place.row -= take;
                left -= take;
                if left > 0 {
                    if place.line == 0 {
                        return place;
                    }
                    place.line -= 1;
                    place.row = self.rows(place.line) - 1;
                    left -= 1;
                }
            } else {
                let below = (self.rows(place.line) - 1).saturating_sub(place.row);
                let take = left.min(below);
                place.row += take;
                left -= take;
                if left > 0 {
                    if place.line + 1 >= self.lines.len() {
                        return place;
                    }
                    place = Place { line: place.line + 1, row: 0 };
                    left -= 1;
                }
            }
        }
        place
    }

    /// Where in a line the searched text begins first.
    fn found(&self, line: usize) -> Option<usize> {
        let needle = self.needle.as_ref()?;
        let plain = self.lines.plain(line);
        if needle.exact {
            return plain.find(&needle.text);
        }
        let folded = plain.to_lowercase();
        // places in the folded text are places in the text only where folding changed no length
        folded.find(&needle.text).map(|at| if folded.len() == plain.len() { at } else { 0 })
    }

    fn land(&mut self, line: usize, found: Found) -> Found {
        let at = self.found(line).unwrap_or(0);
        let rows = self.lines.rows(line, self.width, false);
        let row = rows.iter().rposition(|row| row.from <= at).unwrap_or(0);
        self.anchor = None;
        self.cursor = Place { line, row };
        self.settle();
        found
    }

    /// What the search finds in one row of a line; a hit that goes on in the next row is marked in both.
    fn hits(&self, plain: &str, row: &Row) -> Vec<std::ops::Range<usize>> {
        let Some(needle) = &self.needle else { return Vec::new() };
        let folded = if needle.exact { plain.to_owned() } else { plain.to_lowercase() };
        let length: usize = row.pieces.iter().map(|(text, _)| text.len()).sum();
        if folded.len() != plain.len() {
            return Vec::new();
        }
        let end = row.from + length;
        folded
            .match_indices(&needle.text)
            .map(|(at, hit)| (at, at + hit.len()))
            .filter(|(from, to)| *from < end && *to > row.from)
            .map(|(from, to)| from.max(row.from) - row.from..to.min(end) - row.from)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(text: &str, width: usize, height: usize) -> Pager {
        let mut pager = Pager::new(Lines::new(text.into()), false);
        pager.resize(width, height);
        pager
    }

    /// The screen as text: `>` the cursor, `|` chosen.
    fn shown(pager: &Pager) -> Vec<String> {
        let mark = |seen: &Seen| match (seen.cursor, seen.chosen) {
            (true, _) => '>',
            (false, true) => '|',
            (false, false) => ' ',
        };
        let text = |seen: &Seen| seen.row.pieces.iter().map(|(text, _)| text.as_str()).collect::<String>();
        pager.screen().iter().map(|seen| format!("{}{}", mark(seen), text(seen))).collect()
    }

    #[test]
    fn the_screen_follows_the_cursor() {
        let mut pager = pager("1\n2\n3\n4\n5\n6", 10, 3);
        for (to, wanted) in [
            (Move::Rows(1), [" 1", ">2", " 3"]),
            (Move::Rows(2), [" 2", " 3", ">4"]),
            (Move::Rows(-2), [">2", " 3", " 4"]),
            (Move::End, [" 4", " 5", ">6"]),
            (Move::Rows(9), [" 4", " 5", ">6"]),
            (Move::Pages(-1), [" 2", " 3", ">4"]),
            (Move::HalfPages(-1), [" 1", " 2", ">3"]),
            (Move::Start, [">1", " 2", " 3"]),
            (Move::Pages(1), [">3", " 4", " 5"]),
            (Move::Pages(9), [" 4", " 5", ">6"]),
        ] {
            pager.go(to);
            assert_eq!(shown(&pager), wanted, "{to:?}");
        }
    }

    #[test]
    fn a_long_line_is_walked_row_by_row() {
        let mut pager = pager("abcdefgh\nx", 3, 2);
        assert_eq!(shown(&pager), [">abc", " def"]);
        pager.go(Move::Rows(2));
        assert_eq!(shown(&pager), [" def", ">gh"]);
        pager.go(Move::Rows(1));
        assert_eq!(shown(&pager), [" gh", ">x"]);
        pager.go(Move::Rows(-3));
        assert_eq!(shown(&pager), [">abc", " def"]);
        pager.go(Move::End);
        pager.resize(8, 1);
        assert_eq!(shown(&pager), [">x"]);
    }

    #[test]
    fn an_empty_text_can_be_walked() {
        let mut pager = pager("", 10, 3);
        for to in [Move::Rows(1), Move::Rows(-1), Move::End, Move::Pages(1), Move::Start] {
            pager.go(to);
            pager.extend(to);
        }
        assert_eq!(pager.search("x"), Found::Nowhere);
        assert_eq!(pager.chosen(), Chosen::Text(String::new()));
        assert!(pager.screen().is_empty());
        pager.resize(0, 0);
        pager.go(Move::End);
    }

    #[test]
    fn a_search_goes_round() {
        let mut pager = pager("one\nTwo\nthree\ntwo", 10, 4);
        assert_eq!(pager.next(Way::On), Found::Unasked);
        for (act, found, line) in [("two", Found::Here, 1), ("", Found::Here, 3), ("", Found::Around, 1)] {
            assert_eq!((pager.search(act), pager.cursor().line), (found, line), "{act:?}");
        }
        assert_eq!((pager.next(Way::Back), pager.cursor().line), (Found::Around, 3));
        assert_eq!((pager.next(Way::Back), pager.cursor().line), (Found::Here, 1));
        assert_eq!((pager.search("Two"), pager.cursor().line), (Found::Here, 1));
        assert_eq!((pager.search("Th"), pager.cursor().line), (Found::Nowhere, 1));
        assert_eq!((pager.search("one"), pager.cursor().line), (Found::Around, 0));
    }

    #[test]
    fn hits_are_marked_in_the_rows_they_lie_in() {
        let mut pager = pager("abcabc", 4, 2);
        pager.search("ca");
        let hits = |pager: &Pager| -> Vec<Vec<(usize, usize)>> {
            let of = |seen: Seen| seen.hits.into_iter().map(|hit| (hit.start, hit.end)).collect();
            pager.screen().into_iter().map(of).collect()
        };
        assert_eq!(hits(&pager), [vec![(2, 4)], vec![]]);
        pager.search("bcab");
        assert_eq!(hits(&pager), [vec![(1, 4)], vec![(0, 1)]]);
    }

    #[test]
    fn a_range_is_chosen_by_extending_and_ends_with_the_next_step() {
        let mut pager = pager("1 \n2\n3\n4", 10, 4);
        pager.go(Move::Rows(2));
        pager.extend(Move::Rows(-1));
        assert_eq!(shown(&pager), [" 1 ", ">2", "|3", " 4"]);
        pager.extend(Move::Rows(-1));
        assert_eq!(pager.chosen(), Chosen::Text("1\n2\n3".into()));
        pager.go(Move::Rows(1));
        assert_eq!(shown(&pager), [" 1 ", ">2", " 3", " 4"]);
        assert_eq!(pager.chosen(), Chosen::Text("2".into()));
        let mut much = Pager::new(Lines::new(vec![b'x'; COPY_LIMIT / 64]), false);
        much.go(Move::End);
        assert!(matches!(much.chosen(), Chosen::Text(_)));
        let mut much = Pager::new(Lines::new(format!("{}\n", "x".repeat(1000)).repeat(2000).into()), false);
        much.extend(Move::End);
        assert_eq!(much.chosen(), Chosen::TooMuch);
    }

    #[test]
    fn a_text_that_changes_keeps_the_place_or_the_end() {
        let mut pager = pager("1\n2\n3", 10, 2);
        pager.go(Move::Rows(1));
        pager.replace(Lines::new("a\nb\nc\nd".into()));
        assert_eq!(shown(&pager), [" a", ">b"]);
        pager.go(Move::End);
        pager.replace(Lines::new("1\n2\n3\n4\n5".into()));
        assert_eq!(shown(&pager), [" 4", ">5"]);
        pager.replace(Lines::new("1".into()));
        assert_eq!(shown(&pager), [">1"]);
    }
}
