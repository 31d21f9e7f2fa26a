//! Which life of which tmux server a pane's process belongs to: it was started by that server, and says so in its
//! environment. Nothing proven, no epoch: then the record is never retired or lost.

use std::path::{Path, PathBuf};

use crate::process;
use crate::record::ServerEpoch;
use crate::store::real_path;
use crate::tmux::{Probe, probe};

/// The epoch of the pane whose process this is; `socket` names the server if the caller knows it.
pub(super) fn of(pane_pid: i32, socket: Option<&Path>) -> Option<ServerEpoch> {
    let (socket, server_pid) = match socket {
        Some(socket) => (socket.to_owned(), None),
        None => started_in(pane_pid).or_else(own)?,
    };
    let pid = match (probe(&socket), server_pid) {
        (Probe::Listening(peer), told) => {
            let pid = peer.pid?;
            // The socket is another server's by now: the one that was told is over, or hidden behind a new one.
            if told.is_some_and(|told| told != pid) {
                return None;
            }
            pid
        }
        // A socket that was deleted or does not answer says nothing against a server that lives.
        (Probe::NoSocket | Probe::Refused | Probe::Unknown(_), Some(told)) if is_tmux(told) => told,
        (Probe::NoSocket | Probe::Refused | Probe::Unknown(_), _) => return None,
    };
    let server = process::identify(pid)?;
    Some(ServerEpoch {
        socket: real_path(&socket).into_os_string().into_string().ok()?,
        pid,
        started: server.started,
        started_at: None,
        boot_id: process::boot_id().ok()?,
        unknown: Default::default(),
    })
}

fn started_in(pane_pid: i32) -> Option<(PathBuf, Option<i32>)> {
    let tmux = process::tmux_of(pane_pid).ok().flatten()?;
    Some((tmux.socket, Some(tmux.server_pid)))
}

/// The server this command runs under.
fn own() -> Option<(PathBuf, Option<i32>)> {
    let me = i32::try_from(std::process::id()).ok()?;
    started_in(me)
}

fn is_tmux(pid: i32) -> bool {
    process::facts(pid).is_some_and(|facts| facts.comm.starts_with(b"tmux"))
}
