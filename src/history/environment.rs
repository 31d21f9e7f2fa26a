//! The variables that say where a provider keeps its files: those the caller gives, never our own unasked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Doubt;

/// An agent's environment, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// What was recorded of an agent, and nothing else.
    #[must_use]
    pub fn recorded(variables: &BTreeMap<String, String>) -> Self {
        Self { variables: variables.clone() }
    }

    /// Our own environment, for a person at a shell. Variables that are no UTF-8 are left out.
    #[must_use]
    pub fn ours() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { variables }
    }

    /// The same with `HOME` set where it was not recorded.
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.variables.entry("HOME".to_owned()).or_insert_with(|| home.to_string_lossy().into_owned());
        self
    }

    /// A variable that is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The folder a variable names; `~` and `~/…` are below the home, as the providers read them.
    pub(super) fn folder(&self, name: &'static str) -> Result<Option<PathBuf>, Doubt> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.strip_prefix('~') {
            Some("") => self.home().map(Some),
            Some(rest) if rest.starts_with('/') => Ok(Some(self.home()?.join(&rest[1..]))),
            // to a folder that only the agent knows
            Some(_) | None if !value.starts_with('/') => Err(Doubt::Relative { name }),
            Some(_) | None => Ok(Some(PathBuf::from(value))),
        }
    }

    /// The home.
    pub(super) fn home(&self) -> Result<PathBuf, Doubt> {
        self.get("HOME").map(PathBuf::from).ok_or(Doubt::NoHome)
    }

    /// The folder a variable names, or `below` the home.
    pub(super) fn folder_or(&self, name: &'static str, below: &str) -> Result<PathBuf, Doubt> {
        match self.folder(name)? {
            Some(folder) => Ok(folder),
            None => Ok(self.home()?.join(below)),
        }
    }
}
