//! Starting the supervisor with the machine: a systemd user unit, a launchd agent, or one line in the user's tmux.conf.
//!
//! First a [`Plan`]: every file that would change, with its bytes before and after. Nothing is written until each change
//! is applied, and a file that changed meanwhile, is not ours or is not to be written is refused untouched. Exactly one
//! way of starting is left behind: what an earlier install set up elsewhere or in another way goes with the same plan.
//!
//! Refuses to: touch any byte that is not its own, write through a read-only mode, or overwrite a unit it did not write.

mod call;
mod change;
mod launchd;
mod line;
mod systemd;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use change::Change;

/// How the supervisor is started with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autostart {
    /// A systemd user unit, started at login (or at boot, where the user lingers).
    Systemd,
    /// A launchd agent, started at login.
    Launchd,
    /// A line in tmux.conf, run by every server that starts.
    Tmux,
    /// Not at all: `ait supervise --detach` by hand.
    None,
}

impl Autostart {
    /// The word the command line uses for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
            Self::Tmux => "tmux",
            Self::None => "none",
        }
    }
}

/// Where the user's settings lie.
#[derive(Debug, Clone)]
pub struct Place {
    /// `$HOME`, absolute.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, where it is set to an absolute path.
    pub xdg_config: Option<PathBuf>,
    /// The user's id.
    pub uid: u32,
}

impl Place {
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.xdg_config.clone().unwrap_or_else(|| self.home.join(".config"))
    }

    /// Every tmux.conf of the user that tmux reads at its start, in its order. It reads all that are there.
    #[must_use]
    pub fn tmux_confs(&self) -> Vec<PathBuf> {
        let mut all = vec![self.home.join(".tmux.conf")];
        for more in [self.config().join("tmux/tmux.conf"), self.home.join(".config/tmux/tmux.conf")] {
            if !all.contains(&more) {
                all.push(more);
            }
        }
        all
    }

    /// The file the line goes into: the first that exists, else the one whose folder exists, else `~/.tmux.conf`.
    fn tmux_conf(&self) -> PathBuf {
        let all = self.tmux_confs();
        let exists = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let beside =
            |path: &&PathBuf| path.ends_with("tmux/tmux.conf") && path.parent().is_some_and(Path::is_dir);
        all.iter()
            .find(exists)
            .or_else(|| all.iter().find(beside))
            .cloned()
            .unwrap_or_else(|| self.home.join(".tmux.conf"))
    }
}

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The absolute path of this program.
    pub program: PathBuf,
    /// Variables the supervisor needs to see the same sockets and the same store as the shell `ait setup` ran in.
    pub environment: Vec<(&'static str, OsString)>,
    /// PATH, for the ways of starting that begin with none of the user's.
    pub path: Option<OsString>,
}

/// The variables that say where tmux's sockets and the store are.
pub const PASSED: &[&str] = &[
    "TMUX_TMPDIR",
    "AITASKS_AGENT_SESSIONS_FILE",
    "AITASKS_FROZEN_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
];

/// Why the start of the supervisor could not be arranged. Nothing was changed by the step that failed.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written; it is as it was.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not to be written by us.
    #[error("{path} is left as it is: {why}")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Why, as a lower-case fragment.
        why: String,
    },
    /// A file changed between the plan and its writing.
    #[error("{path} is left as it is: it changed since it was read")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A path or a value cannot stand in the file it would go into.
    #[error("{what} cannot be written into {path}: it holds a line end")]
    LineEnd {
        /// What it is.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// A command of the system failed.
    #[error("`{command}` {how}")]
    Call {
        /// The command line.
        command: String,
        /// How it failed.
        how: String,
    },
}

/// What would be changed.
#[derive(Debug)]
pub struct Plan {
    /// How the supervisor will be started; [`Autostart::None`] for a removal.
    pub autostart: Autostart,
    /// The files, in the order they are written.
    pub changes: Vec<Change>,
}

/// A way of starting the supervisor that is set up now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which way.
    pub autostart: Autostart,
    /// The file it stands in.
    pub path: PathBuf,
    /// The line of the file, counted from 1.
    pub line: usize,
    /// The text that starts it, bytes as they stand there.
    pub text: Vec<u8>,
    /// The program it starts, when that can be read from the text.
    pub program: Option<PathBuf>,
}

/// The way this machine offers: a systemd user manager that answers, launchd on macOS, else tmux.conf.
pub async fn choose() -> Autostart {
    if cfg!(target_os = "macos") {
        Autostart::Launchd
    } else if systemd::answers().await {
        Autostart::Systemd
    } else {
        Autostart::Tmux
    }
}

/// What has to change so that `start` is started by `autostart` and by nothing else of ours.
///
/// # Errors
/// A file that cannot be read, or that would have to change and is not to be written.
pub fn plan(place: &Place, start: &Start, autostart: Autostart) -> Result<Plan, ServiceError> {
    let mut changes = Vec::new();
    let unit = systemd::path(place);
    let wanted = (autostart == Autostart::Systemd).then(|| systemd::unit(start, &unit)).transpose()?;
    changes.extend(Change::whole_file(&unit, wanted, systemd::is_ours)?);
    let plist = launchd::path(place);
    let wanted = (autostart == Autostart::Launchd).then(|| launchd::plist(start, &plist)).transpose()?;
    changes.extend(Change::whole_file(&plist, wanted, launchd::is_ours)?);
    changes.extend(lines(place, (autostart == Autostart::Tmux).then_some(start))?);
    for change in &changes {
        change.check()?;
    }
    Ok(Plan { autostart, changes })
}

/// Everything of ours out of the user's files.
///
/// # Errors
/// As [`plan`].
pub fn plan_removal(place: &Place) -> Result<Plan, ServiceError> {
    let nothing = Start { program: PathBuf::new(), environment: Vec::new(), path: None };
    plan(place, &nothing, Autostart::None)
}

/// The changes of every tmux.conf: one line in one of them, or none in any.
fn lines(place: &Place, start: Option<&Start>) -> Result<Vec<Change>, ServiceError> {
    let mut holder: Option<PathBuf> = None;
    let mut texts = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in place.tmux_confs() {
        // two names of one file (a symlink) are one file
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        if let Some(bytes) = change::read(&path)? {
            if holder.is_none() && line::find(&bytes).next().is_some() {
                holder = Some(path.clone());
            }
            texts.push((path, bytes));
        }
    }
    let Some(start) = start else {
        return texts
            .into_iter()
            .filter_map(|(path, bytes)| {
                let after = line::without(&bytes);
                Change::of(&path, after).transpose()
            })
            .collect();
    };
    let holder = holder.unwrap_or_else(|| place.tmux_conf());
    let line = line::line(start, &holder)?;
    let mut changes = Vec::new();
    if !texts.iter().any(|(path, _)| *path == holder) {
        changes.extend(Change::of(&holder, Some(line::alone(&line)))?);
    }
    for (path, bytes) in texts {
        let after = if path == holder {
            Some(
                line::with(&bytes, &line)
                    .map_err(|why| ServiceError::NotOurs { path: path.clone(), why: why.to_owned() })?,
            )
        } else {
            line::without(&bytes)
        };
        changes.extend(Change::of(&path, after)?);
    }
    Ok(changes)
}

/// Every way of starting the supervisor that is set up in the user's files.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn found(place: &Place) -> Result<Vec<Found>, ServiceError> {
    let mut all = Vec::new();
    for (autostart, path, program) in [
        (Autostart::Systemd, systemd::path(place), systemd::program as fn(&[u8]) -> Option<(usize, PathBuf)>),
        (Autostart::Launchd, launchd::path(place), launchd::program),
    ] {
        if let Some(bytes) = change::read(&path)? {
            let (at, program) = program(&bytes).map_or((0, None), |(at, program)| (at, Some(program)));
            let text = bytes.split(|b| *b == b'\n').nth(at).unwrap_or_default().to_vec();
            all.push(Found { autostart, path, line: at + 1, text, program });
        }
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in place.tmux_confs() {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let Some(bytes) = change::read(&path)? else { continue };
        for (at, text) in line::find(&bytes) {
            let program = line::program(text);
            let path = path.clone();
            all.push(Found { autostart: Autostart::Tmux, path, line: at + 1, text: text.to_vec(), program });
        }
    }
    Ok(all)
}

/// Tells the system about the files of a plan that was carried out, and starts the supervisor where the system is the
/// one who starts it. `true` when it did.
///
/// # Errors
/// A command of the system that fails; the files stay.
pub async fn register(autostart: Autostart, place: &Place) -> Result<bool, ServiceError> {
    match autostart {
        Autostart::Systemd => systemd::register().await.map(|()| true),
        Autostart::Launchd => launchd::register(place).await.map(|()| true),
        Autostart::Tmux | Autostart::None => Ok(false),
    }
}

/// Tells the system to start nothing of ours any more. To be called before the files go, for what [`found`] found.
///
/// # Errors
/// A command of the system that fails.
pub async fn unregister(autostart: Autostart, place: &Place) -> Result<(), ServiceError> {
    match autostart {
        Autostart::Systemd => systemd::unregister().await,
        Autostart::Launchd => launchd::unregister(place).await,
        Autostart::Tmux | Autostart::None => Ok(()),
    }
}

/// Tells the system that files of ours are gone. A user manager that does not answer has nothing to forget.
pub async fn forget(autostart: Autostart) {
    if autostart == Autostart::Systemd {
        systemd::forget().await;
    }
}
