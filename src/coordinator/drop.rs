//! Drop: closes a frozen agent's stand-in and forgets the record; the archive keeps the conversation's id.
//!
//! ```text
//! record → lease → record again → server, survivors → said on the record → stand-in or dead pane closed → verified gone
//!   → drop
//!                                 → server over: what stands in for it elsewhere closed → drop
//! ```

use std::time::Duration;

use super::course::{Course, SERVER, STORE};
use super::told::{End, Outcome};
use super::{Act, Acted, Applied, Coordinator, Deed, Heard, PaneAct, ServerSight, Task};
use crate::record::{self, Desired, Location, Nonce, Ours, PaneId, Record, Refused, State, Verb};
use crate::world::rows::{PaneRow, Snapshot};

/// One drop. A live agent is frozen first, by [`super::Freeze`].
#[derive(Debug)]
pub struct Drop {
    task: Task,
    /// Where the record says that its stand-in is.
    at: Location,
    stage: Stage,
    course: Course,
    /// A pane with the stand-in's stamp in which something else lives: it is left alone.
    strange: Option<(PaneId, Option<i32>)>,
}

#[derive(Debug)]
enum Stage {
    Reading,
    /// Waits for the lease.
    Leasing,
    /// Waits for the record as it is under the lease: its server may be another by now.
    Claimed(Nonce),
    /// Waits for the listing that shows stand-in and survivors.
    Looking {
        nonce: Nonce,
        killed: bool,
    },
    /// Waits until the record says that it is to be forgotten: should we end behind the next act, the rest is done for us.
    Dooming {
        nonce: Nonce,
        closing: PaneAct,
    },
    /// Waits for the pane to be closed.
    Closing {
        nonce: Nonce,
        pane: PaneId,
        pid: Option<i32>,
    },
    /// Waits for what stands in for it on another server than its own, which is over.
    Clearing(Nonce),
    /// Waits for `drop`.
    Dropping(Nonce),
    /// Waits for `lease-release`.
    Releasing {
        nonce: Nonce,
        outcome: Outcome,
    },
    Over,
}

impl Drop {
    /// A drop that has done nothing yet.
    #[must_use]
    pub fn new(task: Task) -> Self {
        Self {
            task,
            at: Location::Gone,
            stage: Stage::Reading,
            course: Course::new(Act::Read),
            strange: None,
        }
    }

    fn go(&mut self, stage: Stage, act: Act) {
        self.stage = stage;
        self.course.go(act);
    }

    fn finish(&mut self, outcome: Outcome) {
        self.stage = Stage::Over;
        self.course.finish(outcome);
    }

    fn read(&mut self, record: Option<Box<Record>>) {
        let Some(record) = record else {
            let seen = format!("there is no record {}", self.task.record);
            return self.finish(Outcome::new(End::Refused, "no_record", seen));
        };
        match &record.state {
            State::Frozen { .. } => {}
            State::Live => {
                let refused = Outcome::new(End::Refused, "live", "its agent runs");
                return self.finish(refused.hint("--force ends it first; `ait freeze` keeps it"));
            }
            State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                let seen = format!("another operation is at it ({})", record.state.name());
                return self.finish(Outcome::new(End::Refused, "lease_held", seen));
            }
        }
        self.stage = Stage::Leasing;
        self.lease();
    }

    fn lease(&mut self) {
        let take = Verb::LeaseTake { owner: self.task.me.clone() };
        self.course.act(Act::Apply(Box::new(take)));
    }

    fn leased(&mut self, now: Duration, applied: Applied) {
        match applied {
            Applied::Done(record::Outcome::Leased(nonce)) => {
                self.go(Stage::Claimed(nonce), Act::Read);
            }
            Applied::Done(other) => {
                self.finish(Outcome::new(End::Failed, "store_failed", format!("{other:?}")));
            }
            Applied::Refused(Refused::LeaseHeld(_)) => {
                self.finish(Outcome::new(End::Refused, "lease_held", "another operation is at it"));
            }
            Applied::Refused(refused) => {
                self.finish(Outcome::new(End::Refused, "refused", refused.to_string()));
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Leasing;
                } else {
                    self.finish(Outcome::new(End::Failed, "store_failed", why));
                }
            }
        }
    }

    fn looked(&mut self, now: Duration, nonce: Nonce, killed: bool, server: ServerSight) {
        if self.course.stop {
            return self.release(nonce, Outcome::new(End::Failed, "stopped", "it was told to stop"));
        }
        let snapshot = match server {
            ServerSight::Listed(snapshot) => snapshot,
            ServerSight::Over => return self.go(Stage::Clearing(nonce), Act::Clear),
            ServerSight::Unnamed => return self.forget(nonce),
            ServerSight::Unknown(why) => {
                return if self.course.again(now, &SERVER) {
                    self.stage = Stage::Looking { nonce, killed };
                } else {
                    self.release(nonce, Outcome::new(End::Failed, "server_unknown", why))
                };
            }
        };
        if let Some(survivor) = self.survivor(&snapshot) {
            let seen = format!("pane {} may still run its agent", survivor.id);
            let hint = "look at that pane; end what runs in it, then drop again";
            let word = format!("survivor:{}", survivor.id);
            return self.release(nonce, Outcome::new(End::Refused, &word, seen).hint(hint));
        }
        let id = self.task.record.to_string();
        let left = |row: &&PaneRow| self.strange != Some((PaneId(row.id.0), row.pid)) || row.dead;
        // its stand-in, or what a crash left of its agent
        let its = |row: &&PaneRow| row.frozen == id.as_str() || (row.dead && row.stamp == id.as_str());
        match snapshot.panes.iter().filter(left).find(its) {
            None => self.forget(nonce),
            Some(row) if killed => {
                if self.course.again(now, &SERVER) {
                    self.stage = Stage::Looking { nonce, killed };
                } else {
                    let seen = format!("pane {} is still there", row.id);
                    self.release(nonce, Outcome::new(End::Failed, "pane_stays", seen));
                }
            }
            Some(row) => {
                let (pane, pid) = (PaneId(row.id.0), row.pid);
                let deed = if row.frozen == id.as_str() { Deed::KillStandin } else { Deed::KillDead };
                self.doom(nonce, PaneAct { pane, pid, deed });
            }
        }
    }

    /// A pane in which a restore was begun that nobody tracks, or that carries the record's stamp and runs something else than
    /// the stand-in.
    fn survivor<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a PaneRow> {
        let id = self.task.record.to_string();
        let attempt = format!("{id}:");
        snapshot.panes.iter().find(|row| {
            !row.dead
                && row.frozen != id.as_str()
                && (row.attempt.starts_with(attempt.as_bytes()) || row.stamp == id.as_str())
        })
    }

    fn doom(&mut self, nonce: Nonce, closing: PaneAct) {
        let said = self.said();
        self.go(Stage::Dooming { nonce, closing }, said);
    }

    /// Writes on the record that it is to be forgotten.
    fn said(&self) -> Act {
        let at = self.at.clone();
        let ours = Box::new(Ours { desired: Some(Desired::Stopped), ..Ours::default() });
        Act::Apply(Box::new(Verb::Enrich { at, ours, lost: None, replace: true }))
    }

    fn doomed(&mut self, now: Duration, nonce: Nonce, closing: PaneAct, applied: Applied) {
        match applied {
            Applied::Done(_) => {
                let PaneAct { pane, pid, .. } = closing;
                self.go(Stage::Closing { nonce, pane, pid }, Act::Pane(closing));
            }
            Applied::Refused(refused) => {
                self.release(nonce, Outcome::new(End::Failed, "refused", refused.to_string()));
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Dooming { nonce, closing };
                } else {
                    self.release(nonce, Outcome::new(End::Failed, "store_failed", why));
                }
            }
        }
    }

    fn closed(&mut self, now: Duration, nonce: Nonce, seat: (PaneId, Option<i32>), acted: Acted) {
        let (pane, _) = seat;
        match acted {
            Acted::Done => {
                self.course.tell("closed", pane.to_string());
                self.go(Stage::Looking { nonce, killed: true }, Act::Look);
            }
            // it changed under our hands, or it is not the stand-in that lives there: look again, from the beginning
            Acted::NotMet if self.strange != Some(seat) => {
                self.strange = Some(seat);
                self.go(Stage::Looking { nonce, killed: false }, Act::Look);
            }
            Acted::NotMet | Acted::Refused(_) | Acted::NoServer | Acted::Unknown(_) => {
                if self.course.again(now, &SERVER) {
                    self.stage = Stage::Looking { nonce, killed: false };
                } else {
                    let outcome = Outcome::new(End::Failed, "pane_stays", format!("{acted:?}"));
                    self.release(nonce, outcome);
                }
            }
        }
    }

    fn cleared(&mut self, now: Duration, nonce: Nonce, acted: Acted) {
        match acted {
            Acted::Done | Acted::NoServer => self.forget(nonce),
            Acted::NotMet | Acted::Refused(_) | Acted::Unknown(_) => {
                if self.course.again(now, &SERVER) {
                    self.stage = Stage::Clearing(nonce);
                } else {
                    self.release(nonce, Outcome::new(End::Failed, "server_unknown", format!("{acted:?}")));
                }
            }
        }
    }

    fn forget(&mut self, nonce: Nonce) {
        self.go(Stage::Dropping(nonce), Act::Apply(Box::new(Verb::Drop { nonce: Some(nonce) })));
    }

    fn release(&mut self, nonce: Nonce, outcome: Outcome) {
        self.go(Stage::Releasing { nonce, outcome }, Act::Apply(Box::new(Verb::LeaseRelease { nonce })));
    }

    fn dropped(&mut self, now: Duration, nonce: Nonce, applied: Applied) {
        match applied {
            Applied::Done(_) => {
                let left = self.strange.map(|(pane, _)| format!("pane {pane} runs something else and stays"));
                self.finish(Outcome::new(End::Done, "dropped", left.unwrap_or_default()));
            }
            Applied::Refused(refused) => {
                self.finish(Outcome::new(End::Failed, "refused", refused.to_string()));
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Dropping(nonce);
                } else {
                    self.finish(Outcome::new(End::Left, "store_failed", why));
                }
            }
        }
    }

    fn released(&mut self, now: Duration, nonce: Nonce, outcome: Outcome, applied: Applied) {
        if matches!(applied, Applied::Failed(_)) && self.course.again(now, &STORE) {
            self.stage = Stage::Releasing { nonce, outcome };
        } else {
            // what could not be given back is free once we are gone and the grace is over
            self.finish(outcome);
        }
    }

    fn overdue(&mut self) {
        match &self.stage {
            Stage::Looking { .. } => self.course.act(Act::Look),
            Stage::Clearing(_) => self.course.act(Act::Clear),
            Stage::Dropping(nonce) => {
                self.course.act(Act::Apply(Box::new(Verb::Drop { nonce: Some(*nonce) })));
            }
            Stage::Releasing { nonce, .. } => {
                self.course.act(Act::Apply(Box::new(Verb::LeaseRelease { nonce: *nonce })));
            }
            Stage::Leasing => self.lease(),
            Stage::Dooming { .. } => {
                let said = self.said();
                self.course.act(said);
            }
            Stage::Reading | Stage::Claimed(_) | Stage::Closing { .. } | Stage::Over => {}
        }
    }
}

impl Coordinator for Drop {
    fn handle(&mut self, now: Duration, heard: Heard) {
        match heard {
            Heard::Stop => {
                self.course.stop = true;
                return;
            }
            Heard::Time => {
                if self.course.is_due(now) {
                    self.overdue();
                }
                return;
            }
            Heard::NoStore(why) => {
                let failed = Outcome::new(End::Failed, "store_failed", why);
                return match self.stage {
                    Stage::Reading => self.finish(failed),
                    Stage::Claimed(nonce) => self.release(nonce, failed),
                    Stage::Leasing
                    | Stage::Dooming { .. }
                    | Stage::Looking { .. }
                    | Stage::Closing { .. }
                    | Stage::Clearing(_)
                    | Stage::Dropping(_)
                    | Stage::Releasing { .. }
                    | Stage::Over => {}
                };
            }
            Heard::Record(_)
            | Heard::Applied(_)
            | Heard::Server(_)
            | Heard::Family(_)
            | Heard::Sight(_)
            | Heard::Conversation(_)
            | Heard::Captured(_)
            | Heard::Acted(_)
            | Heard::Watching { .. }
            | Heard::Died(_)
            | Heard::Signalled(_)
            | Heard::Ready(_)
            | Heard::Launched(_)
            | Heard::Touched
            | Heard::Proof(_) => {}
        }
        match (std::mem::replace(&mut self.stage, Stage::Over), heard) {
            (Stage::Reading, Heard::Record(record)) => self.read(record),
            (Stage::Leasing, Heard::Applied(applied)) => self.leased(now, applied),
            (Stage::Claimed(nonce), Heard::Record(record)) => {
                self.at = record.map_or(Location::Gone, |record| record.location);
                self.go(Stage::Looking { nonce, killed: false }, Act::Look);
            }
            (Stage::Looking { nonce, killed }, Heard::Server(server)) => {
                self.looked(now, nonce, killed, server)
            }
            (Stage::Dooming { nonce, closing }, Heard::Applied(applied)) => {
                self.doomed(now, nonce, closing, applied)
            }
            (Stage::Closing { nonce, pane, pid }, Heard::Acted(acted)) => {
                self.closed(now, nonce, (pane, pid), acted);
            }
            (Stage::Clearing(nonce), Heard::Acted(acted)) => self.cleared(now, nonce, acted),
            (Stage::Dropping(nonce), Heard::Applied(applied)) => self.dropped(now, nonce, applied),
            (Stage::Releasing { nonce, outcome }, Heard::Applied(applied)) => {
                self.released(now, nonce, outcome, applied);
            }
            // an answer nobody waits for any more
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
mod tests {
    use super::*;
    use crate::record::ProcessId;
    use crate::record::StateName;
    use crate::record::testing::sample;

    #[test]
    fn the_server_that_is_looked_at_is_that_of_the_record_under_the_lease() {
        let record = sample(StateName::Frozen);
        let nonce = Nonce::from_bits(0xaaaa);
        let mut drop = Drop::new(Task { record: record.id, me: ProcessId::new(5, "50") });
        assert_eq!(drop.next_act(), Some(Act::Read));
        drop.handle(Duration::ZERO, Heard::Record(Some(Box::new(record.clone()))));
        assert!(matches!(drop.next_act(), Some(Act::Apply(_))));
        drop.handle(Duration::ZERO, Heard::Applied(Applied::Done(record::Outcome::Leased(nonce))));
        assert_eq!(drop.next_act(), Some(Act::Read), "a recovery may have placed it meanwhile");
        drop.handle(Duration::ZERO, Heard::Record(Some(Box::new(record))));
        assert_eq!(drop.next_act(), Some(Act::Look));
    }

    #[test]
    fn where_its_server_is_over_it_is_forgotten_once_nothing_stands_in_for_it() {
        let record = sample(StateName::Frozen);
        let nonce = Nonce::from_bits(0xaaaa);
        let mut drop = Drop::new(Task { record: record.id, me: ProcessId::new(5, "50") });
        drop.stage = Stage::Looking { nonce, killed: false };
        while drop.next_act().is_some() {}
        drop.handle(Duration::ZERO, Heard::Server(ServerSight::Over));
        assert_eq!(drop.next_act(), Some(Act::Clear));
        drop.handle(Duration::ZERO, Heard::Acted(Acted::Unknown("no answer".into())));
        assert_eq!(drop.next_act(), None);
        let due = drop.deadline().expect("it is asked again");
        drop.handle(due, Heard::Time);
        assert_eq!(drop.next_act(), Some(Act::Clear));
        drop.handle(due, Heard::Acted(Acted::Done));
        assert!(matches!(drop.next_act(), Some(Act::Apply(verb)) if matches!(*verb, Verb::Drop { .. })));
    }

    #[test]
    fn a_store_that_is_busy_as_the_end_is_said_is_asked_again_before_the_pane_is_closed() {
        let record = sample(StateName::Frozen);
        let nonce = Nonce::from_bits(0xaaaa);
        let mut drop = Drop::new(Task { record: record.id, me: ProcessId::new(5, "50") });
        while drop.next_act().is_some() {}
        drop.doom(nonce, PaneAct { pane: PaneId(1), pid: Some(41), deed: Deed::KillStandin });
        for pause in STORE {
            let said = drop.next_act();
            assert!(
                matches!(&said, Some(Act::Apply(verb)) if matches!(**verb, Verb::Enrich { .. })),
                "{said:?}"
            );
            drop.handle(Duration::ZERO, Heard::Applied(Applied::Failed("the store is busy".into())));
            assert_eq!((drop.next_act(), drop.deadline()), (None, Some(pause)));
            drop.handle(pause, Heard::Time);
        }
        assert!(matches!(drop.next_act(), Some(Act::Apply(_))));
        drop.handle(Duration::ZERO, Heard::Applied(Applied::Done(record::Outcome::Enriched)));
        assert!(matches!(drop.next_act(), Some(Act::Pane(_))));
    }
}
