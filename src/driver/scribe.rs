//! The thread that writes: the store and the archive, in the order asked, so that a slow disk holds up no notification.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::lifecycle::identity::{self, Noted};
use crate::process;
use crate::record::{RecordId, Step, Verb};
use crate::store::{Archive, Origin, PATIENCE, Snapshot, Store, StoreError, System, turns};
use crate::supervisor::word::Said;
use crate::supervisor::{EndedEarlier, Input, StoreView, Ticket, Written};
use crate::turn::Observation;
use crate::world::plan::Plan;

/// Jobs that may wait.
const ROOM: usize = 256;

/// Something to write, or to read from what was written.
pub(super) enum Job {
    /// Apply changes in one write.
    Write(Ticket, Vec<Step>),
    /// Read the store, if it changed.
    Read,
    /// Read the ends since then, unix seconds, from the archive.
    Recall(i64),
    /// Write what hooks could not write; says whether that worked.
    Drain(oneshot::Sender<bool>),
    /// Keep the last screen of an ended agent, then say so.
    Screen(RecordId, Vec<u8>, Box<Input>),
    /// Read what was tried of each loss; `ended` says that who tries it has ended.
    Book {
        /// As it is told to the supervisor.
        ended: bool,
    },
    /// Read up to when all was said at attaches.
    Said,
    /// Keep that.
    KeepSaid(Said),
    /// Note what a source shows of an agent's turn.
    Observe(turns::Whose, Box<Observation>),
    /// Note which conversation an agent has now.
    Identify(RecordId),
    /// Keep what stands where on a server.
    Plan(Box<Plan>),
    /// Keep the screen of a live agent, if there is one, then say so.
    Checkpoint(RecordId, Option<Vec<u8>>, Box<Input>),
}

/// Starts the thread. What comes of each job goes to `inbox`; the thread ends when the sender is dropped.
pub(super) fn start(store: Arc<Store>, inbox: mpsc::Sender<Input>) -> std::io::Result<mpsc::Sender<Job>> {
    let (jobs, mut todo) = mpsc::channel(ROOM);
    let system = System::here();
    std::thread::Builder::new().name("scribe".into()).stack_size(512 * 1024).spawn(move || {
        let mut last = None;
        while let Some(job) = todo.blocking_recv() {
            if let Some(input) = perform(&store, &system, job, &mut last)
                && inbox.blocking_send(input).is_err()
            {
                return;
            }
        }
    })?;
    Ok(jobs)
}

/// Does one job; `last` is the store as last told.
fn perform(store: &Store, system: &System, job: Job, last: &mut Option<Arc<Snapshot>>) -> Option<Input> {
    match job {
        Job::Write(ticket, steps) => {
            Some(Input::Written { ticket, result: write(store, system, &steps, last) })
        }
        Job::Read => {
            let read = store.read();
            match read {
                Ok(snapshot) if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &snapshot)) => None,
                Ok(snapshot) => {
                    *last = Some(Arc::clone(&snapshot));
                    Some(Input::Store(Ok(view(&snapshot))))
                }
                Err(error) => {
                    *last = None;
                    Some(Input::Store(Err(error.to_string())))
                }
            }
        }
        Job::Drain(done) => {
            let drained = store.drain(&system.facts(), PATIENCE);
            if let Err(error) = &drained {
                tracing::info!(%error, "what hooks told waits");
            }
            // the loop may have ended
            let _ = done.send(drained.is_ok());
            perform(store, system, Job::Read, last)
        }
        Job::Recall(since) => {
            store.sweep_checkpoints();
            store.sweep_turns();
            let ends = recall(store, since);
            store.sweep_plans(ends.iter().map(|end| &*end.record));
            Some(Input::Recalled(ends))
        }
        Job::Book { ended } => Some(Input::Book { book: store.book(), ended }),
        Job::Said => Some(Input::Said(store.said())),
        Job::KeepSaid(said) => {
            if let Err(error) = store.write_said(&said) {
                tracing::warn!(%error, "what was said at attaches is not kept");
            }
            None
        }
        Job::Observe(whose, seen) => {
            if let Err(error) = turns::observe(store.paths(), &whose, &seen) {
                tracing::info!(record = %whose.record, %error, "what was seen of a turn is not noted");
            }
            None
        }
        Job::Identify(record) => {
            identify(store, system, record);
            None
        }
        Job::Plan(mut plan) => {
            for pane in plan.windows.iter_mut().flat_map(|window| &mut window.panes) {
                if pane.record.is_none() {
                    let cwd = process::facts(pane.pid).and_then(|facts| facts.cwd);
                    pane.cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
                }
            }
            // one that is on its way out is nowhere
            if let Some(before) = store.plan(&plan.server) {
                plan.recall(&before);
            }
            if let Err(error) = store.write_plan(&plan) {
                tracing::warn!(%error, "what stands where is not kept");
            }
            None
        }
        Job::Checkpoint(record, screen, then) => {
            if let Some(screen) = screen
                && let Err(error) = store.write_checkpoint(record, &screen)
            {
                tracing::warn!(%record, %error, "a checkpoint is not kept");
            }
            identify(store, system, record);
            Some(*then)
        }
        Job::Screen(record, screen, then) => {
            let files = store.paths().files();
            if let Err(error) = Archive::new(&files).keep_screen(record, &screen) {
                tracing::warn!(%record, %error, "the last screen is not kept");
            }
            Some(*then)
        }
    }
}

fn write(
    store: &Store,
    system: &System,
    steps: &[Step],
    last: &mut Option<Arc<Snapshot>>,
) -> Result<Written, String> {
    let steps: Vec<Step> = steps.iter().map(|step| with_screen(store, step)).collect();
    let results =
        store.apply(&steps, &system.facts(), PATIENCE).map_err(|error: StoreError| error.to_string())?;
    let snapshot = store.read().map_err(|error| error.to_string())?;
    *last = Some(Arc::clone(&snapshot));
    let results = results.into_iter().map(|result| result.map(drop)).collect();
    Ok(Written { results, view: view(&snapshot) })
}

/// Notes which conversation an agent has now: what a crash leaves is to be the right one, also of an agent that no hook speaks
/// for.
fn identify(store: &Store, system: &System, id: RecordId) {
    match identity::note(store, system, id) {
        Ok(Noted::AsItWas) => {}
        Ok(Noted::Now) => tracing::info!(record = %id, "its conversation is another than was known"),
        Ok(Noted::Refused(refused)) => {
            tracing::info!(record = %id, %refused, "its conversation is not noted")
        }
        Err(error) => tracing::warn!(record = %id, %error, "its conversation is not noted"),
    }
}

/// A loss takes the checkpoint along, as what the frozen record shows; so does an end that turned out to be one.
fn with_screen(store: &Store, (id, verb): &Step) -> Step {
    let mut verb = verb.clone();
    if let Some(record) = *id {
        match &mut verb {
            Verb::Lose { checkpoint: checkpoint @ None, .. } => *checkpoint = store.take_checkpoint(record),
            Verb::Revive { capture: capture @ None, .. } => {
                *capture =
                    store.revive_screen(record).ok().flatten().or_else(|| store.take_checkpoint(record));
            }
            Verb::Lose { .. }
            | Verb::Revive { .. }
            | Verb::Upsert(_)
            | Verb::FreezeBegin { .. }
            | Verb::FreezeCommit { .. }
            | Verb::FreezeAbort { .. }
            | Verb::RestoreBegin { .. }
            | Verb::RestoreLaunched { .. }
            | Verb::RestoreConfirm { .. }
            | Verb::RestoreAbort { .. }
            | Verb::StandinRespawned { .. }
            | Verb::LeaseTake { .. }
            | Verb::LeaseRelease { .. }
            | Verb::End { .. }
            | Verb::Reboot { .. }
            | Verb::Retire { .. }
            | Verb::Drop { .. }
            | Verb::FillTask { .. }
            | Verb::Follow(_)
            | Verb::Enrich { .. }
            | Verb::Bind(_) => {}
        }
    }
    (*id, verb)
}

fn view(snapshot: &Snapshot) -> StoreView {
    let trouble = match &snapshot.origin {
        Origin::Previous(fault) => Some(format!(
            "the store is corrupt ({fault}); this is the generation before, and nothing is written"
        )),
        Origin::Store | Origin::Missing => snapshot.bad.first().map(|first| {
            let more = snapshot.bad.len();
            format!(
                "{more} broken record(s), the first on line {}: {}; nothing is written",
                first.line, first.reason
            )
        }),
    };
    StoreView { records: Arc::new(snapshot.records.clone()), trouble }
}

/// What ended since then; an archive that cannot be read tells nothing, and nothing is revived by it.
fn recall(store: &Store, since: i64) -> Vec<EndedEarlier> {
    let files = store.paths().files();
    let archive = Archive::new(&files);
    let ends = match archive.since(since) {
        Ok(ends) => ends,
        Err(error) => {
            tracing::warn!(%error, "the archive is not read");
            return Vec::new();
        }
    };
    ends.into_iter()
        .map(|archived| EndedEarlier {
            at: archived.at.unix(),
            evidence: archived.evidence,
            provisional: archived.provisional,
            record: Box::new(archived.record),
        })
        .collect()
}
