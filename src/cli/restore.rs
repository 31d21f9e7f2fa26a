//! `ait restore`: brings frozen agents back, each its own conversation.

use clap::Args as ClapArgs;

use super::targets::{Target, of_word};
use super::{Exit, Failure, print, progress, settings};
use crate::coordinator::{End, Outcome};
use crate::record::{PaneId, Record, RecordId, Records, State};
use crate::store::{Paths, Store};

/// Bring a frozen agent back: its own conversation, in its own pane.
///
/// Where its pane is gone it gets a new one in its window, its session, or a new session. Only the exact conversation is
/// resumed, never the latest; its last screen is kept until that conversation is proven to be back. The restore goes on in a
/// process of its own: closing this terminal does not stop it.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait restore 1a2b3c4d       this agent\n  ait restore %3             the one whose stand-in is in this \
                  pane\n  ait restore --all -n       what would be restored\n\n\
                  Exit codes: 0 verified, 1 failed, 8 another operation is at it, 12 refused for a named reason,\n\
                  15 it runs, but nothing proves which conversation it has."
)]
pub(super) struct Args {
    /// The agent: its record (`ait status`), its session's name, or its stand-in's pane (%N)
    #[arg(value_name = "ID|NAME|PANE", required_unless_present = "all", conflicts_with = "all")]
    target: Option<Target>,
    /// Every frozen agent, one after the other
    #[arg(long)]
    all: bool,
    /// resume its conversation, or repick: begin a new one in its place
    #[arg(long, default_value = "resume", value_parser = ["resume", "repick"])]
    mode: String,
    /// The session it goes to, by its name; made if there is none
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    session: Option<String>,
    /// Say what would be done and do nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// One line of JSON per step and per end
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    super::block_on(async move {
        settings::catalog()?;
        let store = Store::open(Paths::from_env()?);
        let snapshot = store.read()?;
        let records = match args.target {
            Some(target) => vec![one(&snapshot.records, target)?],
            None => frozen(&snapshot.records),
        };
        if records.is_empty() {
            print::text("no agent is frozen\n")?;
            return Ok(Exit::OK);
        }
        if args.all && !args.json && !args.dry_run {
            print::text(&plan(&snapshot.records, &records))?;
        }
        let mut arguments = vec!["restore".into(), "--mode".into(), args.mode.clone().into()];
        if let Some(session) = &args.session {
            // a name may begin with a dash
            arguments.push(format!("--session={session}").into());
        }
        if args.dry_run {
            arguments.push("--dry-run".into());
        }
        arguments.extend(records.iter().map(|record| record.to_string().into()));
        let ended = progress::follow(arguments, &snapshot.records, args.json).await?;
        Ok(exit(&ended))
    })
}

/// The record of a target.
fn one(records: &Records, target: Target) -> Result<RecordId, Failure> {
    let hint = "`ait status` shows the records";
    match target {
        Target::Record(word) => of_word(records, &word),
        Target::Pane(pane) => {
            let found: Vec<&Record> = records.iter().filter(|record| stands_in(record, pane)).collect();
            match found.as_slice() {
                [one] => Ok(one.id),
                [] => {
                    Err(Failure::new(Exit::FAILED, format!("no frozen agent stands in pane {pane}"))
                        .hint(hint))
                }
                several => {
                    let ids: Vec<String> = several.iter().map(|record| record.id.to_string()).collect();
                    let seen = format!("several servers have a pane {pane} of a frozen agent");
                    Err(Failure::new(Exit::FAILED, seen).hint(format!("name one: {}", ids.join(", "))))
                }
            }
        }
    }
}

fn stands_in(record: &Record, pane: PaneId) -> bool {
    matches!(record.state, State::Frozen { .. }) && record.location.pane_id() == Some(pane)
}

fn frozen(records: &Records) -> Vec<RecordId> {
    let frozen = records.iter().filter(|record| matches!(record.state, State::Frozen { .. }));
    frozen.map(|record| record.id).collect()
}

fn plan(records: &Records, ids: &[RecordId]) -> String {
    let line = |id: &RecordId| {
        let record = records.get(*id)?;
        let shown = |text: &str| print::shown(text.as_bytes());
        Some(format!("  {id}  {} ({})\n", shown(&record.window), shown(&record.agent_kind)))
    };
    let lines: String = ids.iter().filter_map(line).collect();
    format!("to restore: {}\n{lines}", ids.len())
}

/// The exit code: what went worst.
fn exit(ended: &[(RecordId, Outcome)]) -> Exit {
    let worst = |outcome: &Outcome| match outcome.end {
        End::Planned => Exit::OK,
        End::Done if outcome.word == "verified" => Exit::OK,
        End::Done => Exit::UNVERIFIED,
        End::Refused if outcome.word == "lease_held" => Exit::LEASE_HELD,
        End::Refused => Exit::REFUSED,
        End::Failed | End::Left => Exit::FAILED,
    };
    let order = [Exit::FAILED, Exit::LEASE_HELD, Exit::REFUSED, Exit::UNVERIFIED];
    let found = order.into_iter().find(|exit| ended.iter().any(|(_, outcome)| worst(outcome) == *exit));
    found.unwrap_or(Exit::OK)
}
