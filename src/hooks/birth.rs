//! What only tmux can tell a hook: what a record for an agent without one is made of, and whether a pane is that of a restore.
//! Each question has a short deadline; a server that does not answer leaves the event to the spool.

use std::path::PathBuf;
use std::time::Duration;

use crate::lifecycle::adopt::{self, Holds, LookError};
use crate::process::{self, TmuxEnv};
use crate::provider::Catalog;
use crate::record::report::{OfRestore, Report, Seen};
use crate::record::{Facts, Origin, PaneId, Place, ProcessId, Record, RecordId, Verb, apply};
use crate::store::Store;
use crate::tmux::guarded::PaneOption;
use crate::tmux::{OneShot, Unanswered};

/// How long tmux may take for all that a hook asks.
const DEADLINE: Duration = Duration::from_millis(1500);

/// Why there is no record to make.
pub(super) enum Unborn {
    /// There is none to make: why.
    No(String),
    /// It cannot be told now: why.
    Unknown(String),
}

/// The record the reporting agent would get. `stands_for` is the agent, where another process runs its hooks.
pub(super) fn newborn(
    store: &Store,
    report: &Report,
    catalog: &Catalog,
    stands_for: Option<i32>,
    facts: &Facts<'_>,
) -> Result<Record, Unborn> {
    let server = server(stands_for).ok_or(Unborn::Unknown("its environment names no tmux".to_owned()))?;
    // records only tell what is known already; nothing known is nothing to compare with
    let records = store.read().map(|snapshot| snapshot.records.clone()).unwrap_or_default();
    let look = ask(adopt::look(&server, &records, catalog))
        .unwrap_or_else(|| Err(LookError::Unanswered(timeout(&server))))
        .map_err(|error| Unborn::Unknown(error.to_string()))?;
    let is_its = |process: &ProcessId| report.line.contains(process);
    let found = look.panes.into_iter().find_map(|pane| match pane.holds {
        Holds::Agent(candidate) if candidate.kind == report.provider => {
            candidate.upsert.ours.agent.as_ref().is_some_and(is_its).then_some(candidate)
        }
        Holds::Agent(_) | Holds::Known { .. } | Holds::StandIn { .. } | Holds::Nothing { .. } => None,
    });
    let Some(candidate) = found else {
        return Err(Unborn::No("no pane of its tmux holds its agent".to_owned()));
    };
    let mut upsert = candidate.upsert;
    upsert.ours.origin = Some(Origin::Hook);
    let place = Place { id: RecordId::from_bits(0), slot: 0, alone: true, ambiguous: false };
    let made = apply(None, &Verb::Upsert(Box::new(upsert)), facts, &place);
    made.ok().and_then(|made| made.record).ok_or(Unborn::No("no record can be made of it".to_owned()))
}

/// The pane of the reporting agent, if tmux says that it is the one of this attempt: the attempt's own mark on it, or the
/// record's stamp on the pane the restore respawned.
pub(super) fn attempt(report: &Report, restore: &OfRestore) -> Option<Seen> {
    let (server, env) = (server(None)?, tmux(None)?);
    let pane = PaneId(env.pane?);
    let own = report.line.last()?.clone();
    ask(async {
        let words = format!(
            "#{{pane_pid}} #{{{}}} #{{{}}} #{{{}}}",
            PaneOption::RestoreAttempt.name(),
            PaneOption::Record.name(),
            PaneOption::Frozen.name()
        );
        let answer = server.run(["display-message", "-p", "-t", &pane.to_string(), &words]).await.ok()?;
        let answer = String::from_utf8(answer).ok()?;
        let mut said = answer.trim_end_matches('\n').split(' ');
        let pid: i32 = said.next()?.parse().ok()?;
        let (attempt, record, frozen) = (said.next()?, said.next()?, said.next()?);
        let marked = attempt == format!("{}:{}", restore.record, restore.nonce);
        let stamp = restore.record.to_string();
        if pid != own.pid || !(marked || record == stamp || frozen == stamp) {
            return None;
        }
        Some(Seen { pane, process: own, server: adopt::epoch(&server).await.ok()? })
    })?
}

/// Puts the conversation's id on the record's pane, and the record's id where `stamp` says so.
pub(super) fn tell_pane(record: &Record, stamp: bool) {
    let (Some(epoch), Some(pane), Some(own)) =
        (&record.ait.server, record.location.pane_id(), record.location.process())
    else {
        return;
    };
    let Ok(server) = OneShot::new(PathBuf::from(&epoch.socket)) else { return };
    let server = server.deadline(DEADLINE);
    ask(async {
        // the options are for those who look at the pane; the record is what counts
        if stamp {
            let _ = adopt::stamp(&server, epoch, pane, Some(own.pid), record.id).await;
        }
        let id = record.codeagent_session_id.as_str();
        if !id.is_empty() {
            let _ = adopt::mark(&server, epoch, pane, Some(own.pid), PaneOption::AgentSession, id).await;
        }
    });
}

/// The tmux of a process, or of this one.
fn tmux(of: Option<i32>) -> Option<TmuxEnv> {
    let pid = of.or_else(|| i32::try_from(std::process::id()).ok())?;
    process::tmux_of(pid).ok().flatten()
}

fn server(of: Option<i32>) -> Option<OneShot> {
    let env = tmux(of)?;
    OneShot::new(env.socket).ok().map(|server| server.deadline(DEADLINE))
}

fn timeout(server: &OneShot) -> Unanswered {
    Unanswered::Timeout { socket: server.socket().to_owned(), deadline: DEADLINE }
}

/// Waits for tmux, within the deadline.
fn ask<T>(question: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async { tokio::time::timeout(DEADLINE, question).await.ok() });
    runtime.shutdown_background();
    answer
}
