//! Providers of the user's own, as the settings describe them: checked, then like any other.

use thiserror::Error;

use super::Provider;
use super::host::is_runner;
use super::ids::Shape;
use super::spec::{ID, SHORT_ID, has_id};

/// A provider of the user's, as plain values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Custom {
    /// Its short name, which records carry: small letters, digits and `-`.
    pub name: String,
    /// The file names of its program; the first is started.
    pub binaries: Vec<String>,
    /// The arguments of a start; with `{session_id}` (or `{session}`) in them, the program takes an id of our choice. May be empty.
    pub launch: Vec<String>,
    /// The arguments that bring one conversation back, with `{session_id}` in them; empty when the program has no way.
    pub resume: Vec<String>,
    /// Names of variables that are kept from the running agent.
    pub keep: Vec<String>,
    /// The folder of its conversations, absolute or from `~/`; empty when not known.
    pub store: String,
    /// Whether a resume finds the conversation only from the folder it was begun in.
    pub needs_cwd: bool,
}

/// Why a provider of the user's is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The name is no short name.
    #[error("`{0}` is no name for a provider: small letters, digits and `-`, a letter first, at most 32")]
    BadName(String),
    /// Another provider has the name: a built-in one is never redefined.
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    /// The program is no plain file name, or one that runs other programs.
    #[error("`{0}` is no program of an agent: a file name is wanted, and no shell or interpreter")]
    BadProgram(String),
    /// A resume must name the conversation.
    #[error("`{0}`: resume has no `{{session_id}}` in it")]
    NoId(String),
    /// An argument asks for the newest conversation or lets a shell read the id.
    #[error("`{name}`: `{word}` does not name one conversation")]
    Newest {
        /// The provider.
        name: String,
        /// The argument.
        word: String,
    },
    /// An argument that is empty, too long or has control characters.
    #[error("`{0}`: an argument is empty, has control characters or is longer than 1,024 bytes")]
    BadArgument(String),
    /// A variable that cannot be kept.
    #[error("`{name}`: the variable `{variable}` cannot be kept")]
    BadVariable {
        /// The provider.
        name: String,
        /// The variable.
        variable: String,
    },
    /// A store that is no path.
    #[error("`{0}`: store wants an absolute path, or one from `~/`")]
    BadStore(String),
}

/// Arguments that some program takes for "go on with the newest one", or that make a shell read the next argument.
const NEWEST: &[&str] =
    &["--continue", "-c", "-C", "--last", "--latest", "--resume-last", "--resume-latest", "latest", "last"];

impl Custom {
    /// The program that is started.
    pub(super) fn program(&self) -> &str {
        self.binaries.first().map_or("", String::as_str)
    }

    /// The arguments of a start, without the program.
    pub(super) fn launch_words(&self) -> &[String] {
        self.after_program(&self.launch)
    }

    /// The arguments of a resume, without the program.
    pub(super) fn resume_words(&self) -> &[String] {
        self.after_program(&self.resume)
    }

    /// Whether a start takes an id.
    pub(super) fn chooses_id(&self) -> bool {
        self.launch.iter().any(|word| has_id(word))
    }

    /// The id of the conversation its arguments name, where the word before the id's place in `launch` or `resume` (or what
    /// stands around the id in its own word) finds exactly one that is whole.
    pub(super) fn session_id(&self, argv: &[Vec<u8>]) -> Option<String> {
        let mut found = None;
        for words in [self.launch_words(), self.resume_words()] {
            let Some(at) = words.iter().position(|word| has_id(word)) else { continue };
            let before = at.checked_sub(1).and_then(|before| words.get(before));
            for id in named(argv, before.map(String::as_str), &words[at]) {
                if found.as_ref().is_some_and(|other| *other != id) {
                    return None;
                }
                found = Some(id);
            }
        }
        found
    }

    // both `["mycli", "--resume", …]` and `["--resume", …]` are natural to write
    fn after_program<'a>(&self, words: &'a [String]) -> &'a [String] {
        match words.split_first() {
            Some((first, rest)) if self.binaries.contains(first) => rest,
            _ => words,
        }
    }

    /// Whether it can be used.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the first thing that is wrong.
    pub fn check(&self) -> Result<(), Refused> {
        let name = self.name.clone();
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let named = (1..=32).contains(&name.len())
            && name.bytes().all(letters)
            && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if !named {
            return Err(Refused::BadName(name));
        }
        if Provider::named(&name).is_some() {
            return Err(Refused::NameTaken(name));
        }
        let file = |b: u8| b.is_ascii_alphanumeric() || b"._-+".contains(&b);
        let program = |binary: &str| {
            (1..=64).contains(&binary.len())
                && binary.bytes().all(file)
                && !binary.starts_with(['-', '.'])
                && !is_runner(binary.as_bytes())
                && Provider::by_binary(binary.as_bytes()).is_none()
        };
        if self.binaries.is_empty() {
            return Err(Refused::BadProgram(String::new()));
        }
        if let Some(binary) = self.binaries.iter().find(|binary| !program(binary)) {
            return Err(Refused::BadProgram(binary.clone()));
        }
        for word in self.launch.iter().chain(&self.resume) {
            if word.is_empty() || word.len() > 1024 || word.chars().any(char::is_control) {
                return Err(Refused::BadArgument(name));
            }
            let flag = word.split('=').next().unwrap_or(word);
            let value = word.split_once('=').map_or("", |(_, value)| value);
            let newest = |word: &str| NEWEST.iter().any(|known| known.eq_ignore_ascii_case(word));
            if newest(flag) || newest(value) {
                return Err(Refused::Newest { name, word: word.clone() });
            }
        }
        let words = self.resume_words();
        if !self.resume.is_empty() && !words.iter().any(|word| has_id(word)) {
            return Err(Refused::NoId(name));
        }
        // `threads continue {session_id}` names one; `continue` alone does not
        let bare = |pair: &[String]| pair[0].eq_ignore_ascii_case("continue") && !has_id(&pair[1]);
        let last = words.last().is_some_and(|word| word.eq_ignore_ascii_case("continue"));
        if last || words.windows(2).any(bare) {
            return Err(Refused::Newest { name, word: "continue".to_owned() });
        }
        if let Some(variable) = self.keep.iter().find(|variable| !may_be_kept(variable)) {
            return Err(Refused::BadVariable { name, variable: variable.clone() });
        }
        let path = (self.store.starts_with('/') || self.store.starts_with("~/"))
            && !self.store.chars().any(char::is_control)
            && !self.store.split('/').any(|part| part == "..");
        if !self.store.is_empty() && !path {
            return Err(Refused::BadStore(name));
        }
        Ok(())
    }
}

/// The ids in these arguments: in a word of the form of `place`, or, where the id is the whole word, after the word `before`.
fn named(argv: &[Vec<u8>], before: Option<&str>, place: &str) -> Vec<String> {
    let mark = if place.contains(ID) { ID } else { SHORT_ID };
    let Some((head, tail)) = place.split_once(mark) else { return Vec::new() };
    let words: Vec<&str> = argv
        .iter()
        .skip(1)
        .map_while(|word| std::str::from_utf8(word).ok())
        .take_while(|word| *word != "--")
        .collect();
    let inside = |word: &str| {
        let id = word.strip_prefix(head)?.strip_suffix(tail)?;
        Shape::Word.fits(id).then(|| id.to_owned())
    };
    if !(head.is_empty() && tail.is_empty()) {
        return words.into_iter().filter_map(inside).collect();
    }
    // without a word before it nothing but its own letters says that a word is an id
    let Some(before) = before else { return Vec::new() };
    words.windows(2).filter(|pair| pair[0] == before).filter_map(|pair| inside(pair[1])).collect()
}

/// A variable's name, no marker of an agent, and no secret by its name.
#[must_use]
pub fn may_be_kept(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !super::scrub(name)
        && !super::argv::is_secret(format!("{name}=").as_bytes())
}

#[cfg(test)]
mod tests;
