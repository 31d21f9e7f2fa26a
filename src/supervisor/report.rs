//! What the supervisor says of itself when asked.

use std::path::Path;
use std::time::Duration;

use super::server::{Link, Server};
use super::{Now, Supervisor, Writing};
use crate::api::{EpochStatus, ServerState, ServerStatus, StatusReport, StoreStatus, SupervisorStatus};
use crate::record::{Location, Record, Stamp, StateName};

/// A question without an answer for this long is worth saying.
const SIGN_OF_LIFE: Duration = Duration::from_millis(200);

impl Supervisor {
    /// What is known now, for a person or a program.
    #[must_use]
    pub fn report(&self, now: Now) -> StatusReport {
        StatusReport {
            supervisor: SupervisorStatus {
                pid: self.start.pid,
                since: Stamp::from_unix(self.began.unwrap_or_default()).to_string(),
                version: self.start.version.clone(),
                boot_id: self.start.boot_id.clone(),
            },
            servers: self
                .servers
                .iter()
                .map(|(socket, server)| self.server_status(now, socket, server))
                .collect(),
            store: StoreStatus {
                path: self.start.store.clone(),
                records: self.records().count(),
                trouble: self.store_trouble(),
            },
            recent: self.recent.iter().cloned().collect(),
            notify: self.notify_status(),
            settings: None,
        }
    }

    fn store_trouble(&self) -> Option<String> {
        let unwritten = match &self.writing {
            Writing::Paused { why, .. } => Some(format!("not written: {why}")),
            Writing::Idle | Writing::UnderWay { .. } => None,
        };
        let found = self.store.as_ref().and_then(|view| view.trouble.clone());
        self.unreadable.clone().or(unwritten).or(found)
    }

    fn server_status(&self, now: Now, socket: &Path, server: &Server) -> ServerStatus {
        let here = || {
            self.records().filter(|record| {
                record.ait.server.as_ref().is_some_and(|epoch| Path::new(&epoch.socket) == socket)
            })
        };
        let live = here().filter(|record| record.state.name() == StateName::Live);
        let up = server.up();
        let epoch = up.map(|up| EpochStatus {
            pid: up.identity.process.pid,
            started_at: Some(up.identity.started_at),
            boot_id: self.start.boot_id.clone(),
        });
        // without a client, the epoch of the latest record that was there
        let remembered = || {
            let latest = here().max_by_key(|record| record.state_at)?;
            let epoch = latest.ait.server.as_ref()?;
            Some(EpochStatus { pid: epoch.pid, started_at: epoch.started_at, boot_id: epoch.boot_id.clone() })
        };
        // another life of it, which holds no record
        let listening = || {
            let pid = server.listener.filter(|_| up.is_none())?;
            Some(EpochStatus { pid, started_at: None, boot_id: self.start.boot_id.clone() })
        };
        ServerStatus {
            socket: socket.to_owned(),
            state: self.server_state(
                now,
                server,
                here().any(|record| record.location != Location::Gone),
                &mut here(),
            ),
            epoch: epoch.or_else(listening).or_else(remembered),
            attached_since: up.map(|up| Stamp::from_unix(up.since_utc).to_string()),
            tmux_version: up.map(|up| up.identity.version.clone()),
            sessions: up.map_or(0, |up| up.world.sessions().count()),
            windows: up.map_or(0, |up| up.world.windows().count()),
            panes: up.map_or(0, |up| up.world.panes().count()),
            live: live.count(),
            last_event: server.last_event.clone(),
            notes: notes(server),
        }
    }

    fn server_state(
        &self,
        now: Now,
        server: &Server,
        held: bool,
        here: &mut dyn Iterator<Item = &Record>,
    ) -> ServerState {
        match &server.link {
            Link::Up(up) if up.owed_since().is_some_and(|since| now.mono >= since + SIGN_OF_LIFE) => {
                let owed = up.owed_since().map_or(0, |since| now.mono.saturating_sub(since).as_millis());
                ServerState::Unknown { why: format!("no answer for {owed} ms") }
            }
            Link::Up(up) if up.world.is_complete() => ServerState::Watching,
            Link::Up(_) | Link::Attaching { .. } if server.trouble.is_none() => ServerState::Attaching,
            Link::Leaving { .. } => ServerState::Attaching,
            Link::Up(_) | Link::Attaching { .. } | Link::Down | Link::Paused { .. } => {
                if held {
                    let why = server.trouble.clone().unwrap_or_else(|| "not attached".into());
                    let deleted = if server.present == Some(false) { "its socket was deleted; " } else { "" };
                    return ServerState::Unknown { why: format!("{deleted}{why}") };
                }
                let mut lost = None;
                for record in here {
                    lost = lost.max(record.state.lost().map(|lost| (lost.at, lost.cause.word())));
                }
                match (server.listener, lost) {
                    (Some(_), _) => ServerState::Idle,
                    (None, Some((_, cause))) => ServerState::Gone { cause: cause.into() },
                    (None, None) => ServerState::Gone { cause: "none".into() },
                }
            }
        }
    }
}

/// What a user should know of a server beyond its state.
fn notes(server: &Server) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(up) = server.up() {
        if server.present == Some(false) {
            notes.push("its socket file was deleted; the client that is attached keeps working".into());
        }
        let theirs = up.keeping.values().filter(|keeping| **keeping == super::Keeping::Theirs).count();
        if theirs > 0 {
            notes.push(format!(
                "{theirs} panes keep the user's own death settings: an exit status may not be had there"
            ));
        }
    }
    if server.explicit && server.up().is_none() && server.present.is_none() {
        notes.push("named on the command line".into());
    }
    notes
}
