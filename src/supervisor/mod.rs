//! The supervisor as a machine without IO: told what happened and what time it is, it says what to do.
//!
//! Four calls, in this order, over and over:
//!
//! 1. [`Supervisor::handle`] takes one [`Input`] with the time it is.
//! 2. [`Supervisor::next_action`] gives what to do, in order, until `None`. An action's result comes back as an input;
//!    a failed one too. Nothing is retried but by this machine.
//! 3. [`Supervisor::deadline`] says when to call `handle` with [`Input::Tick`] if nothing else comes; `None` means that
//!    nothing is pending and the caller may sleep in the kernel for ever. A tick too early or too often is harmless.
//! 4. [`Supervisor::report`] may be asked at any time.
//!
//! Everything it decides is worked out from what it knows now (records, worlds, deaths), not from the event that brought
//! it: a lost, doubled or late event changes nothing but the moment. What it may never do on a partial view (end, lose or
//! remove anything) hangs on proofs it keeps apart: a process's death comes from the kernel, a pane's end from a complete
//! answer to a question asked after that death, a server's end from its process. Unknown is not gone.

mod checkpoint;
mod decide;
mod floor;
mod hearing;
mod input;
mod judge;
mod lives;
mod memory;
pub mod notify;
mod orders;
pub mod recovery;
mod report;
mod server;
mod settling;
mod shutdown;
mod turning;
pub mod word;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::{Happening, RECENT};
use crate::record::{ProcessId, Record, RecordId, Stamp, StateName, Verb};

use checkpoint::Checkpoints;
use floor::Plans;
pub use input::{
    Action, Answer, Ask, AttachFailure, EndedEarlier, Examined, FoundServer, Habits, Identity, Input,
    LastStop, LinkEvent, LinkId, Now, ShellHost, Start, StoreView, Tag, Ticket, Written,
};
use judge::Dying;
use notify::Notifying;
use recovery::Recovery;
use server::{Closing, ClosingStep, Keeping, Left, Link, Server, Up};
use turning::Turning;
use word::Saying;

/// A question without an answer for this long makes the server unknown.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a dead server's last words are waited for: they say how it ended. Its client ends by itself once it gets to run, which
/// a busy machine puts off; only for one that is stopped this is the end of waiting.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long a server that has no session left but ours is kept, so that the ends of its last agents are heard of.
const LAST_ENDS: Duration = Duration::from_secs(1);
/// How soon a server without a session ends once we left it.
const LAST_EXIT: Duration = Duration::from_secs(5);
/// How long a clean end may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// The first and the longest pause before a failed write is tried again.
const WRITE_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// Ids of ended records that are kept without asking whether a pane still carries them.
const BURIED: usize = 4096;
/// The pause before listing again after a listing failed.
const LISTING_PAUSE: Duration = Duration::from_secs(1);

/// The machine. See the module's own words for the calls and their order.
#[derive(Debug)]
pub struct Supervisor {
    start: Start,
    /// When it began, unix seconds; set by the first input.
    began: Option<i64>,
    store: Option<StoreView>,
    /// Why the store could not be read, when it could not.
    unreadable: Option<String>,
    servers: BTreeMap<PathBuf, Server>,
    /// Every process whose death matters: the servers' and the agents'.
    watched: BTreeMap<ProcessId, Watched>,
    /// Live records whose agent's process has ended, until it is settled what that means.
    dying: BTreeMap<RecordId, Dying>,
    /// Records that were in the store and no longer are: their dead panes may be closed.
    buried: BTreeSet<RecordId>,
    /// Servers of this boot where agents ended before this supervisor began: dead panes may be left there.
    untidy: BTreeMap<PathBuf, BTreeSet<ProcessId>>,
    /// Pane processes that were looked at, so that none is looked at twice.
    examined: BTreeMap<RecordId, i32>,
    /// What looking found, until it is written.
    found: BTreeMap<RecordId, Examined>,
    /// Records an earlier script's write stripped of what it does not know, as they were before it.
    stripped: BTreeMap<RecordId, Box<Record>>,
    /// Layout changes, not written before then: they come in bursts.
    layouts: BTreeMap<RecordId, Duration>,
    /// Changes that were refused, with the record as it was then: not asked for again until the record or the store changes.
    stuck: BTreeMap<RecordId, (Verb, Record)>,
    /// When to look again at operations that are waited for.
    again: Option<Duration>,
    writing: Writing,
    recall: Recall,
    /// The screens of live agents, kept up to date.
    checkpoints: Checkpoints,
    /// What live agents are at.
    turning: Turning,
    /// What the user is told of it.
    notifying: Notifying,
    /// What stands where, as it was last kept.
    plans: Plans,
    /// What is brought back by itself.
    recovery: Recovery,
    /// The word at the next attach.
    saying: Saying,
    stopping: Option<Duration>,
    ended: bool,
    recent: VecDeque<Happening>,
    /// The last number given to a link, a question or a write.
    numbers: u64,
    actions: VecDeque<Action>,
    /// Something a report shows has changed since the last [`Action::Publish`].
    news: bool,
}

/// What is known of a process's life.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Watched {
    /// Asked to be watched.
    Asked,
    /// Being watched: it lives.
    Alive,
    /// It cannot be watched, so its end will not be told by it.
    Blind(String),
    /// It has ended.
    Dead {
        /// When that was heard.
        at: Duration,
        /// It was seen alive before.
        seen: bool,
    },
}

/// The one write under way.
#[derive(Debug)]
enum Writing {
    /// None.
    Idle,
    /// Handed out.
    UnderWay {
        ticket: Ticket,
        /// What each change is told as, once it is in the store.
        told: Vec<Told>,
        /// The changes.
        verbs: Vec<Verb>,
        /// Failures in a row before it.
        failures: u32,
    },
    /// The last one failed; not before then.
    Paused { until: Duration, failures: u32, why: String },
}

/// What is told of a change once it is in the store.
#[derive(Clone, Debug)]
struct Told {
    record: RecordId,
    socket: Option<PathBuf>,
    what: &'static str,
    source: &'static str,
    detail: String,
    /// When the event behind it was heard.
    heard: Duration,
    /// A pane to take the stamp off once the record is gone from it, and whether its own process was the agent.
    unstamp: Option<(tmux_control::PaneId, bool)>,
}

/// The ends of earlier boots, which may have been part of a shutdown.
#[derive(Debug)]
enum Recall {
    /// Not asked yet.
    Wanted,
    /// Being read.
    Asked,
    /// Read; judged with the first write.
    Have(Vec<EndedEarlier>),
    /// Judged.
    Done,
}

/// What is known of the life of a server that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    /// The record names none, or not well enough to prove anything.
    Unnamed,
    /// It belongs to an earlier boot.
    PastBoot,
    /// Its process has ended, and how it ended is known or no longer to be known.
    Over { cause: crate::record::LossCause, evidence: String, heard: Duration },
    /// Its process has ended; its last words are still awaited.
    Ending,
    /// Its process lives, or nothing says that it does not.
    On,
}

impl Supervisor {
    /// A supervisor that has heard of nothing yet. It waits for the first [`Input::Store`].
    #[must_use]
    pub fn new(start: Start) -> Self {
        let servers = start
            .sockets
            .iter()
            .map(|socket| (socket.clone(), Server { explicit: true, ..Server::default() }))
            .collect();
        Self {
            start,
            began: None,
            store: None,
            unreadable: None,
            servers,
            watched: BTreeMap::new(),
            dying: BTreeMap::new(),
            buried: BTreeSet::new(),
            untidy: BTreeMap::new(),
            examined: BTreeMap::new(),
            found: BTreeMap::new(),
            stripped: BTreeMap::new(),
            layouts: BTreeMap::new(),
            stuck: BTreeMap::new(),
            again: None,
            writing: Writing::Idle,
            recall: Recall::Wanted,
            checkpoints: Checkpoints::default(),
            turning: Turning::default(),
            notifying: Notifying::default(),
            plans: Plans::default(),
            recovery: Recovery::default(),
            saying: Saying::default(),
            stopping: None,
            ended: false,
            recent: VecDeque::new(),
            numbers: 0,
            actions: VecDeque::new(),
            news: false,
        }
    }

    /// Takes what happened, at the time it is. Actions may follow.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.handle_all([(now, input)]);
    }

    /// Takes several things that happened, each at its time, and works out once what follows from them all: a server's end
    /// comes with the ends of everything in it.
    pub fn handle_all(&mut self, inputs: impl IntoIterator<Item = (Now, Input)>) {
        let mut last = None;
        let mut deaths_alone = true;
        for (now, input) in inputs {
            deaths_alone &= self.is_agents_death(&input);
            self.heed(now, input);
            last = Some(now);
        }
        let Some(now) = last else { return };
        // only a living server says what an agent's death means: the deaths that follow a server's own wait for its last words
        if !deaths_alone || self.hears_a_server() || !self.expects_words() || self.stopping.is_some() {
            self.settle(now);
        }
        if std::mem::take(&mut self.news) {
            self.actions.push_back(Action::Publish);
        }
    }

    /// Whether it is the death of a process that is an agent's and nothing else: no server's, no coordinator's.
    fn is_agents_death(&self, input: &Input) -> bool {
        let Input::Died(process) = input else { return false };
        let serves = self.servers.values().any(|server| server.speaking_of() == Some(process))
            || self.untidy.values().any(|processes| processes.contains(process))
            || self.records().any(|record| {
                let server = record.ait.server.as_ref().map(|epoch| epoch.pid);
                let owner = record.lease.as_ref().map(|lease| lease.owner.pid);
                server == Some(process.pid) || owner == Some(process.pid)
            });
        !serves
    }

    /// Whether a client is attached to a server that lives.
    fn hears_a_server(&self) -> bool {
        self.servers.values().any(|server| server.up().is_some() && self.last_words_due(server).is_none())
    }

    /// Whether the last words of a server are waited for.
    fn expects_words(&self) -> bool {
        self.servers.values().any(|server| self.last_words_due(server).is_some())
    }

    /// Takes note of one thing.
    fn heed(&mut self, now: Now, input: Input) {
        self.began.get_or_insert(now.utc);
        match input {
            Input::Store(Ok(view)) => {
                self.unreadable = None;
                self.stuck.clear();
                self.take_view(now, view);
                self.news = true;
            }
            Input::Store(Err(why)) => {
                self.unreadable = Some(why);
                self.news = true;
            }
            Input::Socket { socket, present } => self.socket_seen(socket, present),
            Input::Listener { socket, pid } => {
                // nobody needs no acquaintance
                let known = self.servers.contains_key(&socket);
                if known || pid.is_some() {
                    let server = self.servers.entry(socket).or_default();
                    self.news |= !known || server.listener != pid;
                    server.listener = pid;
                }
            }
            Input::Link { socket, link, event } => self.hear(now, &socket, link, event),
            Input::Watching(process) => {
                if let Some(watched @ Watched::Asked) = self.watched.get_mut(&process) {
                    *watched = Watched::Alive;
                    let socket = self.records().find_map(|record| {
                        let epoch = record.ait.server.as_ref()?;
                        (epoch.process() == process).then(|| PathBuf::from(&epoch.socket))
                    });
                    if let Some(server) = socket.and_then(|socket| self.servers.get_mut(&socket)) {
                        server.met(process);
                    }
                }
            }
            Input::Died(process) => {
                if let Some(watched) = self.watched.get_mut(&process) {
                    let met = self.servers.values().any(|server| server.met.contains(&process));
                    let seen = *watched == Watched::Alive || met;
                    *watched = Watched::Dead { at: now.mono, seen };
                    self.news = true;
                }
                for server in self.servers.values_mut() {
                    server.listener = server.listener.filter(|pid| *pid != process.pid);
                }
            }
            Input::Unwatchable(process, why) => {
                if let Some(watched) = self.watched.get_mut(&process) {
                    *watched = Watched::Blind(why);
                    self.news = true;
                }
            }
            Input::Examined { record, pid, found } => {
                if self.examined.get(&record) == Some(&pid)
                    && let Some(found) = found
                {
                    self.found.insert(record, found);
                }
            }
            Input::Written { ticket, result } => self.written(now, ticket, result),
            Input::ScreenKept { socket, pane } => self.screen_kept(&socket, pane),
            Input::Turned { record, turns } => self.turned(now, record, *turns),
            Input::Observed { record, seen } => self.observed(now, record, *seen),
            Input::Called { record, waits } => self.called(now, record, waits),
            Input::Question { record, text } => self.question(now, record, text),
            Input::Notified(result) => self.notified(result),
            Input::Book { book, ended } => self.book_read(now, book, ended),
            Input::Said(said) => self.said_read(said),
            Input::Checkpointed { record } => self.checkpointed(record),
            Input::Recalled(ends) => {
                self.remember_panes(&ends);
                self.recall = Recall::Have(ends);
            }
            Input::Check => self.check(now),
            Input::Tick => {}
            Input::Stop => {
                self.stopping.get_or_insert(now.mono + FAREWELL);
            }
        }
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Self::handle`] with a tick if nothing else comes; `None` when nothing is pending.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        if let Some(until) = self.stopping {
            return (!self.ended).then_some(until);
        }
        let servers = self.servers.values().flat_map(|server| {
            let paused = match &server.link {
                Link::Paused { until } => Some(*until),
                Link::Down | Link::Attaching { .. } | Link::Up(_) | Link::Leaving { .. } => None,
            };
            let (owed, again) = server.up().map_or((None, None), |up| {
                let owed = if up.silent { None } else { up.owed_since().map(|since| since + ANSWER) };
                (
                    owed,
                    [
                        up.listing_due(),
                        // a server whose end is known is not left: its last words are awaited
                        up.empty
                            .filter(|_| up.open.is_empty() && self.last_words_due(server).is_none())
                            .map(|since| since + LAST_ENDS),
                    ]
                    .into_iter()
                    .flatten()
                    .min(),
                )
            });
            [paused, owed, again]
        });
        let endings = self.servers.values().map(|server| self.last_words_due(server));
        let dying = self.dying.values().map(|dying| dying.next);
        // while a write is under way or waits, nothing else waits for the time
        let (writing, resting) = match &self.writing {
            Writing::Paused { until, .. } => (Some(*until), false),
            Writing::UnderWay { .. } => (None, false),
            Writing::Idle => (None, true),
        };
        let layouts = self.layouts.values().map(|due| resting.then_some(*due));
        servers
            .chain(endings)
            .chain(dying)
            .chain(layouts)
            .chain([writing, self.again, self.checkpoint_due(), self.plans_due()])
            .chain([self.recovery_due().filter(|_| resting), self.notify_due(), self.titles_due()])
            .flatten()
            .min()
    }

    /// Whether every server that was asked by [`Input::Check`] has answered, so that a report is as true as it gets.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.servers
            .values()
            .filter_map(Server::up)
            .all(|up| up.open.iter().all(|open| open.ask != Ask::Ping))
    }

    /// Asks every attached server for a sign of life, so that one that stopped without a word is known to have.
    fn check(&mut self, now: Now) {
        let sockets: Vec<PathBuf> = self
            .servers
            .iter()
            .filter(|(_, server)| server.up().is_some_and(|up| up.open.is_empty()))
            .map(|(socket, _)| socket.clone())
            .collect();
        for socket in sockets {
            self.ask(now, &socket, Ask::Ping);
        }
    }

    /// Every socket that is known of.
    pub fn sockets(&self) -> impl Iterator<Item = &Path> {
        self.servers.keys().map(PathBuf::as_path)
    }

    /// Every live record.
    pub fn live(&self) -> impl Iterator<Item = RecordId> {
        self.records().filter(|record| record.state.name() == StateName::Live).map(|record| record.id)
    }

    /// Every live record, whole.
    pub fn live_records(&self) -> impl Iterator<Item = &Record> {
        self.records().filter(|record| record.state.name() == StateName::Live)
    }

    /// A record as last read or written.
    #[must_use]
    pub fn record(&self, id: RecordId) -> Option<&Record> {
        self.store.as_ref().and_then(|view| view.records.get(id)).map(|record| &**record)
    }

    /// Works out everything that follows from what is known now.
    fn settle(&mut self, now: Now) {
        if let Some(until) = self.stopping {
            self.wind_down(now, until);
            return;
        }
        if self.store.is_none() {
            return;
        }
        self.again = self.again.filter(|due| now.mono < *due);
        self.bury(now);
        self.meet_servers();
        self.tidy();
        self.forget_servers();
        self.watch();
        self.look();
        self.attend_dying(now);
        self.attach(now);
        if !self.recalling() {
            self.write(now);
        }
        self.order(now);
        self.ask_titles(now);
        self.read_titles(now);
        self.checkpoint(now);
        self.plan(now);
        self.recover(now);
        self.greet(now);
        self.notify(now);
    }

    /// Whether the ends of earlier boots are still being read: nothing is written before they are known, so that a
    /// reboot is one write.
    fn recalling(&mut self) -> bool {
        match self.recall {
            Recall::Wanted => {
                self.recall = Recall::Asked;
                self.actions.push_back(Action::Recall { since: shutdown::horizon(&self.start) });
                true
            }
            Recall::Asked => true,
            Recall::Have(_) | Recall::Done => false,
        }
    }

    /// The records as last read or written.
    fn records(&self) -> impl Iterator<Item = &Record> {
        self.store.iter().flat_map(|view| view.records.iter())
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Remembers something that happened and was not (or need not be) written.
    fn tell(
        &mut self,
        now: Now,
        socket: Option<&Path>,
        record: Option<RecordId>,
        what: &str,
        source: &str,
        detail: String,
    ) {
        self.remember(Happening {
            at: Stamp::from_unix(now.utc).to_string(),
            socket: socket.map(Path::to_owned),
            record: record.map(|id| id.to_string()),
            what: what.into(),
            source: source.into(),
            detail,
            to_store_us: None,
        });
    }

    fn remember(&mut self, happening: Happening) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(happening);
        self.news = true;
    }
}

#[cfg(test)]
mod tests;
