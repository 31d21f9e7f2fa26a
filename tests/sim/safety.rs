//! What coordinators must keep, worked out from the world's own truth: while they work, and once all of it has come to rest.

use ait::coordinator::{Deed, PaneAct};
use ait::record::{
    Desired, Facts, Location, LossCause, ProcessId, Record, RecordId, Records, RestoreMode, Stamp, State,
    StateName, Verb, is_lease_free, outlived,
};

use crate::actors::{Op, Wish};
use crate::kernel::{Process, What};
use crate::tmux::Pane;
use crate::world::{MS, SECOND, Sim};

impl Sim {
    /// Somebody wants something of a record.
    pub(crate) fn operate(&mut self) {
        let all: Vec<(RecordId, StateName)> =
            self.disk.records.iter().map(|record| (record.id, record.state.name())).collect();
        let Some((record, state)) = self.dice.pick(&all) else { return };
        let roll = self.dice.below(100);
        let op = match (state, roll) {
            (StateName::Live, 0..90) => {
                Op::Freeze(if self.dice.percent(25) { Wish::Force } else { Wish::Named })
            }
            (StateName::Frozen, 0..80) => Op::Restore(RestoreMode::Resume),
            (StateName::Frozen, 80..86) => Op::Restore(RestoreMode::Repick),
            (StateName::Freezing | StateName::Restoring | StateName::Aborting, 0..50) => {
                Op::Restore(RestoreMode::Resume)
            }
            (_, 50..75) => Op::Freeze(Wish::Named),
            (_, 90..) => Op::Drop,
            _ => Op::Restore(RestoreMode::Resume),
        };
        let times = match self.dice.below(40) {
            0 => 20,
            1..5 => 3,
            _ => 1,
        };
        for _ in 0..times {
            self.employ(op, record);
        }
        if self.dice.percent(10) {
            let what = self.dice.between(9, 15);
            self.disturb(record, what);
        }
        if self.dice.percent(60) {
            self.after(MS, 40 * SECOND, crate::world::Event::Act);
        }
    }

    fn pane_process(&self, pane: &Pane) -> Option<&Process> {
        self.kernel.process(&pane.process)
    }

    /// A deed is about to be done to that pane.
    pub(crate) fn check_deed(&mut self, server: usize, id: RecordId, act: &PaneAct) {
        let Some(there) = self.servers[server].panes.get(&act.pane.0).cloned() else { return };
        let stamp = id.to_string();
        let text = format!("{:?} of {id} on {} of server {server}", act.deed, act.pane);
        let record = self.disk.records.get(id).cloned();
        let own = there.frozen == stamp || there.stamp == stamp || there.attempt.starts_with(&stamp);
        let occupant = self.pane_process(&there).cloned();
        let agent = occupant.as_ref().and_then(|process| match process.what {
            What::Agent(agent) => Some(agent),
            What::Shell => self.agent_below(&process.id),
            _ => None,
        });
        let its = record.as_ref().is_some_and(|record| {
            record.location.process().is_some_and(|process| process.pid == there.process.pid)
                || record.agent_process().is_some_and(|process| process.pid == there.process.pid)
        });
        match act.deed {
            Deed::StampFrozen | Deed::StampRestored { .. } => {
                if !own && !its {
                    self.fail("strangers are left alone", text);
                }
            }
            Deed::UnstampFrozen { .. } | Deed::KillDead => {
                if !own {
                    self.fail("strangers are left alone", text);
                }
            }
            Deed::RespawnStandin | Deed::KillStandin => {
                let state = record.as_ref().map(|record| record.state.name());
                let lives = agent.is_some_and(|agent| self.is_living(agent));
                if there.frozen != stamp {
                    self.fail("strangers are left alone", text);
                } else if lives && !matches!(state, Some(StateName::Aborting | StateName::Freezing)) {
                    self.fail("agents end only when begun", format!("{text}, {state:?}"));
                }
            }
        }
    }

    fn agent_below(&self, shell: &ProcessId) -> Option<usize> {
        self.living_agents().into_iter().find(|agent| self.is_below(&self.agents[*agent].id, shell))
    }

    /// A pane's stand-in is about to give way to its agent.
    pub(crate) fn check_launch_place(&mut self, server: usize, id: RecordId, pane: u32) {
        let Some(there) = self.servers[server].panes.get(&pane).cloned() else { return };
        let process = self.pane_process(&there).map(|process| process.what);
        if let Some(What::Agent(agent)) = process {
            self.fail("one agent a conversation", format!("{id}: agent {agent} still runs in %{pane}"));
        }
    }

    /// A process is about to be signalled by a coordinator.
    pub(crate) fn check_signal(&mut self, at: usize, process: &ProcessId) {
        let id = self.actors[at].record;
        let Some(known) = self.kernel.process(process).cloned() else { return };
        let Some(record) = self.disk.records.get(id).cloned() else {
            return self.fail("agents end only when begun", format!("{id} is not there"));
        };
        let agent = self.actors[at].known.as_ref().and_then(|record| record.agent_process());
        let own = match known.what {
            What::Agent(_) => agent.as_ref().is_some_and(|agent| agent.pid == process.pid),
            What::Tool => known.parent.is_some_and(|parent| {
                agent.as_ref().is_some_and(|agent| agent.pid == parent.pid || self.is_below(&parent, agent))
            }),
            What::Tmux(_) | What::Shell | What::Viewer | What::Coordinator(_) | What::Stranger => false,
        };
        if !own {
            self.fail("strangers are left alone", format!("{id}: {process:?} is a {:?}", known.what));
        } else if record.state.name() != StateName::Freezing {
            let text = format!("{id} is {:?} on disk", record.state.name());
            self.fail("agents end only when begun", text);
        } else if record.capture.is_empty() || !self.disk.captures.contains_key(&id) {
            self.fail("agents end only when captured", format!("{id} has no capture"));
        } else if let What::Agent(agent) = known.what {
            self.oracle.ended_by.insert(agent, id);
        }
    }

    /// A second agent of a conversation must not be started by somebody who could see the first.
    pub(crate) fn check_one_agent(&mut self, at: usize, conversation: &str) {
        let looked = self.actors[at].looked;
        let other = self.living_agents().into_iter().find(|agent| {
            let known = &self.agents[*agent];
            known.conversation == conversation && (!known.by_hand || known.born <= looked)
        });
        let unseen = self.living_agents().into_iter().filter(|agent| {
            let known = &self.agents[*agent];
            known.conversation == conversation && known.by_hand && known.born > looked
        });
        let unseen: Vec<usize> = unseen.collect();
        self.oracle.excused.extend(unseen);
        if let Some(other) = other {
            let text = format!("agent {other} has {conversation} already");
            self.fail("one agent a conversation", text);
        }
    }

    /// Captures go with this write.
    pub(crate) fn check_removal(&mut self, id: RecordId, before: &Records) {
        let (Some(was), now) = (before.get(id).cloned(), self.disk.records.get(id).cloned()) else { return };
        let Some(now) = now else { return };
        let good = match (was.state.name(), now.state.name()) {
            // a freeze that was taken back
            (StateName::Freezing, StateName::Live) => true,
            (StateName::Restoring, StateName::Live) => {
                let place = now.location.process().cloned();
                let truth = self.agents.iter().rev().find(|agent| {
                    place.as_ref().is_some_and(|own| agent.id == *own || self.is_below(&agent.id, own))
                });
                matches!(now.restore.ack.as_str(), "hook" | "registry" | "rollout")
                    && truth.is_none_or(|agent| agent.conversation == now.codeagent_session_id)
            }
            _ => false,
        };
        if !good {
            let text = format!("{id}: {:?} to {:?}, {:?}", was.state, now.state, now.restore.ack);
            self.fail("captures stay until verified", text);
        }
    }

    /// A lease changes hands only once it is free.
    pub(crate) fn check_leases(&mut self, before: &Records) {
        let records = std::sync::Arc::clone(&self.disk.records);
        for record in records.iter() {
            let Some(was) = before.get(record.id).and_then(|was| was.lease.as_ref()) else { continue };
            let Some(lease) = &record.lease else { continue };
            if lease.nonce != was.nonce && self.kernel.lives(&was.owner) {
                let text =
                    format!("{}: {:?} took it from {:?}, who lives", record.id, lease.owner, was.owner);
                return self.fail("leases are kept", text);
            }
        }
    }

    /// What the supervisor settles of an operation that was cut short.
    pub(crate) fn check_settled(&mut self, record: &Record, verb: &Verb) {
        let id = record.id;
        // pids and starts begin anew with each boot
        let now = record.ait.server.as_ref().is_some_and(|epoch| epoch.boot_id == self.kernel.boot_id());
        let lives = now && record.agent_process().is_some_and(|agent| self.kernel.lives(&agent));
        let held = now && record.lease.as_ref().is_some_and(|lease| self.kernel.lives(&lease.owner));
        match verb {
            _ if held => {
                self.fail("leases are kept", format!("{id}: {:?} while its owner lives", verb.name()))
            }
            Verb::FreezeCommit { .. } if lives => {
                self.fail("the frozen are dead", format!("{id}: its agent lives"));
            }
            Verb::RestoreConfirm { at, .. } => {
                if at.process().is_none_or(|process| !self.kernel.living.contains_key(&process.pid)) {
                    self.fail("the restored live", format!("{id}: its process is gone"));
                }
            }
            Verb::FreezeCommit { .. }
            | Verb::FreezeAbort { .. }
            | Verb::RestoreAbort { .. }
            | Verb::RestoreLaunched { .. }
            | Verb::StandinRespawned { .. }
            | Verb::LeaseRelease { .. } => {}
            // what a drop that said so before it closed the pane could not finish
            Verb::Drop { nonce: Some(_) } => {
                let begun = self.actors.iter().any(|actor| actor.op == Op::Drop && actor.record == id);
                let said = record.ait.desired == Some(Desired::Stopped);
                let runs = self.living_agents().into_iter().find(|agent| self.belongs(*agent, record));
                if !begun || !said || !matches!(record.state, State::Frozen { .. }) {
                    self.fail("legal", format!("Drop of {id}, which nobody asked for: {:?}", record.state));
                } else if let Some(agent) = runs {
                    self.fail("the forgotten are dead", format!("{id}: agent {agent} runs"));
                }
            }
            verb => self.fail("legal", format!("{:?} of {id}", verb.name())),
        }
    }

    // --- at rest

    pub(crate) fn check_rest(&mut self, records: &Records) {
        if let Some(at) = self.actors.iter().position(|actor| actor.alive) {
            return self.fail("coordinators end", format!("{at}: {:?}", self.actors[at].op));
        }
        for record in records.iter() {
            self.check_at_rest(record);
        }
        for server in 0..self.servers.len() {
            if self.servers[server].alive && self.reachable(server) {
                self.check_stand_ins(server, records);
            }
        }
    }

    fn check_at_rest(&mut self, record: &Record) {
        let id = record.id;
        let server = self.server_of(record).filter(|at| self.servers[*at].alive);
        if server.is_some_and(|at| !self.reachable(at)) || record.ait.server.is_none() {
            return;
        }
        // unknown is not gone: whom a restore was begun on cannot be looked at
        let listener = record
            .ait
            .server
            .as_ref()
            .and_then(|epoch| self.listening.get(std::path::Path::new(&epoch.socket)).copied());
        if matches!(record.state, State::Restoring { .. })
            && listener.is_some_and(|at| self.servers[at].alive && !self.reachable(at))
        {
            return;
        }
        if !self.is_unheld(record) {
            return self.fail("no lease for ever", format!("{id}: {:?}", record.lease));
        }
        match &record.state {
            State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                let text = format!("{id} is {:?} at {:?}", record.state, record.location);
                self.fail("all is settled", text);
            }
            State::Live => {}
            State::Frozen { lost } => {
                // one that outlived its server is known by its process, for whoever brings it back
                let taken = lost.as_deref().is_some_and(|lost| lost.cause != LossCause::AgentCrashed);
                let outlived = self.outlived_by(record).filter(|_| taken);
                let both = self.living_agents().into_iter().find(|agent| {
                    let known = &self.agents[*agent];
                    // nobody can look at a server without a socket
                    known.conversation == record.codeagent_session_id
                        && (!self.servers[known.server].alive || self.has_socket(known.server))
                        && outlived.as_ref() != Some(&known.id)
                        && self.belongs(*agent, record)
                });
                if let Some(agent) = both {
                    return self.fail("never both", format!("{id} is frozen, agent {agent} runs"));
                }
                if lost.is_none()
                    && !self.oracle.stripped
                    && (record.capture.is_empty() || !self.disk.captures.contains_key(&id))
                {
                    return self.fail("the frozen have captures", format!("{id}: {:?}", record.capture));
                }
                self.check_stand_in(record, server);
            }
        }
    }

    fn with_facts<T>(&self, judge: impl FnOnce(&Facts<'_>) -> T) -> T {
        let (kernel, boot_id) = (&self.kernel, self.kernel.boot_id());
        judge(&Facts {
            now: Stamp::from_unix(self.utc()),
            since_boot: self.now / SECOND,
            boot_id: &boot_id,
            grace: 60,
            alive: &|id| kernel.liveness(id),
            started: &|_| None,
            draw: &|| 0,
        })
    }

    /// Whether nobody holds the record.
    pub(crate) fn is_unheld(&self, record: &Record) -> bool {
        self.with_facts(|facts| is_lease_free(record, facts))
    }

    /// The process that may have outlived its server.
    pub(crate) fn outlived_by(&self, record: &Record) -> Option<ProcessId> {
        self.with_facts(|facts| outlived(record, facts).cloned())
    }

    fn has_socket(&self, server: usize) -> bool {
        self.reachable(server) && self.files.contains(&self.servers[server].socket)
    }

    /// Whether an agent is the one that was frozen, or one that a restore of this record started.
    fn belongs(&self, agent: usize, record: &Record) -> bool {
        match &self.agents[agent].manner {
            Some(manner) => manner.record == record.id,
            None => self.oracle.ended_by.get(&agent) == Some(&record.id),
        }
    }

    fn check_stand_in(&mut self, record: &Record, server: Option<usize>) {
        let id = record.id;
        let (Some(server), Location::Pane { pane, .. }) = (server, &record.location) else { return };
        // one that was closed, by `q` or with its window, leaves its record frozen
        let Some(there) = self.servers[server].panes.get(&pane.0).cloned() else { return };
        let what = self.pane_process(&there).map(|process| process.what);
        let stamped = there.frozen == id.to_string();
        let good = match what {
            // one that was put back after a crash of it keeps the place, not the process
            Some(What::Viewer) => stamped,
            // given to something else by its user
            Some(What::Stranger | What::Shell | What::Tool) => true,
            Some(_) => false,
            None => !stamped || there.held || there.unreaped.is_some(),
        };
        if !good {
            let text = format!("{id}: {pane} has {what:?}, stamp {:?}, {:?}", there.frozen, record.location);
            self.fail("the frozen have stand-ins", text);
        }
    }

    /// A stand-in belongs to a frozen record that knows of it.
    fn check_stand_ins(&mut self, server: usize, records: &Records) {
        // a record that lost its server to an earlier script does not know where its stand-in is
        if self.oracle.stripped {
            return;
        }
        for (pane, there) in self.servers[server].panes.clone() {
            let Ok(id) = there.frozen.parse::<RecordId>() else { continue };
            let viewer = self.pane_process(&there).is_some_and(|process| process.what == What::Viewer);
            let record = records.get(id);
            let here = record.is_some_and(|record| {
                record.state.name() == StateName::Frozen
                    && record.location.pane_id().is_some_and(|at| at.0 == pane)
                    && self.server_of(record) == Some(server)
            });
            // a recovery that ended before it could sign leaves it for the next restore, which takes it
            let placed = self.kernel.process(&there.process).is_some_and(|one| one.stands_for == Some(id));
            let waits = placed
                && record.is_some_and(|record| {
                    let tried = |lost: &ait::record::Lost| self.oracle.tries.contains_key(&(id, lost.at));
                    let near = record.ait.server.as_ref().is_some_and(|epoch| {
                        std::path::Path::new(&epoch.socket) == self.servers[server].socket
                    });
                    let unseated = self.server_of(record).is_none_or(|at| !self.servers[at].alive);
                    (record.location == Location::Gone || unseated)
                        && near
                        && record.state.lost().is_some_and(tried)
                });
            if viewer && !here && !waits {
                let state = record.map(|record| (record.state.name(), record.location.clone()));
                let text = format!("%{pane} of server {server} stands in for {id}, which is {state:?}");
                return self.fail("stand-ins stand for somebody", text);
            }
        }
    }
}
