//! Where a restore is, and the words of its ends.

use std::time::Duration;

use crate::coordinator::launch::Started;
use crate::coordinator::preflight::Ready;
use crate::coordinator::proof::{Evidence, Named};
use crate::coordinator::told::{End, Outcome};
use crate::coordinator::{Act, Deed, PaneAct};
use crate::record::{Ack, Host, Location, Nonce, PaneId, ProcessId, Record, RecordId};
use crate::world::rows::PaneRow;

/// When a launched agent is looked at without an event to tell of it: dialogs and lists of processes of some providers tell
/// nobody. Spans after its launch; the acknowledgement's end comes behind them.
pub(super) const LOOKS: [u64; 12] = [100, 300, 600, 1000, 1500, 2200, 3000, 4500, 6500, 9000, 12_000, 16_000];
/// An agent that has lived this long without a sign of trouble lets others begin.
pub(super) const STANDING: Duration = Duration::from_secs(3);

/// What makes a new agent live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth {
    /// It stands: its prompt line is open, it is named by its provider, or it has lived for a while.
    Standing,
    /// Its launch: it does its work and leaves.
    Launched,
}

/// A restore under its lease.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) record: Box<Record>,
    pub(super) nonce: Nonce,
}

/// A launched agent.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) held: Held,
    pub(super) started: Box<Started>,
    /// The session id it must have; `None`: any.
    pub(super) asked: Option<String>,
    pub(super) since: Duration,
    pub(super) looks: usize,
    pub(super) looking: bool,
    pub(super) evidence: Evidence,
    pub(super) dialog: Option<String>,
    pub(super) agent: Option<ProcessId>,
    pub(super) told_standing: bool,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Waits for the record.
    Reading,
    /// Waits for preflight, before anything is written.
    Checking(Box<Record>),
    /// Waits for `restore-begin`.
    Beginning { record: Box<Record>, tries: usize },
    /// Waits for the record as it is under the lease.
    Claimed(Held),
    /// Waits for preflight again, under the lease.
    Again(Held),
    /// Waits until the folder its conversation is filed under is on the record.
    Filing { held: Held, ready: Box<Ready> },
    /// Waits for the launch.
    Launching { held: Held, asked: Option<String> },
    /// Waits a little: tmux refused the launch, and may take it when all is looked at anew.
    Refused(Held),
    /// Waits for the listing that says whether a launch was done.
    Doubting { held: Held, asked: Option<String>, why: String },
    /// Waits for `restore-launched`.
    Recording { running: Running },
    /// Waits for the record with its new place, and for what is asked besides.
    Following(Running),
    /// Waits for proof.
    Proving(Running),
    /// Waits for `restore-confirm`.
    Confirming { running: Running, named: Option<Named> },
    /// Waits for the record, which a hook may have changed first.
    Rereading { running: Running, outcome: Box<Outcome> },
    /// Waits for the record as it is once it is live.
    Living { running: Running, outcome: Box<Outcome> },
    /// Waits for the stamps to be put right; `before`: where its stand-in was, if elsewhere.
    Stamping { outcome: Box<Outcome>, before: Option<PaneId> },
    /// Waits for the stand-in it left behind to be closed.
    Clearing(Box<Outcome>),
    /// Waits for `restore-abort`.
    Undoing { held: Held, back: Back, outcome: Box<Outcome>, error: String },
    /// Waits for the record as it is on its way back.
    Returning { held: Held, seat: Seat, outcome: Box<Outcome> },
    /// Waits for the stand-in's start.
    Standing { held: Held, seat: Seat, outcome: Box<Outcome> },
    /// Waits for the listing that shows the stand-in.
    Finding { held: Held, put: Option<PaneId>, outcome: Box<Outcome> },
    /// Waits for `standin-respawned`.
    Closing { held: Held, at: Location, outcome: Box<Outcome> },
    /// Over.
    Over,
}

/// How the stand-in comes back.
#[derive(Debug, Clone)]
pub(super) enum Back {
    /// Nothing was started: where it is.
    Stays(Location),
    /// In this pane.
    In(Seat),
}

/// The pane of a launched agent, and the process that was started in it: what its stand-in takes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    pub(super) pane: PaneId,
    pub(super) pid: i32,
}

impl Seat {
    pub(super) fn stand_in(self) -> Act {
        Act::Pane(PaneAct { pane: self.pane, pid: Some(self.pid), deed: Deed::RespawnStandin })
    }
}

impl Running {
    pub(super) fn at(&self) -> Location {
        Location::pane(self.started.pane, self.started.process.clone())
    }

    pub(super) fn below_shell(&self) -> bool {
        matches!(self.held.record.ait.host, Some(Host::Shell { .. }))
    }
}

/// Where the record's stand-in is: in the pane it was just put into, before any other that carries its stamp.
pub(super) fn stand_in(panes: &[PaneRow], record: RecordId, put: Option<PaneId>) -> Location {
    let id = record.to_string();
    let mut stamped = panes.iter().filter(|row| row.frozen == id.as_str());
    let row = stamped.clone().find(|row| put == Some(PaneId(row.id.0))).or_else(|| stamped.next());
    row.and_then(|row| Some(Location::pane(PaneId(row.id.0), ProcessId::bare(row.pid?))))
        .unwrap_or(Location::Gone)
}

/// Whether the record is still under this restore's lease.
pub(super) fn holds(record: &Record, nonce: Nonce) -> bool {
    record.lease.as_ref().is_some_and(|lease| lease.nonce == nonce)
}

pub(super) fn verified(ack: &str) -> Outcome {
    if ack == Ack::Liveness.word() {
        return Outcome::new(End::Done, "unverified", "it runs; nothing said which conversation");
    }
    Outcome::new(End::Done, "verified", format!("by its {ack}"))
}

pub(super) fn mismatch(asked: Option<&str>, got: Option<&str>) -> Outcome {
    let (asked, got) = (asked.unwrap_or("any"), got.unwrap_or("another"));
    failed("session_mismatch", format!("asked for {asked}, it has {got}"))
}

pub(super) fn failed(word: &str, seen: impl Into<String>) -> Outcome {
    Outcome::new(End::Failed, word, seen)
}

pub(super) fn stopped() -> Outcome {
    failed("stopped", "it was told to stop")
}
