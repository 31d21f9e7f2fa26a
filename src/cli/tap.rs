//! `ait tap`: what stands behind the pipe of a pane. Started through tmux's `pipe-pane`, never by hand.

use clap::Args as ClapArgs;

use super::{Exit, Failure, settings};
use crate::lifecycle::tap::{self, Answering};
use crate::record::{PaneId, RecordId};
use crate::store::{Paths, Store};

/// Read what a pane writes, and keep what its agent tells its terminal of its turn.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The record whose agent is in the pane
    record: RecordId,
    /// Tell when there was output, too
    #[arg(long)]
    timing: bool,
    /// Answer a program that asks whether OSC 7501 is understood: through this server …
    #[arg(long, requires_all = ["pane", "process", "tty"])]
    socket: Option<String>,
    /// … this pane …
    #[arg(long)]
    pane: Option<PaneId>,
    /// … while this process is what tmux started in it …
    #[arg(long, value_name = "PID")]
    process: Option<i32>,
    /// … on this terminal
    #[arg(long)]
    tty: Option<String>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let store = Store::open(Paths::from_env()?);
    // settings that are broken are no business of a pane's; those that are built in are known without them
    let catalog = settings::catalog().unwrap_or_default();
    let answering = match (args.socket, args.pane, args.process, args.tty) {
        (Some(socket), Some(pane), Some(process), Some(tty)) => {
            Some(Answering { socket, pane: pane.to_string(), process, tty })
        }
        _ => None,
    };
    tap::run(&store, args.record, &catalog, answering.as_ref(), args.timing, std::io::stdin().lock())?;
    Ok(Exit::OK)
}
