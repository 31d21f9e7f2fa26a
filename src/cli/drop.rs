//! `ait drop`: forgets a frozen agent and closes its stand-in.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::targets::{self, Target};
use super::{Exit, Failure, progress};
use crate::store::{Paths, Store};

/// Forget a frozen agent: its pane is closed, its record and what was on its screen are removed.
///
/// The conversation itself stays with its provider, and the archive keeps its id. A running agent is dropped only with --force,
/// which ends it first.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The agent: its record (`ait status`), its session's name, or its pane (%N)
    #[arg(value_name = "ID|NAME|PANE")]
    target: Target,
    /// End a running agent first, whatever it is doing
    #[arg(long)]
    force: bool,
    /// The server of the pane, by its socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// One line of JSON per step and for the end
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    super::block_on(async move {
        let store = Store::open(Paths::from_env()?);
        let socket: Vec<PathBuf> = args.socket.into_iter().collect();
        let record = targets::one(&store, &args.target, &socket).await?;
        let mut arguments = vec!["drop".into()];
        if args.force {
            arguments.push("--force".into());
        }
        arguments.push(record.to_string().into());
        Ok(progress::exit(&progress::follow(arguments, &store.read()?.records, args.json).await?))
    })
}
