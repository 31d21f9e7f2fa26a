//! Many cuts at once, watched by one look at everything at a time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::cut::{Running, Steps};
use super::seen::{Seen, held};
use super::subject::{Operation, Subject, World};
use super::{At, Between, Cut, Few, How, Side, chosen, every, show};
use crate::support::DEADLINE;
use crate::support::wait::within_seldom;

/// Cuts that are under way at once.
const AT_ONCE: usize = 16;
/// Agents that are made ready at once.
const STARTERS: usize = 4;
/// How long a stopped coordinator is watched: longer than the grace of a lease whose owner is gone, and the pause between two
/// looks of the supervisor.
pub(super) const WATCHED: Duration = Duration::from_secs(4);
/// When a batch that has come to no end is given up.
const GIVEN_UP: Duration = DEADLINE.saturating_mul(3);

/// How far things were at the cut, by the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// The record's state; empty: it is forgotten.
    pub(super) state: String,
    /// Whether the agent that was to be frozen ran.
    pub(super) alive: bool,
    /// Whether it was to be forgotten, by its record.
    pub(super) doomed: bool,
}

#[derive(Debug)]
enum Phase {
    /// Waits for the cut.
    Begun,
    /// Watches that nothing moves.
    Stopped {
        since: Instant,
        held: Option<(String, String)>,
    },
    /// Waits for the command's end.
    Going,
    /// Waits for an end that may be.
    Settling,
    Ended(&'static str),
    /// It was over before.
    NotReached,
}

struct Case {
    cut: Cut,
    /// Whether there may be fewer steps this time.
    may_be_missed: bool,
    subject: Subject,
    running: Running,
    moment: Option<Moment>,
    phase: Phase,
}

/// What a cut may come to.
pub(super) type Allowed = fn(&Moment, Cut) -> Vec<&'static str>;

/// Counts the steps of an operation, cuts it at them, and prints what each came to.
#[track_caller]
pub(super) fn matrix(title: &str, operation: Operation, few: Few, allowed: Allowed) {
    let world = World::new();
    // the supervisor stays attached for it: it comes to no server in which windows are being made
    let _stays = Subject::start(&world, Operation::Freeze, "stays", false);
    world.supervisor.attached(&world.tmux);
    let steps = count(&world, operation);
    println!("{title}: {} calls to tmux, {} writes of the store", steps.calls.len(), steps.writes.len());
    let mut ends = BTreeMap::new();
    // who is stopped at a write holds the store's lock: nobody else is to wait for it
    let (locking, free): (Vec<Cut>, Vec<Cut>) = chosen(every(&steps.all()), few)
        .into_iter()
        .partition(|cut| matches!(cut.at, At::Write(..)) && cut.side == Side::After);
    for batch in free.chunks(AT_ONCE).chain(locking.chunks(1)) {
        cut(&world, operation, &steps, allowed, batch, &mut ends);
    }
    show(title, &ends);
}

/// The steps of an operation nobody cuts.
#[track_caller]
fn count(world: &World, operation: Operation) -> Steps {
    let subject = Subject::start(world, operation, "count", false);
    let folder = world.home.root().join("count");
    let mut running = Running::start(&world.home, &folder, &operation.words(&subject.id), None);
    crate::support::wait_until("the operation to end", DEADLINE, || running.ended().then_some(()));
    let steps = running.steps();
    assert!(!steps.calls.is_empty() && !steps.writes.is_empty(), "{operation:?}: {steps:#?}");
    subject.end(world);
    steps
}

#[track_caller]
fn cut(
    world: &World,
    operation: Operation,
    steps: &Steps,
    allowed: Allowed,
    batch: &[Cut],
    ends: &mut BTreeMap<Cut, &'static str>,
) {
    let begun = ends.len();
    let start = |(at, cut): (usize, &Cut)| {
        Subject::start(world, operation, &format!("w{}", begun + at), cut.between == Between::Server)
    };
    let numbered: Vec<(usize, &Cut)> = batch.iter().enumerate().collect();
    let share = numbered.len().div_ceil(STARTERS);
    let subjects: Vec<Subject> = std::thread::scope(|scope| {
        let start = &start;
        let starters: Vec<_> = numbered
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().copied().map(start).collect::<Vec<Subject>>()))
            .collect();
        starters.into_iter().flat_map(|starter| starter.join().unwrap()).collect()
    });
    let mut cases: Vec<Case> = subjects
        .into_iter()
        .zip(batch)
        .map(|(subject, cut)| {
            let folder = world.home.root().join(format!("cut-{}", subject.id));
            let running = Running::start(&world.home, &folder, &operation.words(&subject.id), Some(*cut));
            let may_be_missed = steps.may_be_missed(cut.at);
            Case { cut: *cut, may_be_missed, subject, running, moment: None, phase: Phase::Begun }
        })
        .collect();
    let look = |cases: &[Case]| Seen::look(world, cases.iter().map(|case| &case.subject));
    let done = within_seldom(GIVEN_UP, || {
        let seen = look(&cases);
        for case in &mut cases {
            case.go_on(world, &seen, allowed);
        }
        cases.iter().all(|case| case.is_over()).then_some(())
    });
    // it stays so
    let seen = look(&cases);
    let mut wrong = Vec::new();
    for case in &cases {
        let last = case.end(world, &seen);
        match case.phase {
            Phase::Ended(end) if last == Some(end) => drop(ends.insert(case.cut, end)),
            Phase::NotReached if last == Some(operation.done()) => {
                ends.insert(case.cut, "not reached");
            }
            _ => wrong.push(format!("{}: {last:?}, {}", case.cut, case.told(world, &seen, allowed))),
        }
    }
    if !wrong.is_empty() {
        show("so far", ends);
    }
    assert!(done.is_some() && wrong.is_empty(), "{operation:?}: {}", wrong.join("\n"));
    for case in cases {
        drop(case.running);
        case.subject.end(world);
    }
}

impl Case {
    fn go_on(&mut self, world: &World, seen: &Seen, allowed: Allowed) {
        let record = seen.record(&self.subject.id);
        match &self.phase {
            Phase::Begun => {
                if self.running.hit().is_none() {
                    let over = self.running.ended() && self.running.hit().is_none();
                    assert!(
                        !over || self.may_be_missed,
                        "{}: it ends before the cut\n{}",
                        self.cut,
                        self.told(world, seen, allowed)
                    );
                    if over {
                        self.phase = Phase::NotReached;
                    }
                    return;
                }
                // as it is now, not as it was when everything was looked at
                let record = world.home.record(&self.subject.id);
                let state = record.as_ref().and_then(|record| record["state"].as_str()).unwrap_or_default();
                self.moment = Some(Moment {
                    state: state.to_owned(),
                    alive: self.subject.process.alive(),
                    doomed: record.as_ref().is_some_and(|record| record["ait"]["desired"] == "stopped"),
                });
                self.subject.kill(world, self.cut);
                self.running.call_on();
                self.phase = match self.cut.how {
                    How::Kill => Phase::Going,
                    How::Stop | How::StopKill => {
                        Phase::Stopped { since: Instant::now(), held: held(record.as_ref()) }
                    }
                };
            }
            Phase::Stopped { since, held: before } => {
                // what is not under its lease is not its own
                let same = before.is_none() || held(record) == *before;
                assert!(same, "{}: moved while it was stopped: {before:?} {record:#?}", self.cut);
                if since.elapsed() > WATCHED {
                    self.running.let_go();
                    self.phase = Phase::Going;
                }
            }
            Phase::Going => {
                if self.running.ended() {
                    self.phase = Phase::Settling;
                }
            }
            Phase::Settling => {
                let end = self.end(world, seen);
                if let Some(end) = end.filter(|end| self.allowed(allowed).contains(end)) {
                    self.phase = Phase::Ended(end);
                }
            }
            Phase::Ended(_) | Phase::NotReached => {}
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_) | Phase::NotReached)
    }

    fn end(&self, world: &World, seen: &Seen) -> Option<&'static str> {
        let Subject { id, conversation, .. } = &self.subject;
        seen.end(id, conversation, self.subject.tmux(world).socket())
    }

    fn allowed(&self, allowed: Allowed) -> Vec<&'static str> {
        self.moment.as_ref().map(|moment| allowed(moment, self.cut)).unwrap_or_default()
    }

    fn told(&self, world: &World, seen: &Seen, allowed: Allowed) -> String {
        let Subject { id, conversation, .. } = &self.subject;
        let there = seen.told(id, conversation, self.subject.tmux(world).socket());
        let (moment, phase) = (&self.moment, &self.phase);
        let may_be = self.allowed(allowed);
        format!("{id} {moment:?}, {phase:?}, may be {may_be:?}\n{}\n{there}", self.running.told())
    }
}
