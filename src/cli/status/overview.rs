//! What `ait status` shows, put together from the store and, where one answers, the supervisor.
//!
//! Pure. Every record says how it is known: what the supervisor watches now, or only what the store was last told.

use std::path::PathBuf;

use serde::Serialize;

use super::offer::Offers;
use crate::api::{Happening, NotifyStatus, ServerState, ServerStatus, StatusReport, SupervisorStatus};
use crate::cli::Exit;
use crate::cli::turned::Turned;
use crate::record::{Liveness, Record, Records, State};
use crate::turn::View;

/// The whole picture; its JSON is `ait status --json`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Overview {
    /// In one word.
    pub(super) health: Health,
    /// The supervisor, when one answers.
    pub(super) supervisor: Option<SupervisorStatus>,
    /// Why there is no answer, when there is none.
    pub(super) no_supervisor: Option<String>,
    /// The store.
    pub(super) store: StoreView,
    /// The servers the supervisor knows of.
    pub(super) servers: Vec<ServerStatus>,
    /// Every record.
    pub(super) records: Vec<RecordView>,
    /// What a person should look at.
    pub(super) needs_you: Vec<Need>,
    /// What came back by itself lately, oldest first.
    pub(super) recovered: Vec<Happening>,
    /// What happened lately, oldest first.
    pub(super) recent: Vec<Happening>,
    /// What became of telling the user, if the settings want that.
    pub(super) notify: Option<NotifyStatus>,
}

/// How things are; the exit code says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    /// A supervisor watches, and nothing needs a look.
    Healthy,
    /// A supervisor runs, and something needs a look.
    Degraded,
    /// Nobody watches.
    NoSupervisor,
    /// The store cannot be read.
    StoreCorrupt,
}

impl Health {
    /// The exit code of `ait status`.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Healthy => Exit::OK,
            Self::Degraded => Exit::DEGRADED,
            Self::NoSupervisor => Exit::NO_SUPERVISOR,
            Self::StoreCorrupt => Exit::BAD_DATA,
        }
    }
}

/// The store as it was read.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StoreView {
    /// The file.
    pub(super) path: PathBuf,
    /// `file`, or `previous` when the file is corrupt and the generation before is shown; `none` when neither can be read.
    pub(super) shown: Shown,
    /// What is wrong with it.
    pub(super) trouble: Vec<String>,
}

/// Which generation of the store is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shown {
    /// The store itself.
    File,
    /// The generation before, since the store is corrupt.
    Previous,
    /// Nothing.
    None,
}

/// One record.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RecordView {
    pub(super) id: String,
    pub(super) state: &'static str,
    pub(super) agent: String,
    pub(super) project: String,
    pub(super) window: String,
    pub(super) window_slot: u32,
    pub(super) session_id: String,
    pub(super) location: Option<Place>,
    /// When its state last changed, UTC.
    pub(super) since: Option<String>,
    /// How this is known.
    pub(super) known: Known,
    /// What its agent is at, as the supervisor tells it.
    pub(super) turn: Option<View>,
    pub(super) lost: Option<Loss>,
    /// What its freeze gave back of memory, in bytes.
    pub(super) freed: Option<u64>,
}

/// Where it is.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Place {
    pub(super) socket: Option<String>,
    pub(super) session: String,
    pub(super) window_id: Option<String>,
    pub(super) window_index: Option<i64>,
    pub(super) pane: String,
    pub(super) pane_pid: i32,
    pub(super) agent_pid: Option<i32>,
}

/// How it was lost.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Loss {
    pub(super) at: String,
    pub(super) cause: &'static str,
    pub(super) evidence: String,
}

/// Where the knowledge of a record comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub(super) enum Known {
    /// The supervisor watches its server and its process.
    Watched,
    /// The supervisor cannot tell.
    Unknown {
        /// Why.
        why: String,
    },
    /// Only the store says so.
    Store {
        /// What a look at its process adds, and why nobody watches it.
        note: String,
    },
}

/// Something a person should look at.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Need {
    /// The record concerned.
    pub(super) record: Option<String>,
    /// What it is about.
    pub(super) what: String,
}

/// The store as the caller read it.
pub(super) struct Stored {
    pub(super) path: PathBuf,
    pub(super) records: Option<Records>,
    pub(super) shown: Shown,
    pub(super) trouble: Vec<String>,
}

/// The answer of a supervisor, or why there is none.
pub(super) enum Heard {
    /// Its report, and what it says each agent is at.
    Report(Box<StatusReport>, Turned),
    Nobody {
        why: String,
    },
    /// One holds the lock and does not answer.
    Silent {
        why: String,
    },
}

impl Overview {
    /// Puts the picture together. `alive` looks at the agent of a record; it is asked only where nobody watches.
    pub(super) fn new(
        stored: Stored,
        heard: Heard,
        offers: &Offers,
        alive: &dyn Fn(&Record) -> Liveness,
    ) -> Self {
        let (report, turned, no_supervisor, silent) = match heard {
            Heard::Report(report, turned) => (Some(*report), turned, None, false),
            Heard::Nobody { why } => (None, Turned::default(), Some(why), false),
            Heard::Silent { why } => (None, Turned::default(), Some(why), true),
        };
        let corrupt = stored.shown != Shown::File;
        let records = stored.records.unwrap_or_default();
        let servers = report.as_ref().map(|report| report.servers.clone()).unwrap_or_default();
        let views: Vec<RecordView> =
            records.iter().map(|record| view(record, report.as_ref(), &turned, alive)).collect();
        let mut needs_you: Vec<Need> = stored
            .trouble
            .iter()
            .map(|what| Need { record: None, what: format!("the store: {what}") })
            .collect();
        if silent {
            let what =
                format!("the supervisor does not answer: {}", no_supervisor.as_deref().unwrap_or_default());
            needs_you.push(Need { record: None, what });
        }
        let trouble = report.as_ref().and_then(|report| report.store.trouble.as_ref());
        needs_you.extend(
            trouble.map(|what| Need { record: None, what: format!("the store, to the supervisor: {what}") }),
        );
        needs_you.extend(report.iter().flat_map(settings_needs));
        needs_you.extend(servers.iter().filter_map(unknown_server));
        needs_you.extend(records.iter().flat_map(|record| record_needs(record, offers)));
        let health = if corrupt {
            Health::StoreCorrupt
        } else if report.is_none() && !silent {
            Health::NoSupervisor
        } else if needs_you.is_empty() {
            Health::Healthy
        } else {
            Health::Degraded
        };
        let recent = report.as_ref().map(|report| report.recent.clone()).unwrap_or_default();
        let back =
            |happening: &&Happening| matches!(happening.what.as_str(), "rejoined" | "recovered" | "restored");
        Self {
            health,
            no_supervisor,
            store: StoreView { path: stored.path, shown: stored.shown, trouble: stored.trouble },
            servers,
            records: views,
            needs_you,
            recovered: recent.iter().filter(back).cloned().collect(),
            recent,
            notify: report.as_ref().and_then(|report| report.notify.clone()),
            supervisor: report.map(|report| report.supervisor),
        }
    }
}

/// What is wrong with the user's settings, as the supervisor took them.
fn settings_needs(report: &StatusReport) -> impl Iterator<Item = Need> {
    let settings = report.settings.as_ref().map(|why| format!("the settings, to the supervisor: {why}"));
    let trouble = report.notify.as_ref().and_then(|notify| notify.trouble.as_ref());
    let trouble = trouble.map(|why| format!("`[notify]` does not work: {why}"));
    settings.into_iter().chain(trouble).map(|what| Need { record: None, what })
}

fn unknown_server(server: &ServerStatus) -> Option<Need> {
    match &server.state {
        ServerState::Unknown { why } => Some(Need {
            record: None,
            what: format!("the server on {} is unknown: {why}", server.socket.display()),
        }),
        ServerState::Watching | ServerState::Attaching | ServerState::Idle | ServerState::Gone { .. } => None,
    }
}

fn record_needs(record: &Record, offers: &Offers) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |what: String| needs.push(Need { record: Some(record.id.to_string()), what });
    if let Some(lost) = record.state.lost() {
        let offer = offers.words(record).unwrap_or_else(|| "it is on its way".to_owned());
        need(format!("its agent was lost ({}) at {}; {offer}", lost.cause.word(), lost.at));
    } else if matches!(record.state, State::Frozen { .. }) && !record.restore.last_error.is_empty() {
        let reason = record.restore.last_error.split_once(':').map_or("", |(_, reason)| reason);
        need(format!("its last restore failed: {reason}"));
    }
    needs
}

fn view(
    record: &Record,
    report: Option<&StatusReport>,
    turned: &Turned,
    alive: &dyn Fn(&Record) -> Liveness,
) -> RecordView {
    let server = record.ait.server.as_ref();
    let location = record.location.pane_id().map(|pane| Place {
        socket: server.map(|server| server.socket.clone()),
        session: record.session.clone(),
        window_id: record.ait.window_id.map(|window| window.to_string()),
        window_index: record.ait.window_index,
        pane: pane.to_string(),
        pane_pid: record.location.process().map_or(0, |process| process.pid),
        agent_pid: record.ait.agent.as_ref().map(|agent| agent.pid),
    });
    let agent = [&record.agent_string, &record.agent_kind].into_iter().find(|text| !text.is_empty());
    RecordView {
        id: record.id.to_string(),
        state: record.state.name().word(),
        agent: agent.cloned().unwrap_or_default(),
        project: record.root.clone(),
        window: record.window.clone(),
        window_slot: record.window_slot,
        session_id: record.codeagent_session_id.clone(),
        location,
        since: record.state_at.or(record.started_at).map(|at| at.to_string()),
        known: known(record, report, alive),
        turn: turned.get(record.id).cloned(),
        lost: record.state.lost().map(|lost| Loss {
            at: lost.at.to_string(),
            cause: lost.cause.word(),
            evidence: lost.evidence.clone(),
        }),
        freed: record.ait.memory.filter(|_| matches!(record.state, State::Frozen { lost: None })),
    }
}

fn known(record: &Record, report: Option<&StatusReport>, alive: &dyn Fn(&Record) -> Liveness) -> Known {
    let store = |note: &str| Known::Store { note: note.to_owned() };
    let Some(epoch) = record.ait.server.as_ref().filter(|_| record.location.pane_id().is_some()) else {
        return store(if record.location.pane_id().is_some() {
            "it names no server"
        } else {
            "it is in no pane"
        });
    };
    let Some(report) = report else {
        return store(match alive(record) {
            Liveness::Alive => "nobody watches; its process lives",
            Liveness::Gone => "nobody watches; its process is gone",
            Liveness::Unknown => "nobody watches; its process cannot be seen",
        });
    };
    let Some(server) =
        report.servers.iter().find(|server| server.socket.as_os_str() == epoch.socket.as_str())
    else {
        return store("its server is not watched");
    };
    match &server.state {
        ServerState::Watching if server.epoch.as_ref().is_some_and(|now| now.pid == epoch.pid) => {
            Known::Watched
        }
        ServerState::Watching => store("another life of its server is watched"),
        ServerState::Unknown { why } => Known::Unknown { why: why.clone() },
        ServerState::Attaching => Known::Unknown { why: "its server is being attached".to_owned() },
        ServerState::Idle => store("its server is not watched yet"),
        ServerState::Gone { cause } => Known::Unknown { why: format!("its server is gone ({cause})") },
    }
}
