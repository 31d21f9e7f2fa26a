//! Conversations on disk: every provider's store, every generation of it, read without leaving a trace.
//!
//! The stores are made here by hand, as the providers write them; nothing of the machine's own homes is looked at.

mod claude;
mod codex;
mod cost;
mod databases;
mod discover;
mod live;
mod others;
mod untouched;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ait::history::{self, Conversation, Environment, Located};
use ait::provider::Provider;
use tempfile::TempDir;

pub(super) const ONE: &str = "3c02bdca-fa8d-4808-bac6-dc118bbcf4d7";
pub(super) const TWO: &str = "7d1f2c55-0f6b-4f0e-9f3e-3f0a5be1c2aa";
/// Of version 7, from 2026-11-29T20:48:51Z.
pub(super) const TIMED: &str = "01a22911-54d8-72e2-93e7-59f623040e40";

/// A home full of providers' stores.
#[derive(Debug)]
pub(super) struct Stores {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

impl Stores {
    pub(super) fn new() -> Stores {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().to_string_lossy().into_owned();
        Stores { folder, variables: BTreeMap::from([("HOME".to_owned(), home)]) }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(super) fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        self.variables.insert(name.to_owned(), value.as_ref().to_string_lossy().into_owned());
    }

    pub(super) fn env(&self) -> Environment {
        Environment::recorded(&self.variables)
    }

    /// Writes a file below the home, its folders made.
    pub(super) fn file(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home().join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A database below the home, in WAL mode when `wal` is set. With the connection that is given back still open, a WAL
    /// database has its log beside it.
    pub(super) fn database(&self, below: &str, wal: bool, statements: &str) -> rusqlite::Connection {
        let path = self.home().join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let connection = rusqlite::Connection::open(path).unwrap();
        if wal {
            connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;").unwrap();
        }
        connection.execute_batch(statements).unwrap();
        connection
    }

    pub(super) fn locate(&self, kind: &str, id: &str, cwd: impl AsRef<Path>) -> Located {
        history::locate(kind, id, cwd.as_ref(), &self.env())
    }

    /// The answer as words: `here PATH`, `elsewhere CWD PATH`, `missing WORD`, `unknown WORD`, `ambiguous N`.
    pub(super) fn said(&self, kind: &str, id: &str, cwd: impl AsRef<Path>) -> String {
        let home = self.home();
        let short = |path: &Path| path.strip_prefix(&home).unwrap_or(path).display().to_string();
        match self.locate(kind, id, cwd) {
            Located::Present { path, files_under_cwd: true, now_id: None, .. } => {
                format!("here {}", short(&path))
            }
            Located::Present { now_id: Some(now), .. } => format!("now {now}"),
            Located::Present { path, cwd, .. } => {
                format!("elsewhere {} {}", cwd.unwrap_or_default().display(), short(&path))
            }
            Located::Missing { why } => format!("missing {}", why.word()),
            Located::Unknown { why } => format!("unknown {}", why.word()),
            Located::Ambiguous { candidates } => format!("ambiguous {}", candidates.len()),
        }
    }

    /// The ids of a provider's conversations in a folder, or anywhere, sorted; nothing may be in doubt.
    #[track_caller]
    pub(super) fn ids(&self, provider: Provider, cwd: Option<&str>) -> Vec<String> {
        let mut ids: Vec<String> = self.all(provider, cwd).into_iter().map(|found| found.id).collect();
        ids.sort();
        ids
    }

    #[track_caller]
    pub(super) fn all(&self, provider: Provider, cwd: Option<&str>) -> Vec<Conversation> {
        let found = history::discover(Some(provider), cwd.map(Path::new), &self.env());
        assert!(found.doubts.is_empty(), "{:?}", found.doubts);
        found.conversations
    }

    /// A conversation of Claude Code in the folder `slug`, as it really begins: lines without a `cwd` first.
    pub(super) fn claude(&self, slug: &str, id: &str, cwd: &str) -> PathBuf {
        self.file(&format!(".claude/projects/{slug}/{id}.jsonl"), claude_lines(id, cwd))
    }
}

/// The lines of a conversation of Claude Code.
pub(super) fn claude_lines(id: &str, cwd: &str) -> String {
    let line = |value: serde_json::Value| format!("{value}\n");
    line(serde_json::json!({"type": "mode", "mode": "default", "sessionId": id}))
        + &line(serde_json::json!({"type": "permission-mode", "permissionMode": "default", "sessionId": id}))
        + &line(serde_json::json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}))
        + &line(serde_json::json!({"type": "ai-title", "aiTitle": "Fix the parser", "sessionId": id}))
        + &line(serde_json::json!({
            "type": "user", "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": cwd,
            "sessionId": id, "version": "2.1.332", "gitBranch": "main", "uuid": "u",
            "timestamp": "2026-11-29T20:53:51.057Z", "message": {"role": "user", "content": "hello"}
        }))
        + &line(serde_json::json!({"type": "a-kind-of-next-year", "what": [1, 2]}))
        + "{\"type\":\"assistant\",\"mess"
}
