//! What a record is. Read from the store's flat fields once, checked whole, then typed: a state holds only what that
//! state has. Printing a record gives back the flat fields, byte for byte where nothing changed.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::json::{Unknown, print_object, read_object};
use super::ours::{BootTime, Host, Lost, Ours};
use super::{Nonce, PaneId, ProcessId, RecordId, Stamp};

/// What the store knows of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The primary key.
    pub id: RecordId,
    /// The project's root, resolved.
    pub root: String,
    /// The window's name; a label, followed on a rename.
    pub window: String,
    /// Lowest number unused for (root, window) when it came to that window.
    pub window_slot: u32,
    /// Where the agent, or its stand-in, is now.
    pub location: Location,
    /// The session it is or was in, by name.
    pub session: String,
    /// What it works on, as the launcher called it.
    pub operation: String,
    /// The task it is bound to, or empty.
    pub task_id: String,
    /// `agent/model`, or empty.
    pub agent_string: String,
    /// The provider, or empty.
    pub agent_kind: String,
    /// The provider's id of the conversation, or empty.
    pub codeagent_session_id: String,
    /// The provider's file of the conversation, or empty.
    pub transcript_path: String,
    /// When the record was made.
    pub started_at: Option<Stamp>,
    /// When its state last changed.
    pub state_at: Option<Stamp>,
    /// When it was last frozen or lost.
    pub frozen_at: Option<Stamp>,
    /// Its state, with what only that state has.
    pub state: State,
    /// The claim of a multi-step operation; every state can be under one.
    pub lease: Option<Lease>,
    /// The terminal output kept of it.
    pub capture: Capture,
    /// The turn state when it was frozen, in words.
    pub last_phase: String,
    /// The last stand-in's process, 0 if there was none.
    pub standin_pid: i32,
    /// What the restores so far left behind.
    pub restore: Restores,
    /// What this project adds.
    pub ait: Ours,
    /// Fields this version does not know.
    pub unknown: Unknown,
}

/// Where a record's agent is; never its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A pane of the epoch the record names.
    Pane {
        /// tmux's id of it.
        pane: PaneId,
        /// The pane's process; its `started` is empty where nobody could tell.
        process: ProcessId,
    },
    /// Nowhere.
    Gone,
}

impl Location {
    /// A pane and its process.
    #[must_use]
    pub fn pane(pane: PaneId, process: ProcessId) -> Self {
        Self::Pane { pane, process }
    }

    /// The pane, unless gone.
    #[must_use]
    pub fn pane_id(&self) -> Option<PaneId> {
        match self {
            Self::Pane { pane, .. } => Some(*pane),
            Self::Gone => None,
        }
    }

    /// The pane's process, unless gone.
    #[must_use]
    pub fn process(&self) -> Option<&ProcessId> {
        match self {
            Self::Pane { process, .. } => Some(process),
            Self::Gone => None,
        }
    }
}

/// The five states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The agent runs.
    Live,
    /// A coordinator is ending it and putting a stand-in in its place.
    Freezing,
    /// It does not run; its conversation can be brought back.
    Frozen {
        /// How it was lost, if it was not frozen on purpose.
        lost: Option<Box<Lost>>,
    },
    /// A coordinator is bringing it back.
    Restoring {
        /// By the exact conversation, or by picking the task anew.
        mode: RestoreMode,
        /// The replacement's pid, once it was started.
        launch: Option<i32>,
        /// As in `Frozen`.
        lost: Option<Box<Lost>>,
    },
    /// A restore failed; the stand-in is being put back.
    Aborting {
        /// As in `Frozen`.
        lost: Option<Box<Lost>>,
    },
}

impl State {
    /// The state without what it holds.
    #[must_use]
    pub fn name(&self) -> StateName {
        match self {
            Self::Live => StateName::Live,
            Self::Freezing => StateName::Freezing,
            Self::Frozen { .. } => StateName::Frozen,
            Self::Restoring { .. } => StateName::Restoring,
            Self::Aborting { .. } => StateName::Aborting,
        }
    }

    /// How the agent was lost, if it was.
    #[must_use]
    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Self::Live | Self::Freezing => None,
            Self::Frozen { lost } | Self::Restoring { lost, .. } | Self::Aborting { lost } => lost.as_deref(),
        }
    }
}

/// The names of the five states, as the file writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// The agent runs.
    Live,
    /// On its way to frozen.
    Freezing,
    /// Not running.
    Frozen,
    /// On its way back.
    Restoring,
    /// On its way back to frozen.
    Aborting,
}

impl StateName {
    /// All five, in the order of a life.
    pub const ALL: [Self; 5] = [Self::Live, Self::Freezing, Self::Frozen, Self::Restoring, Self::Aborting];

    /// The word in the file and in result lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Freezing => "freezing",
            Self::Frozen => "frozen",
            Self::Restoring => "restoring",
            Self::Aborting => "aborting",
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How a restore brings an agent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreMode {
    /// The exact conversation.
    Resume,
    /// The task, in a new conversation.
    Repick,
}

impl RestoreMode {
    /// The word in the file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Repick => "repick",
        }
    }
}

/// The claim of a multi-step operation on a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Its token.
    pub nonce: Nonce,
    /// The coordinator's process.
    pub owner: ProcessId,
    /// When it was taken, by the wall clock.
    pub since: Stamp,
    /// When it was taken, by the clock nobody can set; absent if an earlier script took it.
    pub since_boot: Option<BootTime>,
}

/// Terminal output kept of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capture {
    /// The file with colours, or empty.
    pub ansi: String,
    /// Lines in it.
    pub lines: u64,
    /// The plain file, or empty.
    pub txt: String,
}

impl Capture {
    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ansi.is_empty() && self.txt.is_empty()
    }
}

/// What the restores of a record left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restores {
    /// How many were begun.
    pub attempts: u32,
    /// The mode of the last one that is over.
    pub last_mode: Option<RestoreMode>,
    /// The replacement's pid of the last one that is over, 0 if none was started.
    pub last_launch: i32,
    /// How the last one was proven: empty, `hook`, `liveness` …
    pub ack: String,
    /// Why the last one failed, `<nonce>:<reason>`, or empty.
    pub last_error: String,
}

impl Record {
    /// The key records are sorted by.
    #[must_use]
    pub fn key(&self) -> (&str, &str, u32) {
        (&self.root, &self.window, self.window_slot)
    }

    /// This launch of the agent, told apart from those before and after.
    #[must_use]
    pub fn runtime(&self) -> String {
        match &self.ait.runtime_id {
            Some(id) if !id.is_empty() => id.clone(),
            Some(_) | None => format!("generation-{}", self.ait.generation.unwrap_or_default()),
        }
    }

    /// The agent's own process: as recorded, else the pane's unless the agent sits below a shell.
    #[must_use]
    pub fn agent_process(&self) -> Option<ProcessId> {
        match (&self.ait.agent, &self.ait.host, &self.location) {
            (Some(agent), _, Location::Pane { .. }) => Some(agent.clone()),
            (None, Some(Host::Shell { .. }), _) | (_, _, Location::Gone) => None,
            (None, Some(Host::Pane) | None, Location::Pane { process, .. }) => Some(process.clone()),
        }
    }
}

/// A field that may be blank text.
struct Blank<T>(Option<T>);

impl<T> Default for Blank<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: std::str::FromStr<Err = super::NotOne>> Deserialize<'de> for Blank<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::json::Key::deserialize(deserializer)?.0;
        if text.is_empty() {
            return Ok(Self(None));
        }
        text.parse().map(|value| Self(Some(value))).map_err(serde::de::Error::custom)
    }
}

read_object! {
    /// The shared fields as they lie in the file.
    #[derive(Default)]
    struct Flat {
        id: Option<RecordId>,
        root: String,
        window: String,
        window_slot: u32,
        pane_id: Blank<PaneId>,
        pane_pid: i32,
        session: String,
        operation: String,
        task_id: String,
        agent_string: String,
        agent_kind: String,
        codeagent_session_id: String,
        transcript_path: String,
        started_at: Blank<Stamp>,
        state: Option<StateName>,
        state_at: Blank<Stamp>,
        frozen_at: Blank<Stamp>,
        op_nonce: Blank<Nonce>,
        op_owner_pid: i32,
        op_started_at: Blank<Stamp>,
        capture_ansi: String,
        capture_txt: String,
        capture_lines: u64,
        last_phase: String,
        standin_pid: i32,
        launch_pid: i32,
        restore_attempts: u32,
        restore_mode: String,
        ack: String,
        last_error: String,
        ait: Option<OursFields>,
    }
}

read_object! {
    /// The `ait` object as it lies in the file.
    #[derive(Default)]
    struct OursFields {
        agent: Option<ProcessId>,
        agent_bin: Option<String>,
        argv: Option<Vec<String>>,
        came_instead: Option<String>,
        capture_before: Option<Capture>,
        checkpoint_at: Option<Stamp>,
        cwd: Option<String>,
        desired: Option<super::Desired>,
        earlier: Option<Vec<String>>,
        env: Option<std::collections::BTreeMap<String, String>>,
        generation: Option<u64>,
        host: Option<Host>,
        lost: Option<Box<Lost>>,
        memory: Option<u64>,
        op_owner_started: Option<String>,
        op_started_boot: Option<BootTime>,
        origin: Option<super::Origin>,
        pane_started: Option<String>,
        recover: Option<super::Policy>,
        recovered: Option<super::ours::Recovered>,
        runtime_id: Option<String>,
        server: Option<super::ServerEpoch>,
        session: Option<super::Session>,
        task_file: Option<String>,
        title: Option<String>,
        window_id: Option<super::WindowId>,
        window_index: Option<i64>,
        window_layout: Option<String>,
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        check(Flat::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// What is wrong with a record whose fields each read well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Incoherent {
    #[error("record without an id")]
    NoId,
    #[error("record {0}: {1} is empty")]
    Empty(RecordId, &'static str),
    #[error("record {0}: {1} is negative")]
    Negative(RecordId, &'static str),
    #[error("record {0}: pane_id and pane_pid must be a pane and a positive pid, or \"\" and 0")]
    HalfLocation(RecordId),
    #[error("record {0}: op_nonce, op_owner_pid and op_started_at must be all set or all empty")]
    HalfLease(RecordId),
    #[error("record {0}: restore_mode {1:?} is not \"\", resume or repick")]
    Mode(RecordId, String),
    #[error("record {0}: restoring without a restore_mode")]
    NoMode(RecordId),
}

fn check(flat: Flat) -> Result<Record, Incoherent> {
    let id = flat.id.ok_or(Incoherent::NoId)?;
    for (name, text) in [("root", &flat.root), ("window", &flat.window)] {
        if text.is_empty() {
            return Err(Incoherent::Empty(id, name));
        }
    }
    for (name, number) in [("standin_pid", flat.standin_pid), ("launch_pid", flat.launch_pid)] {
        if number < 0 {
            return Err(Incoherent::Negative(id, name));
        }
    }
    let OursFields {
        agent,
        agent_bin,
        argv,
        came_instead,
        capture_before,
        checkpoint_at,
        cwd,
        desired,
        earlier,
        env,
        generation,
        host,
        lost,
        memory,
        op_owner_started,
        op_started_boot,
        origin,
        pane_started,
        recover,
        recovered,
        runtime_id,
        server,
        session,
        task_file,
        title,
        window_id,
        window_index,
        window_layout,
        unknown,
    } = flat.ait.unwrap_or_default();
    let location = match (flat.pane_id.0, flat.pane_pid) {
        (Some(pane), pid) if pid > 0 => {
            Location::pane(pane, ProcessId::new(pid, pane_started.unwrap_or_default()))
        }
        (None, 0) => Location::Gone,
        (Some(_) | None, _) => return Err(Incoherent::HalfLocation(id)),
    };
    let lease = match (flat.op_nonce.0, flat.op_owner_pid, flat.op_started_at.0) {
        (Some(nonce), pid, Some(since)) if pid > 0 => {
            let owner = ProcessId::new(pid, op_owner_started.unwrap_or_default());
            Some(Lease { nonce, owner, since, since_boot: op_started_boot })
        }
        (None, 0, None) => None,
        (Some(_) | None, _, Some(_) | None) => return Err(Incoherent::HalfLease(id)),
    };
    let mode = match flat.restore_mode.as_str() {
        "" => None,
        "resume" => Some(RestoreMode::Resume),
        "repick" => Some(RestoreMode::Repick),
        other => return Err(Incoherent::Mode(id, other.chars().take(40).collect())),
    };
    let mut restore = Restores {
        attempts: flat.restore_attempts,
        last_mode: mode,
        last_launch: flat.launch_pid,
        ack: flat.ack,
        last_error: flat.last_error,
    };
    let state = match flat.state.unwrap_or(StateName::Live) {
        StateName::Live => State::Live,
        StateName::Freezing => State::Freezing,
        StateName::Frozen => State::Frozen { lost },
        StateName::Aborting => State::Aborting { lost },
        StateName::Restoring => {
            let mode = restore.last_mode.take().ok_or(Incoherent::NoMode(id))?;
            let launch = std::mem::take(&mut restore.last_launch);
            State::Restoring { mode, launch: (launch > 0).then_some(launch), lost }
        }
    };
    Ok(Record {
        id,
        root: flat.root,
        window: flat.window,
        window_slot: flat.window_slot,
        location,
        session: flat.session,
        operation: flat.operation,
        task_id: flat.task_id,
        agent_string: flat.agent_string,
        agent_kind: flat.agent_kind,
        codeagent_session_id: flat.codeagent_session_id,
        transcript_path: flat.transcript_path,
        started_at: flat.started_at.0,
        state_at: flat.state_at.0,
        frozen_at: flat.frozen_at.0,
        state,
        lease,
        capture: Capture { ansi: flat.capture_ansi, lines: flat.capture_lines, txt: flat.capture_txt },
        last_phase: flat.last_phase,
        standin_pid: flat.standin_pid,
        restore,
        ait: Ours {
            agent,
            agent_bin,
            argv,
            came_instead,
            capture_before,
            checkpoint_at,
            cwd,
            desired,
            earlier,
            env,
            generation,
            host,
            memory,
            origin,
            recover,
            recovered,
            runtime_id,
            server,
            session,
            task_file,
            title,
            window_id,
            window_index,
            window_layout,
            unknown,
        },
        unknown: flat.unknown,
    })
}

/// The `ait` object of a record, as it is printed; absent when there is nothing to say.
struct OursOf<'a>(&'a Record);

impl OursOf<'_> {
    fn pane_started(&self) -> Option<&str> {
        self.0.location.process().map(|p| p.started.as_str()).filter(|started| !started.is_empty())
    }

    fn owner_started(&self) -> Option<&str> {
        self.0.lease.as_ref().map(|l| l.owner.started.as_str()).filter(|started| !started.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.0.ait == Ours::default()
            && self.0.state.lost().is_none()
            && self.pane_started().is_none()
            && self.owner_started().is_none()
            && self.0.lease.as_ref().is_none_or(|l| l.since_boot.is_none())
    }
}

impl Serialize for OursOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ours = &self.0.ait;
        print_object!(serializer, ours.unknown, {
            agent: ours.agent.as_ref(),
            agent_bin: ours.agent_bin.as_ref(),
            argv: ours.argv.as_ref(),
            came_instead: ours.came_instead.as_ref(),
            capture_before: ours.capture_before.as_ref(),
            checkpoint_at: ours.checkpoint_at,
            cwd: ours.cwd.as_ref(),
            desired: ours.desired,
            earlier: ours.earlier.as_ref(),
            env: ours.env.as_ref(),
            generation: ours.generation,
            host: ours.host.as_ref(),
            lost: self.0.state.lost(),
            memory: ours.memory,
            op_owner_started: self.owner_started(),
            op_started_boot: self.0.lease.as_ref().and_then(|l| l.since_boot.as_ref()),
            origin: ours.origin,
            pane_started: self.pane_started(),
            recover: ours.recover,
            recovered: ours.recovered,
            runtime_id: ours.runtime_id.as_ref(),
            server: ours.server.as_ref(),
            session: ours.session.as_ref(),
            task_file: ours.task_file.as_ref(),
            title: ours.title.as_ref(),
            window_id: ours.window_id,
            window_index: ours.window_index,
            window_layout: ours.window_layout.as_ref(),
        })
    }
}

/// The text of an option, blank for none.
fn text<T: fmt::Display>(value: Option<T>) -> Cow<'static, str> {
    value.map_or(Cow::Borrowed(""), |value| Cow::Owned(value.to_string()))
}

impl super::json::Field for Cow<'_, str> {}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mode, launch) = match &self.state {
            State::Restoring { mode, launch, .. } => (Some(*mode), launch.unwrap_or(0)),
            State::Live | State::Freezing | State::Frozen { .. } | State::Aborting { .. } => {
                (self.restore.last_mode, self.restore.last_launch)
            }
        };
        let lease = self.lease.as_ref();
        let ours = OursOf(self);
        print_object!(serializer, self.unknown, {
            ack: self.restore.ack.as_str(),
            agent_kind: self.agent_kind.as_str(),
            agent_string: self.agent_string.as_str(),
            ait: (!ours.is_empty()).then_some(ours),
            capture_ansi: self.capture.ansi.as_str(),
            capture_lines: self.capture.lines,
            capture_txt: self.capture.txt.as_str(),
            codeagent_session_id: self.codeagent_session_id.as_str(),
            frozen_at: text(self.frozen_at),
            id: self.id,
            last_error: self.restore.last_error.as_str(),
            last_phase: self.last_phase.as_str(),
            launch_pid: launch,
            op_nonce: text(lease.map(|l| l.nonce)),
            op_owner_pid: lease.map_or(0, |l| l.owner.pid),
            op_started_at: text(lease.map(|l| l.since)),
            operation: self.operation.as_str(),
            pane_id: text(self.location.pane_id()),
            pane_pid: self.location.process().map_or(0, |p| p.pid),
            restore_attempts: self.restore.attempts,
            restore_mode: mode.map_or("", RestoreMode::word),
            root: self.root.as_str(),
            session: self.session.as_str(),
            standin_pid: self.standin_pid,
            started_at: text(self.started_at),
            state: self.state.name().word(),
            state_at: text(self.state_at),
            task_id: self.task_id.as_str(),
            transcript_path: self.transcript_path.as_str(),
            window: self.window.as_str(),
            window_slot: self.window_slot,
        })
    }
}
