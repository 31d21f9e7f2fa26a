//! One fake tmux server: sessions, windows, panes and what of them a control client can ask for. It knows no time and no
//! supervisor; what it would notify is left in `marks` for the world to deliver.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ait::record::{ProcessId, RecordId};
use ait::supervisor::{Answer, Ask, Habits};
use ait::world::mark::Mark;
use ait::world::rows::{PaneRow, RemainOnExit, SessionRow, Snapshot, WindowRow};
use tmux_control::{PaneId, SessionId, WindowId};

use crate::kernel::How;

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    /// Window by index.
    pub(crate) links: BTreeMap<i64, u32>,
    pub(crate) current: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) panes: Vec<u32>,
    /// Counts changes of the layout.
    pub(crate) layout: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Pane {
    pub(crate) process: ProcessId,
    pub(crate) dead: bool,
    /// What tmux knows of the end.
    pub(crate) how: Option<How>,
    /// The end of its process, not collected by tmux yet (fault R9).
    pub(crate) unreaped: Option<How>,
    /// Another process holds the terminal open: it never turns dead.
    pub(crate) held: bool,
    pub(crate) stamp: String,
    /// `@aitask_frozen`, `@aitask_standin_ready`, `@aitask_restore_attempt`.
    pub(crate) frozen: String,
    pub(crate) ready: bool,
    pub(crate) attempt: String,
    /// `remain-on-exit` of the pane itself.
    pub(crate) own: Option<bool>,
    /// Whether that value is the user's.
    pub(crate) own_is_theirs: bool,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fall {
    Stopped,
    Crashed,
}

#[derive(Debug)]
pub(crate) struct Tmux {
    pub(crate) socket: PathBuf,
    pub(crate) id: ProcessId,
    pub(crate) boot: u32,
    pub(crate) started_at: i64,
    pub(crate) alive: bool,
    /// On its way out: no answers any more.
    pub(crate) exiting: bool,
    pub(crate) paused: bool,
    pub(crate) fall: Option<Fall>,
    /// The wall clock and the simulated microsecond of its end.
    pub(crate) fell_at: Option<(i64, u64)>,
    pub(crate) sessions: BTreeMap<u32, Session>,
    pub(crate) windows: BTreeMap<u32, Window>,
    pub(crate) panes: BTreeMap<u32, Pane>,
    /// Session, window and pane of `_ait`.
    pub(crate) ours: Option<(u32, u32, u32)>,
    /// The user keeps dead panes.
    pub(crate) keeps: bool,
    /// The user has a hook on the end of panes.
    pub(crate) hooks: bool,
    /// `exit-empty`.
    pub(crate) exit_empty: bool,
    /// A build with fault R9.
    pub(crate) utempter: bool,
    /// Clients of users in `_ait`.
    pub(crate) guests: Vec<String>,
    pub(crate) marks: Vec<Mark>,
    /// Something changed that only the heartbeat tells.
    pub(crate) stirred: bool,
    next: (u32, u32, u32),
}

impl Tmux {
    pub(crate) fn new(socket: PathBuf, id: ProcessId, boot: u32, started_at: i64) -> Self {
        Self {
            socket,
            id,
            boot,
            started_at,
            alive: true,
            exiting: false,
            paused: false,
            fall: None,
            fell_at: None,
            sessions: BTreeMap::new(),
            windows: BTreeMap::new(),
            panes: BTreeMap::new(),
            ours: None,
            keeps: false,
            hooks: false,
            exit_empty: true,
            utempter: false,
            guests: Vec::new(),
            marks: Vec::new(),
            stirred: false,
            next: (0, 0, 0),
        }
    }

    pub(crate) fn next_pane(&self) -> u32 {
        self.next.2
    }

    pub(crate) fn add_session(&mut self, name: &str) -> u32 {
        let id = self.next.0;
        self.next.0 += 1;
        self.sessions.insert(id, Session { name: name.to_owned(), links: BTreeMap::new(), current: 0 });
        self.marks.push(Mark::Sessions);
        id
    }

    /// A window with one pane that runs `process`; the pane's id is [`Self::next_pane`] before.
    pub(crate) fn add_window(&mut self, session: u32, name: &str, process: ProcessId) -> Option<(u32, u32)> {
        let index = self.free_index(session);
        self.add_window_at(session, index, name, process)
    }

    /// The same at that index, when it is free.
    pub(crate) fn add_window_at(
        &mut self,
        session: u32,
        index: i64,
        name: &str,
        process: ProcessId,
    ) -> Option<(u32, u32)> {
        let window = self.next.1;
        if self.sessions.get(&session)?.links.contains_key(&index) {
            return None;
        }
        let into = self.sessions.get_mut(&session)?;
        self.next.1 += 1;
        into.links.insert(index, window);
        into.current = index;
        self.windows.insert(window, Window { name: name.to_owned(), panes: Vec::new(), layout: 1 });
        self.marks.push(Mark::Layout);
        let pane = self.split(window, process)?;
        Some((window, pane))
    }

    pub(crate) fn split(&mut self, window: u32, process: ProcessId) -> Option<u32> {
        let pane = self.next.2;
        let into = self.windows.get_mut(&window)?;
        self.next.2 += 1;
        into.panes.push(pane);
        into.layout += 1;
        self.stirred = true;
        self.panes.insert(
            pane,
            Pane {
                process,
                dead: false,
                how: None,
                unreaped: None,
                held: false,
                stamp: String::new(),
                frozen: String::new(),
                ready: false,
                attempt: String::new(),
                own: None,
                own_is_theirs: false,
            },
        );
        Some(pane)
    }

    fn free_index(&self, session: u32) -> i64 {
        let links = self.sessions.get(&session).map(|session| &session.links);
        (0..).find(|index| links.is_none_or(|links| !links.contains_key(index))).unwrap_or_default()
    }

    /// Links the window into another session too.
    pub(crate) fn link(&mut self, window: u32, to: u32) {
        let index = self.free_index(to);
        if let Some(session) = self.sessions.get_mut(&to) {
            session.links.insert(index, window);
            self.marks.push(Mark::Layout);
        }
    }

    pub(crate) fn move_window(&mut self, window: u32, to: u32) {
        if !self.sessions.contains_key(&to) {
            return;
        }
        for session in self.sessions.values_mut() {
            session.links.retain(|_, linked| *linked != window);
        }
        self.link(window, to);
        self.drop_empty_sessions();
    }

    pub(crate) fn window_of(&self, pane: u32) -> Option<u32> {
        self.windows.iter().find(|(_, window)| window.panes.contains(&pane)).map(|(id, _)| *id)
    }

    /// The sessions a window is in, with its index there.
    pub(crate) fn places(&self, window: u32) -> Vec<(u32, i64)> {
        let of = |(id, session): (&u32, &Session)| {
            let at = session.links.iter().find(|(_, linked)| **linked == window)?;
            Some((*id, *at.0))
        };
        self.sessions.iter().filter_map(of).collect()
    }

    pub(crate) fn rename_window(&mut self, window: u32, name: &str) {
        if let Some(known) = self.windows.get_mut(&window) {
            known.name = name.to_owned();
            self.marks.push(Mark::WindowRenamed { window: WindowId(window), name: name.into() });
        }
    }

    pub(crate) fn rename_session(&mut self, session: u32, name: &str) {
        if let Some(known) = self.sessions.get_mut(&session) {
            known.name = name.to_owned();
            self.marks.push(Mark::SessionRenamed { session: SessionId(session), name: name.into() });
        }
    }

    /// Takes a pane away; its window and session go with their last one. The caller hangs up its terminal.
    pub(crate) fn remove_pane(&mut self, pane: u32) {
        if self.panes.remove(&pane).is_none() {
            return;
        }
        self.stirred = true;
        let mut empty = Vec::new();
        for (id, window) in &mut self.windows {
            let before = window.panes.len();
            window.panes.retain(|of| *of != pane);
            if window.panes.len() != before {
                window.layout += 1;
                self.marks.push(Mark::Layout);
            }
            if window.panes.is_empty() {
                empty.push(*id);
            }
        }
        for window in empty {
            self.windows.remove(&window);
            for session in self.sessions.values_mut() {
                session.links.retain(|_, linked| *linked != window);
            }
        }
        self.drop_empty_sessions();
    }

    /// Takes a session away. Gives the panes that go with it.
    pub(crate) fn remove_session(&mut self, session: u32) -> Vec<u32> {
        let Some(gone) = self.sessions.remove(&session) else { return Vec::new() };
        self.marks.push(Mark::Sessions);
        if self.ours.is_some_and(|ours| ours.0 == session) {
            self.ours = None;
        }
        let mut panes = Vec::new();
        for window in gone.links.into_values() {
            if self.places(window).is_empty()
                && let Some(window) = self.windows.get(&window)
            {
                panes.extend(window.panes.iter().copied());
            }
        }
        panes
    }

    fn drop_empty_sessions(&mut self) {
        let before = self.sessions.len();
        self.sessions.retain(|_, session| !session.links.is_empty());
        if self.sessions.len() != before {
            self.marks.push(Mark::Sessions);
            if self.ours.is_some_and(|ours| !self.sessions.contains_key(&ours.0)) {
                self.ours = None;
            }
        }
    }

    /// The sessions that are the user's.
    pub(crate) fn users_sessions(&self) -> Vec<u32> {
        self.sessions.keys().copied().filter(|id| self.ours.is_none_or(|ours| ours.0 != *id)).collect()
    }

    /// The panes in windows that are the user's.
    pub(crate) fn users_panes(&self) -> Vec<u32> {
        self.panes.keys().copied().filter(|id| self.ours.is_none_or(|ours| ours.2 != *id)).collect()
    }

    pub(crate) fn is_kept(&self, pane: &Pane) -> bool {
        pane.own.unwrap_or(self.keeps)
    }

    /// The three parts of a listing, taken one after the other.
    pub(crate) fn list(&self, part: usize, into: &mut Snapshot) {
        match part {
            0 => {
                let attached = |id: u32| u32::from(self.ours.is_some_and(|ours| ours.0 == id));
                into.sessions = self
                    .sessions
                    .iter()
                    .map(|(id, session)| SessionRow {
                        id: SessionId(*id),
                        name: session.name.as_str().into(),
                        attached: attached(*id),
                        group: "".into(),
                    })
                    .collect();
            }
            1 => {
                for (id, session) in &self.sessions {
                    for (index, window) in &session.links {
                        let Some(known) = self.windows.get(window) else { continue };
                        into.windows.push(WindowRow {
                            session: SessionId(*id),
                            id: WindowId(*window),
                            index: *index,
                            active: *index == session.current,
                            name: known.name.as_str().into(),
                            layout: format!("layout-{}", known.layout).into(),
                        });
                    }
                }
            }
            _ => {
                for (id, session) in &self.sessions {
                    for window in session.links.values() {
                        let panes = self.windows.get(window).map(|w| w.panes.as_slice()).unwrap_or_default();
                        for pane in panes {
                            into.panes.extend(self.row(*id, *window, *pane));
                        }
                    }
                }
            }
        }
    }

    fn row(&self, session: u32, window: u32, id: u32) -> Option<PaneRow> {
        let pane = self.panes.get(&id)?;
        let (status, signal) = match pane.how {
            Some(How::Exit(status)) => (Some(status), None),
            Some(How::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        Some(PaneRow {
            session: SessionId(session),
            window: WindowId(window),
            id: PaneId(id),
            pid: Some(pane.process.pid),
            dead: pane.dead,
            status,
            signal,
            active: true,
            title: "".into(),
            stamp: pane.stamp.as_str().into(),
            frozen: pane.frozen.as_str().into(),
            ready: pane.ready,
            agent_session: "".into(),
            attempt: pane.attempt.as_str().into(),
            remain_on_exit: if self.is_kept(pane) { RemainOnExit::On } else { RemainOnExit::Off },
        })
    }

    /// Carries out an order whose guard holds; listings and nudges are the world's.
    pub(crate) fn obey(&mut self, ask: &Ask) -> Answer {
        let done = |ok: bool| if ok { Answer::Done } else { Answer::NotDone };
        match ask {
            Ask::Listing | Ask::Nudge { .. } | Ask::Ping => Answer::Done,
            Ask::Pane(pane) => {
                let mut all = Snapshot::default();
                self.list(2, &mut all);
                Answer::Pane(all.panes.into_iter().find(|row| row.id == *pane))
            }
            // the world carries these out, where the coordinators' own deeds are
            Ask::UnstampFrozen { .. } | Ask::StampFrozen { .. } | Ask::RespawnStandin { .. } => {
                Answer::NotDone
            }
            Ask::Clients => Answer::Clients(Vec::new()),
            Ask::Lookers => Answer::Lookers(Vec::new()),
            Ask::Titles => Answer::Titles(Vec::new()),
            Ask::Say { .. } => Answer::Done,
            Ask::Habits(pane) => match self.panes.get(&pane.0) {
                Some(pane) => Answer::Habits(Habits { hooks: self.hooks, keeps: self.keeps, own: pane.own }),
                None => Answer::Failed(format!("can't find pane: {pane}")),
            },
            Ask::Stamp { pane, pid, record } => {
                let at = self.panes.get_mut(&pane.0).filter(|at| at.process.pid == *pid);
                done(at.map(|at| at.stamp = record.to_string()).is_some())
            }
            Ask::Unstamp { pane, record } => {
                done(self.stamped(*pane, *record).map(|at| at.stamp.clear()).is_some())
            }
            Ask::KeepDead { pane, record } => {
                done(self.stamped(*pane, *record).map(|at| at.own = Some(true)).is_some())
            }
            Ask::UnkeepDead { pane, record } => {
                done(self.stamped(*pane, *record).map(|at| at.own = None).is_some())
            }
            Ask::KillDead { pane, record } => {
                let dead = self.stamped(*pane, *record).is_some_and(|at| at.dead);
                if dead {
                    self.remove_pane(pane.0);
                }
                done(dead)
            }
            Ask::ExpelWindow { window, to, .. } => {
                let there = self.windows.contains_key(&window.0) && self.sessions.contains_key(&to.0);
                if there {
                    self.move_window(window.0, to.0);
                }
                done(there)
            }
            Ask::ExpelPane { pane, to, .. } => done(self.break_pane(pane.0, to.0)),
            Ask::ExpelClient { client, .. } => {
                let before = self.guests.len();
                self.guests.retain(|guest| guest.as_bytes() != client.as_slice());
                done(self.guests.len() != before)
            }
        }
    }

    fn break_pane(&mut self, pane: u32, to: u32) -> bool {
        let Some(from) = self.window_of(pane).filter(|_| self.sessions.contains_key(&to)) else {
            return false;
        };
        if let Some(window) = self.windows.get_mut(&from) {
            window.panes.retain(|of| *of != pane);
            window.layout += 1;
        }
        let window = self.next.1;
        self.next.1 += 1;
        self.windows.insert(window, Window { name: "broken".into(), panes: vec![pane], layout: 1 });
        self.link(window, to);
        true
    }

    pub(crate) fn stamped(&mut self, pane: PaneId, record: RecordId) -> Option<&mut Pane> {
        let stamp = record.to_string();
        self.panes.get_mut(&pane.0).filter(|pane| pane.stamp == stamp)
    }
}
