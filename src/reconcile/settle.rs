//! What becomes of an operation that was cut short: a record on its way, its lease free, against what was seen of its
//! pane (store contract, section 4). A server that could not be listed settles nothing.

use crate::record::{
    Desired, Facts, Liveness, Location, PaneId, ProcessId, Record, ServerEpoch, State, agent_liveness,
    is_epoch_over, is_lease_free,
};

/// How long a dead pane is given to take its stand-in's stamp, in seconds, besides twice the grace of its lease.
const STAMPING: u64 = 30;

/// What was seen of a record's pane, by a complete listing of the server of its epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneSight {
    /// The server could not be listed, is another life of it, or the record names none.
    Unknown,
    /// It is in no window: neither by stamp nor by id.
    Gone {
        /// Whether the record's window is still there.
        window_there: bool,
    },
    /// It is there.
    There(Pane),
}

/// A pane as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Its id.
    pub id: PaneId,
    /// Its process.
    pub process: ProcessId,
    /// Whether that process ended and tmux keeps the pane.
    pub dead: bool,
    /// Whether `@aitask_frozen` names the record.
    pub stamped: bool,
    /// Whether the viewer said that its first frame is up.
    pub ready: bool,
    /// Whether `@aitask_restore_attempt` names the record: a restore started what runs there.
    pub attempt: bool,
    /// The life of the server it is in, where that is another than the record's: a restore went to a new one.
    pub elsewhere: Option<ServerEpoch>,
}

impl Pane {
    fn location(&self) -> Location {
        Location::pane(self.id, self.process.clone())
    }

    fn is_viewer(&self) -> bool {
        self.stamped && self.ready && !self.dead
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settle {
    /// Nothing: the record rests.
    Rest,
    /// Nothing: another operation holds it.
    Held,
    /// Nothing: it could not be seen.
    Unknown,
    /// Not yet: what was seen may still change.
    Wait(&'static str),
    /// `freeze-commit` there.
    Commit(Location),
    /// Take the stamp off that pane, then `freeze-abort`.
    AbortFreeze(PaneId),
    /// Stamp that dead pane as the one the stand-in is to take; the next look finds it stamped.
    StampFrozen(PaneId),
    /// Respawn the stand-in in that pane, guarded, then `standin-respawned`.
    Respawn(PaneId),
    /// `restore-abort` with this reason, then bring the stand-in back.
    AbortRestore {
        /// Why, one word; empty if the record says it already.
        error: &'static str,
        /// How the stand-in comes back.
        then: Back,
    },
    /// `restore-launched` there: what a restore started before it could say so.
    Launched {
        /// Where.
        at: Location,
        /// The life of its server, where that is another than the record's.
        server: Option<ServerEpoch>,
    },
    /// `restore-confirm` there.
    Confirm(Location),
    /// `standin-respawned` there.
    StandInBack(Location),
    /// `drop`: it was under way, and its pane is closed.
    Forget,
    /// `lease-release`: what was begun on a frozen record changed nothing.
    Release,
}

/// How a stand-in comes back after a failed restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Back {
    /// By a guarded respawn of that pane.
    Respawn(PaneId),
    /// It is there, or there is no pane for it: only the record changes.
    At(Location),
}

/// Settles one record. `ack_grace`: how long a restored agent has for its acknowledgement, in seconds.
#[must_use]
pub fn settle(record: &Record, sight: &PaneSight, facts: &Facts<'_>, ack_grace: u64) -> Settle {
    if matches!(record.state, State::Live) {
        return Settle::Rest;
    }
    if !is_lease_free(record, facts) {
        return Settle::Held;
    }
    // An epoch that is over is a complete observation with no panes.
    let over = record.ait.server.as_ref().is_some_and(|server| is_epoch_over(server, facts));
    let gone = PaneSight::Gone { window_there: false };
    // A restore may have gone to the next life of the server.
    let elsewhere = matches!(sight, PaneSight::There(pane) if pane.attempt && pane.elsewhere.is_some());
    let sight = if over && !elsewhere { &gone } else { sight };
    let pane = match sight {
        PaneSight::Unknown => return Settle::Unknown,
        PaneSight::Gone { .. } => None,
        PaneSight::There(pane) => Some(pane),
    };
    match (&record.state, pane) {
        (State::Live, _) => Settle::Rest,
        (State::Frozen { .. }, pane) => settle_frozen(record, pane),
        (State::Freezing, None) => settle_unseated(record, facts),
        (State::Freezing, Some(pane)) => settle_freezing(record, pane, facts),
        (State::Restoring { .. }, None) => {
            let error = if says_why(record) { "" } else { "pane_gone" };
            Settle::AbortRestore { error, then: Back::At(Location::Gone) }
        }
        (State::Restoring { launch, .. }, Some(pane)) => {
            settle_restoring(record, *launch, pane, waited(record, facts) >= ack_grace, facts)
        }
        (State::Aborting { .. }, None) => Settle::StandInBack(Location::Gone),
        (State::Aborting { .. }, Some(pane)) if pane.is_viewer() => Settle::StandInBack(pane.location()),
        (State::Aborting { .. }, Some(pane)) => Settle::Respawn(pane.id),
    }
}

/// A lease that is free and still there has lost its owner: a drop that said so before it closed the pane is done to its end
/// once that is closed; before, nothing was changed.
fn settle_frozen(record: &Record, pane: Option<&Pane>) -> Settle {
    let stands = pane.filter(|pane| pane.stamped);
    let doomed = record.ait.desired == Some(Desired::Stopped);
    match stands {
        // a dead pane its record does not name shows its agent's last words, until it is brought back there
        Some(pane) if pane.dead && record.location.pane_id() == Some(pane.id) => Settle::Respawn(pane.id),
        _ if record.lease.is_none() => Settle::Rest,
        None if doomed => Settle::Forget,
        None | Some(_) => Settle::Release,
    }
}

/// An agent can outlive its pane and its server. One that runs is not frozen.
fn settle_unseated(record: &Record, facts: &Facts<'_>) -> Settle {
    let long = waited(record, facts) > facts.grace.saturating_mul(2);
    match (agent_liveness(record, facts), record.location.pane_id()) {
        (Liveness::Alive, Some(pane)) => Settle::AbortFreeze(pane),
        (Liveness::Unknown, Some(_)) if !long => Settle::Wait("agent_unknown"),
        (Liveness::Alive | Liveness::Unknown | Liveness::Gone, _) => Settle::Commit(Location::Gone),
    }
}

fn settle_freezing(record: &Record, pane: &Pane, facts: &Facts<'_>) -> Settle {
    // an agent that hears no HUP outlives its shell, and whatever its pane was given to since
    let lives = agent_liveness(record, facts);
    if lives == Liveness::Alive {
        return Settle::AbortFreeze(pane.id);
    }
    if pane.is_viewer() {
        return Settle::Commit(pane.location());
    }
    if pane.stamped && pane.dead {
        return Settle::Respawn(pane.id);
    }
    let same = record.location.process().is_some_and(|own| is_same(own, &pane.process));
    // the coordinator went between `freeze-begin` and the stamp, and then the agent did
    if pane.dead && record.location.pane_id() == Some(pane.id) {
        // one that never carried the record's own stamp takes no other: nothing waits for ever
        return if waited(record, facts) <= facts.grace.saturating_mul(2).saturating_add(STAMPING) {
            Settle::StampFrozen(pane.id)
        } else {
            Settle::Commit(Location::Gone)
        };
    }
    // Nothing waits for ever.
    if waited(record, facts) <= facts.grace.saturating_mul(2) {
        Settle::Wait("indeterminate")
    } else if pane.stamped && !(same && lives == Liveness::Unknown) {
        Settle::Respawn(pane.id)
    } else if same {
        // its shell lives, and the pane was never ours, or nobody can say that the agent is gone: what became of it is told of
        // a live record
        Settle::AbortFreeze(pane.id)
    } else {
        Settle::Commit(Location::Gone)
    }
}

fn settle_restoring(
    record: &Record,
    launch: Option<i32>,
    pane: &Pane,
    ack_is_due: bool,
    facts: &Facts<'_>,
) -> Settle {
    if says_why(record) {
        return Settle::AbortRestore { error: "", then: back_in(pane) };
    }
    if pane.dead {
        return Settle::AbortRestore { error: "agent_exited", then: Back::Respawn(pane.id) };
    }
    let is_stand_in =
        record.standin_pid != 0 && pane.process.pid == record.standin_pid && launch != Some(pane.process.pid);
    if is_stand_in || pane.is_viewer() {
        return Settle::AbortRestore { error: "not_launched", then: back_in(pane) };
    }
    if launch.is_none() && pane.attempt {
        return Settle::Launched { at: pane.location(), server: pane.elsewhere.clone() };
    }
    let launched = record.location.process().filter(|own| launch == Some(own.pid));
    // tmux has not heard of its end yet. One without a start was gone when the store looked at it; it may be told by then
    let is_gone =
        |own: &ProcessId| (facts.alive)(own) == Liveness::Gone || own.started.is_empty() && ack_is_due;
    if launched.is_some_and(|own| is_same(own, &pane.process) && is_gone(own)) {
        return Settle::AbortRestore { error: "agent_exited", then: Back::Respawn(pane.id) };
    }
    match (launched.is_some_and(|own| is_same(own, &pane.process)), ack_is_due) {
        (true, true) => Settle::Confirm(pane.location()),
        (true, false) => Settle::Wait("acknowledgement"),
        // Somebody else's process: the pane is not ours to touch.
        (false, true) => Settle::AbortRestore { error: "another_process", then: Back::At(Location::Gone) },
        (false, false) => Settle::Wait("another_process"),
    }
}

fn back_in(pane: &Pane) -> Back {
    if pane.is_viewer() { Back::At(pane.location()) } else { Back::Respawn(pane.id) }
}

/// Whether the last error is that of the present attempt.
fn says_why(record: &Record) -> bool {
    let Some(lease) = &record.lease else { return false };
    record.restore.last_error.strip_prefix(&lease.nonce.to_string()).is_some_and(|rest| rest.starts_with(':'))
}

fn is_same(a: &ProcessId, b: &ProcessId) -> bool {
    a.pid == b.pid && (a.started.is_empty() || b.started.is_empty() || a.started == b.started)
}

/// Seconds since the operation began, by the clock nobody can set where the lease knows it.
#[must_use]
pub fn waited(record: &Record, facts: &Facts<'_>) -> u64 {
    let lease = record.lease.as_ref();
    match lease.and_then(|lease| lease.since_boot.as_ref()) {
        Some(taken) if taken.boot_id == facts.boot_id => facts.since_boot.saturating_sub(taken.seconds),
        // An operation of another boot has waited long enough.
        Some(_) => u64::MAX,
        None => {
            let since = lease.map(|lease| lease.since).or(record.state_at);
            since.map_or(u64::MAX, |since| u64::try_from(facts.now.unix() - since.unix()).unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{World, sample};
    use crate::record::{Nonce, ServerEpoch, StateName};

    /// After the owner (pid 5) is gone and the grace is over; the agent of the sample is 41 in %1.
    fn run(record: &Record, sight: &PaneSight, gone: &[i32]) -> Settle {
        let gone: Vec<i32> = gone.iter().copied().chain([5]).collect();
        World { now: 165, ..World::new(&gone) }.with(|facts| settle(record, sight, facts, 20))
    }

    fn pane(pid: i32) -> Pane {
        Pane {
            id: PaneId(1),
            process: ProcessId::new(pid, format!("{pid}0")),
            dead: false,
            stamped: false,
            ready: false,
            attempt: false,
            elsewhere: None,
        }
    }

    fn there(pane: Pane) -> PaneSight {
        PaneSight::There(pane)
    }

    const GONE: PaneSight = PaneSight::Gone { window_there: true };

    #[test]
    fn what_cannot_be_seen_settles_nothing_and_what_is_held_is_left_alone() {
        for state in StateName::ALL {
            let expected = if state == StateName::Live { Settle::Rest } else { Settle::Unknown };
            assert_eq!(run(&sample(state), &PaneSight::Unknown, &[]), expected, "{state}");
        }
        let world = World { now: 165, ..World::new(&[]) };
        for state in [StateName::Freezing, StateName::Restoring, StateName::Aborting] {
            let held = world.with(|facts| settle(&sample(state), &GONE, facts, 20));
            assert_eq!(held, Settle::Held, "{state}: its owner lives");
        }
    }

    #[test]
    fn an_epoch_that_is_over_has_no_panes() {
        let stale = there(pane(41));
        assert_eq!(run(&sample(StateName::Freezing), &stale, &[7, 41]), Settle::Commit(Location::Gone));
        assert_eq!(run(&sample(StateName::Frozen), &stale, &[7]), Settle::Rest);
        assert_eq!(run(&sample(StateName::Aborting), &stale, &[7]), Settle::StandInBack(Location::Gone));
        let mut other_boot = sample(StateName::Freezing);
        other_boot.ait.server =
            other_boot.ait.server.map(|server| ServerEpoch { boot_id: "earlier".into(), ..server });
        assert_eq!(run(&other_boot, &PaneSight::Unknown, &[]), Settle::Commit(Location::Gone));
    }

    #[test]
    fn freezing() {
        let record = sample(StateName::Freezing);
        assert_eq!(run(&record, &GONE, &[41]), Settle::Commit(Location::Gone));
        assert_eq!(run(&record, &GONE, &[]), Settle::AbortFreeze(PaneId(1)), "it outlived its pane");
        let ready = Pane { stamped: true, ready: true, ..pane(50) };
        assert_eq!(run(&record, &there(ready.clone()), &[41]), Settle::Commit(ready.location()));
        let died_ready = Pane { dead: true, ..ready.clone() };
        for sight in [ready, died_ready.clone(), Pane { stamped: true, ..pane(99) }, pane(99)] {
            let settled = run(&record, &there(sight.clone()), &[]);
            assert_eq!(settled, Settle::AbortFreeze(PaneId(1)), "it outlived its shell: {sight:?}");
        }
        assert_eq!(
            run(&record, &there(died_ready), &[41]),
            Settle::Respawn(PaneId(1)),
            "a dead viewer shows nothing"
        );
        let dead = Pane { stamped: true, dead: true, ..pane(41) };
        assert_eq!(run(&record, &there(dead), &[41]), Settle::Respawn(PaneId(1)));
        let unstamped = Pane { dead: true, ..pane(41) };
        assert_eq!(run(&record, &there(unstamped), &[41]), Settle::StampFrozen(PaneId(1)));
        let agent = Pane { stamped: true, ..pane(41) };
        assert_eq!(run(&record, &there(agent), &[]), Settle::AbortFreeze(PaneId(1)));
        assert_eq!(run(&record, &there(pane(41)), &[]), Settle::AbortFreeze(PaneId(1)));
        let recycled = Pane { process: ProcessId::new(41, "later"), ..pane(41) };
        assert_eq!(run(&record, &there(recycled), &[41]), Settle::Wait("indeterminate"));
        let other = there(pane(99));
        assert_eq!(run(&record, &other, &[41]), Settle::Wait("indeterminate"));
        let long_after = World { now: 100 + 121, ..World::new(&[5, 41]) };
        let settled = |pane: Pane| long_after.with(|facts| settle(&record, &there(pane), facts, 20));
        assert_eq!(
            settled(Pane { stamped: true, ..pane(99) }),
            Settle::Respawn(PaneId(1)),
            "nothing waits for ever"
        );
        assert_eq!(settled(pane(99)), Settle::Commit(Location::Gone), "a stranger's pane");
        let unstamped = Pane { dead: true, ..pane(41) };
        assert_eq!(settled(unstamped.clone()), Settle::StampFrozen(PaneId(1)));
        let much_later = World { now: 100 + 121 + 30, ..World::new(&[5, 41]) };
        let settled = |pane: Pane| much_later.with(|facts| settle(&record, &there(pane), facts, 20));
        assert_eq!(settled(unstamped), Settle::Commit(Location::Gone), "it takes no stamp");
        assert_eq!(settled(pane(41)), Settle::AbortFreeze(PaneId(1)), "its shell");
    }

    #[test]
    fn frozen() {
        let record = sample(StateName::Frozen);
        assert_eq!(run(&record, &GONE, &[]), Settle::Rest);
        assert_eq!(run(&record, &there(Pane { stamped: true, ready: true, ..pane(50) }), &[]), Settle::Rest);
        assert_eq!(
            run(&record, &there(Pane { dead: true, ..pane(50) }), &[]),
            Settle::Rest,
            "not ours to respawn"
        );
        let dead = Pane { stamped: true, dead: true, ..pane(50) };
        assert_eq!(run(&record, &there(dead.clone()), &[]), Settle::Respawn(PaneId(1)));
        let crashed = Record { location: Location::Gone, ..record };
        assert_eq!(run(&crashed, &there(dead), &[]), Settle::Rest, "its record would not know of a stand-in");
    }

    #[test]
    fn a_drop_that_was_cut_short_is_done_once_its_pane_is_closed_and_else_given_up() {
        let mut record = sample(StateName::Frozen);
        record.lease = sample(StateName::Freezing).lease;
        let viewer = there(Pane { stamped: true, ready: true, ..pane(50) });
        let dead = there(Pane { stamped: true, dead: true, ..pane(50) });
        let other = there(pane(99));
        for sight in [&GONE, &viewer, &other] {
            assert_eq!(run(&record, sight, &[]), Settle::Release, "nothing was begun: {sight:?}");
        }
        record.ait.desired = Some(Desired::Stopped);
        assert_eq!(run(&record, &viewer, &[]), Settle::Release);
        assert_eq!(run(&record, &dead, &[]), Settle::Respawn(PaneId(1)));
        assert_eq!(run(&record, &GONE, &[]), Settle::Forget);
        assert_eq!(run(&record, &other, &[]), Settle::Forget, "its pane was given to something else");
        assert_eq!(run(&record, &PaneSight::Unknown, &[]), Settle::Unknown);
        let world = World { now: 165, ..World::new(&[]) };
        let held = world.with(|facts| settle(&record, &GONE, facts, 20));
        assert_eq!(held, Settle::Held, "its owner lives");
        record.lease = None;
        assert_eq!(run(&record, &GONE, &[]), Settle::Rest, "nobody was at it");
    }

    #[test]
    fn restoring() {
        let mut record = sample(StateName::Restoring);
        record.standin_pid = 50;
        let gone = Back::At(Location::Gone);
        assert_eq!(run(&record, &GONE, &[]), Settle::AbortRestore { error: "pane_gone", then: gone.clone() });
        let dead = Pane { stamped: true, dead: true, ..pane(41) };
        let respawn = Back::Respawn(PaneId(1));
        assert_eq!(
            run(&record, &there(dead), &[]),
            Settle::AbortRestore { error: "agent_exited", then: respawn.clone() }
        );
        let viewer = Pane { stamped: true, ready: true, ..pane(50) };
        let at = Back::At(viewer.location());
        assert_eq!(
            run(&record, &there(viewer), &[]),
            Settle::AbortRestore { error: "not_launched", then: at }
        );
        assert_eq!(run(&record, &there(pane(41)), &[]), Settle::Confirm(pane(41).location()));
        let exited = Settle::AbortRestore { error: "agent_exited", then: respawn.clone() };
        assert_eq!(run(&record, &there(pane(41)), &[41]), exited, "tmux does not say so yet");
        let unseen = Record { location: Location::pane(PaneId(1), ProcessId::bare(41)), ..record.clone() };
        let exited = Settle::AbortRestore { error: "agent_exited", then: respawn.clone() };
        assert_eq!(run(&unseen, &there(pane(41)), &[]), exited, "it was gone before its start could be read");
        let early = World { now: 119, ..World::new(&[5]) };
        // The lease of the sample is of second 100; free at once only for another reason: grace 0.
        let early = early.with(|facts| settle(&record, &there(pane(41)), &Facts { grace: 0, ..*facts }, 20));
        assert_eq!(early, Settle::Wait("acknowledgement"));
        let recycled = Pane { process: ProcessId::new(41, "later"), ..pane(41) };
        let other = Settle::AbortRestore { error: "another_process", then: gone };
        assert_eq!(run(&record, &there(recycled), &[]), other);
        assert_eq!(run(&record, &there(pane(99)), &[]), other);
        record.restore.last_error = format!("{}:session_mismatch", Nonce::from_bits(0xaaaa));
        assert_eq!(run(&record, &there(pane(41)), &[]), Settle::AbortRestore { error: "", then: respawn });
        record.restore.last_error = "0000bbbb:session_mismatch".into();
        assert_eq!(
            run(&record, &there(pane(41)), &[]),
            Settle::Confirm(pane(41).location()),
            "an older attempt's error"
        );
    }

    #[test]
    fn what_a_restore_started_before_it_could_say_so_counts_as_launched() {
        let mut record = sample(StateName::Restoring);
        if let State::Restoring { launch, .. } = &mut record.state {
            *launch = None;
        }
        let started = Pane { stamped: true, attempt: true, ..pane(99) };
        let launched = |pane: &Pane, server| Settle::Launched { at: pane.location(), server };
        assert_eq!(run(&record, &there(started.clone()), &[]), launched(&started, None));
        let dead = Pane { dead: true, ..started.clone() };
        let abort = Settle::AbortRestore { error: "agent_exited", then: Back::Respawn(PaneId(1)) };
        assert_eq!(run(&record, &there(dead), &[]), abort);
        let next = ServerEpoch { pid: 70, started: "700".into(), ..crate::record::testing::epoch() };
        let elsewhere = Pane { elsewhere: Some(next.clone()), ..started };
        let settled = run(&record, &there(elsewhere.clone()), &[7]);
        assert_eq!(settled, launched(&elsewhere, Some(next)), "the record's own server is gone");
    }

    #[test]
    fn aborting() {
        let record = sample(StateName::Aborting);
        assert_eq!(run(&record, &GONE, &[]), Settle::StandInBack(Location::Gone));
        let viewer = Pane { stamped: true, ready: true, ..pane(50) };
        assert_eq!(run(&record, &there(viewer.clone()), &[]), Settle::StandInBack(viewer.location()));
        assert_eq!(run(&record, &there(pane(41)), &[]), Settle::Respawn(PaneId(1)));
        assert_eq!(run(&record, &there(Pane { dead: true, ..viewer }), &[]), Settle::Respawn(PaneId(1)));
    }
}
