//! What the supervisor holds of one socket: the control client, the world it tells of, and the questions under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bstr::BString;
use tmux_control::{PaneId, WindowId};

use super::input::{Ask, Identity, LinkId, Tag};
use crate::api::Happening;
use crate::record::{Location, Nonce, ProcessId, RecordId, Records, StateName};
use crate::world::rows::Snapshot;
use crate::world::{Stranger, World};

/// Listings under way at once: one that may have been asked too early, one that was asked after.
const LISTINGS: usize = 2;
/// The first and the longest pause before attaching again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// Lives of a server that are remembered, with their ends, until the records that name them are written.
const LIVES: usize = 16;
/// A link that ends sooner than this counts as a failure to attach.
const SHORT_LIFE: Duration = Duration::from_secs(2);

/// One socket.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Named on the command line.
    pub(super) explicit: bool,
    /// Whether the socket's file is there; `None` until somebody looked.
    pub(super) present: Option<bool>,
    /// Who listened on it when somebody last looked, or when our client went.
    pub(super) listener: Option<i32>,
    /// The control client.
    pub(super) link: Link,
    /// Failures to attach in a row.
    pub(super) failures: u32,
    /// Why the last attempt failed, until one succeeds.
    pub(super) trouble: Option<String>,
    /// Nobody listens there, as the last attempt found.
    pub(super) refused: bool,
    /// How the last link to each life of it ended: with which `%exit`. The latest last, at most [`LIVES`].
    pub(super) ends: VecDeque<(ProcessId, Option<BString>)>,
    /// Lives of it that were seen alive, whoever watches them now. The latest last, at most [`LIVES`].
    pub(super) met: VecDeque<ProcessId>,
    /// What the last client was let go for, so that it does not come back for the same.
    pub(super) left: Option<Left>,
    /// SIGUSR1 was sent for this absence of the socket.
    pub(super) remade: bool,
    /// The last event that changed the store.
    pub(super) last_event: Option<Happening>,
}

/// A server that was left although records name it.
#[derive(Debug)]
pub(super) struct Left {
    /// When.
    pub(super) at: Duration,
    /// The lives of it that were wanted then.
    pub(super) wanted: Vec<ProcessId>,
    /// The one that had no session left but ours; else another server listens there.
    pub(super) empty: Option<ProcessId>,
    /// Records whose agent's end was known then.
    pub(super) dying: Vec<RecordId>,
    /// Records that named a pane of one of its lives then, and which.
    pub(super) named: BTreeSet<(RecordId, crate::record::PaneId)>,
}

/// The control client of a server.
#[derive(Debug, Default)]
pub(super) enum Link {
    /// None.
    #[default]
    Down,
    /// None until then.
    Paused {
        /// When to try again.
        until: Duration,
    },
    /// On its way.
    Attaching {
        /// Its number.
        link: LinkId,
    },
    /// Attached.
    Up(Box<Up>),
    /// Told to go; its end has not come yet.
    Leaving {
        /// Its number.
        link: LinkId,
        /// The server it was attached to.
        process: Option<ProcessId>,
    },
}

/// An attached control client.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) link: LinkId,
    pub(super) identity: Identity,
    /// When it attached.
    pub(super) since: Duration,
    /// The same, unix seconds.
    pub(super) since_utc: i64,
    pub(super) world: World,
    /// Since when the world may be wrong.
    pub(super) dirty: Option<Duration>,
    /// Do not list before then: the last listing failed.
    pub(super) not_before: Option<Duration>,
    /// How many listings were asked.
    pub(super) asked: u64,
    /// The last listing that was answered whole.
    pub(super) answered: u64,
    /// Questions without an answer yet, oldest first.
    pub(super) open: VecDeque<Open>,
    /// It owes an answer for too long.
    pub(super) silent: bool,
    /// When the last word came that may have changed a name or a place.
    pub(super) heard: Duration,
    /// Stamps that were ordered, so that none is ordered twice.
    pub(super) stamped: BTreeSet<(PaneId, RecordId)>,
    /// Panes whose process was put there by a restore or a start: that they are kept is ours, whoever stamped them first.
    pub(super) launched: BTreeSet<PaneId>,
    /// What was made of each pane's death habits.
    pub(super) keeping: BTreeMap<PaneId, Keeping>,
    /// The dead pane being closed, one at a time.
    pub(super) closing: Option<Closing>,
    /// Dead panes that were stamped for a stand-in, once each.
    pub(super) claimed: BTreeSet<(PaneId, RecordId)>,
    /// Stand-ins that were ordered back, each once per death: the pane, the record and the process that died.
    pub(super) respawned: BTreeSet<(PaneId, RecordId, i32)>,
    /// Panes with a stand-in's stamp in which something else lives: the pane, the record and the process.
    pub(super) strange: BTreeSet<(PaneId, RecordId, i32)>,
    /// When a stand-in was last ordered into a pane, so that one on its way up is not ended by the next.
    pub(super) stood: BTreeMap<(PaneId, RecordId), Duration>,
    /// Panes of live records that carry a stand-in's stamp, and since when: the pane, the record and the process. The longest
    /// time there is once the stamp was ordered off.
    pub(super) unfrozen: BTreeMap<(PaneId, RecordId, i32), Duration>,
    /// The restores that were cut short for whose sake the server was listed anew, by the lease's token.
    pub(super) relisted: BTreeSet<(RecordId, Nonce)>,
    /// Dead panes that stay, because the user keeps them or the server would not close them.
    pub(super) left: BTreeSet<PaneId>,
    /// What was set on the server was ordered to be taken back.
    pub(super) taking_back: bool,
    /// Clients that came to `_ait`, not yet sent away.
    pub(super) guests: Vec<BString>,
    /// Somebody of the user's may have come who has not heard what was done.
    pub(super) greet: bool,
    /// What was already told to leave `_ait`, and where to.
    pub(super) expelled: BTreeSet<(StrangerKey, u32)>,
    /// When there was output in each window, in spans of [`crate::world::mark::FLOW_SPAN`].
    pub(super) flow: BTreeMap<WindowId, u64>,
    /// How the titles of stamped panes begin, as last told.
    pub(super) titles: BTreeMap<PaneId, BString>,
    /// A record named it since we attached.
    pub(super) named: bool,
    /// Its socket was made anew since: another may listen there.
    pub(super) moved: bool,
    /// Since when no session is left but ours.
    pub(super) empty: Option<Duration>,
}

/// A stranger, in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StrangerKey {
    Window(u32),
    Pane(u32),
}

impl From<Stranger> for StrangerKey {
    fn from(stranger: Stranger) -> Self {
        match stranger {
            Stranger::Window { window, .. } => Self::Window(window.0),
            Stranger::Pane { pane, .. } => Self::Pane(pane.0),
        }
    }
}

/// A question without an answer yet.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) tag: Tag,
    pub(super) ask: Ask,
    pub(super) sent: Duration,
    /// Which listing it is; 0 for other questions.
    pub(super) listing: u64,
}

/// Whether a pane is kept when its process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// The user's habits are being asked.
    Asked,
    /// Nothing of theirs is in the way.
    Free,
    /// `remain-on-exit` is being set.
    Ordered,
    /// Set by us.
    Kept,
    /// Left as the user has it: a hook, or a value of their own.
    Theirs,
}

/// The closing of one dead stamped pane, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    pub(super) pane: PaneId,
    pub(super) record: RecordId,
    pub(super) step: ClosingStep,
}

/// How far a closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosingStep {
    /// Asked what the user's settings say.
    Habits,
    /// They do not keep dead panes.
    Asked,
    /// Its last screen is being kept.
    Screen,
    /// It is kept.
    Screened,
    /// Being closed.
    Kill,
    /// One further round trip before the next one: a listing asked after this one.
    Settle {
        /// Listings asked when the kill was answered.
        after: u64,
    },
}

impl Server {
    /// Remembers that this life of it was seen alive.
    pub(super) fn met(&mut self, process: ProcessId) {
        self.met.retain(|of| *of != process);
        if self.met.len() == LIVES {
            self.met.pop_front();
        }
        self.met.push_back(process);
    }

    /// Remembers how the link to that life of it ended.
    pub(super) fn ended(&mut self, process: ProcessId, exit: Option<BString>) {
        self.ends.retain(|(of, _)| *of != process);
        if self.ends.len() == LIVES {
            self.ends.pop_front();
        }
        self.ends.push_back((process, exit));
    }

    /// How the last link to that life of it ended, if there was one.
    pub(super) fn end_of(&self, process: &ProcessId) -> Option<&Option<BString>> {
        self.ends.iter().find(|(of, _)| of == process).map(|(_, exit)| exit)
    }

    /// The attached client.
    pub(super) fn up(&self) -> Option<&Up> {
        match &self.link {
            Link::Up(up) => Some(up),
            Link::Down | Link::Paused { .. } | Link::Attaching { .. } | Link::Leaving { .. } => None,
        }
    }

    /// The attached client, to change.
    pub(super) fn up_mut(&mut self) -> Option<&mut Up> {
        match &mut self.link {
            Link::Up(up) => Some(up),
            Link::Down | Link::Paused { .. } | Link::Attaching { .. } | Link::Leaving { .. } => None,
        }
    }

    /// The number of the client, if there is one.
    pub(super) fn link_id(&self) -> Option<LinkId> {
        match &self.link {
            Link::Down | Link::Paused { .. } => None,
            Link::Attaching { link } | Link::Leaving { link, .. } => Some(*link),
            Link::Up(up) => Some(up.link),
        }
    }

    /// The server the client is or was just attached to, whose last words may still come.
    pub(super) fn speaking_of(&self) -> Option<&ProcessId> {
        match &self.link {
            Link::Up(up) => Some(&up.identity.process),
            Link::Leaving { process, .. } => process.as_ref(),
            Link::Down | Link::Paused { .. } | Link::Attaching { .. } => None,
        }
    }

    /// A client did not attach, or went soon after: wait longer each time.
    pub(super) fn pause(&mut self, now: Duration) {
        let pause = PAUSE.0.saturating_mul(1 << self.failures.min(10)).min(PAUSE.1);
        self.failures = self.failures.saturating_add(1);
        self.link = Link::Paused { until: now + pause };
    }

    /// The client of a living server ended: attach again at once, unless it had only just attached.
    pub(super) fn drop_link(&mut self, now: Duration) {
        let short = self.up().is_some_and(|up| now.saturating_sub(up.since) < SHORT_LIFE);
        if short {
            self.pause(now);
        } else {
            self.failures = 0;
            self.link = Link::Down;
        }
    }
}

impl Up {
    /// What takes a record's marks off a pane: the keeping first, since its guard is the stamp. `hosted` says that the pane's own
    /// process is or was the agent; no other pane is ever kept.
    pub(super) fn take_off(&self, pane: PaneId, record: RecordId, hosted: bool) -> Vec<Ask> {
        let keeps = match self.keeping.get(&pane) {
            Some(Keeping::Kept | Keeping::Ordered) => true,
            Some(Keeping::Free | Keeping::Theirs) => false,
            // stamped before we came: an earlier supervisor set it, as far as anybody knows
            Some(Keeping::Asked) | None => {
                hosted && (self.launched.contains(&pane) || !self.stamped.contains(&(pane, record)))
            }
        };
        let mut asks = Vec::new();
        if keeps {
            asks.push(Ask::UnkeepDead { pane, record });
        }
        asks.push(Ask::Unstamp { pane, record });
        asks
    }

    /// A client just attached: nothing is known of the server but who it is.
    pub(super) fn new(link: LinkId, identity: Identity, now: super::input::Now) -> Self {
        let world = World::unknown(identity.session, identity.hold);
        Self {
            link,
            identity,
            since: now.mono,
            since_utc: now.utc,
            world,
            dirty: Some(now.mono),
            not_before: None,
            asked: 0,
            answered: 0,
            open: VecDeque::new(),
            silent: false,
            heard: now.mono,
            stamped: BTreeSet::new(),
            launched: BTreeSet::new(),
            keeping: BTreeMap::new(),
            closing: None,
            claimed: BTreeSet::new(),
            respawned: BTreeSet::new(),
            strange: BTreeSet::new(),
            stood: BTreeMap::new(),
            unfrozen: BTreeMap::new(),
            relisted: BTreeSet::new(),
            left: BTreeSet::new(),
            taking_back: false,
            guests: Vec::new(),
            greet: true,
            expelled: BTreeSet::new(),
            flow: BTreeMap::new(),
            titles: BTreeMap::new(),
            named: false,
            moved: false,
            empty: None,
        }
    }

    /// Whether a listing is of the whole server. One without our own session is of a server that was told to end: it has closed
    /// everything, and answers until its last client has left.
    pub(super) fn is_whole(&self, snapshot: &Snapshot) -> bool {
        snapshot.sessions.iter().any(|row| row.id == self.identity.session)
    }

    /// The world may be wrong since now.
    pub(super) fn soil(&mut self, now: Duration) {
        self.dirty.get_or_insert(now);
        self.heard = now;
    }

    /// Whether a listing should be asked now.
    pub(super) fn wants_listing(&self, now: Duration) -> bool {
        let under_way = self.open.iter().filter(|open| open.listing > 0).count();
        self.dirty.is_some()
            && under_way < LISTINGS
            && !self.silent
            && self.not_before.is_none_or(|not_before| now >= not_before)
    }

    /// A dead pane of a record that is no longer in the store, or live in another pane, unless it is to stay.
    pub(super) fn orphan(&self, buried: &BTreeSet<RecordId>, known: &Records) -> Option<(PaneId, RecordId)> {
        self.world.panes().find_map(|row| {
            let record: RecordId = std::str::from_utf8(&row.stamp).ok()?.parse().ok()?;
            let ours = match known.get(record) {
                None => buried.contains(&record),
                Some(known) => {
                    let this = known.location.pane_id().is_some_and(|pane| pane.0 == row.id.0);
                    // an earlier script's write drops the epoch: then it is not known where that pane is
                    let elsewhere = known
                        .ait
                        .server
                        .as_ref()
                        .is_some_and(|epoch| !this || epoch.process() != self.identity.process);
                    known.state.name() == StateName::Live && known.location != Location::Gone && elsewhere
                }
            };
            let orphan = ours && row.dead && row.frozen.is_empty() && !self.left.contains(&row.id);
            orphan.then_some((row.id, record))
        })
    }

    /// Forgets what was kept of panes that a whole listing no longer names; an id is never given twice in one life.
    pub(super) fn forget_closed(&mut self) {
        let world = &self.world;
        let there = |pane: &PaneId| world.pane(*pane).is_some();
        self.stamped.retain(|(pane, _)| there(pane));
        self.launched.retain(there);
        self.keeping.retain(|pane, _| there(pane));
        self.left.retain(there);
        self.claimed.retain(|(pane, _)| there(pane));
        self.respawned.retain(|(pane, _, _)| there(pane));
        self.strange.retain(|(pane, _, _)| there(pane));
        self.flow.retain(|window, _| world.windows().any(|(id, _)| id == *window));
    }

    /// Whether a window, a pane or a client is on its way out of `_ait`.
    pub(super) fn is_moving(&self) -> bool {
        self.open.iter().any(|open| match open.ask {
            Ask::ExpelWindow { .. } | Ask::ExpelPane { .. } | Ask::ExpelClient { .. } => true,
            Ask::Listing
            | Ask::Ping
            | Ask::Pane(_)
            | Ask::Nudge { .. }
            | Ask::Habits(_)
            | Ask::Clients
            | Ask::Lookers
            | Ask::Titles
            | Ask::Say { .. }
            | Ask::Stamp { .. }
            | Ask::Unstamp { .. }
            | Ask::UnstampFrozen { .. }
            | Ask::StampFrozen { .. }
            | Ask::RespawnStandin { .. }
            | Ask::KeepDead { .. }
            | Ask::UnkeepDead { .. }
            | Ask::KillDead { .. } => false,
        })
    }

    /// When the next listing is due, if it waits for the time alone.
    pub(super) fn listing_due(&self) -> Option<Duration> {
        let due = self.not_before?;
        self.wants_listing(due).then_some(due)
    }

    /// The oldest question without an answer, since when.
    pub(super) fn owed_since(&self) -> Option<Duration> {
        self.open.front().map(|open| open.sent)
    }
}
