//! Restore: brings a frozen agent's own conversation back, and says how that is known.
//!
//! ```text
//! record → preflight → restore-begin → preflight again → launch → restore-launched → proof → live
//!   └── refused, nothing changed ──┘        └──── taken back: the stand-in returns ────┘
//! ```

mod stage;

use std::time::Duration;

use super::course::{Course, SERVER, STORE};
use super::launch::{Launch, Launched, RestoreOrder, Started};
use super::preflight::{self, Ready, Survivor, Verdict};
use super::proof::{Evidence, Finding, Named, Proof};
use super::told::{End, Outcome};
use super::{Act, Acted, Applied, Coordinator, Deed, Heard, PaneAct, ServerSight, Watching};
use crate::record::{
    self, Ack, Follow, Host, Location, Nonce, Ours, PaneId, ProcessId, Record, Refused, RestoreMode, State,
    Verb,
};
pub use stage::Birth;
use stage::{
    Back, Held, LOOKS, Running, STANDING, Seat, Stage, failed, holds, mismatch, stand_in, stopped, verified,
};

/// One restore.
#[derive(Debug)]
pub struct Restore {
    order: RestoreOrder,
    stage: Stage,
    course: Course,
    /// Launches that tmux refused.
    refused: usize,
    /// When the agent is new: what makes it live. A refused launch of it is final.
    fresh: Option<Birth>,
}

impl Restore {
    /// A restore that has done nothing yet.
    #[must_use]
    pub fn new(order: RestoreOrder) -> Self {
        Self { order, stage: Stage::Reading, course: Course::new(Act::Read), refused: 0, fresh: None }
    }

    /// The start of a new agent: its record was made under this lease, and nothing runs yet.
    #[must_use]
    pub fn start(
        order: RestoreOrder,
        record: Box<Record>,
        nonce: Nonce,
        argv: Vec<String>,
        birth: Birth,
    ) -> Self {
        let asked = Some(record.codeagent_session_id.clone()).filter(|id| !id.is_empty());
        let launch = Launch { nonce, argv, below_shell: false, session: order.session.clone() };
        Self {
            stage: Stage::Launching { held: Held { record, nonce }, asked },
            course: Course::new(Act::Launch(Box::new(launch))),
            fresh: Some(birth),
            ..Self::new(order)
        }
    }

    fn go(&mut self, stage: Stage, act: Act) {
        self.stage = stage;
        self.course.go(act);
    }

    fn apply(&mut self, stage: Stage, verb: Verb) {
        self.go(stage, Act::Apply(Box::new(verb)));
    }

    fn finish(&mut self, outcome: Outcome) {
        self.stage = Stage::Over;
        self.course.finish(outcome);
    }

    // -- before anything is written

    fn read(&mut self, record: Option<Box<Record>>) {
        let Some(record) = record else {
            let seen = format!("there is no record {}", self.order.task.record);
            return self.finish(Outcome::new(End::Refused, "no_record", seen));
        };
        // whether a lease that is there is free is the store's to say, at restore-begin
        if let Err(refused) = preflight::is_restorable(&record, true) {
            return self.finish(refused);
        }
        self.go(Stage::Checking(record), Act::Ready { mode: self.order.mode });
    }

    fn checked(&mut self, record: Box<Record>, ready: &Ready) {
        match preflight::judge(&record, self.order.mode, ready) {
            Verdict::No(outcome) => return self.finish(*outcome),
            Verdict::Go | Verdict::Adopt(_) => {}
        }
        if self.order.dry_run {
            let line = ready.argv.as_ref().map(|argv| argv.join(" ")).unwrap_or_default();
            return self.finish(Outcome::new(End::Planned, "would_restore", line));
        }
        if self.course.stop {
            return self.finish(stopped());
        }
        self.begin(record, 0);
    }

    fn begin(&mut self, record: Box<Record>, tries: usize) {
        let begin = Verb::RestoreBegin { owner: self.order.task.me.clone(), mode: self.order.mode };
        self.apply(Stage::Beginning { record, tries }, begin);
        self.course.tries = tries;
    }

    fn begun(&mut self, now: Duration, record: Box<Record>, applied: Applied) {
        match applied {
            Applied::Done(record::Outcome::Restoring(nonce)) => {
                self.course.tell("begun", "");
                self.go(Stage::Claimed(Held { record, nonce }), Act::Read);
            }
            Applied::Done(other) => {
                self.finish(Outcome::new(End::Failed, "store_failed", format!("{other:?}")));
            }
            Applied::Refused(Refused::LeaseHeld(_) | Refused::State { .. }) => {
                self.finish(Outcome::new(End::Refused, "lease_held", "another operation is at it"));
            }
            Applied::Refused(refused) => {
                self.finish(Outcome::new(End::Refused, "refused", refused.to_string()));
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Beginning { record, tries: self.course.tries };
                } else {
                    self.finish(Outcome::new(End::Failed, "store_failed", why));
                }
            }
        }
    }

    // -- under the lease, nothing started

    /// What was read before the lease may be of long ago: where it stands is the record's to say now.
    fn claimed(&mut self, held: Held, record: Option<Box<Record>>) {
        match record {
            Some(record) if holds(&record, held.nonce) => {
                self.go(Stage::Again(Held { record, ..held }), Act::Ready { mode: self.order.mode });
            }
            Some(_) | None => {
                self.finish(Outcome::new(End::Left, "taken_over", "another operation took it over"));
            }
        }
    }

    fn checked_again(&mut self, now: Duration, held: Held, ready: Box<Ready>) {
        let back = Back::Stays(held.record.location.clone());
        if self.course.stop {
            return self.undo(held, back, stopped());
        }
        match preflight::judge(&held.record, self.order.mode, &ready) {
            Verdict::No(mut outcome) => {
                outcome.end = End::Failed;
                self.undo(held, back, *outcome);
            }
            Verdict::Adopt(survivor) => self.adopt(now, held, *survivor, ready.session_id.clone()),
            Verdict::Go => self.file(held, ready),
        }
    }

    /// An agent of an earlier attempt, found by its pane: taken as launched.
    fn adopt(&mut self, now: Duration, held: Held, survivor: Survivor, asked: Option<String>) {
        let Some((pane, server, process)) = survivor.pane else { return };
        self.course.tell("found", format!("pane {pane}: an earlier attempt runs this conversation"));
        self.launched(now, held, asked, Box::new(Started { pane, process, server, around: None }));
    }

    /// The conversation is brought back where it is filed.
    fn file(&mut self, held: Held, ready: Box<Ready>) {
        let Some(folder) = ready.filed.clone().filter(|_| self.order.mode == RestoreMode::Resume) else {
            return self.launch(held, &ready);
        };
        self.course.tell("filed", folder.clone());
        let ours = Box::new(Ours { cwd: Some(folder), ..Ours::default() });
        let enrich = Verb::Enrich { at: held.record.location.clone(), ours, lost: None, replace: true };
        self.apply(Stage::Filing { held, ready }, enrich);
    }

    fn filed(&mut self, held: Held, ready: &Ready, applied: &Applied) {
        match applied {
            Applied::Done(_) if self.course.stop => {
                let back = Back::Stays(held.record.location.clone());
                self.undo(held, back, stopped());
            }
            Applied::Done(_) => self.launch(held, ready),
            Applied::Refused(_) | Applied::Failed(_) => {
                let back = Back::Stays(held.record.location.clone());
                self.undo(held, back, failed("store_failed", format!("{applied:?}")));
            }
        }
    }

    fn launch(&mut self, held: Held, ready: &Ready) {
        let launch = Launch {
            nonce: held.nonce,
            argv: ready.argv.clone().unwrap_or_default(),
            below_shell: matches!(held.record.ait.host, Some(Host::Shell { .. })),
            session: self.order.session.clone(),
        };
        let asked = ready.session_id.clone();
        self.go(Stage::Launching { held, asked }, Act::Launch(Box::new(launch)));
    }

    fn launch_ended(&mut self, now: Duration, held: Held, asked: Option<String>, launched: Launched) {
        match launched {
            Launched::Started(started) => self.launched(now, held, asked, started),
            // there may be no terminal or process to be had just now
            Launched::Not { word, .. }
                if word == "refused"
                    && self.fresh.is_none()
                    && !self.course.stop
                    && self.refused < SERVER.len() =>
            {
                self.course.due = Some(now + SERVER[self.refused]);
                self.refused += 1;
                self.stage = Stage::Refused(held);
            }
            Launched::Not { word, seen } => {
                let back = Back::Stays(held.record.location.clone());
                self.undo(held, back, failed(&word, seen));
            }
            Launched::Unknown(why) => self.go(Stage::Doubting { held, asked, why }, Act::Look),
        }
    }

    /// A launch nobody answered for: the pane's mark says whether it was done.
    fn doubted(
        &mut self,
        now: Duration,
        held: Held,
        asked: Option<String>,
        why: String,
        server: ServerSight,
    ) {
        let left = |why: String| Outcome::new(End::Left, "launch_unknown", why);
        let snapshot = match server {
            ServerSight::Listed(snapshot) => snapshot,
            ServerSight::Over | ServerSight::Unnamed => {
                // a new server may have been started; whoever lists it finds the mark
                return self.finish(left(why));
            }
            ServerSight::Unknown(_) if self.course.again(now, &SERVER) => {
                self.stage = Stage::Doubting { held, asked, why };
                return;
            }
            ServerSight::Unknown(why) => return self.finish(left(why)),
        };
        let mark = format!("{}:{}", held.record.id, held.nonce);
        let row = snapshot.panes.iter().find(|row| row.attempt == mark.as_str());
        match (row, row.and_then(|row| row.pid), &held.record.ait.server) {
            (Some(row), Some(pid), Some(server)) => {
                let started = Started {
                    pane: PaneId(row.id.0),
                    process: ProcessId::bare(pid),
                    server: server.clone(),
                    around: None,
                };
                self.launched(now, held, asked, Box::new(started));
            }
            // what was split off marks itself once it runs
            (None, ..) if self.course.again(now, &SERVER) => {
                self.stage = Stage::Doubting { held, asked, why }
            }
            (None, ..) => {
                let back = Back::Stays(held.record.location.clone());
                self.undo(held, back, failed("not_launched", why));
            }
            (Some(_), ..) => self.finish(left(why)),
        }
    }

    // -- started

    fn launched(&mut self, now: Duration, held: Held, asked: Option<String>, started: Box<Started>) {
        self.course.tell("launched", format!("pane {}, process {}", started.pane, started.process.pid));
        let running = Running {
            held,
            started,
            asked,
            since: now,
            looks: 0,
            looking: false,
            evidence: Evidence::default(),
            dialog: None,
            agent: None,
            told_standing: false,
        };
        self.record(running);
    }

    fn record(&mut self, running: Running) {
        let verb = Verb::RestoreLaunched {
            nonce: running.held.nonce,
            at: running.at(),
            server: Some(running.started.server.clone()),
            runtime_id: None,
        };
        self.apply(Stage::Recording { running }, verb);
    }

    fn recorded(&mut self, now: Duration, running: Running, applied: Applied) {
        match applied {
            Applied::Done(_) => {
                if let Some(around) = &running.started.around {
                    let follow = Follow {
                        session: Some(around.session.clone()),
                        window: Some(around.window.clone()),
                        window_id: Some(around.window_id),
                        window_index: Some(around.index),
                        ..Follow::new(running.started.pane, running.started.server.clone())
                    };
                    self.course.act(Act::Apply(Box::new(Verb::Follow(Box::new(follow)))));
                }
                self.course.act(Act::Watch(running.started.process.clone()));
                self.course.act(Act::Attend);
                self.go(Stage::Following(running), Act::Follow);
            }
            // its hook was faster: the record says so
            Applied::Refused(refused) => {
                let outcome = Outcome::new(End::Left, "store_failed", refused.to_string());
                self.go(Stage::Rereading { running, outcome: Box::new(outcome) }, Act::Read);
            }
            Applied::Failed(why) => {
                let tries = self.course.tries;
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Recording { running };
                } else {
                    // it runs and carries its mark: reconcile finds it
                    let seen = format!("{why} (after {tries} tries)");
                    self.finish(Outcome::new(End::Left, "store_failed", seen));
                }
            }
        }
    }

    fn following(&mut self, now: Duration, running: Running, record: Option<Box<Record>>) {
        if self.fresh == Some(Birth::Launched) {
            return self.confirm(running, None);
        }
        self.proving(now, running, record);
    }

    /// Every change of the record: a hook may have acknowledged, or found another conversation.
    fn proving(&mut self, now: Duration, mut running: Running, record: Option<Box<Record>>) {
        let Some(record) = record else {
            return self.finish(Outcome::new(End::Failed, "record_gone", "its record was dropped meanwhile"));
        };
        match &record.state {
            State::Live => {
                let outcome = verified(&record.restore.ack);
                return self.live(running, outcome);
            }
            State::Restoring { .. } if holds(&record, running.held.nonce) => {
                let error = format!("{}:session_mismatch", running.held.nonce);
                if record.restore.last_error.starts_with(&error) {
                    let other = record.ait.came_instead.as_deref();
                    let outcome = mismatch(running.asked.as_deref(), other);
                    return self.take_back(running, outcome);
                }
            }
            State::Restoring { .. } | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => {
                return self.finish(Outcome::new(End::Left, "taken_over", "another operation took it over"));
            }
        }
        if running.looks == 0 && !running.looking {
            running.looking = true;
            self.course.act(Act::Prove);
        }
        self.wait(now, running);
    }

    /// Waits for the next event or look.
    fn wait(&mut self, now: Duration, running: Running) {
        let spans = LOOKS.iter().map(|millis| Duration::from_millis(*millis));
        let next = spans
            .filter(|span| *span < self.order.grace)
            .chain([self.order.grace])
            .map(|span| running.since + span)
            .find(|at| *at > now);
        self.course.due = Some(next.unwrap_or(now + Duration::from_secs(1)));
        self.stage = Stage::Proving(running);
    }

    fn look(&mut self, now: Duration, mut running: Running) {
        if !running.looking {
            running.looking = true;
            self.course.act(Act::Prove);
        }
        self.wait(now, running);
    }

    fn proven(&mut self, now: Duration, mut running: Running, proof: &Proof) {
        running.looking = false;
        running.looks += 1;
        match running.evidence.judge(now, running.asked.as_deref(), proof) {
            Finding::Verified(named) => return self.confirm(running, Some(named)),
            Finding::Mismatch(other) => {
                let outcome = mismatch(running.asked.as_deref(), Some(&other));
                return self.take_back(running, outcome);
            }
            Finding::Exited { word, said } => return self.take_back(running, failed(&word, said)),
            Finding::Nothing => {}
        }
        // below a shell the pane's process outlives the agent
        match (&running.agent, &proof.agent) {
            (None, Some(agent)) => {
                running.agent = Some(agent.clone());
                if *agent != running.started.process {
                    self.course.act(Act::Watch(agent.clone()));
                }
            }
            (Some(_), None) if running.below_shell() => {
                return self.take_back(running, failed("agent_exited", proof.lines.join(" / ")));
            }
            (None | Some(_), _) => {}
        }
        if proof.dialog != running.dialog {
            running.dialog.clone_from(&proof.dialog);
            if let Some(dialog) = &running.dialog {
                self.course.tell("blocked", dialog.clone());
            }
        }
        let lived = now.saturating_sub(running.since);
        if !running.told_standing && (proof.up || lived >= STANDING) {
            running.told_standing = true;
            self.course.tell("standing", "");
        }
        if self.course.stop || lived >= self.order.grace || (self.fresh.is_some() && running.told_standing) {
            return self.confirm(running, None);
        }
        self.wait(now, running);
    }

    fn confirm(&mut self, running: Running, named: Option<Named>) {
        let agent = running.agent.clone().or_else(|| named.as_ref().map(|named| named.process.clone()));
        let verb = Verb::RestoreConfirm {
            nonce: running.held.nonce,
            at: running.at(),
            ack: named.as_ref().map_or(Ack::Liveness, |named| named.by),
            // in its own pane the pane's process is the agent
            agent: agent.filter(|_| running.below_shell()),
            session_id: named.as_ref().map(|named| named.session_id.clone()),
        };
        self.apply(Stage::Confirming { running, named }, verb);
    }

    fn confirmed(&mut self, now: Duration, running: Running, named: Option<Named>, applied: Applied) {
        match applied {
            Applied::Done(record::Outcome::SessionMismatch) => {
                let other = named.as_ref().map(|named| named.session_id.as_str());
                let outcome = mismatch(running.asked.as_deref(), other);
                self.take_back(running, outcome);
            }
            Applied::Done(_) => {
                let outcome = match (&named, &running.dialog) {
                    (Some(named), _) => verified(named.by.word()),
                    (None, Some(dialog)) => Outcome::new(
                        End::Done,
                        &format!("blocked:{dialog}"),
                        "it waits for an answer in its pane",
                    )
                    .hint("answer it there; its last screen is kept"),
                    (None, None) => {
                        Outcome::new(End::Done, "unverified", "it runs; nothing said which conversation")
                            .hint("its last screen is kept")
                    }
                };
                self.live(running, outcome);
            }
            Applied::Refused(refused) => {
                let outcome = Outcome::new(End::Left, "refused", refused.to_string());
                self.go(Stage::Rereading { running, outcome: Box::new(outcome) }, Act::Read);
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Confirming { running, named };
                } else {
                    self.finish(Outcome::new(End::Left, "store_failed", why));
                }
            }
        }
    }

    /// A verb was refused: the record may have come to rest without us.
    fn reread(&mut self, running: Running, outcome: Outcome, record: Option<Box<Record>>) {
        match record {
            Some(record) if record.state == State::Live => {
                let outcome = verified(&record.restore.ack);
                self.live(running, outcome);
            }
            // the process is gone, and nobody has said how
            Some(record) if holds(&record, running.held.nonce) => {
                self.take_back(running, failed("agent_exited", outcome.detail));
            }
            Some(_) | None => self.finish(outcome),
        }
    }

    fn live(&mut self, running: Running, outcome: Outcome) {
        self.go(Stage::Living { running, outcome: Box::new(outcome) }, Act::Read);
    }

    fn stamp(&mut self, running: &Running, outcome: Outcome) {
        let deed = Deed::StampRestored { release: running.below_shell() };
        let act = PaneAct { pane: running.started.pane, pid: Some(running.started.process.pid), deed };
        let before = running.held.record.location.pane_id().filter(|before| *before != act.pane);
        self.go(Stage::Stamping { outcome: Box::new(outcome), before }, Act::Pane(act));
    }

    fn stamped(&mut self, outcome: Box<Outcome>, before: Option<PaneId>, acted: &Acted) {
        match acted {
            Acted::Done | Acted::NotMet | Acted::NoServer => {}
            Acted::Refused(why) | Acted::Unknown(why) => {
                self.course.warn(format!("its pane's marks could not be put right: {why}"));
            }
        }
        let Some(pane) = before else { return self.finish(*outcome) };
        // it runs elsewhere, in a session that was asked for or where an earlier attempt left it
        let act = PaneAct { pane, pid: None, deed: Deed::KillStandin };
        self.go(Stage::Clearing(outcome), Act::Pane(act));
    }

    // -- back to the stand-in

    fn take_back(&mut self, running: Running, outcome: Outcome) {
        let seat = Seat { pane: running.started.pane, pid: running.started.process.pid };
        let back = Back::In(seat);
        self.undo(running.held, back, outcome);
    }

    fn undo(&mut self, held: Held, back: Back, outcome: Outcome) {
        let has_more = outcome.word.starts_with("agent_exited")
            || matches!(outcome.word.as_str(), "session_mismatch" | "refused");
        let error = if has_more && !outcome.detail.is_empty() {
            format!("{}: {}", outcome.word, outcome.detail)
        } else {
            outcome.word.clone()
        };
        let abort = Verb::RestoreAbort { nonce: held.nonce, error: error.clone() };
        self.apply(Stage::Undoing { held, back, outcome: Box::new(outcome), error }, abort);
    }

    fn undone(
        &mut self,
        now: Duration,
        held: Held,
        back: Back,
        outcome: Box<Outcome>,
        error: String,
        applied: Applied,
    ) {
        match (applied, back) {
            (Applied::Done(_), Back::Stays(at)) => self.close(held, at, outcome),
            (Applied::Done(_), Back::In(seat)) => {
                self.go(Stage::Returning { held, seat, outcome }, Act::Read);
            }
            (Applied::Refused(refused), _) => {
                let seen = format!("{}; the record could not be put back: {refused}", outcome.detail);
                self.finish(Outcome { end: End::Left, detail: seen, ..*outcome });
            }
            (Applied::Failed(why), back) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Undoing { held, back, outcome, error };
                } else {
                    let seen = format!("{}; the record could not be put back: {why}", outcome.detail);
                    self.finish(Outcome { end: End::Left, detail: seen, ..*outcome });
                }
            }
        }
    }

    fn stood(&mut self, now: Duration, held: Held, seat: Seat, outcome: Box<Outcome>, acted: &Acted) {
        match acted {
            // what was not met may be the server's life: one that cannot be looked at is not known to be without the pane
            Acted::Done | Acted::NotMet | Acted::Refused(_) => {
                let put = (*acted == Acted::Done).then_some(seat.pane);
                self.go(Stage::Finding { held, put, outcome }, Act::Look);
            }
            Acted::NoServer => self.close(held, Location::Gone, outcome),
            Acted::Unknown(_) if self.course.again(now, &SERVER) => {
                self.stage = Stage::Standing { held, seat, outcome };
            }
            Acted::Unknown(why) => {
                let seen = format!("{}; its stand-in may not be back: {why}", outcome.detail);
                self.finish(Outcome { end: End::Left, detail: seen, ..*outcome });
            }
        }
    }

    fn found(
        &mut self,
        now: Duration,
        held: Held,
        put: Option<PaneId>,
        outcome: Box<Outcome>,
        server: ServerSight,
    ) {
        let at = match server {
            ServerSight::Listed(snapshot) => stand_in(&snapshot.panes, held.record.id, put),
            ServerSight::Over | ServerSight::Unnamed => Location::Gone,
            ServerSight::Unknown(_) if self.course.again(now, &SERVER) => {
                self.stage = Stage::Finding { held, put, outcome };
                return;
            }
            ServerSight::Unknown(why) => {
                let seen = format!("{}; its stand-in was not seen: {why}", outcome.detail);
                return self.finish(Outcome { end: End::Left, detail: seen, ..*outcome });
            }
        };
        self.close(held, at, outcome);
    }

    fn close(&mut self, held: Held, at: Location, outcome: Box<Outcome>) {
        let verb = Verb::StandinRespawned { nonce: held.nonce, at: at.clone() };
        self.apply(Stage::Closing { held, at, outcome }, verb);
    }

    fn closed(&mut self, now: Duration, held: Held, at: Location, outcome: Box<Outcome>, applied: Applied) {
        match applied {
            Applied::Done(_) => self.finish(*outcome),
            Applied::Failed(_) if self.course.again(now, &STORE) => {
                self.stage = Stage::Closing { held, at, outcome }
            }
            Applied::Refused(_) | Applied::Failed(_) => self.finish(Outcome { end: End::Left, ..*outcome }),
        }
    }

    /// The deadline has come.
    fn tick(&mut self, now: Duration, stage: Stage) {
        match stage {
            Stage::Proving(running) => self.look(now, running),
            Stage::Refused(held) => self.go(Stage::Again(held), Act::Ready { mode: self.order.mode }),
            Stage::Beginning { record, tries } => self.begin(record, tries),
            Stage::Recording { running } => {
                let tries = self.course.tries;
                self.record(running);
                self.course.tries = tries;
            }
            Stage::Confirming { running, named } => {
                let tries = self.course.tries;
                self.confirm(running, named);
                self.course.tries = tries;
            }
            Stage::Doubting { held, asked, why } => {
                self.repeat(Stage::Doubting { held, asked, why }, Act::Look)
            }
            looks @ Stage::Finding { .. } => self.repeat(looks, Act::Look),
            Stage::Standing { held, seat, outcome } => {
                self.repeat(Stage::Standing { held, seat, outcome }, seat.stand_in());
            }
            Stage::Undoing { held, back, outcome, error } => {
                let abort = Verb::RestoreAbort { nonce: held.nonce, error: error.clone() };
                self.repeat(Stage::Undoing { held, back, outcome, error }, Act::Apply(Box::new(abort)));
            }
            Stage::Closing { held, at, outcome } => {
                let verb = Verb::StandinRespawned { nonce: held.nonce, at: at.clone() };
                self.repeat(Stage::Closing { held, at, outcome }, Act::Apply(Box::new(verb)));
            }
            other => self.stage = other,
        }
    }

    fn repeat(&mut self, stage: Stage, act: Act) {
        self.stage = stage;
        self.course.act(act);
    }

    fn stop(&mut self, now: Duration, stage: Stage) {
        self.course.stop = true;
        match stage {
            // it runs: what is known of it is written, and others need not wait
            Stage::Proving(running) => self.look(now, running),
            other => self.stage = other,
        }
    }
}

impl Coordinator for Restore {
    fn handle(&mut self, now: Duration, heard: Heard) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        match (stage, heard) {
            (stage, Heard::Time) => {
                if self.course.is_due(now) {
                    self.tick(now, stage);
                } else {
                    self.stage = stage;
                }
            }
            (stage, Heard::Stop) => self.stop(now, stage),
            (Stage::Reading, Heard::Record(record)) => self.read(record),
            (Stage::Reading, Heard::NoStore(why)) => {
                self.finish(Outcome::new(End::Failed, "store_failed", why));
            }
            (Stage::Checking(record), Heard::Ready(ready)) => self.checked(record, &ready),
            (Stage::Beginning { record, .. }, Heard::Applied(applied)) => self.begun(now, record, applied),
            (Stage::Claimed(held), Heard::Record(record)) => self.claimed(held, record),
            // it is begun, and nothing runs yet: reconcile takes it back
            (Stage::Claimed(_), Heard::NoStore(why)) => {
                self.finish(Outcome::new(End::Left, "store_failed", why));
            }
            (Stage::Again(held), Heard::Ready(ready)) => self.checked_again(now, held, ready),
            (Stage::Filing { held, ready }, Heard::Applied(applied)) => self.filed(held, &ready, &applied),
            (Stage::Launching { held, asked }, Heard::Launched(launched)) => {
                self.launch_ended(now, held, asked, launched);
            }
            (Stage::Doubting { held, asked, why }, Heard::Server(server)) => {
                self.doubted(now, held, asked, why, server);
            }
            (Stage::Recording { running }, Heard::Applied(applied)) => self.recorded(now, running, applied),
            (Stage::Following(running), Heard::Record(record)) => self.following(now, running, record),
            (Stage::Following(running), Heard::NoStore(_)) => self.look(now, running),
            (Stage::Proving(running), Heard::Record(record)) => self.proving(now, running, record),
            (Stage::Proving(running), Heard::Proof(proof)) => self.proven(now, running, &proof),
            (Stage::Proving(running), Heard::Died(_) | Heard::Touched) => self.look(now, running),
            (Stage::Proving(running), Heard::Watching { watch: Watching::Gone, .. }) => {
                self.look(now, running)
            }
            (Stage::Confirming { running, named }, Heard::Applied(applied)) => {
                self.confirmed(now, running, named, applied);
            }
            (Stage::Rereading { running, outcome }, Heard::Record(record)) => {
                self.reread(running, *outcome, record);
            }
            (Stage::Rereading { outcome, .. }, Heard::NoStore(_)) => self.finish(*outcome),
            (Stage::Living { running, outcome }, Heard::Record(_) | Heard::NoStore(_)) => {
                self.stamp(&running, *outcome);
            }
            (Stage::Stamping { outcome, before }, Heard::Acted(acted)) => {
                self.stamped(outcome, before, &acted);
            }
            // a pane that was given to something else stays
            (Stage::Clearing(outcome), Heard::Acted(_)) => self.finish(*outcome),
            (Stage::Undoing { held, back, outcome, error }, Heard::Applied(applied)) => {
                self.undone(now, held, back, outcome, error, applied);
            }
            (Stage::Returning { held, seat, outcome }, Heard::Record(_) | Heard::NoStore(_)) => {
                self.go(Stage::Standing { held, seat, outcome }, seat.stand_in());
            }
            (Stage::Standing { held, seat, outcome }, Heard::Acted(acted)) => {
                self.stood(now, held, seat, outcome, &acted);
            }
            (Stage::Finding { held, put, outcome }, Heard::Server(server)) => {
                self.found(now, held, put, outcome, server)
            }
            (Stage::Closing { held, at, outcome }, Heard::Applied(applied)) => {
                self.closed(now, held, at, outcome, applied);
            }
            // what was asked before the stage changed, or comes unasked
            (stage, _) => self.stage = stage,
        }
    }

    fn next_act(&mut self) -> Option<Act> {
        self.course.next()
    }

    fn deadline(&self) -> Option<Duration> {
        self.course.due
    }
}

#[cfg(test)]
mod tests;
