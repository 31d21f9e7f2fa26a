//! Our hooks in the providers' settings: where they go, what changes for it, and the taking back.
//!
//! Only entries of our own are written or removed, every foreign byte stays. A file that does not parse, or whose form is not
//! understood, is refused and untouched; so is one that changes between the plan and its writing ([`Change`]). A provider's
//! home is never made.

mod json;
mod own;
mod yaml;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::provider::{Catalog, Provider};
use crate::service::{Change, ServiceError};
use crate::store::{Paths, StoreError};

/// The providers whose settings are known here, those that are set up unasked first.
pub const PROVIDERS: [Provider; 6] = [
    Provider::Claude,
    Provider::Gemini,
    Provider::Qwen,
    Provider::Copilot,
    Provider::Codex,
    Provider::Hermes,
];

/// Why the hooks of a provider are not set up.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Its settings cannot be edited; they are untouched.
    #[error("{path} is left as it is: {why}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It has no folder of settings yet.
    #[error("{provider} has no settings yet: there is no {home}")]
    NoHome {
        /// The provider.
        provider: &'static str,
        /// The folder.
        home: PathBuf,
    },
    /// The file.
    #[error(transparent)]
    File(#[from] ServiceError),
}

/// Whether setting a provider up needs to be asked for, and what is to be said then.
#[must_use]
pub fn caution(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Codex => Some(
            "codex opens a screen at its next start that waits until you have reviewed and trusted the new hooks",
        ),
        Provider::Hermes => Some(
            "hermes asks at its next start whether each of the new hooks may run, unless hooks_auto_accept is on",
        ),
        _ => None,
    }
}

/// Where the settings of a provider lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The provider.
    pub provider: Provider,
    /// Its folder.
    pub folder: PathBuf,
    /// The file our entries stand in.
    pub file: PathBuf,
}

impl Home {
    /// The home of a provider as these variables name it; `None` where its settings are not known here, or nobody says
    /// where home is.
    pub fn of(provider: Provider, var: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let (variable, below, file) = match provider {
            Provider::Claude => ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            Provider::Codex => ("CODEX_HOME", ".codex", "hooks.json"),
            Provider::Gemini => ("GEMINI_CLI_HOME", ".gemini", "settings.json"),
            Provider::Qwen => ("QWEN_HOME", ".qwen", "settings.json"),
            Provider::Copilot => ("COPILOT_HOME", ".copilot", "hooks/ait.json"),
            Provider::Hermes => ("HERMES_HOME", ".hermes", "config.yaml"),
            _ => return None,
        };
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = match (provider, absolute(variable)) {
            // its variable stands for the home above the folder
            (Provider::Gemini, Some(home)) => home.join(below),
            (_, Some(folder)) => folder,
            (_, None) => absolute("HOME")?.join(below),
        };
        Some(Self { provider, file: folder.join(file), folder })
    }

    /// Whether the provider has been used here.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.folder.is_dir()
    }

    /// What changes to have every event of the provider come to `program`, once; `None` if nothing does.
    ///
    /// # Errors
    /// [`SettingsError`]; the file is untouched.
    pub fn install(&self, program: &Path) -> Result<Option<Change>, SettingsError> {
        if !self.is_there() {
            return Err(SettingsError::NoHome { provider: self.provider.name(), home: self.folder.clone() });
        }
        let commands = self.commands(program)?;
        let before = self.read()?;
        let after = match self.provider {
            Provider::Copilot => Ok(own_file(&commands)),
            Provider::Hermes => yaml::with(before.as_deref().unwrap_or_default(), &commands),
            _ => {
                let extra = self.extra();
                let wanted: Vec<json::Entry> = commands
                    .into_iter()
                    .map(|(event, command)| json::Entry { event, command, extra })
                    .collect();
                json::with(before.as_deref(), &wanted)
            }
        };
        if matches!(self.provider, Provider::Copilot)
            && let Some(text) = &before
            && !is_own_file(text)
        {
            return Err(self.refused("it was not written by `ait setup`"));
        }
        let after = after.map_err(|why| self.refused(&why))?;
        self.change(before, Some(after))
    }

    /// What changes to have no entry of ours; `None` if there is none.
    ///
    /// # Errors
    /// As [`Home::install`].
    pub fn remove(&self) -> Result<Option<Change>, SettingsError> {
        let Some(before) = self.read()? else { return Ok(None) };
        let after = match self.provider {
            Provider::Copilot => (!is_own_file(&before)).then(|| before.clone()),
            Provider::Hermes => Some(yaml::without(&before).map_err(|why| self.refused(&why))?),
            // a file that names us nowhere is none of ours, whatever its form
            _ if !names_us(&before) => return Ok(None),
            _ => {
                let bare = json::without(&before).map_err(|why| self.refused(&why))?;
                let made = bare != before && json::is_empty(&bare);
                (!made).then_some(bare)
            }
        };
        self.change(Some(before), after)
    }

    /// Entries of ours in the file: event and command line.
    ///
    /// # Errors
    /// As [`Home::install`].
    pub fn entries(&self) -> Result<Vec<(String, String)>, SettingsError> {
        match (self.provider, self.read()?) {
            (Provider::Copilot | Provider::Hermes, _) | (_, None) => Ok(Vec::new()),
            (_, Some(text)) => json::own(&text).map_err(|why| self.refused(&why)),
        }
    }

    fn commands(&self, program: &Path) -> Result<Vec<(&'static str, String)>, SettingsError> {
        let name = self.provider.name();
        let events = Catalog::default().hook_events(name);
        let command =
            |event: &&'static str| own::command(program, event, name).map(|command| (*event, command));
        events
            .iter()
            .map(command)
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| self.refused("the path of this program cannot stand in it"))
    }

    /// The fields of an entry besides its command. Qwen's generations count a timeout in other units: it gets none, and the
    /// hook ends by itself.
    fn extra(&self) -> &'static str {
        match self.provider {
            Provider::Claude | Provider::Codex => "\"timeout\": 5",
            Provider::Gemini => "\"name\": \"ait\", \"timeout\": 5000",
            _ => "",
        }
    }

    fn read(&self) -> Result<Option<String>, SettingsError> {
        match Change::read(&self.file)? {
            None => Ok(None),
            Some(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| self.refused("it is no UTF-8")),
        }
    }

    fn change(&self, before: Option<String>, after: Option<String>) -> Result<Option<Change>, SettingsError> {
        if before == after {
            return Ok(None);
        }
        let Some(change) = Change::of(&self.file, after.map(String::into_bytes))? else { return Ok(None) };
        if change.before() != before.as_deref().map(str::as_bytes) {
            return Err(ServiceError::Changed { path: self.file.clone() }.into());
        }
        change.check()?;
        Ok(Some(change))
    }

    fn refused(&self, why: &str) -> SettingsError {
        SettingsError::Refused { path: self.file.clone(), why: why.to_owned() }
    }
}

/// Whether a command line of ours may stand in a text.
fn names_us(text: &str) -> bool {
    text.contains("agent-session activity hook") || (text.contains(" hook ") && text.contains("--provider"))
}

/// Copilot's file: ours as a whole.
fn own_file(commands: &[(&str, String)]) -> String {
    let hooks: serde_json::Map<String, serde_json::Value> = commands
        .iter()
        .map(|(event, command)| {
            let entry = serde_json::json!([{"type": "command", "bash": command, "timeoutSec": 5}]);
            ((*event).to_owned(), entry)
        })
        .collect();
    format!("{:#}\n", serde_json::json!({"version": 1, "hooks": hooks}))
}

fn is_own_file(text: &str) -> bool {
    let Ok(file) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let Some(hooks) = file["hooks"].as_object() else { return false };
    hooks.values().all(|list| {
        list.as_array()
            .is_some_and(|list| list.iter().all(|entry| entry["bash"].as_str().is_some_and(own::is_own)))
    })
}

/// The providers whose hooks the user took out: an upgrade does not put them back.
#[derive(Debug)]
pub struct Declined {
    path: PathBuf,
    names: Vec<String>,
}

impl Declined {
    /// As written down.
    #[must_use]
    pub fn read(paths: &Paths) -> Self {
        let path = paths.state.join("hooks.declined");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Self { names: text.lines().map(str::to_owned).collect(), path }
    }

    /// Whether the user took this provider's hooks out.
    #[must_use]
    pub fn has(&self, provider: Provider) -> bool {
        self.names.iter().any(|name| name == provider.name())
    }

    /// Writes down that the hooks of these are unwanted (or, for those that were asked for anew, wanted).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, unwanted: &[Provider], wanted: &[Provider]) -> Result<(), StoreError> {
        let before = self.names.clone();
        self.names.retain(|name| !wanted.iter().any(|provider| provider.name() == name));
        for provider in unwanted {
            if !self.has(*provider) {
                self.names.push(provider.name().to_owned());
            }
        }
        if self.names == before {
            return Ok(());
        }
        let failed = |source| StoreError::Io { what: "write", path: self.path.clone(), source };
        if let Some(folder) = self.path.parent() {
            crate::store::make_private(folder)?;
        }
        let text: String = self.names.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&self.path, text).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
