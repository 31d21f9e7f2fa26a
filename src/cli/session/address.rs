//! Which session is meant: by its id, by a name that is its alone, by a beginning that is. Never by a name of tmux.
//!
//! Everything is matched against what the store and the archive hold: no word of the user ever becomes a path.

use std::collections::HashSet;
use std::sync::Arc;

use super::envelope::Trouble;
use super::face::Face;
use crate::cli::Exit;
use crate::record::{Record, RecordId, Session, Stamp};
use crate::store::{self, Archive, Listed, Origin, Snapshot, Store};

/// A session that was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its record, as it is or as it was archived.
    pub(super) record: Arc<Record>,
    /// When it was archived, if it is.
    pub(super) archived: Option<(Stamp, String)>,
}

/// Which sessions a command sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// The earlier command line has three kinds of agents.
    pub(super) face: Face,
    /// Only those that are kept apart by this folder.
    pub(super) folder: Option<String>,
}

impl Scope {
    /// All there are.
    const ALL: Self = Self { face: Face::Ait, folder: None };

    fn sees(&self, kind: &str, session: Option<&Session>) -> bool {
        let apart = session.and_then(|session| session.state_dir.as_ref());
        self.face.knows(kind) && self.folder.as_ref().is_none_or(|folder| apart == Some(folder))
    }
}

/// All that may be addressed.
pub(super) struct Book {
    snapshot: Arc<Snapshot>,
    lines: Vec<Listed>,
    scope: Scope,
}

/// One that may be addressed.
struct Entry<'a> {
    id: RecordId,
    kind: &'a str,
    session: Option<&'a Session>,
    line: Option<&'a Listed>,
}

impl Book {
    /// Reads the store and the archive's index.
    pub(super) fn open(store: &Store) -> Result<Self, Trouble> {
        let snapshot = store.read()?;
        let files = store.paths().files();
        let held: HashSet<RecordId> = snapshot.records.iter().map(|record| record.id).collect();
        // what was dropped is not a session any more, only a memory of its conversation
        let mut lines = store::without(Archive::new(&files).list()?, &held);
        lines.retain(|line| line.reason != store::DROPPED);
        Ok(Self { snapshot, lines, scope: Scope::ALL })
    }

    /// Of them, those that are seen.
    pub(super) fn seen_by(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Every session of the store, then of the archive: those that were started here, or all agents.
    pub(super) fn all(&self, store: &Store, all: bool) -> Result<Vec<Found>, Trouble> {
        let mut found: Vec<Found> = self
            .snapshot
            .records
            .shared()
            .filter(|record| all || record.ait.session.is_some())
            .filter(|record| self.scope.sees(&record.agent_kind, record.ait.session.as_ref()))
            .map(|record| Found { record: Arc::clone(record), archived: None })
            .collect();
        let listed = self.lines.iter().filter(|line| all || line.session.is_some());
        let seen = listed.filter(|line| self.scope.sees(kind_of(line), line.session.as_ref()));
        let lines: Vec<Listed> = seen.cloned().collect();
        let files = store.paths().files();
        for archived in Archive::new(&files).whole(&lines)? {
            let ended = Some((archived.at, archived.reason));
            found.push(Found { record: Arc::new(archived.record), archived: ended });
        }
        Ok(found)
    }

    /// What is broken, for a person.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Origin::Previous(fault) = &self.snapshot.origin {
            warnings.push(format!(
                "the store is corrupt ({fault}); the generation before is shown; `ait store repair` mends it"
            ));
        }
        for bad in &self.snapshot.bad {
            let id = bad.id.as_deref().unwrap_or("without an id");
            warnings.push(format!(
                "record {id} on line {} is broken and left out: {}; `ait store repair` mends it",
                bad.line, bad.reason
            ));
        }
        warnings
    }

    /// Whether a session, seen or not, goes by this name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.entries().any(|entry| entry.is(name, Face::Ait))
    }

    /// The one session that is meant.
    pub(super) fn find(&self, store: &Store, word: &str) -> Result<Found, Trouble> {
        let exact: Vec<Entry<'_>> = self.seen().filter(|entry| entry.is(word, self.scope.face)).collect();
        let entry = match &exact[..] {
            [one] => one,
            [] => &self.by_beginning(word)?,
            several => return Err(ambiguous(word, several.len())),
        };
        if let Some(record) = self.snapshot.records.get(entry.id) {
            return Ok(Found { record: Arc::clone(record), archived: None });
        }
        let files = store.paths().files();
        let whole =
            entry.line.map(|line| Archive::new(&files).whole(std::slice::from_ref(line))).transpose()?;
        match whole.into_iter().flatten().next() {
            Some(archived) => Ok(Found {
                archived: Some((archived.at, archived.reason)),
                record: Arc::new(archived.record),
            }),
            None => Err(self.not_found(word)),
        }
    }

    /// The session that has this conversation, of this kind of agent where that is known; of several in the archive the latest.
    pub(super) fn of_conversation(
        &self,
        store: &Store,
        kind: Option<&str>,
        id: &str,
    ) -> Result<Option<Found>, Trouble> {
        let is_of = |record: &Record| {
            record.codeagent_session_id == id && kind.is_none_or(|kind| record.agent_kind == kind)
        };
        if let Some(record) = self.snapshot.records.shared().find(|record| is_of(record)) {
            return Ok(Some(Found { record: Arc::clone(record), archived: None }));
        }
        let lines: Vec<Listed> =
            self.lines.iter().filter(|line| line.codeagent_session_id == id).cloned().collect();
        let files = store.paths().files();
        let ended = Archive::new(&files).whole(&lines)?.into_iter().filter(|ended| is_of(&ended.record));
        Ok(ended
            .max_by_key(|ended| ended.at)
            .map(|ended| Found { archived: Some((ended.at, ended.reason)), record: Arc::new(ended.record) }))
    }

    fn by_beginning(&self, word: &str) -> Result<Entry<'_>, Trouble> {
        let may_be = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if word.is_empty() || !word.chars().all(may_be) {
            let message = format!("{word:?} is no session id");
            return Err(Trouble::new(Exit::USAGE, "invalid-session-id", message).detail("id", word));
        }
        let mut begun: Vec<Entry<'_>> =
            self.seen().filter(|entry| entry.begins(word, self.scope.face)).collect();
        match (begun.pop(), begun.len()) {
            (Some(one), 0) => Ok(one),
            (Some(_), others) => Err(ambiguous(word, others + 1)),
            (None, _) => Err(self.not_found(word)),
        }
    }

    fn not_found(&self, word: &str) -> Trouble {
        let whole = self.snapshot.bad.is_empty() && !matches!(self.snapshot.origin, Origin::Previous(_));
        let trouble = not_found(word);
        if whole {
            trouble
        } else {
            trouble.hint("the store is damaged, it may be there: `ait store repair`")
        }
    }

    fn seen(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries().filter(|entry| self.scope.sees(entry.kind, entry.session))
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let live = self.snapshot.records.iter().map(|record| Entry {
            id: record.id,
            kind: &record.agent_kind,
            session: record.ait.session.as_ref(),
            line: None,
        });
        let ended = self.lines.iter().map(|line| Entry {
            id: line.id,
            kind: kind_of(line),
            session: line.session.as_ref(),
            line: Some(line),
        });
        live.chain(ended)
    }
}

impl Entry<'_> {
    fn is(&self, word: &str, face: Face) -> bool {
        let called = match face {
            Face::Ait => self.session.is_some_and(|session| session.is_called(word)),
            Face::AgentSession => self.name() == Some(word),
        };
        called || self.id.to_string() == word
    }

    /// The earlier command line tells a session by its name alone: a beginning of what it never told is none of its.
    fn begins(&self, word: &str, face: Face) -> bool {
        let begun = |name: &str| name.starts_with(word);
        match (face, self.name()) {
            (Face::AgentSession, Some(name)) => begun(name),
            (Face::AgentSession, None) => begun(&self.id.to_string()),
            (Face::Ait, name) => {
                let title = self.session.and_then(|session| session.title.as_deref());
                begun(&self.id.to_string()) || name.into_iter().chain(title).any(begun)
            }
        }
    }

    fn name(&self) -> Option<&str> {
        self.session.and_then(|session| session.name.as_deref())
    }
}

/// The kind of agent: `claude` of `claude/opus`.
fn kind_of(line: &Listed) -> &str {
    line.agent_string.split('/').next().unwrap_or_default()
}

fn ambiguous(word: &str, matches: usize) -> Trouble {
    let message = format!("{word} begins {matches} sessions");
    let trouble = Trouble::new(Exit::USAGE, "ambiguous-session-id", message);
    trouble.detail("id", word).detail("matches", matches).hint("give more of it; `ait list --all` shows them")
}

fn not_found(word: &str) -> Trouble {
    let message = format!("there is no session {word}");
    let trouble = Trouble::new(Exit::FAILED, "session-not-found", message);
    trouble.detail("id", word).hint("`ait list --all` shows them")
}
