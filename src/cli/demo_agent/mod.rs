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
//! | `claude` … | what each provider writes and tells |

mod asked;
mod claude;
mod face;
mod hooks;
mod keys;
mod life;
mod manners;
mod plain;
mod ways;

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
    print: Option<String>,
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
    life::live(kind, &args.words)
}

/// The provider a stand-in behaves like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Claude,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "claude" => Some(Self::Claude),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
        }
    }
}

/// The stand-in that these arguments are, when they start with a provider's name instead of ours.
pub(super) fn called_as_provider(arguments: &[OsString]) -> Option<Args> {
    let (name, rest) = arguments.split_first()?;
    let name = Path::new(name).file_name().and_then(OsStr::to_str)?;
    Kind::named(name)?;
    if rest.first().is_some_and(|word| word == "demo-agent") {
        return None;
    }
    let words = rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (title, print, on_term, deaf) = (None, None, None, false);
    Some(Args { title, print, on_term, deaf, provider: Some(name.to_owned()), words })
}
