//! Simulated coordinators: each owns a real machine, and its acts are performed one by one on the world of fakes. Between any
//! two of them the dice may kill or stop it, or whatever it works with.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use ait::coordinator::{
    Act, Coordinator, Drop, Freeze, Heard, Order, Outcome, Policy, Restore, RestoreOrder, Task, Watching,
};
use ait::record::{ProcessId, Record, RecordId, RestoreMode};

use crate::kernel::{How, What};
use crate::mutants::Mutant;
use crate::world::{Event, MS, SECOND, Sim};

/// What a coordinator was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Freeze(Wish),
    Restore(RestoreMode),
    Drop,
}

/// How much a freeze may take for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Named,
    Force,
}

/// A moment in a coordinator's life.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// It asks its machine what to do.
    Go,
    /// An act takes place.
    Do(Act),
    /// The act's answer arrives.
    Hear(Heard),
    /// Something arrives unasked.
    Unasked(Heard),
    /// The store's folder changed.
    Touched,
    /// Its deadline.
    Due,
}

/// One coordinator's process.
pub(crate) struct Actor {
    machine: Box<dyn Coordinator>,
    pub(crate) op: Op,
    pub(crate) record: RecordId,
    pub(crate) id: ProcessId,
    pub(crate) alive: bool,
    /// The fleet it is a restore of: they share a process.
    pub(crate) crew: Option<usize>,
    paused: bool,
    busy: bool,
    pub(crate) watching: BTreeSet<ProcessId>,
    following: bool,
    pub(crate) attending: bool,
    /// The record as it was last read.
    pub(crate) known: Option<Box<Record>>,
    /// When it last looked for agents that run its conversation.
    pub(crate) looked: u64,
    unasked: VecDeque<Heard>,
    /// What arrived while it was stopped.
    parked: Vec<Turn>,
    pub(crate) ended: Option<Outcome>,
}

impl Sim {
    /// Starts a coordinator.
    pub(crate) fn employ(&mut self, op: Op, record: RecordId) {
        if self.kernel.living.len() + 20 > self.kernel.pids.len() {
            return;
        }
        let at = self.actors.len();
        let id = self.kernel.spawn(What::Coordinator(at), None);
        let task = Task { record, me: id.clone() };
        let machine: Box<dyn Coordinator> = match op {
            Op::Freeze(wish) => {
                let policy = if wish == Wish::Force { Policy::Force } else { Policy::Named };
                Box::new(Freeze::new(Order { task, policy, dry_run: false }))
            }
            Op::Restore(mode) => {
                let grace = Duration::from_secs(20);
                Box::new(Restore::new(RestoreOrder { task, mode, session: None, dry_run: false, grace }))
            }
            Op::Drop => Box::new(Drop::new(task)),
        };
        self.note(|| format!("coordinator {at} starts as {id:?}: {op:?} of {record}"));
        self.enlist(machine, op, record, id, None);
    }

    pub(crate) fn enlist(
        &mut self,
        machine: Box<dyn Coordinator>,
        op: Op,
        record: RecordId,
        id: ProcessId,
        crew: Option<usize>,
    ) {
        let at = self.actors.len();
        self.actors.push(Actor {
            machine,
            op,
            record,
            id,
            alive: true,
            crew,
            paused: false,
            busy: false,
            watching: BTreeSet::new(),
            following: false,
            attending: false,
            known: None,
            looked: 0,
            unasked: VecDeque::new(),
            parked: Vec::new(),
            ended: None,
        });
        self.turn_after(MS, 20 * MS, at, Turn::Go);
    }

    pub(crate) fn turn_after(&mut self, low: u64, high: u64, actor: usize, turn: Turn) {
        self.after(low, high, Event::Turn { actor, turn: Box::new(turn) });
    }

    pub(crate) fn turn(&mut self, at: usize, turn: Turn) {
        let actor = &mut self.actors[at];
        if !actor.alive {
            // a command it had sent to tmux may still be carried out
            if let Turn::Do(act @ Act::Pane(_)) = turn
                && self.dice.percent(40)
            {
                self.perform_act(at, act);
            }
            return;
        }
        if actor.paused {
            actor.parked.push(turn);
            return;
        }
        match turn {
            Turn::Go => {}
            Turn::Do(act) => {
                let text = if self.trace.is_some() { format!("{act:?}") } else { String::new() };
                self.note(|| format!("coordinator {at}: {}", text.chars().take(300).collect::<String>()));
                let (delay, heard) = self.perform_act(at, act);
                let delay = delay + self.dice.between(50, 3 * MS);
                let time = self.now + delay;
                self.at(time, Event::Turn { actor: at, turn: Box::new(Turn::Hear(heard)) });
                self.mischief(at);
                return;
            }
            Turn::Hear(heard) => {
                self.tell(at, heard);
                self.actors[at].busy = false;
            }
            Turn::Unasked(heard) => self.actors[at].unasked.push_back(heard),
            Turn::Touched => {
                let record = self.read_record(at);
                self.actors[at].unasked.push_back(Heard::Record(record));
            }
            Turn::Due => {
                let now = Duration::from_micros(self.now);
                if self.actors[at].machine.deadline().is_some_and(|due| due <= now) {
                    self.actors[at].unasked.push_back(Heard::Time);
                }
            }
        }
        self.pump(at);
    }

    fn tell(&mut self, at: usize, heard: Heard) {
        if self.trace.is_some() {
            let text = match &heard {
                Heard::Record(Some(record)) => format!("Record {:?} lease {:?}", record.state, record.lease),
                other => format!("{other:?}"),
            };
            self.note(|| format!("coordinator {at} hears {}", text.chars().take(300).collect::<String>()));
        }
        let now = Duration::from_micros(self.now);
        self.actors[at].machine.handle(now, heard);
    }

    /// Lets the machine act, then hear what came unasked, until it waits.
    fn pump(&mut self, at: usize) {
        while !self.actors[at].busy {
            match self.actors[at].machine.next_act() {
                Some(Act::Finish(outcome)) => {
                    self.note(|| format!("coordinator {at} ends: {:?} {}", outcome.end, outcome.word));
                    self.actors[at].ended = Some(outcome.clone());
                    let Some(crew) = self.actors[at].crew else { return self.end_actor(at, How::Exit(0)) };
                    self.actors[at].alive = false;
                    return self.restore_ends(crew, self.actors[at].record, outcome);
                }
                Some(Act::Tell(step)) => {
                    if let Some(crew) = self.actors[at].crew.filter(|_| step.step == "standing") {
                        self.restore_stands(crew, self.actors[at].record);
                    }
                }
                Some(act) => {
                    self.actors[at].busy = true;
                    self.turn_after(100, 8 * MS, at, Turn::Do(act));
                }
                None => match self.actors[at].unasked.pop_front() {
                    Some(heard) => self.tell(at, heard),
                    None => return self.wait(at),
                },
            }
        }
    }

    fn wait(&mut self, at: usize) {
        let actor = &self.actors[at];
        match actor.machine.deadline() {
            Some(due) => {
                let time = u64::try_from(due.as_micros()).unwrap_or(u64::MAX).max(self.now);
                self.at(time, Event::Turn { actor: at, turn: Box::new(Turn::Due) });
            }
            None if actor.watching.is_empty() && !actor.following => {
                self.fail("a coordinator waits for something", format!("{at}: {:?}", self.actors[at].op));
            }
            None => {}
        }
    }

    pub(crate) fn end_actor(&mut self, at: usize, how: How) {
        if let Some(crew) = self.actors[at].crew {
            self.end_crew(crew, how);
        } else if std::mem::replace(&mut self.actors[at].alive, false) {
            let id = self.actors[at].id.clone();
            self.end_process(&id, how);
        }
    }

    /// The machine went down.
    pub(crate) fn abandon_actors(&mut self) {
        for actor in &mut self.actors {
            actor.alive = false;
        }
        for crew in &mut self.crews {
            crew.alive = false;
        }
        for recovery in &mut self.recoveries {
            recovery.alive = false;
        }
    }

    pub(crate) fn read_record(&mut self, at: usize) -> Option<Box<Record>> {
        let id = self.actors[at].record;
        let record = self.disk.records.get(id).map(|record| Box::new(Record::clone(record)));
        self.actors[at].known.clone_from(&record);
        record
    }

    pub(crate) fn follow(&mut self, at: usize) -> Heard {
        self.actors[at].following = true;
        Heard::Record(self.read_record(at))
    }

    pub(crate) fn watch_for(&mut self, at: usize, process: ProcessId) -> Heard {
        let lives = self.kernel.lives(&process) && !self.is(Mutant::BuriesTheLiving);
        if lives {
            self.actors[at].watching.insert(process.clone());
        }
        let watch = if lives { Watching::Alive } else { Watching::Gone };
        Heard::Watching { process, watch }
    }

    pub(crate) fn tell_actors_of_death(&mut self, process: &ProcessId) {
        for at in 0..self.actors.len() {
            if self.actors[at].watching.remove(process) && self.actors[at].alive {
                self.turn_after(20, 2 * MS, at, Turn::Unasked(Heard::Died(process.clone())));
            }
        }
    }

    pub(crate) fn tell_actors_of_store(&mut self) {
        for at in 0..self.actors.len() {
            if self.actors[at].following && self.actors[at].alive {
                self.turn_after(100, 4 * MS, at, Turn::Touched);
            }
        }
    }

    /// SIGSTOP.
    pub(crate) fn hold_up(&mut self, at: usize, longest: u64) {
        if self.actors[at].alive && !self.actors[at].paused {
            self.note(|| format!("coordinator {at} is stopped by SIGSTOP"));
            let all = self.actors[at].crew.map_or_else(|| vec![at], |crew| self.crew_of(crew));
            let time = self.now + self.dice.between(10 * MS, longest);
            for at in all {
                self.actors[at].paused = true;
                self.at(time, Event::Continue { actor: at });
            }
        }
    }

    /// SIGCONT.
    pub(crate) fn go_on(&mut self, at: usize) {
        let actor = &mut self.actors[at];
        if !std::mem::take(&mut actor.paused) || !actor.alive {
            return;
        }
        let parked = std::mem::take(&mut actor.parked);
        self.note(|| format!("coordinator {at} goes on"));
        for (number, turn) in parked.into_iter().enumerate() {
            let time = self.now + 10 * u64::try_from(number).unwrap_or_default();
            self.at(time, Event::Turn { actor: at, turn: Box::new(turn) });
        }
    }

    /// What may happen behind a step.
    fn mischief(&mut self, at: usize) {
        if self.calm || !self.dice.percent(6) {
            return;
        }
        let record = self.actors[at].record;
        match self.dice.below(16) {
            0..4 => {
                self.note(|| format!("coordinator {at} is killed"));
                self.end_actor(at, How::Signal(9));
            }
            4 | 5 => self.hold_up(at, 90 * SECOND),
            6 => match self.actors[at].crew {
                Some(crew) => self.stop_crew(crew),
                None => self.turn_after(10, MS, at, Turn::Unasked(Heard::Stop)),
            },
            7 | 8 => {
                self.crash();
                self.after(5 * MS, 3 * SECOND, Event::Start);
            }
            other => self.disturb(record, other),
        }
    }
}
