//! `reconcile` and `purge`: look without a lock, decide, then act through verbs whose guards look again.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use super::super::{Exit, Failure, print, settings};
use super::observe::{self, Servers};
use super::{escaped, failed};
use crate::reconcile::purge::{Observed, retires};
use crate::reconcile::settle::{Back, Settle, settle};
use crate::record::{Ack, Location, Nonce, Record, RecordId, State, StateName, Step, Verb};
use crate::store::{LONG_PATIENCE, Store, System, real_path};

#[derive(Serialize)]
struct Line {
    id: RecordId,
    result: String,
}

/// Settles what can be settled by the record alone; what needs a stand-in respawned in a pane is named.
pub(super) fn reconcile(store: &Store, dry_run: bool, json: bool) -> Result<Exit, Failure> {
    let system = System::here();
    let snapshot = store.read().map_err(failed)?;
    let on_their_way = |record: &&Record| record.state.name() != StateName::Live;
    let servers = Servers::look(snapshot.records.iter().filter(on_their_way))?;
    let ack_grace = ack_grace()?;
    let mut lines: Vec<Line> = Vec::new();
    for record in snapshot.records.iter().filter(on_their_way) {
        let decided = settle(record, &servers.sight(record), &system.facts(), ack_grace);
        let result = match plan(record, &decided) {
            Plan::Nothing => continue,
            Plan::Say(word) => format!("PENDING:{}|{word}", record.id),
            Plan::Verbs(verbs) if dry_run => {
                let names: Vec<&str> = verbs.iter().map(|verb| verb.name().word()).collect();
                format!("WOULD:{}|{}", record.id, names.join(","))
            }
            Plan::Verbs(verbs) => act(store, &system, record, verbs)?,
        };
        lines.push(Line { id: record.id, result });
    }
    tell(&lines, "RECONCILED", json)
}

/// How long a restored agent has for its acknowledgement, in seconds: by the environment, else by the settings.
fn ack_grace() -> Result<u64, Failure> {
    let asked = std::env::var("AITASKS_RESTORE_ACK_GRACE").ok().and_then(|text| text.trim().parse().ok());
    match asked {
        Some(seconds) => Ok(seconds),
        None => Ok(settings::config()?.frozen.restore_ack_grace.as_secs()),
    }
}

enum Plan {
    Nothing,
    Say(String),
    Verbs(Vec<Verb>),
}

/// The verbs that carry out what was decided.
fn plan(record: &Record, decided: &Settle) -> Plan {
    // A lease that was given back leaves no token: the verbs that need one take their own first (see `act`).
    let nonce = record.lease.as_ref().map_or(Nonce::from_bits(0), |lease| lease.nonce);
    match decided {
        Settle::Rest | Settle::Held => Plan::Nothing,
        Settle::Unknown => Plan::Say("unknown".to_owned()),
        Settle::Wait(what) => Plan::Say(format!("wait|{what}")),
        Settle::Respawn(pane) => Plan::Say(format!("respawn|{pane}")),
        Settle::StampFrozen(pane) => Plan::Say(format!("stamp|{pane}")),
        Settle::AbortFreeze(pane) => Plan::Say(format!("freeze-abort|{pane}")),
        Settle::Commit(at) => Plan::Verbs(vec![Verb::FreezeCommit { nonce, at: at.clone() }]),
        Settle::Launched { at, server } => Plan::Verbs(vec![Verb::RestoreLaunched {
            nonce,
            at: at.clone(),
            server: server.clone(),
            runtime_id: None,
        }]),
        Settle::Confirm(at) => Plan::Verbs(vec![Verb::RestoreConfirm {
            nonce,
            at: at.clone(),
            ack: Ack::Liveness,
            agent: None,
            session_id: None,
        }]),
        Settle::Forget => Plan::Verbs(vec![Verb::Drop { nonce: Some(nonce) }]),
        Settle::Release => Plan::Verbs(vec![Verb::LeaseRelease { nonce }]),
        Settle::StandInBack(at) => Plan::Verbs(vec![Verb::StandinRespawned { nonce, at: at.clone() }]),
        Settle::AbortRestore { error, then } => {
            let abort = Verb::RestoreAbort { nonce, error: (*error).to_owned() };
            match then {
                Back::At(at) => Plan::Verbs(vec![abort, Verb::StandinRespawned { nonce, at: at.clone() }]),
                // The next look finds it aborting and names the respawn.
                Back::Respawn(_) => Plan::Verbs(vec![abort]),
            }
        }
    }
}

/// Takes the lease over and applies the verbs in one write; whatever changed since the look refuses them.
fn act(store: &Store, system: &System, seen: &Record, verbs: Vec<Verb>) -> Result<String, Failure> {
    let me = crate::process::me().map_err(|wrong| Failure::of(Exit::FAILED, &wrong))?;
    let facts = system.facts();
    let id = seen.id;
    let told = store.update(&facts, LONG_PATIENCE, |batch| {
        if batch.records().get(id).map(AsRef::as_ref) != Some(seen) {
            return format!("PENDING:{id}|changed");
        }
        let taken = match batch.step(Some(id), &Verb::LeaseTake { owner: me }) {
            Ok(done) => done.outcome.nonce(),
            Err(refused) => return refused.line(),
        };
        let Some(nonce) = taken else { return format!("PENDING:{id}|no_lease") };
        let mut line = String::new();
        for verb in verbs {
            match batch.step(Some(id), &with_nonce(verb, nonce)) {
                Ok(done) => line = done.outcome.line(id),
                Err(refused) => {
                    line = refused.line();
                    break;
                }
            }
        }
        // What stays on its way stays free for the next look.
        let _ = batch.step(Some(id), &Verb::LeaseRelease { nonce });
        line
    });
    told.map_err(failed)
}

fn with_nonce(verb: Verb, fresh: Nonce) -> Verb {
    match verb {
        Verb::FreezeCommit { at, .. } => Verb::FreezeCommit { nonce: fresh, at },
        Verb::RestoreConfirm { at, ack, agent, session_id, .. } => {
            Verb::RestoreConfirm { nonce: fresh, at, ack, agent, session_id }
        }
        Verb::RestoreLaunched { at, server, runtime_id, .. } => {
            Verb::RestoreLaunched { nonce: fresh, at, server, runtime_id }
        }
        Verb::StandinRespawned { at, .. } => Verb::StandinRespawned { nonce: fresh, at },
        Verb::RestoreAbort { error, .. } => Verb::RestoreAbort { nonce: fresh, error },
        Verb::Drop { .. } => Verb::Drop { nonce: Some(fresh) },
        Verb::LeaseRelease { .. } => Verb::LeaseRelease { nonce: fresh },
        other => other,
    }
}

/// The longest observation file that is read, in bytes.
const OBSERVED: u64 = 16 * 1024 * 1024;

/// Retires by the record's own server, and only what an observation file doubts too, if one is given.
pub(super) fn purge(store: &Store, observed: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let observed = match observed {
        None => None,
        Some(path) => {
            let unread =
                |why: String| Failure::new(Exit::code(4), format!("cannot read {}: {why}", path.display()));
            let mut text = String::new();
            let file = File::open(path).map_err(|error| unread(error.to_string()))?;
            let read = file.take(OBSERVED + 1).read_to_string(&mut text);
            if read.map_err(|error| unread(error.to_string()))? as u64 > OBSERVED {
                return Err(unread(format!("it is longer than {OBSERVED} bytes")));
            }
            let mut real = |root: &str| real_path(Path::new(root)).to_string_lossy().into_owned();
            let parsed = Observed::parse(&text, &mut real);
            Some(parsed.map_err(|bad| Failure::new(Exit::code(4), format!("{}: {bad}", path.display())))?)
        }
    };
    let system = System::here();
    let snapshot = store.read().map_err(failed)?;
    let servers = Servers::look(snapshot.records.iter().filter(|r| matches!(r.state, State::Live)))?;
    let mut steps: Vec<Step> = Vec::new();
    if observed.as_ref().is_none_or(Observed::is_complete) {
        for record in snapshot.records.iter() {
            let is_live = matches!(record.state, State::Live);
            if is_live && observed.as_ref().is_some_and(|observed| !observed.doubts(record)) {
                continue;
            }
            let capture = observe::capture(record, store.paths());
            if let Some(reason) = retires(record, &servers.sight(record), capture, &system.facts()) {
                let evidence = evidence(record, reason.word());
                steps.push((Some(record.id), Verb::Retire { reason, evidence }));
            }
        }
    }
    let answers = if steps.is_empty() {
        Vec::new()
    } else {
        store.apply(&steps, &system.facts(), LONG_PATIENCE).map_err(failed)?
    };
    let lines: Vec<Line> = answers
        .into_iter()
        .flatten()
        .map(|done| Line { id: done.id, result: done.outcome.line(done.id) })
        .collect();
    tell(&lines, "PURGED", json)
}

fn evidence(record: &Record, reason: &str) -> String {
    let place = match &record.location {
        Location::Pane { pane, process } => format!("{pane}, process {}", process.pid),
        Location::Gone => "no pane".to_owned(),
    };
    let server = record.ait.server.as_ref().map_or("", |server| server.socket.as_str());
    format!("{reason}: {place} on {}", escaped(server))
}

fn tell(lines: &[Line], total: &str, json: bool) -> Result<Exit, Failure> {
    if json {
        print::json(&lines)?;
    } else {
        let mut text: String = lines.iter().map(|line| format!("{}\n", line.result)).collect();
        text +=
            &format!("{total}:{}\n", lines.iter().filter(|line| !line.result.starts_with("PENDING")).count());
        print::text(&text)?;
    }
    Ok(Exit::OK)
}
