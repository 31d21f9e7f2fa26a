//! What a notification line says, and the line back from it.
//!
//! Fields are bytes borrowed from the line: names and values are neither decoded nor checked for UTF-8. Printing
//! with [`Notification::write_to`] gives back the line, byte for byte.

pub(crate) mod grammar;

use std::io::Write as _;

use crate::{PaneId, SessionId, WindowId};

/// One notification, without its line feed.
///
/// Fields called `name`, `text`, `value` or `reason` run to the end of the line: they may be empty and may begin or
/// end with spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notification<'a> {
    /// `%output`: what a pane wrote, escaped; see [`unescape`](crate::unescape). Only panes of windows linked to the
    /// client's session, and never with `no-output` or `pause-after`.
    Output {
        /// The pane that wrote.
        pane: PaneId,
        /// Escaped bytes.
        value: &'a [u8],
    },
    /// `%extended-output`: the same under `pause-after` (3.2).
    ExtendedOutput {
        /// The pane that wrote.
        pane: PaneId,
        /// How long tmux held the bytes back, in milliseconds.
        age: u64,
        /// Fields that a later tmux may put between the age and the colon, with their leading space; empty today.
        future: &'a [u8],
        /// Escaped bytes.
        value: &'a [u8],
    },
    /// `%pause`: tmux stopped sending this pane's output to this client (3.2).
    Pause {
        /// The pane.
        pane: PaneId,
    },
    /// `%continue`: tmux sends this pane's output again; what lay between is lost (3.2).
    Continue {
        /// The pane.
        pane: PaneId,
    },
    /// `%layout-change`: panes of a window came, went or changed size.
    LayoutChange {
        /// The window.
        window: WindowId,
        /// For [`Layout::parse`](crate::Layout::parse); empty when the layout is longer than 8,191 bytes.
        layout: &'a [u8],
        /// The same as shown: one cell while zoomed.
        visible: &'a [u8],
        /// Window flags such as `*`, `-`, `Z`; often empty.
        flags: &'a [u8],
    },
    /// `%window-add`: linked into the client's session.
    WindowAdd {
        /// The window.
        window: WindowId,
    },
    /// `%window-close`: unlinked from the client's session; the window may live on elsewhere.
    WindowClose {
        /// The window.
        window: WindowId,
    },
    /// `%unlinked-window-add`: a window of another session.
    UnlinkedWindowAdd {
        /// The window.
        window: WindowId,
    },
    /// `%unlinked-window-close`: up to 3.7c also sent for a killed window of the client's own session.
    UnlinkedWindowClose {
        /// The window.
        window: WindowId,
    },
    /// `%window-renamed`: may come before the window's `%window-add`.
    WindowRenamed {
        /// The window.
        window: WindowId,
        /// As tmux stores it.
        name: &'a [u8],
    },
    /// `%unlinked-window-renamed`: a window of another session.
    UnlinkedWindowRenamed {
        /// The window.
        window: WindowId,
        /// As tmux stores it.
        name: &'a [u8],
    },
    /// `%window-pane-changed`: the active pane of a window of any session (2.5).
    WindowPaneChanged {
        /// The window.
        window: WindowId,
        /// Its active pane.
        pane: PaneId,
    },
    /// `%session-window-changed`: the current window of any session (2.5).
    SessionWindowChanged {
        /// The session.
        session: SessionId,
        /// Its current window.
        window: WindowId,
    },
    /// `%session-changed`: the session this client is now attached to.
    SessionChanged {
        /// The session.
        session: SessionId,
        /// As tmux stores it.
        name: &'a [u8],
    },
    /// `%client-session-changed`: another client attached or switched (2.5).
    ClientSessionChanged {
        /// A terminal's path or `client-` and a process id.
        client: &'a [u8],
        /// The session it is now attached to.
        session: SessionId,
        /// That session's name.
        name: &'a [u8],
    },
    /// `%client-detached`: another client left (3.2).
    ClientDetached {
        /// A terminal's path or `client-` and a process id.
        client: &'a [u8],
    },
    /// `%session-renamed`: any session. The man page omits the id, which has always been there since 2.4.
    SessionRenamed {
        /// The session.
        session: SessionId,
        /// As tmux stores it.
        name: &'a [u8],
    },
    /// `%sessions-changed`: some session was made or destroyed.
    SessionsChanged,
    /// `%pane-mode-changed`: a pane of any session entered or left a mode (2.5).
    PaneModeChanged {
        /// The pane.
        pane: PaneId,
    },
    /// `%paste-buffer-changed` (3.4). The name may hold raw line feeds on 3.4 to 3.6b, and then breaks the line.
    PasteBufferChanged {
        /// The buffer.
        name: &'a [u8],
    },
    /// `%paste-buffer-deleted` (3.4).
    PasteBufferDeleted {
        /// The buffer.
        name: &'a [u8],
    },
    /// `%subscription-changed`: a format given to `refresh-client -B` has a new value (3.2).
    SubscriptionChanged {
        /// The subscription; anything but a colon.
        name: &'a [u8],
        /// The client's session.
        session: SessionId,
        /// The window, unless the subscription is about the session.
        window: Option<WindowId>,
        /// The window's index in that session.
        index: Option<u32>,
        /// The pane, where the subscription is about panes.
        pane: Option<PaneId>,
        /// Raw; a line feed in it breaks the line and the rest arrives as stray text.
        value: &'a [u8],
    },
    /// `%message`: `display-message` without `-p`, by whomever (3.4).
    Message {
        /// The text; a line feed in it breaks the line.
        text: &'a [u8],
    },
    /// `%config-error`: an error in a configuration file (3.4).
    ConfigError {
        /// The text.
        text: &'a [u8],
    },
    /// `%exit`: this client ends. A hint only: it may be missing, glued to a cut line, or followed by more lines.
    Exit {
        /// Why, where tmux says so. It cannot tell a detach from a dead session or a killed server.
        reason: Option<&'a [u8]>,
    },
    /// A notification this crate does not know.
    Unknown {
        /// The word after `%`; not empty.
        name: &'a [u8],
        /// All that follows the word, with its leading space.
        rest: &'a [u8],
    },
}

/// A line with the name of a known notification whose fields do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed {}: {}", .name, .line.escape_ascii())]
pub struct BadLine {
    /// The notification, with its `%`; `%` alone for a line that is no notification at all.
    pub name: &'static str,
    /// The whole line.
    pub line: Vec<u8>,
}

impl<'a> Notification<'a> {
    /// Reads one line, given without its line feed.
    ///
    /// # Errors
    /// The line does not begin with `%` and a word, or the fields of a known notification do not fit. The names of
    /// guards (`%begin`, `%end`, `%error`) are no notifications.
    pub fn parse(line: &'a [u8]) -> Result<Self, BadLine> {
        grammar::notification(line).map_err(|name| BadLine { name, line: line.to_vec() })
    }

    /// Appends the line, without a line feed.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Output { pane, value } => put(out, format_args!("%output {pane} "), value),
            Self::ExtendedOutput { pane, age, future, value } => {
                put(out, format_args!("%extended-output {pane} {age}"), future);
                put(out, format_args!(" : "), value);
            }
            Self::Pause { pane } => put(out, format_args!("%pause {pane}"), b""),
            Self::Continue { pane } => put(out, format_args!("%continue {pane}"), b""),
            Self::LayoutChange { window, layout, visible, flags } => {
                put(out, format_args!("%layout-change {window} "), layout);
                put(out, format_args!(" "), visible);
                put(out, format_args!(" "), flags);
            }
            Self::WindowAdd { window } => put(out, format_args!("%window-add {window}"), b""),
            Self::WindowClose { window } => put(out, format_args!("%window-close {window}"), b""),
            Self::UnlinkedWindowAdd { window } => {
                put(out, format_args!("%unlinked-window-add {window}"), b"")
            }
            Self::UnlinkedWindowClose { window } => {
                put(out, format_args!("%unlinked-window-close {window}"), b"")
            }
            Self::WindowRenamed { window, name } => put(out, format_args!("%window-renamed {window} "), name),
            Self::UnlinkedWindowRenamed { window, name } => {
                put(out, format_args!("%unlinked-window-renamed {window} "), name);
            }
            Self::WindowPaneChanged { window, pane } => {
                put(out, format_args!("%window-pane-changed {window} {pane}"), b"");
            }
            Self::SessionWindowChanged { session, window } => {
                put(out, format_args!("%session-window-changed {session} {window}"), b"");
            }
            Self::SessionChanged { session, name } => {
                put(out, format_args!("%session-changed {session} "), name)
            }
            Self::ClientSessionChanged { client, session, name } => {
                put(out, format_args!("%client-session-changed "), client);
                put(out, format_args!(" {session} "), name);
            }
            Self::ClientDetached { client } => put(out, format_args!("%client-detached "), client),
            Self::SessionRenamed { session, name } => {
                put(out, format_args!("%session-renamed {session} "), name)
            }
            Self::SessionsChanged => put(out, format_args!("%sessions-changed"), b""),
            Self::PaneModeChanged { pane } => put(out, format_args!("%pane-mode-changed {pane}"), b""),
            Self::PasteBufferChanged { name } => put(out, format_args!("%paste-buffer-changed "), name),
            Self::PasteBufferDeleted { name } => put(out, format_args!("%paste-buffer-deleted "), name),
            Self::SubscriptionChanged { name, session, window, index, pane, value } => {
                put(out, format_args!("%subscription-changed "), name);
                put(out, format_args!(" {session}"), b"");
                put_or_dash(out, window);
                put_or_dash(out, index);
                put_or_dash(out, pane);
                put(out, format_args!(" : "), value);
            }
            Self::Message { text } => put(out, format_args!("%message "), text),
            Self::ConfigError { text } => put(out, format_args!("%config-error "), text),
            Self::Exit { reason: None } => put(out, format_args!("%exit"), b""),
            Self::Exit { reason: Some(reason) } => put(out, format_args!("%exit "), reason),
            Self::Unknown { name, rest } => {
                put(out, format_args!("%"), name);
                out.extend_from_slice(rest);
            }
        }
    }

    /// The line, without a line feed.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        self.write_to(&mut line);
        line
    }
}

fn put(out: &mut Vec<u8>, head: std::fmt::Arguments<'_>, tail: &[u8]) {
    out.write_fmt(head).expect("writing to a Vec cannot fail");
    out.extend_from_slice(tail);
}

fn put_or_dash(out: &mut Vec<u8>, field: Option<impl std::fmt::Display>) {
    match field {
        Some(field) => put(out, format_args!(" {field}"), b""),
        None => out.extend_from_slice(b" -"),
    }
}
