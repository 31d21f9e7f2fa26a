//! Performs what a coordinator decides: one act after the other on the real world, and tells it what came of each.
//!
//! It waits for deaths by their handles, for the store's folder by its events, for signals, and for the machine's own deadline;
//! it asks nobody again and again. It decides nothing: what an answer means is the machine's.

mod acts;
mod capture;
mod family;
mod launch;
mod proof;
mod ready;
mod sight;

pub(super) use ready::sockets;

use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::coordinator::{Act, Coordinator, End, Heard, Outcome, Sight, Step, Watching};
use crate::lifecycle::tap::Wanted;
use crate::process::{self, Opened, ProcessId, Watch};
use crate::provider::Catalog;
use crate::record::{Record, RecordId};
use crate::store::{Store, System};
use crate::watch::{Touched, Watcher};

/// What a coordinator works with.
#[derive(Debug)]
pub struct World {
    /// The records and captures.
    pub store: Store,
    /// This machine.
    pub system: System,
    /// The absolute path of this program, for stand-ins and what is started in panes.
    pub program: PathBuf,
    /// The kinds of agents there are.
    pub catalog: Catalog,
    /// The most lines of history a capture holds.
    pub capture_max_lines: u32,
    /// What is read of what agents write.
    pub signals: Wanted,
}

/// One operation under way.
struct Performer<'a> {
    world: &'a World,
    id: RecordId,
    /// The record as it was last read: it names the server and the pane.
    record: Option<Box<Record>>,
    /// When its server started, by the server's own word: a record of an earlier script does not say.
    started_at: Option<i64>,
    deaths: JoinSet<ProcessId>,
    watcher: Option<Watcher>,
    /// The provider's folders about running agents.
    attended: Option<Watcher>,
}

/// Requests to stop, SIGTERM and SIGINT, from the moment this was made.
#[derive(Debug)]
pub struct Stops {
    term: Signal,
    int: Signal,
    came: Option<StopBy>,
}

/// What told a process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopBy {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl Stops {
    /// Hears of them from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())?, came: None })
    }

    /// Whether one has come so far.
    #[must_use]
    pub fn came(&self) -> bool {
        self.came.is_some()
    }

    /// The one that came, or the next one. Cancel safe.
    pub async fn any(&mut self) -> StopBy {
        match self.came {
            Some(by) => by,
            None => self.next().await,
        }
    }

    /// Whether one has come since the last look.
    async fn is_asked(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.next() => true,
            () = tokio::task::yield_now() => false,
        }
    }

    /// The next one. Cancel safe.
    pub async fn next(&mut self) -> StopBy {
        let by = tokio::select! {
            _ = self.term.recv() => StopBy::Terminate,
            _ = self.int.recv() => StopBy::Interrupt,
        };
        *self.came.insert(by)
    }
}

/// Runs a coordinator to its end. `tell` hears each step.
pub async fn run(
    world: &World,
    id: RecordId,
    machine: &mut dyn Coordinator,
    stops: &mut Stops,
    tell: &mut dyn FnMut(Step),
) -> Outcome {
    let mut performer = Performer {
        world,
        id,
        record: None,
        started_at: None,
        deaths: JoinSet::new(),
        watcher: None,
        attended: None,
    };
    loop {
        while let Some(act) = machine.next_act() {
            let heard = match act {
                Act::Finish(outcome) => return outcome,
                Act::Tell(step) => {
                    tell(step);
                    continue;
                }
                act => performer.perform(act).await,
            };
            // a machine that always has something to do would hear of it only when there is nothing to take back any more
            if stops.is_asked().await {
                machine.handle(process::boot_age(), Heard::Stop);
            }
            machine.handle(process::boot_age(), heard);
        }
        // a machine that neither acts nor waits would never end
        let due = machine.deadline();
        if due.is_none() && performer.deaths.is_empty() && performer.watcher.is_none() {
            return Outcome::new(End::Failed, "internal", "the coordinator waits for nothing");
        }
        let heard = tokio::select! {
            biased;
            Some(died) = performer.deaths.join_next() => match died {
                Ok(process) => Heard::Died(process),
                // a watch that cannot go on tells nothing; the deadline decides
                Err(_) => continue,
            },
            _ = stops.next() => Heard::Stop,
            () = touched(&mut performer.watcher) => performer.read(),
            () = touched(&mut performer.attended) => Heard::Touched,
            () = until(due) => Heard::Time,
        };
        machine.handle(process::boot_age(), heard);
    }
}

/// Until that moment on the clock that runs from boot; never for `None`.
async fn until(due: Option<Duration>) {
    match due {
        Some(due) => {
            let span = due.saturating_sub(process::boot_age());
            // nothing comes: only the time passes
            let _ = tokio::time::timeout(span, std::future::pending::<()>()).await;
        }
        None => std::future::pending().await,
    }
}

/// What an agent is at and what its prompt line holds, as a freeze looks at it.
pub async fn look(world: &World, record: &Record) -> Sight {
    let performer = Performer {
        world,
        id: record.id,
        record: Some(Box::new(record.clone())),
        started_at: None,
        deaths: JoinSet::new(),
        watcher: None,
        attended: None,
    };
    performer.examine().await
}

/// The next event in the folders that are watched; never without a watcher.
async fn touched(watcher: &mut Option<Watcher>) {
    match watcher {
        Some(watcher) => match watcher.next().await {
            Touched::Path(_) | Touched::All => {}
        },
        None => std::future::pending().await,
    }
}

impl Performer<'_> {
    /// The record as it is now.
    fn read(&mut self) -> Heard {
        match self.world.store.read() {
            Ok(snapshot) => {
                self.record = snapshot.records.get(self.id).map(|record| Box::new(Record::clone(record)));
                Heard::Record(self.record.clone())
            }
            Err(error) => Heard::NoStore(error.to_string()),
        }
    }

    /// Hears of every change of the record's file from now on.
    fn follow(&mut self) -> Heard {
        let store = self.world.store.paths().files().store;
        let folder = store.parent().unwrap_or(&store);
        let watcher = Watcher::new().and_then(|mut watcher| watcher.add(folder).map(|()| watcher));
        match watcher {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.read()
            }
            Err(error) => Heard::NoStore(format!("{}: {error}", folder.display())),
        }
    }

    /// Tells the death of a process once it has come.
    fn watch(&mut self, process: ProcessId) -> Heard {
        let watch = match Watch::open(&process) {
            Ok(Opened::Watching(watch)) => {
                let watched = process.clone();
                self.deaths.spawn(async move {
                    if watch.died().await.is_err() {
                        // no news is not a death
                        std::future::pending::<()>().await;
                    }
                    watched
                });
                Watching::Alive
            }
            Ok(Opened::Gone) => Watching::Gone,
            Err(error) => Watching::Blind(error.to_string()),
        };
        Heard::Watching { process, watch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[test]
    fn what_came_while_nobody_waited_is_heard_by_who_waits_next() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = runtime();
        let (mut later, mut at_once) =
            first.block_on(async { (Stops::new().unwrap(), Stops::new().unwrap()) });
        drop(first);
        kill_process(getpid(), Signal::TERM).unwrap();
        runtime().block_on(async {
            assert_eq!(at_once.any().await, StopBy::Terminate, "between two runtimes");
            assert_eq!(at_once.any().await, StopBy::Terminate, "and again");
        });
        runtime().block_on(async { assert_eq!(later.any().await, StopBy::Terminate, "another runtime's") });
    }
}
