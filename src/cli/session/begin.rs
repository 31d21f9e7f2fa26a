//! What `start` and `run` have in common: the agent, its folder, its prompt, its place.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::address::Book;
use super::envelope::Trouble;
use super::face::Face;
use super::refuse_option;
use crate::cli::{Exit, Failure, program, settings, sockets};
use crate::coordinator::place;
use crate::lifecycle::perform::World;
use crate::lifecycle::prompt::END_OF_PASTE;
use crate::lifecycle::root::root_of;
use crate::lifecycle::start::NotStarted;
use crate::lifecycle::{adopt, exec};
use crate::provider::{Catalog, Recorded};
use crate::record::{Record, Records, ServerEpoch, Session};
use crate::store::{Store, System};
use crate::tmux::{OneShot, Unanswered};

/// The longest name of a session, in bytes.
const NAME: usize = 128;
/// The longest title, in characters.
const TITLE: usize = 120;
/// The longest prompt, in bytes.
const PROMPT: u64 = 8 * 1024 * 1024;
/// Options of an agent that choose its conversation or its folder, which is not for its own words: the long ones, and the letters
/// of the short ones, to which a value may be attached. Codex' subcommands are among the long ones, wherever they stand.
type Reserved = (&'static [&'static str], &'static [&'static str]);
const OF_CLAUDE: Reserved =
    (&["--session-id", "--resume", "--continue", "--fork-session", "--from-pr"], &["-r", "-c"]);
const OF_CODEX: Reserved =
    (&["resume", "fork", "--cd", "--last", "--all", "--include-non-interactive"], &["-C"]);

/// A session to begin.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Begin {
    /// The kind of agent: claude, codex, hermes, or one of the user's own
    #[arg(long, value_name = "KIND")]
    pub(super) agent: String,
    /// The folder it works in; this one unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A title, which is a name it can be meant by
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// A name it can be meant by
    #[arg(long, value_name = "NAME")]
    pub(super) id: Option<String>,
    /// The prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The prompt from a file; `-` for standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// The prompt from standard input
    #[arg(long)]
    prompt_stdin: bool,
    /// The agent's program, where it is not the one on PATH
    #[arg(long, value_name = "PATH")]
    agent_bin: Option<PathBuf>,
    /// One more word for the agent; may be given several times
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(super) agent_arg: Vec<String>,
    /// The tmux session it goes to, made if there is none; its project's unless given
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The server it goes to, by its socket's name in tmux's folder
    #[arg(long, value_name = "NAME", conflicts_with = "socket_path")]
    socket_name: Option<String>,
    /// The server it goes to, by its socket
    #[arg(long, value_name = "PATH")]
    socket_path: Option<PathBuf>,
}

/// The program of an agent, where its variable (`AGENT_SESSION_CLAUDE_BIN` …) names one.
pub(super) fn set_binary(agent: &str) -> Option<PathBuf> {
    let set = std::env::var_os(format!("AGENT_SESSION_{}_BIN", agent.to_ascii_uppercase()))?;
    let blank = set.as_encoded_bytes().iter().all(u8::is_ascii_whitespace);
    (!blank).then(|| PathBuf::from(set))
}

/// Where an agent goes.
pub(super) struct Place {
    pub(super) root: String,
    pub(super) window: String,
    pub(super) session: String,
    pub(super) asked: bool,
    pub(super) server: Option<ServerEpoch>,
    pub(super) index: Option<i64>,
}

impl Begin {
    /// The folder, resolved.
    pub(super) fn folder(&self) -> Result<PathBuf, Trouble> {
        let given = match &self.cwd {
            Some(given) => given.clone(),
            None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        };
        let shown = given.display();
        let Ok(folder) = given.canonicalize() else {
            return Err(Trouble::new(Exit::USAGE, "cwd-unavailable", format!("there is no folder {shown}")));
        };
        if !folder.is_dir() {
            return Err(Trouble::new(Exit::USAGE, "cwd-not-directory", format!("{shown} is no folder")));
        }
        if folder.to_str().is_none() {
            return Err(Trouble::new(
                Exit::USAGE,
                "cwd-unavailable",
                format!("the name of {shown} is no text"),
            ));
        }
        Ok(folder)
    }

    /// A name must be one that no shell, path or tmux reads as something else.
    pub(super) fn refuse_name(&self) -> Result<(), Trouble> {
        let may_be = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let fits = |name: &String| (1..=NAME).contains(&name.len()) && name.chars().all(may_be);
        match self.id.as_ref().filter(|name| !fits(name)) {
            Some(name) => {
                let message = format!("{name:?} is no session id");
                let invalid = Trouble::new(Exit::USAGE, "invalid-session-id", message);
                Err(invalid.hint(format!("it may hold letters, digits, - and _, at most {NAME}")))
            }
            None => Ok(()),
        }
    }

    /// A title is one line that fits a list; the tmux session it goes to has a name of one line.
    pub(super) fn refuse_title(&self) -> Result<(), Trouble> {
        let refused = |code: &'static str, message: String| Err(Trouble::new(Exit::USAGE, code, message));
        let title = self.title.as_deref().unwrap_or_default();
        if title.chars().any(char::is_control) {
            return refused("invalid-title", "a title is one line without control characters".to_owned());
        }
        if title.chars().count() > TITLE {
            return refused("title-too-long", format!("a title has at most {TITLE} characters"));
        }
        let session = self.session.as_deref();
        if session.is_some_and(|name| name.is_empty() || name.chars().any(char::is_control)) {
            let message = "the name of a tmux session is not empty, and has no control characters";
            return refused("invalid-tmux-session", message.to_owned());
        }
        Ok(())
    }

    /// The prompt, from the one source that was named.
    pub(super) fn prompt(&self) -> Result<Option<Vec<u8>>, Trouble> {
        let given = [self.prompt.is_some(), self.prompt_file.is_some(), self.prompt_stdin];
        if given.iter().filter(|given| **given).count() > 1 {
            let message = "the prompt has more than one source";
            return Err(Trouble::new(Exit::USAGE, "multiple-prompt-sources", message));
        }
        if let Some(text) = &self.prompt {
            refuse_option::<Self>(text)?;
        }
        let from_stdin = self.prompt_stdin || self.prompt_file.as_deref() == Some(Path::new("-"));
        let text = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, _) if from_stdin => read(std::io::stdin().lock()).map_err(|why| {
                Trouble::new(Exit::FAILED, "stdin-read-failed", format!("cannot read standard input: {why}"))
            })?,
            (None, Some(path)) => std::fs::File::open(path).and_then(read).map_err(|why| {
                let message = format!("cannot read {}: {why}", path.display());
                Trouble::new(Exit::FAILED, "prompt-file-read-failed", message)
            })?,
            (None, None) => return Ok(None),
        };
        if text.windows(END_OF_PASTE.len()).any(|window| window == END_OF_PASTE) || text.contains(&0) {
            let message = "the prompt holds control characters that would end its paste";
            return Err(Trouble::new(Exit::USAGE, "invalid-prompt", message));
        }
        Ok(Some(text))
    }

    /// The earlier command line has three kinds of agents.
    pub(super) fn refuse_agent(&self) -> Result<(), Trouble> {
        if Face::ours().knows(&self.agent) {
            return Ok(());
        }
        let message = format!("invalid value '{}' for '--agent <AGENT>'", self.agent);
        Err(Trouble::new(Exit::USAGE, "parse-error", message).of_no_command())
    }

    /// Words that would choose another conversation or another folder than the one that is recorded.
    pub(super) fn refuse_reserved(&self) -> Result<(), Trouble> {
        let (long, short) = match self.agent.as_str() {
            "claude" => OF_CLAUDE,
            "codex" => OF_CODEX,
            _ => return Ok(()),
        };
        let reserved = |word: &&String| {
            let name = word.split('=').next().unwrap_or(word);
            long.contains(&name) || short.iter().any(|letter| word.starts_with(letter))
        };
        let Some(word) = self.agent_arg.iter().find(reserved) else { return Ok(()) };
        let flag = word.split('=').next().unwrap_or(word);
        let message =
            format!("{flag} chooses its conversation or its folder; that is not for an agent's own words");
        let trouble = Trouble::new(Exit::USAGE, "reserved-agent-arg", message);
        Err(trouble.detail("agent", self.agent.as_str()).detail("flag", flag))
    }

    /// Its program, where it was given.
    pub(super) fn binary(&self) -> Option<PathBuf> {
        let given = self.agent_bin.clone().or_else(|| set_binary(&self.agent))?;
        // a plain name is looked for on PATH as any other
        if given.components().count() == 1 { Some(given) } else { std::path::absolute(given).ok() }
    }

    /// The agent's words, its program first.
    pub(super) fn argv(
        &self,
        catalog: &Catalog,
        chosen: Option<&str>,
        title: Option<&str>,
        cwd: &Path,
    ) -> Result<Vec<String>, Trouble> {
        let argv = catalog.launch_argv(&self.agent, chosen, Recorded::default());
        let mut argv = argv.map_err(|why| {
            let known: Vec<&str> = catalog.kinds().collect();
            let unknown = Trouble::new(Exit::USAGE, "invalid-agent", why.to_string());
            unknown.hint(format!("known are {}", known.join(", ")))
        })?;
        if let (Some(binary), Some(first)) = (self.binary(), argv.first_mut()) {
            *first = binary.to_string_lossy().into_owned();
        }
        match (self.agent.as_str(), title) {
            ("claude", Some(title)) => argv.extend(["--name".to_owned(), title.to_owned()]),
            ("codex", _) if Face::ours() == Face::AgentSession => {
                let cwd = cwd.to_string_lossy().into_owned();
                argv.extend(["--cd".to_owned(), cwd, "--no-alt-screen".to_owned()]);
            }
            ("hermes", _) => argv.insert(1, "chat".to_owned()),
            (_, _) => {}
        }
        argv.extend(self.agent_arg.iter().cloned());
        Ok(argv)
    }

    /// A program that is nowhere is no reason to make a window first.
    pub(super) fn refuse_missing(&self, program: &str, path: Option<&String>) -> Result<(), Trouble> {
        let Some(path) = path else { return Ok(()) };
        if exec::find_on(path.into(), OsStr::new(program)).is_some() {
            return Ok(());
        }
        let given = Path::new(program).components().count() != 1;
        let message = if given {
            format!("{program} is no program that can be run")
        } else {
            format!("there is no program {program} on PATH")
        };
        let trouble = Trouble::new(Exit::FAILED, "command-spawn-failed", message);
        Err(if given { trouble } else { trouble.hint("--agent-bin says where it is") })
    }

    /// What a run needs: an agent that reads its prompt and leaves, and a prompt.
    pub(super) fn refuse_run(&self, prompt: Option<&[u8]>) -> Result<(), Trouble> {
        if !["claude", "codex"].contains(&self.agent.as_str()) {
            let message = format!("{} has no way to answer one prompt and leave", self.agent);
            let unsupported = Trouble::new(Exit::USAGE, "unsupported-run-agent", message);
            return Err(unsupported.hint("claude and codex have; `ait start` begins a conversation"));
        }
        if prompt.is_none_or(|prompt| prompt.trim_ascii().is_empty()) {
            let missing = Trouble::new(Exit::USAGE, "missing-prompt", "a run needs a prompt");
            return Err(missing.hint("--prompt, --prompt-file or --prompt-stdin gives it"));
        }
        Ok(())
    }

    /// The words of an agent that answers one prompt, read from standard input, and leaves.
    pub(super) fn argv_of_run(&self, cwd: &Path) -> Vec<String> {
        let program = self.binary().map(|path| path.to_string_lossy().into_owned());
        let cwd = cwd.to_string_lossy();
        let (before, after): (&[&str], &[&str]) =
            if self.agent == "codex" { (&["exec", "--cd", &cwd], &["-"]) } else { (&["-p"], &[]) };
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut argv = vec![program.unwrap_or_else(|| self.agent.clone())];
        argv.extend(own(before));
        argv.extend(self.agent_arg.iter().cloned());
        argv.extend(own(after));
        argv
    }

    /// Where it goes: its project's session on the server that was named, this shell's, or the user's default one.
    pub(super) async fn place(&self, store: &Store, cwd: &Path, window: String) -> Result<Place, Trouble> {
        let root = root_of(cwd).map_err(Failure::from)?.to_string_lossy().into_owned();
        let socket = match (&self.socket_path, &self.socket_name) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(name)) => Some(sockets::folder().join(name)),
            (None, None) => sockets::own(),
        };
        let default = sockets::resolved(&sockets::folder().join("default"));
        let socket = socket.map_or_else(|| default.clone(), |socket| sockets::resolved(&socket));
        let is_default = socket == default;
        let server = OneShot::new(&socket).map_err(Failure::from)?;
        let epoch = match server.run(["show-options", "-g", "-v", "base-index"]).await {
            Ok(index) => Some((
                adopt::epoch(&server).await.map_err(Failure::from)?,
                String::from_utf8_lossy(&index).trim().parse().ok(),
            )),
            Err(Unanswered::NoServer { .. }) if is_default => None,
            Err(why) => return Err(Trouble::new(Exit::UNAVAILABLE, "tmux-unavailable", why.to_string())),
        };
        let (server, index) = epoch.map_or((None, None), |(epoch, index)| (Some(epoch), index));
        let records = &store.read()?.records;
        let session = match &self.session {
            Some(name) => place::callable(name),
            None => project_session(records, &root, server.as_ref()),
        };
        // a supervisor attaches to the server a record names, and old servers crash when windows change while one attaches: the
        // default server needs not be named before its window is made
        let server = server.filter(|_| !is_default);
        Ok(Place { asked: self.session.is_some(), root, window, session, server, index })
    }
}

/// The session the project's agents are in, else one of its folder's name that is no other project's.
fn project_session(records: &Records, root: &str, server: Option<&ServerEpoch>) -> String {
    let here = |own: &ServerEpoch| server.is_some_and(|server| own.is_same_life(server));
    let placed = records
        .iter()
        .filter(|record| record.location.pane_id().is_some() && record.ait.server.as_ref().is_some_and(here));
    let shared = |record: &&Record| !record.session.is_empty() && !has_own(record);
    if let Some(own) = placed.clone().find(|record| record.root == root && shared(record)) {
        return own.session.clone();
    }
    let name = Path::new(root).file_name().map(|name| place::callable(&name.to_string_lossy()));
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "agents".to_owned());
    let others: Vec<&str> = placed.map(|record| record.session.as_str()).collect();
    let mut free = name.clone();
    let mut number = 2;
    while others.contains(&free.as_str()) {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

/// Whether its tmux session is for it alone, as the earlier command line has it.
fn has_own(record: &Record) -> bool {
    let name = record.ait.session.as_ref().and_then(|session| session.name.as_ref());
    name.is_some_and(|name| record.session == own_session(&record.agent_kind, name))
}

/// The tmux session that the earlier command line gives to one session.
pub(super) fn own_session(kind: &str, name: &str) -> String {
    format!("hs-{kind}-{name}")
}

/// A name for a session that was given none: `YYYYMMDD-HHMMSS-<agent>-<slug>`, in local time, numbered if need be.
pub(super) fn free_name(begin: &Begin, book: &Book) -> Result<String, Trouble> {
    let now = jiff::ZonedDateTime::now().strftime("%Y%m%d-%H%M%S").to_string();
    let slug = begin.title.as_deref().map_or_else(|| begin.agent.clone(), slug);
    let name = format!("{now}-{}-{slug}", begin.agent);
    let numbered = (1..100).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !book.has_name(name)).ok_or_else(|| {
        Trouble::new(Exit::FAILED, "session-id-exhausted", format!("{name} and its numbers are taken"))
    })
}

/// A title as part of a name: lower-case letters and digits, one dash for everything else, at most 32 bytes.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_matches('-');
    let slug = slug[..slug.len().min(32)].trim_matches('-');
    if slug.is_empty() { "session".to_owned() } else { slug.to_owned() }
}

/// An agent's words below the process that keeps its log and its exit status.
pub(super) fn below_runner(program: &Path, words: &[String]) -> Vec<String> {
    let own = [program.to_string_lossy().into_owned(), "runner".to_owned(), "--".to_owned()];
    own.into_iter().chain(words.iter().cloned()).collect()
}

/// What its window is called.
pub(super) fn window(session: &Session, kind: &str) -> String {
    session.title.clone().or_else(|| session.name.clone()).unwrap_or_else(|| kind.to_owned())
}

/// What operations are done with.
pub(super) fn world(store: Store) -> Result<World, Trouble> {
    let config = settings::config()?;
    Ok(World {
        store,
        system: System::here(),
        program: program::path()?,
        catalog: settings::catalog_of(&config)?,
        capture_max_lines: config.frozen.capture_max_lines,
        signals: settings::signals(&config),
    })
}

/// The name is another session's.
pub(super) fn taken(name: &str) -> Trouble {
    let message = format!("a session is called {name} already");
    Trouble::new(Exit::FAILED, "session-exists", message).detail("id", name)
}

/// Why nothing was started, in the contract's codes.
pub(super) fn trouble(why: NotStarted) -> Trouble {
    match why {
        NotStarted::NameTaken(name) => taken(&name),
        NotStarted::Store(error) => error.into(),
        NotStarted::Launch(outcome) if outcome.word == "no_binary" => {
            Trouble::new(Exit::FAILED, "command-spawn-failed", outcome.detail)
        }
        NotStarted::Launch(outcome) if outcome.word.starts_with("agent_exited") => {
            let how = outcome.word.split_once(':').map_or("", |word| word.1);
            let trouble = Trouble::new(Exit::FAILED, "command-failed", ended_at_once(how, &outcome.detail));
            match how {
                "121" => {
                    trouble.hint("its tmux server may have another HOME or XDG_CONFIG_HOME than this command")
                }
                _ => trouble,
            }
        }
        other @ (NotStarted::Refused(_)
        | NotStarted::File { .. }
        | NotStarted::Launch(_)
        | NotStarted::Prompt(_)
        | NotStarted::Told
        | NotStarted::Left { .. }) => Trouble::new(Exit::FAILED, "command-failed", other.to_string()),
    }
}

/// Its agent ended before it stood: by its exit status, or `signal_N`, and its last words.
fn ended_at_once(how: &str, said: &str) -> String {
    let how = match (how.strip_prefix("signal_"), how) {
        (Some(signal), _) => format!(", by signal {signal}"),
        (None, "") => String::new(),
        (None, status) => format!(" with exit status {status}"),
    };
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("its agent ended at once{how}{said}")
}

fn read(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(PROMPT + 1).read_to_end(&mut text)?;
    if text.len() as u64 > PROMPT {
        return Err(std::io::Error::other(format!("it is longer than {PROMPT} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_an_agent_ended_is_said_in_words() {
        for (how, said, told) in [
            ("3", "no such option", "its agent ended at once with exit status 3: no such option"),
            ("signal_9", "", "its agent ended at once, by signal 9"),
            ("", "x", "its agent ended at once: x"),
        ] {
            assert_eq!(ended_at_once(how, said), told);
        }
    }

    #[test]
    fn a_title_as_part_of_a_name() {
        for (title, part) in [
            ("Fix API", "fix-api"),
            ("  --  ", "session"),
            ("Über: größe!", "ber-gr-e"),
            ("a very long title that goes on and on and on", "a-very-long-title-that-goes-on-a"),
        ] {
            assert_eq!(slug(title), part, "{title}");
        }
    }
}
