//! Which coding agent a process is, read from its program and its arguments.
//!
//! Pure: the caller brings the facts of a process, this gives the provider or nothing. It refuses to guess: a name that
//! only contains a provider's name, a window title or a file that is being edited is no agent, and an id is only given
//! when the arguments carry it exactly.

mod argv;
mod build;
mod catalog;
mod custom;
mod heard;
mod host;
mod ids;
mod markers;
mod meaning;
mod screen;
pub mod signs;
mod spec;
mod store;
mod table;
mod titled;

mod claude;
mod codex;
mod copilot;
mod gemini;
mod hermes;
mod opencode;
mod others;
mod pi;
mod qwen;

pub use argv::model;
pub use build::{NoLaunch, NoResume, Recorded};
pub use catalog::Catalog;
pub use custom::{Custom, Refused, may_be_kept};
pub use host::{Hosting, hosting};
pub use ids::{MAX_ID, Shape};
pub use markers::scrub;
pub use meaning::{Meaning, Source, Turn};
pub use signs::{Composer, Dialog, Phase, Sight};
pub use store::{Layout, Root, Store};
pub use table::Provider;
pub use titled::{Pane, Titled};

/// What is known of a process: the path of its program, if it may be read, and its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The resolved path of the executable; empty when it cannot be read.
    pub exe: &'a [u8],
    /// The arguments, the program's own name first; a program may have rewritten them.
    pub argv: &'a [Vec<u8>],
}

/// Programs that run another program named by an argument: what they run counts, not they.
const INTERPRETERS: &[&str] = &["node", "nodejs", "bun", "deno", "python", "pypy", "ruby"];

/// Programs that fetch a package and run it: the package counts.
const LAUNCHERS: &[&str] = &["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "uv", "pipx"];

/// Words of a launcher that stand before the package.
const LAUNCHER_VERBS: &[&str] = &["exec", "x", "dlx", "run", "tool", "create"];

/// Flags of an interpreter whose value is the next argument.
const INTERPRETER_VALUES: &[&str] = &[
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
    "-W",
    "-X",
    "--config",
];

/// The provider this process is an agent of, if it is one.
///
/// Recognised are the program itself (by the name it was called with, then by its file), a script below an interpreter,
/// a package below a launcher such as `npx`, and a module after `python -m`. A provider's own tools (`claude mcp`,
/// `codex app-server`, `--version`) are no agents, nor is one that prints one answer (see [`prints`]).
#[must_use]
pub fn recognise(program: Program<'_>) -> Option<Provider> {
    let (provider, rest) = arguments(program)?;
    (!argv::is_tool(provider, rest)).then_some(provider)
}

/// The provider whose program answers one prompt in this process and leaves (`claude -p`, `codex exec`): no agent, but it
/// has an agent's hooks and conversation.
#[must_use]
pub fn prints(program: Program<'_>) -> Option<Provider> {
    let (provider, rest) = arguments(program)?;
    argv::prints(provider, rest).then_some(provider)
}

/// The provider whose program this is, agent or tool, and the arguments after the program.
fn arguments(program: Program<'_>) -> Option<(Provider, &[Vec<u8>])> {
    let called = called_as(program.argv);
    let own = base(called);
    if let Some(found) = Provider::by_binary(own) {
        return Some((found, after(program.argv, 1)));
    }
    if is_interpreter(own) {
        return script(program.argv);
    }
    if let Some(found) = launched(own, program.argv) {
        return Some(found);
    }
    // the name given at start is free text; the file that runs is not, unless it is an interpreter
    let found = Provider::by_binary(base(program.exe)).or_else(|| Provider::by_path(program.exe))?;
    Some((found, after(program.argv, 1)))
}

/// Whether a process runs the program of this file name: by the name it was called with, as the script of an
/// interpreter, or by its file.
fn runs(program: Program<'_>, binary: &[u8]) -> bool {
    let own = base(called_as(program.argv));
    if is_interpreter(own) {
        let script = program.argv.iter().skip(1).find(|word| !word.starts_with(b"-"));
        return script.is_some_and(|script| stem(base(script)) == binary || base(script) == binary);
    }
    own == binary || base(program.exe) == binary
}

/// The name a process goes by. A rewritten title (`claude`, `codex resume`) stands whole in the first argument.
fn called_as(argv: &[Vec<u8>]) -> &[u8] {
    let Some(first) = argv.first() else {
        return b"";
    };
    let alone = argv.iter().skip(1).all(Vec::is_empty);
    let word = first.split(|b| *b == b' ').next().unwrap_or(first);
    // a path with a space in it is still a path; only a bare title is cut at its first word
    if alone && !word.contains(&b'/') { word } else { first }
}

/// The last part of a path, without the dash of a login shell.
fn base(path: &[u8]) -> &[u8] {
    let last = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    last.strip_prefix(b"-").unwrap_or(last)
}

fn after(argv: &[Vec<u8>], skip: usize) -> &[Vec<u8>] {
    argv.get(skip..).unwrap_or(&[])
}

/// `python3.13` and `node22` are interpreters too.
fn is_interpreter(name: &[u8]) -> bool {
    let letters = name.iter().position(|b| b.is_ascii_digit()).map_or(name, |at| &name[..at]);
    INTERPRETERS.iter().any(|known| known.as_bytes() == letters)
}

/// The provider whose script an interpreter runs, and the arguments after the script.
fn script(argv: &[Vec<u8>]) -> Option<(Provider, &[Vec<u8>])> {
    let mut at = 1;
    while let Some(argument) = argv.get(at) {
        let value_of_a_flag = INTERPRETER_VALUES.iter().any(|flag| flag.as_bytes() == argument.as_slice());
        match argument.as_slice() {
            b"-m" => {
                let module = argv.get(at + 1)?;
                let top = module.split(|b| *b == b'.').next().unwrap_or(module);
                return Some((Provider::by_module(top)?, after(argv, at + 2)));
            }
            b"-c" | b"-e" | b"-p" | b"--eval" | b"--print" => return None,
            // `bun run claude`, `deno run -A npm:…`
            b"run" | b"x" => at += 1,
            _ if value_of_a_flag => at += 2,
            flag if flag.starts_with(b"-") => at += 1,
            script => {
                // `node /usr/bin/npx pkg`: the launcher is itself a script
                if let Some(found) = launched(stem(base(script)), after(argv, at)) {
                    return Some(found);
                }
                // the `grok` that is a script is another program than the provider's
                let found = Provider::by_binary(stem(base(script)))
                    .filter(|found| *found != Provider::Grok)
                    .or_else(|| Provider::by_path(script))
                    .or_else(|| Provider::by_package(script))?;
                return Some((found, after(argv, at + 1)));
            }
        }
    }
    None
}

/// The provider whose package a launcher runs, and the arguments after it. `argv` starts with the launcher. npm writes
/// its whole command line into its title: `npm exec @openai/codex`.
fn launched<'a>(name: &[u8], argv: &'a [Vec<u8>]) -> Option<(Provider, &'a [Vec<u8>])> {
    let name = name.strip_suffix(b"-cli").unwrap_or(name);
    if !LAUNCHERS.iter().any(|known| known.as_bytes() == name) {
        return None;
    }
    let title = argv.first()?;
    if argv.iter().skip(1).all(Vec::is_empty) && title.contains(&b' ') {
        let package = title.split(|b| *b == b' ').skip(1).find(|word| !is_launcher_word(word))?;
        return Some((Provider::by_package(package)?, &[]));
    }
    let at = argv.iter().skip(1).position(|word| !is_launcher_word(word))? + 1;
    Some((Provider::by_package(argv.get(at)?)?, after(argv, at + 1)))
}

fn is_launcher_word(word: &[u8]) -> bool {
    word.starts_with(b"-") || LAUNCHER_VERBS.iter().any(|verb| verb.as_bytes() == word)
}

/// A script's name without its ending.
fn stem(name: &[u8]) -> &[u8] {
    for ending in [&b".js"[..], b".mjs", b".cjs", b".ts", b".py"] {
        if let Some(stem) = name.strip_suffix(ending) {
            return stem;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(exe: &str, argv: &[&str]) -> Option<&'static str> {
        let argv: Vec<Vec<u8>> = argv.iter().map(|a| a.as_bytes().to_vec()).collect();
        recognise(Program { exe: exe.as_bytes(), argv: &argv }).map(Provider::name)
    }

    #[test]
    fn agents_as_they_are_really_started() {
        for (exe, argv, provider) in [
            ("/home/u/.local/share/claude/versions/2.1.332", &["claude"][..], "claude"),
            ("/home/u/.local/share/claude/versions/2.1.332", &["/home/u/.local/bin/claude", "-c"], "claude"),
            ("/usr/bin/node", &["claude", "", ""], "claude"),
            ("/usr/bin/node", &["node", "/usr/local/bin/claude", "fix it"], "claude"),
            (
                "/usr/bin/node",
                &[
                    "node",
                    "--max-old-space-size=8192",
                    "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js",
                ],
                "claude",
            ),
            ("/usr/bin/node", &["node", "-r", "/x/hook.js", "/usr/bin/codex"], "codex"),
            ("/opt/c/codex-x86_64-unknown-linux-musl", &["/opt/c/codex-x86_64-unknown-linux-musl"], "codex"),
            ("/usr/bin/node", &["npm exec @openai/codex@latest", "", ""], "codex"),
            (
                "/usr/bin/node",
                &["node", "/usr/bin/npx", "-y", "@google/gemini-cli@0.61.0", "-i", "x"],
                "gemini",
            ),
            (
                "/usr/bin/node",
                &["node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "@qwen-code/qwen-code"],
                "qwen",
            ),
            ("/usr/bin/bun", &["bun", "/u/.bun/bin/opencode"], "opencode"),
            ("/usr/bin/node", &["/usr/bin/node", "/usr/bin/copilot", "--resume=abc"], "copilot"),
            ("/usr/bin/python3.13", &["/v/bin/python3", "/v/bin/hermes", "--tui"], "hermes"),
            ("/usr/bin/python3.13", &["python3.13", "-u", "-m", "hermes_cli.main"], "hermes"),
            ("/usr/bin/uvx", &["uvx", "hermes-agent"], "hermes"),
            ("/usr/bin/node", &["pi"], "pi"),
            ("/usr/bin/python3", &["python3", "/v/bin/aider", "--model", "x"], "aider"),
            ("/usr/bin/goose", &["goose", "session"], "goose"),
            ("/x/claude", &["claude", "--", "-p"], "claude"),
            ("/x/claude", &["claude", "explain -p"], "claude"),
            ("/x/codex", &["codex", "-p", "work", "look at exec"], "codex"),
            ("/x/codex", &["codex", "resume", "exec"], "codex"),
            ("/x/codex", &["codex", "--profile", "exec"], "codex"),
        ] {
            assert_eq!(seen(exe, argv), Some(provider), "{argv:?}");
        }
    }

    #[test]
    fn what_only_looks_like_an_agent() {
        for (exe, argv) in [
            ("/usr/bin/vim", &["vim", "claude"][..]),
            ("/usr/bin/vim", &["vim", "/usr/local/bin/claude"]),
            ("/bin/bash", &["bash", "-c", "claude"]),
            ("/bin/bash", &["-bash"]),
            ("/usr/bin/node", &["node", "-e", "claude"]),
            ("/usr/bin/node", &["node", "server.js", "claude"]),
            ("/usr/bin/node", &["node"]),
            ("/usr/bin/tail", &["tail", "-f", "/x/@anthropic-ai/claude-code/log"]),
            ("/usr/bin/claude-monitor", &["claude-monitor"]),
            ("/usr/bin/raspi", &["raspi"]),
            ("/usr/bin/python3", &["python3", "-c", "import hermes"]),
            ("/usr/bin/node", &["npm run build", ""]),
            ("/x/claude", &["claude", "mcp", "serve"]),
            ("/x/claude", &["claude", "-p", "fix it"]),
            ("/x/claude", &["claude", "--model", "opus", "fix it", "--print"]),
            ("/x/codex", &["codex", "exec", "fix it"]),
            ("/x/codex", &["codex", "-m", "o4", "-c", "a=b", "--yolo", "exec", "fix it"]),
            ("/usr/bin/node", &["node", "/usr/bin/gemini", "--prompt=fix it"]),
            ("/x/opencode", &["opencode", "run", "fix it"]),
            ("/x/claude", &["claude", "--version"]),
            ("/x/codex", &["codex", "app-server"]),
            ("/usr/bin/node", &["node", "/usr/bin/codex", "mcp-server"]),
            ("", &[]),
        ] {
            assert_eq!(seen(exe, argv), None, "{argv:?}");
        }
    }
}
