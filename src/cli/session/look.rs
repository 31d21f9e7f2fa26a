//! One look at where sessions run: one listing per tmux server, whatever the number of sessions, and no file of any of them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use crate::process;
use crate::record::{Host, Liveness, Location, PaneId, Record, ServerEpoch, State};
use crate::store;
use crate::tmux::{OneShot, Unanswered};

/// How long a server may take to list its panes before nothing is known of it.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);
/// One line per pane, the server's own life in each.
pub(super) const LISTING: [&str; 4] = [
    "list-panes",
    "-a",
    "-F",
    "#{pid} #{start_time} #{pane_id} #{pane_pid} #{pane_dead} #{window_activity} #{session_id}",
];

/// Whether a session's agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// It does.
    Running,
    /// It does not.
    Stopped,
    /// Its server does not say.
    Unknown,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

/// What was seen of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: Status,
    /// When its window last had output, in seconds since 1970.
    pub(super) activity: Option<i64>,
}

/// All servers that were looked at.
#[derive(Debug, Default)]
pub(super) struct Look {
    servers: BTreeMap<String, Server>,
    /// What could not be looked at, for a person.
    pub(super) warnings: Vec<String>,
}

#[derive(Debug)]
enum Server {
    Listed(HashMap<PaneId, Row>),
    Gone,
    Silent,
}

#[derive(Debug)]
struct Row {
    server: i32,
    started_at: i64,
    pid: i32,
    dead: bool,
    activity: Option<i64>,
}

impl Look {
    /// Looks at the servers of these records; records without a place need none.
    pub(super) async fn at<'a>(records: impl Iterator<Item = &'a Record>) -> Self {
        let mut look = Self::default();
        for record in records.filter(|record| is_placed(record)) {
            let Some(epoch) = &record.ait.server else { continue };
            if look.servers.contains_key(&epoch.socket) {
                continue;
            }
            let (server, warning) = list(Path::new(&epoch.socket)).await;
            look.warnings.extend(warning);
            look.servers.insert(epoch.socket.clone(), server);
        }
        look
    }

    /// The one server on this socket, by what came of asking it for [`LISTING`].
    pub(super) fn of(socket: &str, answer: Result<&[u8], Unanswered>) -> Self {
        let (server, warning) = judged(answer);
        Self {
            servers: BTreeMap::from([(socket.to_owned(), server)]),
            warnings: warning.into_iter().collect(),
        }
    }

    /// What was seen of a record.
    pub(super) fn seen(&self, record: &Record) -> Seen {
        let just = |status| Seen { status, activity: None };
        if let State::Restoring { launch: None, .. } = record.state {
            // it may run by now: whoever launches it has not come to say so, or was killed before
            return just(Status::Unknown);
        }
        let (Location::Pane { pane, process }, true) = (&record.location, is_placed(record)) else {
            return just(Status::Stopped);
        };
        let Some(epoch) = &record.ait.server else {
            return just(match store::liveness(process) {
                Liveness::Alive => Status::Running,
                Liveness::Gone => Status::Stopped,
                Liveness::Unknown => Status::Unknown,
            });
        };
        match self.servers.get(&epoch.socket) {
            Some(Server::Listed(rows)) => match rows.get(pane).filter(|row| is_of(row, epoch)) {
                Some(row) if row.pid == process.pid && !row.dead && has_agent(record) => {
                    Seen { status: Status::Running, activity: row.activity }
                }
                Some(_) | None => just(Status::Stopped),
            },
            // a socket that was deleted looks the same as a server that is gone
            Some(Server::Gone) if process::liveness(&epoch.process()) != Liveness::Gone => {
                just(Status::Unknown)
            }
            Some(Server::Gone) => just(Status::Stopped),
            Some(Server::Silent) | None => just(Status::Unknown),
        }
    }
}

/// Whether the record says that its agent is somewhere now.
pub(super) fn is_placed(record: &Record) -> bool {
    match record.state {
        State::Live | State::Freezing | State::Restoring { launch: Some(_), .. } => {
            record.location.pane_id().is_some()
        }
        State::Restoring { launch: None, .. } | State::Frozen { .. } | State::Aborting { .. } => false,
    }
}

/// Below a shell the pane outlives its agent: the agent's own process says.
fn has_agent(record: &Record) -> bool {
    match (&record.ait.host, &record.ait.agent) {
        (Some(Host::Shell { .. }), Some(agent)) => store::liveness(agent) != Liveness::Gone,
        (Some(_) | None, _) => true,
    }
}

fn is_of(row: &Row, epoch: &ServerEpoch) -> bool {
    row.server == epoch.pid && epoch.started_at.is_none_or(|started| started == row.started_at)
}

async fn list(socket: &Path) -> (Server, Option<String>) {
    let server = match OneShot::new(socket) {
        Ok(server) => server.deadline(DEADLINE),
        Err(error) => return (Server::Silent, Some(error.to_string())),
    };
    match server.run(LISTING).await {
        Ok(answer) => judged(Ok(&answer)),
        Err(why) => judged(Err(why)),
    }
}

fn judged(answer: Result<&[u8], Unanswered>) -> (Server, Option<String>) {
    match answer {
        Ok(answer) => (Server::Listed(rows(answer)), None),
        Err(Unanswered::NoServer { .. }) => (Server::Gone, None),
        Err(error) => (Server::Silent, Some(error.to_string())),
    }
}

fn rows(answer: &[u8]) -> HashMap<PaneId, Row> {
    let text = String::from_utf8_lossy(answer);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [server, started_at, pane, pid, dead, activity, _session] = fields[..] else { return None };
        let row = Row {
            server: server.parse().ok()?,
            started_at: started_at.parse().ok()?,
            pid: pid.parse().ok()?,
            dead: dead == "1",
            activity: activity.parse().ok().filter(|at| *at > 0),
        };
        Some((pane.parse().ok()?, row))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_line_by_line() {
        let rows = rows(b"10 1700 %3 55 0 1701 $0\n10 1700 %4 56 1 x $0\nnonsense\n");
        assert_eq!(rows.len(), 2);
        let row = &rows[&PaneId(3)];
        assert_eq!((row.server, row.pid, row.dead, row.activity), (10, 55, false, Some(1701)));
        assert!(rows[&PaneId(4)].dead);
        assert_eq!(rows[&PaneId(4)].activity, None);
    }
}
