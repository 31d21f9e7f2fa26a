//! A private tmux server: its own socket, configuration, environment and HOME; ended by pid.
//!
//! Refuses any socket outside its story's folder, so that the user's server can never be reached.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;

use super::proc::{self, Process};
use super::run::Ran;
use super::{DEADLINE, Home, wait_until};

/// The tmux binary under test, as it is called.
pub(crate) fn binary() -> std::ffi::OsString {
    real_binary().into_os_string()
}

/// The words of a stand-in agent under its own name; `Home::stand_in` gives one that goes by a provider's.
pub(crate) fn stand_in<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [super::AIT, "demo-agent"].into_iter().chain(flags.iter().copied()).collect()
}

/// The tmux binary under test, by its path: `AIT_TEST_TMUX`, else the first `tmux` on PATH.
#[track_caller]
pub(crate) fn real_binary() -> PathBuf {
    let name = PathBuf::from(std::env::var_os("AIT_TEST_TMUX").unwrap_or_else(|| "tmux".into()));
    if name.components().count() > 1 {
        return name.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(&name));
    places.find(|place| place.is_file()).unwrap_or_else(|| panic!("no {} on PATH", name.display()))
}

/// What a server is started with.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// The socket's file name in the story's tmux folder.
    pub(crate) socket: String,
    /// The configuration's text; `/dev/null` is read when it is empty.
    pub(crate) configuration: String,
    /// Name of the first session.
    pub(crate) session: String,
    /// Command of the first pane; empty is the default shell.
    pub(crate) command: Vec<String>,
    /// More environment of the server, over the world's.
    pub(crate) environment: Vec<(String, String)>,
}

impl Default for Start {
    fn default() -> Start {
        Start {
            socket: "default".to_owned(),
            configuration: String::new(),
            session: "main".to_owned(),
            command: Vec::new(),
            environment: Vec::new(),
        }
    }
}

/// A running private server; ended when dropped.
#[derive(Debug)]
pub(crate) struct Tmux {
    home: Home,
    socket: PathBuf,
    configuration: PathBuf,
    start: Start,
    server: Mutex<Option<Process>>,
}

impl Tmux {
    /// A server with one session `main` (200×50) whose pane is a shell.
    #[track_caller]
    pub(crate) fn start(home: &Home) -> Tmux {
        Tmux::start_with(home, Start::default())
    }

    /// A server as `start` says.
    #[track_caller]
    pub(crate) fn start_with(home: &Home, start: Start) -> Tmux {
        let tmux = Tmux::unstarted(home, start);
        tmux.boot();
        tmux
    }

    /// The handle of a server that is not started yet.
    #[track_caller]
    pub(crate) fn unstarted(home: &Home, start: Start) -> Tmux {
        let socket = home.sockets().join(&start.socket);
        refuse_foreign(home, &socket);
        let configuration = if start.configuration.is_empty() {
            PathBuf::from("/dev/null")
        } else {
            let path = home.root().join(format!("{}.conf", start.socket));
            std::fs::write(&path, &start.configuration).unwrap();
            path
        };
        Tmux { home: home.clone(), socket, configuration, start, server: Mutex::new(None) }
    }

    /// Starts the server (again) on the same socket, with the first session, and remembers its process. What a killed one left
    /// may still hold the socket open (a child that has not become a program yet): a client that meets it is told that the
    /// server exited, and starts none.
    #[track_caller]
    pub(crate) fn boot(&self) {
        let mut words: Vec<OsString> =
            ["new-session", "-d", "-x", "200", "-y", "50", "-s"].iter().map(OsString::from).collect();
        words.push(self.start.session.clone().into());
        words.extend(self.start.command.iter().map(OsString::from));
        wait_until("a server that starts", DEADLINE, || {
            let started = self.run(&words);
            (!started.errors().starts_with("server exited")).then_some(started)
        })
        .ok();
        self.remember();
    }

    /// Reads the server's pid anew (after a server was started on this socket by someone else).
    #[track_caller]
    pub(crate) fn remember(&self) {
        let pid = self.ok(["display-message", "-p", "#{pid}"]).parse().unwrap();
        *self.server.lock().unwrap() = Process::of(pid);
    }

    /// The same where a server may have ended with its last pane.
    pub(crate) fn remember_any(&self) {
        let told = self.run(["display-message", "-p", "#{pid}"]);
        if let Ok(pid) = told.text().parse() {
            *self.server.lock().unwrap() = Process::of(pid);
        }
    }

    /// The socket's path.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The socket's path as text.
    pub(crate) fn socket_text(&self) -> String {
        self.socket.to_string_lossy().into_owned()
    }

    /// The story this server belongs to.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The server's process as of its start.
    #[track_caller]
    pub(crate) fn server(&self) -> Process {
        self.server.lock().unwrap().expect("the server was started")
    }

    /// Whether its process runs and is not stopped.
    pub(crate) fn answers(&self) -> bool {
        let server = *self.server.lock().unwrap();
        server.is_some_and(|server| server.alive() && proc::state(server.pid) != Some('T'))
    }

    /// `tmux -u -S … -f …` with `words`, not yet started.
    pub(crate) fn command<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = self.home.command(real_binary());
        for (name, value) in &self.start.environment {
            command.env(name, value);
        }
        command.arg("-u").arg("-S").arg(&self.socket).arg("-f").arg(&self.configuration).args(words);
        command
    }

    /// Runs one tmux command.
    #[track_caller]
    pub(crate) fn run<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Ran {
        Ran::run(&mut self.command(words))
    }

    /// Runs one tmux command that must succeed; its output without the last line end.
    #[track_caller]
    pub(crate) fn ok<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> String {
        self.run(words).ok().text()
    }

    /// The value of `format` for `target`.
    #[track_caller]
    pub(crate) fn format(&self, target: &str, format: &str) -> String {
        self.ok(["display-message", "-p", "-t", target, format])
    }

    /// Opens a window named `name` in `session` without selecting it.
    #[track_caller]
    pub(crate) fn window(&self, session: &str, name: &str, folder: &Path, command: &[&str]) -> Pane {
        let session = format!("={session}:");
        let folder = folder.to_string_lossy();
        let mut words = vec!["new-window", "-d", "-P", "-F", PANE, "-t", &session, "-n", name, "-c", &folder];
        words.extend(command);
        Pane::parse(&self.ok(words))
    }

    /// Opens a window in some session without selecting it.
    #[track_caller]
    pub(crate) fn window_anywhere(&self, command: &[&str]) -> Pane {
        let sessions = self.ok(["list-sessions", "-f", "#{!=:#{session_name},_ait}", "-F", "#{session_id}"]);
        let session = format!("{}:", sessions.lines().next().unwrap());
        let mut words = vec!["new-window", "-d", "-P", "-F", PANE, "-t", &session];
        words.extend(command);
        Pane::parse(&self.ok(words))
    }

    /// Splits `pane` without selecting the new one.
    #[track_caller]
    pub(crate) fn split(&self, pane: &Pane, folder: &Path, command: &[&str]) -> Pane {
        let folder = folder.to_string_lossy();
        let mut words = vec!["split-window", "-d", "-P", "-F", PANE, "-t", &pane.id, "-c", &folder];
        words.extend(command);
        Pane::parse(&self.ok(words))
    }

    /// A detached session named `name` whose first pane runs `command`.
    #[track_caller]
    pub(crate) fn session(&self, name: &str, folder: &Path, command: &[&str]) -> Pane {
        let folder = folder.to_string_lossy();
        let mut words =
            vec!["new-session", "-d", "-P", "-F", PANE, "-s", name, "-x", "200", "-y", "50", "-c", &folder];
        words.extend(command);
        Pane::parse(&self.ok(words))
    }

    /// Every pane of the server, once, those of `_ait` left out.
    #[track_caller]
    pub(crate) fn panes(&self) -> Vec<Pane> {
        let text = self.ok(["list-panes", "-a", "-f", "#{!=:#{session_name},_ait}", "-F", PANE]);
        let mut panes: Vec<Pane> = text.lines().map(Pane::parse).collect();
        panes.sort();
        panes.dedup();
        panes
    }

    /// Makes the server collect its dead children: builds with libutempter miss the end of one until they hear of another (R9).
    /// By the signal alone: they can miss the end of a `run-shell` as well, and its client then waits for ever.
    #[track_caller]
    pub(crate) fn collect(&self) {
        assert!(self.server().signal(Signal::CHILD), "the server runs");
    }

    /// Ends the server with `signal` and waits for its death.
    #[track_caller]
    pub(crate) fn kill(&self, signal: Signal) {
        let server = self.server();
        assert!(server.signal(signal), "the server runs");
        assert!(server.dies(Duration::from_secs(10)), "the server {} dies of {signal:?}", server.pid);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let server = *self.server.lock().unwrap();
        if let Some(server) = server {
            let gone = server.end(Duration::from_secs(5));
            assert!(gone || std::thread::panicking(), "the tmux server {} is gone", server.pid);
        }
    }
}

/// Format of one pane in answers.
const PANE: &str = "#{pane_id} #{pane_pid} #{window_id} #{session_id}";

/// A pane as tmux names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pane {
    /// `%N`.
    pub(crate) id: String,
    /// The process tmux started in it.
    pub(crate) pid: u32,
    /// `@N`.
    pub(crate) window: String,
    /// `$N`.
    pub(crate) session: String,
}

impl Pane {
    #[track_caller]
    fn parse(line: &str) -> Pane {
        let words: Vec<&str> = line.split(' ').collect();
        let [id, pid, window, session] = words[..] else { panic!("not a pane: {line:?}") };
        Pane {
            id: id.to_owned(),
            pid: pid.parse().unwrap(),
            window: window.to_owned(),
            session: session.to_owned(),
        }
    }

    /// The pane's own process.
    #[track_caller]
    pub(crate) fn process(&self) -> Process {
        Process::of(self.pid).unwrap_or_else(|| panic!("pane {} has process {}", self.id, self.pid))
    }
}

#[track_caller]
fn refuse_foreign(home: &Home, socket: &Path) {
    assert!(
        socket.starts_with(home.root()) && socket.parent() == Some(&home.sockets()),
        "refusing {}: not a socket of this story",
        socket.display()
    );
    let length = socket.as_os_str().len();
    assert!(length < 108, "socket path of {length} bytes does not fit: {}", socket.display());
}
