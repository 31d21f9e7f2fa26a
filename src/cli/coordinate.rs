//! `ait coordinate`: the process a coordinator runs in. Started by the commands and by the supervisor, never by hand.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Exit, Failure, block_on, program, settings};
use crate::coordinator::{
    Drop, End, Fleet, FleetHeard, Freeze, Next, Order, Outcome, Pace, Policy, Restore, RestoreOrder, Step,
    Task, Told,
};
use crate::lifecycle::perform::{self, Stops, World};
use crate::lifecycle::{host, recover};
use crate::process::{self, ProcessId};
use crate::record::{RecordId, RestoreMode, StateName};
use crate::store::{Paths, Store, System};
use crate::supervisor::recovery::Policies;

/// Steps that wait to be told.
const STEPS: usize = 256;

/// Run an operation of several steps in a session of its own; one line of JSON per step.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Freeze agents, one after the other
    Freeze {
        /// What must be known of each: named, accepted, sweep, force, or idle:SECONDS
        #[arg(long, value_parser = policy)]
        policy: Policy,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// The records
        #[arg(required = true)]
        records: Vec<RecordId>,
    },
    /// Bring frozen agents back, a few at once
    Restore {
        /// resume or repick
        #[arg(long, value_parser = mode)]
        mode: RestoreMode,
        /// The session they go to
        #[arg(long)]
        session: Option<String>,
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// The records
        #[arg(required = true)]
        records: Vec<RecordId>,
    },
    /// Bring lost agents back where they stood
    Recover {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// Nobody asked for it: only those that still come back by themselves
        #[arg(long)]
        unasked: bool,
        /// The records
        #[arg(required = true)]
        records: Vec<RecordId>,
    },
    /// Drop records, one after the other
    Drop {
        /// End a live agent first
        #[arg(long)]
        force: bool,
        /// The records
        #[arg(required = true)]
        records: Vec<RecordId>,
    },
}

/// A policy as an argument.
pub(super) fn word(policy: Policy) -> String {
    match policy {
        Policy::Named => "named".to_owned(),
        Policy::Accepted => "accepted".to_owned(),
        Policy::Sweep => "sweep".to_owned(),
        Policy::Force => "force".to_owned(),
        Policy::Idle(span) => format!("idle:{}", span.as_secs()),
    }
}

fn policy(text: &str) -> Result<Policy, String> {
    Ok(match text {
        "named" => Policy::Named,
        "accepted" => Policy::Accepted,
        "sweep" => Policy::Sweep,
        "force" => Policy::Force,
        other => {
            let seconds = other.strip_prefix("idle:").and_then(|seconds| seconds.parse().ok());
            Policy::Idle(Duration::from_secs(seconds.ok_or("not a policy")?))
        }
    })
}

/// Everything an operation is run with.
struct Host {
    world: Rc<World>,
    me: ProcessId,
    stops: Stops,
    /// How long a restored agent has for its acknowledgement.
    grace: Duration,
    policies: Policies,
}

/// What all restores of one call have in common.
#[derive(Clone)]
struct Restores {
    mode: RestoreMode,
    session: Option<String>,
    dry_run: bool,
    grace: Duration,
}

pub(super) fn run(Args { what }: Args) -> Result<Exit, Failure> {
    let records = match &what {
        What::Freeze { records, .. }
        | What::Restore { records, .. }
        | What::Recover { records, .. }
        | What::Drop { records, .. } => records.clone(),
    };
    let ran = block_on(async move {
        let _deaf = host::become_host()?;
        let mut host = Host::new()?;
        let mut clean = true;
        match what {
            What::Freeze { policy, dry_run, records } => {
                for record in records {
                    let outcome = host.freeze(record, policy, dry_run).await;
                    clean &= said(record, outcome);
                }
            }
            What::Restore { mode, session, dry_run, records } => {
                let restores = Restores { mode, session, dry_run, grace: host.grace };
                clean &= host.restore(records, restores).await;
            }
            What::Recover { dry_run, unasked, records } => {
                let order = recover::Order { records, dry_run, unasked: unasked.then_some(host.policies) };
                let mut tell = |told| host::tell(&told);
                clean &= recover::run(&host.world, &host.me, order, &mut tell).await?;
            }
            What::Drop { force, records } => {
                for record in records {
                    let outcome = host.drop(record, force).await;
                    clean &= said(record, outcome);
                }
            }
        }
        Ok(if clean { Exit::OK } else { Exit::FAILED })
    });
    if let Err(failure) = &ran {
        // nobody reads our standard error
        for record in records {
            said(record, Outcome::new(End::Failed, "not_begun", failure.to_string().trim_end()));
        }
    }
    ran
}

/// Says how one record's operation ended; whether it is as asked.
fn said(record: RecordId, outcome: Outcome) -> bool {
    let clean = matches!(outcome.end, End::Done | End::Planned);
    host::tell(&Told::Outcome { record, outcome });
    clean
}

impl Host {
    fn new() -> Result<Self, Failure> {
        let config = settings::config()?;
        let world = World {
            store: Store::open(Paths::from_env()?),
            system: System::here(),
            program: program::path()?,
            catalog: settings::catalog_of(&config)?,
            capture_max_lines: config.frozen.capture_max_lines,
            signals: settings::signals(&config),
        };
        let grace = config.frozen.restore_ack_grace;
        let policies = Policies { servers: config.recover, agents: config.recover_agents };
        Ok(Self { world: Rc::new(world), me: process::me()?, stops: Stops::new()?, grace, policies })
    }

    fn task(&self, record: RecordId) -> Task {
        Task { record, me: self.me.clone() }
    }

    async fn freeze(&mut self, record: RecordId, policy: Policy, dry_run: bool) -> Outcome {
        let order = Order { task: self.task(record), policy, dry_run };
        self.run(record, &mut Freeze::new(order)).await
    }

    async fn drop(&mut self, record: RecordId, force: bool) -> Outcome {
        let live =
            self.world.store.read().is_ok_and(|read| {
                read.records.get(record).is_some_and(|r| r.state.name() == StateName::Live)
            });
        let mut warnings = Vec::new();
        if live && force {
            let frozen = self.freeze(record, Policy::Force, false).await;
            if frozen.end != End::Done {
                return frozen;
            }
            warnings = frozen.warnings;
        }
        let outcome = self.run(record, &mut Drop::new(self.task(record))).await;
        warnings.extend(outcome.warnings.iter().cloned());
        outcome.warn(warnings)
    }

    /// Brings agents back as a fleet; whether all are as asked.
    async fn restore(&mut self, records: Vec<RecordId>, restores: Restores) -> bool {
        let local = tokio::task::LocalSet::new();
        local.run_until(self.restore_all(records, restores)).await
    }

    async fn restore_all(&mut self, records: Vec<RecordId>, restores: Restores) -> bool {
        let (sender, mut steps) = mpsc::channel::<(RecordId, Step)>(STEPS);
        let mut fleet = Fleet::new(records, Pace::default());
        let mut tasks: JoinSet<(RecordId, Outcome)> = JoinSet::new();
        let mut of: HashMap<tokio::task::Id, RecordId> = HashMap::new();
        let mut clean = true;
        loop {
            while let Some(next) = fleet.next_step() {
                match next {
                    Next::Finish => return clean,
                    Next::Skip(record, outcome) => clean &= said(record, outcome),
                    Next::Begin(record) => {
                        let work = restored(
                            Rc::clone(&self.world),
                            self.task(record),
                            restores.clone(),
                            sender.clone(),
                        );
                        of.insert(tasks.spawn_local(work).id(), record);
                    }
                }
            }
            tokio::select! {
                biased;
                Some((record, step)) = steps.recv() => {
                    if step.step == "standing" {
                        fleet.handle(FleetHeard::Standing(record));
                    }
                    host::tell(&Told::Step { record, step });
                }
                Some(ended) = tasks.join_next_with_id() => {
                    let ended = match ended {
                        Ok((_, ended)) => Some(ended),
                        Err(broken) => of.get(&broken.id()).map(|record| {
                            (*record, Outcome::new(End::Left, "internal", broken.to_string()))
                        }),
                    };
                    if let Some((record, outcome)) = ended {
                        fleet.handle(FleetHeard::Ended(record, outcome.clone()));
                        clean &= said(record, outcome);
                    }
                }
                _ = self.stops.next() => fleet.handle(FleetHeard::Stop),
            }
        }
    }

    async fn run(&mut self, record: RecordId, machine: &mut dyn crate::coordinator::Coordinator) -> Outcome {
        if self.stops.came() {
            return Outcome::new(End::Failed, "stopped", "it was told to stop");
        }
        let mut tell = |step: Step| host::tell(&Told::Step { record, step });
        perform::run(&self.world, record, machine, &mut self.stops, &mut tell).await
    }
}

/// One restore to its end.
async fn restored(
    world: Rc<World>,
    task: Task,
    restores: Restores,
    steps: mpsc::Sender<(RecordId, Step)>,
) -> (RecordId, Outcome) {
    let record = task.record;
    let Restores { mode, session, dry_run, grace } = restores;
    let mut machine = Restore::new(RestoreOrder { task, mode, session, dry_run, grace });
    // a reader that is too slow misses a step, never the end
    let mut tell = |step: Step| drop(steps.try_send((record, step)));
    let mut stops = match Stops::new() {
        Ok(stops) => stops,
        Err(error) => return (record, Outcome::new(End::Failed, "not_begun", error.to_string())),
    };
    let outcome = perform::run(&world, record, &mut machine, &mut stops, &mut tell).await;
    (record, outcome)
}

fn mode(text: &str) -> Result<RestoreMode, String> {
    [RestoreMode::Resume, RestoreMode::Repick]
        .into_iter()
        .find(|mode| mode.word() == text)
        .ok_or_else(|| "resume or repick".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        let idle = Policy::Idle(Duration::from_secs(600));
        for one in [Policy::Named, Policy::Accepted, Policy::Sweep, Policy::Force, idle] {
            assert_eq!(policy(&word(one)), Ok(one));
        }
        assert!(policy("idle:").is_err());
        assert!(policy("never").is_err());
    }
}
