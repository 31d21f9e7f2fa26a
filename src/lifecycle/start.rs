//! Starting a new agent: its record is written first, under a lease, and says what is true whatever step is the last one.
//!
//! ```text
//! record (restoring, leased) → prompt on disk → launch → standing → live and stamped → prompt line open → prompt pasted
//!   └──────────── a failure: the pane is closed, record, archive line and folder go ────────┘
//! ```
//!
//! A launch that nobody answered for is left to `reconcile`, which finds it by its mark.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::perform::{self, Stops, World};
use super::prompt::{self, Line};
use super::{apart, identity, remove};
use crate::coordinator::{Birth, End, Outcome, Restore, RestoreOrder, Task};
use crate::process::ProcessId;
use crate::record::{
    self, Capture, Location, Mode, Nonce, Ours, Record, RecordId, Records, RestoreMode, Restores,
    ServerEpoch, Session, Stamp, State, Verb,
};
use crate::store::{LONG_PATIENCE, StoreError, draw, make_private, turns};

/// How long a conversation of which only its agent can tell is waited for.
const HEARD_WITHIN: Duration = Duration::from_millis(1500);

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The provider's name.
    pub kind: String,
    /// The agent's words, its program first.
    pub argv: Vec<String>,
    /// What of them the record keeps: no text, no secret.
    pub kept: Vec<String>,
    /// The conversation's id, where it was chosen; else empty.
    pub session_id: String,
    /// The folder it works in, resolved.
    pub cwd: String,
    /// The project that folder belongs to.
    pub root: String,
    /// The window's name.
    pub window: String,
    /// The tmux session of its project, or the one that was asked for.
    pub tmux_session: String,
    /// That session was asked for by its name.
    pub asked: bool,
    /// The server it goes to, where one listens.
    pub server: Option<ServerEpoch>,
    /// Where windows begin there.
    pub index: Option<i64>,
    /// The environment it is launched with.
    pub env: BTreeMap<String, String>,
    /// Its program, where it was given by its path.
    pub agent_bin: Option<String>,
    /// What it is called.
    pub session: Session,
    /// Those of its names that no other session may have.
    pub unique: Vec<String>,
    /// Its first prompt.
    pub prompt: Option<Vec<u8>>,
    /// The most time it has before it counts as standing.
    pub grace: Duration,
}

/// Why nothing was started. What had been made is gone again.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// Another session goes by that name.
    #[error("a session is called {0} already")]
    NameTaken(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store refused the record.
    #[error("the store refused: {0}")]
    Refused(String),
    /// A file of the session cannot be written.
    #[error("cannot write {path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// tmux refused, or the agent ended at once.
    #[error("{}", words(.0))]
    Launch(Outcome),
    /// It runs, and its prompt did not reach it.
    #[error("its prompt was not pasted: {0}")]
    Prompt(prompt::NotPasted),
    /// It was told to stop before its prompt was pasted.
    #[error("it was told to stop before its prompt was pasted")]
    Told,
    /// It failed, and what was made could not be taken back.
    #[error("{first}; what was started is still there: {why}")]
    Left {
        /// The failure.
        first: String,
        /// Why it could not be taken back.
        why: String,
    },
}

/// An agent that was started.
#[derive(Debug, Clone)]
pub struct Started {
    /// Its record.
    pub record: RecordId,
    /// What is said besides.
    pub warnings: Vec<String>,
}

fn words(outcome: &Outcome) -> String {
    if outcome.detail.is_empty() {
        outcome.word.clone()
    } else {
        format!("{}: {}", outcome.word, outcome.detail)
    }
}

/// Starts an agent.
///
/// # Errors
/// [`NotStarted`].
pub async fn start(
    world: &World,
    me: &ProcessId,
    stops: &mut Stops,
    plan: &Plan,
) -> Result<Started, NotStarted> {
    let (record, nonce, mut machine) = prepare(world, me, plan)?;
    let id = record.id;
    let done = match furnish(world, plan, &record) {
        Ok(()) => match begun(world, stops, plan, id, &mut machine).await {
            Ok(warnings) => return Ok(Started { record: id, warnings }),
            Err(failed) => failed,
        },
        // nothing was launched: the record goes while it is ours, before its folder does
        Err(failed) => {
            let drop = Verb::Drop { nonce: Some(nonce) };
            if let Err(why) = world.store.apply(&[(Some(id), drop)], &world.system.facts(), LONG_PATIENCE) {
                return Err(NotStarted::Left { first: failed.to_string(), why: why.to_string() });
            }
            failed
        }
    };
    if matches!(&done, NotStarted::Launch(outcome) if outcome.end == End::Left) {
        return Err(done);
    }
    match remove::remove(world, me, stops, id).await {
        Ok(_) => Err(done),
        Err(why) => Err(NotStarted::Left { first: done.to_string(), why: why.to_string() }),
    }
}

/// Makes what lies in a session's folder before its agent is there.
fn furnish(world: &World, plan: &Plan, record: &Record) -> Result<(), NotStarted> {
    let folder = turns::folder(world.store.paths(), record.id);
    let failed = |why| NotStarted::File { path: folder.clone(), why };
    apart::make(world.store.paths(), record).map_err(failed)?;
    match &plan.prompt {
        Some(prompt) => write(&folder, "prompt.md", prompt),
        None => Ok(()),
    }
}

async fn begun(
    world: &World,
    stops: &mut Stops,
    plan: &Plan,
    id: RecordId,
    machine: &mut Restore,
) -> Result<Vec<String>, NotStarted> {
    let outcome = perform::run(world, id, machine, stops, &mut |_| {}).await;
    if outcome.end != End::Done {
        return Err(NotStarted::Launch(outcome));
    }
    let mut warnings = outcome.warnings.clone();
    let pasted = plan.prompt.as_ref().filter(|_| plan.session.mode == Mode::Interactive);
    match (pasted, outcome.word.strip_prefix("blocked:")) {
        (Some(_), Some(dialog)) => {
            warnings.push(not_pasted(dialog));
        }
        (Some(_), None) if stops.came() => return Err(NotStarted::Told),
        (Some(text), None) => {
            warnings.extend(give(world, stops, id, text).await?);
            // with its first prompt its conversation begins; one that is not heard of now is noted later
            if let Err(error) = identity::hear(&world.store, &world.system, id, HEARD_WITHIN).await {
                tracing::warn!(%error, "its conversation is not noted");
            }
        }
        (None, _) => {}
    }
    Ok(warnings)
}

/// Gives a live agent its first prompt, once its prompt line is open. What is to be said besides.
async fn give(
    world: &World,
    stops: &mut Stops,
    id: RecordId,
    text: &[u8],
) -> Result<Vec<String>, NotStarted> {
    let snapshot = world.store.read()?;
    let record = snapshot.records.get(id).ok_or(NotStarted::Prompt(prompt::NotPasted::Gone))?;
    let line = tokio::select! {
        biased;
        _ = stops.next() => return Err(NotStarted::Told),
        line = prompt::open(world, record) => line.map_err(NotStarted::Prompt)?,
    };
    let mut warnings = Vec::new();
    match line {
        Line::Open => {}
        Line::Behind(dialog) => return Ok(vec![not_pasted(dialog.word())]),
        Line::Unseen => {
            warnings.push("its prompt line was not seen; its prompt was pasted all the same".to_owned())
        }
    }
    warnings.extend(prompt::paste(world, record, text).await.map_err(NotStarted::Prompt)?);
    Ok(warnings)
}

fn not_pasted(dialog: &str) -> String {
    format!("it waits at a dialog ({dialog}); its prompt was not pasted")
}

/// Writes the record, leased to this process, and gives the machine that launches its agent.
fn prepare(world: &World, me: &ProcessId, plan: &Plan) -> Result<(Box<Record>, Nonce, Restore), NotStarted> {
    let facts = world.system.facts();
    let mode = if plan.session_id.is_empty() { RestoreMode::Repick } else { RestoreMode::Resume };
    let made = world.store.update(&facts, LONG_PATIENCE, |batch| {
        if let Some(taken) = plan.unique.iter().find(|name| is_taken(batch.records(), name)) {
            return Err(NotStarted::NameTaken(taken.clone()));
        }
        let mut id = RecordId::from_bits(draw());
        while batch.records().get(id).is_some() {
            id = RecordId::from_bits(draw());
        }
        let archived = Box::new(blank(plan, id, facts.now));
        let refused = |refused: record::Refused| NotStarted::Refused(refused.to_string());
        batch.step(Some(id), &Verb::Revive { archived, lost: None, capture: None }).map_err(refused)?;
        let begin = Verb::RestoreBegin { owner: me.clone(), mode };
        let nonce = match batch.step(Some(id), &begin).map_err(refused)?.outcome {
            record::Outcome::Restoring(nonce) => nonce,
            other => return Err(NotStarted::Refused(format!("{other:?}"))),
        };
        let record = batch.records().get(id).map(|record| Box::new(Record::clone(record)));
        record.map(|record| (record, nonce)).ok_or_else(|| NotStarted::Refused("no record".to_owned()))
    })?;
    let (record, nonce) = made?;
    let order = RestoreOrder {
        task: Task { record: record.id, me: me.clone() },
        mode,
        session: plan.asked.then(|| plan.tmux_session.clone()),
        dry_run: false,
        grace: plan.grace,
    };
    let birth = match plan.session.mode {
        Mode::Interactive => Birth::Standing,
        Mode::Run => Birth::Launched,
    };
    let machine = Restore::start(order, record.clone(), nonce, plan.argv.clone(), birth);
    Ok((record, nonce, machine))
}

fn is_taken(records: &Records, name: &str) -> bool {
    records.iter().any(|record| record.ait.session.as_ref().is_some_and(|session| session.is_called(name)))
}

/// The record of an agent that is nowhere yet.
fn blank(plan: &Plan, id: RecordId, now: Stamp) -> Record {
    Record {
        id,
        root: plan.root.clone(),
        window: plan.window.clone(),
        window_slot: 1,
        location: Location::Gone,
        session: plan.tmux_session.clone(),
        operation: String::new(),
        task_id: String::new(),
        agent_string: format!("{}/{}", plan.kind, model(plan)),
        agent_kind: plan.kind.clone(),
        codeagent_session_id: plan.session_id.clone(),
        transcript_path: String::new(),
        started_at: Some(now),
        state_at: Some(now),
        frozen_at: Some(now),
        state: State::Frozen { lost: None },
        lease: None,
        capture: Capture::default(),
        last_phase: String::new(),
        standin_pid: 0,
        restore: Restores::default(),
        ait: Ours {
            agent_bin: plan.agent_bin.clone(),
            argv: Some(plan.kept.clone()),
            cwd: Some(plan.cwd.clone()),
            env: Some(plan.env.clone()),
            host: Some(record::Host::Pane),
            origin: Some(record::Origin::Started),
            runtime_id: Some(uuid::Uuid::new_v4().to_string()),
            server: plan.server.clone(),
            session: Some(plan.session.clone()),
            window_index: plan.index,
            ..Ours::default()
        },
        unknown: Default::default(),
    }
}

fn model(plan: &Plan) -> String {
    let argv: Vec<Vec<u8>> = plan.argv.iter().map(|word| word.clone().into_bytes()).collect();
    crate::provider::model(&argv).unwrap_or_else(|| "unknown".to_owned())
}

/// Writes a file of the session, 0600, in its own folder, 0700.
fn write(folder: &Path, name: &str, text: &[u8]) -> Result<(), NotStarted> {
    make_private(folder)?;
    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    let written =
        options.write(true).create(true).truncate(true).mode(0o600).open(&path).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
    written.map_err(|why| NotStarted::File { path, why })
}
