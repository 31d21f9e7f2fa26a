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

const CODEX_VALUES: &[&str] = &[
    "-c",
    "--config",
    "-C",
    "--cd",
    "-i",
    "--image",
    "-p",
    "--profile",
    "-s",
    "--sandbox",
    "-a",
    "--ask-for-approval",
    "--add-dir",
    "--enable",
    "--disable",
    "--local-provider",
];

const GEMINI_VALUES: &[&str] = &[
    "--approval-mode",
    "--include-directories",
    "-e",
    "--extensions",
    "--allowed-tools",
    "-o",
    "--output-format",
];

/// Reads the words behind the program's name.
pub(super) fn read(kind: Kind, words: &[String]) -> Asked {
    let words = match words.split_first() {
        Some((first, rest)) if first == "--" => rest,
        Some(_) | None => words,
    };
    match kind {
        Kind::Claude => claude(words),
        Kind::Codex => codex(words),
        Kind::Gemini => gemini(words),
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

fn codex(words: &[String]) -> Asked {
    let mut asked = Asked { words: words.to_vec(), ..Asked::default() };
    let mut rest = words.iter();
    let mut resumes = false;
    while let Some(word) = rest.next() {
        match word.as_str() {
            "resume" if asked.prompt.is_none() => resumes = true,
            "--model" | "-m" => asked.model = rest.next().cloned(),
            "--version" | "-V" => asked.version = true,
            flag if CODEX_VALUES.contains(&flag) => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            _ if resumes && asked.resume.is_none() => asked.resume = Some(word.clone()),
            _ => asked.prompt = Some(word.clone()),
        }
    }
    asked
}

fn gemini(words: &[String]) -> Asked {
    let mut asked = Asked { words: words.to_vec(), ..Asked::default() };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--session-id" => asked.id = rest.next().cloned(),
            "--resume" | "-r" => asked.resume = rest.next().cloned(),
            "--model" | "-m" => asked.model = rest.next().cloned(),
            "-i" | "--prompt-interactive" => asked.prompt = rest.next().cloned(),
            "--version" | "-v" => asked.version = true,
            flag if GEMINI_VALUES.contains(&flag) => drop(rest.next()),
            flag if flag.starts_with('-') => {}
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
    #[test]
    fn codexs_and_geminis_words() {
        let read = |kind: Kind, line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            super::read(kind, &words)
        };
        let asked = read(Kind::Codex, "--no-daemon -c a=b resume ID --model x more");
        assert_eq!((asked.resume.as_deref(), asked.prompt.as_deref()), (Some("ID"), Some("more")));
        assert_eq!(read(Kind::Codex, "-s read-only hello").prompt.as_deref(), Some("hello"));
        let asked = read(Kind::Gemini, "--resume ID -i hello --approval-mode plan");
        assert_eq!((asked.resume.as_deref(), asked.prompt.as_deref()), (Some("ID"), Some("hello")));
    }
}
