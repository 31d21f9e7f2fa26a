//! `ait attach`: this terminal shows the session's pane.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;

use clap::Args as ClapArgs;

use super::envelope::{self, Trouble};
use super::face::Face;
use super::look::{Look, Status};
use super::{Format, Here, found};
use crate::cli::{Exit, Failure, block_on_any, sockets};
use crate::tmux;

/// Attach this terminal to a session's pane; within the same tmux, go there.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait attach review")]
pub(crate) struct Args {
    /// The session: its id, a beginning of it, or its name
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    here: Here,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    match attach(&args) {
        Ok(never) => match never {},
        Err(trouble) => envelope::refuse(Face::ours(), "attach", Format::Text, trouble),
    }
}

/// Becomes tmux.
fn attach(args: &Args) -> Result<std::convert::Infallible, Trouble> {
    args.here.choose_tmux();
    let (_, found) = found(&args.session, &args.here)?;
    let record = &found.record;
    let look = block_on_any(Look::at(std::iter::once(&**record)))?;
    let (Status::Running, Some(pane), Some(server)) =
        (look.seen(record).status, record.location.pane_id(), &record.ait.server)
    else {
        let message = format!("session {} is not running", record.id);
        let hint = format!("`ait resume {}` brings its conversation back", record.id);
        return Err(Trouble::new(Exit::FAILED, "session-not-running", message).hint(hint));
    };
    let inside =
        sockets::own().is_some_and(|own| sockets::resolved(&own) == std::path::Path::new(&server.socket));
    if !inside && !std::io::stdin().is_terminal() {
        let message = "standard input is no terminal that could show it";
        let hint = "`ait glance` prints its screen, `ait command` what to type in a terminal";
        return Err(Trouble::new(Exit::UNAVAILABLE, "not-a-terminal", message).hint(hint));
    }
    let verb = if inside { "switch-client" } else { "attach-session" };
    let binary = tmux::binary().map_err(Failure::from)?;
    let why =
        std::process::Command::new(binary).args(["-S", &server.socket, verb, "-t", &pane.to_string()]).exec();
    Err(Trouble::new(Exit::FAILED, "command-spawn-failed", format!("cannot run tmux: {why}")))
}
