//! Many restores, one after the other: the next one begins when the last is known to stand, few are under way at once, and
//! a row of failures of the same kind stops them all.

use std::collections::{BTreeMap, VecDeque};

use super::told::{End, Outcome};
use crate::record::RecordId;

/// How fast a fleet comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The most whose proof is waited for at once.
    pub pending: usize,
    /// The failures in a row that stop it.
    pub breaker: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { pending: 4, breaker: 3 }
    }
}

/// What a fleet hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetHeard {
    /// A restore stands: verified, ready on its screen, or alive for a while. Its end is told later.
    Standing(RecordId),
    /// A restore is over.
    Ended(RecordId, Outcome),
    /// It was asked to stop: nothing new begins.
    Stop,
}

/// What a fleet does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Begin this restore.
    Begin(RecordId),
    /// This record is left out, with the reason.
    Skip(RecordId, Outcome),
    /// All are over.
    Finish,
}

/// A row of restores, in the order they were given.
#[derive(Debug)]
pub struct Fleet {
    pace: Pace,
    waiting: VecDeque<RecordId>,
    /// Those under way, and whether each stands.
    under_way: BTreeMap<RecordId, bool>,
    /// Failures that count, in a row.
    row: usize,
    /// Why nothing new begins.
    broken: Option<Outcome>,
}

impl Fleet {
    /// A fleet that has begun nothing.
    #[must_use]
    pub fn new(records: impl IntoIterator<Item = RecordId>, pace: Pace) -> Self {
        let mut waiting = VecDeque::new();
        for record in records {
            if !waiting.contains(&record) {
                waiting.push_back(record);
            }
        }
        Self { pace, waiting, under_way: BTreeMap::new(), row: 0, broken: None }
    }

    /// Takes what happened.
    pub fn handle(&mut self, heard: FleetHeard) {
        match heard {
            FleetHeard::Standing(record) => {
                if let Some(stands) = self.under_way.get_mut(&record) {
                    *stands = true;
                }
            }
            FleetHeard::Ended(record, outcome) => {
                self.under_way.remove(&record);
                self.count(&outcome);
            }
            FleetHeard::Stop => {
                let stopped = Outcome::new(End::Failed, "stopped", "it was told to stop");
                self.broken.get_or_insert(stopped);
            }
        }
    }

    /// What to do next; `None` while it waits.
    pub fn next_step(&mut self) -> Option<Next> {
        if let Some(broken) = &self.broken
            && let Some(record) = self.waiting.pop_front()
        {
            return Some(Next::Skip(record, broken.clone()));
        }
        if self.waiting.is_empty() {
            return self.under_way.is_empty().then_some(Next::Finish);
        }
        let all_stand = self.under_way.values().all(|stands| *stands);
        if !all_stand || self.under_way.len() >= self.pace.pending {
            return None;
        }
        let record = self.waiting.pop_front()?;
        self.under_way.insert(record, false);
        Some(Next::Begin(record))
    }

    /// A refusal that says something about this record alone neither breaks a row nor makes one.
    fn count(&mut self, outcome: &Outcome) {
        match outcome.end {
            End::Done | End::Planned => self.row = 0,
            End::Refused | End::Failed | End::Left if is_systemic(&outcome.word) => self.row += 1,
            End::Refused | End::Failed | End::Left => {}
        }
        if self.row >= self.pace.breaker && self.broken.is_none() {
            let seen = format!("{} in a row failed, the last with {}", self.row, outcome.word);
            let broken = Outcome::new(End::Refused, "breaker", seen);
            self.broken = Some(broken.hint("look at the reasons; run it again to go on"));
        }
    }
}

/// Failures that the next agent will meet as well: exits, mismatches, missing programs.
fn is_systemic(word: &str) -> bool {
    word.starts_with("agent_exited") || matches!(word, "session_mismatch" | "no_binary")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u32) -> Vec<RecordId> {
        (1..=count).map(RecordId::from_bits).collect()
    }

    fn ended(word: &str, end: End) -> Outcome {
        Outcome::new(end, word, "")
    }

    #[test]
    fn the_next_begins_when_the_last_stands_and_four_are_pending_at_most() {
        let ids = ids(6);
        let mut fleet = Fleet::new(ids.iter().copied().chain([ids[0]]), Pace::default());
        for id in &ids[..4] {
            assert_eq!(fleet.next_step(), Some(Next::Begin(*id)));
            assert_eq!(fleet.next_step(), None, "{id} does not stand yet");
            fleet.handle(FleetHeard::Standing(*id));
        }
        assert_eq!(fleet.next_step(), None, "four are pending");
        fleet.handle(FleetHeard::Ended(ids[1], ended("verified", End::Done)));
        assert_eq!(fleet.next_step(), Some(Next::Begin(ids[4])));
        fleet.handle(FleetHeard::Ended(ids[4], ended("no_session", End::Refused)));
        assert_eq!(fleet.next_step(), Some(Next::Begin(ids[5])));
        for id in [0, 2, 3, 5] {
            assert_eq!(fleet.next_step(), None);
            fleet.handle(FleetHeard::Ended(ids[id], ended("verified", End::Done)));
        }
        assert_eq!(fleet.next_step(), Some(Next::Finish));
    }

    #[test]
    fn three_of_a_kind_break_it_and_the_rest_is_told() {
        let ids = ids(6);
        let mut fleet = Fleet::new(ids.clone(), Pace::default());
        for (id, word) in
            [(0, "agent_exited:1"), (1, "no_binary"), (2, "transcript_missing"), (3, "session_mismatch")]
        {
            assert_eq!(fleet.next_step(), Some(Next::Begin(ids[id])));
            fleet.handle(FleetHeard::Ended(ids[id], ended(word, End::Failed)));
        }
        for id in &ids[4..] {
            assert!(
                matches!(fleet.next_step(), Some(Next::Skip(skipped, why)) if skipped == *id && why.word == "breaker")
            );
        }
        assert_eq!(fleet.next_step(), Some(Next::Finish));

        let mut fleet = Fleet::new(ids.clone(), Pace::default());
        for (id, word, end) in
            [(0, "no_binary", End::Refused), (1, "no_binary", End::Refused), (2, "verified", End::Done)]
        {
            assert_eq!(fleet.next_step(), Some(Next::Begin(ids[id])));
            fleet.handle(FleetHeard::Ended(ids[id], ended(word, end)));
        }
        assert_eq!(fleet.next_step(), Some(Next::Begin(ids[3])), "one that came back ends the row");
    }

    #[test]
    fn a_stop_leaves_the_rest() {
        let ids = ids(2);
        let mut fleet = Fleet::new(ids.clone(), Pace::default());
        assert_eq!(fleet.next_step(), Some(Next::Begin(ids[0])));
        fleet.handle(FleetHeard::Stop);
        assert!(matches!(fleet.next_step(), Some(Next::Skip(id, _)) if id == ids[1]));
        assert_eq!(fleet.next_step(), None);
        fleet.handle(FleetHeard::Ended(ids[0], ended("verified", End::Done)));
        assert_eq!(fleet.next_step(), Some(Next::Finish));
    }
}
