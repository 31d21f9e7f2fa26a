//! The words spoken on the supervisor's socket and printed as JSON: plain serde values with a version.
//!
//! One JSON value a line, both ways. The supervisor says [`Hello`] first; a client sends one [`Request`] a line and reads
//! one [`Response`] a line. [`Request::Watch`] keeps the connection: a [`Response::Changed`] follows each time something that
//! [`StatusReport`] shows has changed, and carries no payload, so that nobody holds a stale copy: ask again. A watcher that
//! does not read is dropped. Fields may be added within a version; readers ignore what they do not know.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::turn::View;

/// The version of these words; a client and a supervisor that differ say so and carry on where they can.
pub const VERSION: u32 = 1;

/// The longest line either side accepts, in bytes.
pub const MAX_LINE: usize = 4 * 1024 * 1024;

/// The first line of every connection, from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The supervisor's program version.
    pub ait: String,
    /// [`VERSION`] of the supervisor.
    pub api: u32,
    /// The supervisor's process id.
    pub pid: i32,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// One [`StatusReport`].
    Status,
    /// What each live agent is at: a [`TurnStatus`] each.
    Turns,
    /// A [`Response::Changed`] now and at every change from now on.
    Watch,
    /// What an agent is about to ask, in its provider's words; kept in memory alone, for the one who is told of it.
    Question {
        /// The record, by id.
        record: String,
        /// The question.
        text: String,
    },
    /// End cleanly: take back what was set on the servers, leave every agent alone.
    Stop,
}

/// What the supervisor answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Response {
    /// The answer to [`Request::Status`].
    Status(Box<StatusReport>),
    /// The answer to [`Request::Turns`].
    Turns {
        /// One each.
        turns: Vec<TurnStatus>,
    },
    /// Something a report shows has changed.
    Changed,
    /// The request is carried out.
    Done,
    /// The request was not understood or not possible.
    Refused {
        /// Why, as a lower-case fragment.
        why: String,
    },
}

/// What a supervisor knows of itself, of the servers and of what happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Who is speaking.
    pub supervisor: SupervisorStatus,
    /// Every tmux server it knows of, by socket.
    pub servers: Vec<ServerStatus>,
    /// The store as it last read or wrote it.
    pub store: StoreStatus,
    /// The latest happenings, oldest first, at most [`RECENT`].
    pub recent: Vec<Happening>,
    /// What became of telling the user, if the settings want that.
    #[serde(default)]
    pub notify: Option<NotifyStatus>,
    /// Why the user's settings were not taken when the supervisor began, if they were not.
    #[serde(default)]
    pub settings: Option<String>,
}

/// What became of telling the user, counted since the supervisor began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyStatus {
    /// Told.
    pub told: u64,
    /// Not told, since somebody looked at that window.
    pub seen: u64,
    /// Not told, since it was over, or something newer of the same session came, before it could be.
    pub held: u64,
    /// Waiting to be told.
    pub waiting: usize,
    /// Handed to the user's command in vain.
    pub failed: u64,
    /// What was wrong the last time, if it was.
    pub trouble: Option<String>,
}

/// What one live agent is at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnStatus {
    /// The record, by id.
    pub record: String,
    /// The provider's short name.
    pub provider: String,
    /// Its state, who says so, since when, and why. Of more than [`EXPLAINED`] agents the evidence is left out.
    pub turn: View,
}

/// Of how many agents the evidence is told at once.
pub const EXPLAINED: usize = 1500;

/// How many happenings a report keeps.
pub const RECENT: usize = 32;

/// The supervisor itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    /// Process id.
    pub pid: i32,
    /// Start, UTC (`YYYY-MM-DDTHH:MM:SSZ`).
    pub since: String,
    /// Program version.
    pub version: String,
    /// The boot it runs under.
    pub boot_id: String,
}

/// The store, as the supervisor sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// The record file.
    pub path: PathBuf,
    /// Records in it.
    pub records: usize,
    /// What is wrong with it or with writing it, when something is.
    pub trouble: Option<String>,
}

/// One tmux server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its socket.
    pub socket: PathBuf,
    /// What the supervisor has of it.
    pub state: ServerState,
    /// The life of it that is or was watched.
    pub epoch: Option<EpochStatus>,
    /// When the control client attached, UTC.
    pub attached_since: Option<String>,
    /// The server's own version, as it says it.
    pub tmux_version: Option<String>,
    /// Sessions, `_ait` not counted.
    pub sessions: usize,
    /// Windows, `_ait`'s not counted.
    pub windows: usize,
    /// Panes, `_ait`'s not counted.
    pub panes: usize,
    /// Live records on it.
    pub live: usize,
    /// The last event that changed the store.
    pub last_event: Option<Happening>,
    /// What a user should know of it, as lower-case fragments.
    pub notes: Vec<String>,
}

/// What the supervisor has of a server. Unknown is not gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ServerState {
    /// Attached, and its last answer is complete.
    Watching,
    /// Being attached.
    Attaching,
    /// There, and no record is on it, so no client is kept.
    Idle,
    /// It cannot be told whether or how it lives.
    Unknown {
        /// Why, as a lower-case fragment.
        why: String,
    },
    /// Its process has ended, or it was never there.
    Gone {
        /// `server_stopped`, `server_crashed`, `server_gone`, `reboot`, or `none` when there never was one.
        cause: String,
    },
}

/// One life of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochStatus {
    /// The server's process id.
    pub pid: i32,
    /// `#{start_time}`, unix seconds.
    pub started_at: Option<i64>,
    /// The boot it belongs to.
    pub boot_id: String,
}

/// Something that happened and what was made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// When it was heard of, UTC.
    pub at: String,
    /// The server it happened on.
    pub socket: Option<PathBuf>,
    /// The record concerned, by id.
    pub record: Option<String>,
    /// What: `renamed`, `moved`, `ended`, `lost`, `rejoined`, `attached`, `server_gone`, `refused` …
    pub what: String,
    /// What it was told from: `notification`, `process`, `answer`, `stream`, `store`, `boot`.
    pub source: String,
    /// Particulars for a person, tmux text made safe by the face that shows it.
    pub detail: String,
    /// From hearing of it to its being in the store, microseconds; absent where nothing was written.
    pub to_store_us: Option<u64>,
}
