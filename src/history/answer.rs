//! What a question about conversations can be answered with, and the reason words.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::provider::Provider;

/// One conversation on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Whose it is.
    pub provider: Provider,
    /// The session id that a resume is given.
    pub id: String,
    /// The folder it is filed under, as the provider wrote it; `None` where the format has none.
    pub cwd: Option<PathBuf>,
    /// When it began, as the provider wrote it.
    pub started: Option<Timestamp>,
    /// When it last changed.
    pub changed: Option<Timestamp>,
    /// The file that holds it (a database for some), links resolved.
    pub file: PathBuf,
    /// Its title, where the provider keeps one at hand.
    pub title: Option<String>,
}

/// Where the conversation of an id is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Located {
    /// It is there.
    Present {
        /// The file that holds it, links resolved.
        path: PathBuf,
        /// Whether the provider finds it when it is resumed in the asked-for folder. Providers that find an id from
        /// anywhere: always.
        files_under_cwd: bool,
        /// The folder it is filed under: where to resume it.
        cwd: Option<PathBuf>,
        /// The id it goes by now, where the provider gave it another (Hermes, when it condenses a conversation).
        now_id: Option<String>,
    },
    /// Several files say they are it, and nothing tells which one a resume would take.
    Ambiguous {
        /// All of them.
        candidates: Vec<Candidate>,
    },
    /// The store was read, and it is not there.
    Missing {
        /// Why not.
        why: Miss,
    },
    /// It cannot be told.
    Unknown {
        /// What stood in the way.
        why: Doubt,
    },
}

/// One of several that may be meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Its session id.
    pub id: String,
    /// The file that holds it, links resolved.
    pub path: PathBuf,
}

/// Which conversation fits a folder and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Found {
    /// Exactly one.
    One(Box<Conversation>),
    /// More than one; nothing here tells which is meant.
    Ambiguous(Vec<Conversation>),
    /// The store was read, and none fits.
    Missing(Miss),
    /// Part of the store could not be read, so one or none is not proven.
    Unknown(Doubt),
}

/// Why a conversation is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Miss {
    /// The id is none of this provider's.
    BadId,
    /// The provider keeps nothing on this machine.
    NoStore,
    /// The store holds no such conversation.
    NoConversation,
    /// The file is there and nothing was said in it: the provider does not resume it.
    NoTurn,
    /// The file of that name holds another conversation.
    OtherId,
    /// It is a part of another conversation (a sub-agent's), which no resume takes.
    SubSession,
    /// It was put into the provider's archive, where a resume does not look.
    Archived,
    /// All that fit belong to other records.
    Claimed,
}

impl Miss {
    /// The reason word, for scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::BadId => "bad_id",
            Self::NoStore => "no_store",
            Self::NoConversation => "no_conversation",
            Self::NoTurn => "no_turn",
            Self::OtherId => "other_id",
            Self::SubSession => "sub_session",
            Self::Archived => "archived",
            Self::Claimed => "claimed",
        }
    }
}

/// Why it cannot be told whether a conversation is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// Where the home is was not recorded.
    #[error("the agent's HOME is not known")]
    NoHome,
    /// A variable names a folder from where the agent was started, which is not recorded.
    #[error("{name} is a relative path: to which folder is not known")]
    Relative {
        /// The variable.
        name: &'static str,
    },
    /// Nothing is known of where this provider keeps its conversations.
    #[error("where {kind} keeps its conversations is not known")]
    NoRule {
        /// The provider as it was named.
        kind: String,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A link leads out of the store; it is not followed.
    #[error("{} leads out of the store", path.display())]
    LeadsOut {
        /// The link.
        path: PathBuf,
    },
    /// More than is read of one file or folder.
    #[error("{} is too large to look through", path.display())]
    TooMuch {
        /// Which.
        path: PathBuf,
    },
    /// The file is not of a form that is known.
    #[error("{} is of no known form: {why}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The database could not be read: it is broken, or its owner wrote to it all the while.
    #[error("cannot read the database {}: {why}", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
}

impl Doubt {
    /// The reason word, for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoHome => "no_home",
            Self::Relative { .. } => "relative",
            Self::NoRule { .. } => "no_rule",
            Self::Unreadable { .. } => "unreadable",
            Self::LeadsOut { .. } => "leads_out",
            Self::TooMuch { .. } => "too_much",
            Self::Malformed { .. } => "malformed",
            Self::Database { .. } => "database",
        }
    }
}

/// All conversations that were found, and what could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discovered {
    /// Newest change first.
    pub conversations: Vec<Conversation>,
    /// What could not be read: what lies there is missing above.
    pub doubts: Vec<Doubt>,
}

/// A look-up inside a provider's module.
pub(super) type Looked = Result<Located, Doubt>;

impl Located {
    /// A look-up's answer: a doubt is an answer too.
    pub(super) fn of(looked: Looked) -> Self {
        looked.unwrap_or_else(|why| Self::Unknown { why })
    }

    /// There, under the id that was asked for.
    pub(super) fn present(path: PathBuf, files_under_cwd: bool, cwd: Option<PathBuf>) -> Looked {
        Ok(Self::Present { path, files_under_cwd, cwd, now_id: None })
    }

    /// Several files for one id.
    pub(super) fn ambiguous(id: &str, paths: impl IntoIterator<Item = PathBuf>) -> Looked {
        let mut candidates: Vec<Candidate> =
            paths.into_iter().map(|path| Candidate { id: id.to_owned(), path }).collect();
        candidates.sort();
        Ok(Self::Ambiguous { candidates })
    }

    /// Not there.
    pub(super) fn missing(why: Miss) -> Looked {
        Ok(Self::Missing { why })
    }
}

/// Whether two folders are the same: by name, or where both are there by where they really lie.
pub(super) fn same_folder(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| path.components().collect::<PathBuf>();
    plain(one) == plain(other)
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
