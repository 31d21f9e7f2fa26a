//! What a notification means to a world: a dirty mark, or a new name. Owned and small, so that it can wait in a queue.

use bstr::BString;
use tmux_control::{Notification, PaneId, SessionId, WindowId};

use super::rows::NAME_LIMIT;

/// The name of the subscription that tells of output: its value changes at most once in [`FLOW_SPAN`] seconds while a window
/// has output, and not at all while none has. `%output` itself is not asked for: it would be all of it.
pub const FLOW: &str = "flow";
/// The span of time in it, in seconds.
pub const FLOW_SPAN: u64 = 30;
/// The name of the subscription that tells the titles of stamped panes: their beginnings, where providers put their marks.
/// Its value is the whole of them, once a second at most and only when one changed.
pub const TITLES: &str = "titles";
/// What it subscribes to: for each stamped pane its id and its title, parted by tabs, which no cut text holds.
pub const TITLES_FORMAT: &str = "#{S:#{W:#{P:#{?@aitask_record,#{pane_id}\t#{=24:pane_title}\t,}}}}";
/// Panes that are read of one value.
const TITLED_PANES: usize = 4096;
/// Windows that are read of one value.
const FLOW_WINDOWS: usize = 4096;

/// One notification, as far as a supervisor cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `%window-renamed` or `%unlinked-window-renamed`: the name is the truth, at once.
    WindowRenamed {
        /// The window.
        window: WindowId,
        /// Its name, whole.
        name: BString,
    },
    /// `%session-renamed`.
    SessionRenamed {
        /// The session.
        session: SessionId,
        /// Its name, whole.
        name: BString,
    },
    /// Something about windows, panes or layouts: read again. All adds and closes, linked or not, are this one mark, since a
    /// close may be of a window that lives on and an add of one long known.
    Layout,
    /// `%sessions-changed`: read again.
    Sessions,
    /// `%session-changed`: our own client is now in this session.
    Moved {
        /// The session.
        session: SessionId,
    },
    /// `%client-session-changed`: some client is now in this session.
    Client {
        /// The client's name: a tty path or `client-PID`.
        client: BString,
        /// The session.
        session: SessionId,
    },
    /// `%subscription-changed`: the heartbeat saw something that no notification told.
    Heartbeat,
    /// `%subscription-changed` of [`FLOW`]: in which span of time each window last had output.
    Flow(Vec<(WindowId, u64)>),
    /// `%subscription-changed` of [`TITLES`]: how the title of each stamped pane begins.
    Titles(Vec<(PaneId, BString)>),
    /// `%exit`: a hint that the end is near; end of stream is the end.
    Exit {
        /// The reason, empty when there is none.
        reason: BString,
    },
}

impl Mark {
    /// What a notification means here; `None` for those that tell nothing about sessions, windows, panes or clients.
    ///
    /// A name longer than [`NAME_LIMIT`] bytes might be cut by a listing, so it is not taken from the notification either:
    /// it becomes "read again", and both ways give the same name.
    #[must_use]
    pub fn from_notification(notification: &Notification<'_>) -> Option<Mark> {
        match *notification {
            Notification::WindowRenamed { window, name }
            | Notification::UnlinkedWindowRenamed { window, name } => Some(if name.len() > NAME_LIMIT {
                Mark::Layout
            } else {
                Mark::WindowRenamed { window, name: name.into() }
            }),
            Notification::SessionRenamed { session, name } => Some(if name.len() > NAME_LIMIT {
                Mark::Sessions
            } else {
                Mark::SessionRenamed { session, name: name.into() }
            }),
            Notification::LayoutChange { .. }
            | Notification::WindowAdd { .. }
            | Notification::WindowClose { .. }
            | Notification::UnlinkedWindowAdd { .. }
            | Notification::UnlinkedWindowClose { .. }
            | Notification::WindowPaneChanged { .. }
            | Notification::SessionWindowChanged { .. } => Some(Mark::Layout),
            Notification::SessionsChanged => Some(Mark::Sessions),
            Notification::SessionChanged { session, .. } => Some(Mark::Moved { session }),
            Notification::ClientSessionChanged { client, session, .. } => {
                Some(Mark::Client { client: client.into(), session })
            }
            // the number of attached clients of some session went down
            Notification::ClientDetached { .. } => Some(Mark::Sessions),
            Notification::SubscriptionChanged { name, value, .. } if name == FLOW.as_bytes() => {
                Some(Mark::Flow(flow(value)))
            }
            Notification::SubscriptionChanged { name, value, .. } if name == TITLES.as_bytes() => {
                Some(Mark::Titles(titles(value)))
            }
            Notification::SubscriptionChanged { .. } => Some(Mark::Heartbeat),
            Notification::Exit { reason } => Some(Mark::Exit { reason: reason.unwrap_or_default().into() }),
            Notification::Output { .. }
            | Notification::ExtendedOutput { .. }
            | Notification::Pause { .. }
            | Notification::Continue { .. }
            | Notification::PaneModeChanged { .. }
            | Notification::PasteBufferChanged { .. }
            | Notification::PasteBufferDeleted { .. }
            | Notification::Message { .. }
            | Notification::ConfigError { .. }
            | Notification::Unknown { .. } => None,
        }
    }
}

/// Reads `@1:59877000 @2:59877001`; what does not fit is left out.
fn flow(value: &[u8]) -> Vec<(WindowId, u64)> {
    let one = |word: &[u8]| {
        let (window, span) = std::str::from_utf8(word).ok()?.strip_prefix('@')?.split_once(':')?;
        Some((WindowId(window.parse().ok()?), span.parse().ok()?))
    };
    value.split(|byte| *byte == b' ').filter_map(one).take(FLOW_WINDOWS).collect()
}

/// Reads a value of [`TITLES_FORMAT`], `%5<TAB>title<TAB>%6<TAB>title<TAB>`; what does not fit is left out.
#[must_use]
pub fn titles(value: &[u8]) -> Vec<(PaneId, BString)> {
    let mut fields = value.split(|byte| *byte == b'\t');
    let mut titles = Vec::new();
    while let (Some(pane), Some(title)) = (fields.next(), fields.next()) {
        let id = std::str::from_utf8(pane).ok().and_then(|text| text.strip_prefix('%')?.parse().ok());
        if let Some(id) = id.filter(|_| titles.len() < TITLED_PANES) {
            titles.push((PaneId(id), title.into()));
        }
    }
    titles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(line: &[u8]) -> Option<Mark> {
        Mark::from_notification(&Notification::parse(line).unwrap())
    }

    #[test]
    fn closes_of_both_spellings_are_one_mark() {
        for line in [
            &b"%window-close @1"[..],
            b"%unlinked-window-close @1",
            b"%window-add @1",
            b"%layout-change @1   ",
        ] {
            assert_eq!(mark(line), Some(Mark::Layout), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_name_is_taken_whole_or_not_at_all() {
        let fits = vec![b'x'; NAME_LIMIT];
        let line = [b"%unlinked-window-renamed @3 ".as_slice(), &fits].concat();
        assert_eq!(mark(&line), Some(Mark::WindowRenamed { window: WindowId(3), name: fits.clone().into() }));
        assert_eq!(mark(&[line.as_slice(), b"x"].concat()), Some(Mark::Layout));
        let line = [b"%session-renamed $3 ".as_slice(), &fits].concat();
        assert_eq!(mark(&line), Some(Mark::SessionRenamed { session: SessionId(3), name: fits.into() }));
        assert_eq!(mark(&[line.as_slice(), b"x"].concat()), Some(Mark::Sessions));
    }

    #[test]
    fn output_is_told_by_window() {
        let told = mark(b"%subscription-changed flow $0 - - - : @0:359 @12:360 x @: ");
        assert_eq!(told, Some(Mark::Flow(vec![(WindowId(0), 359), (WindowId(12), 360)])));
        assert_eq!(mark(b"%subscription-changed hb $0 - - - : %0=0,12 "), Some(Mark::Heartbeat));
    }

    #[test]
    fn titles_are_told_by_pane() {
        let told =
            mark("%subscription-changed titles $0 - - - : %1\t⠋ Mock | x\t%12\t\t%13\ta : b\t".as_bytes());
        let title = |pane, text: &str| (PaneId(pane), BString::from(text));
        assert_eq!(told, Some(Mark::Titles(vec![title(1, "⠋ Mock | x"), title(12, ""), title(13, "a : b")])));
        assert_eq!(mark(b"%subscription-changed titles $0 - - - : "), Some(Mark::Titles(Vec::new())));
    }

    #[test]
    fn what_says_nothing_about_the_world_is_no_mark() {
        for line in [&b"%output %1 x"[..], b"%message hello", b"%paste-buffer-changed b\x1b", b"%new-word 1"]
        {
            assert_eq!(mark(line), None, "{}", line.escape_ascii());
        }
    }
}
