//! The words between the supervisor and the world outside it: what it is told, what it wants done.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;
use tmux_control::{PaneId, SessionId, WindowId};

use super::notify::Looker;
use super::notify::note::{Note, Words};
use super::recovery::{Book, Policies};
use super::word::Said;
use crate::record::{ProcessId, Record, RecordId, Records, Refused, Stamp, Verb};
use crate::turn::{Moment, Observation, Turns};
use crate::world::mark::Mark;
use crate::world::plan::Plan;
use crate::world::rows::{PaneRow, Snapshot};

/// Now, as the driver reads it: a clock that only runs forward, and the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time since this boot began, suspends counted; never runs back.
    pub mono: Duration,
    /// Unix seconds, UTC.
    pub utc: i64,
    /// The same to the millisecond: signals of one second are in order.
    pub moment: Moment,
}

impl Now {
    /// A moment at the begin of a second.
    #[must_use]
    pub fn at(mono: Duration, utc: i64) -> Self {
        Self { mono, utc, moment: Moment::from_millis(utc.saturating_mul(1000)) }
    }
}

/// What a supervisor is and was started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The boot it runs under.
    pub boot_id: String,
    /// When that boot began, unix seconds.
    pub boot_began: i64,
    /// Its own pid.
    pub pid: i32,
    /// Its program version.
    pub version: String,
    /// The record file, for the report.
    pub store: PathBuf,
    /// Sockets named on the command line: reported even when nothing is there.
    pub sockets: Vec<PathBuf>,
    /// The user's default server, where a start goes that names none.
    pub default_socket: PathBuf,
    /// How long a lease is safe from being taken over once its owner is gone, in seconds.
    pub grace: u64,
    /// How long a restored agent has for its acknowledgement, in seconds.
    pub ack_grace: u64,
    /// When and under which boot the supervisor before this one was told to end, if that is known.
    pub last_stop: Option<LastStop>,
    /// What the user wants done about losses.
    pub policies: Policies,
}

/// The clean end of an earlier supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastStop {
    /// The boot it ran under.
    pub boot_id: String,
    /// Unix seconds.
    pub at: i64,
}

/// Numbers one life of a control client, so that a late word of an earlier one is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// Numbers one question on a control client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// Numbers one write of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The store was read, or could not be.
    Store(Result<StoreView, String>),
    /// A socket is there, or is no longer there. Nothing else is said by it: a dead server leaves its socket behind.
    Socket {
        /// Where.
        socket: PathBuf,
        /// Whether the file is there.
        present: bool,
    },
    /// Who listens on a socket that no client of ours is on: a pid, or nobody. For the report; nothing is
    /// decided by it but that a server which concerns no record is known of as long as somebody listens.
    Listener {
        /// Where.
        socket: PathBuf,
        /// Who.
        pid: Option<i32>,
    },
    /// A word of a control client.
    Link {
        /// Which server.
        socket: PathBuf,
        /// Which life of its client.
        link: LinkId,
        /// The word.
        event: LinkEvent,
    },
    /// A process asked to be watched is being watched.
    Watching(ProcessId),
    /// A watched process has ended, or had before it could be watched.
    Died(ProcessId),
    /// A process cannot be watched; whether it lives is unknown.
    Unwatchable(ProcessId, String),
    /// What was found behind a record's pane process.
    Examined {
        /// The record.
        record: RecordId,
        /// The pane process that was looked at.
        pid: i32,
        /// What it is; `None` when it is gone or hidden.
        found: Option<Examined>,
    },
    /// A write came back.
    Written {
        /// Which.
        ticket: Ticket,
        /// One result a change, and the store as it is now; or why nothing was written.
        result: Result<Written, String>,
    },
    /// The last screen of a dead pane was kept, or could not be.
    ScreenKept {
        /// Which server.
        socket: PathBuf,
        /// Which pane.
        pane: PaneId,
    },
    /// What is written of an agent's turn: a hook told an event, or an observation of ours was noted.
    Turned {
        /// The record.
        record: RecordId,
        /// What is known.
        turns: Box<Turns>,
    },
    /// What a source outside tmux shows of an agent's turn now.
    Observed {
        /// The record.
        record: RecordId,
        /// What it shows.
        seen: Box<Observation>,
    },
    /// An agent has called a tool, and may be asking for it; or what it called has answered.
    Called {
        /// The record.
        record: RecordId,
        /// Whether it waits for the tool.
        waits: bool,
    },
    /// What an agent is about to ask, in its provider's words.
    Question {
        /// The record.
        record: RecordId,
        /// The question.
        text: Words,
    },
    /// A note was told, or why it was not.
    Notified(Result<(), String>),
    /// What was tried of each loss before, as it is on disk.
    Book {
        /// The book.
        book: Book,
        /// Whether the process of [`Action::Recover`] has ended just before, or could not be started.
        ended: bool,
    },
    /// Up to when all was said at attaches, as it is on disk.
    Said(Said),
    /// The screen of a live agent was kept, or could not be.
    Checkpointed {
        /// The record.
        record: RecordId,
    },
    /// Agents that ended in an earlier boot, from the archive; latest line of each.
    Recalled(Vec<EndedEarlier>),
    /// Somebody is about to ask for a report: every server is asked for a sign of life.
    Check,
    /// Time has come to look again; harmless at any time.
    Tick,
    /// Told to end.
    Stop,
}

/// The store as last read.
#[derive(Clone, Debug)]
pub struct StoreView {
    /// Every good record.
    pub records: Arc<Records>,
    /// Bad records or a bad file, in words, where there are any.
    pub trouble: Option<String>,
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct Written {
    /// For each change: whether it was applied.
    pub results: Vec<Result<(), Refused>>,
    /// The store after it.
    pub view: StoreView,
}

/// A word of one control client.
#[derive(Clone, Debug)]
pub enum LinkEvent {
    /// Attached; the server said who it is.
    Attached(Identity),
    /// Not attached; nothing is concluded from it but what the class says.
    Failed(AttachFailure),
    /// A notification.
    Mark(Mark),
    /// The answer to a question.
    Answer {
        /// Which question.
        tag: Tag,
        /// What was answered.
        answer: Answer,
    },
    /// The client's queue ran over: notifications were lost, answers were not.
    Overflow,
    /// The stream is at its end and the client's process is collected.
    Ended {
        /// The `%exit` reason, empty without one; `None` when no `%exit` came.
        exit: Option<BString>,
    },
}

/// Who a server says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its process.
    pub process: ProcessId,
    /// `#{start_time}`, unix seconds.
    pub started_at: i64,
    /// `#{version}`.
    pub version: String,
    /// Our own session there.
    pub session: SessionId,
    /// The pane of `ait hold` there.
    pub hold: PaneId,
    /// The name of our client.
    pub client: BString,
    /// The user's default session before we attached, where there was one.
    pub default_session: Option<SessionId>,
}

/// Why a client did not attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachFailure {
    /// No socket, or nobody listens on it.
    NoServer,
    /// Anything else: refused, silent, another protocol, no tmux. Unknown is not gone.
    Unknown(String),
}

/// What stands behind a record's pane process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// The pane's process, with its start.
    pub pane_process: ProcessId,
    /// The agent's own process: the pane's, or a child of the user's shell.
    pub agent: ProcessId,
    /// Whether the agent is below a shell, and which.
    pub shell: Option<ShellHost>,
    /// The server that started the pane's process, with its start; `None` when its environment does not say.
    pub server: Option<FoundServer>,
    /// The agent's arguments.
    pub argv: Vec<String>,
    /// The agent's working directory.
    pub cwd: Option<PathBuf>,
}

/// A shell that holds an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellHost {
    /// Its arguments.
    pub argv: Vec<String>,
    /// Its working directory, or empty.
    pub cwd: String,
}

/// The server a process was started by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// Its socket.
    pub socket: PathBuf,
    /// Its process.
    pub process: ProcessId,
}

/// An agent's end under an earlier boot, from the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedEarlier {
    /// The record as it was archived.
    pub record: Box<Record>,
    /// When it ended, unix seconds.
    pub at: i64,
    /// What was seen then, in words.
    pub evidence: String,
    /// Whether it ended in a way a shutdown ends agents, and by no verb of the user's.
    pub provisional: bool,
}

/// A question or an order to one server, by ids only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// List sessions, windows and panes.
    Listing,
    /// Answer, so that it is known to live.
    Ping,
    /// List one pane.
    Pane(PaneId),
    /// Make the server collect its dead children.
    Nudge {
        /// By the end of a child of its own rather than by the signal that tells of one: later, and where no signal reaches it.
        by_child: bool,
    },
    /// What the user's own settings make of this pane's death.
    Habits(PaneId),
    /// Stamp the pane with the record, when its process is still that pid.
    Stamp {
        /// The pane.
        pane: PaneId,
        /// Its process.
        pid: i32,
        /// The record.
        record: RecordId,
    },
    /// Take the record's stamp off the pane, when it carries that one.
    Unstamp {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Keep the pane when its process ends, when it carries the record's stamp.
    KeepDead {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Take the keeping back, when it carries the record's stamp.
    UnkeepDead {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Take the stand-in's stamp off the pane, when it carries that one.
    UnstampFrozen {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Stamp a dead pane of the record as the one its stand-in is to take.
    StampFrozen {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Put the record's stand-in into the pane, when it carries the stand-in's stamp and is dead, or runs an earlier stand-in or
    /// the process `over`.
    RespawnStandin {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
        /// A process of the record that may be replaced.
        over: Option<i32>,
    },
    /// Close the pane, when it is dead and carries the record's stamp.
    KillDead {
        /// The pane.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Move a window that came to be in `_ait` to a session of the user's.
    ExpelWindow {
        /// The window.
        window: WindowId,
        /// Where it goes.
        to: SessionId,
        /// Whether it is to be that session's current window.
        selected: bool,
    },
    /// Break a pane that came to be in our window out into a session of the user's.
    ExpelPane {
        /// The pane.
        pane: PaneId,
        /// Where it goes.
        to: SessionId,
        /// Whether its new window is to be that session's current one.
        selected: bool,
    },
    /// Name the clients of the user's.
    Clients,
    /// Say what the clients of the user's show.
    Lookers,
    /// Say how the titles of stamped panes begin now, before it would tell of it by itself.
    Titles,
    /// Show a line in a client's status line for a few seconds; it takes no key.
    Say {
        /// The client's name.
        client: BString,
        /// The line.
        text: String,
        /// The newest moment it tells of.
        newest: Stamp,
    },
    /// Send a client that came to `_ait` to a session of the user's.
    ExpelClient {
        /// The client's name.
        client: BString,
        /// Where it goes.
        to: SessionId,
    },
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Ask::Listing`].
    Listing(Snapshot),
    /// To [`Ask::Pane`]: its row, or that it is in no window.
    Pane(Option<PaneRow>),
    /// To [`Ask::Habits`].
    Habits(Habits),
    /// To [`Ask::Clients`].
    Clients(Vec<BString>),
    /// To [`Ask::Lookers`].
    Lookers(Vec<Looker>),
    /// To [`Ask::Titles`].
    Titles(Vec<(PaneId, BString)>),
    /// The order was carried out.
    Done,
    /// Its guard did not hold; nothing was done.
    NotDone,
    /// The server refused, or its answer made no sense.
    Failed(String),
}

/// What the user's own settings make of a pane's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// A `pane-died` or `pane-exited` hook is set at some level: keeping the pane would make it fire differently.
    pub hooks: bool,
    /// The window's or the global `remain-on-exit` keeps dead panes.
    pub keeps: bool,
    /// The pane's own value, where it has one: whether it keeps the pane.
    pub own: Option<bool>,
}

/// What the supervisor wants done, in this order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Attach a control client.
    Attach {
        /// Which server.
        socket: PathBuf,
        /// The number of this client.
        link: LinkId,
    },
    /// Close the client's pipe; its end comes back as [`LinkEvent::Ended`].
    Detach {
        /// Which server.
        socket: PathBuf,
        /// Which client.
        link: LinkId,
    },
    /// Ask on a client.
    Ask {
        /// Which server.
        socket: PathBuf,
        /// Which client.
        link: LinkId,
        /// The number of the question.
        tag: Tag,
        /// The question.
        ask: Ask,
    },
    /// Tell the death of this process, at once if it is gone already.
    Watch(ProcessId),
    /// No longer.
    Unwatch(ProcessId),
    /// Look at a record's pane process.
    Examine {
        /// The record.
        record: RecordId,
        /// Its pane.
        pane: PaneId,
        /// The pane's process.
        pid: i32,
    },
    /// Apply these changes in one write.
    Write {
        /// The number of the write.
        ticket: Ticket,
        /// The changes, in order.
        changes: Vec<(RecordId, Verb)>,
    },
    /// Keep the last screen of an ended agent.
    KeepScreen {
        /// Which server.
        socket: PathBuf,
        /// Which pane.
        pane: PaneId,
        /// The record it was.
        record: RecordId,
    },
    /// Keep the screen of a live agent, for the case that its server goes.
    Checkpoint {
        /// Which server.
        socket: PathBuf,
        /// Its process, and `#{start_time}`.
        server: (i32, i64),
        /// Which pane, which must carry the record's stamp.
        pane: PaneId,
        /// The record.
        record: RecordId,
    },
    /// Bring these lost agents back, in a process of its own.
    Recover {
        /// The records.
        records: Vec<RecordId>,
    },
    /// Keep up to when all was said at attaches.
    KeepSaid(Said),
    /// Note what a source shows of an agent's turn.
    NoteTurn {
        /// The record.
        record: RecordId,
        /// The launch of its agent.
        runtime: String,
        /// Its provider.
        provider: String,
        /// What was seen.
        seen: Box<Observation>,
    },
    /// Tell the user.
    Notify {
        /// What.
        note: Box<Note>,
        /// Terminals of the user's that show something else.
        ttys: Vec<BString>,
    },
    /// Keep what stands where on a server, for the case that it goes.
    KeepPlan(Box<Plan>),
    /// Read the ends of earlier boots from the archive.
    Recall {
        /// Nothing before this moment matters, unix seconds.
        since: i64,
    },
    /// Make a server whose socket file was deleted make it again (SIGUSR1).
    RemakeSocket(ProcessId),
    /// Something a report shows has changed.
    Publish,
    /// Everything is taken back; the driver may end.
    Ended,
}
