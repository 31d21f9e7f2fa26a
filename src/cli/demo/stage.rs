//! The stage: a temporary folder with a HOME, a store, a tmux server and a supervisor of its own, and its striking.
//!
//! Everything started here has this folder as its HOME; striking ends those processes and no other.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::Wrong;
use crate::cli::{Exit, Failure};
use crate::process::{self, ProcessId, Signal, Table};

/// How the folder's name begins.
const PREFIX: &str = "ait-demo-";
/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(10);
/// How long one that ends an agent or brings it back may take.
const SLOW_COMMAND: Duration = Duration::from_secs(30);
/// How long what was told to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// A socket path holds 107 bytes; a folder that leaves less than this for the rest of it is too deep.
const DEEPEST: usize = 60;
/// What is shown of the supervisor's log when something went wrong, in bytes from its end.
const LOG_SHOWN: usize = 600;

/// The folder, and what runs in it.
#[derive(Debug)]
pub(super) struct Stage {
    folder: Option<TempDir>,
    root: PathBuf,
    supervisor: Option<Child>,
    /// Strikes the stage should this process be killed: it reads until our end of its pipe is closed.
    guardian: Option<Child>,
}

impl Stage {
    /// Makes the folders; starts nothing.
    pub(super) fn build() -> Result<Stage, Wrong> {
        let below = std::env::temp_dir();
        let deep = below.as_os_str().len() > DEEPEST;
        let below = if deep { PathBuf::from("/tmp") } else { below };
        let failed = |source| Wrong::Io { what: format!("cannot build in {}", below.display()), source };
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&below).map_err(failed)?;
        let root = folder.path().canonicalize().map_err(failed)?;
        let guardian = guard(&root).map_err(failed)?;
        let stage = Stage { folder: Some(folder), root, supervisor: None, guardian: Some(guardian) };
        let sockets = stage.sockets();
        let store = stage.store();
        let folders = [&stage.home(), &stage.runtime(), &stage.programs(), &sockets];
        for folder in folders.into_iter().map(PathBuf::as_path).chain(store.parent()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        Ok(stage)
    }

    /// The folder everything lies in.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The record file.
    pub(super) fn store(&self) -> PathBuf {
        self.home().join(".config/aitasks/agent_sessions.json")
    }

    /// The server's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.sockets().join("default")
    }

    /// A project's folder, made with its marker.
    pub(super) fn project(&self, name: &str) -> Result<PathBuf, Wrong> {
        let root = self.root.join("projects").join(name);
        let marker = root.join("aitasks/metadata");
        std::fs::create_dir_all(&marker)
            .and_then(|()| std::fs::write(marker.join("project_config.yaml"), "project: {}\n"))
            .map_err(|source| Wrong::Io { what: format!("cannot make {}", root.display()), source })?;
        Ok(root)
    }

    /// Runs one tmux command on the private server; its output without the last line end.
    pub(super) async fn tmux(&self, words: &[&str]) -> Result<String, Wrong> {
        let mut command = self.command("tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(["-f", "/dev/null"]).args(words);
        finish(command, &format!("tmux {}", words.join(" "))).await
    }

    /// `tmux X.Y`, as the program says it.
    pub(super) async fn tmux_version(&self) -> Result<String, Wrong> {
        let mut command = self.command("tmux");
        command.arg("-V");
        finish(command, "tmux -V").await
    }

    /// Runs this program to its end, as a user of this stage.
    pub(super) async fn ait(&self, words: &[&str]) -> Result<String, Wrong> {
        let mut command = self.command(myself());
        command.args(words);
        finish(command, &format!("ait {}", words.join(" "))).await
    }

    /// Runs this program to its end, where that takes its time.
    pub(super) async fn ait_slowly(&self, words: &[&str]) -> Result<String, Wrong> {
        let mut command = self.command(myself());
        command.args(words);
        finish_within(command, &format!("ait {}", words.join(" ")), SLOW_COMMAND).await
    }

    /// A program on the stage's PATH that behaves like this provider's agent.
    pub(super) fn agent(&self, provider: &str) -> Result<PathBuf, Wrong> {
        let path = self.programs().join(provider);
        match std::os::unix::fs::symlink(myself(), &path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(Wrong::Io { what: format!("cannot make {}", path.display()), source })
            }
            Ok(()) | Err(_) => Ok(path),
        }
    }

    /// Writes a file below HOME.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Wrong> {
        let path = self.home().join(name);
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| Wrong::Io { what: format!("cannot write {}", path.display()), source })
    }

    /// Starts the supervisor.
    pub(super) fn supervise(&mut self) -> Result<(), Wrong> {
        let failed = |source| Wrong::Io { what: "cannot start the supervisor".to_owned(), source };
        let log = File::create(self.log()).map_err(failed)?;
        let mut command = self.command(myself());
        command.args(["supervise", "--socket"]).arg(self.socket());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        // a group of its own: Ctrl-C is for the demo, which then ends the supervisor itself
        self.supervisor = Some(command.process_group(0).spawn().map_err(failed)?);
        Ok(())
    }

    /// Fails with the supervisor's last words once it has ended.
    pub(super) fn supervisor_runs(&mut self) -> Result<(), Wrong> {
        let ended = match self.supervisor.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => return Ok(()),
            Some(Ok(Some(status))) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => "it was not started".to_owned(),
        };
        Err(Wrong::Supervisor(ended))
    }

    /// The end of what the supervisor wrote, if it wrote anything.
    pub(super) fn supervisor_log(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.log()).ok()?;
        let from = text.char_indices().rev().take(LOG_SHOWN).last().map_or(0, |(index, _)| index);
        let words = text.get(from..)?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then_some(words)
    }

    /// Ends what was started and removes the folder. Gives how long it took, or what had to be killed or was left.
    pub(super) async fn strike(&mut self) -> Result<Duration, String> {
        let begun = Instant::now();
        let mut left = Vec::new();
        // one that ended early was told of when it was missed
        if self.supervisor_runs().is_ok()
            && let Some(mut supervisor) = self.supervisor.take()
        {
            if let Some(id) = supervisor.id().and_then(|pid| process::identify(pid as i32)) {
                let _ = process::signal(&id, Signal::TERM);
            }
            match tokio::time::timeout(GRACE, supervisor.wait()).await {
                Ok(Ok(status)) if status.success() => {}
                Ok(Ok(status)) => left.push(format!("the supervisor ended with {status}")),
                Ok(Err(error)) => left.push(format!("the supervisor: {error}")),
                Err(_) => {
                    left.push("the supervisor did not end when told".to_owned());
                    let _ = supervisor.kill().await;
                }
            }
        }
        end_all(&self.home(), &mut left).await;
        let root = self.root.clone();
        if let Some(Err(error)) = self.folder.take().map(TempDir::close) {
            left.push(format!("{}: {error}", root.display()));
        }
        if let Some(mut guardian) = self.guardian.take() {
            // it reads the end of its pipe, and finds nothing to do
            drop(guardian.stdin.take());
            if !matches!(tokio::time::timeout(GRACE, guardian.wait()).await, Ok(Ok(status)) if status.success())
            {
                left.push("the guardian of the stage did not end well".to_owned());
            }
        }
        if left.is_empty() { Ok(begun.elapsed()) } else { Err(left.join("; ")) }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.root).stdin(Stdio::null()).kill_on_drop(true);
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let path = std::iter::once(self.programs()).chain(std::env::split_paths(&path));
        // a folder with a colon in its name is on nobody's PATH
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        command
            .env("HOME", self.home())
            .env("XDG_CONFIG_HOME", self.home().join(".config"))
            .env("XDG_STATE_HOME", self.home().join(".local/state"))
            .env("XDG_RUNTIME_DIR", self.runtime())
            .env("TMUX_TMPDIR", self.root.join("tmux"))
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8");
        command
    }

    fn programs(&self) -> PathBuf {
        self.root.join("bin")
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The runtime folder, where the supervisor's socket lies.
    pub(super) fn runtime(&self) -> PathBuf {
        self.root.join("run")
    }

    fn sockets(&self) -> PathBuf {
        self.root.join("tmux").join(format!("tmux-{}", rustix::process::getuid().as_raw()))
    }

    fn log(&self) -> PathBuf {
        self.root.join("supervise.log")
    }
}

impl Drop for Stage {
    /// The last way out, where `strike` was not reached: tell what is left to end.
    fn drop(&mut self) {
        if self.folder.is_some() {
            for id in processes(&self.home()) {
                let _ = process::signal(&id, Signal::TERM);
            }
        }
    }
}

/// The processes that have this HOME.
fn processes(home: &Path) -> Vec<ProcessId> {
    let ours = |pid: i32| {
        let variables = process::environment(pid, &["HOME"]).unwrap_or_default();
        variables.iter().any(|(_, value)| value == home.as_os_str().as_bytes())
    };
    let table = Table::read().unwrap_or_default();
    table.rows().iter().filter(|row| !row.zombie && ours(row.id.pid)).map(|row| row.id.clone()).collect()
}

/// Ends the server and the agents below this HOME; a command that was cut short may start another one meanwhile.
async fn end_all(home: &Path, left: &mut Vec<String>) {
    let told = Instant::now();
    loop {
        let remaining = processes(home);
        if remaining.is_empty() {
            return;
        }
        let late = told.elapsed() > GRACE;
        for id in &remaining {
            let _ = process::signal(id, if late { Signal::KILL } else { Signal::TERM });
            if late {
                left.push(format!("process {} had to be killed", id.pid));
            }
        }
        if told.elapsed() > GRACE * 2 {
            return;
        }
        await_deaths(&remaining, Duration::from_millis(200)).await;
    }
}

/// Starts the guardian of a stage: this program, in a group of its own, so that what is done to ours is not done to it.
fn guard(root: &Path) -> io::Result<Child> {
    let mut command = Command::new(myself());
    command.args(["demo", "--strike"]).arg(root).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn()
}

/// The guardian: waits for the end of standard input, which comes with the demo's, then ends what is left on the stage and
/// removes it. A folder that is no stage of ours is left alone.
pub(super) async fn strike_left(root: &Path) -> Result<Exit, Failure> {
    // what is sent to everything of the terminal is for the demo
    let _deaf =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    // nothing else is to be done meanwhile
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let named = root.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let uid = rustix::process::geteuid().as_raw();
    if !named || !root.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid) {
        return Ok(Exit::OK);
    }
    let mut left = Vec::new();
    end_all(&root.join("home"), &mut left).await;
    std::fs::remove_dir_all(root)?;
    Ok(Exit::OK)
}

/// The program that runs, by its path.
pub(super) fn myself() -> String {
    std::env::current_exe().map_or_else(|_| "ait".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Waits until all of `ids` have died, at most `span`.
pub(super) async fn await_deaths(ids: &[ProcessId], span: Duration) -> bool {
    let deaths = async {
        for id in ids {
            match process::Watch::open(id) {
                Ok(process::Opened::Watching(watch)) => drop(watch.died().await),
                Ok(process::Opened::Gone) | Err(_) => {}
            }
        }
    };
    tokio::time::timeout(span, deaths).await.is_ok()
}

async fn finish(command: Command, line: &str) -> Result<String, Wrong> {
    finish_within(command, line, COMMAND).await
}

async fn finish_within(mut command: Command, line: &str, span: Duration) -> Result<String, Wrong> {
    let failed = |told: String| Wrong::Command { line: line.to_owned(), told };
    let output = match tokio::time::timeout(span, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Err(failed("it is not installed".to_owned()));
        }
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => return Err(failed(format!("no end within {} s", span.as_secs()))),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned());
    }
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(failed(format!("{} {} {}", output.status, said.trim(), told.trim())))
}
