//! `ait attach`: this terminal shows the session's pane.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;

use clap::Args as ClapArgs;

use super::envelope::{self, Trouble};
use super::face::Face;
use super::look::{Look, Status};
use super::{Format, Given, Here, found, view_of};
use crate::cli::{Exit, Failure, block_on_any, sockets};
use crate::tmux::{self, OneShot, Unanswered};

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
    let (store, found) = found(&args.session, &args.here)?;
    let record = &found.record;
    let look = block_on_any(Look::at(std::iter::once(&**record)))?;
    let (Status::Running, Some(pane), Some(server)) =
        (look.seen(record).status, record.location.pane_id(), &record.ait.server)
    else {
        let message = format!("session {} is not running", record.id);
        let resumable = view_of(&store, &found, &args.given())?.resumable;
        let hint = if resumable {
            format!("`ait resume {}` brings its conversation back", record.id)
        } else {
            format!("`ait logs {}` prints what is left of it", record.id)
        };
        return Err(Trouble::new(Exit::FAILED, "session-not-running", message).hint(hint));
    };
    let inside =
        sockets::own().is_some_and(|own| sockets::resolved(&own) == std::path::Path::new(&server.socket));
    let pane = pane.to_string();
    let words = if inside {
        let terminal = block_on_any(own_terminal(&server.socket))??;
        ["switch-client", "-c", &terminal, "-t", &pane].map(str::to_owned).to_vec()
    } else if std::io::stdin().is_terminal() {
        ["attach-session", "-t", &pane].map(str::to_owned).to_vec()
    } else {
        return Err(nowhere("standard input is no terminal that could show it"));
    };
    let binary = tmux::binary().map_err(Failure::from)?;
    let why = std::process::Command::new(binary).args(["-u", "-S", &server.socket]).args(words).exec();
    Err(Trouble::new(Exit::FAILED, "command-spawn-failed", format!("cannot run tmux: {why}")))
}

/// The terminal that shows the pane this process is in, by its client's name. Left to itself tmux takes any client at all where
/// none shows it, a supervisor's too.
async fn own_terminal(socket: &str) -> Result<String, Trouble> {
    let own = std::env::var("TMUX_PANE").unwrap_or_default();
    let server = OneShot::new(socket).map_err(Failure::from)?;
    let unanswered = |why: Unanswered| Trouble::new(Exit::UNAVAILABLE, "tmux-unavailable", why.to_string());
    let panes = server.run(["list-panes", "-a", "-F", "#{session_id} #{window_id} #{pane_id}"]).await;
    let format = "#{client_control_mode} #{client_activity} #{session_id} #{window_id} #{client_name}";
    let clients = server.run(["list-clients", "-F", format]).await.map_err(unanswered)?;
    let (panes, clients) = (panes.map_err(unanswered)?, String::from_utf8_lossy(&clients).into_owned());
    let terminal = showing(&own, &String::from_utf8_lossy(&panes), &clients);
    terminal.ok_or_else(|| nowhere("no terminal shows the pane this runs in"))
}

/// Of the clients that show this pane's session, the one last used: rather one that shows its window.
fn showing(own: &str, panes: &str, clients: &str) -> Option<String> {
    let places: Vec<(&str, &str)> =
        panes.lines().filter_map(|line| line.strip_suffix(own)?.strip_suffix(' ')?.split_once(' ')).collect();
    let here = |line: &str| {
        let mut words = line.strip_prefix("0 ")?.splitn(4, ' ');
        let (used, session, window, name) =
            (words.next()?.parse::<i64>().ok()?, words.next()?, words.next()?, words.next()?);
        let shows = places.contains(&(session, window));
        let is_near = places.iter().any(|place| place.0 == session);
        is_near.then(|| ((shows, used), name.to_owned()))
    };
    clients.lines().filter_map(here).max_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

fn nowhere(message: &str) -> Trouble {
    let hint = "`ait glance` prints its screen, `ait command` what to type in a terminal";
    Trouble::new(Exit::UNAVAILABLE, "not-a-terminal", message).hint(hint)
}

impl Args {
    fn given(&self) -> Given {
        Given { format: Format::Text, here: self.here.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::showing;

    #[test]
    fn the_terminal_that_shows_a_pane() {
        let panes = "$0 @0 %0\n$1 @1 %1\n$1 @2 %11\n$2 @2 %11\n";
        let clients =
            "1 90 $1 @1 client-7\n0 10 $0 @0 /dev/pts/0\n0 20 $1 @2 /dev/pts/1\n0 30 $1 @1 /dev/pts/2\n";
        for (own, terminal) in [
            ("%0", Some("/dev/pts/0")),
            // a client that shows its window goes before one that was used later
            ("%1", Some("/dev/pts/2")),
            ("%11", Some("/dev/pts/1")),
            ("%2", None),
            ("", None),
        ] {
            assert_eq!(showing(own, panes, clients).as_deref(), terminal, "{own}");
        }
        assert_eq!(showing("%1", panes, "1 90 $1 @1 client-7\n0 10 $0 @0 /dev/pts/0\n"), None);
        assert_eq!(showing("%1", panes, "0 10 $1 @2 /dev/pts/4\n").as_deref(), Some("/dev/pts/4"));
    }
}
