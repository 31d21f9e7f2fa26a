//! What a provider's argv asks for. Unknown flags are tolerated, as a stand-in outlives the versions it imitates.

use super::Kind;

/// What the stand-in was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The id a new conversation shall have.
    pub(super) id: Option<String>,
    /// The conversation to go on with.
    pub(super) resume: Option<String>,
    /// The first prompt.
    pub(super) prompt: Option<String>,
    /// The model, as it was named.
    pub(super) model: Option<String>,
    /// More settings: a file, or JSON itself.
    pub(super) settings: Option<String>,
    /// One turn without a face (`-p`).
    pub(super) print: bool,
    /// Print the version and end.
    pub(super) version: bool,
    /// Every word, as it came.
    pub(super) words: Vec<String>,
}

/// Flags whose value is the next word, per provider; the value of an unknown flag would pass for a prompt otherwise.
const CLAUDE_VALUES: &[&str] = &[
    "--permission-mode",
    "--name",
    "-n",
    "--add-dir",
    "--allowedTools",
    "--disallowedTools",
    "--mcp-config",
    "--append-system-prompt",
    "--agent",
    "--worktree",
    "-w",
    "--fallback-model",
    "--setting-sources",
    "--effort",
];

/// Reads the words behind the program's name.
pub(super) fn read(kind: Kind, words: &[String]) -> Asked {
    let words = match words.split_first() {
        Some((first, rest)) if first == "--" => rest,
        Some(_) | None => words,
    };
    match kind {
        Kind::Claude => claude(words),
    }
}

fn claude(words: &[String]) -> Asked {
    let mut asked = Asked { words: words.to_vec(), ..Asked::default() };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            Some(_) | None => (word.as_str(), None),
        };
        let mut value = || joined.clone().or_else(|| rest.next().cloned());
        match flag {
            "--session-id" => asked.id = value(),
            "--resume" | "-r" => asked.resume = value(),
            "--model" => asked.model = value(),
            "--settings" => asked.settings = value(),
            "--print" | "-p" => asked.print = true,
            "--version" | "-v" => asked.version = true,
            _ if CLAUDE_VALUES.contains(&flag) => drop(value()),
            _ if flag.starts_with('-') => {}
            _ => asked.prompt = Some(word.clone()),
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claudes_words() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            super::read(Kind::Claude, &words)
        };
        let asked = read("--session-id A --model opus --dangerously-skip-permissions --new-flag hello");
        assert_eq!((asked.id.as_deref(), asked.resume.as_deref()), (Some("A"), None));
        assert_eq!((asked.model.as_deref(), asked.prompt.as_deref()), (Some("opus"), Some("hello")));
        let asked = read("-- --resume=B --permission-mode plan");
        assert_eq!((asked.resume.as_deref(), asked.prompt), (Some("B"), None));
        assert!(read("--version").version);
    }
}
