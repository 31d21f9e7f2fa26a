//! `ait recover`: brings lost agents back by hand, those among them that are only offered.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Exit, Failure, print, progress, settings};
use crate::client::{self, Found};
use crate::lifecycle::root::root_of;
use crate::process;
use crate::record::{Liveness, Location, Ours, Policy, Record, RecordId, Records, State, Verb};
use crate::store::{PATIENCE, Paths, Store, System};
use crate::supervisor::recovery::{Choice, Policies, choose};

/// Bring lost agents back: in their session, window and place, each in its own conversation.
///
/// What a crash or a reboot took comes back by itself while a supervisor runs, unless the settings say otherwise. This does
/// the rest, too: agents of a server that was stopped, and those whose recovery did not work. It goes on in a process of its
/// own: closing this terminal does not stop it.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait recover -n           what would come back, and with which command\n  ait recover              \
                        every lost agent\n  ait recover --root .     those of this project\n  ait recover 3fa9c1d0     this one"
)]
pub(super) struct Args {
    /// The records (`ait status`); all lost ones without
    #[arg(value_name = "ID")]
    records: Vec<RecordId>,
    /// Only those of the project this folder is in
    #[arg(long, value_name = "PATH", conflicts_with = "records")]
    root: Option<PathBuf>,
    /// Say what would be done and do nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// From now on do this by itself when these are lost, instead of what the settings say: auto, offer or off
    #[arg(long, value_name = "POLICY", requires = "records", conflicts_with = "dry_run", value_parser = policy)]
    set: Option<Policy>,
    /// One line of JSON per step and per end
    #[arg(long)]
    json: bool,
}

fn policy(text: &str) -> Result<Policy, String> {
    let known = [Policy::Auto, Policy::Offer, Policy::Off].into_iter().find(|policy| policy.word() == text);
    known.ok_or_else(|| "it is auto, offer or off".to_owned())
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let store = Store::open(Paths::from_env()?);
    if let Some(policy) = args.set {
        return set(&store, &args.records, policy);
    }
    let records = store.read()?.records.clone();
    let root = args.root.as_deref().map(root_of).transpose()?;
    let named = !args.records.is_empty();
    let wanted = if named { args.records.clone() } else { lost(&store, &records, root.as_deref())? };
    if wanted.is_empty() {
        let unseen = unseen(&store, &records, root.as_deref());
        if unseen > 0 {
            let words =
                format!("no supervisor runs, so nobody saw how {unseen} agents ended that no longer run");
            return Err(Failure::new(Exit::UNAVAILABLE, words).hint(
                "`ait setup` starts it (`ait supervise --detach` for this time); then this shows them",
            ));
        }
        if !args.json {
            print::text("no agent is lost\n")?;
        }
        return Ok(Exit::OK);
    }
    super::block_on(async move {
        let mut arguments = vec!["recover".into()];
        if args.dry_run {
            arguments.push("--dry-run".into());
        }
        arguments.extend(wanted.iter().map(|id| id.to_string().into()));
        Ok(progress::exit(&progress::follow(arguments, &records, args.json).await?))
    })
}

/// Every lost record, but those that are to stay as they are.
fn lost(store: &Store, records: &Records, root: Option<&std::path::Path>) -> Result<Vec<RecordId>, Failure> {
    let config = settings::config()?;
    let policies = Policies { servers: config.recover, agents: config.recover_agents };
    let book = store.book();
    let wanted = |record: &Record| {
        let chosen = choose(record, policies, book.get(&record.id));
        matches!(record.state, State::Frozen { lost: Some(_) }) && chosen != Some(Choice::Keep)
    };
    Ok(records
        .iter()
        .filter(|record| root.is_none_or(|root| std::path::Path::new(&record.root) == root))
        .filter(|record| wanted(record))
        .map(|record| record.id)
        .collect())
}

/// How many agents are live by their records and gone by their processes, with nobody to write it down.
fn unseen(store: &Store, records: &Records, root: Option<&std::path::Path>) -> usize {
    if !matches!(client::find(&store.paths().files()), Ok(Found::Nobody(_))) {
        return 0;
    }
    let gone = |record: &Record| {
        let agent = record.agent_process().filter(|agent| !agent.started.is_empty());
        record.state == State::Live
            && agent.is_some_and(|agent| process::liveness(&agent) == Liveness::Gone)
            && root.is_none_or(|root| std::path::Path::new(&record.root) == root)
    };
    records.iter().filter(|record| gone(record)).count()
}

/// Writes down what is to be done when these are lost.
fn set(store: &Store, ids: &[RecordId], policy: Policy) -> Result<Exit, Failure> {
    let records = store.read()?.records.clone();
    let ours = Ours { recover: Some(policy), ..Ours::default() };
    let steps: Vec<_> = ids
        .iter()
        .map(|id| {
            let at = records.get(*id).map_or(Location::Gone, |record| record.location.clone());
            (Some(*id), Verb::Enrich { at, ours: Box::new(ours.clone()), lost: None, replace: true })
        })
        .collect();
    for (id, done) in ids.iter().zip(store.apply(&steps, &System::here().facts(), PATIENCE)?) {
        done.map_err(|refused| Failure::new(Exit::FAILED, refused.to_string()))?;
        print::text(&format!("{id}  {}\n", policy.word()))?;
    }
    Ok(Exit::OK)
}
