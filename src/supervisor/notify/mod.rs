//! Telling the user: when a session asks, is done, was lost or is back, and nobody looks at it.
//!
//! What there is to tell is parked, one thing a session, until it may be told: sessions are told of once in `SESSION`, all
//! together as `limit` says. What is over by then is not told, and what is not told is counted. Just before, the server is asked
//! once what its clients show: a window that somebody looks at is told by itself. Where no server answers, nobody looks.
//!
//! What happened before this supervisor began is not news.

mod limit;
pub mod note;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::BString;
use tmux_control::{PaneId, WindowId};

use self::limit::Bucket;
use self::note::{Asked, Item, Note, Reason, Subject, What, Words};
use super::{ANSWER, Action, Ask, Now, Record, RecordId, StateName, StoreView, Supervisor, Tag};
use crate::api::NotifyStatus;
use crate::record::{LossCause, Records};
use crate::turn::{Moment, State};

/// A session is told of once in this span.
const SESSION: Duration = Duration::from_secs(5);
/// What one signal says first, another may say better, or otherwise, a moment later: what does not stay so long was nothing.
const SETTLE: Duration = Duration::from_millis(300);
/// As many at once are told one by one; of more it is told in one.
const ONE_BY_ONE: usize = 3;
/// A question in the provider's words comes just before the event it belongs to, and is of use only so long.
const QUESTION: Duration = Duration::from_secs(60);
/// How much earlier than its event it may come.
const BEFORE: Duration = Duration::from_secs(2);

/// What a client of the user's shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looker {
    /// Its window.
    pub window: WindowId,
    /// The active pane there.
    pub pane: PaneId,
    /// Only that pane is shown.
    pub zoomed: bool,
    /// The terminal has the focus, as far as it says.
    pub focused: bool,
    /// The terminal.
    pub tty: BString,
}

/// How telling stands.
#[derive(Debug, Default)]
pub(super) struct Notifying {
    /// What is told; nothing if nobody wants to be told.
    on: BTreeSet<Reason>,
    /// When this supervisor began.
    began: Option<Moment>,
    /// What each live agent was at when that was last heard.
    heard: BTreeMap<RecordId, Heard>,
    /// Questions in the providers' words, never on disk.
    questions: BTreeMap<RecordId, (Moment, Words)>,
    parked: BTreeMap<RecordId, Parked>,
    /// When each was last told of.
    told: BTreeMap<RecordId, Duration>,
    bucket: Bucket,
    /// Not told since the last time something was.
    held: u64,
    counts: NotifyStatus,
}

/// What an agent was at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heard {
    runtime: String,
    phase: State,
    /// It has been at work since it last waited.
    busy: bool,
    /// When its last turn ended.
    completed: Option<Moment>,
    /// The newest request that was known.
    newest: Option<Moment>,
}

/// Something to be told.
#[derive(Debug, Clone)]
struct Parked {
    reason: Reason,
    at: Moment,
    /// When it was parked.
    since: Duration,
    subject: Subject,
    /// What it was lost by.
    cause: Option<LossCause>,
    /// Where somebody may look at it.
    place: Option<(PathBuf, PaneId)>,
    sight: Sight,
    /// Terminals that show something else.
    ttys: Vec<BString>,
}

/// Whether anybody looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Nobody was asked.
    Unasked,
    /// The server was asked.
    Asked(Tag, Duration),
    /// Nobody does.
    Clear,
}

impl Supervisor {
    /// The same, which tells the user of these.
    #[must_use]
    pub fn telling(mut self, on: BTreeSet<Reason>) -> Self {
        self.notifying.on = on;
        self
    }

    /// What became of telling, if anybody wants to be told.
    pub(super) fn notify_status(&self) -> Option<NotifyStatus> {
        let waiting = self.notifying.parked.len();
        (!self.notifying.on.is_empty()).then(|| NotifyStatus { waiting, ..self.notifying.counts.clone() })
    }

    /// A note was told, or not.
    pub(super) fn notified(&mut self, result: Result<(), String>) {
        let counts = &mut self.notifying.counts;
        match result {
            Ok(()) => counts.told += 1,
            Err(_) => counts.failed += 1,
        }
        counts.trouble = result.err();
        self.news = true;
    }

    /// A hook says what its agent is about to ask.
    pub(super) fn question(&mut self, now: Now, id: RecordId, text: Words) {
        if self.notifying.on.contains(&Reason::NeedsInput) && self.record(id).is_some() {
            self.notifying.questions.insert(id, (now.moment, text));
        }
    }

    /// Something was heard of an agent's turn: whether that is to be told.
    pub(super) fn turn_news(&mut self, now: Now, id: RecordId) {
        if self.notifying.on.is_empty() {
            return;
        }
        let began = *self.notifying.began.get_or_insert(now.moment);
        let Some(turns) = self.turning.of(id) else { return };
        let before = self.notifying.heard.get(&id).filter(|before| before.runtime == turns.runtime);
        let is_new = before.is_some() || turns.phase_at > began;
        let view = turns.view(turns.heard_at);
        let completed = turns.last.as_ref().map(|last| last.completed_at);
        let requests = || turns.attention.iter().map(|one| one.requested_at);
        let reason = match turns.phase {
            State::NeedsInput => {
                let stands = before.is_some_and(|before| before.phase == State::NeedsInput);
                let anew = match (requests().min(), before.and_then(|before| before.newest)) {
                    (Some(oldest), Some(newest)) => oldest > newest,
                    (Some(_) | None, _) => !stands,
                };
                anew.then_some(Reason::NeedsInput)
            }
            State::Waiting => {
                let ended = completed > before.map_or(Some(began), |before| before.completed);
                (before.is_some_and(|before| before.busy) || ended).then_some(Reason::Waiting)
            }
            State::Starting | State::Working | State::Unknown => None,
        };
        let busy = match turns.phase {
            State::Working | State::NeedsInput => true,
            State::Starting | State::Waiting => false,
            State::Unknown => before.is_some_and(|before| before.busy),
        };
        let newest = requests().max().max(before.and_then(|before| before.newest));
        let heard = Heard { runtime: turns.runtime.clone(), phase: turns.phase, busy, completed, newest };
        let at = match &view.attention {
            Some(attention) => attention.requested_at,
            None => turns.phase_at,
        };
        self.notifying.heard.insert(id, heard);
        if let Some(reason) = reason.filter(|_| is_new)
            && let Some(record) = self.record(id)
        {
            let parked = Parked::new(now, reason, at, record);
            self.park(now, id, parked);
        }
    }

    /// The store changed: what was lost or is back.
    pub(super) fn record_news(&mut self, now: Now, before: &StoreView, records: &Records) {
        if self.notifying.on.is_empty() {
            return;
        }
        let began = *self.notifying.began.get_or_insert(now.moment);
        for record in records.iter() {
            let was = before.records.get(record.id);
            let parked = match (record.state.lost(), record.ait.recovered) {
                (Some(lost), _) if was.is_none_or(|was| was.state.lost().is_none()) => {
                    let at = Moment::from_millis(lost.at.unix().saturating_mul(1000));
                    // one that comes from the archive may be an old story
                    if was.is_none() && at.unix() < began.unix() {
                        continue;
                    }
                    let seen = was.map_or(record, |was| was);
                    let cause = Some(lost.cause);
                    Parked { cause, subject: Subject::of(seen), ..Parked::new(now, Reason::Lost, at, seen) }
                }
                (None, Some(back)) if was.is_some_and(|was| was.ait.recovered.is_none()) => {
                    let at = Moment::from_millis(back.at.unix().saturating_mul(1000));
                    let cause = Some(back.cause);
                    Parked { cause, ..Parked::new(now, Reason::Recovered, at, record) }
                }
                (Some(_) | None, _) => continue,
            };
            self.park(now, record.id, parked);
        }
    }

    /// Keeps something until it may be told, in place of what was kept of that session before.
    fn park(&mut self, now: Now, id: RecordId, parked: Parked) {
        if self.notifying.on.contains(&parked.reason)
            && let Some(before) = self.notifying.parked.insert(id, parked)
        {
            self.notifying.hold(now, &before);
        }
    }

    /// When something that is parked may be told.
    pub(super) fn notify_due(&self) -> Option<Duration> {
        let notifying = &self.notifying;
        let due = |(id, parked): (&RecordId, &Parked)| match parked.sight {
            Sight::Asked(_, since) => since + ANSWER,
            Sight::Unasked | Sight::Clear => notifying.due(*id, parked).max(notifying.bucket.next()),
        };
        notifying.parked.iter().map(due).min()
    }

    /// Tells what may be told now.
    pub(super) fn notify(&mut self, now: Now) {
        if self.notifying.parked.is_empty() {
            return;
        }
        self.drop_what_is_over(now);
        let left = self.notifying.bucket.left(now.mono);
        let due: Vec<RecordId> = self
            .notifying
            .parked
            .iter()
            .filter(|(id, parked)| left > 0 && now.mono >= self.notifying.due(**id, parked))
            .map(|(id, _)| *id)
            .collect();
        let mut asked: BTreeMap<PathBuf, Tag> = BTreeMap::new();
        for id in &due {
            let Some(parked) = self.notifying.parked.get(id) else { continue };
            let place = parked.place.as_ref().filter(|(socket, _)| self.answers(socket));
            let sight = match (parked.sight, place.cloned()) {
                (Sight::Asked(_, since), _) if now.mono < since + ANSWER => continue,
                (Sight::Unasked, Some((socket, _))) => {
                    let tag = asked.get(&socket).copied().or_else(|| self.ask(now, &socket, Ask::Lookers));
                    match tag {
                        Some(tag) => {
                            asked.insert(socket, tag);
                            Sight::Asked(tag, now.mono)
                        }
                        None => Sight::Clear,
                    }
                }
                (Sight::Asked(..) | Sight::Unasked | Sight::Clear, _) => Sight::Clear,
            };
            if let Some(parked) = self.notifying.parked.get_mut(id) {
                parked.sight = sight;
            }
        }
        let clear: Vec<(RecordId, Parked)> = due
            .iter()
            .filter_map(|id| Some((*id, self.notifying.parked.get(id)?.clone())))
            .filter(|(_, parked)| parked.sight == Sight::Clear)
            .collect();
        for (id, _) in &clear {
            self.notifying.parked.remove(id);
            self.notifying.told.insert(*id, now.mono);
        }
        self.notifying.told.retain(|_, at| now.mono < *at + SESSION);
        if clear.len() > ONE_BY_ONE.min(left as usize) {
            let at = clear.iter().map(|(_, parked)| parked.at).max().unwrap_or(now.moment);
            let ttys: BTreeSet<BString> =
                clear.iter().flat_map(|(_, parked)| parked.ttys.iter().cloned()).collect();
            let items = clear.into_iter().map(|(_, parked)| parked.item()).collect();
            self.say(now, at, What::several(items), ttys.into_iter().collect());
        } else {
            for (id, parked) in clear {
                let question = self.question_of(now, id, &parked);
                let (attention, source) = self.said_of(id, &parked);
                let (at, ttys) = (parked.at, parked.ttys.clone());
                let what = What::One { item: parked.item(), attention, question, source };
                self.say(now, at, what, ttys);
            }
        }
    }

    fn say(&mut self, now: Now, at: Moment, what: What, ttys: Vec<BString>) {
        self.notifying.bucket.take(now.mono);
        let note = Note::new(at, what, std::mem::take(&mut self.notifying.held));
        self.actions.push_back(Action::Notify { note: Box::new(note), ttys });
    }

    /// What is known by now of what it asks, and who says so.
    fn said_of(&self, id: RecordId, parked: &Parked) -> (Option<Asked>, String) {
        if let Some(cause) = parked.cause {
            return (None, cause.word().to_owned());
        }
        let Some(turns) = self.turning.of(id) else { return (None, "-".to_owned()) };
        let view = turns.view(turns.heard_at);
        let attention = view.attention.as_ref().map(|attention| Asked {
            kind: attention.kind,
            tool: attention.tool.clone(),
            pending: view.pending,
        });
        (attention, view.shown_source())
    }

    /// What the provider asks, where it said so just before.
    fn question_of(&mut self, now: Now, id: RecordId, parked: &Parked) -> Option<Words> {
        if parked.reason != Reason::NeedsInput {
            return None;
        }
        let (at, text) = self.notifying.questions.remove(&id)?;
        (at.after(BEFORE) >= parked.at && at.age(now.moment) <= QUESTION).then_some(text)
    }

    /// What is no longer so is not told.
    fn drop_what_is_over(&mut self, now: Now) {
        let over: Vec<RecordId> = self
            .notifying
            .parked
            .iter()
            .filter(|(id, parked)| !self.still_is(**id, parked.reason))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(parked) = self.notifying.parked.remove(&id) {
                self.notifying.hold(now, &parked);
            }
        }
        let live: BTreeSet<RecordId> = self.live().collect();
        self.notifying.heard.retain(|id, _| live.contains(id));
        self.notifying.questions.retain(|id, _| live.contains(id));
    }

    fn still_is(&self, id: RecordId, reason: Reason) -> bool {
        let Some(record) = self.record(id) else { return false };
        let is_live = record.state.name() == StateName::Live;
        let phase = self.turning.of(id).map(|turns| turns.phase);
        match reason {
            Reason::NeedsInput => is_live && phase == Some(State::NeedsInput),
            Reason::Waiting => is_live && phase == Some(State::Waiting),
            Reason::Lost => record.state.lost().is_some(),
            Reason::Recovered => is_live,
        }
    }

    /// Whether a server would say what its clients show.
    fn answers(&self, socket: &Path) -> bool {
        let up = self.servers.get(socket).and_then(super::Server::up);
        up.is_some_and(|up| !up.silent && up.world.is_complete())
    }

    /// What the clients of a server show; without an answer, nothing is known to be shown.
    pub(super) fn looked(&mut self, tag: Tag, socket: &Path, lookers: &[Looker]) {
        let window = |pane: PaneId| {
            let up = self.servers.get(socket).and_then(super::Server::up)?;
            up.world.pane(pane).map(|row| row.window)
        };
        let shows = |looker: &Looker, pane: PaneId| {
            Some(looker.window) == window(pane) && (!looker.zoomed || looker.pane == pane)
        };
        let mut seen = Vec::new();
        let mut clear = Vec::new();
        for (id, parked) in &self.notifying.parked {
            let Sight::Asked(of, _) = parked.sight else { continue };
            let Some((_, pane)) = parked.place.as_ref().filter(|_| of == tag) else { continue };
            if lookers.iter().any(|looker| looker.focused && shows(looker, *pane)) {
                seen.push(*id);
            } else {
                let others = lookers.iter().map(|looker| looker.tty.clone());
                clear.push((*id, others.collect::<Vec<BString>>()));
            }
        }
        for id in seen {
            self.notifying.parked.remove(&id);
            self.notifying.counts.seen += 1;
            self.news = true;
        }
        for (id, ttys) in clear {
            if let Some(parked) = self.notifying.parked.get_mut(&id) {
                parked.sight = Sight::Clear;
                parked.ttys = ttys;
            }
        }
    }
}

impl Notifying {
    /// When that may be told of that session.
    fn due(&self, id: RecordId, parked: &Parked) -> Duration {
        let session = self.told.get(&id).map_or(Duration::ZERO, |at| *at + SESSION);
        session.max(parked.since + SETTLE)
    }

    /// That is not told, if it was anything.
    fn hold(&mut self, now: Now, parked: &Parked) {
        if now.mono >= parked.since + SETTLE {
            self.held += 1;
            self.counts.held += 1;
        }
    }
}

impl Parked {
    fn new(now: Now, reason: Reason, at: Moment, record: &Record) -> Self {
        let pane = record.location.pane_id().map(|pane| PaneId(pane.0));
        let socket = record.ait.server.as_ref().map(|epoch| PathBuf::from(&epoch.socket));
        Self {
            reason,
            at,
            since: now.mono,
            subject: Subject::of(record),
            cause: None,
            place: socket.zip(pane),
            sight: Sight::Unasked,
            ttys: Vec::new(),
        }
    }

    fn item(self) -> Item {
        Item { reason: self.reason, session: self.subject }
    }
}

#[cfg(test)]
mod tests;
