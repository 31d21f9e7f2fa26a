//! Where a provider keeps its conversations: the roots and how a file below them is named. Only data; who reads the
//! disk reads this.

/// Where a store begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// The variable of the agent's environment that moves it; `HOME` where nothing does.
    pub variable: &'static str,
    /// The path below the variable's folder; empty when the variable names the root itself.
    pub below: &'static str,
}

/// A provider's conversations on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// The possible roots: the first whose variable is set counts. Empty for a store elsewhere than on this machine.
    pub roots: &'static [Root],
    /// How a conversation lies below the root.
    pub layout: Layout,
}

/// The forms of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `projects/<slug of the cwd>/<id>.jsonl` (Claude).
    Slugs,
    /// `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl[.zst]` and `archived_sessions/` (Codex).
    Rollouts,
    /// `tmp/<project>/chats/session-<time>-<id8>.jsonl` with a map of projects (Gemini).
    Chats,
    /// `projects/<slug>/chats/<id>.jsonl` (Qwen).
    SlugChats,
    /// `session-state/<id>/events.jsonl` (Copilot).
    Folders,
    /// `--<cwd>--/<time>_<id>.jsonl` (pi).
    Dashed,
    /// One database: this file below the root and this table of it, with these columns.
    Database {
        /// The file, below the root.
        file: &'static str,
        /// The table of conversations.
        table: &'static str,
        /// Its column of ids.
        id: &'static str,
        /// Its column of folders; empty where it has none.
        cwd: &'static str,
    },
    /// Known only in outline: nothing is looked up.
    Unread,
}

impl Store {
    /// Nothing that could be read.
    pub(super) const NONE: Self = Self { roots: &[], layout: Layout::Unread };
}
