//! What a server answers when it is listed: typed rows of sessions, windows and panes, names kept as bytes.

use bstr::BString;
use tmux_control::{PaneId, SessionId, WindowId};

mod parse;

pub use parse::{
    BadListing, LIST_PANES, LIST_SESSIONS, LIST_WINDOWS, NAME_LIMIT, pane_rows, session_rows, window_rows,
};

/// One line of `list-sessions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// `#{session_id}`.
    pub id: SessionId,
    /// `#{session_name}`, cut.
    pub name: BString,
    /// `#{session_attached}`: how many clients.
    pub attached: u32,
    /// `#{session_group}`, empty when the session is in none.
    pub group: BString,
}

/// One line of `list-windows -a`: one link of a window into a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRow {
    /// The session of this link.
    pub session: SessionId,
    /// `#{window_id}`.
    pub id: WindowId,
    /// `#{window_index}` of this link.
    pub index: i64,
    /// `#{window_active}`: the session's current window.
    pub active: bool,
    /// `#{window_name}`, cut.
    pub name: BString,
    /// `#{window_layout}`.
    pub layout: BString,
}

/// One line of `list-panes -a`: one pane, once per link of its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneRow {
    /// The session of this link.
    pub session: SessionId,
    /// The window of the pane.
    pub window: WindowId,
    /// `#{pane_id}`.
    pub id: PaneId,
    /// `#{pane_pid}`; absent for a dead pane of tmux 3.8 and later.
    pub pid: Option<i32>,
    /// `#{pane_dead}`.
    pub dead: bool,
    /// `#{pane_dead_status}`: the exit status, when tmux has it.
    pub status: Option<i32>,
    /// `#{pane_dead_signal}`: the signal's number, when tmux has it (3.3 and later).
    pub signal: Option<i32>,
    /// `#{pane_active}`.
    pub active: bool,
    /// `#{pane_title}`, cut.
    pub title: BString,
    /// `#{@aitask_record}`: the stamp, empty when there is none.
    pub stamp: BString,
    /// `#{@aitask_frozen}`: the stamp of a stand-in, empty when there is none.
    pub frozen: BString,
    /// `#{@aitask_standin_ready}` is set, and the pane was started as a viewer's.
    pub ready: bool,
    /// `#{@aitask_agent_session}`: the provider's session id as the hook told it, empty when there is none.
    pub agent_session: BString,
    /// `#{@aitask_restore_attempt}`: `<id>:<nonce>` of a restore that is not tracked yet, empty when there is none.
    pub attempt: BString,
    /// `remain-on-exit` as it holds for this pane, inherited or its own.
    pub remain_on_exit: RemainOnExit,
}

/// The values of `remain-on-exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainOnExit {
    /// The pane closes.
    Off,
    /// The pane stays, dead.
    On,
    /// The pane stays when its process failed (3.3 and later).
    Failed,
    /// The pane stays until a key is pressed (3.7 and later).
    Key,
}

impl RemainOnExit {
    /// Reads a value as tmux prints it; 3.2 prints the flag in a format as a number. `None` for an unknown word.
    #[must_use]
    pub fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"off" | b"0" => Some(Self::Off),
            b"on" | b"1" => Some(Self::On),
            b"failed" => Some(Self::Failed),
            b"key" => Some(Self::Key),
            _ => None,
        }
    }
}

/// A whole listing: made only when all three answers came and every row parsed, so it is complete by construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Every session, `_ait` among them.
    pub sessions: Vec<SessionRow>,
    /// Every link of every window.
    pub windows: Vec<WindowRow>,
    /// Every pane, once per link of its window.
    pub panes: Vec<PaneRow>,
}
