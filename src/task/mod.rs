//! Task files: which conversations belong to a task, kept in the user's own Org or Markdown file and nowhere else.
//!
//! ```text
//! Org        #+SESSION_ID: ID                     among the file's keywords
//!            * AI Sessions                        a heading below it for each entry, its properties in a drawer:
//!            ** alpha · claude                    :WORKTREE: :BACKEND: :SESSION_ID:
//! Markdown   <!-- ait:session-id ID -->           under the title
//!            ## AI Sessions                       an item for each entry:
//!            - worktree: /srv/alpha · backend: claude · session: ID
//! ```
//!
//! Until its conversation is known an entry is known by worktree and backend together; an entry that names no backend agrees with
//! any. Linking changes or adds the lines of one entry and the mirror line; every other byte stays, whatever it is, line ends and a
//! missing last one included. What cannot be read as an entry is the user's text, never an error.

mod lines;
mod markdown;
mod org;

use std::path::Path;

use lines::Lines;

/// What the title of a section begins with that hands a task over.
const HANDOFF: &str = "Agent Handoff";
/// The longest value, in bytes.
const VALUE: usize = 4096;

/// How a task file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Emacs Org.
    Org,
    /// Markdown.
    Markdown,
}

impl Format {
    /// That of a file by its name.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "org" => Some(Self::Org),
            "md" | "markdown" | "mdown" | "mkd" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// One conversation of a task.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The folder it works in.
    pub worktree: String,
    /// The provider's short name; `None` in what an earlier program wrote.
    pub backend: Option<String>,
    /// The conversation's id; `None` until it is known.
    pub session: Option<String>,
}

/// What is to be linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The folder it works in.
    pub worktree: String,
    /// The provider's short name.
    pub backend: String,
    /// The conversation's id, where it is known.
    pub session: Option<String>,
    /// Ids the same agent had before: its entry goes along.
    pub earlier: Vec<String>,
}

/// Why nothing is linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot stand in a task file")]
pub struct Unwritable(String);

/// The entries of a file, in their order.
#[must_use]
pub fn entries(bytes: &[u8], format: Format) -> Vec<Entry> {
    let lines = Lines::new(bytes);
    let found = match format {
        Format::Org => org::entries(&lines),
        Format::Markdown => markdown::entries(&lines),
    };
    found.into_iter().map(|found| found.entry).collect()
}

/// The latest of the dated sections `Agent Handoff`, its heading included: what is gone on from where no conversation comes back.
#[must_use]
pub fn handoff(bytes: &[u8], format: Format) -> Option<String> {
    let lines = Lines::new(bytes);
    let headings = match format {
        Format::Org => org::headings(&lines),
        Format::Markdown => markdown::headings(&lines),
    };
    let is_handoff =
        |title: &str| title.get(..HANDOFF.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(HANDOFF));
    // a date in it orders them; of those without one the last
    let all = headings.iter().filter(|(_, _, title)| is_handoff(title));
    let (from, level, _) = all.max_by_key(|(_, _, title)| &title[HANDOFF.len()..])?;
    let next = headings.iter().find(|(at, own, _)| at > from && own <= level);
    let text: Vec<&str> =
        (*from..next.map_or(lines.len(), |(at, ..)| *at)).map(|at| lines.text(at)).collect();
    Some(text.join("\n").trim_end().to_owned())
}

/// The file with this linked in it; the same bytes where it is already.
///
/// # Errors
/// [`Unwritable`]: a value would not be read back as it is.
pub fn link(bytes: &[u8], format: Format, link: &Link) -> Result<Vec<u8>, Unwritable> {
    for value in [Some(&link.worktree), Some(&link.backend), link.session.as_ref()].into_iter().flatten() {
        let fits = !value.is_empty()
            && value.len() <= VALUE
            && value.trim() == value
            && !value.contains(char::is_control)
            && !value.contains(markdown::PART)
            && !value.contains("-->");
        if !fits {
            return Err(Unwritable(value.clone()));
        }
    }
    let mut lines = Lines::new(bytes);
    let found = match format {
        Format::Org => org::entries(&lines),
        Format::Markdown => markdown::entries(&lines),
    };
    let at = found.iter().position(|found| is_of(&found.entry, link));
    match (format, at.and_then(|at| found.get(at))) {
        (Format::Org, Some(found)) => org::upgrade(&mut lines, found, link),
        (Format::Org, None) => org::append(&mut lines, link),
        (Format::Markdown, Some(found)) => markdown::upgrade(&mut lines, found, link),
        (Format::Markdown, None) => markdown::append(&mut lines, link),
    }
    // the mirror last: it stands before the section and moves nothing that is still looked at
    if let Some(session) = &link.session {
        match format {
            Format::Org => org::mirror(&mut lines, session),
            Format::Markdown => markdown::mirror(&mut lines, session),
        }
    }
    Ok(lines.bytes())
}

/// An entry and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    entry: Entry,
    /// Its first line.
    at: usize,
    /// The line behind its last.
    end: usize,
}

/// Whether an entry is the one that is to be linked. A conversation that is known is known by its id alone.
fn is_of(entry: &Entry, link: &Link) -> bool {
    let backend = entry.backend.as_ref().is_none_or(|backend| *backend == link.backend);
    match (&entry.session, &link.session) {
        (Some(theirs), Some(ours)) => backend && (theirs == ours || link.earlier.contains(theirs)),
        // its id is known, ours is not yet: it may be ours
        (Some(theirs), None) => backend && entry.worktree == link.worktree && link.earlier.contains(theirs),
        (None, _) => backend && entry.worktree == link.worktree,
    }
}

/// A value that says that there is none.
fn is_blank(value: &str) -> bool {
    value.is_empty() || matches!(value, "-" | "?") || (value.starts_with('<') && value.ends_with('>'))
}

#[cfg(test)]
mod tests;
