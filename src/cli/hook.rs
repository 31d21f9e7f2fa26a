//! `ait hook`: what the hooks of providers run. It exits 0 and prints nothing, whatever happens.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use super::{Exit, Failure};
use crate::hooks;

/// Hear one event of a provider's hook, its payload on standard input.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The provider's own name of the event: `SessionStart`, `Stop` …
    event: String,
    /// Whose hook it is: `claude`, `codex` …
    #[arg(long, value_name = "NAME")]
    provider: String,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    hooks::hear(&args.provider, &args.event);
    Ok(Exit::OK)
}

/// The event and the provider, if these are the arguments of a hook: read by hand, since a hook runs at every turn of every
/// agent, and since a hook of a settings file that another version wrote must not complain.
pub(super) fn heard(arguments: &[OsString]) -> Option<Option<Args>> {
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let (first, rest) = words.split_first()?;
    if *first != "hook" || rest.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return None;
    }
    let mut args = Args { event: String::new(), provider: String::new() };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if *word == "--provider" {
            args.provider = rest.next().copied().unwrap_or_default().to_owned();
        } else if let Some(provider) = word.strip_prefix("--provider=") {
            provider.clone_into(&mut args.provider);
        } else if args.event.is_empty() && !word.starts_with('-') {
            (*word).clone_into(&mut args.event);
        }
    }
    Some((!args.event.is_empty() && !args.provider.is_empty()).then_some(args))
}
