//! `ait runner`: the process of a run's pane. Started by `ait run`, never by hand.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::cli::{Exit, Failure, block_on_any};
use crate::lifecycle::exec::RESTORE_RECORD;
use crate::lifecycle::runner::{self, NotRun};
use crate::record::RecordId;
use crate::store::{Paths, Store};

/// Run an agent's one prompt to its end.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The agent's program and its arguments
    #[arg(last = true, required = true, num_args = 1..)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    let record: Option<RecordId> = std::env::var(RESTORE_RECORD).ok().and_then(|id| id.parse().ok());
    let Some(record) = record else {
        return Err(Failure::new(Exit::USAGE, format!("{RESTORE_RECORD} names no record")));
    };
    let store = Store::open(Paths::from_env()?);
    block_on_any(runner::born(&store, record))?.map_err(failure)?;
    runner::run(&store, record, &args.words).map(Exit::code).map_err(failure)
}

fn failure(why: NotRun) -> Failure {
    match why {
        NotRun::Store(error) => error.into(),
        NotRun::NotBorn(_) => Failure::of(Exit::code(121), &why),
        NotRun::Io(..) => Failure::of(Exit::code(127), &why),
    }
}
