//! Floor plans: what stands where is kept of each server, by event, so that a crash takes no split and no companion with it.
//!
//! A pane or an agent that is gone stays in the plan for a while: a server's end, and a shutdown above all, takes them first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tmux_control::PaneId;

use super::{Action, Now, Server, Supervisor};
use crate::record::{RecordId, ServerEpoch};
use crate::world::plan::Plan;

/// How long panes and agents which are gone stay in a plan.
const LINGER: Duration = Duration::from_secs(90);

/// The plans as they were last kept, one a socket: a client that is made anew meets the same server, maybe on its way out.
#[derive(Debug, Default)]
pub(super) struct Plans {
    of: BTreeMap<PathBuf, Kept>,
}

#[derive(Debug)]
struct Kept {
    plan: Plan,
    /// Since when each of its panes is gone, by process.
    gone: BTreeMap<i32, Duration>,
    /// When the next of them is left out.
    due: Option<Duration>,
    /// There was output since: a companion may be elsewhere.
    stale: bool,
}

impl Plans {
    /// Forgets those of other sockets.
    pub(super) fn keep(&mut self, known: impl Fn(&Path) -> bool) {
        self.of.retain(|socket, _| known(socket));
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.of.len()
    }
}

impl Supervisor {
    /// There was output on that server.
    pub(super) fn plan_may_move(&mut self, socket: &Path) {
        if let Some(kept) = self.plans.of.get_mut(socket) {
            kept.stale = kept.plan.windows.iter().any(|w| w.panes.iter().any(|pane| pane.record.is_none()));
        }
    }

    /// When something is left out of a plan that is gone for long enough.
    pub(super) fn plans_due(&self) -> Option<Duration> {
        // one that is not told of now is kept with the answer that tells; one of an earlier life stays as it is
        let told = |(socket, kept): &(&PathBuf, &Kept)| {
            let server = self.servers.get(*socket).filter(|server| self.is_told(server));
            let up = server.and_then(Server::up);
            up.is_some_and(|up| up.identity.process == kept.plan.server.process())
        };
        self.plans.of.iter().filter(told).filter_map(|(_, kept)| kept.due).min()
    }

    /// Whether a server is listed whole and not on its way out.
    fn is_told(&self, server: &Server) -> bool {
        let current =
            server.up().is_some_and(|up| up.world.is_complete() && up.dirty.is_none() && !up.silent);
        current && self.last_words_due(server).is_none()
    }

    /// Keeps the plans that changed.
    pub(super) fn plan(&mut self, now: Now) {
        let mut fresh = Vec::new();
        for (socket, server) in &self.servers {
            if let Some(plan) = self.plan_of(socket, server) {
                fresh.push((socket.clone(), plan));
            }
        }
        for (socket, mut plan) in fresh {
            let (mut gone, mut due) = (BTreeMap::new(), None::<Duration>);
            let kept = self.plans.of.get_mut(&socket).filter(|kept| kept.plan.server == plan.server);
            if let Some(kept) = kept {
                plan.put_back(&kept.plan, |pane| {
                    let since = kept.gone.get(&pane.pid).copied().unwrap_or(now.mono);
                    gone.insert(pane.pid, since);
                    let until = since + LINGER;
                    let lingers = now.mono < until;
                    due = due.into_iter().chain(lingers.then_some(until)).min();
                    lingers
                });
                if kept.plan == plan && !kept.stale {
                    (kept.gone, kept.due) = (gone, due);
                    continue;
                }
            } else if plan.windows.is_empty() {
                continue;
            }
            self.plans.of.insert(socket, Kept { plan: plan.clone(), gone, due, stale: false });
            self.actions.push_back(Action::KeepPlan(Box::new(plan)));
        }
    }

    /// The plan of a server that is listed whole and not on its way out.
    fn plan_of(&self, socket: &Path, server: &Server) -> Option<Plan> {
        let up = server.up().filter(|_| self.is_told(server))?;
        let mut agents: BTreeMap<PaneId, RecordId> = BTreeMap::new();
        // one whose restore is taken back stands there all the same: its pane is no companion
        for record in self.records() {
            let here = record.ait.server.as_ref().is_some_and(|e| e.process() == up.identity.process);
            if let Some(pane) = record.location.pane_id().filter(|_| here) {
                agents.insert(PaneId(pane.0), record.id);
            }
        }
        let epoch = ServerEpoch {
            socket: socket.to_string_lossy().into_owned(),
            pid: up.identity.process.pid,
            started: up.identity.process.started.clone(),
            started_at: Some(up.identity.started_at),
            boot_id: self.start.boot_id.clone(),
            unknown: Default::default(),
        };
        Some(up.world.plan(epoch, |pane| agents.get(&pane).copied()))
    }
}
