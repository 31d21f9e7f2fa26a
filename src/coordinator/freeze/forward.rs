//! The part of a freeze that only goes forward: the agent is dead, what is left of it is ended, and the stand-in comes.

use std::time::Duration;

use super::{Freeze, Held, KILL_GRACE, KIN_GRACE, READY, SERVER, STANDS, STORE, Stage};
use crate::coordinator::family::Family;
use crate::coordinator::told::{End, Outcome};
use crate::coordinator::{Act, Acted, Applied, Deed, PaneAct, ServerSight, Sign};
use crate::record::{Location, PaneId, ProcessId, Verb};
use crate::world::rows::PaneRow;

impl Freeze {
    pub(super) fn dead(&mut self, held: Held, kin: Vec<ProcessId>) {
        self.course.tell("ended", format!("process {}", held.target.agent.pid));
        self.go(Stage::Recounting { held, kin }, Act::Family);
    }

    /// What the dying agent started last is ended too: children of what is left of the tree.
    pub(super) fn recounted(
        &mut self,
        now: Duration,
        held: Held,
        mut kin: Vec<ProcessId>,
        family: Result<Family, String>,
    ) {
        match family {
            Ok(family) => {
                let new: Vec<ProcessId> = kin
                    .iter()
                    .flat_map(|one| family.below(one))
                    .map(|kin| kin.id.clone())
                    .filter(|id| !kin.contains(id) && *id != held.target.agent)
                    .collect();
                for id in new {
                    if !kin.contains(&id) {
                        self.course.act(Act::Watch(id.clone()));
                        kin.push(id);
                    }
                }
            }
            Err(why) => self.course.warn(format!("what it left behind cannot be listed: {why}")),
        }
        if kin.is_empty() {
            return self.stand_in(held);
        }
        let to = kin.clone();
        self.go(Stage::Clearing { held, kin, killed: false }, Act::Signal { to, signal: Sign::Term });
        self.course.due = Some(now + KIN_GRACE);
    }

    pub(super) fn uncleared(&mut self, now: Duration, held: Held, kin: Vec<ProcessId>, killed: bool) {
        if killed {
            for one in &kin {
                self.course.warn(format!("process {} of it lives on", one.pid));
            }
            return self.stand_in(held);
        }
        let to = kin.clone();
        self.go(Stage::Clearing { held, kin, killed: true }, Act::Signal { to, signal: Sign::Kill });
        self.course.due = Some(now + KILL_GRACE);
    }

    pub(super) fn stand_in(&mut self, held: Held) {
        let pid = Some(held.target.process.pid);
        let act = PaneAct { pane: held.target.pane, pid, deed: Deed::RespawnStandin };
        self.go(Stage::Standing(held), Act::Pane(act));
    }

    pub(super) fn stood(&mut self, now: Duration, held: Held, acted: Acted) {
        match acted {
            Acted::Done => {
                self.course.tell("stand_in", held.target.pane.to_string());
                self.go(Stage::Appearing(held), Act::Look);
            }
            // gone or given to something else; the look says which
            Acted::NotMet | Acted::Refused(_) | Acted::NoServer => self.go(Stage::Appearing(held), Act::Look),
            Acted::Unknown(why) => {
                if self.course.again(now, &SERVER) {
                    self.stage = Stage::Standing(held);
                } else {
                    self.leave(why);
                }
            }
        }
    }

    pub(super) fn appeared(&mut self, now: Duration, held: Held, server: ServerSight) {
        let rows = match server {
            ServerSight::Listed(snapshot) => snapshot.panes,
            ServerSight::Over | ServerSight::Unnamed => return self.commit(held, Location::Gone),
            ServerSight::Unknown(why) => {
                return if self.course.again(now, &SERVER) {
                    self.stage = Stage::Appearing(held);
                } else {
                    self.leave(why)
                };
            }
        };
        let id = self.order.task.record.to_string();
        // its own pane before another that carries its stamp
        let mut stamped = rows.iter().filter(|row| row.frozen == id.as_str());
        let own = stamped.clone().find(|row| row.id.0 == held.target.pane.0);
        let Some(row) = own.or_else(|| stamped.next()) else {
            return match rows.iter().find(|row| row.id.0 == held.target.pane.0) {
                None => self.commit(held, Location::Gone),
                Some(_) => {
                    self.course.warn(format!("pane {} was given to something else", held.target.pane));
                    self.commit(held, Location::Gone)
                }
            };
        };
        let absent = row.dead || row.pid == Some(held.target.process.pid);
        if row.ready && !row.dead {
            return match viewer(row) {
                Some(at) => self.commit(held, at),
                None => self.leave("the pane's process is not told".to_owned()),
            };
        }
        if absent && self.stands >= STANDS {
            return self.leave("its stand-in does not stay".to_owned());
        }
        if self.course.again(now, &READY) {
            self.stage = if absent { Stage::Standing(held) } else { Stage::Appearing(held) };
            return;
        }
        match viewer(row).filter(|_| !absent) {
            Some(at) => {
                self.course.warn("its stand-in runs but has not drawn yet".to_owned());
                self.commit(held, at);
            }
            None => self.leave("its stand-in does not come up".to_owned()),
        }
    }

    pub(super) fn commit(&mut self, held: Held, at: Location) {
        let verb = Verb::FreezeCommit { nonce: held.nonce, at: at.clone() };
        self.go(Stage::Committing { held, at }, Act::Apply(Box::new(verb)));
    }

    pub(super) fn committed(&mut self, now: Duration, held: Held, at: Location, applied: Applied) {
        match applied {
            Applied::Done(_) => {
                let place =
                    at.pane_id().map_or_else(|| "its pane is gone".to_owned(), |pane| pane.to_string());
                self.finish(Outcome::new(End::Done, "frozen", self.with_memory(place)));
            }
            Applied::Refused(refused) => self.leave(refused.to_string()),
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Committing { held, at };
                } else {
                    self.leave(why);
                }
            }
        }
    }

    /// The agent is dead and the rest cannot be done now: reconcile does it.
    pub(super) fn leave(&mut self, why: String) {
        self.finish(Outcome::new(End::Left, "unsettled", why));
    }
}

fn viewer(row: &PaneRow) -> Option<Location> {
    row.pid.map(|pid| Location::pane(PaneId(row.id.0), ProcessId::bare(pid)))
}
