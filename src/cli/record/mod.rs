//! `ait record <verb>`: one verb on the record store, one result line, the exit codes of the format it shares.
//!
//! 0 ok · 2 usage · 3 lock busy · 4 corrupt store or no such record · 5 refused · 6 nonce mismatch · 7 session mismatch ·
//! 8 lease held. Values in text lines are escaped, so that no name can forge a line.

mod epoch;
mod observe;
mod settle;
mod shown;
mod verbs;

use clap::Parser;
use serde::Serialize;

use super::{Exit, Failure, print};
use crate::config::Config;
use crate::record::{Done, Record, RecordId, Refused, StateName, Step};
use crate::store::{PATIENCE, Paths, Store, StoreError, System};

/// Arguments of `ait record`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Print JSON instead of a result line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: verbs::VerbArgs,
}

/// Runs one verb.
pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let store = Store::open(Paths::from_env().map_err(failed)?).keeping(keep());
    match args.verb {
        verbs::VerbArgs::List { state, root } => shown::list(&store, state, root.as_deref(), args.json),
        verbs::VerbArgs::Show { id } => shown::show(&store, id, args.json),
        verbs::VerbArgs::Reconcile { dry_run } => settle::reconcile(&store, dry_run, args.json),
        verbs::VerbArgs::Purge { observed } => settle::purge(&store, observed.as_deref(), args.json),
        verb => {
            let system = System::here();
            let steps = verb.steps(&store)?;
            let answers = store.apply(&steps, &system.facts(), PATIENCE).map_err(failed)?;
            tell(&store, &steps, answers, args.json)
        }
    }
}

/// How long retired records are kept; settings that cannot be read let nothing go early.
fn keep() -> std::time::Duration {
    Config::load().map_or(std::time::Duration::MAX, |loaded| loaded.config.archive.keep)
}

/// A store's error with the exit code of `ait record`.
pub(super) fn failed(error: StoreError) -> Failure {
    let failure = Failure::of(Exit::code(error.record_exit()), &error);
    match error {
        StoreError::Busy { .. } => {
            Failure::new(Exit::code(3), format!("LOCK_BUSY: {error}")).hint("try again")
        }
        StoreError::Corrupt { .. } | StoreError::BadRecords { .. } => {
            failure.hint("`ait store repair` shows what would be put back; nothing was written")
        }
        StoreError::Newer { .. } => failure.hint("a newer ait wrote it: use that one"),
        StoreError::Io { .. } | StoreError::NotOurs { .. } | StoreError::NoHome => failure,
    }
}

/// What a verb came to, as JSON.
#[derive(Debug, Serialize)]
struct Told<'a> {
    /// The result line.
    result: String,
    /// The exit code.
    exit: u8,
    id: Option<RecordId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<crate::record::Nonce>,
    /// The record as it is now, where it still is.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
}

/// Prints one line per verb; the exit code is that of the first that was refused.
fn tell(
    store: &Store,
    steps: &[Step],
    answers: Vec<Result<Done, Refused>>,
    json: bool,
) -> Result<Exit, Failure> {
    // Only shown: a verb that took effect is not undone by a read that fails.
    let now = if json { store.read().ok() } else { None };
    let mut exit = 0;
    let mut told = Vec::new();
    for ((id, _), answer) in steps.iter().zip(&answers) {
        let one = match answer {
            Ok(done) => Told {
                result: done.outcome.line(done.id),
                exit: done.outcome.exit_code(),
                id: Some(done.id),
                nonce: done.outcome.nonce(),
                record: now.as_ref().and_then(|now| now.records.get(done.id)).map(AsRef::as_ref),
            },
            Err(refused) => {
                Told { result: refused.line(), exit: refused.exit_code(), id: *id, nonce: None, record: None }
            }
        };
        if exit == 0 {
            exit = one.exit;
        }
        told.push(one);
    }
    if json {
        match told.as_slice() {
            [one] => print::json(one)?,
            _ => print::json(&told)?,
        }
    } else {
        print::text(&told.iter().map(|one| one.result.clone() + "\n").collect::<String>())?;
    }
    Ok(Exit::code(exit))
}

/// A value as it stands in a text line: no byte of it can end the field or the line.
pub(super) fn escaped(text: &str) -> String {
    print::shown(text.replace('\\', "\\\\").as_bytes()).replace('|', "\\x7c")
}

/// A state by its name in the file.
fn parse_state(text: &str) -> Result<StateName, String> {
    StateName::ALL
        .into_iter()
        .find(|state| state.word() == text)
        .ok_or_else(|| "one of live, freezing, frozen, restoring, aborting".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_its_field_or_its_line() {
        let shown = escaped("a|b\tc\nUPSERTED:00000000|created\\x7c\u{1b}[31m\u{202e}");
        assert_eq!(shown, "a\\x7cb\\tc\\nUPSERTED:00000000\\x7ccreated\\\\x7c\\x1b[31m\\u{202e}");
    }
}
