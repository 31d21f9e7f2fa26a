//! Who a server is, and who we are there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use tmux_control::{Command, PaneId, SessionId, Version};

use super::HOLD_SESSION;
use crate::process::ProcessId;

/// One life of a server, and our place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The server's process, proven: it answered after its start had been read. `None` where the system hides it (another pid
    /// namespace).
    pub server: Option<ProcessId>,
    /// `#{pid}`.
    pub pid: i32,
    /// `#{start_time}`: unix seconds.
    pub started_at: i64,
    /// `#{version}`; `None` when it is none that is known.
    pub version: Option<Version>,
    /// `#{version}` as told.
    pub version_text: BString,
    /// `#{socket_path}`, as the server was started with.
    pub socket: PathBuf,
    /// Our hidden session.
    pub session: SessionId,
    /// The pane of our hidden session that runs `ait hold`.
    pub hold: PaneId,
    /// The name of our client: `client-PID`.
    pub client: BString,
    /// The session a command without a target would have chosen before we came; `None` when there was none.
    pub default_session: Option<SessionId>,
}

/// A pane, its session and what was started in it.
const HOLDS: &str = "H\t#{pane_id}\t#{pane_pid}\t#{session_name}\t#{=4096:pane_start_command}";

/// What a plain process asks before the client attaches: the default target, and whether our session's name is taken.
pub(super) const BEFORE: [&str; 8] =
    ["display-message", "-p", "B\t#{session_id}", ";", "list-panes", "-a", "-F", HOLDS];

/// The session that a command without a target chooses, by the answer to [`BEFORE`]; `None` inside when there is none.
pub(super) fn default_session(answer: &[u8]) -> Option<Option<SessionId>> {
    fields(answer, b"B").map(|[session]| SessionId::parse(session))
}

/// Whether there is a session of our name, by the answer to [`BEFORE`].
pub(super) fn is_taken(answer: &[u8]) -> bool {
    answer
        .lines()
        .filter_map(|line| fields::<4>(line, b"H"))
        .any(|[_, _, session, _]| session == HOLD_SESSION.as_bytes())
}

/// The first question of an attached client.
pub(super) fn who() -> Command {
    Command::new("display-message")
        .args(["-p", "I\t#{pid}\t#{start_time}\t#{version}\t#{socket_path}\t#{session_id}\t#{client_name}"])
}

/// What the first question brings.
pub(super) struct Who {
    pub(super) pid: i32,
    pub(super) started_at: i64,
    pub(super) version: BString,
    pub(super) socket: PathBuf,
    pub(super) session: SessionId,
    pub(super) client: BString,
}

impl Who {
    pub(super) fn parse(answer: &[u8]) -> Option<Who> {
        let [pid, started_at, version, socket, session, client] = fields(answer, b"I")?;
        Some(Who {
            pid: number(pid).filter(|pid| *pid > 0)?,
            started_at: number(started_at)?,
            version: version.into(),
            socket: PathBuf::from(OsString::from_vec(socket.to_vec())),
            session: SessionId::parse(session)?,
            client: client.into(),
        })
    }
}

/// Asks for the panes of our session and what was started in them.
pub(super) fn own_panes(session: SessionId) -> Command {
    Command::new("list-panes").args(["-s", "-t", &session.to_string(), "-F", HOLDS])
}

/// The pane that holds the session, and the process tmux started in it: the oldest that was started with `hold`. Others may
/// have come to be there, older ones too, by commands without a target. `None` when the session is not ours at all.
pub(super) fn hold_pane(answer: &[u8]) -> Option<(PaneId, i32)> {
    answer
        .lines()
        .filter_map(|line| fields::<4>(line, b"H"))
        .filter(|[_, _, session, command]| *session == HOLD_SESSION.as_bytes() && holds(command))
        .filter_map(|[pane, pid, _, _]| Some((PaneId::parse(pane)?, number(pid)?)))
        .min()
}

/// Lets the pane go when its process ends, whatever the user has set for theirs.
pub(super) fn close_when_done(hold: PaneId) -> Command {
    Command::new("set-option").args(["-p", "-t", &hold.to_string(), "remain-on-exit", "off"])
}

/// tmux quotes what it prints of a command, and how differs by version.
fn holds(command: &[u8]) -> bool {
    command.find(b"hold").is_some_and(|at| command[at..].find(b"--owner").is_some())
}

/// The `N` fields behind the letter, of the first line that begins with it; the last keeps its tabs.
fn fields<'a, const N: usize>(answer: &'a [u8], letter: &[u8]) -> Option<[&'a [u8]; N]> {
    let line = answer.lines().find_map(|line| line.strip_prefix(letter)?.strip_prefix(b"\t"))?;
    let mut parts = line.splitn(N, |byte| *byte == b'\t');
    let fields: [Option<&[u8]>; N] = std::array::from_fn(|_| parts.next());
    fields.iter().all(Option::is_some).then(|| fields.map(Option::unwrap_or_default))
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    digits.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hold_is_found_among_strangers() {
        let answer = b"H\t%0\t10\t_ait\tvim hold\nH\t%7\t17\t_ait\t\"/opt/a b/ait\" hold --owner 1:2\n\
                       H\t%9\t19\t_ait\t\"/x/ait hold --owner 3:4\"\nH\t%1\t11\t_ait\t\n";
        assert_eq!(hold_pane(answer), Some((PaneId(7), 17)));
        assert_eq!(hold_pane(b"H\t%7\t17\tother\t/x/ait hold --owner 1:2\n"), None);
        assert_eq!(hold_pane(b""), None);
    }

    #[test]
    fn a_name_is_taken_whoever_took_it() {
        assert!(is_taken(b"B\t$0\nH\t%0\t1\tmain\t\nH\t%1\t2\t_ait\tvim\n"));
        assert!(!is_taken(b"B\t$0\nH\t%0\t1\tmain\t\nH\t%1\t2\t_aitx\tvim\n"));
    }

    #[test]
    fn an_identity_inside_other_lines() {
        let who = Who::parse(b"%message hi\nI\t12\t1700000000\t3.3a\t/tmp/a b/s\t$3\tclient-9\n").unwrap();
        assert_eq!((who.pid, who.session, who.client), (12, SessionId(3), "client-9".into()));
        assert!(Who::parse(b"I\t12\t1700000000\t3.3a\t/tmp/s\t$3\n").is_none());
        assert!(Who::parse(b"I\t0\t1700000000\t3.3a\t/tmp/s\t$3\tc\n").is_none());
    }

    #[test]
    fn a_server_without_sessions_has_no_default() {
        assert_eq!(default_session(b"B\t$4\nH\t%0\tmain\t\n"), Some(Some(SessionId(4))));
        assert_eq!(default_session(b"B\t\n"), Some(None));
        assert_eq!(default_session(b""), None);
    }
}
