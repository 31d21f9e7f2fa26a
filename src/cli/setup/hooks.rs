//! The providers' hooks in `ait setup`: which are set up, what is said of them, and the taking out.

use std::path::Path;

use super::{Args, diff};
use crate::cli::{Exit, Failure, print};
use crate::hooks::settings::{Declined, Home, PROVIDERS, SettingsError, caution};
use crate::provider::Provider;
use crate::service::Change;
use crate::store::Paths;

/// What is to change, and what is to be said.
#[derive(Default)]
pub(super) struct Hooks {
    changes: Vec<Change>,
    notes: Vec<String>,
    /// Those asked for by name.
    named: Vec<Provider>,
    /// Those whose entries go.
    going: Vec<Provider>,
    /// What cannot be taken out.
    left: Vec<String>,
}

impl Hooks {
    /// What a setup would change.
    pub(super) fn set_up(args: &Args, program: &Path) -> Result<Self, Failure> {
        let mut hooks = Self::default();
        if args.no_hooks {
            return Ok(hooks);
        }
        if let Some(names) = &args.hooks {
            for name in names {
                let home = home_named(name)?;
                hooks.changes.extend(home.install(program)?);
                if let Some(caution) = caution(home.provider) {
                    hooks.notes.push(format!("note: {caution}"));
                }
                hooks.named.push(home.provider);
            }
            return Ok(hooks);
        }
        let declined = Declined::read(&Paths::from_env()?);
        for home in homes().filter(|home| home.is_there() && caution(home.provider).is_none()) {
            let name = home.provider.name();
            if declined.has(home.provider) {
                hooks.notes.push(format!(
                    "hooks of {name}: taken out before; `ait setup --hooks {name}` puts them back"
                ));
                continue;
            }
            match home.install(program) {
                Ok(change) => hooks.changes.extend(change),
                Err(why) => hooks.notes.push(format!("hooks of {name}: not set up: {why}")),
            }
        }
        Ok(hooks)
    }

    /// What a removal would change.
    pub(super) fn remove() -> Self {
        let mut hooks = Self::default();
        for home in homes() {
            match home.remove() {
                Ok(None) => {}
                Ok(Some(change)) => {
                    hooks.going.push(home.provider);
                    hooks.changes.push(change);
                }
                Err(why) => hooks.left.push(format!("hooks of {}: {why}", home.provider.name())),
            }
        }
        hooks
    }

    /// Whether no file changes and none is left behind.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.left.is_empty()
    }

    /// What cannot be taken out, and why.
    pub(super) fn left(&self) -> &[String] {
        &self.left
    }

    pub(super) fn show(&self) -> Result<(), Failure> {
        for change in &self.changes {
            print::text(&diff::unified(change))?;
        }
        for note in &self.notes {
            print::text(&format!("{}\n", print::shown(note.as_bytes())))?;
        }
        Ok(())
    }

    /// Writes what was shown, and remembers what was asked for.
    pub(super) fn carry_out(&self) -> Result<(), Failure> {
        for change in &self.changes {
            change.apply()?;
        }
        Ok(Declined::read(&Paths::from_env()?).write(&self.going, &self.named)?)
    }
}

fn homes() -> impl Iterator<Item = Home> {
    PROVIDERS.into_iter().filter_map(|provider| Home::of(provider, |name| std::env::var_os(name)))
}

fn home_named(name: &str) -> Result<Home, Failure> {
    homes().find(|home| home.provider.name() == name).ok_or_else(|| {
        let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name()).collect();
        Failure::new(Exit::USAGE, format!("no hooks are known of {name:?}"))
            .hint(format!("one of: {}", known.join(", ")))
    })
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::File(file) => file.into(),
            SettingsError::Refused { .. } => Self::of(Exit::BAD_DATA, &error),
            SettingsError::NoHome { .. } => {
                Self::of(Exit::UNAVAILABLE, &error).hint("start it once, then run this again")
            }
        }
    }
}
