//! The user's settings, as a command takes them: a file that cannot be taken is said with its line, and nothing is done as if it
//! were not there.

use super::{Exit, Failure};
use crate::config::{Config, Signals};
use crate::lifecycle::tap::Wanted;
use crate::provider::Catalog;

/// The settings.
pub(super) fn config() -> Result<Config, Failure> {
    Ok(Config::load()?.config)
}

/// The kinds of agents there are, the user's own among them.
pub(super) fn catalog() -> Result<Catalog, Failure> {
    catalog_of(&config()?)
}

/// The kinds of agents there are by these settings.
pub(super) fn catalog_of(config: &Config) -> Result<Catalog, Failure> {
    config.catalog().map_err(|refused| {
        let path = Config::path().map(|path| path.display().to_string()).unwrap_or_default();
        let failure = Failure::new(Exit::BAD_DATA, format!("{path}: [providers]: {refused}"));
        failure.hint("built-in agents keep their names and programs; call your own by others")
    })
}

/// What is read of what agents write, as the user wants it.
pub(super) fn signals(config: &Config) -> Wanted {
    let Signals { tap, answer } = config.signals;
    Wanted { tap, answer, timing: config.tracking }
}
