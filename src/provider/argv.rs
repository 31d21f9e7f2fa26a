//! What the arguments of an agent say: the id of its conversation, and what of them may be kept.

use super::Provider;
use super::spec::{Spec, Takes};

/// Flags that make any of the programs answer and leave.
const ANSWERS: &[&str] = &["--version", "-v", "-V", "--help", "-h"];

/// Whether these arguments (without the program) make it a tool of the provider's instead of an agent.
pub(super) fn is_tool(provider: Provider, arguments: &[Vec<u8>]) -> bool {
    let Some(first) = arguments.first() else {
        return false;
    };
    let is = |word: &str| word.as_bytes() == first.as_slice();
    provider.spec().tools.iter().any(|word| is(word))
        || ANSWERS.iter().any(|word| is(word))
        || prints(provider, arguments)
}

/// Whether these arguments (without the program) make it answer one prompt and leave: `claude -p`, `codex exec`.
pub(super) fn prints(provider: Provider, arguments: &[Vec<u8>]) -> bool {
    let Spec { once, kept, .. } = provider.spec();
    let is_once = |word: &[u8]| once.iter().any(|name| name.as_bytes() == word);
    let mut words = arguments.iter().take_while(|word| word.as_slice() != b"--");
    // a command stands before every other word that is no option's value
    let mut command_is_over = false;
    while let Some(word) = words.next() {
        if !word.starts_with(b"-") {
            if !command_is_over && is_once(word) {
                return true;
            }
            command_is_over = true;
            continue;
        }
        if is_once(split_flag(word).map_or(word.as_slice(), |(flag, _)| flag)) {
            return true;
        }
        let option =
            kept.iter().find(|option| option.names.iter().any(|name| name.as_bytes() == word.as_slice()));
        match option.map(|option| option.takes) {
            Some(Takes::One | Takes::Setting) => drop(words.next()),
            Some(Takes::Nothing) => {}
            // what follows may be its value
            Some(Takes::Many) | None => command_is_over |= split_flag(word).is_none(),
        }
    }
    false
}

/// The id of the conversation an agent runs, when its arguments carry exactly one and it is whole.
///
/// A prefix, a name, `--last`, a fork or two different ids give nothing: a wrong id is worse than none.
#[must_use]
pub(super) fn session_id(provider: Provider, argv: &[Vec<u8>]) -> Option<String> {
    let spec = provider.spec();
    let naming = &spec.naming;
    let known = |list: &[&str], word: &[u8]| list.iter().any(|flag| flag.as_bytes() == word);
    let mut found: Option<String> = None;
    let mut claim = |value: &[u8]| -> Option<()> {
        let id = std::str::from_utf8(value).ok().filter(|id| spec.ids.fits(id))?.to_owned();
        match &found {
            Some(other) if *other != id => None,
            _ => {
                found = Some(id);
                Some(())
            }
        }
    };
    let mut words = argv.iter().skip(1).take_while(|word| word.as_slice() != b"--");
    let mut after_word = false;
    while let Some(word) = words.next() {
        if known(naming.forks, word) {
            return None;
        }
        if known(naming.flags, word) {
            // `claude --resume` alone opens a list: whatever is chosen there is not known here
            claim(words.next()?)?;
        } else if let Some((flag, value)) = split_flag(word)
            && known(naming.flags, flag)
        {
            claim(value)?;
        } else if after_word && !word.starts_with(b"-") {
            claim(word)?;
            after_word = false;
        } else if naming.word.is_some_and(|name| name.as_bytes() == word.as_slice()) {
            after_word = true;
        }
    }
    found
}

pub(super) fn split_flag(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = word.iter().position(|b| *b == b'=')?;
    word.starts_with(b"--").then(|| (&word[..at], &word[at + 1..]))
}

/// The model the arguments ask for (`--model opus`, `--model=opus`, `-m opus`), when it is a plain word.
#[must_use]
pub fn model(argv: &[Vec<u8>]) -> Option<String> {
    let mut words = argv.iter().skip(1).take_while(|word| word.as_slice() != b"--");
    let mut found = None;
    while let Some(word) = words.next() {
        let value = match split_flag(word) {
            Some((b"--model", value)) => Some(value),
            Some(_) => None,
            None if matches!(word.as_slice(), b"--model" | b"-m") => words.next().map(Vec::as_slice),
            None => None,
        };
        found = value.or(found);
    }
    let text = std::str::from_utf8(found?).ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/[]@".contains(c);
    let fits = (1..=64).contains(&text.len()) && !text.starts_with('-') && text.chars().all(plain);
    fits.then(|| text.to_owned())
}

/// Flags whose value is text for the model: neither the flag nor its value is kept.
const TEXTS: &[&str] = &[
    "-p",
    "-i",
    "-q",
    "-z",
    "--print",
    "--prompt",
    "--prompt-interactive",
    "--oneshot",
    "--message",
    "--append-system-prompt",
    "--system-prompt",
];

/// Parts of a flag's or a setting's name that say its value is a secret.
const SECRETS: &[&str] = &["key", "token", "secret", "password", "passwd", "credential", "auth", "header"];

/// The arguments that may be kept in a record: no prompt, no secret, nothing longer than 1,024 bytes. The first is the
/// program; `provider` is whose they are, where that is known.
///
/// Dropped are the values of flags that take text for the model, every flag that names a secret, and any argument with
/// white space in it (a prompt; a setting with spaces goes with it, since nothing tells them apart). An option of the
/// provider's that is given again at a resume is none of those, whatever its letter means elsewhere (`codex -p work`), and
/// its one value may have spaces.
#[must_use]
pub(super) fn without_text(provider: Option<Provider>, argv: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let options = provider.map_or(&[][..], |provider| provider.spec().kept);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut words = argv.iter().enumerate().peekable();
    while let Some((at, word)) = words.next() {
        if at == 0 {
            kept.push(word.clone());
            continue;
        }
        let joined = split_flag(word);
        let name = joined.map_or(word.as_slice(), |(flag, _)| flag);
        let option = options.iter().find(|option| option.names.iter().any(|own| own.as_bytes() == name));
        let takes_one = option.is_some_and(|option| option.takes == Takes::One);
        let drops = (option.is_none() && is_text_flag(name)) || is_secret(word) || has_secret(word);
        let value_follows = joined.is_none()
            && word.starts_with(b"-")
            && words.peek().is_some_and(|(_, next)| !next.starts_with(b"-"));
        if drops {
            if value_follows {
                words.next();
            }
            continue;
        }
        let value = if takes_one && value_follows { words.next().map(|(_, value)| value) } else { None };
        if value.is_some_and(|value| has_secret(value) || !is_bounded(value)) {
            continue;
        }
        if is_bounded(word) && (is_one_word(word) || (takes_one && joined.is_some())) {
            kept.push(word.clone());
            kept.extend(value.cloned());
        }
    }
    kept
}

fn is_bounded(word: &[u8]) -> bool {
    (1..=1024).contains(&word.len())
}

fn is_one_word(word: &[u8]) -> bool {
    !word.iter().any(u8::is_ascii_whitespace)
}

/// Whether the value of this flag is text for the model.
pub(super) fn is_text_flag(name: &[u8]) -> bool {
    TEXTS.iter().any(|flag| flag.as_bytes() == name)
}

/// `--api-key=…`, `--api-key`, `OPENAI_API_KEY=…`, `model.auth=…`: the name says so. A value is never looked at.
pub(super) fn is_secret(word: &[u8]) -> bool {
    let name = word.split(|b| *b == b'=').next().unwrap_or(word);
    let is_setting = word.starts_with(b"-") || name.len() < word.len();
    is_setting && names_secret(name)
}

/// Whether a table written into one argument (`{"env":{"API_KEY":…}}`, `{env={TOKEN=…}}`) has a secret's name in it.
pub(super) fn has_secret(word: &[u8]) -> bool {
    let is_table = word.iter().any(|b| matches!(b, b'{' | b'['));
    is_table && word.split(|b| !b.is_ascii_alphanumeric() && !b"_-.".contains(b)).any(names_secret)
}

fn names_secret(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    // the name of the variable that has the secret is none itself
    let names_variable = name.ends_with(b"env_key") || name.ends_with(b"bearer_token_env_var");
    !names_variable
        && SECRETS.iter().any(|part| name.windows(part.len()).any(|piece| piece == part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    const OTHER: &str = "0c9e6679-7425-40de-944b-e07fc1f90ae7";

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split('|').map(|w| w.as_bytes().to_vec()).collect()
    }

    #[test]
    fn an_id_is_taken_only_when_it_is_exact() {
        for (provider, line, id) in [
            (Provider::Claude, format!("claude|--session-id|{ID}"), Some(ID)),
            (Provider::Claude, format!("claude|--resume={ID}|-c"), Some(ID)),
            (Provider::Claude, format!("node|/usr/bin/claude|-r|{ID}"), Some(ID)),
            (Provider::Claude, format!("claude|--resume|{ID}|--fork-session"), None),
            (Provider::Claude, format!("claude|--resume|{ID}|--session-id|{OTHER}"), None),
            (Provider::Claude, "claude|--resume".into(), None),
            (Provider::Claude, "claude|--resume|my-name".into(), None),
            (Provider::Claude, format!("claude|--|--resume|{ID}"), None),
            (Provider::Claude, format!("claude|look at --resume {ID}"), None),
            (Provider::Claude, format!("claude|{ID}"), None),
            (Provider::Codex, format!("codex|resume|{ID}"), Some(ID)),
            (Provider::Codex, format!("codex|--no-daemon|resume|-m|{ID}"), Some(ID)),
            (Provider::Codex, "codex|resume|--last".into(), None),
            (Provider::Codex, format!("codex|fork|{ID}"), None),
            (Provider::OpenCode, "opencode|-s|ses_3f2a9b1c77".into(), Some("ses_3f2a9b1c77")),
            (Provider::OpenCode, "opencode|-s|../../etc".into(), None),
            (
                Provider::Hermes,
                "hermes|--resume|20260720_101112_a1b2c3".into(),
                Some("20260720_101112_a1b2c3"),
            ),
            (Provider::Hermes, "hermes|--resume|a title".into(), None),
            (Provider::Copilot, format!("copilot|--resume={ID}"), Some(ID)),
            (Provider::Aider, format!("aider|--resume|{ID}"), None),
        ] {
            assert_eq!(session_id(provider, &words(&line)).as_deref(), id, "{line}");
        }
    }

    #[test]
    fn the_model_is_a_plain_word() {
        for (line, found) in [
            ("claude|--model|opus", Some("opus")),
            ("codex|-m|gpt-5.2-codex|--model=o4", Some("o4")),
            ("claude|--model|two words", None),
            ("claude|--|--model|x", None),
            ("claude", None),
        ] {
            assert_eq!(model(&words(line)).as_deref(), found, "{line}");
        }
    }

    #[test]
    fn neither_prompts_nor_secrets_are_kept() {
        for (line, kept) in [
            ("claude|--model|opus|fix the login", "claude|--model|opus"),
            ("claude|--append-system-prompt|short|--model|opus", "claude|--model|opus"),
            ("claude|--dangerously-skip-permissions|do it now", "claude|--dangerously-skip-permissions"),
            ("codex|-c|model_auth=abc|-c|x=1", "codex|-c|-c|x=1"),
            ("aider|--api-key|sk-1|--no-git", "aider|--no-git"),
            ("aider|--openai-api-key=sk-1", "aider"),
            ("gemini|-i|hello", "gemini"),
        ] {
            assert_eq!(without_text(None, &words(line)), words(kept), "{line}");
        }
    }

    #[test]
    fn an_option_is_kept_whatever_its_letter_means_elsewhere() {
        for (provider, line, kept) in [
            (Provider::Codex, "codex|-p|work|fix the login", "codex|-p|work"),
            (Provider::Codex, "codex|--profile|my work|fix the login", "codex|--profile|my work"),
            (Provider::Codex, "codex|--profile=my work|fix the login", "codex|--profile=my work"),
            (Provider::Codex, "codex|resume|-p|work|-C|../other|x y", "codex|resume|-p|work|-C|../other"),
            (Provider::Codex, "codex|-i|shot.png|-p|work", "codex|-p|work"),
            (Provider::Codex, "codex|--add-dir|{token=1}|x", "codex|x"),
            (Provider::Hermes, "hermes|-p|coder|--tui", "hermes|-p|coder|--tui"),
            (Provider::Hermes, "hermes|-q|hello", "hermes"),
            (Provider::Claude, "claude|-p|hello|--model|opus", "claude|--model|opus"),
            (Provider::Gemini, "gemini|-p|hello|-m|pro", "gemini|-m|pro"),
        ] {
            assert_eq!(without_text(Some(provider), &words(line)), words(kept), "{line}");
        }
    }
}
