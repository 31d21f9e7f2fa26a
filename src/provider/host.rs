//! What a pane's own process is to the agent below it: the user's shell, or a wrapper that ends when the agent ends.

use super::{INTERPRETERS, LAUNCHERS, Program, base, called_as, is_interpreter};

/// How the process of a pane stands to an agent that runs below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosting {
    /// A shell at its prompt: the agent was typed into it, and it stays when the agent ends.
    Shell,
    /// It was started to run the agent and ends with it: `sh -c claude`, a script, `env`, `npx` …
    Wrapper,
    /// Anything else (an editor, a file manager): it may stay or go.
    Other,
}

const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "dash", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "nu", "elvish",
    "xonsh", "pwsh",
];

/// Programs that run the program their arguments name, and end with it.
const WRAPPERS: &[&str] = &[
    "env",
    "nice",
    "ionice",
    "timeout",
    "sudo",
    "doas",
    "script",
    "stdbuf",
    "setsid",
    "caffeinate",
    "direnv",
    "mise",
    "asdf",
    "nix",
    "nix-shell",
    "flatpak",
    "systemd-run",
    "systemd-inhibit",
    "dumb-init",
    "tini",
    "catchsegv",
    "strace",
];

/// Whether a program of this file name runs other programs: it is nobody's agent.
pub(super) fn is_runner(name: &[u8]) -> bool {
    let is = |list: &[&str]| list.iter().any(|known| known.as_bytes() == name);
    is(SHELLS) || is(WRAPPERS) || is(LAUNCHERS) || is_interpreter(name)
}

/// Options of a shell whose value is the next argument.
const SHELL_VALUES: &[&str] = &["--rcfile", "--init-file", "-o", "+o", "-O", "+O", "-C", "--init-command"];

/// What a pane's process is to the agent below it.
#[must_use]
pub fn hosting(program: Program<'_>) -> Hosting {
    let name = base(called_as(program.argv));
    let is = |list: &[&str]| list.iter().any(|known| known.as_bytes() == name);
    if is(SHELLS) {
        if at_its_prompt(program.argv.get(1..).unwrap_or(&[])) { Hosting::Shell } else { Hosting::Wrapper }
    } else if is(WRAPPERS) || is(LAUNCHERS) || is(INTERPRETERS) || is_interpreter(name) {
        Hosting::Wrapper
    } else {
        Hosting::Other
    }
}

/// A shell that was given neither a script nor a command.
fn at_its_prompt(arguments: &[Vec<u8>]) -> bool {
    let mut words = arguments.iter().map(Vec::as_slice).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if SHELL_VALUES.iter().any(|flag| flag.as_bytes() == word) {
            words.next();
        } else if word == b"--command"
            || (word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'c'))
        {
            return false;
        } else if !word.starts_with(b"-") && !word.starts_with(b"+") && word != b"sh" {
            // `busybox sh` is a shell at its prompt
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_wrappers_and_the_rest() {
        for (line, hosting) in [
            ("-bash", Hosting::Shell),
            ("/usr/bin/zsh|-l|-i", Hosting::Shell),
            ("bash|--rcfile|/x/rc", Hosting::Shell),
            ("busybox|sh", Hosting::Shell),
            ("sh|-c|claude", Hosting::Wrapper),
            ("bash|-lc|claude --model x", Hosting::Wrapper),
            ("/bin/bash|/home/u/bin/start-agent", Hosting::Wrapper),
            ("env|A=1|claude", Hosting::Wrapper),
            ("npm exec @openai/codex", Hosting::Wrapper),
            ("python3.13|/x/run.py", Hosting::Wrapper),
            ("vim|x", Hosting::Other),
            ("", Hosting::Other),
        ] {
            let argv: Vec<Vec<u8>> = line.split('|').map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(super::hosting(Program { exe: b"", argv: &argv }), hosting, "{line}");
        }
    }
}
