//! `ait command`: what a person types to see a session.

use clap::Args as ClapArgs;

use super::Meant;
use super::envelope::{self, Answer};
use crate::cli::{Exit, Failure};

/// Print the command that attaches to a session, over ssh and on this machine.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  eval \"$(ait command review --host '')\"")]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("command", &args.one.given, || {
        let view = args.one.view()?;
        let text = match &view.ssh_attach_command {
            Some(ssh) => format!("{ssh}\nlocal: {}\n", view.attach_command),
            None => format!("{}\n", view.attach_command),
        };
        Answer::new(&view, text)
    })
}
