//! `ait hook`: what the hooks of providers run. It exits 0 and prints nothing, whatever happens.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use super::{Exit, Failure};
use crate::hooks;

/// Hear one event of a provider's hook, its payload on standard input.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The provider's own name of the event: `SessionStart`, `Stop` …; the payload's own unless given
    event: Option<String>,
    /// Whose hook it is: `claude`, `codex` …
    #[arg(long, value_name = "NAME")]
    provider: String,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    hooks::hear(&args.provider, args.event.as_deref());
    Ok(Exit::OK)
}

/// The event and the provider, if these are the arguments of a hook: read by hand, since a hook runs at every turn of every
/// agent, and since a hook of a settings file that another version wrote must not complain. `activity hook --agent NAME
/// [--event EVENT]` is the earlier command line's form of it.
pub(super) fn heard(arguments: &[OsString]) -> Option<Option<Args>> {
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let (earlier, rest) = match words.as_slice() {
        ["hook", rest @ ..] => (false, rest),
        ["activity", "hook", rest @ ..] => (true, rest),
        _ => return None,
    };
    if rest.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return None;
    }
    let mut args = Args { event: None, provider: String::new() };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*word, None),
        };
        let mut value = || value.or_else(|| rest.next().copied()).unwrap_or_default().to_owned();
        match name {
            "--provider" | "--agent" => args.provider = value(),
            "--event" => args.event = Some(value()),
            name if args.event.is_none() && !name.starts_with('-') => args.event = Some((*word).to_owned()),
            _ => {}
        }
    }
    let whole = !args.provider.is_empty() && (earlier || args.event.is_some());
    Some(whole.then_some(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_in_either_form_and_what_is_none() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            heard(&words).map(|args| args.map(|args| (args.provider, args.event.unwrap_or_default())))
        };
        let some = |provider: &str, event: &str| Some(Some((provider.to_owned(), event.to_owned())));
        assert_eq!(of("ait hook Stop --provider claude"), some("claude", "Stop"));
        assert_eq!(of("ait hook --provider=claude Stop --more"), some("claude", "Stop"));
        assert_eq!(of("agent-session activity hook --agent codex"), some("codex", ""));
        assert_eq!(
            of("ait activity hook --agent hermes --event=pre_llm_call"),
            some("hermes", "pre_llm_call")
        );
        assert_eq!(of("ait hook Stop"), Some(None));
        assert_eq!(of("ait hook --provider claude"), Some(None));
        assert_eq!(of("ait hook --help"), None);
        assert_eq!(of("ait activity status x"), None);
    }
}
