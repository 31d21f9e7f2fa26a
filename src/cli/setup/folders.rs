//! The folders `ait` keeps its files in: which are missing, and making them closed to others.

use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::store::{Paths, make_private};

/// A folder that is not there yet.
pub(super) struct Folder {
    path: PathBuf,
    what: &'static str,
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    /// Makes it, 0700.
    pub(super) fn make(&self) -> Result<(), Failure> {
        Ok(make_private(&self.path)?)
    }
}

/// The folders that are missing.
pub(super) fn missing() -> Result<Vec<Folder>, Failure> {
    let paths = Paths::from_env()?;
    let store = paths.store.parent().unwrap_or(Path::new("/")).to_owned();
    let all = [
        (store, "made 0700, for the records"),
        (paths.frozen, "made 0700, for captures"),
        (paths.state, "made 0700, for checkpoints and logs"),
        (paths.runtime, "made 0700, for the supervisor's socket"),
    ];
    Ok(all.into_iter().filter(|(path, _)| !path.is_dir()).map(|(path, what)| Folder { path, what }).collect())
}

/// The store's path.
pub(super) fn store() -> Result<PathBuf, Failure> {
    Ok(Paths::from_env()?.store)
}
