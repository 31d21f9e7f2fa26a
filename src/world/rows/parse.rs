//! The lines that listings answer with, and the rows they become.
//!
//! Every line begins with a constant letter, so that none can look like a guard of the stream, and its fields are parted by
//! tabs, which tmux hands out raw on all versions. A free text is cut by `#{=N:…}`, which also drops control characters, so
//! that no name can hold a tab or a line feed of its own. A line that does not fit is an error: a listing is whole or it is
//! none.

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};
use tmux_control::{PaneId, SessionId, WindowId};

use super::{PaneRow, RemainOnExit, SessionRow, Snapshot, WindowRow};

/// How much of a name is kept, in columns for tmux and in bytes here. No character has more columns than bytes, so a name of
/// at most this many bytes is never cut.
pub const NAME_LIMIT: usize = 1024;

/// The format of `list-sessions`: one line a session.
pub const LIST_SESSIONS: &str =
    "S\t#{session_id}\t#{session_attached}\t#{=1024:session_group}\t#{=1024:session_name}";

/// The format of `list-windows -a`: one line a link of a window.
pub const LIST_WINDOWS: &str = "W\t#{session_id}\t#{window_id}\t#{window_index}\t#{window_active}\t#{window_layout}\t#{=1024:window_name}";

/// The format of `list-panes -a`: one line a pane and link of its window. Nothing in it makes tmux read `/proc`. The mark of a
/// viewer counts only where one was started: it outlives a respawn by the user.
pub const LIST_PANES: &str = "P\t#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_pid}\t#{pane_dead}\
     \t#{pane_dead_status}\t#{pane_dead_signal}\t#{pane_active}\t#{remain-on-exit}\
     \t#{=1024:@aitask_record}\t#{=1024:@aitask_frozen}\t#{?@aitask_standin_ready,#{m:*frozenagent*,#{pane_start_command}},}\
     \t#{=1024:@aitask_agent_session}\t#{=1024:@aitask_restore_attempt}\t#{=1024:pane_title}";

/// An answer that is not the listing it should be. The whole listing is then worth nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadListing {
    /// A line that does not fit its format.
    #[error("not a row of {listing}: {line:?}")]
    Row {
        /// `list-sessions`, `list-windows` or `list-panes`.
        listing: &'static str,
        /// The line.
        line: BString,
    },
    /// The three answers do not belong to one moment: something came or went between them. Read again.
    #[error("the listing is torn: {what} is named by one answer and missing in another")]
    Torn {
        /// The id.
        what: String,
    },
}

impl Snapshot {
    /// A whole listing out of the three answers, given as their bodies.
    ///
    /// # Errors
    /// A line that does not fit, or answers that do not fit together.
    pub fn parse(sessions: &[u8], windows: &[u8], panes: &[u8]) -> Result<Snapshot, BadListing> {
        let snapshot = Snapshot {
            sessions: session_rows(sessions)?,
            windows: window_rows(windows)?,
            panes: pane_rows(panes)?,
        };
        snapshot.check()?;
        Ok(snapshot)
    }

    /// Every window lies in a listed session, every pane in a listed window, and neither is empty.
    fn check(&self) -> Result<(), BadListing> {
        let torn = |what: String| Err(BadListing::Torn { what });
        let sessions: BTreeSet<SessionId> = self.sessions.iter().map(|row| row.id).collect();
        let windows: BTreeSet<WindowId> = self.windows.iter().map(|row| row.id).collect();
        let filled: BTreeSet<WindowId> = self.panes.iter().map(|row| row.window).collect();
        let linked: BTreeSet<SessionId> = self.windows.iter().map(|row| row.session).collect();
        if let Some(odd) = sessions.symmetric_difference(&linked).next() {
            return torn(odd.to_string());
        }
        if let Some(odd) = windows.symmetric_difference(&filled).next() {
            return torn(odd.to_string());
        }
        Ok(())
    }
}

/// The rows of `list-sessions -F` [`LIST_SESSIONS`].
///
/// # Errors
/// The first line that does not fit.
pub fn session_rows(body: &[u8]) -> Result<Vec<SessionRow>, BadListing> {
    rows("list-sessions", body, |fields: [&[u8]; 5]| {
        let [b"S", id, attached, group, name] = fields else { return None };
        Some(SessionRow {
            id: SessionId::parse(id)?,
            attached: number(attached)?,
            group: group.into(),
            name: name.into(),
        })
    })
}

/// The rows of `list-windows -a -F` [`LIST_WINDOWS`].
///
/// # Errors
/// The first line that does not fit.
pub fn window_rows(body: &[u8]) -> Result<Vec<WindowRow>, BadListing> {
    rows("list-windows", body, |fields: [&[u8]; 7]| {
        let [b"W", session, id, index, active, layout, name] = fields else { return None };
        Some(WindowRow {
            session: SessionId::parse(session)?,
            id: WindowId::parse(id)?,
            index: number(index)?,
            active: flag(active)?,
            layout: layout.into(),
            name: name.into(),
        })
    })
}

/// The rows of `list-panes -a -F` [`LIST_PANES`].
///
/// # Errors
/// The first line that does not fit.
pub fn pane_rows(body: &[u8]) -> Result<Vec<PaneRow>, BadListing> {
    rows("list-panes", body, |fields: [&[u8]; 16]| {
        let [b"P", session, window, id, pid, dead, status, signal, active, keep, stamps @ ..] = fields else {
            return None;
        };
        let [stamp, frozen, ready, agent_session, attempt, title] = stamps;
        Some(PaneRow {
            session: SessionId::parse(session)?,
            window: WindowId::parse(window)?,
            id: PaneId::parse(id)?,
            // a pane without a process has 0 or -1 there; 3.8 leaves it empty once the pane is dead
            pid: if pid.is_empty() { None } else { Some(number::<i32>(pid)?).filter(|pid| *pid > 0) },
            dead: flag(dead)?,
            status: if status.is_empty() { None } else { Some(number(status)?) },
            signal: if signal.is_empty() { None } else { Some(signal_number(signal)?) },
            active: flag(active)?,
            remain_on_exit: RemainOnExit::parse(keep)?,
            stamp: stamp.into(),
            frozen: frozen.into(),
            ready: ready == b"1",
            agent_session: agent_session.into(),
            attempt: attempt.into(),
            title: title.into(),
        })
    })
}

/// Reads each line of a body into a row of exactly `N` fields; the last one takes whatever tabs there are.
fn rows<const N: usize, T>(
    listing: &'static str,
    body: &[u8],
    row: impl Fn([&[u8]; N]) -> Option<T>,
) -> Result<Vec<T>, BadListing> {
    body.lines()
        // tmux may write a `%message` straight into an open answer; no row begins like that
        .filter(|line| !line.starts_with(b"%"))
        .map(|line| {
            let mut fields = line.splitn(N, |byte| *byte == b'\t');
            let taken: [Option<&[u8]>; N] = std::array::from_fn(|_| fields.next());
            let whole = taken.iter().all(Option::is_some);
            let fields = taken.map(Option::unwrap_or_default);
            if whole { row(fields) } else { None }
                .ok_or_else(|| BadListing::Row { listing, line: line.into() })
        })
        .collect()
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    digits.to_str().ok().filter(|text| !text.starts_with('+'))?.parse().ok()
}

fn flag(digit: &[u8]) -> Option<bool> {
    match digit {
        b"0" | b"" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

/// A number where the system has no names for signals (Linux), else a name with or without `SIG`.
fn signal_number(word: &[u8]) -> Option<i32> {
    if let Some(signal) = number::<i32>(word) {
        return (signal > 0).then_some(signal);
    }
    let name = word.to_ascii_uppercase();
    // the first fifteen have one number everywhere (POSIX and its history); others are told by name on no Linux
    match name.strip_prefix(b"SIG").unwrap_or(&name) {
        b"HUP" => Some(1),
        b"INT" => Some(2),
        b"QUIT" => Some(3),
        b"ILL" => Some(4),
        b"TRAP" => Some(5),
        b"ABRT" => Some(6),
        b"FPE" => Some(8),
        b"KILL" => Some(9),
        b"SEGV" => Some(11),
        b"PIPE" => Some(13),
        b"ALRM" => Some(14),
        b"TERM" => Some(15),
        // unknown here: no number, and no reason to throw the whole listing away
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSIONS: &[u8] = b"S\t$0\t1\t\tmain\nS\t$2\t0\tgroup\ta\tb\n";
    const WINDOWS: &[u8] = b"W\t$0\t@0\t1\t1\tb25d,80x24,0,0,0\t\nW\t$2\t@0\t3\t0\tb25d,80x24,0,0,0\t\n";
    const PANES: &[u8] =
        b"P\t$0\t@0\t%0\t123\t0\t\t\t1\toff\t0a1b2c3d\t\t1\tsid\t0a1b2c3d:n\ttitle\twith tab\n";

    #[test]
    fn rows_keep_their_names_as_bytes() {
        let snapshot = Snapshot::parse(SESSIONS, WINDOWS, PANES).unwrap();
        assert_eq!(snapshot.sessions[1].name, "a\tb");
        assert_eq!(snapshot.sessions[1].group, "group");
        assert_eq!((snapshot.windows[1].index, snapshot.windows[1].active), (3, false));
        let pane = &snapshot.panes[0];
        assert_eq!((pane.pid, pane.dead, pane.status, pane.signal), (Some(123), false, None, None));
        assert_eq!((&pane.stamp, pane.ready), (&"0a1b2c3d".into(), true));
        assert_eq!((&pane.agent_session, &pane.attempt), (&"sid".into(), &"0a1b2c3d:n".into()));
        assert_eq!(pane.title, "title\twith tab");
    }

    #[test]
    fn a_dead_pane_of_every_version() {
        let dead = |pid: &str, status: &str, signal: &str, keep: &str| {
            let line = format!("P\t$0\t@0\t%0\t{pid}\t1\t{status}\t{signal}\t1\t{keep}\t\t\t\t\t\t\n");
            let row = pane_rows(line.as_bytes()).unwrap().remove(0);
            (row.pid, row.status, row.signal, row.remain_on_exit)
        };
        // 3.2 has no pane_dead_signal and prints the flag as a number
        assert_eq!(dead("9", "", "", "1"), (Some(9), None, None, RemainOnExit::On));
        assert_eq!(dead("9", "3", "", "failed"), (Some(9), Some(3), None, RemainOnExit::Failed));
        assert_eq!(dead("9", "", "11", "on"), (Some(9), None, Some(11), RemainOnExit::On));
        assert_eq!(dead("", "", "KILL", "key"), (None, None, Some(9), RemainOnExit::Key));
        assert_eq!(dead("-1", "0", "", "on"), (None, Some(0), None, RemainOnExit::On));
    }

    #[test]
    fn a_line_that_does_not_fit_makes_no_listing() {
        for (sessions, windows, panes) in [
            (&b"error connecting"[..], WINDOWS, PANES),
            (&SESSIONS[..7], WINDOWS, PANES),
            (SESSIONS, b"W\t$0\t@0\t1\t1\n", PANES),
            (SESSIONS, WINDOWS, b"second line of a message\n"),
            (SESSIONS, WINDOWS, b"P\t$0\t@0\tx\t123\t0\t\t\t1\toff\t\t\t\t\t\t\n"),
            (SESSIONS, WINDOWS, b"P\t$0\t@0\t%0\t123\t2\t\t\t1\toff\t\t\t\t\t\t\n"),
            (SESSIONS, WINDOWS, b"P\t$0\t@0\t%0\t123\t0\t\t\t1\tmaybe\t\t\t\t\t\t\n"),
        ] {
            assert!(matches!(Snapshot::parse(sessions, windows, panes), Err(BadListing::Row { .. })));
        }
    }

    #[test]
    fn a_message_inside_an_answer_is_no_row() {
        let panes = [b"%message hello\n", PANES].concat();
        assert_eq!(Snapshot::parse(SESSIONS, WINDOWS, &panes), Snapshot::parse(SESSIONS, WINDOWS, PANES));
    }

    #[test]
    fn answers_of_two_moments_make_no_listing() {
        let torn = |result: Result<Snapshot, BadListing>| matches!(result, Err(BadListing::Torn { .. }));
        assert!(torn(Snapshot::parse(b"", WINDOWS, PANES)));
        assert!(torn(Snapshot::parse(SESSIONS, b"", PANES)));
        assert!(torn(Snapshot::parse(SESSIONS, WINDOWS, b"")));
        assert_eq!(Snapshot::parse(b"", b"", b""), Ok(Snapshot::default()));
    }

    #[test]
    fn no_cut_of_a_listing_is_taken_for_a_whole_one() {
        for cut in 0..PANES.len() - 1 {
            let result = Snapshot::parse(SESSIONS, WINDOWS, &PANES[..cut]);
            let whole = PANES[..cut].iter().filter(|byte| **byte == b'\t').count() >= 15;
            assert_eq!(result.is_ok(), whole, "cut at {cut}");
        }
    }
}
