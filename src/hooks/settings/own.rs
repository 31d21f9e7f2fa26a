//! Our own entries in a provider's settings: how they are written, and how they are told from everybody else's.

use std::path::Path;

/// The command line of a hook, for `/bin/sh -c`. `None` if the program's path is no text or holds a line end.
pub(super) fn command(program: &Path, event: &str, provider: &str) -> Option<String> {
    let program = program.to_str().filter(|path| !path.contains(char::is_control))?;
    Some(format!("{} hook {event} --provider {provider}", quoted(program)))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Whether a command line is ours: `… ait hook EVENT --provider NAME`, whatever folder an install put the program into, or
/// the form of the earlier command line.
pub(super) fn is_own(command: &str) -> bool {
    if command.contains("agent-session activity hook") {
        return true;
    }
    let Some(words) = words(command) else { return false };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, rest) = match words.as_slice() {
        [program, "hook", event, "--provider", provider] => (program, [*event, *provider]),
        [program, "hook", event, provider] if provider.starts_with("--provider=") => {
            (program, [*event, *provider])
        }
        _ => return false,
    };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("ait") && rest.iter().all(|word| !word.is_empty())
}

/// The words of a command line without expansions; `None` where a shell would do more than split it.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => word.push(rest.next()?),
                        '$' | '`' => return None,
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '#' | '\n' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_spaces_and_quotes_is_one_word_and_ours() {
        for path in ["/usr/bin/ait", "/opt/My Apps/ait", "/o'brien/ait", "/x/ait-0.2"] {
            let command = command(Path::new(path), "Stop", "claude").unwrap();
            assert!(is_own(&command), "{command}");
            assert_eq!(words(&command).unwrap()[0], path);
        }
        assert!(is_own("\"/opt/my apps/ait\" hook Stop --provider=claude"));
        assert!(is_own("/usr/local/bin/ait agent-session activity hook --event stop"));
        assert_eq!(command(Path::new("/a\nb/ait"), "Stop", "claude"), None);
    }

    #[test]
    fn what_is_somebody_elses() {
        for command in [
            "",
            "ait",
            "ait hook",
            "/usr/bin/say hook Stop --provider claude",
            "ait hook Stop --provider claude; rm x",
            "other && ait hook Stop --provider claude",
            "echo ait hook Stop --provider claude",
            "ait hook Stop --provider claude --more",
        ] {
            assert!(!is_own(command), "{command}");
        }
    }
}
