//! The conversations that providers keep on disk, read only.
//!
//! Answers three questions: where is the conversation of this id ([`locate`]), which conversation does this process have
//! ([`registry`], [`opened_by`]), and which are there at all ([`discover`], [`search`]). One module per provider's format.
//!
//! Refuses to: create, change or remove anything under a provider's home; follow a link out of it; guess. Several that fit
//! are [`Located::Ambiguous`], never the newest; what cannot be read is [`Located::Unknown`], never missing.

mod answer;
mod below;
mod claude;
mod codex;
mod copilot;
mod database;
mod disk;
mod environment;
mod gemini;
mod hermes;
mod memory;
mod opencode;
mod opened;
mod pi;
mod qwen;
mod slug;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::provider::Provider;
use crate::record::ProcessId;

use answer::Looked;
pub use answer::{Candidate, Conversation, Discovered, Doubt, Found, Located, Miss};
pub use claude::{Registry, Status};
pub use codex::Rollout;
pub use disk::Cost;
use disk::Disk;
pub use environment::Environment;
pub use memory::{Memory, RETRY};

/// Length of a session id.
const ID_LIMIT: usize = 512;

/// Finds one conversation by its id.
type Locate = fn(&Disk, &str, &Path, &Environment) -> Looked;
/// Lists those of a folder, or all; what could not be read is told beside.
type Discover = fn(&Disk, Option<&Path>, &Environment, &mut Vec<Doubt>) -> Result<Vec<Conversation>, Doubt>;

/// How a provider's store is read.
struct Format {
    provider: Provider,
    locate: Locate,
    discover: Discover,
}

/// The providers whose stores are known.
const FORMATS: &[Format] = &[
    Format { provider: Provider::Claude, locate: claude::locate, discover: claude::discover },
    Format { provider: Provider::Codex, locate: codex::locate, discover: codex::discover },
    Format { provider: Provider::Hermes, locate: hermes::locate, discover: hermes::discover },
    Format { provider: Provider::Gemini, locate: gemini::locate, discover: gemini::discover },
    Format { provider: Provider::OpenCode, locate: opencode::locate, discover: opencode::discover },
    Format { provider: Provider::Copilot, locate: copilot::locate, discover: copilot::discover },
    Format { provider: Provider::Qwen, locate: qwen::locate, discover: qwen::discover },
    Format { provider: Provider::Pi, locate: pi::locate, discover: pi::discover },
];

/// The providers whose stores are known.
pub fn known() -> impl Iterator<Item = Provider> {
    FORMATS.iter().map(|format| format.provider)
}

/// Where the conversation `session_id` of the provider `kind` is, for an agent that worked in `cwd` with the environment
/// `env`. Providers without a known store are [`Doubt::NoRule`].
pub fn locate(kind: &str, session_id: &str, cwd: &Path, env: &Environment) -> Located {
    counted(kind, session_id, cwd, env).0
}

/// The same, and what it cost.
pub fn counted(kind: &str, session_id: &str, cwd: &Path, env: &Environment) -> (Located, Cost) {
    let disk = Disk::default();
    let provider = Provider::named(kind);
    let format = FORMATS.iter().find(|format| Some(format.provider) == provider);
    let located = match format {
        _ if !is_id(session_id) => Located::Missing { why: Miss::BadId },
        Some(format) => Located::of((format.locate)(&disk, session_id, cwd, env)),
        None => Located::Unknown { why: Doubt::NoRule { kind: kind.to_owned() } },
    };
    (located, disk.cost())
}

/// Where the conversation `session_id` of a provider of the user's is, which keeps them in `folder`: an absolute path, or one
/// from `~/`.
pub fn locate_below(folder: &str, session_id: &str, env: &Environment) -> Located {
    if !is_id(session_id) {
        return Located::Missing { why: Miss::BadId };
    }
    Located::of(below::locate(&Disk::default(), folder, session_id, env))
}

/// What can be the name of a file and the argument of a program: no path, no option, no control character.
fn is_id(id: &str) -> bool {
    let plain = |c: char| !c.is_control() && c != '/' && c != '\\';
    !id.is_empty() && id.len() <= ID_LIMIT && !id.starts_with(['-', '.']) && id.chars().all(plain)
}

/// What Claude Code's own list says of a running process: its session id and what it does. `None` when there is no entry, or
/// it is of an earlier process.
#[must_use]
pub fn registry(process: &ProcessId, env: &Environment) -> Option<Registry> {
    claude::registry(&Disk::default(), process, env)
}

/// The folder of that list.
#[must_use]
pub fn registry_folder(env: &Environment) -> Option<PathBuf> {
    claude::registry_folder(env)
}

/// The folder below which Codex keeps its conversations, by day.
#[must_use]
pub fn rollouts(env: &Environment) -> Option<PathBuf> {
    codex::rollouts(env)
}

/// The id of the conversation that a file is the rollout of, by its name.
#[must_use]
pub fn rollout_id(path: &Path) -> Option<&str> {
    codex::id_in(path.file_name()?.to_str()?)
}

/// The session id of the one Codex conversation that this process or a descendant has open. `None` when there is none, or
/// several; the shared daemon of Codex has those of many panes open, so ask it of a process that runs without it.
#[must_use]
pub fn opened_by(pid: i32) -> Option<String> {
    opened::opened_by(pid)
}

/// Whether this process itself, and none below it, has the Codex conversation `session_id` open: its rollout or its lock.
#[must_use]
pub fn has_open(pid: i32, session_id: &str) -> bool {
    is_id(session_id) && opened::has_open(pid, session_id)
}

/// Every Codex conversation that this process itself has open: the rollout or the lock of it.
#[must_use]
pub fn open_in(pid: i32) -> BTreeSet<String> {
    opened::open_in(pid)
}

/// All conversations of a provider, or of all known ones, filed under `cwd`, or anywhere.
#[must_use]
pub fn discover(provider: Option<Provider>, cwd: Option<&Path>, env: &Environment) -> Discovered {
    let disk = Disk::default();
    let mut all = Discovered::default();
    for format in FORMATS.iter().filter(|format| provider.is_none_or(|asked| asked == format.provider)) {
        match (format.discover)(&disk, cwd, env, &mut all.doubts) {
            Ok(found) => all.conversations.extend(found),
            Err(doubt) => all.doubts.push(doubt),
        }
    }
    all.conversations.sort_by(|one, other| (other.changed, &one.id).cmp(&(one.changed, &other.id)));
    all
}

/// What is known of a conversation whose id is not.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The folder it is filed under.
    pub cwd: &'a Path,
    /// It began no earlier than this.
    pub since: Option<Timestamp>,
    /// Ids that belong to other records.
    pub claimed: &'a BTreeSet<String>,
}

/// The conversation that fits; several are said to be several.
pub fn search(provider: Provider, wanted: &Wanted<'_>, env: &Environment) -> Found {
    if !known().any(|known| known == provider) {
        return Found::Unknown(Doubt::NoRule { kind: provider.name().to_owned() });
    }
    let Discovered { conversations, doubts } = discover(Some(provider), Some(wanted.cwd), env);
    let young = |found: &Conversation| match (wanted.since, found.started) {
        (Some(since), Some(started)) => started >= since,
        (Some(_) | None, _) => true,
    };
    let (claimed, mut free): (Vec<_>, Vec<_>) =
        conversations.into_iter().filter(young).partition(|found| wanted.claimed.contains(&found.id));
    match (free.len(), doubts.into_iter().next()) {
        (0 | 1, Some(doubt)) => Found::Unknown(doubt),
        (0, None) if claimed.is_empty() => Found::Missing(Miss::NoConversation),
        (0, None) => Found::Missing(Miss::Claimed),
        (1, None) => Found::One(Box::new(free.remove(0))),
        (_, _) => Found::Ambiguous(free),
    }
}
