//! Who listens on a socket, learned by connecting and hanging up.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::process::{Peer, peer};

/// What a connection to a tmux socket met. tmux notices nothing but a client that came and went.
#[derive(Debug)]
#[must_use]
pub enum Probe {
    /// A process listens; on Linux its pid is the server's.
    Listening(Peer),
    /// There is no such file. The server may live on all the same: someone may have deleted its socket.
    NoSocket,
    /// The file is there and nobody listens on it. On Linux that is proof that no server holds this socket: a full backlog
    /// is told as [`Probe::Unknown`] there, while other systems refuse then too.
    Refused,
    /// Anything else: the backlog is full, access is denied, the disk does not answer. Nothing follows from it.
    Unknown(io::Error),
}

/// Connects to a socket without waiting, and hangs up.
pub fn probe(path: &Path) -> Probe {
    match dial(path) {
        Ok(socket) => match peer(&socket) {
            Ok(peer) => Probe::Listening(peer),
            Err(error) => Probe::Unknown(error),
        },
        Err(Errno::NOENT | Errno::NOTDIR) => Probe::NoSocket,
        Err(Errno::CONNREFUSED) => Probe::Refused,
        Err(errno) => Probe::Unknown(errno.into()),
    }
}

fn dial(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags(), None)?;
    connect(&socket, &address)?;
    Ok(socket)
}

/// Not blocking: a full backlog answers at once. Closed in every program started meanwhile.
#[cfg(target_os = "linux")]
fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}

/// macOS has no such flags; a unix socket connects or refuses at once there.
#[cfg(target_os = "macos")]
fn flags() -> SocketFlags {
    SocketFlags::empty()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_listener_a_stale_socket_and_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        assert!(matches!(probe(&path), Probe::NoSocket));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(
            matches!(probe(&path), Probe::Listening(peer) if peer.pid == Some(std::process::id() as i32))
        );
        drop(listener);
        assert!(matches!(probe(&path), Probe::Refused));
        assert!(matches!(probe(&path.join("below")), Probe::NoSocket));
        assert!(
            matches!(probe(Path::new(&"x".repeat(200))), Probe::Unknown(_)),
            "a path that fits no address"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_backlog_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let mut held = Vec::new();
        let full = loop {
            match dial(&path) {
                Ok(dialled) => held.push(dialled),
                Err(errno) => break errno,
            }
            assert!(held.len() < 100, "the backlog never fills");
        };
        assert_eq!(full, Errno::AGAIN);
        assert!(matches!(probe(&path), Probe::Unknown(_)));
    }
}
