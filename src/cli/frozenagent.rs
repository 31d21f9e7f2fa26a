//! `ait frozenagent`: the viewer, which stands in a frozen agent's pane and shows what was on its screen.

use clap::Args as ClapArgs;

use super::{Exit, Failure, block_on};
use crate::record::RecordId;
use crate::store::Paths;
use crate::tui::frozenagent::{self, Ended, ViewerError};

/// Show what was on a frozen agent's screen; without a record, all frozen agents.
///
/// This is also what stands in a frozen agent's pane until the agent is back. It only looks; `?` lists its keys.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Environment:\n  NO_COLOR    show no colours until `r` is pressed")]
pub(super) struct Args {
    /// The record, by its id (`ait record list --state frozen`).
    #[arg(long, value_name = "ID")]
    record: Option<RecordId>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let paths = Paths::from_env()?;
    block_on(async move {
        match frozenagent::run(paths, args.record).await? {
            Ended::Quit => Ok(Exit::OK),
            // as a shell tells of an end by a signal
            Ended::Signal(number) => {
                Ok(Exit::code(u8::try_from(number).map_or(1, |number| 128 + (number & 127))))
            }
        }
    })
}

impl From<ViewerError> for Failure {
    fn from(error: ViewerError) -> Self {
        match error {
            ViewerError::NoTerminal => {
                Self::of(Exit::UNAVAILABLE, &error).hint("`ait record list --state frozen` prints the list")
            }
            ViewerError::Io { .. } => Self::of(Exit::FAILED, &error),
        }
    }
}
