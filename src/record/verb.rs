//! The words of a change: what is asked ([`Verb`]), what is known when it is asked ([`Facts`]), and what comes of it
//! ([`Change`] with its [`Outcome`], or [`Refused`]).

use std::fmt;

use super::{
    Capture, Liveness, Location, LossCause, Lost, Nonce, Ours, PaneId, ProcessId, Record, RecordId,
    RestoreMode, ServerEpoch, Stamp, StateName, WindowId,
};

/// Everything that may happen to a record. Every change of a record is one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// An agent was seen, started or reported: make its record, or bring it up to date.
    Upsert(Box<Upsert>),
    /// Claim a live record and mark that its agent is being ended.
    FreezeBegin {
        /// The coordinator.
        owner: ProcessId,
        /// What was captured.
        capture: Capture,
        /// The turn state as seen, or empty.
        phase: String,
        /// What its processes have of memory to themselves, in bytes, where that is known.
        memory: Option<u64>,
    },
    /// The stand-in runs (or the pane is gone): frozen.
    FreezeCommit {
        /// The lease's token.
        nonce: Nonce,
        /// The stand-in's pane.
        at: Location,
    },
    /// The agent was left running after all.
    FreezeAbort {
        /// The lease's token.
        nonce: Nonce,
    },
    /// Claim a frozen record for bringing it back.
    RestoreBegin {
        /// The coordinator.
        owner: ProcessId,
        /// How.
        mode: RestoreMode,
    },
    /// A replacement was started there.
    RestoreLaunched {
        /// The lease's token.
        nonce: Nonce,
        /// The replacement's pane.
        at: Location,
        /// The epoch of that pane, where it is another than before.
        server: Option<ServerEpoch>,
        /// The UUID of this launch.
        runtime_id: Option<String>,
    },
    /// The replacement runs: live. By mere liveness it is unverified and the captures are kept; named by the provider's own
    /// files it is verified.
    RestoreConfirm {
        /// The lease's token.
        nonce: Nonce,
        /// The pane as observed.
        at: Location,
        /// How it is known.
        ack: Ack,
        /// The agent's own process, where that is another than the pane's.
        agent: Option<ProcessId>,
        /// The session id the provider's files name; must be the stored one in resume mode.
        session_id: Option<String>,
    },
    /// The restore failed.
    RestoreAbort {
        /// The lease's token.
        nonce: Nonce,
        /// Why, or empty.
        error: String,
    },
    /// A stand-in is there again.
    StandinRespawned {
        /// The lease's token.
        nonce: Nonce,
        /// Its pane, or gone.
        at: Location,
    },
    /// Claim a record.
    LeaseTake {
        /// The coordinator.
        owner: ProcessId,
    },
    /// Give the claim back.
    LeaseRelease {
        /// The lease's token.
        nonce: Nonce,
    },
    /// The agent was taken by a crash: frozen, recoverable.
    Lose {
        /// What took it.
        cause: LossCause,
        /// What was seen, in words.
        evidence: String,
        /// The agent's exit status, where there is one.
        exit_status: Option<i32>,
        /// The signal that ended it, where known.
        signal: Option<i32>,
        /// The checkpoint that becomes the capture, if there is one.
        checkpoint: Option<Capture>,
    },
    /// The agent ended: to the archive.
    End {
        /// Why, one word.
        reason: String,
        /// What was seen, in words.
        evidence: String,
        /// Whether a shutdown that follows soon may still claim it (lifecycle contract, "A shutdown is not a stop").
        provisional: bool,
    },
    /// The stop of its server turned out to be the end of the boot: the loss is a reboot's.
    Reboot {
        /// What was seen, in words.
        evidence: String,
    },
    /// Retire on the evidence of an observation (store contract, section 5). The observation was judged before.
    Retire {
        /// Which rule.
        reason: RetireReason,
        /// What was seen, in words.
        evidence: String,
    },
    /// Back from the archive, as frozen.
    Revive {
        /// The record as it was archived.
        archived: Box<Record>,
        /// The loss it turned out to belong to, if any.
        lost: Option<Box<Lost>>,
        /// Its last screen, if kept.
        capture: Option<Capture>,
    },
    /// Forget the record and its captures; the archive keeps the conversation's id.
    Drop {
        /// The lease's token, when a coordinator drops.
        nonce: Option<Nonce>,
    },
    /// Say what it works on, where that is blank.
    FillTask {
        /// The operation, or empty.
        operation: String,
        /// The task, or empty.
        task_id: String,
    },
    /// Names and places around the pane changed in the record's own epoch.
    Follow(Box<Follow>),
    /// More became known of the agent in that pane.
    Enrich {
        /// The pane and process it is known of.
        at: Location,
        /// What is known.
        ours: Box<Ours>,
        /// How it was lost, for a frozen record that no longer says so.
        lost: Option<Box<Lost>>,
        /// Whether it replaces what is there, or only fills blanks.
        replace: bool,
    },
    /// The agent's own hook says which conversation runs.
    Bind(Box<Bind>),
}

/// How a restored agent is known without its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ack {
    /// The launched process still runs.
    Liveness,
    /// The provider's list of running processes names the conversation for it.
    Registry,
    /// It has the conversation's file open.
    Rollout,
}

impl Ack {
    /// The word in the file and in result lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Liveness => "liveness",
            Self::Registry => "registry",
            Self::Rollout => "rollout",
        }
    }
}

/// The names of all verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the verb of the same name")]
pub enum VerbName {
    Upsert,
    FreezeBegin,
    FreezeCommit,
    FreezeAbort,
    RestoreBegin,
    RestoreLaunched,
    RestoreConfirm,
    RestoreAbort,
    StandinRespawned,
    LeaseTake,
    LeaseRelease,
    Lose,
    End,
    Reboot,
    Retire,
    Revive,
    Drop,
    FillTask,
    Follow,
    Enrich,
    Bind,
}

impl VerbName {
    /// The verb as written on the command line and in result lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::FreezeBegin => "freeze-begin",
            Self::FreezeCommit => "freeze-commit",
            Self::FreezeAbort => "freeze-abort",
            Self::RestoreBegin => "restore-begin",
            Self::RestoreLaunched => "restore-launched",
            Self::RestoreConfirm => "restore-confirm",
            Self::RestoreAbort => "restore-abort",
            Self::StandinRespawned => "standin-respawned",
            Self::LeaseTake => "lease-take",
            Self::LeaseRelease => "lease-release",
            Self::Lose => "lose",
            Self::End => "end",
            Self::Reboot => "reboot",
            Self::Retire => "purge",
            Self::Revive => "revive",
            Self::Drop => "drop",
            Self::FillTask => "fill-task",
            Self::Follow => "follow",
            Self::Enrich => "enrich",
            Self::Bind => "bind",
        }
    }
}

impl Verb {
    /// The verb's name.
    #[must_use]
    pub fn name(&self) -> VerbName {
        match self {
            Self::Upsert(_) => VerbName::Upsert,
            Self::FreezeBegin { .. } => VerbName::FreezeBegin,
            Self::FreezeCommit { .. } => VerbName::FreezeCommit,
            Self::FreezeAbort { .. } => VerbName::FreezeAbort,
            Self::RestoreBegin { .. } => VerbName::RestoreBegin,
            Self::RestoreLaunched { .. } => VerbName::RestoreLaunched,
            Self::RestoreConfirm { .. } => VerbName::RestoreConfirm,
            Self::RestoreAbort { .. } => VerbName::RestoreAbort,
            Self::StandinRespawned { .. } => VerbName::StandinRespawned,
            Self::LeaseTake { .. } => VerbName::LeaseTake,
            Self::LeaseRelease { .. } => VerbName::LeaseRelease,
            Self::Lose { .. } => VerbName::Lose,
            Self::End { .. } => VerbName::End,
            Self::Reboot { .. } => VerbName::Reboot,
            Self::Retire { .. } => VerbName::Retire,
            Self::Revive { .. } => VerbName::Revive,
            Self::Drop { .. } => VerbName::Drop,
            Self::FillTask { .. } => VerbName::FillTask,
            Self::Follow(_) => VerbName::Follow,
            Self::Enrich { .. } => VerbName::Enrich,
            Self::Bind(_) => VerbName::Bind,
        }
    }
}

/// What an upsert says of an agent. Blank text is "not supplied".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upsert {
    /// The project's root, resolved.
    pub root: String,
    /// The window's name.
    pub window: String,
    /// The agent's pane and its process.
    pub at: Location,
    /// The record that the pane's stamp names.
    pub id: Option<RecordId>,
    /// The session's name, or empty.
    pub session: String,
    /// The provider's session id, or empty.
    pub session_id: String,
    /// Whether a stored session id is to be cleared.
    pub clear_session_id: bool,
    /// The conversation's file, or empty.
    pub transcript: String,
    /// `agent/model`, or empty.
    pub agent_string: String,
    /// What it works on, or empty.
    pub operation: String,
    /// The task, or empty.
    pub task_id: String,
    /// The restore this acknowledges, with its token.
    pub restore_of: Option<(RecordId, Nonce)>,
    /// Epoch, process, host and launch facts; what is given replaces what was stored.
    pub ours: Ours,
}

impl Upsert {
    /// An upsert that says no more than where the agent is.
    #[must_use]
    pub fn new(root: impl Into<String>, window: impl Into<String>, at: Location) -> Self {
        Self {
            root: root.into(),
            window: window.into(),
            at,
            id: None,
            session: String::new(),
            session_id: String::new(),
            clear_session_id: false,
            transcript: String::new(),
            agent_string: String::new(),
            operation: String::new(),
            task_id: String::new(),
            restore_of: None,
            ours: Ours::default(),
        }
    }

    /// The provider, from `agent/model`.
    #[must_use]
    pub fn agent_kind(&self) -> &str {
        kind_of(&self.agent_string)
    }
}

/// The provider named by `agent/model`; empty if the text has not that form.
#[must_use]
pub fn kind_of(agent_string: &str) -> &str {
    match agent_string.split_once('/') {
        Some((kind, model)) if !model.is_empty() => kind,
        Some(_) | None => "",
    }
}

/// What changed around a record's pane; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// The pane; must be the record's.
    pub pane: PaneId,
    /// Its epoch; must be the record's.
    pub server: ServerEpoch,
    /// The session's name.
    pub session: Option<String>,
    /// The window's name. Another name takes the lowest slot unused there.
    pub window: Option<String>,
    /// The window's id.
    pub window_id: Option<WindowId>,
    /// The window's index.
    pub window_index: Option<i64>,
    /// The window's layout.
    pub window_layout: Option<String>,
    /// The pane's title.
    pub title: Option<String>,
    /// The pane's working directory.
    pub cwd: Option<String>,
    /// The stand-in that runs in the pane now, of a frozen record.
    pub standin: Option<ProcessId>,
}

impl Follow {
    /// A follow that changes nothing yet.
    #[must_use]
    pub fn new(pane: PaneId, server: ServerEpoch) -> Self {
        Self {
            pane,
            server,
            session: None,
            window: None,
            window_id: None,
            window_index: None,
            window_layout: None,
            title: None,
            cwd: None,
            standin: None,
        }
    }
}

/// What an agent's hook says of its conversation, or what was found out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The agent's processes up to its pane's own; the record's agent must be one of them while it is somewhere.
    pub line: Vec<ProcessId>,
    /// The provider's outermost own process.
    pub agent: ProcessId,
    /// The record's launch count when it was said; must be the record's if the agent is nowhere any more.
    pub generation: Option<u64>,
    /// The provider's session id; not empty.
    pub session_id: String,
    /// The conversation's file, or empty.
    pub transcript: String,
    /// The conversation that the record must still have, where this was looked up and not told by the agent.
    pub instead_of: Option<String>,
}

/// Why a record retires by observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetireReason {
    /// Its pane is in no window of its server, and its process is gone.
    DeadWindow,
    /// Its pane is gone or dead, and its process is gone.
    DeadPane,
    /// Frozen, and its capture is provably absent.
    CaptureMissing,
}

impl RetireReason {
    /// The word in result lines and in the archive.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::DeadWindow => "dead_window",
            Self::DeadPane => "dead_pane",
            Self::CaptureMissing => "capture_missing",
        }
    }
}

/// What is known from outside when a verb is applied.
pub struct Facts<'a> {
    /// The wall clock.
    pub now: Stamp,
    /// Seconds since boot, by a clock that runs through suspend and that nobody can set.
    pub since_boot: u64,
    /// This boot.
    pub boot_id: &'a str,
    /// How long a lease is safe from being taken over, in seconds.
    pub grace: u64,
    /// Whether a process lives. A bare pid is asked with an empty start.
    pub alive: &'a dyn Fn(&ProcessId) -> Liveness,
    /// The start of the process that has this pid now; `None` if there is none or it cannot be read.
    pub started: &'a dyn Fn(i32) -> Option<String>,
    /// 32 random bits.
    pub draw: &'a dyn Fn() -> u32,
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("now", &self.now)
            .field("boot_id", &self.boot_id)
            .finish_non_exhaustive()
    }
}

/// What becomes of a record's capture files once the change is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captures {
    /// They stay.
    Keep,
    /// They are no longer needed and are deleted after the write.
    Remove,
}

/// What a verb makes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The record as it is now; `None` once it is retired, ended or dropped.
    pub record: Option<Record>,
    /// The archive line to write before the record goes.
    pub archive: Option<Farewell>,
    /// What happens to the captures.
    pub captures: Captures,
    /// What is answered.
    pub outcome: Outcome,
}

/// Why a record went to the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// One word: `dropped`, `dead_pane`, the reason of an `end` …
    pub reason: String,
    /// What was seen, in words.
    pub evidence: String,
    /// Whether a shutdown that follows soon may still claim it.
    pub provisional: bool,
}

/// What is answered to a verb that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Upsert made a record.
    Created {
        /// Its slot; 0 is said as plain `created` when the window had no record.
        slot: Option<u32>,
        /// Several records could have been meant, none was touched.
        ambiguous: bool,
    },
    /// Upsert brought a record up to date.
    Updated,
    /// Upsert found a lost agent running again.
    Rejoined,
    /// Upsert acknowledged a restore.
    Restored,
    /// Frozen-to-be, under this lease.
    Freezing(Nonce),
    /// Frozen.
    Frozen,
    /// Live; with how a restore was proven.
    Live(Option<&'static str>),
    /// Restoring, under this lease.
    Restoring(Nonce),
    /// A replacement was started.
    Launched,
    /// The restore is being undone.
    Aborting,
    /// A stand-in is there.
    StandIn,
    /// Leased.
    Leased(Nonce),
    /// The lease was given back.
    Released,
    /// Lost.
    Lost,
    /// Ended.
    Ended,
    /// Retired.
    Retired(RetireReason),
    /// Back from the archive.
    Revived,
    /// Dropped.
    Dropped,
    /// Blanks were filled (or there were none).
    Filled,
    /// The record follows.
    Followed,
    /// The record knows more.
    Enriched,
    /// The record knows which conversation runs.
    Bound,
    /// The acknowledged session is another than the one asked for; the record says so now. The one refusal that writes.
    SessionMismatch,
}

impl Outcome {
    /// The exit code of `ait record`.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if *self == Self::SessionMismatch { 7 } else { 0 }
    }

    /// The result line.
    #[must_use]
    pub fn line(&self, id: RecordId) -> String {
        match self {
            Self::Created { slot: None, ambiguous: false } => format!("UPSERTED:{id}|created"),
            Self::Created { slot: None, ambiguous: true } => {
                format!("UPSERTED:{id}|created|ambiguous_relocation")
            }
            Self::Created { slot: Some(slot), ambiguous: false } => {
                format!("UPSERTED:{id}|created_slot{slot}")
            }
            Self::Created { slot: Some(slot), ambiguous: true } => {
                format!("UPSERTED:{id}|created_slot{slot}|ambiguous_relocation")
            }
            Self::Updated => format!("UPSERTED:{id}|updated"),
            Self::Rejoined => format!("UPSERTED:{id}|rejoined"),
            Self::Restored => format!("UPSERTED:{id}|restored"),
            Self::Freezing(nonce) => format!("FREEZING:{id}|{nonce}"),
            Self::Frozen => format!("FROZEN:{id}"),
            Self::Live(None) => format!("LIVE:{id}"),
            Self::Live(Some(ack)) => format!("LIVE:{id}|{ack}"),
            Self::Restoring(nonce) => format!("RESTORING:{id}|{nonce}"),
            Self::Launched => format!("LAUNCHED:{id}"),
            Self::Aborting => format!("ABORTING:{id}"),
            Self::StandIn => format!("STANDIN:{id}"),
            Self::Leased(nonce) => format!("LEASED:{id}|{nonce}"),
            Self::Released => format!("RELEASED:{id}"),
            Self::Lost => format!("LOST:{id}"),
            Self::Ended => format!("ENDED:{id}"),
            Self::Retired(reason) => format!("DROPPED:{id}|{}", reason.word()),
            Self::Revived => format!("REVIVED:{id}"),
            Self::Dropped => format!("DROPPED:{id}"),
            Self::Filled => format!("FILLED:{id}"),
            Self::Followed => format!("FOLLOWED:{id}"),
            Self::Enriched => format!("ENRICHED:{id}"),
            Self::Bound => format!("BOUND:{id}"),
            Self::SessionMismatch => format!("RESTORE_SESSION_MISMATCH:{id}"),
        }
    }

    /// The token a later verb must show, if this outcome hands one out.
    #[must_use]
    pub fn nonce(&self) -> Option<Nonce> {
        match self {
            Self::Freezing(nonce) | Self::Restoring(nonce) | Self::Leased(nonce) => Some(*nonce),
            Self::Created { .. }
            | Self::Updated
            | Self::Rejoined
            | Self::Restored
            | Self::Frozen
            | Self::Live(_)
            | Self::Launched
            | Self::Aborting
            | Self::StandIn
            | Self::Released
            | Self::Lost
            | Self::Ended
            | Self::Retired(_)
            | Self::Revived
            | Self::Dropped
            | Self::Filled
            | Self::Followed
            | Self::Enriched
            | Self::Bound
            | Self::SessionMismatch => None,
        }
    }
}

/// Why a verb wrote nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such record.
    #[error("no such record: {0}")]
    NoSuchRecord(RecordId),
    /// The record's state does not allow the verb.
    #[error("record {id} is {state}: {} is refused", verb.word())]
    State {
        /// The record.
        id: RecordId,
        /// Its state.
        state: StateName,
        /// The verb.
        verb: VerbName,
    },
    /// An upsert picked a record that is not live.
    #[error("record {id} cannot be taken over: {why}")]
    Upsert {
        /// The record.
        id: RecordId,
        /// Why, one word.
        why: &'static str,
    },
    /// The verb wants proof that is not there.
    #[error("record {id}: {} is refused: {why}", verb.word())]
    NoEvidence {
        /// The record.
        id: RecordId,
        /// The verb.
        verb: VerbName,
        /// What is missing, one word.
        why: &'static str,
    },
    /// The token is not the lease's.
    #[error("record {0}: the nonce is not that of its lease")]
    Nonce(RecordId),
    /// Another coordinator holds it.
    #[error("record {0} is held by another operation")]
    LeaseHeld(RecordId),
}

impl Refused {
    /// The exit code of `ait record`.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoSuchRecord(_) => 4,
            Self::State { .. } | Self::Upsert { .. } | Self::NoEvidence { .. } => 5,
            Self::Nonce(_) => 6,
            Self::LeaseHeld(_) => 8,
        }
    }

    /// The result line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::NoSuchRecord(id) => format!("NO_SUCH_RECORD:{id}"),
            Self::State { id, state, verb } => format!("TRANSITION_REFUSED:{id}|{state}|{}", verb.word()),
            Self::Upsert { id, why } => format!("UPSERT_REFUSED:{id}|{why}"),
            Self::NoEvidence { id, verb, why } => format!("EVIDENCE_REFUSED:{id}|{}|{why}", verb.word()),
            Self::Nonce(id) => format!("NONCE_MISMATCH:{id}"),
            Self::LeaseHeld(id) => format!("LEASE_HELD:{id}"),
        }
    }
}
