//! A window's layout, as `%layout-change` and `#{window_layout}` write it.
//!
//! ```text
//! layout   = 4HEXDIG "," cell [floating]     ; checksum of everything after the comma
//! cell     = W "x" H "," X "," Y ( ["," pane-number] / "{" cells "}" / "[" cells "]" )
//! cells    = cell *("," cell)
//! floating = "<" cells ">"                    ; 3.7 and later
//! ```
//! From 3.7 on a floating pane stands in `<…>` and once more in the root container, and offsets may be negative, so
//! sizes do not add up and [`Layout::panes`] names each pane once.

use std::fmt;
use std::str::FromStr;

use nom::{
    IResult, Parser,
    branch::alt,
    bytes::complete::{tag, take},
    character::complete::{char, one_of},
    combinator::{map, map_opt, opt, value},
    error::{Error, ErrorKind},
    sequence::{preceded, separated_pair, terminated},
};

use crate::PaneId;
use crate::notification::grammar::decimal32;

/// Deepest nesting that is read. tmux writes at most 8,191 bytes, and a level takes nine.
const DEEPEST: usize = 1024;

/// A window's cells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The whole window.
    pub root: Cell,
    /// Floating panes, topmost first.
    pub floating: Vec<Cell>,
}

/// A rectangle of a window, in character cells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// From the window's left edge; negative for a floating pane that sticks out.
    pub x: i32,
    /// From the window's top edge; negative for a floating pane that sticks out.
    pub y: i32,
    /// What the rectangle holds.
    pub content: Content,
}

/// What a cell holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    /// A pane, whose number layouts written by hand or by old versions may omit.
    Pane(Option<PaneId>),
    /// `{…}`: cells from left to right.
    Columns(Vec<Cell>),
    /// `[…]`: cells from top to bottom.
    Rows(Vec<Cell>),
}

/// Why a text is no layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLayout {
    /// tmux leaves the field empty for a layout of more than 8,191 bytes.
    #[error("layout is empty: too long for tmux to write")]
    Empty,
    /// Not of the grammar.
    #[error("layout is malformed at byte {at}")]
    Malformed {
        /// Where reading stopped.
        at: usize,
    },
    /// The checksum is of another text.
    #[error("layout has checksum {written:04x} where {counted:04x} is right")]
    Checksum {
        /// What the text says.
        written: u16,
        /// What its cells give.
        counted: u16,
    },
    /// More cells within cells than tmux can write.
    #[error("layout is nested more than {DEEPEST} deep")]
    TooDeep,
}

impl Layout {
    /// Reads a layout and verifies its checksum.
    ///
    /// # Errors
    /// [`BadLayout`].
    pub fn parse(text: &[u8]) -> Result<Self, BadLayout> {
        if text.is_empty() {
            return Err(BadLayout::Empty);
        }
        let malformed = |rest: &[u8]| BadLayout::Malformed { at: text.len() - rest.len() };
        let (cells, written) = checksum_field(text).map_err(|_| malformed(text))?;
        let (rest, root) = cell(cells).map_err(|error| error.at(malformed))?;
        let (rest, floating) = floating(rest).map_err(|error| error.at(malformed))?;
        if !rest.is_empty() {
            return Err(malformed(rest));
        }
        let counted = Self::checksum(cells);
        if written != counted {
            return Err(BadLayout::Checksum { written, counted });
        }
        Ok(Self { root, floating })
    }

    /// The checksum of a layout's text after the first comma: for each byte, one bit to the right around, plus the
    /// byte.
    pub fn checksum(cells: &[u8]) -> u16 {
        cells.iter().fold(0u16, |sum, &byte| sum.rotate_right(1).wrapping_add(u16::from(byte)))
    }

    /// Each numbered pane once, in the order of the text, floating panes where the root names them.
    pub fn panes(&self) -> Vec<PaneId> {
        let mut panes = Vec::new();
        let mut cells: Vec<&Cell> = self.floating.iter().rev().collect();
        cells.push(&self.root);
        while let Some(cell) = cells.pop() {
            match &cell.content {
                Content::Pane(pane) => panes.extend(*pane),
                Content::Columns(inner) | Content::Rows(inner) => cells.extend(inner.iter().rev()),
            }
        }
        let mut seen = std::collections::HashSet::new();
        panes.retain(|pane| seen.insert(*pane));
        panes
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cells = self.root.to_string();
        if !self.floating.is_empty() {
            cells.push('<');
            for (place, cell) in self.floating.iter().enumerate() {
                cells.push_str(if place == 0 { "" } else { "," });
                cells.push_str(&cell.to_string());
            }
            cells.push('>');
        }
        write!(f, "{:04x},{cells}", Self::checksum(cells.as_bytes()))
    }
}

impl FromStr for Layout {
    type Err = BadLayout;

    fn from_str(text: &str) -> Result<Self, BadLayout> {
        Self::parse(text.as_bytes())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{},{},{}", self.width, self.height, self.x, self.y)?;
        let (inner, close) = match &self.content {
            Content::Pane(None) => return Ok(()),
            Content::Pane(Some(pane)) => return write!(f, ",{}", pane.0),
            Content::Columns(inner) => (inner, '}'),
            Content::Rows(inner) => (inner, ']'),
        };
        f.write_str(if close == '}' { "{" } else { "[" })?;
        for (place, cell) in inner.iter().enumerate() {
            write!(f, "{}{cell}", if place == 0 { "" } else { "," })?;
        }
        write!(f, "{close}")
    }
}

/// Where reading a cell stopped and why.
enum Stop<'a> {
    Here(&'a [u8]),
    TooDeep,
}

impl<'a> Stop<'a> {
    fn at(self, malformed: impl Fn(&'a [u8]) -> BadLayout) -> BadLayout {
        match self {
            Self::Here(rest) => malformed(rest),
            Self::TooDeep => BadLayout::TooDeep,
        }
    }
}

/// `floating = "<" cells ">"`
fn floating(input: &[u8]) -> Result<(&[u8], Vec<Cell>), Stop<'_>> {
    let mut cells = Vec::new();
    let Some(mut rest) = input.strip_prefix(b"<") else { return Ok((input, cells)) };
    loop {
        let (after, floating) = cell(rest)?;
        cells.push(floating);
        match after.split_first() {
            Some((b',', more)) => rest = more,
            Some((b'>', more)) => return Ok((more, cells)),
            _ => return Err(Stop::Here(after)),
        }
    }
}

/// A container whose closing bracket has not come.
struct Container {
    cell: Cell,
    close: u8,
    inner: Vec<Cell>,
}

/// `cell = size ( ["," pane-number] / "{" cells "}" / "[" cells "]" )`
///
/// Keeps its own stack, so that the depth of a text does not become the depth of ours.
fn cell(input: &[u8]) -> Result<(&[u8], Cell), Stop<'_>> {
    let mut above: Vec<Container> = Vec::new();
    let mut rest = input;
    loop {
        let (after, mut done) = size(rest).map_err(|_| Stop::Here(rest))?;
        rest = after;
        let open: IResult<&[u8], char> = one_of("{[").parse(rest);
        if let Ok((after, open)) = open {
            if above.len() == DEEPEST {
                return Err(Stop::TooDeep);
            }
            above.push(Container {
                cell: done,
                close: if open == '{' { b'}' } else { b']' },
                inner: Vec::new(),
            });
            rest = after;
            continue;
        }
        let (after, pane) = pane_number(rest).map_err(|_| Stop::Here(rest))?;
        done.content = Content::Pane(pane);
        rest = after;
        // Close what ends here, then go on with the next cell of the innermost container.
        loop {
            let Some(mut container) = above.pop() else { return Ok((rest, done)) };
            container.inner.push(done);
            match rest.split_first() {
                Some((b',', more)) => {
                    rest = more;
                    above.push(container);
                    break;
                }
                Some((&close, more)) if close == container.close => {
                    rest = more;
                    done = container.cell;
                    done.content = match close {
                        b'}' => Content::Columns(container.inner),
                        _ => Content::Rows(container.inner),
                    };
                }
                _ => return Err(Stop::Here(rest)),
            }
        }
    }
}

/// `checksum = 4HEXDIG ","`, in lower case
fn checksum_field(input: &[u8]) -> IResult<&[u8], u16> {
    terminated(map_opt(take(4usize), hexadecimal), char(',')).parse(input)
}

fn hexadecimal(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum << 4 | u16::from(digit - b'0')),
        b'a'..=b'f' => Some(sum << 4 | u16::from(digit - b'a' + 10)),
        _ => None,
    })
}

/// `size = W "x" H "," X "," Y`
fn size(input: &[u8]) -> IResult<&[u8], Cell> {
    map(
        (
            separated_pair(decimal32, char('x'), decimal32),
            preceded(char(','), offset),
            preceded(char(','), offset),
        ),
        |((width, height), x, y)| Cell { width, height, x, y, content: Content::Pane(None) },
    )
    .parse(input)
}

/// `offset = ["-"] number`
fn offset(input: &[u8]) -> IResult<&[u8], i32> {
    let (rest, sign) = alt((value(-1i64, tag("-")), value(1, tag("")))).parse(input)?;
    let (rest, number) = decimal32(rest)?;
    match i32::try_from(sign * i64::from(number)) {
        Ok(offset) if sign > 0 || number > 0 => Ok((rest, offset)),
        _ => Err(nom::Err::Error(Error::new(input, ErrorKind::Verify))),
    }
}

/// `["," pane-number]`, told from the comma before a sibling's `W "x"` by what follows the number.
fn pane_number(input: &[u8]) -> IResult<&[u8], Option<PaneId>> {
    let (rest, number) = opt(preceded(char(','), decimal32)).parse(input)?;
    match (number, rest.first()) {
        (Some(_), Some(b'x')) | (None, _) => Ok((input, None)),
        (Some(number), _) => Ok((rest, Some(PaneId(number)))),
    }
}
