//! The set of all records: what the store file holds, changed one verb at a time, printed sorted.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::json::{Unknown, canonical};
use super::resolve::{Meant, Place, resolve};
use super::{Captures, Facts, Farewell, Outcome, Record, RecordId, Refused, Verb, apply};

/// The format this program writes; a newer one is read as far as it goes and never written.
pub const VERSION: i64 = 1;

/// All records, by id and in order.
#[derive(Debug, Clone, Default)]
pub struct Records {
    list: Vec<Arc<Record>>,
    at: HashMap<RecordId, usize>,
    /// Top-level fields this version does not know.
    pub(super) unknown: Unknown,
}

/// What became of one verb of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The record.
    pub id: RecordId,
    /// What is answered.
    pub outcome: Outcome,
    /// The record as it was and why it goes, if it goes to the archive.
    pub archive: Option<(Arc<Record>, Farewell)>,
    /// What happens to its captures once all is on disk.
    pub captures: Captures,
    /// Whether anything changed.
    pub changed: bool,
}

/// A verb together with the record it is for; `None` only for an upsert, which finds its own.
pub type Step = (Option<RecordId>, Verb);

impl Records {
    /// The records as read, in any order. Of two with the same id the first stays.
    #[must_use]
    pub fn from_list(list: Vec<Arc<Record>>, unknown: Unknown) -> Self {
        let mut records =
            Self { list: Vec::with_capacity(list.len()), at: HashMap::with_capacity(list.len()), unknown };
        for record in list {
            if let std::collections::hash_map::Entry::Vacant(free) = records.at.entry(record.id) {
                free.insert(records.list.len());
                records.list.push(record);
            }
        }
        records.sort();
        records
    }

    /// All records, sorted by root, window and slot.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Record> + Clone {
        self.list.iter().map(Arc::as_ref)
    }

    /// The same, shared.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = &Arc<Record>> {
        self.list.iter()
    }

    /// Top-level fields this version does not know.
    #[must_use]
    pub fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    /// Replaces each root by what `real` makes of it (`None`: it stays), asking once per root.
    pub fn map_roots(&mut self, real: &mut dyn FnMut(&str) -> Option<String>) {
        let mut known: HashMap<String, Option<String>> = HashMap::new();
        let mut moved = false;
        for record in &mut self.list {
            if !known.contains_key(&record.root) {
                let other = real(&record.root).filter(|other| *other != record.root);
                known.insert(record.root.clone(), other);
            }
            if let Some(Some(other)) = known.get(&record.root) {
                Arc::make_mut(record).root.clone_from(other);
                moved = true;
            }
        }
        if moved {
            self.sort();
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The record of this id.
    #[must_use]
    pub fn get(&self, id: RecordId) -> Option<&Arc<Record>> {
        self.at.get(&id).map(|at| &self.list[*at])
    }

    /// Applies one verb. Call [`Records::sort`] before the set is read again in order.
    ///
    /// # Errors
    /// [`Refused`]; then nothing changed.
    pub fn step(&mut self, id: Option<RecordId>, verb: &Verb, facts: &Facts<'_>) -> Result<Done, Refused> {
        let place = self.place(id, verb, facts);
        let before = self.get(place.id).cloned();
        let change = apply(before.as_deref().cloned(), verb, facts, &place)?;
        let changed = before.as_deref() != change.record.as_ref();
        if changed {
            self.put(place.id, change.record);
        }
        let archive = before.zip(change.archive);
        Ok(Done { id: place.id, outcome: change.outcome, archive, captures: change.captures, changed })
    }

    /// Puts the records in order again after steps.
    pub fn sort(&mut self) {
        if !self.list.is_sorted_by(|a, b| order(a, b).is_le()) {
            self.list.sort_by(order);
        }
        self.at.clear();
        self.at.extend(self.list.iter().enumerate().map(|(at, record)| (record.id, at)));
    }

    /// The text of the store file.
    ///
    /// # Errors
    /// Only if a value cannot be written as JSON, which no record holds.
    pub fn print(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = canonical(self, self.list.len() * 1400 + 64)?;
        text.push(b'\n');
        Ok(text)
    }

    fn put(&mut self, id: RecordId, record: Option<Record>) {
        match (self.at.get(&id).copied(), record.map(Arc::new)) {
            (Some(at), Some(record)) => self.list[at] = record,
            (None, Some(record)) => {
                self.at.insert(id, self.list.len());
                self.list.push(record);
            }
            (Some(at), None) => {
                self.at.remove(&id);
                self.list.swap_remove(at);
                if let Some(moved) = self.list.get(at) {
                    self.at.insert(moved.id, at);
                }
            }
            (None, None) => {}
        }
    }

    /// Which record a verb means and where it would stand.
    fn place(&self, id: Option<RecordId>, verb: &Verb, facts: &Facts<'_>) -> Place {
        let (id, ambiguous) = match (verb, id) {
            (Verb::Upsert(upsert), _) => match resolve(self.iter(), upsert, facts) {
                Meant::Known(id) => (id, false),
                Meant::New { ambiguous } => (self.fresh_id(facts), ambiguous),
            },
            (Verb::Revive { archived, .. }, _) => (archived.id, false),
            (_, Some(id)) => (id, false),
            (_, None) => (self.fresh_id(facts), false),
        };
        let (root, window, wanted) = match verb {
            Verb::Upsert(upsert) => (upsert.root.as_str(), super::apply::name_of(&upsert.window), 0),
            Verb::Revive { archived, .. } => {
                (archived.root.as_str(), archived.window.as_str(), archived.window_slot)
            }
            Verb::Follow(follow) => match (self.get(id), follow.window.as_deref()) {
                (Some(record), Some(window)) => (record.root.as_str(), super::apply::name_of(window), 0),
                (Some(_) | None, _) => return Place { id, slot: 0, alone: false, ambiguous },
            },
            Verb::FreezeBegin { .. }
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
            | Verb::Enrich { .. }
            | Verb::Bind(_) => return Place { id, slot: 0, alone: false, ambiguous },
        };
        let mut used: Vec<u32> = self
            .iter()
            .filter(|r| r.id != id && r.window == window && r.root == root)
            .map(|r| r.window_slot)
            .collect();
        let alone = used.is_empty();
        used.sort_unstable();
        let slot = if used.binary_search(&wanted).is_err() { wanted } else { lowest_unused(&used) };
        Place { id, slot, alone, ambiguous }
    }

    fn fresh_id(&self, facts: &Facts<'_>) -> RecordId {
        loop {
            let id = RecordId::from_bits((facts.draw)());
            if !self.at.contains_key(&id) {
                return id;
            }
        }
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list && self.unknown == other.unknown
    }
}

impl Eq for Records {}

impl Serialize for Records {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        super::json::print_object!(serializer, self.unknown, {
            sessions: List(&self.list),
            version: VERSION,
        })
    }
}

struct List<'a>(&'a [Arc<Record>]);

impl super::json::Field for List<'_> {}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Arc::as_ref))
    }
}

fn order(a: &Arc<Record>, b: &Arc<Record>) -> std::cmp::Ordering {
    a.key().cmp(&b.key()).then(a.id.cmp(&b.id))
}

/// The lowest number not in a sorted list.
fn lowest_unused(used: &[u32]) -> u32 {
    let mut slot = 0;
    for taken in used {
        if *taken == slot {
            slot += 1;
        }
    }
    slot
}
