//! One tmux server as last heard of: its sessions, windows and panes.
//!
//! A world starts unknown, becomes complete with a whole [`Snapshot`], and is touched in between only by renames, which
//! a notification tells in full. Every other notification is a dirty mark: it says "read again", never what is true. A
//! world never forgets anything by itself; only a newer complete listing removes.

pub mod mark;
pub mod plan;
pub mod rows;

use std::collections::BTreeMap;

use bstr::BString;
use tmux_control::{PaneId, SessionId, WindowId};

use mark::Mark;
use rows::{PaneRow, Snapshot};

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `#{session_name}`.
    pub name: BString,
    /// How many clients are attached to it.
    pub attached: u32,
}

/// A window, with every session it is linked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// `#{window_name}`.
    pub name: BString,
    /// `#{window_layout}`.
    pub layout: BString,
    /// Where it is linked, lowest session first.
    pub links: Vec<Link>,
}

/// One link of a window into a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The session.
    pub session: SessionId,
    /// `#{window_index}` there.
    pub index: i64,
    /// Whether it is that session's current window.
    pub active: bool,
}

/// Where a pane is, in the words a record keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The session's name.
    pub session: &'a BString,
    /// The window.
    pub window: WindowId,
    /// Its name.
    pub window_name: &'a BString,
    /// Its index in that session.
    pub window_index: i64,
    /// Its layout.
    pub layout: &'a BString,
}

/// What a [`Mark`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Marked {
    /// The world is right as it is now.
    Current,
    /// Something changed that only a new listing can tell.
    ReadAgain,
}

/// One server's sessions, windows and panes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    own: SessionId,
    hold: PaneId,
    sessions: BTreeMap<SessionId, Session>,
    windows: BTreeMap<WindowId, Window>,
    panes: BTreeMap<PaneId, PaneRow>,
    complete: bool,
}

impl World {
    /// A world of which nothing is known but our own session `_ait` and its pane.
    #[must_use]
    pub fn unknown(own: SessionId, hold: PaneId) -> Self {
        Self {
            own,
            hold,
            sessions: BTreeMap::new(),
            windows: BTreeMap::new(),
            panes: BTreeMap::new(),
            complete: false,
        }
    }

    /// Whether a whole listing was ever taken.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Takes a whole listing: what it does not name is not there.
    pub fn take(&mut self, snapshot: Snapshot) {
        self.sessions = snapshot
            .sessions
            .into_iter()
            .map(|row| (row.id, Session { name: row.name, attached: row.attached }))
            .collect();
        self.windows.clear();
        for row in snapshot.windows {
            let window = self.windows.entry(row.id).or_insert_with(|| Window {
                name: row.name,
                layout: row.layout,
                links: Vec::new(),
            });
            window.links.push(Link { session: row.session, index: row.index, active: row.active });
        }
        for window in self.windows.values_mut() {
            window.links.sort_by_key(|link| (link.session, link.index));
        }
        // a window linked twice, or of grouped sessions, lists its panes once a link: a pane counts once, by its id
        self.panes = snapshot.panes.into_iter().map(|row| (row.id, row)).collect();
        self.complete = true;
    }

    /// Takes what was answered of one pane.
    pub fn put(&mut self, id: PaneId, row: PaneRow) {
        self.panes.insert(id, row);
    }

    /// Hears a notification. Names apply at once; everything else asks for a new listing.
    pub fn mark(&mut self, mark: &Mark) -> Marked {
        match mark {
            Mark::WindowRenamed { window, name } => match self.windows.get_mut(window) {
                Some(known) => {
                    known.name.clone_from(name);
                    Marked::Current
                }
                // break-pane tells the name before the window
                None => Marked::ReadAgain,
            },
            Mark::SessionRenamed { session, name } => match self.sessions.get_mut(session) {
                Some(known) => {
                    known.name.clone_from(name);
                    Marked::Current
                }
                None => Marked::ReadAgain,
            },
            Mark::Layout | Mark::Sessions | Mark::Moved { .. } | Mark::Heartbeat => Marked::ReadAgain,
            Mark::Client { .. } | Mark::Flow(_) | Mark::Titles(_) | Mark::Exit { .. } => Marked::Current,
        }
    }

    /// A pane, dead ones too.
    #[must_use]
    pub fn pane(&self, id: PaneId) -> Option<&PaneRow> {
        self.panes.get(&id)
    }

    /// Every pane but those of our own window.
    pub fn panes(&self) -> impl Iterator<Item = &PaneRow> {
        self.panes.values().filter(|pane| pane.id != self.hold)
    }

    /// Where a pane is. Of several links the one into the session named `preferred` counts, else the first that is not
    /// into `_ait`.
    #[must_use]
    pub fn place(&self, id: PaneId, preferred: &[u8]) -> Option<Place<'_>> {
        let pane = self.panes.get(&id)?;
        let window = self.windows.get(&pane.window)?;
        let named = |link: &&Link| self.sessions.get(&link.session).is_some_and(|s| s.name == preferred);
        let link = window
            .links
            .iter()
            .find(named)
            .or_else(|| window.links.iter().find(|link| link.session != self.own))
            .or_else(|| window.links.first())?;
        let session = self.sessions.get(&link.session)?;
        Some(Place {
            session: &session.name,
            window: pane.window,
            window_name: &window.name,
            window_index: link.index,
            layout: &window.layout,
        })
    }

    /// The user's sessions: all but `_ait`.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().filter(|(id, _)| **id != self.own).map(|(id, session)| (*id, session))
    }

    /// The user's windows: all that are linked into a session other than `_ait`.
    pub fn windows(&self) -> impl Iterator<Item = (WindowId, &Window)> {
        self.windows
            .iter()
            .filter(|(_, window)| window.links.iter().any(|link| link.session != self.own))
            .map(|(id, window)| (*id, window))
    }

    /// Whether `_ait` is the only session left, so that only we keep the server from ending.
    #[must_use]
    pub fn only_ours_left(&self) -> bool {
        self.complete && self.sessions.contains_key(&self.own) && self.sessions.len() == 1
    }

    /// Panes that came to be in `_ait` without being ours: whole windows first, then panes split into our own window.
    #[must_use]
    pub fn strangers(&self) -> Vec<Stranger> {
        let our_window = self.panes.get(&self.hold).map(|pane| pane.window);
        let mut strangers = Vec::new();
        for (id, window) in &self.windows {
            let here = window.links.iter().find(|link| link.session == self.own);
            let elsewhere = window.links.iter().any(|link| link.session != self.own);
            if let Some(link) = here.filter(|_| !elsewhere && our_window.is_some() && Some(*id) != our_window)
            {
                strangers.push(Stranger::Window { window: *id, selected: link.active });
            }
        }
        for pane in self.panes.values() {
            if Some(pane.window) == our_window && pane.id != self.hold {
                strangers.push(Stranger::Pane { pane: pane.id, selected: pane.active });
            }
        }
        strangers
    }

    /// Our own session.
    #[must_use]
    pub fn own_session(&self) -> SessionId {
        self.own
    }
}

/// Something of the user's that came to be in `_ait` because a command without a target chose it. `selected` says that it
/// was made to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// A whole window.
    Window {
        /// Which.
        window: WindowId,
        /// Whether it is the current window here.
        selected: bool,
    },
    /// A pane split into our own window.
    Pane {
        /// Which.
        pane: PaneId,
        /// Whether it is the active pane.
        selected: bool,
    },
}

#[cfg(test)]
mod tests;
