//! `ait demo-agent`: stand-ins for coding agents, for `ait demo` and the tests.
//!
//! Without `--provider` it is the plain stand-in ([`plain`]). With one it behaves like that provider where anything outside
//! can see it: its argv, its conversation files, its registry, its hooks with their environment and order, its screen and
//! keys, its answers to signals. It talks to no model: it answers after a moment, and shows how many earlier turns of the
//! conversation it knows. What is unusual about it is read at its start from `$HOME/.ait-fake/<provider>.json` ([`manners`]).
//!
//! A link to `ait` that goes by a provider's name (`claude`, `codex`, `gemini`) is that provider's stand-in at once, so that
//! its command line reads as a real one: `claude --resume ID`.
//!
//! | part | for |
//! |---|---|
//! | `plain` | the stand-in without a provider |
//! | `asked` | what the provider's argv asks for |
//! | `manners` | what is unusual about this agent |
//! | `life` | the agent: keys, signals, turns, ends |
//! | `face` | what it draws |
//! | `keys` | what is typed and pasted |
//! | `hooks` | the commands of its settings, run in order |
//! | `ways` | what the providers do each in their own way |
//! | `claude`, `codex`, `gemini` | what each of them writes and tells |
//! | `daemon` | the process that several Codex share |
//! | `wrapper` | the script in front of an agent |

mod asked;
mod claude;
mod codex;
mod daemon;
mod face;
mod gemini;
mod hooks;
mod keys;
mod life;
mod manners;
mod plain;
mod ways;
mod wrapper;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Args as ClapArgs;

use super::{Exit, Failure};

/// A stand-in agent: sleeps until it is told to end.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The pane's title.
    #[arg(long)]
    title: Option<String>,
    /// A line to show at the start.
    #[arg(long)]
    say: Option<String>,
    /// Exit with this status when told by SIGTERM (instead of dying of it).
    #[arg(long, value_name = "STATUS", conflicts_with = "deaf")]
    on_term: Option<u8>,
    /// Ignore HUP, INT and TERM, as an agent that outlives its server does.
    #[arg(long)]
    deaf: bool,
    /// Behave like this provider's agent: `claude`, `codex`, `gemini`.
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// The words that provider is started with; without one, not looked at.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let Some(provider) = &args.provider else { return plain::run(args) };
    let kind = Kind::named(provider)
        .ok_or_else(|| Failure::new(Exit::USAGE, format!("no stand-in behaves like `{provider}`")))?;
    run_as(Called { kind, part: Part::Front, words: args.words })
}

/// The provider a stand-in behaves like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Claude,
    Codex,
    Gemini,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "claude" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            "gemini" => Some(Self::Gemini),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    fn version(self) -> String {
        match self {
            Self::Claude => format!("{} (Claude Code)", claude::VERSION),
            Self::Codex => format!("codex-cli {}", codex::VERSION),
            Self::Gemini => gemini::VERSION.to_owned(),
        }
    }
}

/// Which process of an agent this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The one the user starts.
    Front,
    /// The script in front of the agent.
    Wrapper,
    /// The agent below the script.
    Inner,
}

/// A stand-in by its command line.
#[derive(Debug)]
pub(super) struct Called {
    kind: Kind,
    part: Part,
    words: Vec<String>,
}

/// The stand-in that these arguments are, when they start with a provider's name instead of ours.
pub(super) fn called_as_provider(arguments: &[OsString]) -> Option<Called> {
    let texts: Vec<&str> = arguments.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    let (first, rest) = texts.split_first()?;
    let (kind, part, words) = match (base(first), rest) {
        (name, ["demo-agent", ..]) if Kind::named(name).is_some() => return None,
        ("node", [wrapper::INNER, script, words @ ..]) => (Kind::named(base(script))?, Part::Inner, words),
        ("node", [script, words @ ..]) => (Kind::named(base(script))?, Part::Wrapper, words),
        (name, words) => match name.split_once("-x86_64-") {
            Some((name, _)) => (Kind::named(name)?, Part::Inner, words),
            None => (Kind::named(name)?, Part::Front, words),
        },
    };
    Some(Called { kind, part, words: words.iter().map(|word| (*word).to_owned()).collect() })
}

/// Is that stand-in to its end.
pub(super) fn run_as(called: Called) -> Result<Exit, Failure> {
    let Called { kind, part, words } = called;
    match part {
        Part::Front => life::front(kind, &words),
        Part::Wrapper => wrapper::wrap(kind, &words),
        Part::Inner => life::live(kind, &words),
    }
}

fn base(path: &str) -> &str {
    Path::new(path).file_name().and_then(OsStr::to_str).unwrap_or(path)
}
