//! A process with many restores: the real [`Fleet`] says which begins when, each restore is an actor, and a signal to the
//! process reaches all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use ait::coordinator::{End, Fleet, FleetHeard, Heard, Next, Outcome, Pace, Restore, RestoreOrder, Task};
use ait::record::{ProcessId, RecordId, RestoreMode};

use crate::actors::{Op, Turn};
use crate::kernel::{How, What};
use crate::mutants::Mutant;
use crate::world::{Event, MS, Sim};

/// One such process.
#[derive(Debug)]
pub(crate) struct Crew {
    fleet: Fleet,
    pub(crate) id: ProcessId,
    pub(crate) alive: bool,
    /// The recovery that listens.
    recovery: Option<usize>,
    /// The restores under way, by record, and whether each stands.
    under_way: BTreeMap<RecordId, (usize, bool)>,
    /// Failures in a row of the kind that the next will meet as well.
    row: usize,
    stopped: bool,
}

impl Sim {
    pub(crate) fn launch_fleet(&mut self, recovery: Option<usize>, records: Vec<RecordId>) {
        let crew = self.crews.len();
        let id = self.kernel.spawn(What::Coordinator(crew), None);
        self.note(|| format!("fleet {crew} starts as {id:?} for {records:?}"));
        let pace = match self.mutant {
            Some(Mutant::BeginsAll) => Pace { pending: usize::MAX, ..Pace::default() },
            Some(Mutant::NeverBreaks) => Pace { breaker: usize::MAX, ..Pace::default() },
            Some(_) | None => Pace::default(),
        };
        self.crews.push(Crew {
            fleet: Fleet::new(records, pace),
            id,
            alive: true,
            recovery,
            under_way: BTreeMap::new(),
            row: 0,
            stopped: false,
        });
        self.fleet_goes(crew);
    }

    /// Lets the machine say what is next until it waits.
    fn fleet_goes(&mut self, crew: usize) {
        while self.crews[crew].alive {
            match self.crews[crew].fleet.next_step() {
                None => return,
                Some(Next::Finish) => return self.end_crew(crew, How::Exit(0)),
                Some(Next::Skip(record, outcome)) => self.fleet_tells(crew, record, outcome),
                Some(Next::Begin(record)) => {
                    self.check_pace(crew);
                    let me = self.crews[crew].id.clone();
                    let task = Task { record, me: me.clone() };
                    let mode = RestoreMode::Resume;
                    let grace = Duration::from_secs(20);
                    let order = RestoreOrder { task, mode, session: None, dry_run: false, grace };
                    let at = self.actors.len();
                    self.note(|| format!("coordinator {at} of fleet {crew} restores {record}"));
                    self.enlist(Box::new(Restore::new(order)), Op::Restore(mode), record, me, Some(crew));
                    self.crews[crew].under_way.insert(record, (at, false));
                    if self.is(Mutant::BeginsAll) {
                        self.crews[crew].fleet.handle(FleetHeard::Standing(record));
                    }
                }
            }
        }
    }

    /// Few at once, each behind one that stands, and none behind a row of failures or a stop.
    fn check_pace(&mut self, crew: usize) {
        let known = &self.crews[crew];
        let unsure = known.under_way.values().filter(|(_, stands)| !stands).count();
        let text =
            format!("{} under way in fleet {crew}, {unsure} of them not standing", known.under_way.len());
        if known.under_way.len() >= 4 || unsure > 0 {
            self.fail("few at once", text);
        } else if known.row >= 3 || known.stopped {
            self.fail("a row of failures stops it", format!("fleet {crew}: {} in a row", known.row));
        }
    }

    fn fleet_tells(&mut self, crew: usize, record: RecordId, outcome: Outcome) {
        if let Some(at) = self.crews[crew].recovery {
            self.after(100, 2 * MS, Event::FleetTells { at, record, outcome: Box::new(outcome) });
        }
    }

    pub(crate) fn restore_stands(&mut self, crew: usize, record: RecordId) {
        if let Some((_, stands)) = self.crews[crew].under_way.get_mut(&record) {
            *stands = true;
        }
        self.crews[crew].fleet.handle(FleetHeard::Standing(record));
        self.fleet_goes(crew);
    }

    pub(crate) fn restore_ends(&mut self, crew: usize, record: RecordId, outcome: Outcome) {
        let known = &mut self.crews[crew];
        known.under_way.remove(&record);
        let systemic = outcome.word.starts_with("agent_exited")
            || matches!(outcome.word.as_str(), "session_mismatch" | "no_binary");
        match outcome.end {
            End::Done | End::Planned => known.row = 0,
            End::Refused | End::Failed | End::Left => known.row += usize::from(systemic),
        }
        known.fleet.handle(FleetHeard::Ended(record, outcome.clone()));
        self.fleet_tells(crew, record, outcome);
        self.fleet_goes(crew);
    }

    /// SIGTERM: the fleet hears it, and each of its restores.
    pub(crate) fn stop_crew(&mut self, crew: usize) {
        self.note(|| format!("fleet {crew} is told to stop"));
        self.crews[crew].stopped = true;
        self.crews[crew].fleet.handle(FleetHeard::Stop);
        for at in self.crew_of(crew) {
            self.turn_after(10, MS, at, Turn::Unasked(Heard::Stop));
        }
        self.fleet_goes(crew);
    }

    pub(crate) fn crew_of(&self, crew: usize) -> Vec<usize> {
        let of = |at: &usize| self.actors[*at].crew == Some(crew) && self.actors[*at].alive;
        (0..self.actors.len()).filter(of).collect()
    }

    /// The process ends, and all of its restores with it.
    pub(crate) fn end_crew(&mut self, crew: usize, how: How) {
        if !std::mem::replace(&mut self.crews[crew].alive, false) {
            return;
        }
        self.note(|| format!("fleet {crew} is over: {how:?}"));
        for at in self.crew_of(crew) {
            self.actors[at].alive = false;
        }
        let (id, recovery) = (self.crews[crew].id.clone(), self.crews[crew].recovery);
        self.end_process(&id, how);
        if let Some(at) = recovery {
            // what it said last is read first
            self.after(3 * MS, 6 * MS, Event::FleetEnds { at });
        }
    }
}
