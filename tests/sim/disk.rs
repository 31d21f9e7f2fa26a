//! The fake disk: the store, changed by the real [`Records::step`] only, the archive, and the words a supervisor leaves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ait::record::{Captures, Facts, Liveness, Outcome, Record, RecordId, Records, Refused, Stamp, Step};
use ait::supervisor::recovery::Book;
use ait::supervisor::{LastStop, StoreView};

use crate::dice::Dice;
use crate::kernel::{Kernel, What};

/// One line of the archive.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Unix seconds.
    pub(crate) at: i64,
    pub(crate) record: Record,
    pub(crate) evidence: String,
    pub(crate) provisional: bool,
}

/// What is kept over every crash.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) records: Arc<Records>,
    pub(crate) archive: Vec<Line>,
    /// Counts the changes of the store.
    pub(crate) version: u64,
    /// The capture files, by the number of their lines.
    pub(crate) captures: BTreeMap<RecordId, u64>,
    pub(crate) last_stop: Option<LastStop>,
    /// What recoveries tried.
    pub(crate) book: Book,
    /// Writes fail.
    pub(crate) full: bool,
    /// Believes that every server (or else every other process) is gone.
    pub(crate) trusting: Option<bool>,
    /// Leases protect nobody, or protect for ever.
    pub(crate) lawless: Option<bool>,
    /// Bits for ids and nonces.
    pub(crate) bits: Option<Dice>,
}

/// What a batch would make of the store.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) records: Records,
    pub(crate) lines: Vec<Line>,
    pub(crate) results: Vec<Result<(RecordId, Outcome), Refused>>,
    pub(crate) changed: bool,
    /// Whose captures go once it is written.
    pub(crate) removed: Vec<RecordId>,
}

impl Disk {
    /// Works a batch out without writing it.
    pub(crate) fn work_out(&mut self, steps: &[Step], kernel: &Kernel, utc: i64, uptime: u64) -> Batch {
        let dice = RefCell::new(self.bits.take().unwrap_or_else(|| Dice::new(0)));
        let boot_id = kernel.boot_id();
        let (trusting, lawless) = (self.trusting, self.lawless);
        let mut records = (*self.records).clone();
        let mut batch = {
            let facts = Facts {
                now: Stamp::from_unix(utc),
                since_boot: uptime,
                boot_id: &boot_id,
                grace: match lawless {
                    Some(true) => 0,
                    Some(false) => u64::MAX,
                    None => 60,
                },
                alive: &|id| {
                    let owner = kernel.process(id).is_some_and(|of| matches!(of.what, What::Coordinator(_)));
                    if lawless == Some(true) && owner {
                        return Liveness::Gone;
                    }
                    let server = kernel.process(id).is_some_and(|of| matches!(of.what, What::Tmux(_)));
                    if trusting == Some(server) { Liveness::Gone } else { kernel.liveness(id) }
                },
                started: &|pid| kernel.living.get(&pid).map(|process| process.id.started.clone()),
                draw: &|| u32::try_from(dice.borrow_mut().roll() >> 32).unwrap_or_default(),
            };
            let mut lines = Vec::new();
            let mut results = Vec::new();
            let mut removed = Vec::new();
            let mut changed = false;
            for (id, verb) in steps {
                let done = records.step(*id, verb, &facts);
                if let Ok(done) = &done {
                    changed |= done.changed;
                    if done.captures == Captures::Remove {
                        removed.push(done.id);
                    }
                    if let Some((record, farewell)) = &done.archive {
                        lines.push(Line {
                            at: utc,
                            record: (**record).clone(),
                            evidence: farewell.evidence.clone(),
                            provisional: farewell.provisional,
                        });
                    }
                }
                results.push(done.map(|done| (done.id, done.outcome)));
            }
            Batch { records: Records::default(), lines, results, changed, removed }
        };
        records.sort();
        batch.records = records;
        self.bits = Some(dice.into_inner());
        batch
    }

    /// Writes it: the archive first, then the store in one rename.
    pub(crate) fn commit(&mut self, batch: Batch) {
        self.archive.extend(batch.lines);
        if batch.changed {
            self.records = Arc::new(batch.records);
            self.version += 1;
        }
    }

    pub(crate) fn view(&self) -> StoreView {
        StoreView { records: Arc::clone(&self.records), trouble: None }
    }

    /// The latest line of each id since then, without those that are in the store.
    pub(crate) fn ends_since(&self, since: i64) -> Vec<&Line> {
        let mut latest: Vec<&Line> = Vec::new();
        for line in self.archive.iter().rev() {
            if !latest.iter().any(|known| known.record.id == line.record.id) {
                latest.push(line);
            }
        }
        latest.retain(|line| line.at >= since && self.records.get(line.record.id).is_none());
        latest
    }
}
