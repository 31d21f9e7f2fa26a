//! The name this program was called by: its own, or `agent-session`, whose command line it then is.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// `ait`.
    Ait,
    /// The earlier session command line.
    AgentSession,
}

/// What may stand before the command too.
const GLOBAL: [&str; 2] = ["--host", "--state-dir"];
/// The agents of the earlier command line.
pub(super) const AGENTS: [&str; 3] = ["codex", "claude", "hermes"];

impl Face {
    /// By the first word this process was started with.
    pub(crate) fn ours() -> Self {
        std::env::args_os().next().map_or(Self::Ait, |called| Self::of(&called))
    }

    /// By a program's name or path.
    pub(crate) fn of(called: &OsStr) -> Self {
        match Path::new(called).file_name() {
            Some(name) if name == "agent-session" => Self::AgentSession,
            Some(_) | None => Self::Ait,
        }
    }

    /// The words as the parser wants them: what stands before the command goes behind it, as that command line allows.
    pub(crate) fn arranged(self, arguments: &[OsString]) -> Vec<OsString> {
        let mut rest = arguments.iter().cloned();
        let mut arranged: Vec<OsString> = rest.next().into_iter().collect();
        let mut before = Vec::new();
        let mut rest = rest.peekable();
        if self == Self::AgentSession {
            let is_ours = |word: &str, name: &str| {
                word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            };
            let global = |word: &OsString| {
                word.to_str().is_some_and(|word| GLOBAL.iter().any(|name| is_ours(word, name)))
            };
            while let Some(word) = rest.next_if(global) {
                let value = GLOBAL.iter().any(|name| word == *name).then(|| rest.next()).flatten();
                before.push(word);
                before.extend(value);
            }
        }
        arranged.extend(rest.next());
        arranged.extend(before);
        arranged.extend(rest);
        arranged
    }

    /// Whether it has this command; a word that begins with a dash is none.
    pub(crate) fn has(self, command: &OsStr) -> bool {
        const COMMANDS: [&str; 12] = [
            "activity",
            "start",
            "run",
            "list",
            "command",
            "glance",
            "resume",
            "send",
            "attach",
            "logs",
            "delete",
            "completion",
        ];
        // what this program starts itself by the name it was called
        const INNER: [&str; 8] =
            ["exec", "runner", "coordinate", "frozenagent", "hold", "tap", "tether", "hook"];
        let option = command.to_str().is_some_and(|word| word.starts_with('-'));
        self == Self::Ait || option || COMMANDS.iter().chain(&INNER).any(|own| command == *own)
    }

    /// Whether it has this kind of agent.
    pub(super) fn knows(self, kind: &str) -> bool {
        self == Self::Ait || AGENTS.contains(&kind)
    }

    /// The program's name in hints.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Ait => "ait",
            Self::AgentSession => "agent-session",
        }
    }

    /// The schema of a command's answer.
    pub(super) fn schema(self, command: &str) -> String {
        match self {
            Self::Ait => format!("cli.ait.{command}.v1"),
            Self::AgentSession => format!("cli.agent-session.{command}.v1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_wherever_the_program_lies() {
        for (called, face) in [
            ("ait", Face::Ait),
            ("/opt/bin/agent-session", Face::AgentSession),
            ("agent-session", Face::AgentSession),
            ("agent-session-2", Face::Ait),
        ] {
            assert_eq!(Face::of(OsStr::new(called)), face, "{called}");
        }
        let words = ["agent-session", "--host", "box", "list", "--format", "json"].map(OsString::from);
        let arranged = ["agent-session", "list", "--host", "box", "--format", "json"].map(OsString::from);
        assert_eq!(Face::AgentSession.arranged(&words), arranged);
        assert_eq!(Face::Ait.arranged(&words), words);
        let words = ["agent-session", "--state-dir=/x", "--host", "box", "list"].map(OsString::from);
        let arranged = ["agent-session", "list", "--state-dir=/x", "--host", "box"].map(OsString::from);
        assert_eq!(Face::AgentSession.arranged(&words), arranged);
        assert!(Face::Ait.knows("gemini") && !Face::AgentSession.knows("gemini"));
        assert!(!Face::AgentSession.has(OsStr::new("freeze")) && Face::Ait.has(OsStr::new("freeze")));
        assert_eq!(Face::Ait.schema("list"), "cli.ait.list.v1");
        assert_eq!(Face::AgentSession.schema("error"), "cli.agent-session.error.v1");
    }
}
