//! The conversations that providers keep on disk, read only.
//!
//! Answers three questions: where is the conversation of this id ([`locate`]), which conversation does this process have
//! ([`registry`], [`opened_by`]), and which are there at all ([`discover`], [`search`]). One module per provider's format.
//!
//! Refuses to: create, change or remove anything under a provider's home; follow a link out of it; guess. Several that fit
//! are [`Located::Ambiguous`], never the newest; what cannot be read is [`Located::Unknown`], never missing.

mod answer;
mod claude;
mod codex;
mod disk;
mod environment;
mod opened;

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;

use crate::provider::Provider;
use crate::record::ProcessId;

pub use answer::{Conversation, Discovered, Doubt, Found, Located, Miss};
pub use claude::{Registry, Status};
pub use disk::Cost;
use disk::Disk;
pub use environment::Environment;

/// Length of a session id.
const ID_LIMIT: usize = 512;

/// The providers whose stores are known.
pub const KNOWN: &[Provider] = &[Provider::Claude, Provider::Codex];

/// Where the conversation `session_id` of the provider `kind` is, for an agent that worked in `cwd` with the environment
/// `env`. Providers without a known store are [`Doubt::NoRule`].
pub fn locate(kind: &str, session_id: &str, cwd: &Path, env: &Environment) -> Located {
    counted(kind, session_id, cwd, env).0
}

/// The same, and what it cost.
pub fn counted(kind: &str, session_id: &str, cwd: &Path, env: &Environment) -> (Located, Cost) {
    let disk = Disk::default();
    let located = match Provider::named(kind) {
        _ if !is_id(session_id) => Located::Missing { why: Miss::BadId },
        Some(Provider::Claude) => Located::of(claude::locate(&disk, session_id, cwd, env)),
        Some(Provider::Codex) => Located::of(codex::locate(&disk, session_id, cwd, env)),
        Some(_) | None => Located::Unknown { why: Doubt::NoRule { kind: kind.to_owned() } },
    };
    (located, disk.cost())
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

/// The session id of the one Codex conversation that this process or a descendant has open. `None` when there is none, or
/// several; the shared daemon of Codex has those of many panes open, so ask it of a process that runs without it.
#[must_use]
pub fn opened_by(pid: i32) -> Option<String> {
    opened::opened_by(pid)
}

/// All conversations of a provider, or of all known ones, filed under `cwd`, or anywhere.
#[must_use]
pub fn discover(provider: Option<Provider>, cwd: Option<&Path>, env: &Environment) -> Discovered {
    let disk = Disk::default();
    let mut all = Discovered::default();
    for known in KNOWN.iter().filter(|known| provider.is_none_or(|asked| asked == **known)) {
        let doubts = &mut all.doubts;
        let found = match known {
            Provider::Claude => claude::discover(&disk, cwd, env, doubts),
            Provider::Codex => codex::discover(&disk, cwd, env, doubts),
            _ => Ok(Vec::new()),
        };
        match found {
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
    if !KNOWN.contains(&provider) {
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
