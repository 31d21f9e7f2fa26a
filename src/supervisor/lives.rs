//! The lives of servers: which is on, which is over, and what ended it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Action, LAST_EXIT, LAST_WORDS, Life, Link, Now, Server, Supervisor, Watched};
use crate::record::{ProcessId, Record, ServerEpoch};

impl Supervisor {
    /// What is known of the life of the server that a record names.
    pub(super) fn life(&self, record: &Record) -> Life {
        let Some(epoch) = &record.ait.server else { return Life::Unnamed };
        if !epoch.boot_id.is_empty() && epoch.boot_id != self.start.boot_id {
            return Life::PastBoot;
        }
        if epoch.boot_id.is_empty() || epoch.started.is_empty() {
            return Life::Unnamed;
        }
        let process = epoch.process();
        match self.watched.get(&process) {
            Some(Watched::Dead { at, seen }) => self.how_it_ended(epoch, &process, *at, *seen),
            Some(Watched::Asked | Watched::Alive | Watched::Blind(_)) | None => Life::On,
        }
    }

    /// `at`: when its end was heard; `seen`: this supervisor saw it alive.
    fn how_it_ended(&self, epoch: &ServerEpoch, process: &ProcessId, at: Duration, seen: bool) -> Life {
        use crate::record::LossCause::{ServerCrashed, ServerGone, ServerStopped};
        let server = self.servers.get(Path::new(&epoch.socket));
        let over = |cause, evidence: &str| Life::Over {
            cause,
            evidence: format!("server process {} has ended: {evidence}", process.pid),
            heard: at,
        };
        if let Some(exit) = server.and_then(|server| server.end_of(process)) {
            return match exit {
                Some(reason) if reason.is_empty() => over(ServerStopped, "it said a clean %exit"),
                Some(reason) => over(ServerCrashed, &format!("%exit {reason}")),
                None => over(ServerGone, "its stream ended without a word"),
            };
        }
        if server.and_then(Server::speaking_of) == Some(process) {
            return Life::Ending;
        }
        let emptied = server
            .and_then(|s| s.left.as_ref())
            .is_some_and(|left| left.empty.as_ref() == Some(process) && at < left.at + LAST_EXIT);
        if emptied {
            return over(ServerStopped, "its last session had ended");
        }
        match &self.start.last_stop {
            // whoever told the supervisor to end most likely told the server too: never started again unasked
            Some(stop) if !seen && stop.boot_id == self.start.boot_id => {
                over(ServerStopped, "while no supervisor ran, after the last one was told to end")
            }
            Some(_) | None => over(ServerGone, "nobody was attached"),
        }
    }

    /// When the last words of a server whose process has ended are no longer waited for.
    pub(super) fn last_words_due(&self, server: &Server) -> Option<Duration> {
        match self.watched.get(server.speaking_of()?)? {
            Watched::Dead { at, .. } => Some(*at + LAST_WORDS),
            Watched::Asked | Watched::Alive | Watched::Blind(_) => None,
        }
    }

    /// Gives up on the last words of servers that are dead for too long.
    pub(super) fn bury(&mut self, now: Now) {
        let due: Vec<PathBuf> = self
            .servers
            .iter()
            .filter(|(_, server)| self.last_words_due(server).is_some_and(|due| now.mono >= due))
            .map(|(socket, _)| socket.clone())
            .collect();
        for socket in due {
            let Some(server) = self.servers.get_mut(&socket) else { continue };
            let Some(process) = server.speaking_of().cloned() else { continue };
            server.ended(process, None);
            if let Some(link) = server.link_id() {
                server.link = Link::Leaving { link, process: None };
                self.actions.push_back(Action::Detach { socket, link });
            }
        }
    }
}
