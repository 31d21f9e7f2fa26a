//! The one function that changes a record. Which verb is legal in which state is [`legal`], a total match; what a legal
//! verb does is below it. Nothing else in the program assigns a state.

use super::guard::{agent_liveness, claim, is_epoch_over, is_lease_free, is_other_boot, with_start};
use super::report::is_same;
use super::resolve::Place;
use super::{
    Ack, Bind, Capture, Captures, Change, Desired, Facts, Farewell, Follow, Host, Liveness, Location,
    LossCause, Lost, Nonce, Outcome, ProcessId, Record, RecordId, Recovered, Refused, RestoreMode, Restores,
    RetireReason, Stamp, State, StateName, Upsert, Verb, VerbName, launch_id,
};

/// What stands for a window's name that tmux left empty: the file's format has no empty name.
pub const UNNAMED: &str = "(unnamed)";

/// Applies a verb to a record (`None`: there is none of that id), with what is known. `place` says where a record that
/// is made or moved would stand. Order of the guards: record exists, state legal, nonce equal, lease free, evidence.
///
/// # Errors
/// [`Refused`]; then nothing changed.
pub fn apply(
    record: Option<Record>,
    verb: &Verb,
    facts: &Facts<'_>,
    place: &Place,
) -> Result<Change, Refused> {
    let Some(record) = record else {
        return match verb {
            Verb::Upsert(upsert) if upsert.restore_of.is_none() && upsert.id.is_none() => {
                Ok(create(upsert, facts, place))
            }
            Verb::Revive { archived, lost, capture } => {
                Ok(revive(archived, lost.as_deref(), capture.as_ref(), facts, place))
            }
            Verb::Upsert(_)
            | Verb::FreezeBegin { .. }
            | Verb::FreezeCommit { .. }
            | Verb::FreezeAbort { .. }
            | Verb::RestoreBegin { .. }
            | Verb::RestoreLaunched { .. }
            | Verb::RestoreConfirm { .. }
            | Verb::RestoreAbort { .. }
            | Verb::StandinRespawned { .. }
            | Verb::LeaseTake { .. }
            | Verb::LeaseRelease { .. }
            | Verb::Lose { .. }
            | Verb::End { .. }
            | Verb::Reboot { .. }
            | Verb::Retire { .. }
            | Verb::Drop { .. }
            | Verb::FillTask { .. }
            | Verb::Follow(_)
            | Verb::Enrich { .. }
            | Verb::Bind(_) => Err(Refused::NoSuchRecord(place.id)),
        };
    };
    if !legal(record.state.name(), verb) {
        return Err(Refused::State { id: record.id, state: record.state.name(), verb: verb.name() });
    }
    let mut record = record;
    let outcome = match verb {
        Verb::Upsert(upsert) => return take_upsert(record, upsert, facts, place),
        Verb::FreezeBegin { owner, capture, phase, memory } => {
            free_lease(&record, facts)?;
            let before = std::mem::replace(&mut record.capture, capture.clone());
            record.ait.capture_before = (!before.is_empty()).then_some(before);
            record.last_phase.clone_from(phase);
            record.ait.memory = *memory;
            record.ait.recovered = None;
            enter(&mut record, State::Freezing, facts.now);
            Outcome::Freezing(claim(&mut record, owner, facts))
        }
        Verb::FreezeCommit { nonce, at } => {
            held_by(&record, *nonce)?;
            record.location = with_start(at, facts);
            record.standin_pid = at.process().map_or(0, |p| p.pid);
            record.frozen_at = Some(facts.now);
            record.ait.agent = None;
            record.ait.capture_before = None;
            record.ait.desired = Some(Desired::Frozen);
            record.lease = None;
            enter(&mut record, State::Frozen { lost: None }, facts.now);
            Outcome::Frozen
        }
        Verb::FreezeAbort { nonce } => {
            held_by(&record, *nonce)?;
            record.lease = None;
            let before = record.ait.capture_before.take();
            let captures = if before.is_some() { Captures::Keep } else { Captures::Remove };
            record.capture = before.unwrap_or_default();
            enter(&mut record, State::Live, facts.now);
            return Ok(Change {
                record: Some(record),
                archive: None,
                captures,
                outcome: Outcome::Live(None),
            });
        }
        Verb::RestoreBegin { owner, mode } => {
            free_lease(&record, facts)?;
            let lost = record.state.lost().cloned().map(Box::new);
            record.restore.attempts = record.restore.attempts.saturating_add(1);
            record.restore = Restores { attempts: record.restore.attempts, ..Restores::default() };
            record.ait.came_instead = None;
            enter(&mut record, State::Restoring { mode: *mode, launch: None, lost }, facts.now);
            Outcome::Restoring(claim(&mut record, owner, facts))
        }
        Verb::RestoreLaunched { nonce, at, server, runtime_id } => {
            held_by(&record, *nonce)?;
            let Some(process) = at.process() else {
                return Err(no_evidence(&record, verb, "no_pane"));
            };
            if let State::Restoring { launch, .. } = &mut record.state {
                *launch = Some(process.pid);
            }
            record.location = with_start(at, facts);
            record.ait.agent = None;
            record.ait.server = server.clone().or(record.ait.server);
            // what is told of the launch before is not told of this one
            let fresh = record.ait.runtime_id.is_some().then(|| launch_id(record.id, *nonce));
            record.ait.runtime_id = runtime_id.clone().or(fresh);
            record.ait.generation = Some(record.ait.generation.unwrap_or(0) + 1);
            Outcome::Launched
        }
        Verb::RestoreConfirm { nonce, at, ack, agent, session_id } => {
            held_by(&record, *nonce)?;
            confirm_launch(&record, verb, at, facts)?;
            return confirm(record, *nonce, at, *ack, agent.as_ref(), session_id.as_deref(), facts);
        }
        Verb::RestoreAbort { nonce, error } => {
            held_by(&record, *nonce)?;
            if !error.is_empty() {
                record.restore.last_error = format!("{nonce}:{error}");
            }
            let lost = record.state.lost().cloned().map(Box::new);
            leave_restoring(&mut record);
            enter(&mut record, State::Aborting { lost }, facts.now);
            Outcome::Aborting
        }
        Verb::StandinRespawned { nonce, at } => {
            held_by(&record, *nonce)?;
            record.location = with_start(at, facts);
            record.standin_pid = at.process().map_or(0, |p| p.pid);
            match &record.state {
                // A freeze whose stand-in died is still in flight: its lease stays.
                State::Freezing => {}
                State::Aborting { lost } => {
                    let lost = lost.clone();
                    record.lease = None;
                    enter(&mut record, State::Frozen { lost }, facts.now);
                }
                State::Live | State::Frozen { .. } | State::Restoring { .. } => record.lease = None,
            }
            Outcome::StandIn
        }
        Verb::LeaseTake { owner } => {
            free_lease(&record, facts)?;
            Outcome::Leased(claim(&mut record, owner, facts))
        }
        Verb::LeaseRelease { nonce } => {
            held_by(&record, *nonce)?;
            record.lease = None;
            // a drop that is given up leaves it as it was
            if matches!(record.state, State::Frozen { .. }) && record.ait.desired == Some(Desired::Stopped) {
                record.ait.desired = Some(Desired::Frozen);
            }
            Outcome::Released
        }
        Verb::Lose { cause, evidence, exit_status, signal, checkpoint } => {
            prove_loss(&record, verb, facts)?;
            let lost = Lost {
                at: facts.now,
                cause: *cause,
                exit_status: *exit_status,
                signal: *signal,
                evidence: evidence.clone(),
                agent: record.agent_process().filter(|_| !is_past(&record, facts)),
                lived: record
                    .ait
                    .recovered
                    .and_then(|before| u64::try_from(facts.now.unix() - before.at.unix()).ok()),
                unknown: Default::default(),
            };
            if let Some(checkpoint) = checkpoint {
                record.capture = checkpoint.clone();
            }
            lay_to_rest(&mut record, Some(Box::new(lost)), facts.now);
            Outcome::Lost
        }
        Verb::End { reason, evidence, provisional } => {
            prove_end(&record, verb, facts)?;
            let mut change = Change::gone(reason, evidence, Captures::Keep, Outcome::Ended);
            if let Some(farewell) = &mut change.archive {
                farewell.provisional = *provisional;
            }
            return Ok(change);
        }
        Verb::Reboot { evidence } => {
            let past = is_past(&record, facts);
            let State::Frozen { lost: Some(lost) } = &mut record.state else {
                return Err(no_evidence(&record, verb, "not_lost"));
            };
            if !past || !matches!(lost.cause, LossCause::ServerStopped | LossCause::ServerGone) {
                return Err(no_evidence(&record, verb, "not_a_stop_of_an_earlier_boot"));
            }
            lost.cause = LossCause::Reboot;
            lost.agent = None;
            lost.evidence = format!("{evidence}; {}", lost.evidence);
            Outcome::Lost
        }
        Verb::Retire { reason, evidence } => {
            prove_retirement(&record, verb, *reason, facts)?;
            return Ok(Change::gone(reason.word(), evidence, Captures::Remove, Outcome::Retired(*reason)));
        }
        Verb::Revive { .. } => {
            return Err(Refused::State { id: record.id, state: record.state.name(), verb: VerbName::Revive });
        }
        Verb::Drop { nonce } => {
            if let Some(nonce) = nonce {
                held_by(&record, *nonce)?;
            }
            return Ok(Change::gone("dropped", "", Captures::Remove, Outcome::Dropped));
        }
        Verb::FillTask { operation, task_id } => {
            fill_blank(&mut record.operation, operation);
            fill_blank(&mut record.task_id, task_id);
            Outcome::Filled
        }
        Verb::Follow(follow) => {
            follow_pane(&mut record, verb, follow, facts, place)?;
            Outcome::Followed
        }
        Verb::Enrich { at, ours, lost, replace } => {
            same_process(&record, verb, at)?;
            let past = is_past(&record, facts);
            match &mut record.state {
                State::Frozen { lost: none @ None } => none.clone_from(lost),
                // its stand-in is in this boot now; the process it had was not
                State::Frozen { lost: Some(lost) } if past => lost.agent = None,
                State::Frozen { .. }
                | State::Live
                | State::Freezing
                | State::Restoring { .. }
                | State::Aborting { .. } => {}
            }
            if let (Location::Pane { process, .. }, Some(seen)) = (&mut record.location, at.process()) {
                fill_blank(&mut process.started, &seen.started);
            }
            record.ait.merge(ours, *replace);
            Outcome::Enriched
        }
        Verb::Bind(bind) => {
            take_conversation(&mut record, verb, bind)?;
            Outcome::Bound
        }
    };
    Ok(Change::kept(record, outcome))
}

/// Which verb may be applied in which state. `upsert` is legal everywhere here; which record it picks and whether that
/// one can be taken is told by its own guards.
#[must_use]
pub fn legal(state: StateName, verb: &Verb) -> bool {
    use StateName::{Aborting, Freezing, Frozen, Live, Restoring};
    match verb {
        Verb::Upsert(upsert) if upsert.restore_of.is_some() => match state {
            Restoring => true,
            Live | Freezing | Frozen | Aborting => false,
        },
        Verb::Upsert(_)
        | Verb::LeaseTake { .. }
        | Verb::LeaseRelease { .. }
        | Verb::Drop { .. }
        | Verb::FillTask { .. }
        | Verb::Follow(_)
        | Verb::Enrich { .. } => match state {
            Live | Freezing | Frozen | Restoring | Aborting => true,
        },
        Verb::FreezeBegin { .. } | Verb::Lose { .. } | Verb::End { .. } => match state {
            Live => true,
            Freezing | Frozen | Restoring | Aborting => false,
        },
        // what is being restored is told by its own acknowledgement
        Verb::Bind(_) => match state {
            Live | Freezing | Frozen => true,
            Restoring | Aborting => false,
        },
        Verb::FreezeCommit { .. } | Verb::FreezeAbort { .. } => match state {
            Freezing => true,
            Live | Frozen | Restoring | Aborting => false,
        },
        Verb::RestoreBegin { .. } | Verb::Reboot { .. } => match state {
            Frozen => true,
            Live | Freezing | Restoring | Aborting => false,
        },
        Verb::RestoreLaunched { .. } | Verb::RestoreConfirm { .. } | Verb::RestoreAbort { .. } => match state
        {
            Restoring => true,
            Live | Freezing | Frozen | Aborting => false,
        },
        Verb::StandinRespawned { .. } => match state {
            Freezing | Frozen | Aborting => true,
            Live | Restoring => false,
        },
        Verb::Retire { reason, .. } => match (reason, state) {
            (RetireReason::DeadWindow | RetireReason::DeadPane, Live)
            | (RetireReason::CaptureMissing, Frozen) => true,
            (RetireReason::DeadWindow | RetireReason::DeadPane, Freezing | Frozen | Restoring | Aborting)
            | (RetireReason::CaptureMissing, Live | Freezing | Restoring | Aborting) => false,
        },
        Verb::Revive { .. } => match state {
            Live | Freezing | Frozen | Restoring | Aborting => false,
        },
    }
}

impl Change {
    fn kept(record: Record, outcome: Outcome) -> Self {
        Self { record: Some(record), archive: None, captures: Captures::Keep, outcome }
    }

    fn gone(reason: &str, evidence: &str, captures: Captures, outcome: Outcome) -> Self {
        let archive =
            Farewell { reason: reason.to_owned(), evidence: evidence.to_owned(), provisional: false };
        Self { record: None, archive: Some(archive), captures, outcome }
    }
}

/// The only place a state is assigned.
fn enter(record: &mut Record, state: State, now: Stamp) {
    record.state = state;
    record.state_at = Some(now);
}

fn create(upsert: &Upsert, facts: &Facts<'_>, place: &Place) -> Change {
    let mut record = Record {
        id: place.id,
        root: upsert.root.clone(),
        window: name_of(&upsert.window).to_owned(),
        window_slot: place.slot,
        location: with_start(&upsert.at, facts),
        session: String::new(),
        operation: String::new(),
        task_id: String::new(),
        agent_string: String::new(),
        agent_kind: String::new(),
        codeagent_session_id: String::new(),
        transcript_path: String::new(),
        started_at: Some(facts.now),
        state_at: Some(facts.now),
        frozen_at: None,
        state: State::Live,
        lease: None,
        capture: Capture::default(),
        last_phase: String::new(),
        standin_pid: 0,
        restore: Restores::default(),
        ait: upsert.ours.clone(),
        unknown: Default::default(),
    };
    record.ait.generation = record.ait.generation.or(Some(1));
    describe(&mut record, upsert);
    let slot = (!place.alone).then_some(place.slot);
    Change::kept(record, Outcome::Created { slot, ambiguous: place.ambiguous })
}

fn take_upsert(
    mut record: Record,
    upsert: &Upsert,
    facts: &Facts<'_>,
    place: &Place,
) -> Result<Change, Refused> {
    if let Some((_, nonce)) = upsert.restore_of {
        return acknowledge(record, upsert, nonce, facts, place);
    }
    let refuse = |why| Err(Refused::Upsert { id: record.id, why });
    // told by somebody who looked before its agent was lost, or went on elsewhere
    let late = upsert.at.process().is_some_and(|process| (facts.alive)(process) == Liveness::Gone);
    match &record.state {
        State::Live if late && agent_liveness(&record, facts) == Liveness::Alive => refuse("process_gone"),
        State::Live => {
            move_to(&mut record, upsert, facts, place);
            describe(&mut record, upsert);
            Ok(Change::kept(record, Outcome::Updated))
        }
        State::Frozen { lost: Some(_) } if record.location == Location::Gone => {
            if !is_lease_free(&record, facts) {
                return refuse("frozen_leased");
            }
            if late {
                return refuse("process_gone");
            }
            record.lease = None;
            move_to(&mut record, upsert, facts, place);
            describe(&mut record, upsert);
            Ok(Change::kept(back_to_life(record, facts), Outcome::Rejoined))
        }
        State::Frozen { .. } => refuse("frozen"),
        State::Freezing => refuse("freezing_unacknowledged"),
        State::Restoring { .. } => refuse("restoring_unacknowledged"),
        State::Aborting { .. } => refuse("aborting_unacknowledged"),
    }
}

/// The hook of a restored agent hands back record, nonce and session id.
fn acknowledge(
    mut record: Record,
    upsert: &Upsert,
    nonce: Nonce,
    facts: &Facts<'_>,
    place: &Place,
) -> Result<Change, Refused> {
    held_by(&record, nonce)?;
    let mode = match &record.state {
        State::Restoring { mode, .. } => *mode,
        State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => {
            return Err(Refused::State { id: record.id, state: record.state.name(), verb: VerbName::Upsert });
        }
    };
    let captures = match mode {
        RestoreMode::Resume if upsert.session_id != record.codeagent_session_id => {
            record.restore.last_error = format!("{nonce}:session_mismatch");
            record.ait.came_instead = Some(upsert.session_id.clone());
            return Ok(Change::kept(record, Outcome::SessionMismatch));
        }
        RestoreMode::Resume => Captures::Remove,
        // A task picked anew does not prove that the old conversation came back.
        RestoreMode::Repick => Captures::Keep,
    };
    move_to(&mut record, upsert, facts, place);
    describe(&mut record, upsert);
    if captures == Captures::Remove {
        record.capture = Capture::default();
    }
    record.restore.ack = "hook".to_owned();
    record.restore.last_error = String::new();
    let record = back_to_life(record, facts);
    Ok(Change { record: Some(record), archive: None, captures, outcome: Outcome::Restored })
}

/// The launched process runs; the provider's own files may say which conversation it has.
fn confirm(
    mut record: Record,
    nonce: Nonce,
    at: &Location,
    ack: Ack,
    agent: Option<&ProcessId>,
    session_id: Option<&str>,
    facts: &Facts<'_>,
) -> Result<Change, Refused> {
    let mode = match &record.state {
        State::Restoring { mode, .. } => *mode,
        State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => RestoreMode::Resume,
    };
    let captures = match (ack, mode) {
        (Ack::Liveness, _) => Captures::Keep,
        (Ack::Registry | Ack::Rollout, RestoreMode::Resume) => {
            if session_id != Some(record.codeagent_session_id.as_str()) {
                record.restore.last_error = format!("{nonce}:session_mismatch");
                record.ait.came_instead = session_id.map(str::to_owned);
                return Ok(Change::kept(record, Outcome::SessionMismatch));
            }
            Captures::Remove
        }
        // A task picked anew does not prove that the old conversation came back.
        (Ack::Registry | Ack::Rollout, RestoreMode::Repick) => {
            replace_if_said(&mut record.codeagent_session_id, session_id.unwrap_or_default());
            Captures::Keep
        }
    };
    record.location = with_start(at, facts);
    record.ait.agent = agent.cloned();
    if captures == Captures::Remove {
        record.capture = Capture::default();
    }
    record.restore.ack = ack.word().to_owned();
    record.restore.last_error = String::new();
    let record = back_to_life(record, facts);
    Ok(Change { record: Some(record), archive: None, captures, outcome: Outcome::Live(Some(ack.word())) })
}

fn revive(
    archived: &Record,
    lost: Option<&Lost>,
    capture: Option<&Capture>,
    facts: &Facts<'_>,
    place: &Place,
) -> Change {
    let mut record = archived.clone();
    record.lease = None;
    record.window_slot = place.slot;
    if let Some(capture) = capture {
        record.capture = capture.clone();
    }
    leave_restoring(&mut record);
    lay_to_rest(&mut record, lost.cloned().map(Box::new), facts.now);
    Change::kept(record, Outcome::Revived)
}

/// Whether its server was of an earlier boot.
fn is_past(record: &Record, facts: &Facts<'_>) -> bool {
    record.ait.server.as_ref().is_some_and(|server| is_other_boot(server, facts))
}

/// Frozen without a stand-in. A lease, if any, stays its owner's.
fn lay_to_rest(record: &mut Record, lost: Option<Box<Lost>>, now: Stamp) {
    record.location = Location::Gone;
    record.standin_pid = 0;
    record.frozen_at = Some(now);
    record.ait.agent = None;
    record.ait.recovered = None;
    enter(record, State::Frozen { lost }, now);
}

/// Live again, whatever it was: no lease, no loss.
fn back_to_life(mut record: Record, facts: &Facts<'_>) -> Record {
    leave_restoring(&mut record);
    record.lease = None;
    let lost = record.state.lost().map(|lost| Recovered { at: facts.now, cause: lost.cause });
    record.ait.recovered = lost.or(record.ait.recovered);
    record.ait.desired = Some(Desired::Live);
    record.ait.session.iter_mut().for_each(|session| session.stopped_at = None);
    enter(&mut record, State::Live, facts.now);
    record
}

/// What the restore knew of itself goes to what restores left behind.
fn leave_restoring(record: &mut Record) {
    match record.state {
        State::Restoring { mode, launch, .. } => {
            record.restore.last_mode = Some(mode);
            record.restore.last_launch = launch.unwrap_or(0);
        }
        State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => {}
    }
}

/// Takes the place an upsert names: root, window, slot, pane, epoch.
fn move_to(record: &mut Record, upsert: &Upsert, facts: &Facts<'_>, place: &Place) {
    let window = name_of(&upsert.window);
    if record.root != upsert.root || record.window != window {
        record.root.clone_from(&upsert.root);
        record.window = window.to_owned();
        record.window_slot = place.slot;
    }
    let at = with_start(&upsert.at, facts);
    let stays = match (&record.location, &at) {
        (Location::Pane { pane: was, process: before }, Location::Pane { pane, process }) => {
            was == pane
                && before.pid == process.pid
                && (before.started.is_empty()
                    || process.started.is_empty()
                    || before.started == process.started)
        }
        (Location::Gone, Location::Gone) => true,
        (Location::Pane { .. }, Location::Gone) | (Location::Gone, Location::Pane { .. }) => false,
    };
    if !stays {
        // What was known of the old place says nothing of the new one.
        record.ait.agent = None;
        record.ait.host = None;
        record.ait.server = None;
        record.ait.title = None;
        record.ait.window_id = None;
        record.ait.window_index = None;
        record.ait.window_layout = None;
        if !matches!(record.state, State::Restoring { .. }) {
            record.ait.generation = Some(record.ait.generation.unwrap_or(0) + 1);
        }
    }
    let known = record.location.process().map(|p| p.started.clone()).filter(|_| stays).unwrap_or_default();
    record.location = at;
    if let Location::Pane { process, .. } = &mut record.location {
        fill_blank(&mut process.started, &known);
    }
    record.ait.merge(&upsert.ours, true);
}

/// Takes what an upsert says of the agent; blank is not supplied.
fn describe(record: &mut Record, upsert: &Upsert) {
    if upsert.clear_session_id {
        record.codeagent_session_id.clear();
        record.transcript_path.clear();
    }
    replace_if_said(&mut record.session, &upsert.session);
    replace_if_said(&mut record.codeagent_session_id, &upsert.session_id);
    replace_if_said(&mut record.transcript_path, &upsert.transcript);
    replace_if_said(&mut record.operation, &upsert.operation);
    replace_if_said(&mut record.task_id, &upsert.task_id);
    if !upsert.agent_string.is_empty() {
        record.agent_string.clone_from(&upsert.agent_string);
        record.agent_kind = upsert.agent_kind().to_owned();
    }
}

fn follow_pane(
    record: &mut Record,
    verb: &Verb,
    follow: &Follow,
    facts: &Facts<'_>,
    place: &Place,
) -> Result<(), Refused> {
    if record.location.pane_id() != Some(follow.pane) {
        return Err(no_evidence(record, verb, "other_pane"));
    }
    match &record.ait.server {
        None => return Err(no_evidence(record, verb, "no_epoch")),
        Some(server) if !server.is_same_life(&follow.server) => {
            return Err(no_evidence(record, verb, "other_epoch"));
        }
        Some(_) => {}
    }
    if let Some(window) = follow.window.as_deref().map(name_of)
        && window != record.window
    {
        record.window = window.to_owned();
        record.window_slot = place.slot;
    }
    if let Some(session) = &follow.session {
        replace_if_said(&mut record.session, session);
    }
    if let (Some(process), State::Frozen { .. }) = (&follow.standin, &record.state) {
        record.location = with_start(&Location::pane(follow.pane, process.clone()), facts);
        record.standin_pid = process.pid;
    }
    let ours = &mut record.ait;
    ours.window_id = follow.window_id.or(ours.window_id);
    ours.window_index = follow.window_index.or(ours.window_index);
    for (field, seen) in [
        (&mut ours.window_layout, &follow.window_layout),
        (&mut ours.title, &follow.title),
        (&mut ours.cwd, &follow.cwd),
    ] {
        if seen.is_some() {
            field.clone_from(seen);
        }
    }
    Ok(())
}

/// Conversations an agent had before that are remembered.
const EARLIER: usize = 16;

/// The agent's own word on its conversation. The one before is kept by its id.
fn take_conversation(record: &mut Record, verb: &Verb, bind: &Bind) -> Result<(), Refused> {
    let proven = match (record.agent_process(), &record.location) {
        (Some(agent), _) => bind.line.iter().any(|process| is_same(process, &agent)),
        (None, Location::Pane { process, .. }) => {
            let own = process.clone();
            bind.line.iter().any(|process| is_same(process, &own))
        }
        (None, Location::Gone) => record.ait.generation == bind.generation,
    };
    let frozen = matches!(record.state, State::Frozen { .. });
    let same_launch = frozen && record.ait.generation == bind.generation;
    if !(proven || same_launch) {
        return Err(no_evidence(record, verb, "other_process"));
    }
    if bind.instead_of.as_ref().is_some_and(|before| *before != record.codeagent_session_id) {
        return Err(no_evidence(record, verb, "other_conversation"));
    }
    if matches!(record.ait.host, Some(Host::Shell { .. })) && !frozen && record.ait.agent.is_none() {
        record.ait.agent = Some(bind.agent.clone());
    }
    if record.codeagent_session_id != bind.session_id {
        let before = std::mem::replace(&mut record.codeagent_session_id, bind.session_id.clone());
        record.transcript_path.clear();
        let earlier = record.ait.earlier.get_or_insert_default();
        earlier.retain(|id| *id != bind.session_id && *id != before);
        if !before.is_empty() {
            earlier.push(before);
        }
        let surplus = earlier.len().saturating_sub(EARLIER);
        earlier.drain(..surplus);
        if earlier.is_empty() {
            record.ait.earlier = None;
        }
    }
    replace_if_said(&mut record.transcript_path, &bind.transcript);
    Ok(())
}

/// The name a record gives a window.
pub(super) fn name_of(window: &str) -> &str {
    if window.is_empty() { UNNAMED } else { window }
}

fn replace_if_said(field: &mut String, said: &str) {
    if !said.is_empty() && field != said {
        said.clone_into(field);
    }
}

fn fill_blank(field: &mut String, said: &str) {
    if field.is_empty() {
        said.clone_into(field);
    }
}

fn held_by(record: &Record, nonce: Nonce) -> Result<(), Refused> {
    match &record.lease {
        Some(lease) if lease.nonce == nonce => Ok(()),
        Some(_) | None => Err(Refused::Nonce(record.id)),
    }
}

fn free_lease(record: &Record, facts: &Facts<'_>) -> Result<(), Refused> {
    if is_lease_free(record, facts) { Ok(()) } else { Err(Refused::LeaseHeld(record.id)) }
}

fn no_evidence(record: &Record, verb: &Verb, why: &'static str) -> Refused {
    refused_for(record.id, verb, why)
}

fn refused_for(id: RecordId, verb: &Verb, why: &'static str) -> Refused {
    Refused::NoEvidence { id, verb: verb.name(), why }
}

/// The process in the pane must be the one that was launched: same pid, same start, alive as far as anyone can tell.
fn confirm_launch(record: &Record, verb: &Verb, at: &Location, facts: &Facts<'_>) -> Result<(), Refused> {
    let launch = match &record.state {
        State::Restoring { launch, .. } => *launch,
        State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => None,
    };
    let (Some(launch), Some(seen)) = (launch, at.process()) else {
        return Err(no_evidence(record, verb, "not_launched"));
    };
    if launch != seen.pid {
        return Err(no_evidence(record, verb, "another_process"));
    }
    let started = record.location.process().map(|p| p.started.as_str()).unwrap_or_default();
    let seen = with_start(at, facts);
    let same =
        seen.process().is_some_and(|p| started.is_empty() || p.started.is_empty() || p.started == started);
    if !same {
        return Err(no_evidence(record, verb, "another_process"));
    }
    match seen.process().map(facts.alive) {
        Some(Liveness::Gone) | None => Err(no_evidence(record, verb, "process_gone")),
        Some(Liveness::Alive | Liveness::Unknown) => Ok(()),
    }
}

fn same_process(record: &Record, verb: &Verb, at: &Location) -> Result<(), Refused> {
    let same = match (&record.location, at) {
        (Location::Gone, Location::Gone) => true,
        (Location::Pane { pane: was, process: before }, Location::Pane { pane, process }) => {
            was == pane
                && before.pid == process.pid
                && (before.started.is_empty()
                    || process.started.is_empty()
                    || before.started == process.started)
        }
        (Location::Pane { .. }, Location::Gone) | (Location::Gone, Location::Pane { .. }) => false,
    };
    if same { Ok(()) } else { Err(no_evidence(record, verb, "other_process")) }
}

fn prove_loss(record: &Record, verb: &Verb, facts: &Facts<'_>) -> Result<(), Refused> {
    let Some(server) = &record.ait.server else {
        return Err(no_evidence(record, verb, "no_epoch"));
    };
    if is_epoch_over(server, facts) || agent_liveness(record, facts) == Liveness::Gone {
        return Ok(());
    }
    Err(no_evidence(record, verb, "not_proven"))
}

fn prove_end(record: &Record, verb: &Verb, facts: &Facts<'_>) -> Result<(), Refused> {
    let Some(server) = &record.ait.server else {
        return Err(no_evidence(record, verb, "no_epoch"));
    };
    if is_epoch_over(server, facts) {
        return Err(no_evidence(record, verb, "epoch_over"));
    }
    match agent_liveness(record, facts) {
        Liveness::Gone => Ok(()),
        Liveness::Alive => Err(no_evidence(record, verb, "agent_alive")),
        Liveness::Unknown => Err(no_evidence(record, verb, "agent_unknown")),
    }
}

fn prove_retirement(
    record: &Record,
    verb: &Verb,
    reason: RetireReason,
    facts: &Facts<'_>,
) -> Result<(), Refused> {
    match reason {
        RetireReason::DeadWindow | RetireReason::DeadPane => prove_end(record, verb, facts),
        RetireReason::CaptureMissing if record.ait.server.is_none() => {
            Err(no_evidence(record, verb, "no_epoch"))
        }
        RetireReason::CaptureMissing if record.state.lost().is_some() => {
            Err(no_evidence(record, verb, "lost"))
        }
        RetireReason::CaptureMissing if !is_lease_free(record, facts) => Err(Refused::LeaseHeld(record.id)),
        RetireReason::CaptureMissing => Ok(()),
    }
}
