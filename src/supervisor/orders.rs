//! What is asked of the servers: listings, stamps, the closing of dead panes, and the way out of `_ait` for strangers.

use std::path::{Path, PathBuf};

use bstr::BString;
use tmux_control::{PaneId, SessionId};

use super::decide::FEW;
use super::judge::{Dying, Verdict, judge};
use super::server::{Open, StrangerKey};
use super::{
    ANSWER, Action, Answer, Ask, Closing, ClosingStep, Habits, Keeping, LISTING_PAUSE, Now, StateName,
    Supervisor, Tag, Up,
};
use crate::record::{Host, Location, Record};
use crate::world::Stranger;

impl Supervisor {
    /// Everything the servers are to be asked now.
    pub(super) fn order(&mut self, now: Now) {
        let sockets: Vec<PathBuf> = self.servers.keys().cloned().collect();
        for socket in sockets {
            self.mark_silent(now, &socket);
            self.nudge(now, &socket);
            self.stamp(now, &socket);
            self.close_dead(now, &socket);
            self.expel(now, &socket);
            self.list(now, &socket);
        }
    }

    /// Asks on the server's client, if it has one; gives the question's number.
    pub(super) fn ask(&mut self, now: Now, socket: &Path, ask: Ask) -> Option<Tag> {
        self.numbers += 1;
        let tag = Tag(self.numbers);
        let up = self.servers.get_mut(socket).and_then(super::Server::up_mut)?;
        let mut listing = 0;
        if ask == Ask::Listing {
            up.asked += 1;
            listing = up.asked;
        }
        up.open.push_back(Open { tag, ask: ask.clone(), sent: now.mono, listing });
        self.actions.push_back(Action::Ask { socket: socket.to_owned(), link: up.link, tag, ask });
        Some(tag)
    }

    /// An answer came. Whatever it says, the server speaks.
    pub(super) fn answered(&mut self, now: Now, socket: &Path, tag: Tag, answer: Answer) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        let Some(at) = up.open.iter().position(|open| open.tag == tag) else { return };
        let Some(open) = up.open.remove(at) else { return };
        if std::mem::take(&mut up.silent) {
            self.news = true;
            // what was answered may be as old as the silence
            up.soil(now.mono);
        }
        match (open.ask, answer) {
            (Ask::Listing, Answer::Listing(snapshot)) if up.is_whole(&snapshot) => {
                if !up.world.is_complete() {
                    self.news = true;
                }
                up.world.take(snapshot);
                up.forget_closed();
                up.answered = up.answered.max(open.listing);
                up.not_before = None;
            }
            (Ask::Pane(pane), answer) => self.pane_told(now, socket, tag, pane, answer),
            (
                Ask::Listing,
                Answer::Listing(_)
                | Answer::Failed(_)
                | Answer::Done
                | Answer::NotDone
                | Answer::Habits(_)
                | Answer::Pane(_)
                | Answer::Clients(_)
                | Answer::Lookers(_)
                | Answer::Titles(_),
            ) => {
                up.soil(now.mono);
                up.not_before = Some(now.mono + LISTING_PAUSE);
            }
            (Ask::Habits(pane), answer) => {
                for ask in Self::habits_known(up, pane, &answer) {
                    self.ask(now, socket, ask);
                }
            }
            (Ask::Stamp { .. }, Answer::Done) => up.soil(now.mono),
            (Ask::KeepDead { pane, .. }, answer) => {
                let kept = if answer == Answer::Done { Keeping::Kept } else { Keeping::Theirs };
                up.keeping.insert(pane, kept);
            }
            (Ask::KillDead { pane, .. }, answer) => {
                if answer != Answer::Done {
                    up.left.insert(pane);
                }
                up.soil(now.mono);
                if let Some(closing) = &mut up.closing {
                    closing.step = ClosingStep::Settle { after: up.asked };
                }
            }
            (Ask::ExpelWindow { .. } | Ask::ExpelPane { .. } | Ask::ExpelClient { .. }, _) => {
                up.soil(now.mono)
            }
            (Ask::Nudge { .. }, _) => {}
            (Ask::RespawnStandin { pane, record, .. }, answer) => {
                if answer == Answer::NotDone
                    && let Some(row) = up.world.pane(pane).filter(|row| !row.dead)
                {
                    up.strange.insert((pane, record, row.pid.unwrap_or_default()));
                }
                up.soil(now.mono);
            }
            (Ask::StampFrozen { .. }, _) => up.soil(now.mono),
            (Ask::Clients, Answer::Clients(clients)) => self.greeted(now, socket, clients),
            (Ask::Lookers, Answer::Lookers(lookers)) => self.looked(tag, socket, &lookers),
            (Ask::Lookers, _) => self.looked(tag, socket, &[]),
            (Ask::Titles, Answer::Titles(titles)) => up.titles = titles.into_iter().collect(),
            (Ask::Say { newest, .. }, Answer::Done) => self.heard_word(socket, newest),
            (Ask::Ping | Ask::Clients | Ask::Titles | Ask::Say { .. }, _) => {}
            (
                Ask::Stamp { .. } | Ask::Unstamp { .. } | Ask::UnstampFrozen { .. } | Ask::UnkeepDead { .. },
                _,
            ) => {}
        }
    }

    /// Somebody's client is in a session now; out of ours it is sent.
    pub(super) fn client_moved(&mut self, socket: &Path, client: BString, session: SessionId) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        if session != up.world.own_session() {
            up.greet = true;
        } else if client != up.identity.client {
            up.guests.push(client);
        }
    }

    /// The last screen of a dead pane was kept (or there was none): now it may close.
    pub(super) fn screen_kept(&mut self, socket: &Path, pane: PaneId) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        if let Some(closing) = &mut up.closing
            && closing.pane == pane
            && closing.step == ClosingStep::Screen
        {
            closing.step = ClosingStep::Screened;
        }
    }

    /// What the user's settings mean for the pane; a dead one that stays by them keeps nothing of ours.
    fn habits_known(up: &mut Up, pane: PaneId, answer: &Answer) -> Vec<Ask> {
        // what is not known is not ours to change
        let unknown = Habits { hooks: true, keeps: true, own: None };
        let habits = if let Answer::Habits(habits) = answer { *habits } else { unknown };
        if let Some(closing) =
            up.closing.filter(|closing| closing.pane == pane && closing.step == ClosingStep::Habits)
        {
            let theirs = habits.keeps || up.keeping.get(&pane) == Some(&Keeping::Theirs);
            if !theirs {
                up.closing = Some(Closing { step: ClosingStep::Asked, ..closing });
                return Vec::new();
            }
            up.closing = None;
            up.left.insert(pane);
            // what is not known to be ours is not taken off
            return if matches!(answer, Answer::Habits(_)) {
                up.take_off(pane, closing.record, true)
            } else {
                Vec::new()
            };
        }
        let stamped_now = up.stamped.iter().any(|(stamped, _)| *stamped == pane);
        let ours = up.launched.contains(&pane) || !stamped_now;
        let keeping = match habits {
            Habits { hooks: true, .. } => Keeping::Theirs,
            // on a pane that was stamped before we came, an earlier supervisor set it, whatever holds for the window since; on
            // one that a restore or a start made, that did
            Habits { own: Some(true), .. } if ours => Keeping::Kept,
            Habits { own: Some(_), .. } | Habits { keeps: true, .. } => Keeping::Theirs,
            Habits { own: None, hooks: false, keeps: false } => Keeping::Free,
        };
        up.keeping.insert(pane, keeping);
        Vec::new()
    }

    /// A server that owes an answer for too long is unknown until it speaks.
    fn mark_silent(&mut self, now: Now, socket: &Path) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        if !up.silent && up.owed_since().is_some_and(|since| now.mono >= since + ANSWER) {
            up.silent = true;
            self.news = true;
        }
    }

    /// Makes tmux notice deaths that its answers do not show yet.
    fn nudge(&mut self, now: Now, socket: &Path) {
        let mut due = Vec::new();
        let mut others = Vec::new();
        for record in self.records().filter(|record| on(record, socket)) {
            others.push(record.id);
            let up = self.servers.get(socket).and_then(super::Server::up);
            let Some(up) = up.filter(|up| !up.silent && up.world.is_complete()) else { continue };
            let (Some(dying), Location::Pane { pane, process }) =
                (self.dying.get(&record.id), &record.location)
            else {
                continue;
            };
            if !dying.is_answered(up.answered) || !is_of(record, up) {
                continue;
            }
            let below_shell = matches!(record.ait.host, Some(Host::Shell { .. }));
            let row = up.world.pane(PaneId(pane.0));
            if judge(row, process.pid, below_shell, dying) != Verdict::Nudge {
                continue;
            }
            due.push((record.id, PaneId(pane.0)));
        }
        // whatever else they wait for, it is not the time
        for id in others.iter().filter(|id| !due.iter().any(|(due, _)| due == *id)) {
            if let Some(dying) = self.dying.get_mut(id) {
                dying.next = None;
            }
        }
        due.retain(|(id, _)| {
            self.dying.get_mut(id).is_some_and(|dying| {
                let next = *dying.next.get_or_insert(now.mono + dying.pause());
                now.mono >= next
            })
        });
        if due.is_empty() {
            return;
        }
        let by_child = due.iter().any(|(id, _)| self.dying.get(id).is_some_and(Dying::is_stubborn));
        self.ask(now, socket, Ask::Nudge { by_child });
        let small = due.len() <= FEW;
        for (id, pane) in due {
            let asked = if small { self.ask(now, socket, Ask::Pane(pane)) } else { None };
            let after = self.servers.get_mut(socket).and_then(super::Server::up_mut).map_or(0, |up| {
                if !small {
                    up.dirty.get_or_insert(now.mono);
                }
                up.asked
            });
            if let Some(dying) = self.dying.get_mut(&id) {
                dying.nudges += 1;
                dying.next = None;
                dying.after = after;
                dying.asked = asked;
                dying.told = false;
            }
        }
    }

    /// An answer about one pane: what it shows holds for every agent that was found dead before it was asked. That it is nowhere
    /// says a server on its way out, too: what became of it the next listing tells.
    fn pane_told(&mut self, now: Now, socket: &Path, tag: Tag, pane: PaneId, answer: Answer) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        let told = if let Answer::Pane(Some(row)) = answer {
            up.world.put(pane, row);
            true
        } else {
            up.soil(now.mono);
            false
        };
        for dying in self.dying.values_mut().filter(|dying| dying.asked == Some(tag)) {
            dying.told = told;
        }
    }

    /// Stamps the panes of live records, and keeps those whose own process is the agent.
    fn stamp(&mut self, now: Now, socket: &Path) {
        let mut asks = Vec::new();
        let mut launched = Vec::new();
        {
            let Some(up) = self.servers.get(socket).and_then(super::Server::up) else { return };
            for record in self.records().filter(|record| on(record, socket) && is_of(record, up)) {
                let Location::Pane { pane, process } = &record.location else { continue };
                let pane = PaneId(pane.0);
                if record.state.name() != StateName::Live
                    || process.started.is_empty()
                    || self.dying.contains_key(&record.id)
                {
                    continue;
                }
                let Some(row) = up.world.pane(pane).filter(|row| row.pid == Some(process.pid) && !row.dead)
                else {
                    continue;
                };
                if record.restore.last_launch == process.pid {
                    launched.push(pane);
                }
                let stamped = row.stamp == record.id.to_string();
                if !stamped
                    && !up.stamped.contains(&(pane, record.id))
                    && !self.claims(&row.stamp, socket, pane)
                {
                    asks.push(Ask::Stamp { pane, pid: process.pid, record: record.id });
                }
                let host_pane = record.ait.host == Some(Host::Pane)
                    && record.agent_process().is_some_and(|agent| agent.pid == process.pid);
                if !stamped || !host_pane {
                    continue;
                }
                match up.keeping.get(&pane) {
                    None => asks.push(Ask::Habits(pane)),
                    Some(Keeping::Free) => asks.push(Ask::KeepDead { pane, record: record.id }),
                    Some(Keeping::Asked | Keeping::Ordered | Keeping::Kept | Keeping::Theirs) => {}
                }
            }
        }
        if let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) {
            up.launched.extend(launched);
        }
        for ask in asks {
            if let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) {
                match &ask {
                    Ask::Stamp { pane, record, .. } => {
                        up.stamped.insert((*pane, *record));
                    }
                    Ask::Habits(pane) => {
                        up.keeping.insert(*pane, Keeping::Asked);
                    }
                    Ask::KeepDead { pane, .. } => {
                        up.keeping.insert(*pane, Keeping::Ordered);
                    }
                    Ask::Listing
                    | Ask::Ping
                    | Ask::Pane(_)
                    | Ask::Nudge { .. }
                    | Ask::Unstamp { .. }
                    | Ask::UnstampFrozen { .. }
                    | Ask::StampFrozen { .. }
                    | Ask::RespawnStandin { .. }
                    | Ask::UnkeepDead { .. }
                    | Ask::KillDead { .. }
                    | Ask::Clients
                    | Ask::Lookers
                    | Ask::Titles
                    | Ask::Say { .. }
                    | Ask::ExpelWindow { .. }
                    | Ask::ExpelPane { .. }
                    | Ask::ExpelClient { .. } => {}
                }
            }
            self.ask(now, socket, ask);
        }
    }

    /// Whether another record has that pane by right, so that its stamp is not ours to write over.
    fn claims(&self, stamp: &BString, socket: &Path, pane: PaneId) -> bool {
        self.records().any(|other| {
            stamp == other.id.to_string().as_bytes()
                && on(other, socket)
                && other.location.pane_id().is_some_and(|at| at.0 == pane.0)
        })
    }

    /// Closes the dead panes of agents whose end is in the archive: one at a time, each followed by one more round trip.
    fn close_dead(&mut self, now: Now, socket: &Path) {
        let known = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let writing = matches!(self.writing, super::Writing::UnderWay { .. });
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        if let Some(closing) = up.closing {
            match closing.step {
                ClosingStep::Habits | ClosingStep::Screen | ClosingStep::Kill => return,
                ClosingStep::Asked => {
                    up.closing = Some(Closing { step: ClosingStep::Screen, ..closing });
                    let Closing { pane, record, .. } = closing;
                    self.actions.push_back(Action::KeepScreen { socket: socket.to_owned(), pane, record });
                    return;
                }
                // a window change and a kill never go together (fault R1)
                ClosingStep::Screened if up.is_moving() => return,
                ClosingStep::Screened => {
                    up.closing = Some(Closing { step: ClosingStep::Kill, ..closing });
                    self.ask(now, socket, Ask::KillDead { pane: closing.pane, record: closing.record });
                    return;
                }
                ClosingStep::Settle { after } if up.answered <= after => return,
                ClosingStep::Settle { .. } => up.closing = None,
            }
        }
        // a record may be on its way back into the store
        if writing {
            return;
        }
        if let Some((pane, record)) = up.orphan(&self.buried, &known) {
            up.closing = Some(Closing { pane, record, step: ClosingStep::Habits });
            self.ask(now, socket, Ask::Habits(pane));
        }
    }

    /// Sends what came to be in `_ait` to where it would have been without us.
    fn expel(&mut self, now: Now, socket: &Path) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        let killing = |closing: Closing| match closing.step {
            ClosingStep::Kill | ClosingStep::Settle { .. } => true,
            ClosingStep::Habits | ClosingStep::Asked | ClosingStep::Screen | ClosingStep::Screened => false,
        };
        if up.closing.is_some_and(killing) {
            return;
        }
        let strangers = up.world.strangers();
        up.expelled.retain(|(key, _)| strangers.iter().any(|stranger| StrangerKey::from(*stranger) == *key));
        let Some(to) = refuge(up) else { return };
        let mut asks: Vec<Ask> = std::mem::take(&mut up.guests)
            .into_iter()
            .map(|client| Ask::ExpelClient { client, to })
            .collect();
        for stranger in strangers {
            if up.expelled.insert((StrangerKey::from(stranger), to.0)) {
                asks.push(match stranger {
                    Stranger::Window { window, selected } => Ask::ExpelWindow { window, to, selected },
                    Stranger::Pane { pane, selected } => Ask::ExpelPane { pane, to, selected },
                });
            }
        }
        for ask in asks {
            self.ask(now, socket, ask);
        }
    }

    /// Lists the server again if its world may be wrong.
    fn list(&mut self, now: Now, socket: &Path) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        if !up.wants_listing(now.mono) {
            return;
        }
        up.dirty = None;
        self.ask(now, socket, Ask::Listing);
    }
}

/// Whether the record's pane is on that socket.
fn on(record: &Record, socket: &Path) -> bool {
    record.ait.server.as_ref().is_some_and(|epoch| Path::new(&epoch.socket) == socket)
}

/// Whether the record belongs to the life of the server that is attached.
fn is_of(record: &Record, up: &Up) -> bool {
    record.ait.server.as_ref().is_some_and(|epoch| epoch.process() == up.identity.process)
}

/// The session a stranger would have come to without us: the user's default one, else any of theirs.
fn refuge(up: &Up) -> Option<SessionId> {
    let theirs = |id: &SessionId| up.world.sessions().any(|(session, _)| session == *id);
    up.identity.default_session.filter(theirs).or_else(|| up.world.sessions().map(|(id, _)| id).next())
}
