//! Markdown: the comment with the id under the title and the section `AI Sessions` with an item for each entry.

use super::lines::Lines;
use super::{Entry, Found, Link, is_blank};

/// The section's title.
const SECTION: &str = "AI Sessions";
/// What parts the fields of an item.
pub(super) const PART: &str = " · ";
const WORKTREE: &str = "worktree";
const BACKEND: &str = "backend";
const SESSION: &str = "session";
const MIRROR: (&str, &str) = ("<!-- ait:session-id", "-->");

/// The level of a heading and its title.
fn heading(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[indent..];
    let level = rest.bytes().take_while(|byte| *byte == b'#').count();
    let title = rest.get(level..)?;
    if indent > 3 || !(1..=6).contains(&level) || !(title.is_empty() || title.starts_with([' ', '\t'])) {
        return None;
    }
    let title = title.trim();
    let bare = title.trim_end_matches('#');
    // a closing row of marks stands apart
    let title = if bare.is_empty() || bare.ends_with([' ', '\t']) { bare.trim() } else { title };
    Some((level, title))
}

/// The mark of a fence, if the line is one.
fn fence(line: &str) -> Option<(char, usize)> {
    let rest = line.trim_start_matches(' ');
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = rest.chars().take_while(|c| *c == mark).count();
    (line.len() - rest.len() <= 3 && count >= 3).then_some((mark, count))
}

/// Which lines are the user's prose, and not code or the head of the file, by line; and where code begins that is never closed.
fn prose(lines: &Lines) -> (Vec<bool>, Option<usize>) {
    let mut prose = vec![true; lines.len()];
    let closes = |at: &usize| matches!(lines.text(*at).trim_end(), "---" | "...");
    if lines.text(0).trim_end() == "---"
        && let Some(end) = (1..lines.len()).find(closes)
    {
        prose[..=end].fill(false);
    }
    let mut open: Option<(char, usize, usize)> = None;
    for (at, prose) in prose.iter_mut().enumerate().filter(|(_, prose)| **prose) {
        let seen = fence(lines.text(at));
        *prose = open.is_none() && seen.is_none();
        open = match (open, seen) {
            (None, seen) => seen.map(|(mark, count)| (mark, count, at)),
            (Some((mark, count, _)), Some((other, more))) if mark == other && more >= count => None,
            (open, _) => open,
        };
    }
    (prose, open.map(|(_, _, begin)| begin))
}

/// The line, level and title of each heading that begins with its marks.
pub(super) fn headings(lines: &Lines) -> Vec<(usize, usize, &str)> {
    let (prose, _) = prose(lines);
    let heading = |at| heading(lines.text(at)).map(|(level, title)| (at, level, title));
    (0..lines.len()).filter(|at| prose[*at]).filter_map(heading).collect()
}

/// Whether the line makes the one before it a heading.
fn underlines(lines: &Lines, at: usize) -> bool {
    let line = lines.text(at).trim();
    let row = !line.is_empty() && (line.bytes().all(|b| b == b'=') || line.bytes().all(|b| b == b'-'));
    row && at > 0
        && !lines.is_empty_at(at - 1)
        && item(lines.text(at - 1)).is_none()
        && heading(lines.text(at - 1)).is_none()
}

/// The section: its heading's line, and the line behind it.
fn section(lines: &Lines, prose: &[bool]) -> Option<(usize, usize)> {
    let heading = |at: usize| heading(lines.text(at)).filter(|_| prose[at]);
    let is_ours = |at: usize| {
        heading(at).filter(|(_, title)| title.eq_ignore_ascii_case(SECTION)).map(|(level, _)| (at, level))
    };
    let (start, level) = (0..lines.len()).find_map(is_ours)?;
    let ends = |at: &usize| heading(*at).is_some_and(|(next, _)| next <= level);
    let end = (start + 1..lines.len()).find(ends).unwrap_or(lines.len());
    let under = (start + 2..end).find(|at| prose[*at] && underlines(lines, *at));
    Some((start, under.map_or(end, |at| at - 1)))
}

/// What stands behind the mark of an item, and how long that mark is.
fn item(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    let text = ["- ", "* ", "+ "].iter().find_map(|mark| rest.strip_prefix(mark))?;
    (indent <= 3).then_some((line.len() - text.len(), text))
}

/// The name and value of a field.
fn field(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once(':')?;
    Some((name.trim(), value.trim()))
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.split(PART.trim()).filter_map(field);
    fields.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub(super) fn entries(lines: &Lines) -> Vec<Found> {
    let (prose, _) = prose(lines);
    let Some((start, end)) = section(lines, &prose) else { return Vec::new() };
    let entry = |at: usize| {
        let (_, text) = item(lines.text(at)).filter(|_| prose[at])?;
        let of = |name| value(text, name).filter(|value| !is_blank(value)).map(str::to_owned);
        let entry = Entry { worktree: of(WORKTREE)?, backend: of(BACKEND), session: of(SESSION) };
        Some(Found { entry, at, end: at + 1 })
    };
    (start + 1..end).filter_map(entry).collect()
}

/// Writes what is known now into an entry's item.
pub(super) fn upgrade(lines: &mut Lines, found: &Found, link: &Link) {
    let line = lines.text(found.at).to_owned();
    let Some((mark, text)) = item(&line) else { return };
    let mut parts: Vec<String> = text.split(PART).map(str::to_owned).collect();
    let known = [(BACKEND, Some(&link.backend)), (SESSION, link.session.as_ref())];
    for (name, new) in known {
        let Some(new) = new else { continue };
        let own = |part: &&mut String| field(part).is_some_and(|(own, _)| own.eq_ignore_ascii_case(name));
        match parts.iter_mut().find(own) {
            Some(part) if field(part).is_some_and(|(_, value)| value == new) => {}
            Some(part) => {
                let named = part.split_once(':').map_or(name, |(named, _)| named).to_owned();
                *part = format!("{named}: {new}");
            }
            // the backend stands before the conversation
            None => {
                let behind = parts
                    .iter()
                    .position(|part| field(part).is_some_and(|(own, _)| own.eq_ignore_ascii_case(WORKTREE)));
                let at = if name == BACKEND { behind.map_or(parts.len(), |at| at + 1) } else { parts.len() };
                parts.insert(at, format!("{name}: {new}"));
            }
        }
    }
    lines.replace(found.at, &format!("{}{}", &line[..mark], parts.join(PART)));
}

/// Adds an item behind the last one of the section, which is made at the end of the file if there is none.
pub(super) fn append(lines: &mut Lines, link: &Link) {
    let mut new = format!("- {WORKTREE}: {}{PART}{BACKEND}: {}", link.worktree, link.backend);
    if let Some(session) = &link.session {
        new.push_str(&format!("{PART}{SESSION}: {session}"));
    }
    let (prose, open) = prose(lines);
    let Some((start, end)) = section(lines, &prose) else {
        // code that is never closed takes the rest of the file
        let at = open.unwrap_or(lines.len());
        let blank = at == 0 || lines.is_empty_at(at - 1);
        let mut made = if blank { Vec::new() } else { vec![String::new()] };
        made.extend([format!("## {SECTION}"), String::new(), new]);
        if at < lines.len() {
            made.push(String::new());
        }
        lines.insert(at, &made);
        return;
    };
    match entries(lines).last() {
        Some(last) => lines.insert(last.end, &[new]),
        None => {
            let mut made = vec![String::new(), new];
            let follows = (start + 1..end).find(|at| !lines.is_empty_at(*at));
            let at = start + 1;
            if follows == Some(at) {
                made.push(String::new());
            }
            lines.insert(at, &made);
        }
    }
}

/// Sets the mirror line; a new one comes under the title, or at the top where there is none.
pub(super) fn mirror(lines: &mut Lines, session: &str) {
    let new = format!("{} {session} {}", MIRROR.0, MIRROR.1);
    let (prose, _) = prose(lines);
    let is_ours = |at: &usize| {
        let line = lines.text(*at).trim();
        prose[*at] && line.starts_with(MIRROR.0) && line.ends_with(MIRROR.1)
    };
    if let Some(at) = (0..lines.len()).find(is_ours) {
        if lines.text(at).trim() != new {
            lines.replace(at, &new);
        }
        return;
    }
    let title = (0..lines.len())
        .find(|at| prose[*at] && heading(lines.text(*at)).is_some_and(|(level, _)| level == 1));
    let head = prose.iter().take_while(|prose| !**prose).count();
    let at = match title {
        Some(title) => title + 1,
        None if lines.text(0).trim_end() == "---" && fence(lines.text(0)).is_none() => head,
        None => 0,
    };
    lines.insert(at, &[new]);
}
