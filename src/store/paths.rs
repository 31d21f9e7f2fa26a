//! Where everything lies on disk, from the environment once, and the folders with the modes they must have.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::record::RecordId;

/// The places of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The store as given; it may be a symlink.
    pub store: PathBuf,
    /// Where captures lie, one folder per record.
    pub frozen: PathBuf,
    /// Durable state: checkpoints, session folders, the supervisor's log.
    pub state: PathBuf,
    /// What lasts as long as a login: the supervisor's socket.
    pub runtime: PathBuf,
}

/// The files around the store, once its symlinks are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The store itself.
    pub store: PathBuf,
    /// The generation before.
    pub prev: PathBuf,
    /// The lock the kernel frees.
    pub lock: PathBuf,
    /// The earlier scripts' lock, beside the path as given.
    pub lockd: PathBuf,
    /// One supervisor per store.
    pub supervisor_lock: PathBuf,
    /// Where retired records go.
    pub archive: PathBuf,
    /// The archive's index.
    pub index: PathBuf,
    /// Last screens of ended agents.
    pub screens: PathBuf,
}

impl Paths {
    /// The places named by this process's environment.
    ///
    /// # Errors
    /// [`StoreError::NoHome`] if neither the environment nor the user database names a home.
    pub fn from_env() -> Result<Self, StoreError> {
        Self::from_vars(|name| std::env::var_os(name))
    }

    /// The places named by these variables.
    ///
    /// # Errors
    /// As [`Paths::from_env`].
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, StoreError> {
        let uid = rustix::process::getuid().as_raw();
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || {
            let database = || nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten();
            set("HOME").or_else(|| database().map(|user| user.dir)).ok_or(StoreError::NoHome)
        };
        let config = |name: &str| home().map(|home| home.join(".config/aitasks").join(name));
        // Relative XDG folders are invalid and ignored, as their specification asks.
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        Ok(Self {
            store: set("AITASKS_AGENT_SESSIONS_FILE").map_or_else(|| config("agent_sessions.json"), Ok)?,
            frozen: set("AITASKS_FROZEN_DIR").map_or_else(|| config("frozen"), Ok)?,
            state: absolute("XDG_STATE_HOME")
                .map_or_else(|| home().map(|home| home.join(".local/state")), Ok)?
                .join("ait"),
            runtime: absolute("XDG_RUNTIME_DIR")
                .filter(|path| path.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid))
                .map_or_else(|| PathBuf::from(format!("/tmp/ait-{uid}")), |path| path.join("ait")),
        })
    }

    /// The files around the store, its symlinks followed now.
    #[must_use]
    pub fn files(&self) -> Files {
        let store = real_path(&self.store);
        let stem = store.file_stem().unwrap_or_default().to_owned();
        let beside = |ending: &str| {
            let mut name = stem.clone();
            name.push(ending);
            store.with_file_name(name)
        };
        Files {
            prev: with_ending(&store, ".prev"),
            lock: with_ending(&store, ".lock"),
            lockd: with_ending(&self.store, ".lockd"),
            supervisor_lock: with_ending(&store, ".supervisor.lock"),
            archive: beside(".archive.jsonl"),
            index: beside(".archive.index"),
            screens: beside(".archive.screens"),
            store,
        }
    }

    /// The folder of a record's captures.
    #[must_use]
    pub fn captures(&self, id: RecordId) -> PathBuf {
        self.frozen.join(id.to_string())
    }

    /// The folder of a record's checkpoint.
    #[must_use]
    pub fn checkpoint(&self, id: RecordId) -> PathBuf {
        self.state.join("checkpoints").join(id.to_string())
    }

    /// The folder of the floor plans, one file per life of a server.
    #[must_use]
    pub fn plans(&self) -> PathBuf {
        self.state.join("plans")
    }

    /// Makes the folder of a record's captures, 0700, and gives it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn make_captures(&self, id: RecordId) -> Result<PathBuf, StoreError> {
        let folder = self.captures(id);
        make_private(&folder)?;
        Ok(folder)
    }

    /// Makes the folder of a record's checkpoint, 0700, and gives it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn make_checkpoint(&self, id: RecordId) -> Result<PathBuf, StoreError> {
        let folder = self.checkpoint(id);
        make_private(&folder)?;
        Ok(folder)
    }

    /// Makes the runtime folder, or proves that the one there is ours and closed to others.
    ///
    /// # Errors
    /// [`StoreError::NotOurs`] if somebody else made it, it is open to others, or it is no folder.
    pub fn make_runtime(&self) -> Result<&Path, StoreError> {
        make_private(&self.runtime)?;
        let meta =
            self.runtime.symlink_metadata().map_err(|e| StoreError::io("look at", &self.runtime, e))?;
        let why = if !meta.is_dir() {
            "it is not a folder"
        } else if meta.uid() != rustix::process::getuid().as_raw() {
            "it belongs to another user"
        } else if meta.permissions().mode() & 0o077 != 0 {
            "others may enter it"
        } else {
            return Ok(&self.runtime);
        };
        Err(StoreError::NotOurs { path: self.runtime.clone(), why })
    }
}

/// Makes a folder and what is above it, each 0700 whatever the umask. One that is there keeps its mode.
///
/// # Errors
/// [`StoreError::Io`].
pub fn make_private(folder: &Path) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_private(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // The umask may have taken bits from it; nothing can have added any.
        Ok(()) => std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))
            .map_err(|e| StoreError::io("set the mode of", folder, e)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(StoreError::io("make", folder, error)),
    }
}

/// The path with its symlinks followed as far as they lead; what does not exist stays as written.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    // A symlink to nothing yet: the file will be made at its target.
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |above| above.join(&target));
    }
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => real_path(above).join(name),
        (Some(_) | None, _) => path,
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(vars: &[(&str, &str)]) -> Paths {
        let find =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Paths::from_vars(find).unwrap()
    }

    #[test]
    fn the_places_are_those_of_the_contract() {
        let plain = paths(&[("HOME", "/h")]);
        assert_eq!(plain.store, Path::new("/h/.config/aitasks/agent_sessions.json"));
        assert_eq!(plain.frozen, Path::new("/h/.config/aitasks/frozen"));
        assert_eq!(plain.state, Path::new("/h/.local/state/ait"));
        assert!(plain.runtime.to_string_lossy().starts_with("/tmp/ait-"));
        let set = paths(&[
            ("HOME", "/h"),
            ("AITASKS_AGENT_SESSIONS_FILE", "/s/x.json"),
            ("AITASKS_FROZEN_DIR", "/f"),
            ("XDG_STATE_HOME", "/st"),
            ("XDG_RUNTIME_DIR", "/no/such/folder"),
        ]);
        assert_eq!((set.store.as_path(), set.frozen.as_path()), (Path::new("/s/x.json"), Path::new("/f")));
        assert_eq!(set.state, Path::new("/st/ait"));
        assert!(
            set.runtime.to_string_lossy().starts_with("/tmp/ait-"),
            "a runtime folder that is not there is not used"
        );
        let files = set.files();
        assert_eq!(files.prev, Path::new("/s/x.json.prev"));
        assert_eq!(files.archive, Path::new("/s/x.archive.jsonl"));
        assert_eq!(files.supervisor_lock, Path::new("/s/x.json.supervisor.lock"));
    }

    #[test]
    fn a_runtime_folder_that_others_may_enter_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let runtime = base.path().join("ait");
        let paths = Paths { runtime: runtime.clone(), ..paths(&[("HOME", "/h")]) };
        paths.make_runtime().unwrap();
        std::fs::set_permissions(&runtime, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(paths.make_runtime(), Err(StoreError::NotOurs { why: "others may enter it", .. })));
        std::fs::remove_dir(&runtime).unwrap();
        let elsewhere = base.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &runtime).unwrap();
        assert!(matches!(paths.make_runtime(), Err(StoreError::NotOurs { why: "it is not a folder", .. })));
    }

    #[test]
    fn a_dangling_symlink_leads_to_where_the_file_will_be() {
        let base = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(base.path()).unwrap();
        std::os::unix::fs::symlink("real.json", base.join("link.json")).unwrap();
        assert_eq!(real_path(&base.join("link.json")), base.join("real.json"));
        assert_eq!(real_path(&base.join("no/such")), base.join("no/such"));
    }
}
