//! Which tmux a process was started in, by its own environment.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::{ProcessError, environment};

/// `TMUX=socket,pid,session` and `TMUX_PANE=%N` of a process: where it was started, not necessarily where it is shown now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxEnv {
    /// The server's socket.
    pub socket: PathBuf,
    /// The server's pid.
    pub server_pid: i32,
    /// The number of the session (`$N`) it was started in.
    pub session: u32,
    /// The number of the pane (`%N`), if that is set and well-formed.
    pub pane: Option<u32>,
}

/// The tmux a process was started in; `None` when it was started in none.
pub fn tmux_of(pid: i32) -> Result<Option<TmuxEnv>, ProcessError> {
    let vars = environment(pid, &["TMUX", "TMUX_PANE"])?;
    let value = |name: &str| vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice());
    Ok(value("TMUX").and_then(|tmux| parse(tmux, value("TMUX_PANE"))))
}

/// The socket's path may hold commas, the two numbers behind it cannot: split from the end.
fn parse(tmux: &[u8], pane: Option<&[u8]>) -> Option<TmuxEnv> {
    let mut fields = tmux.rsplitn(3, |byte| *byte == b',');
    let session = number(fields.next()?)?;
    let server_pid = i32::try_from(number(fields.next()?)?).ok().filter(|pid| *pid > 0)?;
    let socket = fields.next().filter(|path| path.first() == Some(&b'/'))?;
    Some(TmuxEnv {
        socket: PathBuf::from(OsString::from_vec(socket.to_vec())),
        server_pid,
        session,
        pane: pane.and_then(|pane| pane.strip_prefix(b"%")).and_then(number),
    })
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_may_hold_commas() {
        let seen = parse(b"/tmp/a,b/default,123,7", Some(b"%42")).unwrap();
        assert_eq!(seen.socket, PathBuf::from("/tmp/a,b/default"));
        assert_eq!((seen.server_pid, seen.session, seen.pane), (123, 7, Some(42)));
    }

    #[test]
    fn what_tmux_did_not_write_is_not_read() {
        for odd in [&b""[..], b"/s", b"/s,1", b"/s,x,1", b"/s,0,1", b"s,1,2", b"/s,+1,2", b"/s,1,"] {
            assert_eq!(parse(odd, None), None, "{}", String::from_utf8_lossy(odd));
        }
        assert_eq!(parse(b"/s,1,2", Some(b"%x")).unwrap().pane, None);
    }
}
