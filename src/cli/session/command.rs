//! `ait command`: what a person types to see a session.

use clap::Args as ClapArgs;

use super::envelope::{self, Answer};
use super::{Given, one};
use crate::cli::{Exit, Failure};

/// Print the command that attaches to a session, over ssh and on this machine.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  eval \"$(ait command review --host '')\"")]
pub(crate) struct Args {
    /// The session: its id, a beginning of it, or its name
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("command", &args.given, || {
        let view = one(&args.session, &args.given)?;
        let text = match &view.ssh_attach_command {
            Some(ssh) => format!("{ssh}\nlocal: {}\n", view.attach_command),
            None => format!("{}\n", view.attach_command),
        };
        Answer::new(&view, text)
    })
}
