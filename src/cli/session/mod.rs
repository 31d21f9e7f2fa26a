//! The session commands: starting, seeing and steering agents from scripts, a phone or a service.
//!
//! | part | for |
//! |---|---|
//! | [`envelope`] | one line of JSON for success and failure, or text; codes and exit codes |
//! | [`address`] | a session by its id, a unique beginning of it, or its name; never by a name of tmux |
//! | [`look`] | one look at the servers, whatever the number of sessions |
//! | [`view`] | what is told of a session |
//!
//! and one file per command. Called as `agent-session` ([`face`]) the program is that earlier command line.

pub(super) mod activity;
pub(super) mod address;
pub(super) mod attach;
mod begin;
pub(super) mod command;
pub(super) mod delete;
pub(super) mod envelope;
pub(super) mod explain;
pub(super) mod face;
pub(super) mod glance;
pub(super) mod list;
pub(super) mod logs;
pub(super) mod look;
pub(super) mod resume;
pub(super) mod run;
pub(super) mod runner;
mod screen;
pub(super) mod send;
pub(super) mod show;
pub(super) mod start;
pub(super) mod task;
mod turn_state;
pub(super) mod view;
pub(super) mod wait;

use clap::{Args as ClapArgs, ValueEnum};

use super::{Exit, block_on_any, settings};
use crate::store::{Paths, Store, StoreError};
use address::Found;
use envelope::Trouble;

/// How a session command answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a person.
    #[default]
    Text,
    /// One object on one line, for success and failure alike.
    Json,
}

/// What every session command takes.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Given {
    /// How to answer
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub(crate) format: Format,
    /// This machine as others reach it by ssh; empty for none (else AGENT_SESSION_HOST, else its own name)
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

impl Given {
    /// The host that `ssh` commands name; `None` for none.
    ///
    /// # Errors
    /// It could be read as an option or as several words.
    fn host(&self) -> Result<Option<String>, Trouble> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let own = || {
            let name = nix::unistd::gethostname().ok()?.into_string().ok()?;
            name.split('.').next().map(str::to_owned)
        };
        let host = self.host.clone().or_else(|| set("AGENT_SESSION_HOST")).or_else(own);
        let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
        match host {
            Some(host)
                if host.starts_with('-') || host.contains(|c: char| c.is_whitespace() || c.is_control()) =>
            {
                let message = format!("{host:?} is no host");
                Err(Trouble::new(Exit::USAGE, "invalid-host", message).of_no_command())
            }
            host => Ok(host),
        }
    }
}

/// The places of this user.
fn paths() -> Result<Paths, Trouble> {
    Paths::from_env().map_err(|why| match why {
        StoreError::NoHome => {
            Trouble::new(Exit::FAILED, "home-unavailable", "HOME is not set").of_no_command()
        }
        other => Trouble::from(other),
    })
}

/// The session that is meant; its own folder is its own.
fn found(word: &str) -> Result<(Paths, Found), Trouble> {
    let paths = paths()?;
    let store = Store::open(paths.clone());
    let found = address::Book::open(&store)?.find(&store, word)?;
    view::own_folder(&paths, &found)?;
    Ok((paths, found))
}

/// What is told of it.
fn view_of(paths: &Paths, found: &Found, given: &Given) -> Result<view::View, Trouble> {
    let host = given.host()?;
    let look = block_on_any(look::Look::at(std::iter::once(&*found.record)))?;
    let catalog = settings::catalog()?;
    let around = view::Around { face: face::Face::ours(), host: host.as_deref(), catalog: &catalog, paths };
    Ok(around.view(found, look.seen(&found.record), true))
}

/// The view of the one session that is meant.
fn one(word: &str, given: &Given) -> Result<view::View, Trouble> {
    let (paths, found) = found(word)?;
    view_of(&paths, &found, given)
}
