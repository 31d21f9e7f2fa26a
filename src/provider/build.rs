//! Argument lists: a new conversation, and one conversation brought back.
//!
//! Nothing here can ask for "the newest one": an id is checked against its provider's shape before it is put in its place,
//! and of the arguments an agent ran with only options from a list of known ones are given to it again.

use thiserror::Error;

use super::argv::{has_secret, is_secret, is_text_flag, split_flag};
use super::spec::{ID, Kept, OPTIONS, SHORT_ID, Takes};

/// The longest value of an option that is given again, in bytes.
const MAX_VALUE: usize = 1024;

/// Why there is no way back into a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoResume {
    /// Neither built in nor in the user's settings.
    #[error("`{0}` is no provider that is known")]
    UnknownProvider(String),
    /// The provider's program cannot be told which conversation to go on with.
    #[error("{0} cannot bring back one conversation by its id")]
    Unsupported(String),
    /// No id is known.
    #[error("no exact session id is known")]
    NoSession,
    /// What is recorded is no whole id of this provider.
    #[error("`{id}` is no session id of {provider}")]
    BadSession {
        /// The provider's name.
        provider: String,
        /// What stands in its place, shortened and without control characters.
        id: String,
    },
}

impl NoResume {
    /// The reason as preflight names it.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::UnknownProvider(kind) => format!("unknown_provider:{kind}"),
            Self::Unsupported(kind) => format!("resume_unsupported:{kind}"),
            Self::NoSession => "no_session".to_owned(),
            Self::BadSession { .. } => "bad_session".to_owned(),
        }
    }
}

/// Why there is no argument list for a start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoLaunch {
    /// Neither built in nor in the user's settings.
    #[error("`{0}` is no provider that is known")]
    UnknownProvider(String),
    /// The provider's program chooses the id itself.
    #[error("{0} does not take a session id at its start")]
    IdNotTaken(String),
    /// What was chosen is no id of this provider.
    #[error("`{id}` is no session id of {provider}")]
    BadSession {
        /// The provider's name.
        provider: String,
        /// What was chosen, shortened and without control characters.
        id: String,
    },
}

/// What a record keeps of an agent's own start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded<'a> {
    /// Its arguments, the program first; empty when not known.
    pub argv: &'a [String],
    /// The path of its program; empty when not known.
    pub bin: &'a str,
}

/// An id as an error shows it.
pub(super) fn shown(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// A list of arguments with the id and the options in their places.
pub(super) fn fill<'a>(
    program: &str,
    words: impl IntoIterator<Item = &'a str>,
    id: &str,
    options: &[String],
) -> Vec<String> {
    let mut argv = vec![program.to_owned()];
    for word in words {
        if word == OPTIONS {
            argv.extend_from_slice(options);
        } else {
            argv.push(word.replace(ID, id).replace(SHORT_ID, id));
        }
    }
    argv
}

/// The options among these arguments (without the program) that are given again.
///
/// Everything else is left out: a prompt, a command word, an earlier id, `--continue`, a flag nobody knows.
pub(super) fn kept_options(kept: &[Kept], arguments: &[Vec<u8>]) -> Vec<String> {
    let words: Vec<&str> = arguments
        .iter()
        .map_while(|word| std::str::from_utf8(word).ok())
        .take_while(|word| *word != "--")
        .collect();
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let (name, joined) = match split_flag(word.as_bytes()) {
            Some((flag, _)) => (&word[..flag.len()], Some(&word[flag.len() + 1..])),
            None => (*word, None),
        };
        let Some(option) = kept.iter().find(|option| option.names.contains(&name)) else {
            // the value of a flag that takes text is text, whatever it looks like
            at += usize::from(joined.is_none() && is_text_flag(name.as_bytes()));
            continue;
        };
        if option.takes == Takes::Nothing {
            if joined.is_none() {
                options.push(name.to_owned());
            }
            continue;
        }
        if let Some(value) = joined {
            if fits(option.takes, value) {
                options.push((*word).to_owned());
            }
            continue;
        }
        let limit = if option.takes == Takes::Many { usize::MAX } else { 1 };
        let values: Vec<&str> =
            words[at..].iter().take(limit).take_while(|value| !value.starts_with('-')).copied().collect();
        at += values.len();
        let fit: Vec<&str> = values.into_iter().filter(|value| fits(option.takes, value)).collect();
        if !fit.is_empty() {
            options.push(name.to_owned());
            options.extend(fit.into_iter().map(str::to_owned));
        }
    }
    options
}

/// Whether a value may be given again.
fn fits(takes: Takes, value: &str) -> bool {
    let plain = (1..=MAX_VALUE).contains(&value.len())
        && !value.starts_with('-')
        && !value.chars().any(char::is_control)
        && !has_secret(value.as_bytes());
    plain && (takes != Takes::Setting || (value.contains('=') && !is_secret(value.as_bytes())))
}

#[cfg(test)]
mod tests;
