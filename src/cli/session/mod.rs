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

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};

use super::{Exit, block_on_any, settings};
use crate::lifecycle::identity::{self, Noted};
use crate::store::{Paths, Store, StoreError, System};
use crate::tmux;
use address::{Found, Scope};
use envelope::Trouble;
use face::Face;

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
    #[arg(long, value_enum, default_value_t, ignore_case = true, display_order = 900)]
    pub(crate) format: Format,
    #[command(flatten)]
    here: Here,
}

/// Where a session command looks, and with what.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Here {
    /// This machine as others reach it by ssh; empty for none (else AGENT_SESSION_HOST, else its own name)
    #[arg(long, value_name = "HOST", display_order = 901)]
    host: Option<String>,
    /// The folder that sessions are kept apart by: only those begun with it are seen
    #[arg(long, value_name = "DIR", hide = true)]
    state_dir: Option<PathBuf>,
    /// The tmux that is run (else AGENT_SESSION_TMUX_BIN, else the one on PATH)
    #[arg(long, value_name = "PATH", hide = true)]
    tmux_bin: Option<OsString>,
}

impl Here {
    /// From here on the tmux that was named is run.
    fn choose_tmux(&self) {
        let named = self.tmux_bin.clone().filter(|program| !program.is_empty());
        if let Some(program) = named.or_else(tmux::chosen) {
            tmux::choose(&program);
        }
    }

    /// The folder that was named, absolute, without `~`, `.` and `..`; the earlier command line takes it from its variable too.
    fn state_dir(&self) -> Result<Option<PathBuf>, Trouble> {
        let blank = |path: &PathBuf| path.as_os_str().as_encoded_bytes().trim_ascii().is_empty();
        let set =
            || std::env::var_os("AGENT_SESSION_STATE_DIR").filter(|_| Face::ours() == Face::AgentSession);
        let named = self.state_dir.clone().or_else(|| set().map(PathBuf::from)).filter(|path| !blank(path));
        let Some(named) = named else {
            // the earlier command line asks no user database where its folder lies
            let state =
                std::env::var_os("XDG_STATE_HOME").is_some_and(|folder| Path::new(&folder).is_absolute());
            if Face::ours() == Face::AgentSession && !state {
                home()?;
            }
            return Ok(None);
        };
        let named = match named.strip_prefix("~") {
            Ok(below) => home()?.join(below),
            Err(_) => named,
        };
        let whole = std::path::absolute(&named).unwrap_or(named);
        let folder = normal(&whole);
        match folder.to_str() {
            Some(_) => Ok(Some(folder)),
            None => {
                let message = format!("the name of {} is no text", folder.display());
                Err(Trouble::new(Exit::USAGE, "invalid-state-dir", message).of_no_command())
            }
        }
    }

    /// What sessions begun by this command are kept apart by: the earlier command line always says by which folder.
    fn begun_in(&self, paths: &Paths) -> Result<Option<String>, Trouble> {
        let named = self.state_dir()?;
        let folder = named.or_else(|| (Face::ours() == Face::AgentSession).then(|| paths.state.clone()));
        Ok(folder.map(|folder| folder.to_string_lossy().into_owned()))
    }

    /// Which sessions are seen.
    fn scope(&self, paths: &Paths) -> Result<Scope, Trouble> {
        // who names the folder that all have anyway sees all
        let apart = self.state_dir()?.filter(|folder| *folder != paths.state);
        let folder = apart.map(|folder| folder.to_string_lossy().into_owned());
        Ok(Scope { face: Face::ours(), folder })
    }

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

/// What a command takes that is about one session.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Meant {
    /// The session: its id, a beginning of it, or its name
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    given: Given,
}

impl Meant {
    /// That session; its own folder is its own.
    fn found(&self) -> Result<(Store, Found), Trouble> {
        found(&self.session, &self.given.here)
    }

    /// What is told of it.
    fn view(&self) -> Result<view::View, Trouble> {
        one(&self.session, &self.given)
    }
}

/// Refuses a text that stands as a word of its own and is an option of the command it is given to: its value was left out, and it
/// took the next word's place.
fn refuse_option<A: ClapArgs>(text: &str) -> Result<(), Trouble> {
    let command = A::augment_args(clap::Command::new(""));
    let name = text.strip_prefix("--").and_then(|rest| rest.split('=').next()).unwrap_or_default();
    let is_option = name == "help" || command.get_arguments().any(|option| option.get_long() == Some(name));
    if !is_option || !std::env::args_os().any(|word| word == text) {
        return Ok(());
    }
    let message = format!("`{text}` is an option, and stands where a text is to be");
    let trouble = Trouble::new(Exit::USAGE, "option-as-text", message);
    Err(trouble.hint("a text that reads so is given behind a `=`, or by standard input"))
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

fn home() -> Result<PathBuf, Trouble> {
    let set = std::env::var_os("HOME").filter(|home| !home.is_empty());
    set.map(PathBuf::from)
        .ok_or_else(|| Trouble::new(Exit::FAILED, "home-unavailable", "HOME is not set").of_no_command())
}

/// A path without `.` and `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => normal.push(part),
        }
    }
    normal
}

/// The session that is meant; its own folder is its own.
fn found(word: &str, here: &Here) -> Result<(Store, Found), Trouble> {
    let store = Store::open(paths()?);
    let found = found_in(&store, word, here)?;
    Ok((store, found))
}

/// The same, in this store.
fn found_in(store: &Store, word: &str, here: &Here) -> Result<Found, Trouble> {
    let found = address::Book::open(store)?.seen_by(here.scope(store.paths())?).find(store, word)?;
    view::own_folder(store.paths(), &found)?;
    Ok(found)
}

/// What is told of it.
fn view_of(store: &Store, found: &Found, given: &Given) -> Result<view::View, Trouble> {
    let look = block_on_any(look::Look::at(std::iter::once(&*found.record)))?;
    view_at(store, found, given, &look)
}

/// The same, at a look that was taken.
fn view_at(store: &Store, found: &Found, given: &Given, look: &look::Look) -> Result<view::View, Trouble> {
    let host = given.here.host()?;
    let runs = look.seen(&found.record).status == look::Status::Running;
    let found = &if runs { known(store, found)? } else { found.clone() };
    let catalog = settings::catalog()?;
    let around =
        view::Around { face: Face::ours(), host: host.as_deref(), catalog: &catalog, paths: store.paths() };
    Ok(around.view(found, look.seen(&found.record), true))
}

/// A running session, its conversation noted where only now its agent tells of it.
fn known(store: &Store, found: &Found) -> Result<Found, Trouble> {
    if found.archived.is_some() || !found.record.codeagent_session_id.is_empty() {
        return Ok(found.clone());
    }
    let noted = identity::note(store, &System::here(), found.record.id)?;
    let record = match noted {
        Noted::Now => store.read()?.records.get(found.record.id).cloned(),
        Noted::AsItWas | Noted::Refused(_) => None,
    };
    Ok(record.map_or_else(|| found.clone(), |record| Found { record, archived: None }))
}

/// The view of the one session that is meant.
fn one(word: &str, given: &Given) -> Result<view::View, Trouble> {
    one_in(&Store::open(paths()?), word, given)
}

/// The same, in this store.
fn one_in(store: &Store, word: &str, given: &Given) -> Result<view::View, Trouble> {
    view_of(store, &found_in(store, word, &given.here)?, given)
}
