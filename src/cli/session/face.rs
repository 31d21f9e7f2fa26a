//! The name this program was called by: its own, or `agent-session`, whose command line it then is.

use std::ffi::OsStr;
use std::path::Path;

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// `ait`.
    Ait,
    /// The earlier session command line.
    AgentSession,
}

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

    /// The program's name in hints.
    pub(super) fn program(self) -> &'static str {
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
        assert_eq!(Face::Ait.schema("list"), "cli.ait.list.v1");
        assert_eq!(Face::AgentSession.schema("error"), "cli.agent-session.error.v1");
    }
}
