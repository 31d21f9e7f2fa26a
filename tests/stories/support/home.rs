//! One story's world on disk: HOME, store, runtime folder, tmux folder, all below one temporary folder.
//!
//! The last owner to let go checks that no process of the story is left.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::proc::{self, Process};
use super::run::Ran;
use super::{AIT, wait_until};

/// How long processes may take to be gone after a story let go of everything.
const LEFTOVER_DEADLINE: Duration = Duration::from_secs(10);

/// A handle on the world; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    // Removes the folder when it goes, after the check.
    _folder: TempDir,
    root: PathBuf,
    path: String,
}

impl Home {
    /// A new world in the temporary folder of the machine.
    pub(crate) fn new() -> Home {
        Home::below(&std::env::temp_dir())
    }

    /// A new world on a tmpfs where there is one.
    pub(crate) fn on_tmpfs() -> Home {
        let shm = Path::new("/dev/shm");
        Home::below(if shm.is_dir() { shm } else { Path::new("/tmp") })
    }

    /// A new world below `parent`. Names are short: a socket path holds 107 bytes.
    pub(crate) fn below(parent: &Path) -> Home {
        let folder = tempfile::Builder::new().prefix("ait-").rand_bytes(6).tempdir_in(parent).unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "run", "tmux", "bin", "home/.config", "home/.local", "home/.local/state"] {
            private(&root.join(name));
        }
        std::os::unix::fs::symlink(AIT, root.join("bin/claude")).unwrap();
        let tmux = super::tmux::real_binary();
        std::os::unix::fs::symlink(&tmux, root.join("bin/tmux")).unwrap();
        let uid = rustix::process::getuid().as_raw();
        private(&root.join("tmux").join(format!("tmux-{uid}")));
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        Home { inner: Arc::new(Inner { _folder: folder, root, path }) }
    }

    /// The folder everything lies in.
    pub(crate) fn root(&self) -> &Path {
        &self.inner.root
    }

    /// `$HOME`.
    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// A folder first on PATH, for wrappers.
    pub(crate) fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    /// `$XDG_RUNTIME_DIR`.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.root().join("run")
    }

    /// `$TMUX_TMPDIR`.
    pub(crate) fn tmux_tmpdir(&self) -> PathBuf {
        self.root().join("tmux")
    }

    /// The folder tmux puts its sockets in.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.tmux_tmpdir().join(format!("tmux-{}", rustix::process::getuid().as_raw()))
    }

    /// The store file.
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join(".config/aitasks/agent_sessions.json")
    }

    /// The lock that names the supervisor of this store.
    pub(crate) fn supervisor_lock(&self) -> PathBuf {
        self.home().join(".config/aitasks/agent_sessions.json.supervisor.lock")
    }

    /// The archive beside the store.
    pub(crate) fn archive(&self) -> PathBuf {
        self.home().join(".config/aitasks/agent_sessions.archive.jsonl")
    }

    /// A project folder with a marker, made if missing.
    pub(crate) fn project(&self, name: &str) -> PathBuf {
        let root = self.root().join("projects").join(name);
        let marker = root.join("aitasks/metadata");
        fs::create_dir_all(&marker).unwrap();
        fs::write(marker.join("project_config.yaml"), "project: {}\n").unwrap();
        root
    }

    /// The words of a stand-in agent that goes by a provider's name; `flags` as `ait demo-agent --help` tells them.
    pub(crate) fn stand_in<'a>(&self, flags: &[&'a str]) -> Vec<&'a str> {
        // leaked: a few bytes a story, for words that can be given on like any others
        let program: &'static str = self.bin().join("claude").to_string_lossy().into_owned().leak();
        [program, "demo-agent"].into_iter().chain(flags.iter().copied()).collect()
    }

    /// Writes an executable script into the folder that stands first on PATH.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.bin().join(name);
        // Written under another name and moved, so that no other thread's fork holds it open for writing.
        let unfinished = self.bin().join(format!(".{name}.new"));
        fs::write(&unfinished, text).unwrap();
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&unfinished, &path).unwrap();
        path
    }

    /// Puts a script in tmux's place for everything that finds tmux on PATH; `$TMUX_REAL` in it is the real one. The
    /// private servers of the story are still reached by the real one.
    pub(crate) fn wrap_tmux(&self, script: &str) {
        let real = super::tmux::real_binary();
        self.script("tmux", &format!("#!/bin/sh\nTMUX_REAL='{}'\n{script}\n", real.display()));
    }

    /// Puts the real tmux back, behind a script: a shell that was just started for the one before opens what is there by then.
    pub(crate) fn unwrap_tmux(&self) {
        self.wrap_tmux("exec \"$TMUX_REAL\" \"$@\"");
    }

    /// `program` with nothing of the caller's environment, and this world's instead.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.home());
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    /// The environment of this world.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        vec![
            ("PATH", format!("{}:{}", text(self.bin()), self.inner.path)),
            ("HOME", text(self.home())),
            ("XDG_RUNTIME_DIR", text(self.runtime())),
            ("XDG_CONFIG_HOME", text(self.home().join(".config"))),
            ("XDG_STATE_HOME", text(self.home().join(".local/state"))),
            ("TMUX_TMPDIR", text(self.tmux_tmpdir())),
            ("SHELL", "/bin/sh".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
    }

    /// The built `ait` with `arguments`, not yet started.
    pub(crate) fn ait_command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(AIT);
        command.args(arguments);
        command
    }

    /// Runs the built `ait` to its end.
    #[track_caller]
    pub(crate) fn ait<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        Ran::run(&mut self.ait_command(arguments))
    }

    /// The living processes of this world.
    pub(crate) fn processes(&self) -> Vec<Process> {
        proc::below(self.root())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let left = || proc::below(&self.root);
        if std::thread::panicking() {
            end_all(left());
            return;
        }
        let start = std::time::Instant::now();
        while !left().is_empty() && start.elapsed() < LEFTOVER_DEADLINE {
            std::thread::sleep(Duration::from_millis(20));
        }
        let leftovers: Vec<String> =
            left().iter().map(|p| format!("{} {}", p.pid, proc::command(p.pid))).collect();
        end_all(left());
        wait_until("the story's processes to be gone", LEFTOVER_DEADLINE, || left().is_empty().then_some(()));
        assert!(leftovers.is_empty(), "processes left by the story: {leftovers:#?}");
    }
}

fn end_all(left: Vec<Process>) {
    for process in left {
        process.end(Duration::from_secs(2));
    }
}

fn private(folder: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
}
