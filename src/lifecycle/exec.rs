//! Becoming an agent: the environment it was recorded with, the folder it ran in, its program, and nothing else.
//!
//! A pane's surroundings come from whoever made it: a detached client's PATH, the server's variables, the markers of the
//! agent the server was first started from. [`prepare`] puts the recorded ones in their place, and refuses rather than
//! starts something else: another program, another folder, or a second agent for a restore that is over.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

use crate::provider::{self, Catalog, Program, Provider};
use crate::record::{Host, Nonce, Record, RecordId, State, launch_id};

/// The variable that tells an agent's hook which record it restores.
pub const RESTORE_RECORD: &str = "AITASK_RESTORE_RECORD";
/// The variable that tells an agent's hook the token of that restore.
pub const RESTORE_NONCE: &str = "AITASK_RESTORE_NONCE";

/// Why no agent was started.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// The restore this was meant for is over, or never was.
    #[error("record {0} is not being restored under this nonce: nothing was started")]
    Superseded(RecordId),
    /// Its program is nowhere.
    #[error("{name} is neither on the recorded PATH nor at its recorded place: nothing was started")]
    NoBinary {
        /// The program's name.
        name: String,
    },
    /// Its folder is gone.
    #[error("the folder {} is gone: nothing was started", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no word to run.
    #[error("there is no program to start")]
    NoProgram,
}

/// The agent of `record` as a process to be: `words` are its arguments, the first of them the program's plain name.
/// `nonce` is the token of the restore it belongs to; `here` are the names of the variables set where it is started;
/// `catalog` has the record's provider.
///
/// # Errors
/// Why it must not or cannot be started.
pub fn prepare(
    catalog: &Catalog,
    record: &Record,
    nonce: Option<Nonce>,
    words: &[OsString],
    here: &[OsString],
) -> Result<Command, NotStarted> {
    if let Some(nonce) = nonce
        && !is_under(record, nonce)
        && !is_this(record)
    {
        return Err(NotStarted::Superseded(record.id));
    }
    let (name, arguments) = words.split_first().ok_or(NotStarted::NoProgram)?;
    let folder = folder_of(record);
    if !folder.is_dir() {
        return Err(NotStarted::NoFolder { folder });
    }
    let program = find(record, name)
        .ok_or_else(|| NotStarted::NoBinary { name: name.to_string_lossy().into_owned() })?;
    let mut command = Command::new(&program);
    // a script is told its own path; a program is called as the user calls it
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    command.args(arguments).current_dir(&folder).env("PWD", &folder);
    surround(&mut command, catalog, record, here);
    let launch = nonce.map_or_else(|| record.runtime(), |nonce| launch_id(record.id, nonce));
    command.envs(record.session_variables(&launch));
    if let Some(nonce) = nonce {
        command.env(RESTORE_RECORD, record.id.to_string()).env(RESTORE_NONCE, nonce.to_string());
    }
    Ok(command)
}

/// The shell that an agent was typed into, as a process to be: what it was, in its folder, with the recorded environment.
/// `None` when the agent was in none.
#[must_use]
pub fn shell_behind(catalog: &Catalog, record: &Record, here: &[OsString]) -> Option<Command> {
    let Some(Host::Shell { argv, cwd }) = &record.ait.host else { return None };
    let called = argv.first().map_or("sh", String::as_str);
    // a login shell is called by its name with a dash before it
    let name = called.strip_prefix('-').unwrap_or(called);
    let program =
        find_on(recorded_path(record), OsStr::new(name)).unwrap_or_else(|| PathBuf::from("/bin/sh"));
    let mut command = Command::new(program);
    std::os::unix::process::CommandExt::arg0(&mut command, called);
    command.args(argv.iter().skip(1));
    let folders = [cwd.as_str(), record.ait.cwd.as_deref().unwrap_or_default(), &record.root, "/"];
    if let Some(folder) = folders.into_iter().find(|folder| !folder.is_empty() && Path::new(folder).is_dir())
    {
        command.current_dir(folder).env("PWD", folder);
    }
    surround(&mut command, catalog, record, here);
    Some(command)
}

/// Where the agent ran: its recorded folder, else its project.
#[must_use]
pub fn folder_of(record: &Record) -> PathBuf {
    PathBuf::from(record.ait.cwd.as_deref().filter(|cwd| !cwd.is_empty()).unwrap_or(&record.root))
}

/// The program of that name: on the recorded PATH (where none is recorded, on this process's), then at its recorded place.
#[must_use]
pub fn find(record: &Record, name: &OsStr) -> Option<PathBuf> {
    find_on(recorded_path(record), name).or_else(|| {
        let called = record.ait.argv.as_ref().and_then(|argv| argv.first()).map(PathBuf::from);
        let file = record.ait.agent_bin.as_ref().map(PathBuf::from);
        let kind = name.to_str().and_then(Provider::named);
        // an interpreter is the file that runs, and no way to start the agent
        let is_its = |path: &PathBuf| {
            let bare = Program { exe: path.as_os_str().as_bytes(), argv: &[] };
            path.file_name() == Some(name) || (kind.is_some() && provider::recognise(bare) == kind)
        };
        [called, file].into_iter().flatten().find(|path| path.is_absolute() && is_its(path) && can_run(path))
    })
}

/// Whether the record is being restored under that token now.
fn is_under(record: &Record, nonce: Nonce) -> bool {
    let restoring = match &record.state {
        State::Restoring { .. } => true,
        State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => false,
    };
    restoring && record.lease.as_ref().is_some_and(|lease| lease.nonce == nonce)
}

/// Whether the record is live already by this very process: whoever launched it needed no more proof than its launch.
fn is_this(record: &Record) -> bool {
    let own = i32::try_from(std::process::id()).ok();
    let live = match &record.state {
        State::Live => true,
        State::Freezing | State::Frozen { .. } | State::Restoring { .. } | State::Aborting { .. } => false,
    };
    live && record.location.process().map(|process| process.pid) == own
}

fn recorded_path(record: &Record) -> OsString {
    let recorded = record.ait.env.as_ref().and_then(|env| env.get("PATH")).map(OsString::from);
    recorded.or_else(|| std::env::var_os("PATH")).unwrap_or_default()
}

/// The program of that name on this PATH, or at its own place where the name is a whole path.
#[must_use]
pub fn find_on(path: OsString, name: &OsStr) -> Option<PathBuf> {
    let named = Path::new(name);
    if named.is_absolute() {
        return can_run(named).then(|| named.to_owned());
    }
    if named.components().count() != 1 {
        return None;
    }
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(named))
        .find(|path| can_run(path))
}

fn can_run(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Puts the recorded environment in place, and takes the marks of other agents out.
fn surround(command: &mut Command, catalog: &Catalog, record: &Record, here: &[OsString]) {
    let changes = changes(record.ait.env.as_ref(), &catalog.own_variables(&record.agent_kind), here);
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// What is set (`Some`) and what is unset. A variable of its provider's (`own`) was looked for at the record's making: one
/// that was not set then is unset, since the default of a provider's own folder is a choice too. One that the user's settings
/// keep may have been named there later: unrecorded, it is as the pane has it.
fn changes(
    recorded: Option<&BTreeMap<String, String>>,
    own: &[&str],
    here: &[OsString],
) -> BTreeMap<OsString, Option<OsString>> {
    let mut changes: BTreeMap<OsString, Option<OsString>> = BTreeMap::new();
    for name in here {
        if name.to_str().is_some_and(provider::scrub)
            || [RESTORE_RECORD, RESTORE_NONCE].iter().any(|own| name == own)
        {
            changes.insert(name.clone(), None);
        }
    }
    let Some(recorded) = recorded else { return changes };
    for name in own {
        // without a PATH nothing starts at all
        if *name != "PATH" && !recorded.contains_key(*name) {
            changes.insert(name.into(), None);
        }
    }
    for (name, value) in recorded {
        changes.insert(name.into(), Some(value.into()));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn changed(recorded: Option<&BTreeMap<String, String>>, here: &[&str]) -> Vec<String> {
        let here: Vec<OsString> = here.iter().map(OsString::from).collect();
        changes(recorded, &Catalog::default().own_variables("claude"), &here)
            .into_iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{}={}", name.display(), value.display()),
                None => format!("-{}", name.display()),
            })
            .collect()
    }

    #[test]
    fn what_was_recorded_is_set_and_what_marks_another_agent_is_unset() {
        let recorded = map(&[("PATH", "/a:/b"), ("CLAUDE_CONFIG_DIR", "/x"), ("LANG", "C")]);
        let told = changed(Some(&recorded), &["CLAUDECODE", "HOME", "PATH", "AITASK_RESTORE_NONCE"]);
        for expected in
            ["PATH=/a:/b", "CLAUDE_CONFIG_DIR=/x", "LANG=C", "-CLAUDECODE", "-AITASK_RESTORE_NONCE"]
        {
            assert!(told.iter().any(|change| change == expected), "{expected}: {told:?}");
        }
        assert!(!told.iter().any(|change| change.contains("HOME")), "{told:?}");
    }

    #[test]
    fn an_account_that_was_the_default_stays_the_default() {
        let told = changed(Some(&map(&[("PATH", "/a")])), &["CLAUDE_CONFIG_DIR"]);
        assert!(told.iter().any(|change| change == "-CLAUDE_CONFIG_DIR"), "{told:?}");
        let told = changed(None, &["CLAUDE_CONFIG_DIR"]);
        assert_eq!(told, [""; 0], "nothing is known of what it was");
    }
}
