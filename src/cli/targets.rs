//! Which records a command is meant for: named by record, by pane, or all there are. An agent without a record is adopted on
//! the way.

use std::path::PathBuf;
use std::str::FromStr;

use super::setup::diff::shown_path;
use super::{Exit, Failure, adopt as panes, print, settings, sockets};
use crate::lifecycle::adopt::{self, Holds, Look, LookError, Pane, Taken};
use crate::record::{PaneId, Record, RecordId, Records};
use crate::store::{Store, System};
use crate::tmux::listing::ListError;
use crate::tmux::{OneShot, Unanswered};

/// A record, or a pane that holds its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// By the record's id, or the name or title of its session.
    Record(String),
    /// By the pane's.
    Pane(PaneId),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('%') {
            return text.parse().map(Self::Pane).map_err(|_| format!("{text} is no pane id"));
        }
        Ok(Self::Record(text.to_owned()))
    }
}

/// The record that has this id, or whose session is called so.
pub(super) fn of_word(records: &Records, word: &str) -> Result<RecordId, Failure> {
    let is_called = |record: &&Record| record.ait.session.as_ref().is_some_and(|own| own.is_called(word));
    let meant = |record: &&Record| record.id.to_string() == word || is_called(record);
    let all: Vec<RecordId> = records.iter().filter(meant).map(|record| record.id).collect();
    let (exit, message) = match (&all[..], word.parse::<RecordId>()) {
        ([one], _) => return Ok(*one),
        ([], Ok(id)) => (Exit::FAILED, format!("there is no record {id}")),
        ([], Err(_)) => (
            Exit::USAGE,
            format!("{} is no record, no session's name, and no pane (%N)", print::shown(word.as_bytes())),
        ),
        (several, _) => {
            let ids: Vec<String> = several.iter().map(RecordId::to_string).collect();
            let message = format!("{} names several records", print::shown(word.as_bytes()));
            return Err(Failure::new(Exit::USAGE, message).hint(format!("name one: {}", ids.join(", "))));
        }
    };
    Err(Failure::new(exit, message).hint("`ait status` shows the records"))
}

/// The record of a target. A pane's agent that has none is adopted.
pub(super) async fn one(store: &Store, target: &Target, socket: &[PathBuf]) -> Result<RecordId, Failure> {
    let catalog = settings::catalog()?;
    let id = match target {
        Target::Record(word) => return of_word(&store.read()?.records, word),
        Target::Pane(id) => *id,
    };
    let server = OneShot::new(panes::which(socket).await?)?;
    let look = adopt::look(&server, &store.read()?.records, &catalog).await?;
    let Some(pane) = look.panes.iter().find(|pane| pane.id == id) else {
        let socket = shown_path(server.socket());
        return Err(Failure::new(Exit::FAILED, format!("there is no pane {id} on {socket}"))
            .hint("`tmux list-panes -a` shows the panes; --socket names another server"));
    };
    match held(store, &server, &look, pane).await? {
        Ok(record) => Ok(record),
        Err(why) => Err(Failure::new(Exit::FAILED, format!("pane {id}: {why}"))),
    }
}

/// The record of what a pane holds, adopted if need be; else why it holds none.
async fn held(
    store: &Store,
    server: &OneShot,
    look: &Look,
    pane: &Pane,
) -> Result<Result<RecordId, String>, Failure> {
    Ok(match &pane.holds {
        Holds::Known { record, .. } => Ok(*record),
        Holds::Agent(candidate) => {
            match adopt::take(server, store, &System::here(), look, pane.id, candidate).await? {
                Taken::Recorded { record, .. } => Ok(record),
                Taken::Refused(refused) => Err(refused.to_string()),
            }
        }
        Holds::StandIn { stamp } => Err(format!("it is the stand-in of record {}", print::shown(stamp))),
        Holds::Nothing { why } => Err(print::shown(why.as_bytes())),
    })
}

/// Every agent of every server, and what could not be looked at.
#[derive(Debug, Default)]
pub(super) struct All {
    /// Records of running agents; that of the pane we are in ourselves last.
    pub(super) records: Vec<RecordId>,
    /// Agents without a record, where none was to be made: `session:window`.
    pub(super) unadopted: Vec<String>,
    /// What was left out, with the reason.
    pub(super) skipped: Vec<[String; 2]>,
    /// A server that should have answered did not.
    pub(super) unknown: bool,
}

/// All agents there are. `adopt`: whether those without a record get one.
pub(super) async fn all(store: &Store, given: &[PathBuf], adopt: bool) -> Result<All, Failure> {
    let catalog = settings::catalog()?;
    let mut all = All::default();
    let mut own = Vec::new();
    let here = (sockets::own().map(|path| sockets::resolved(&path)), own_pane());
    for socket in sockets::all(given, Some(&store.read()?.records)) {
        let server = OneShot::new(&socket)?;
        let look = match adopt::look(&server, &store.read()?.records, &catalog).await {
            Ok(look) => look,
            // a socket that a dead server left
            Err(LookError::List(ListError::Unanswered(Unanswered::NoServer { .. }))) => continue,
            Err(why) => {
                all.skipped.push([shown_path(&socket), why.to_string()]);
                all.unknown = true;
                continue;
            }
        };
        for pane in &look.panes {
            let name = || format!("{}:{}", print::shown(&pane.session), print::shown(&pane.window));
            let is_own = here.0.as_ref() == Some(&socket) && here.1 == Some(pane.id);
            match &pane.holds {
                Holds::StandIn { .. } | Holds::Nothing { .. } => {}
                Holds::Agent(_) if !adopt => all.unadopted.push(name()),
                Holds::Agent(_) | Holds::Known { .. } => match held(store, &server, &look, pane).await? {
                    Ok(record) if is_own => own.push(record),
                    Ok(record) => all.records.push(record),
                    Err(why) => all.skipped.push([name(), why]),
                },
            }
        }
    }
    all.records.extend(own);
    Ok(all)
}

/// The pane this process was started in.
fn own_pane() -> Option<PaneId> {
    std::env::var("TMUX_PANE").ok()?.parse().ok()
}
