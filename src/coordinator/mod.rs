//! The coordinators: an operation of several steps on a record and its pane, as a machine without IO.
//!
//! A coordinator is told what happened by [`Coordinator::handle`] and asked what to do by [`Coordinator::next_act`], one [`Act`]
//! at a time: each is performed whole and answered by one [`Heard`] before the next is asked for. [`Coordinator::deadline`]
//! says when it wants [`Heard::Time`]; `None` while it waits for nothing but events. It ends with [`Act::Finish`].
//!
//! Between any two acts the process that performs them may be killed: what is left then is what `reconcile` settles. So what
//! must be on disk before an act is an act before it. Deaths, changes of the record and a request to stop come in unasked,
//! between answers.
//!
//! It refuses to look anything up: time, processes, panes and conversations are told to it.

use std::time::Duration;

use crate::record::{self, Capture, ProcessId, Record, RecordId, Refused, RestoreMode, Verb};
use crate::world::rows::Snapshot;

mod course;
mod drop;
mod family;
mod fleet;
mod freeze;
mod launch;
pub mod place;
pub mod preflight;
mod proof;
mod restore;
pub mod sending;
mod sight;
mod told;

pub use drop::Drop;
pub use family::{Family, Kin, megabytes};
pub use fleet::{Fleet, FleetHeard, Next, Pace};
pub use freeze::{Freeze, Order};
pub use launch::{Around, Launch, Launched, RestoreOrder, Started};
pub use proof::{Named, PaneNow, Proof};
pub use restore::{Birth, Restore};
pub use sight::{Composer, Mood, Policy, Refusal, Sight, judge};
pub use told::{End, Outcome, Step, Told};

/// A machine of one operation on one record.
pub trait Coordinator {
    /// Takes what happened at `now`, on the clock that runs from boot.
    fn handle(&mut self, now: Duration, heard: Heard);
    /// What to do next; `None` while it waits.
    fn next_act(&mut self) -> Option<Act>;
    /// When it wants to be told the time; `None` if only events matter.
    fn deadline(&self) -> Option<Duration>;
}

/// One thing to do. Those that change something are one step each: a kill may fall behind any of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Read the record: [`Heard::Record`].
    Read,
    /// From now on tell every change of the record's file unasked: [`Heard::Record`]. Answered by the record as it is.
    Follow,
    /// Apply a verb to the record: [`Heard::Applied`].
    Apply(Box<Verb>),
    /// List the server of the record's epoch whole: [`Heard::Server`].
    Look,
    /// Look at the record's pane and everything below its process: [`Heard::Family`].
    Family,
    /// What the agent is doing, by every source there is: [`Heard::Sight`].
    Examine,
    /// Whether the conversation can be resumed from disk: [`Heard::Conversation`].
    Locate,
    /// Write scrollback and screen of the record's pane to its captures: [`Heard::Captured`].
    Capture,
    /// A guarded act on a pane of the record's epoch: [`Heard::Acted`].
    Pane(PaneAct),
    /// Close what stands in for the record on the server that took the place of its own: a recovery that was cut short may have
    /// put it there and never said so on the record. [`Heard::Acted`]; done once none is left.
    Clear,
    /// Watch a process: [`Heard::Watching`], and [`Heard::Died`] once it is dead.
    Watch(ProcessId),
    /// Send each of these processes the signal through a handle of its own: [`Heard::Signalled`].
    Signal {
        /// Who.
        to: Vec<ProcessId>,
        /// What.
        signal: Sign,
    },
    /// Whether the record's agent can come back this way, and whether it is back already: [`Heard::Ready`].
    Ready {
        /// The conversation, or its task anew.
        mode: RestoreMode,
    },
    /// Start the agent in its pane, or in a new one: [`Heard::Launched`].
    Launch(Box<Launch>),
    /// From now on tell every change of the provider's own files about running agents, unasked: [`Heard::Touched`]. No answer
    /// of its own but that.
    Attend,
    /// What shows of the launched agent: [`Heard::Proof`].
    Prove,
    /// Say how far it is. No answer.
    Tell(Step),
    /// It is over. No answer.
    Finish(Outcome),
}

/// A guarded act: one command in tmux tests pane, epoch and what is named here, and acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneAct {
    /// The pane.
    pub pane: record::PaneId,
    /// The pane's process, where it must still be that one; for [`Deed::RespawnStandin`]: the process it may be.
    pub pid: Option<i32>,
    /// What is done.
    pub deed: Deed,
}

/// What is done to a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// `@aitask_frozen` gets the record's id, and the pane is kept when its process ends.
    StampFrozen,
    /// That stamp comes off again; `release` also lets the pane close when its process ends.
    UnstampFrozen {
        /// Whether `remain-on-exit` on this pane was ours alone.
        release: bool,
    },
    /// The record's stand-in replaces what was in the pane that carries its stamp: a dead process, an earlier stand-in, or the
    /// process that is named. Whatever else lives there stays.
    RespawnStandin,
    /// The pane that carries the stand-in's stamp, and runs it or is dead, is closed.
    KillStandin,
    /// The pane that carries the record's own stamp is closed, when it is dead.
    KillDead,
    /// The pane is the record's again: `@aitask_record` is set, the marks of stand-in and attempt come off; `release` lets
    /// the pane close when its process ends.
    StampRestored {
        /// Whether the pane is to close by itself.
        release: bool,
    },
}

/// A signal a coordinator sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// The record as it is now; `None`: there is none of this id.
    Record(Option<Box<Record>>),
    /// The store cannot be read.
    NoStore(String),
    /// What became of a verb.
    Applied(Applied),
    /// What the record's server shows.
    Server(ServerSight),
    /// The pane's family; an error when processes cannot be read.
    Family(Result<Family, String>),
    /// What the agent is doing.
    Sight(Sight),
    /// Where the conversation is.
    Conversation(Conversation),
    /// The capture that was written, or why not.
    Captured(Result<Captured, String>),
    /// What became of a guarded act.
    Acted(Acted),
    /// Whether the process that is to be watched lives.
    Watching {
        /// The process.
        process: ProcessId,
        /// What was found.
        watch: Watching,
    },
    /// A watched process has died.
    Died(ProcessId),
    /// Which of the processes could not be signalled, with the reason. One that is gone already is not among them.
    Signalled(Vec<(ProcessId, String)>),
    /// Whether the agent can come back.
    Ready(Box<preflight::Ready>),
    /// What became of a launch.
    Launched(Launched),
    /// The provider's files about running agents changed, or are attended to now.
    Touched,
    /// What shows of the launched agent.
    Proof(Box<Proof>),
    /// It was asked to stop (SIGTERM, SIGINT).
    Stop,
    /// The deadline has come.
    Time,
}

/// What became of a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// Done.
    Done(record::Outcome),
    /// Refused: nothing was written.
    Refused(Refused),
    /// The store could not be written.
    Failed(String),
}

/// A server as a coordinator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSight {
    /// All of it, in the record's epoch.
    Listed(Box<Snapshot>),
    /// The record's epoch is over: its server's process is gone.
    Over,
    /// The record names no server.
    Unnamed,
    /// It does not say.
    Unknown(String),
}

/// What became of a guarded act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acted {
    /// Done, proven.
    Done,
    /// The pane is not as it must be; nothing was done.
    NotMet,
    /// tmux refused it: the pane is gone, as a rule.
    Refused(String),
    /// Nobody serves the socket.
    NoServer,
    /// It may have been done: the server did not say.
    Unknown(String),
}

/// What became of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watching {
    /// It lives, and its death will be told.
    Alive,
    /// It is gone.
    Gone,
    /// It cannot be watched.
    Blind(String),
}

/// Where a conversation is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversation {
    /// There, with this id inside.
    Present {
        /// The file, or empty where it is no file of its own.
        path: String,
    },
    /// Not there.
    Missing(String),
    /// Nobody can say.
    Unknown(String),
}

/// What a capture holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The files as they lie there now.
    pub capture: Capture,
    /// Whether an earlier capture was better and stayed.
    pub kept_earlier: bool,
}

/// What every coordinator knows of its operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The record.
    pub record: RecordId,
    /// The coordinator's own process, which will own the lease.
    pub me: ProcessId,
}
