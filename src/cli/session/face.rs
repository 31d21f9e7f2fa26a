//! The name this program was called by: its own, or `agent-session`, whose command line it then is.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;

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
/// The commands of the earlier command line.
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
/// What its help begins with.
const ABOUT: &str = "Starts, shows and steers coding agents, each in a tmux session of its own";
/// What its help ends with.
const AFTER: &str = "Examples:\n  agent-session start --agent codex --title 'Fix API' --prompt-file task.md\n  \
                     agent-session send 20260711-101500-codex-fix-api --text 'Go on' --key enter\n  \
                     agent-session list --format json\n\n\
                     --state-dir and --host may stand before the command too.\n\n\
                     Environment:\n  AGENT_SESSION_STATE_DIR   the folder sessions are kept apart by\n  \
                     AGENT_SESSION_HOST        this machine as others reach it by ssh\n  \
                     AGENT_SESSION_TMUX_BIN    the tmux that is run\n  \
                     AGENT_SESSION_CODEX_BIN, AGENT_SESSION_CLAUDE_BIN, AGENT_SESSION_HERMES_BIN   the agents' programs\n\n\
                     Exit codes: 0 done, 1 failed, 64 usage, 65 bad data, 69 unavailable, 70 internal.";
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

    /// The words as the parser wants them: `help COMMAND` is `COMMAND --help`; for the earlier command line, what stands before
    /// the command goes behind it.
    pub(crate) fn arranged(self, arguments: &[OsString]) -> Vec<OsString> {
        let mut rest = arguments.iter().cloned();
        let mut arranged: Vec<OsString> = rest.next().into_iter().collect();
        let mut before = Vec::new();
        let mut rest = rest.peekable();
        if self == Self::Ait && rest.next_if(|word| word == "help").is_some() {
            arranged.extend(rest);
            arranged.push("--help".into());
            return arranged;
        }
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
        // what this program starts itself by the name it was called, and its own name for `completion`
        const INNER: [&str; 9] =
            ["exec", "runner", "coordinate", "frozenagent", "hold", "tap", "tether", "hook", "completions"];
        let option = command.to_str().is_some_and(|word| word.starts_with('-'));
        self == Self::Ait || option || COMMANDS.iter().chain(&INNER).any(|own| command == *own)
    }

    /// The parser's command as its help and its completions tell it: without what it does not have, in its own words.
    pub(crate) fn dressed(self, mut command: Command) -> Command {
        if self == Self::Ait {
            return command;
        }
        let strange = |own: &&Command| own.get_name() != "completions" && !COMMANDS.contains(&own.get_name());
        let strange: Vec<String> =
            command.get_subcommands().filter(strange).map(|own| own.get_name().to_owned()).collect();
        for name in strange {
            command = command.mut_subcommand(name, |own| own.hide(true));
        }
        let told = ["state_dir", "tmux_bin"];
        command = command.mut_subcommands(|own| {
            let after = own.get_after_help().map(ToString::to_string).unwrap_or_default();
            // the exit codes are its own, told once for all commands
            let after = after.split("\n\nExit codes:").next().unwrap_or_default();
            let own =
                own.mut_args(|arg| if told.contains(&arg.get_id().as_str()) { arg.hide(false) } else { arg });
            own.after_help(after.replace(" ait ", " agent-session ").replace("(ait ", "(agent-session "))
        });
        command.name(self.program()).bin_name(self.program()).about(ABOUT).after_help(AFTER)
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
        let words = ["ait", "help", "task", "link"].map(OsString::from);
        assert_eq!(Face::Ait.arranged(&words), ["ait", "task", "link", "--help"].map(OsString::from));
        assert_eq!(Face::AgentSession.arranged(&words), words);
        let words = ["agent-session", "--state-dir=/x", "--host", "box", "list"].map(OsString::from);
        let arranged = ["agent-session", "list", "--state-dir=/x", "--host", "box"].map(OsString::from);
        assert_eq!(Face::AgentSession.arranged(&words), arranged);
        assert!(Face::Ait.knows("gemini") && !Face::AgentSession.knows("gemini"));
        assert!(!Face::AgentSession.has(OsStr::new("freeze")) && Face::Ait.has(OsStr::new("freeze")));
        assert_eq!(Face::Ait.schema("list"), "cli.ait.list.v1");
        assert_eq!(Face::AgentSession.schema("error"), "cli.agent-session.error.v1");
    }
}
