//! What a provider is made of: the words its file fills in.
//!
//! Each provider has a file of its own with one [`Spec`]; everything else here reads the specs and knows no provider by
//! name.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::Meaning;
use super::screen::Screen;
use super::signs::{Sight, Table};
use super::store::Store;

/// Everything that is known of one provider.
pub(super) struct Spec {
    pub(super) provider: Provider,
    pub(super) name: &'static str,
    /// The names of the program, the current one first.
    pub(super) binaries: &'static [&'static str],
    /// What `npx`, `uvx` and `node_modules` call it.
    pub(super) packages: &'static [&'static str],
    /// What `python -m` takes.
    pub(super) modules: &'static [&'static str],
    /// Commands of the program that are tools, not agents: they end by themselves or serve another program.
    pub(super) tools: &'static [&'static str],
    /// Commands and flags that make it answer one prompt and leave.
    pub(super) once: &'static [&'static str],
    pub(super) ids: Shape,
    pub(super) naming: Naming,
    /// How a new conversation is started: without an id, and with one where the program takes it.
    pub(super) launch: Launch,
    /// How one conversation is brought back; empty where the program has no exact way.
    pub(super) resume: &'static [&'static str],
    /// The options of a running agent that are given to it again at a resume.
    pub(super) kept: &'static [Kept],
    /// Where its folders are and what else it needs to come back as it was. No secret.
    pub(super) variables: &'static [&'static str],
    /// Whether a resume finds the conversation only from the folder it is filed under.
    pub(super) needs_cwd: bool,
    pub(super) store: Store,
    /// The hook events to ask for, as the provider's settings write them.
    pub(super) events: &'static [&'static str],
    /// What an event with this payload says.
    pub(super) meaning: fn(&str, &Value) -> Meaning,
    pub(super) look: Look,
}

/// In a list of arguments: where the conversation's id goes, alone or inside a word.
pub(super) const ID: &str = "{session_id}";

/// The same, as the user's settings may write it.
pub(super) const SHORT_ID: &str = "{session}";

/// Whether a word of a list of arguments has the id in it.
pub(super) fn has_id(word: &str) -> bool {
    word.contains(ID) || word.contains(SHORT_ID)
}

/// In a list of arguments: where the kept options go.
pub(super) const OPTIONS: &str = "{options}";

/// The arguments of a start.
pub(super) struct Launch {
    pub(super) plain: &'static [&'static str],
    /// With an id of our choice; empty where the program chooses itself.
    pub(super) chosen: &'static [&'static str],
}

/// How the arguments of a running agent name its conversation.
pub(super) struct Naming {
    pub(super) flags: &'static [&'static str],
    /// A command word whose first argument is the id.
    pub(super) word: Option<&'static str>,
    /// Words that make the id another conversation's.
    pub(super) forks: &'static [&'static str],
}

impl Naming {
    /// The arguments never name it.
    pub(super) const NONE: Self = Self { flags: &[], word: None, forks: &[] };
}

/// An option that survives a resume.
pub(super) struct Kept {
    pub(super) names: &'static [&'static str],
    pub(super) takes: Takes,
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    One,
    /// Every word up to the next option.
    Many,
    /// `key=value`; dropped when it names a secret.
    Setting,
}

/// An option without a value.
pub(super) const fn switch(names: &'static [&'static str]) -> Kept {
    Kept { names, takes: Takes::Nothing }
}

/// An option with one value.
pub(super) const fn value(names: &'static [&'static str]) -> Kept {
    Kept { names, takes: Takes::One }
}

/// An option with a list of values.
pub(super) const fn list(names: &'static [&'static str]) -> Kept {
    Kept { names, takes: Takes::Many }
}

/// An option with a `key=value`.
pub(super) const fn setting(names: &'static [&'static str]) -> Kept {
    Kept { names, takes: Takes::Setting }
}

/// How a screen of the provider is read.
pub(super) enum Look {
    /// By words that are on it.
    Words(Table),
    /// By rules of its own, from the title and the screen.
    Own(fn(&str, &Screen) -> Sight),
}
