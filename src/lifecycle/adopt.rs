//! A record for an agent that already runs: found by its process, never by a name.
//!
//! [`look`] lists one server by one plain `tmux` and says of every pane whether an agent runs in it; it changes nothing.
//! [`take`] writes the record first and stamps the pane after. Cut short between the two, the next look finds the record
//! by pane and epoch and stamps it then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use crate::process::{self, Facts, ProcessError, Table};
use crate::provider::{self, Catalog};
use crate::record::{
    Host, Location, Origin, Ours, Outcome, PaneId, ProcessId, RecordId, Records, Refused, ServerEpoch, State,
    Upsert, Verb, WindowId,
};
use crate::store::{PATIENCE, Store, StoreError, System};
use crate::tmux::guarded::{self, Epoch, Guard, PaneOption, Token};
use crate::tmux::listing::{self, ListError};
use crate::tmux::{HOLD_SESSION, OneShot, Unanswered};
use crate::world::rows::{PaneRow, SessionRow, Snapshot, WindowRow};

use super::behind::{Agent, agent};
use super::identity;
use super::root::root_of;

/// A server could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// It cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// It did not say who it is.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// Its answer about itself is none.
    #[error("the server on {socket} says of itself {answer:?}")]
    Identity {
        /// The socket.
        socket: PathBuf,
        /// The answer.
        answer: BString,
    },
    /// The processes of the machine cannot be read.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// A server as it was looked at.
#[derive(Debug)]
pub struct Look {
    /// Its life.
    pub epoch: ServerEpoch,
    /// Every pane once, those of `_ait` left out, by id.
    pub panes: Vec<Pane>,
}

/// A pane and what runs in it.
#[derive(Debug)]
pub struct Pane {
    /// tmux's id of it.
    pub id: PaneId,
    /// The session's name, of the first link of its window.
    pub session: BString,
    /// The window's name.
    pub window: BString,
    /// The window's index there.
    pub index: i64,
    /// What runs in it.
    pub holds: Holds,
}

/// What a pane holds.
#[derive(Debug)]
pub enum Holds {
    /// An agent without a record.
    Agent(Box<Candidate>),
    /// The agent of a record.
    Known {
        /// The record.
        record: RecordId,
        /// Which agent, by its provider's name, where its process says so.
        kind: Option<String>,
        /// The pane lacks its stamp.
        unstamped: bool,
    },
    /// A frozen agent's stand-in.
    StandIn {
        /// What its stamp says.
        stamp: BString,
    },
    /// No agent that could be adopted.
    Nothing {
        /// Why not, as a lower-case fragment.
        why: String,
    },
}

/// An agent that could be adopted.
#[derive(Debug)]
pub struct Candidate {
    /// Which agent, by its provider's name.
    pub kind: String,
    /// What would be written.
    pub upsert: Upsert,
}

/// Lists `server` and recognises what runs in its panes: agents of `catalog`.
///
/// # Errors
/// No whole listing: then nothing is known of any pane.
pub async fn look(server: &OneShot, records: &Records, catalog: &Catalog) -> Result<Look, LookError> {
    let snapshot = listing::snapshot(server).await?;
    let epoch = epoch(server).await?;
    let table = Table::read()?;
    let known = Known { epoch: &epoch, table: &table, records, catalog };
    let mut panes = BTreeMap::new();
    for row in &snapshot.panes {
        let Some((session, window)) = link(&snapshot, row) else { continue };
        panes.entry(row.id).or_insert_with(|| Pane {
            id: PaneId(row.id.0),
            session: session.name.clone(),
            window: window.name.clone(),
            index: window.index,
            holds: holds(row, session, window, &known),
        });
    }
    Ok(Look { epoch, panes: panes.into_values().collect() })
}

/// The session and window a row stands in, unless that session is the hidden one.
fn link<'a>(snapshot: &'a Snapshot, row: &PaneRow) -> Option<(&'a SessionRow, &'a WindowRow)> {
    let session = snapshot.sessions.iter().find(|session| session.id == row.session)?;
    if session.name == HOLD_SESSION {
        return None;
    }
    let window =
        snapshot.windows.iter().find(|window| window.id == row.window && window.session == row.session)?;
    Some((session, window))
}

/// Who the server is, by its own word and by the kernel's.
///
/// # Errors
/// It gives no answer, or one that says nothing.
pub async fn epoch(server: &OneShot) -> Result<ServerEpoch, LookError> {
    let answer = server.run(["display-message", "-p", "#{pid} #{start_time}"]).await?;
    let numbers = || {
        let text = std::str::from_utf8(answer.trim()).ok()?;
        let (pid, started_at) = text.split_once(' ')?;
        Some((pid.parse::<i32>().ok().filter(|pid| *pid > 0)?, started_at.parse::<i64>().ok()))
    };
    let Some((pid, started_at)) = numbers() else {
        return Err(LookError::Identity { socket: server.socket().to_owned(), answer: answer.into() });
    };
    let socket = server.socket().canonicalize().unwrap_or_else(|_| server.socket().to_owned());
    Ok(ServerEpoch {
        socket: socket.to_string_lossy().into_owned(),
        pid,
        started: process::start_of(pid).unwrap_or_default(),
        started_at,
        boot_id: process::boot_id()?,
        ..ServerEpoch::default()
    })
}

/// What a pane is judged by.
struct Known<'a> {
    epoch: &'a ServerEpoch,
    table: &'a Table,
    records: &'a Records,
    catalog: &'a Catalog,
}

fn holds(row: &PaneRow, session: &SessionRow, window: &WindowRow, known: &Known<'_>) -> Holds {
    let Known { epoch, table, records, catalog } = *known;
    if !row.frozen.is_empty() {
        return Holds::StandIn { stamp: row.frozen.clone() };
    }
    let nothing = |why: String| Holds::Nothing { why };
    let pid = match row.pid {
        Some(pid) if !row.dead && pid > 0 => pid,
        Some(_) | None => return nothing("its process has ended".to_owned()),
    };
    let Some(own) = process::facts(pid) else {
        return nothing(format!("its process {pid} cannot be seen"));
    };
    let agent = agent(&own, table, catalog);
    if let Some(record) = record_of(row, epoch, agent.as_ref().map(|agent| &agent.process), records) {
        let kind = agent.map(|agent| agent.kind);
        return Holds::Known { record, kind, unstamped: row.stamp != record.to_string() };
    }
    let Some(agent) = agent else {
        return nothing(format!("no known agent runs in it (its process is {})", called(&own)));
    };
    // the shell that is to come back is known by the record it waits for
    let waited = agent.waits.and_then(|id| records.get(id)?.ait.host.clone());
    let host = waited.filter(|host| matches!(host, Host::Shell { .. })).unwrap_or(agent.host);
    let agent = Agent { host, ..agent };
    match candidate(row, session, window, known, &own, agent) {
        Ok(candidate) => Holds::Agent(Box::new(candidate)),
        Err(why) => nothing(why),
    }
}

fn called(facts: &Facts) -> String {
    let name = facts.argv.first().map_or(facts.comm.as_slice(), Vec::as_slice);
    name.rsplit(|b| *b == b'/').next().unwrap_or(name).to_str_lossy().into_owned()
}

/// The record this pane's agent has already: live, of this pane and this life of the server, with the same agent.
fn record_of(
    row: &PaneRow,
    epoch: &ServerEpoch,
    agent: Option<&ProcessId>,
    records: &Records,
) -> Option<RecordId> {
    records
        .iter()
        .find(|record| {
            let here = record.location.pane_id() == Some(PaneId(row.id.0))
                && record.ait.server.as_ref().is_some_and(|server| server.is_same_life(epoch));
            let same = match (record.agent_process(), agent) {
                (Some(stored), Some(seen)) => stored.pid == seen.pid && agree(&stored.started, &seen.started),
                // an agent under another name than the table's is the record's all the same
                (Some(stored), None) => row.pid == Some(stored.pid),
                (None, _) => false,
            };
            here && same && matches!(record.state, State::Live)
        })
        .map(|record| record.id)
}

fn agree(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || one == other
}

fn candidate(
    row: &PaneRow,
    session: &SessionRow,
    window: &WindowRow,
    Known { epoch, catalog, .. }: &Known<'_>,
    own: &Facts,
    agent: Agent,
) -> Result<Candidate, String> {
    let text =
        |path: &Path| path.to_str().map(str::to_owned).ok_or("its folder's name is no text".to_owned());
    let cwd = agent.facts.cwd.as_deref().ok_or("its working folder cannot be seen")?;
    let root = root_of(cwd).map_err(|gone| format!("its working folder cannot be resolved: {gone}"))?;
    let (cwd, root) = (text(cwd)?, text(&root)?);
    let at = Location::pane(PaneId(row.id.0), own.id.clone());
    let mut upsert = Upsert::new(root, window.name.to_str_lossy(), at);
    let model = provider::model(&agent.facts.argv);
    upsert.agent_string = format!("{}/{}", agent.kind, model.as_deref().unwrap_or("unknown"));
    upsert.session = session.name.to_str_lossy().into_owned();
    let environment =
        process::environment(agent.facts.id.pid, &catalog.kept_variables(&agent.kind)).unwrap_or_default();
    let environment: BTreeMap<String, String> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?)))
        .collect();
    // the provider's own list is of this moment; a hook knows better than arguments: the conversation may have changed
    let listed = identity::conversation(&agent.kind, &agent.process, &environment);
    let told = || row.agent_session.to_str().ok().filter(|told| !told.is_empty()).map(str::to_owned);
    let argued = || catalog.session_id(&agent.kind, &agent.facts.argv);
    upsert.session_id = listed.or_else(told).or_else(argued).unwrap_or_default();
    let kept = catalog.without_text(&agent.kind, &agent.facts.argv);
    upsert.ours = Ours {
        agent: Some(agent.process),
        agent_bin: agent.facts.exe.as_deref().and_then(Path::to_str).map(str::to_owned),
        argv: Some(kept.iter().map(|word| word.to_str_lossy().into_owned()).collect()),
        cwd: Some(cwd),
        env: Some(environment),
        host: Some(agent.host),
        origin: Some(Origin::Adopted),
        server: Some((*epoch).clone()),
        title: Some(row.title.to_str_lossy().into_owned()),
        window_id: Some(WindowId(window.id.0)),
        window_index: Some(window.index),
        window_layout: Some(window.layout.to_str_lossy().into_owned()),
        ..Ours::default()
    };
    Ok(Candidate { kind: agent.kind, upsert })
}

/// What became of an adoption.
#[derive(Debug)]
#[must_use]
pub enum Taken {
    /// It has a record.
    Recorded {
        /// The record.
        record: RecordId,
        /// What the store answered: made, brought up to date, joined again.
        outcome: Outcome,
        /// Why the pane does not carry the record's stamp, if it does not.
        unstamped: Option<String>,
    },
    /// The store refused.
    Refused(Refused),
}

/// Adoption failed before it was known what the store made of it.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No answer to the verb.
    #[error("the store gave no answer")]
    NoAnswer,
}

/// Writes the record of a candidate, then stamps its pane.
///
/// # Errors
/// The store cannot be written: then nothing was stamped either.
pub async fn take(
    server: &OneShot,
    store: &Store,
    system: &System,
    look: &Look,
    pane: PaneId,
    candidate: &Candidate,
) -> Result<Taken, TakeError> {
    let verb = Verb::Upsert(Box::new(candidate.upsert.clone()));
    let mut answers = store.apply(&[(None, verb)], &system.facts(), PATIENCE)?;
    let done = match answers.pop().ok_or(TakeError::NoAnswer)? {
        Ok(done) => done,
        Err(refused) => return Ok(Taken::Refused(refused)),
    };
    let process = candidate.upsert.at.process().map_or(0, |process| process.pid);
    let unstamped = stamp(server, &look.epoch, pane, Some(process), done.id).await.err();
    Ok(Taken::Recorded { record: done.id, outcome: done.outcome, unstamped })
}

/// Stamps a pane with its record, in one guarded command, in this life of the server only and, where `process` is given,
/// only while that is the pane's process.
///
/// # Errors
/// Why it is not stamped, as a lower-case fragment.
pub async fn stamp(
    server: &OneShot,
    epoch: &ServerEpoch,
    pane: PaneId,
    process: Option<i32>,
    record: RecordId,
) -> Result<(), String> {
    mark(server, epoch, pane, process, PaneOption::Record, &record.to_string()).await
}

/// Sets one of our options on a pane, guarded as [`stamp`] is.
///
/// # Errors
/// Why it is not set, as a lower-case fragment.
pub async fn mark(
    server: &OneShot,
    epoch: &ServerEpoch,
    pane: PaneId,
    process: Option<i32>,
    option: PaneOption,
    text: &str,
) -> Result<(), String> {
    let started_at = epoch.started_at.ok_or("the server does not say when it started")?;
    let id = tmux_control::PaneId(pane.0);
    let guard = Guard::new(id, Epoch { pid: epoch.pid, started_at });
    let guard = match process {
        Some(pid) => guard.process(pid),
        None => guard,
    };
    let token = Token::random().map_err(|wrong| wrong.to_string())?;
    // what it prints is proof enough: nothing need be left on the pane
    let act = guarded::set(guard, option, text, token).map_err(|wrong| wrong.to_string())?.printed();
    match act.run(server).await.map_err(|wrong| wrong.to_string())? {
        guarded::Outcome::Done => Ok(()),
        guarded::Outcome::NotMet => Err("its pane is no longer what it was".to_owned()),
        guarded::Outcome::Refused(words) => Err(words.to_str_lossy().into_owned()),
        guarded::Outcome::Unknown => Err("tmux gave no answer".to_owned()),
    }
}
