//! One command as one line for a control client's standard input.
//!
//! The words given are the words tmux's parser gets back, whatever is in them. What a line cannot carry, and what
//! would stop a control client's queue for ever, is refused and never sent.

use std::borrow::Cow;

/// A command and its arguments.
///
/// ```
/// use tmux_control::Command;
///
/// let line = Command::new("rename-window").arg("-t").arg("@3").arg("it's $1").to_line()?;
/// assert_eq!(line, b"rename-window -t @3 'it'\\''s $1'\n");
/// # Ok::<(), tmux_control::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    name: Cow<'static, str>,
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    Word(Vec<u8>),
    Commands(Vec<Command>),
}

/// Why a command is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A blank line detaches; a comment or an assignment is never answered; neither begins with a command's name.
    #[error("not the name of a command: {name:?}")]
    Name {
        /// What was given.
        name: String,
    },
    /// It waits for a key that a control client never gets, and all later commands wait with it.
    #[error("{name} waits for a key and would stop the control client for ever")]
    Interactive {
        /// The command.
        name: String,
    },
    /// A line feed ends the line, a zero byte cuts it, 0xff ends a word.
    #[error("{name}: argument {argument} holds the byte {byte:#04x}, which a line cannot carry")]
    Byte {
        /// The command.
        name: String,
        /// Which argument, from 1.
        argument: usize,
        /// The byte.
        byte: u8,
    },
    /// An argument made of commands has none.
    #[error("{name}: argument {argument} is a list of no commands")]
    Empty {
        /// The command.
        name: String,
        /// Which argument, from 1.
        argument: usize,
    },
}

/// Commands that wait for the user, and their built-in aliases.
const INTERACTIVE: [&str; 9] = [
    "command-prompt",
    "confirm-before",
    "confirm",
    "display-menu",
    "menu",
    "display-popup",
    "popup",
    "display-panes",
    "displayp",
];

impl Command {
    /// A command by its name, such as `list-panes`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), arguments: Vec::new() }
    }

    /// Adds one word, taken as it is: a flag, a target, a format, a name. May be empty.
    #[must_use]
    pub fn arg(mut self, word: impl AsRef<[u8]>) -> Self {
        self.arguments.push(Argument::Word(word.as_ref().to_vec()));
        self
    }

    /// Adds several words; see [`arg`](Self::arg).
    #[must_use]
    pub fn args<W: AsRef<[u8]>>(self, words: impl IntoIterator<Item = W>) -> Self {
        words.into_iter().fold(self, Command::arg)
    }

    /// Adds one word made of commands, run one after the other, as `if-shell` takes it. They are held to the same
    /// rules. A command that fails drops those after it, without a block for them.
    #[must_use]
    pub fn commands(mut self, commands: impl IntoIterator<Item = Command>) -> Self {
        self.arguments.push(Argument::Commands(commands.into_iter().collect()));
        self
    }

    /// The line, with its line feed.
    ///
    /// # Errors
    /// [`Refused`]; nothing of the command may be sent then.
    pub fn to_line(&self) -> Result<Vec<u8>, Refused> {
        let mut line = Vec::new();
        self.write(&mut line)?;
        line.push(b'\n');
        Ok(line)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), Refused> {
        let name = || self.name.clone().into_owned();
        if !is_name(&self.name) {
            return Err(Refused::Name { name: name() });
        }
        if is_interactive(&self.name) {
            return Err(Refused::Interactive { name: name() });
        }
        out.extend_from_slice(self.name.as_bytes());
        for (place, argument) in self.arguments.iter().enumerate() {
            out.push(b' ');
            match argument {
                Argument::Word(word) => {
                    if let Some(&byte) = word.iter().find(|byte| matches!(byte, 0 | 0xff)) {
                        return Err(Refused::Byte { name: name(), argument: place + 1, byte });
                    }
                    quote(word, out);
                }
                Argument::Commands(commands) if commands.is_empty() => {
                    return Err(Refused::Empty { name: name(), argument: place + 1 });
                }
                Argument::Commands(commands) => {
                    let mut word = Vec::new();
                    for (place, command) in commands.iter().enumerate() {
                        word.extend_from_slice(if place == 0 { b"" } else { b" ; " });
                        command.write(&mut word)?;
                    }
                    quote(&word, out);
                }
            }
        }
        Ok(())
    }
}

/// `name = %x61-7A *(%x61-7A / DIGIT / "-")`: neither blank, nor `#…`, nor `%if`, nor `NAME=value`.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Whether tmux would take the name for an interactive command. It accepts any beginning that is not ambiguous;
/// `display` alone is the alias of `display-message`.
fn is_interactive(name: &str) -> bool {
    name != "display" && INTERACTIVE.iter().any(|interactive| interactive.starts_with(name))
}

/// Writes one word so that tmux reads exactly it: as it is where nothing in it can mean anything, else between single
/// quotes, inside which tmux reads every byte as itself; a quote and a line feed stand escaped between two such pairs.
fn quote(word: &[u8], out: &mut Vec<u8>) {
    if is_plain(word) {
        out.extend_from_slice(word);
        return;
    }
    out.push(b'\'');
    for &byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            // outside them `\n` is a line feed, and the line stays one line
            b'\n' => out.extend_from_slice(b"'\\n'"),
            byte => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// Letters, digits and `_ - . / @ : ,` anywhere; `%` only before digits to the end, where tmux reads it as a pane id.
fn is_plain(word: &[u8]) -> bool {
    let word = match word.strip_prefix(b"%") {
        Some(digits) if !digits.is_empty() => return digits.iter().all(u8::is_ascii_digit),
        _ => word,
    };
    !word.is_empty()
        && word.iter().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@' | b':' | b',')
        })
}
