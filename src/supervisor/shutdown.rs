//! A shutdown is not a stop: what a reboot claims, and the supervisor's own clean end.
//!
//! `kill-server` and a shutdown look alike, and at a shutdown agents, servers and the supervisor are all told to end. So an
//! end by a shutdown's signals is provisional, and only the next start can tell: under another boot, what ended within
//! [`CLAIM`] of that boot's end belongs to it.

use std::path::PathBuf;
use std::time::Duration;

use super::{Action, EndedEarlier, Link, Now, Start, Supervisor};
use crate::record::{Host, LossCause, Lost, Record, RecordId, Records, Stamp, State, StateName, Verb};

/// How long before the end of a boot an end may still be part of it, in seconds.
const CLAIM: i64 = 90;

/// The changes a reboot makes to what had ended or stopped just before it.
pub(super) fn claimed(
    records: &Records,
    ends: &[EndedEarlier],
    start: &Start,
    now: i64,
) -> Vec<(RecordId, Verb)> {
    let mut changes = Vec::new();
    for record in records.iter() {
        let Some(lost) = record.state.lost() else { continue };
        let boot = boot_of(record);
        // a server that went without a word, while the machine went down, was most likely told to end too
        let stopped = matches!(lost.cause, LossCause::ServerStopped | LossCause::ServerGone)
            && matches!(record.state, State::Frozen { .. });
        if stopped && is_past(boot, start) && lost.at.unix() > end_of(boot, start) - CLAIM {
            changes.push((
                record.id,
                Verb::Reboot { evidence: "its server was stopped as the boot ended".into() },
            ));
        }
    }
    let earliest = |boot: &str| {
        // a server's stop that the reboot claims pulls the ends just before that stop along
        let stops = records.iter().filter_map(|record| {
            let of = boot_of(record);
            let claimed = changes.iter().any(|(id, _)| *id == record.id);
            record.state.lost().filter(|_| claimed && of == boot).map(|lost| lost.at.unix())
        });
        stops.chain([end_of(boot, start)]).min().unwrap_or(now)
    };
    let revived: Vec<(RecordId, Verb)> = ends
        .iter()
        .filter(|end| end.provisional && is_past(boot_of(&end.record), start))
        .filter(|end| records.get(end.record.id).is_none())
        .filter(|end| end.at > earliest(boot_of(&end.record)) - CLAIM)
        .map(|end| {
            let lost = Lost {
                at: Stamp::from_unix(now),
                cause: LossCause::Reboot,
                exit_status: None,
                signal: None,
                evidence: format!("it ended as the boot ended: {}", end.evidence),
                agent: end.record.agent_process(),
                lived: None,
                unknown: Default::default(),
            };
            let verb =
                Verb::Revive { archived: end.record.clone(), lost: Some(Box::new(lost)), capture: None };
            (end.record.id, verb)
        })
        .collect();
    changes.extend(revived);
    changes
}

/// The boot its server belonged to, empty where it is not known.
fn boot_of(record: &Record) -> &str {
    record.ait.server.as_ref().map_or("", |epoch| epoch.boot_id.as_str())
}

/// No end before this moment can be part of a boot's end, unix seconds: a stop within [`CLAIM`] of it may pull along what
/// ended within [`CLAIM`] of that stop.
pub(super) fn horizon(start: &Start) -> i64 {
    let stop = start.last_stop.as_ref().map_or(start.boot_began, |stop| stop.at);
    stop.min(start.boot_began) - 2 * CLAIM
}

fn is_past(boot_id: &str, start: &Start) -> bool {
    !boot_id.is_empty() && boot_id != start.boot_id
}

/// When that earlier boot ended, as far as it is known: when the supervisor was told to end under it, else when this one
/// began. Unix seconds.
fn end_of(boot_id: &str, start: &Start) -> i64 {
    match &start.last_stop {
        Some(stop) if stop.boot_id == boot_id => stop.at,
        Some(_) | None => start.boot_began,
    }
}

impl Supervisor {
    /// A clean end: what was set on the servers is taken back, every client leaves, no agent is touched.
    pub(super) fn wind_down(&mut self, now: Now, until: Duration) {
        if self.ended {
            return;
        }
        let sockets: Vec<PathBuf> = self.servers.keys().cloned().collect();
        for socket in &sockets {
            self.take_back(now, socket, until);
        }
        let left = self.servers.values().any(|server| server.link_id().is_some());
        let writing = matches!(self.writing, super::Writing::UnderWay { .. });
        if now.mono >= until || (!left && !writing) {
            self.ended = true;
            self.actions.push_back(Action::Ended);
        }
    }

    /// Orders what was set on a server to be taken back, once, and leaves it when all of that is answered.
    fn take_back(&mut self, now: Now, socket: &PathBuf, until: Duration) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let mut asks = Vec::new();
        match &mut server.link {
            Link::Up(up) if !up.taking_back => {
                up.taking_back = true;
                let records = self.store.iter().flat_map(|view| view.records.iter());
                for record in records.filter(|record| record.state.name() == StateName::Live) {
                    let here = record.ait.server.as_ref().is_some_and(|e| e.process() == up.identity.process);
                    let Some(pane) = record.location.pane_id().filter(|_| here) else { continue };
                    let pane = tmux_control::PaneId(pane.0);
                    let hosted = record.ait.host == Some(Host::Pane);
                    asks.extend(up.take_off(pane, record.id, hosted));
                }
            }
            Link::Up(_) | Link::Attaching { .. } => {}
            Link::Down | Link::Paused { .. } | Link::Leaving { .. } => return,
        }
        for ask in asks {
            self.ask(now, socket, ask);
        }
        let answered =
            self.servers.get(socket).and_then(super::Server::up).is_none_or(|up| up.open.is_empty());
        if answered || now.mono >= until {
            self.leave(socket);
        }
    }

    /// Sends the client of a server away.
    pub(super) fn leave(&mut self, socket: &PathBuf) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let Some(link) = server.link_id() else { return };
        let process = server.up().map(|up| up.identity.process.clone());
        server.link = Link::Leaving { link, process };
        self.actions.push_back(Action::Detach { socket: socket.clone(), link });
        self.news = true;
    }
}
