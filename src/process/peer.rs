//! Who is at the other end of a connected unix socket.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};

/// The process at the other end, as the kernel saw it when it connected (or, for the side that connected, when the other
/// began to listen). On Linux the peer of a connection to a tmux socket is the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its pid; `None` when it lives in a pid namespace that is not ours.
    pub pid: Option<i32>,
    /// Its effective user.
    pub uid: u32,
}

/// Asks the kernel who the peer of a connected unix socket is.
#[cfg(target_os = "linux")]
pub fn peer(socket: &impl AsFd) -> io::Result<Peer> {
    let seen = getsockopt(socket, sockopt::PeerCredentials)?;
    Ok(Peer { pid: Some(seen.pid()).filter(|pid| *pid > 0), uid: seen.uid() })
}

/// Asks the kernel who the peer of a connected unix socket is.
#[cfg(target_os = "macos")]
pub fn peer(socket: &impl AsFd) -> io::Result<Peer> {
    let seen = getsockopt(socket, sockopt::LocalPeerCred)?;
    let pid = getsockopt(socket, sockopt::LocalPeerPid)?;
    Ok(Peer { pid: Some(pid).filter(|pid| *pid > 0), uid: seen.uid() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_us() {
        let (left, _right) = std::os::unix::net::UnixStream::pair().unwrap();
        let seen = peer(&left).unwrap();
        assert_eq!(seen.pid, Some(std::process::id() as i32));
        assert_eq!(seen.uid, nix::unistd::geteuid().as_raw());
    }
}
