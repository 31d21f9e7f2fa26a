//! Org: the keyword `#+SESSION_ID:` and the heading `AI Sessions` with a property drawer for each entry.

use super::lines::Lines;
use super::{Entry, Found, Link, is_blank};

/// The section's title.
const SECTION: &str = "AI Sessions";
const WORKTREE: &str = "WORKTREE";
const BACKEND: &str = "BACKEND";
const SESSION: &str = "SESSION_ID";

/// The level of a heading and its title, tags left off.
fn heading(line: &str) -> Option<(usize, &str)> {
    let stars = line.bytes().take_while(|byte| *byte == b'*').count();
    let title = line.get(stars..)?.strip_prefix(' ').filter(|_| stars > 0)?.trim();
    let tags = title.rsplit_once(char::is_whitespace).map(|(_, tags)| tags);
    let is_tags = |tags: &&str| tags.len() > 2 && tags.starts_with(':') && tags.ends_with(':');
    let tags = tags.filter(is_tags).map_or(0, str::len);
    Some((stars, title[..title.len() - tags].trim()))
}

/// The line, level and title of each heading.
pub(super) fn headings(lines: &Lines) -> Vec<(usize, usize, &str)> {
    let heading = |at| heading(lines.text(at)).map(|(level, title)| (at, level, title));
    (0..lines.len()).filter_map(heading).collect()
}

/// The name and value of `:NAME: value`.
fn property(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().strip_prefix(':')?.split_once(':')?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, value.trim()))
}

/// The section: its heading's line, its level, and the line behind it.
fn section(lines: &Lines) -> Option<(usize, usize, usize)> {
    let mut headings = (0..lines.len()).filter_map(|at| Some((at, heading(lines.text(at))?)));
    let (at, (level, _)) = headings.find(|(_, (_, title))| title.eq_ignore_ascii_case(SECTION))?;
    let end = headings.find(|(_, (next, _))| *next <= level).map_or(lines.len(), |(end, _)| end);
    Some((at, level, end))
}

/// The drawer right below a heading: the lines between `:PROPERTIES:` and `:END:`.
fn drawer(lines: &Lines, heading: usize, end: usize) -> Option<(usize, usize)> {
    let is = |at: usize, word: &str| lines.text(at).trim().eq_ignore_ascii_case(word);
    // a line of planning may stand between
    let planned = |at: usize| {
        ["SCHEDULED:", "DEADLINE:", "CLOSED:"].iter().any(|word| lines.text(at).trim().starts_with(word))
    };
    let first = if planned(heading + 1) { heading + 2 } else { heading + 1 };
    if first >= end || !is(first, ":PROPERTIES:") {
        return None;
    }
    let last = (first + 1..end).find(|at| is(*at, ":END:"))?;
    (first + 1..last).all(|at| property(lines.text(at)).is_some()).then_some((first + 1, last))
}

fn value<'a>(lines: &'a Lines, (first, last): (usize, usize), name: &str) -> Option<(usize, &'a str)> {
    (first..last).find_map(|at| {
        let (own, value) = property(lines.text(at))?;
        own.eq_ignore_ascii_case(name).then_some((at, value))
    })
}

pub(super) fn entries(lines: &Lines) -> Vec<Found> {
    let Some((start, level, end)) = section(lines) else { return Vec::new() };
    let below: Vec<usize> =
        (start + 1..end).filter(|at| heading(lines.text(*at)).is_some_and(|(own, _)| own > level)).collect();
    let ends = below.iter().skip(1).copied().chain([end]);
    let entry = |(at, end): (usize, usize)| {
        let drawer = drawer(lines, at, end)?;
        let of = |name| value(lines, drawer, name).map(|(_, value)| value).filter(|value| !is_blank(value));
        let worktree = of(WORKTREE)?.to_owned();
        let entry = Entry {
            worktree,
            backend: of(BACKEND).map(str::to_owned),
            session: of(SESSION).map(str::to_owned),
        };
        Some(Found { entry, at, end })
    };
    below.iter().copied().zip(ends).filter_map(entry).collect()
}

fn line(name: &str, value: &str) -> String {
    format!(":{name}: {value}")
}

/// Writes what is known now into an entry's drawer.
pub(super) fn upgrade(lines: &mut Lines, found: &Found, link: &Link) {
    let known = [(BACKEND, Some(&link.backend)), (SESSION, link.session.as_ref())];
    for (name, new) in known {
        let (Some(new), Some((first, last))) = (new, drawer(lines, found.at, found.end + 2)) else {
            continue;
        };
        match value(lines, (first, last), name).map(|(at, value)| (at, value.to_owned())) {
            Some((_, value)) if value == *new => {}
            Some((at, _)) => {
                let old = lines.text(at);
                let indent = &old[..old.len() - old.trim_start().len()];
                let own = property(old).map_or(name, |(own, _)| own);
                let text = format!("{indent}{}", line(own, new));
                lines.replace(at, &text);
            }
            None => {
                let end = lines.text(last);
                let indent = &end[..end.len() - end.trim_start().len()];
                let text = format!("{indent}{}", line(name, new));
                lines.insert(last, &[text]);
            }
        }
    }
}

/// Adds an entry at the end of the section, which is made at the end of the file if there is none.
pub(super) fn append(lines: &mut Lines, link: &Link) {
    let (level, mut end) = match section(lines) {
        Some((_, level, end)) => (level, end),
        None => {
            let blank = lines.len() == 0 || lines.is_empty_at(lines.len() - 1);
            let heading = format!("* {SECTION}");
            let new = if blank { vec![heading] } else { vec![String::new(), heading] };
            lines.insert(lines.len(), &new);
            (1, lines.len())
        }
    };
    // what separates the section from the next one stays where it is
    while end > 0 && lines.is_empty_at(end - 1) {
        end -= 1;
    }
    let name = link.worktree.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&link.worktree);
    let mut new = vec![
        format!("{} {name} · {}", "*".repeat(level + 1), link.backend),
        ":PROPERTIES:".to_owned(),
        line(WORKTREE, &link.worktree),
        line(BACKEND, &link.backend),
    ];
    new.extend(link.session.as_ref().map(|session| line(SESSION, session)));
    new.push(":END:".to_owned());
    lines.insert(end, &new);
}

/// Where `#+NAME:` stands among the keywords before the first heading, and the name.
fn keyword(line: &str) -> Option<&str> {
    let (name, _) = line.trim_start().strip_prefix("#+")?.split_once(':')?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// Sets the mirror line; a new one comes behind the keywords at the top of the file.
pub(super) fn mirror(lines: &mut Lines, session: &str) {
    let head = (0..lines.len()).find(|at| heading(lines.text(*at)).is_some()).unwrap_or(lines.len());
    let mut block = false;
    for at in 0..head {
        let line = lines.text(at).trim_start().to_ascii_lowercase();
        block = (block || line.starts_with("#+begin_")) && !line.starts_with("#+end_");
        let own = keyword(lines.text(at)).filter(|own| !block && own.eq_ignore_ascii_case(SESSION));
        if own.is_some() {
            let (before, value) = lines.text(at).split_once(':').unwrap_or_default();
            if value.trim() != session {
                let text = format!("{before}: {session}");
                lines.replace(at, &text);
            }
            return;
        }
    }
    let mut at = 0;
    while at < head
        && keyword(lines.text(at)).is_some_and(|name| !name.to_ascii_lowercase().starts_with("begin_"))
    {
        at += 1;
    }
    lines.insert(at, &[format!("#+{SESSION}: {session}")]);
}
