//! What must be true, worked out again from the simulated world's own truth: after every step, at every write and every
//! order, and once more when nothing happens any longer.

use std::collections::{BTreeMap, BTreeSet};

use ait::record::{
    Host as Sits, Location, LossCause, Outcome, ProcessId, Record, RecordId, Refused, Stamp, State,
    StateName, Step, Verb,
};
use ait::supervisor::{Ask, Input};
use bstr::BString;

use crate::agents::Agent;
use crate::kernel::How;
use crate::recovery::Tries;
use crate::tmux::Fall;
use crate::world::{Event, MS, SECOND, Sim};

/// What the oracle remembers.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// The first rule that was broken, and how.
    pub(crate) broken: Option<(&'static str, String)>,
    /// Every record there ever was.
    pub(crate) known: BTreeSet<RecordId>,
    /// How the client on a server ended, as a life of the supervisor heard it and when; until that one is attached again.
    pub(crate) last_words: BTreeMap<usize, (u32, Option<BString>, u64)>,
    /// Clients that the supervisor heard of.
    pub(crate) announced: BTreeSet<String>,
    /// The stop before this life of the supervisor.
    pub(crate) last_stop: Option<ait::supervisor::LastStop>,
    /// The servers that could be reached before the end.
    reachable: BTreeSet<usize>,
    /// An earlier script dropped what is ours.
    pub(crate) stripped: bool,
    /// Live records when the machine began to go down, and the wall clock then.
    going_down: Option<(Vec<RecordId>, i64)>,
    /// Records that a verb was refused for.
    refused: BTreeSet<RecordId>,
    /// The record each agent was frozen under.
    pub(crate) ended_by: BTreeMap<usize, RecordId>,
    /// Writes that lost records to the reboot.
    reboot_writes: u32,
    /// What was tried of each loss.
    pub(crate) tries: BTreeMap<(RecordId, Stamp), Tries>,
    /// When the last loss of each record was decided.
    decided: BTreeMap<RecordId, u64>,
    /// Records that were lost to the reboot, as it was written.
    rebooted: BTreeSet<RecordId>,
    /// Agents that somebody started by hand in the moment in which they were restored.
    pub(crate) excused: BTreeSet<usize>,
}

impl Sim {
    /// What holds after every step.
    pub(crate) fn check_always(&mut self) {
        let Some(life) = self.host.as_ref().map(|host| host.life) else { return };
        for server in 0..self.servers.len() {
            let ours = self.conns.iter().filter(|c| c.open && c.server == Some(server) && c.life == life);
            if ours.count() > 1 {
                self.fail("one client", format!("two clients on server {server}"));
            }
        }
    }

    pub(crate) fn server_of(&self, record: &Record) -> Option<usize> {
        let epoch = record.ait.server.as_ref()?;
        let boot = |boot: u32| epoch.boot_id == format!("boot-{boot}");
        self.servers.iter().position(|tmux| tmux.id == epoch.process() && boot(tmux.boot))
    }

    fn agent_of(&self, process: &ProcessId) -> Option<&Agent> {
        self.agents.iter().rev().find(|a| a.id == *process && a.boot == self.kernel.boot)
    }

    /// Applies a batch of the supervisor's, checking each change against the truth.
    pub(crate) fn write_steps(&mut self, steps: &[Step], torn: bool) -> Vec<Result<(), Refused>> {
        let before = std::sync::Arc::clone(&self.disk.records);
        let results = self.commit(steps, torn);
        let mut reboot = false;
        for ((id, verb), result) in steps.iter().zip(&results) {
            let Some(id) = id else { continue };
            match result {
                Ok(_) => {
                    let record = before.get(*id).map(|record| record.as_ref());
                    self.check_change(*id, record, verb);
                    reboot |= matches!(verb, Verb::Lose { cause: LossCause::Reboot, .. });
                    if matches!(
                        verb,
                        Verb::Lose { cause: LossCause::Reboot, .. }
                            | Verb::Reboot { .. }
                            | Verb::Revive { .. }
                    ) {
                        self.oracle.rebooted.insert(*id);
                    }
                }
                Err(_) => {
                    self.oracle.refused.insert(*id);
                }
            }
        }
        if reboot && !torn {
            self.oracle.reboot_writes += 1;
        }
        results.into_iter().map(|result| result.map(drop)).collect()
    }

    /// Applies a batch of somebody else's.
    pub(crate) fn write_steps_of_others(
        &mut self,
        steps: &[Step],
    ) -> Vec<Result<(RecordId, Outcome), Refused>> {
        self.commit(steps, false)
    }

    fn commit(&mut self, steps: &[Step], torn: bool) -> Vec<Result<(RecordId, Outcome), Refused>> {
        let (uptime, utc) = (self.now / SECOND, self.utc());
        let before = std::sync::Arc::clone(&self.disk.records);
        let version = self.disk.version;
        let mut batch = self.disk.work_out(steps, &self.kernel, utc, uptime);
        self.spoil_batch(&mut batch);
        let results = batch.results.clone();
        if torn {
            self.note(|| "  the write is torn: only the archive has it".to_owned());
            self.disk.archive.append(&mut batch.lines);
        } else {
            let removed = batch.removed.clone();
            self.disk.commit(batch);
            for id in removed {
                self.check_removal(id, &before);
                self.disk.captures.remove(&id);
            }
        }
        if self.crewed && self.disk.version != version {
            self.check_leases(&before);
            self.tell_actors_of_store();
        }
        for ((_, verb), result) in steps.iter().zip(&results) {
            self.note(|| format!("  wrote {:?}: {result:?}", verb.name()));
        }
        self.check_store();
        results
    }

    /// No record lost, none doubled.
    fn check_store(&mut self) {
        let records = std::sync::Arc::clone(&self.disk.records);
        self.oracle.known.extend(records.iter().map(|record| record.id));
        let gone = self.oracle.known.iter().find(|id| {
            records.get(**id).is_none() && !self.disk.archive.iter().any(|line| line.record.id == **id)
        });
        if let Some(id) = gone.copied() {
            self.fail("none lost", format!("record {id} is in neither store nor archive"));
        }
        let mut agents = BTreeMap::new();
        let mut panes = BTreeMap::new();
        let boot_id = self.kernel.boot_id();
        for record in records.iter().filter(|record| record.state.name() == StateName::Live) {
            if record.ait.server.as_ref().is_some_and(|epoch| epoch.boot_id != boot_id) {
                continue;
            }
            let agent = record.agent_process().filter(|agent| !agent.started.is_empty());
            if let Some(other) = agent.and_then(|agent| agents.insert(agent, record.id)) {
                self.fail("none doubled", format!("{other} and {} are the same agent", record.id));
            }
            if let (Some(epoch), Some(pane)) = (&record.ait.server, record.location.pane_id())
                && let Some(other) = panes.insert((epoch.process(), pane), record.id)
            {
                self.fail("none doubled", format!("{other} and {} claim {pane}", record.id));
            }
        }
    }

    fn check_change(&mut self, id: RecordId, record: Option<&Record>, verb: &Verb) {
        match (verb, record) {
            (Verb::End { reason, evidence, .. }, Some(record)) => self.check_end(record, reason, evidence),
            (Verb::Lose { cause: LossCause::AgentCrashed, signal, .. }, Some(record)) => {
                self.check_crash(record, *signal);
            }
            (Verb::Lose { cause, .. }, Some(record)) => self.check_loss(record, *cause),
            (Verb::Revive { archived, .. }, None) => {
                let line = self.disk.archive.iter().rev().find(|line| line.record.id == archived.id);
                let at = line.map(|line| line.at).unwrap_or_default();
                let down = self.oracle.going_down.as_ref().map(|(_, down)| *down);
                if down.is_none_or(|down| at < down - 2 * 90 - 5) {
                    self.fail("reboot claims its own", format!("{id} ended at {at}, shutdown at {down:?}"));
                }
            }
            (Verb::Reboot { .. } | Verb::Follow(_) | Verb::Enrich { .. }, Some(_)) => {}
            (verb, Some(record)) if self.crewed => self.check_settled(record, verb),
            (verb, _) => self.fail("legal", format!("{:?} of {id}", verb.name())),
        }
    }

    fn check_end(&mut self, record: &Record, reason: &str, evidence: &str) {
        let Some(process) = record.agent_process() else { return };
        if self.kernel.lives(&process) {
            self.fail("ended agents are dead", format!("{}: {process:?} lives", record.id));
            return;
        }
        let (Some(server), Some(pane)) = (self.server_of(record), record.location.pane_id()) else { return };
        let there = self.servers[server].panes.get(&pane.0).cloned();
        let fate = self.agent_of(&process).and_then(|agent| agent.fate).map(|fate| fate.0);
        let below_shell = matches!(record.ait.host, Some(Sits::Shell { .. }));
        let pid = record.location.process().map(|process| process.pid);
        let good = match (reason, there, fate) {
            ("dead_window", there, _) => there.is_none(),
            ("respawned", Some(there), _) => Some(there.process.pid) != pid,
            (_, _, _) if below_shell => true,
            ("exited" | "failed", _, Some(How::Exit(status))) => evidence == format!("exit status {status}"),
            ("dead_pane", _, Some(How::Signal(signal @ (1 | 2 | 15)))) => {
                evidence == format!("ended by signal {signal}")
            }
            // tmux forgot the pane since it answered
            ("respawned", None, _) => true,
            _ => false,
        };
        if !good {
            let text = format!("{} of %{}: {reason}, {evidence}; in truth {fate:?}", record.id, pane.0);
            self.fail("ends are true", text);
        }
    }

    fn check_crash(&mut self, record: &Record, signal: Option<i32>) {
        let Some(process) = record.agent_process() else { return };
        if self.kernel.lives(&process) {
            self.fail("lost agents are dead", format!("{}: {process:?} lives", record.id));
            return;
        }
        let fate = self.agent_of(&process).and_then(|agent| agent.fate).map(|fate| fate.0);
        let pane = self.server_of(record).and_then(|server| {
            record.location.pane_id().and_then(|pane| self.servers[server].panes.get(&pane.0))
        });
        let held = pane.is_some_and(|pane| pane.held);
        let good = match (fate, signal) {
            (Some(How::Signal(1 | 2 | 15)) | Some(How::Exit(_)) | None, None) => held,
            (Some(How::Signal(truth)), Some(said)) => truth == said && !matches!(said, 1 | 2 | 15),
            (Some(How::Signal(_)), None) => held,
            (Some(How::Exit(_)) | None, Some(_)) => false,
        };
        if !good {
            self.fail("losses are true", format!("{}: {signal:?}; in truth {fate:?}", record.id));
        }
    }

    fn check_loss(&mut self, record: &Record, cause: LossCause) {
        if cause == LossCause::Reboot {
            let now = self.kernel.boot_id();
            if record.ait.server.as_ref().is_none_or(|epoch| epoch.boot_id == now) {
                self.fail("causes are true", format!("{} is of this boot", record.id));
            }
            return;
        }
        let Some(server) = self.server_of(record) else {
            self.fail("causes are true", format!("{} names no server there ever was", record.id));
            return;
        };
        let (alive, fall, fell_at) =
            (self.servers[server].alive, self.servers[server].fall, self.servers[server].fell_at);
        if alive {
            self.fail("unknown is not gone", format!("{}: server {server} lives", record.id));
            return;
        }
        let life = self.host.as_ref().map(|host| host.life);
        let id = &self.servers[server].id;
        let seen = self.host.as_ref().is_some_and(|host| host.seen.contains(id));
        let words = self.oracle.last_words.get(&server).filter(|(of, ..)| Some(*of) == life);
        let stopped_before =
            self.oracle.last_stop.as_ref().is_some_and(|stop| stop.boot_id == self.kernel.boot_id());
        let fell = fell_at.map(|at| at.1).unwrap_or_default();
        let decided = self.oracle.decided.get(&record.id).copied().unwrap_or(self.now);
        let words = words.filter(|(_, _, at)| *at <= decided);
        let heard = words
            .is_some_and(|(_, exit, at)| exit.is_some() && *at <= fell + 150 * MS && *at + 100 * MS >= fell);
        let clean = words.is_some_and(|(_, exit, _)| exit.as_ref().is_some_and(|exit| exit.is_empty()));
        let good = match cause {
            LossCause::ServerStopped => {
                fall == Some(Fall::Stopped) || clean || (words.is_none() && stopped_before && !seen)
            }
            LossCause::ServerCrashed => fall == Some(Fall::Crashed),
            LossCause::ServerGone => life.is_none() || !heard,
            LossCause::Reboot | LossCause::AgentCrashed => false,
        };
        if !good {
            let text = format!("{}: {cause:?}; in truth {fall:?}, heard {words:?}", record.id);
            self.fail("causes are true", text);
        }
    }

    /// A loss is one write: whoever is lost with a server is lost with all the others of it.
    pub(crate) fn check_emitted(&mut self, changes: &[(RecordId, Verb)]) {
        let Some(host) = &self.host else { return };
        let told = std::sync::Arc::clone(&host.told);
        for (id, verb) in changes {
            let Verb::Lose { cause, .. } = verb else { continue };
            self.oracle.decided.insert(*id, self.now);
            let Some(record) = told.get(*id) else { continue };
            let left = told.iter().find(|other| {
                let same = match cause {
                    LossCause::AgentCrashed => false,
                    LossCause::Reboot => other.ait.server.as_ref().is_some_and(|epoch| {
                        !epoch.boot_id.is_empty() && epoch.boot_id != self.kernel.boot_id()
                    }),
                    LossCause::ServerStopped | LossCause::ServerCrashed | LossCause::ServerGone => {
                        other.ait.server == record.ait.server
                    }
                };
                same && other.state.name() == StateName::Live
                    && !changes.iter().any(|(id, _)| *id == other.id)
                    && !self.oracle.refused.contains(&other.id)
            });
            if let Some(left) = left {
                self.fail("one write", format!("{id} is lost without {}", left.id));
                return;
            }
        }
    }

    pub(crate) fn check_upsert(&mut self, _agent: &Agent, _step: &Step) {}

    /// An order is about to be carried out.
    pub(crate) fn check_order(&mut self, server: usize, ask: &Ask) {
        match ask {
            Ask::KillDead { pane, record } => {
                let Some(there) = self.servers[server].panes.get(&pane.0) else { return };
                let live = self.disk.records.get(*record).is_some_and(|known| {
                    known.state.name() == StateName::Live
                        && known.location.pane_id().is_some_and(|at| at.0 == pane.0)
                        && self.server_of(known) == Some(server)
                });
                if there.dead && there.stamp == record.to_string() && live {
                    self.fail("kills only what is over", format!("{record} is live in the store"));
                } else if there.stamp == record.to_string() && !self.oracle.known.contains(record) {
                    self.fail("kills only ours", format!("{record} was never in this store"));
                } else if there.dead && there.stamp == record.to_string() && self.servers[server].keeps {
                    self.fail("kills only ours", format!("%{} is kept by the user", pane.0));
                }
            }
            Ask::Stamp { pane, pid, record } => {
                let Some(there) = self.servers[server].panes.get(&pane.0) else { return };
                let (stamp, is_pid) = (there.stamp.clone(), there.process.pid == *pid);
                let claims = |id: RecordId| {
                    self.disk.records.get(id).is_some_and(|other| {
                        other.state.name() == StateName::Live
                            && other.location.pane_id().is_some_and(|at| at.0 == pane.0)
                            && self.server_of(other) == Some(server)
                    })
                };
                if let Ok(other) = stamp.parse::<RecordId>()
                    && other != *record
                    && claims(other)
                {
                    self.fail("stamps stay", format!("%{} is {other}'s, not {record}'s", pane.0));
                } else if is_pid
                    && self
                        .disk
                        .records
                        .get(*record)
                        .is_some_and(|of| of.ait.server.is_some() && self.server_of(of) != Some(server))
                {
                    self.fail("strangers are left alone", format!("{record} is not of server {server}"));
                }
            }
            _ => {}
        }
    }

    /// The machine begins to go down.
    pub(crate) fn begin_shutdown(&mut self) {
        self.note(|| "the machine goes down".to_owned());
        let live = self.disk.records.iter().filter(|record| {
            let named = record.ait.server.as_ref().is_some_and(|e| !e.started.is_empty());
            let lives = record.agent_process().is_some_and(|agent| self.kernel.lives(&agent));
            let up =
                self.server_of(record).is_some_and(|at| self.servers[at].alive && !self.servers[at].exiting);
            let there = self.server_of(record).is_some_and(|at| {
                let pane = record.location.pane_id().and_then(|pane| self.servers[at].panes.get(&pane.0));
                pane.is_some_and(|pane| record.location.process() == Some(&pane.process))
            });
            record.state.name() == StateName::Live && named && lives && up && there
        });
        let live = live.map(|record| record.id).collect();
        self.oracle.going_down = Some((live, self.utc()));
    }

    pub(crate) fn calm_down(&mut self) {
        self.note(|| "from now on nothing is done".to_owned());
        self.calm = true;
        self.disk.full = false;
        self.forget_acts();
        for server in 0..self.servers.len() {
            if self.servers[server].paused {
                self.at(self.now, Event::Resume { server });
            }
        }
        for actor in 0..self.actors.len() {
            self.at(self.now, Event::Continue { actor });
        }
        for at in 0..self.recoveries.len() {
            self.at(self.now, Event::RecoveryGoesOn { at });
        }
        self.after(0, SECOND, Event::Start);
        self.at(self.now + 8 * SECOND, Event::Start);
        self.at(self.now + 20 * SECOND, Event::Start);
    }

    /// Whether the supervisor can reach it.
    pub(crate) fn reachable(&self, server: usize) -> bool {
        let tmux = &self.servers[server];
        // one client a socket: while it is on the server that listened there before, the new one waits
        let elsewhere = self
            .conns
            .iter()
            .any(|conn| conn.open && conn.socket == tmux.socket && conn.server != Some(server));
        let listens = self.listening.get(&tmux.socket) == Some(&server);
        tmux.alive && listens && !elsewhere
    }

    /// What holds once nothing happens any longer.
    pub(crate) fn check_quiet(&mut self) {
        let Some(host) = &self.host else {
            self.fail("runs", "no supervisor runs".to_owned());
            return;
        };
        let life = host.life;
        self.oracle.reachable = (0..self.servers.len()).filter(|at| self.reachable(*at)).collect();
        let records = std::sync::Arc::clone(&self.disk.records);
        let beyond = records.iter().any(|record| {
            record.location != Location::Gone
                && self.server_of(record).is_some_and(|at| self.servers[at].alive && !self.reachable(at))
        });
        if let Some(deadline) = host.machine.deadline().filter(|_| !beyond) {
            self.fail("sleeps", format!("nothing happens, and yet there is a deadline at {deadline:?}"));
        } else if let Some(pending) = self.first_pending().filter(|_| !beyond) {
            let text = format!("nothing happens, and yet {pending:?} is to come");
            self.fail("sleeps", text);
        }
        for record in records.iter() {
            self.check_record(record);
        }
        for server in 0..self.servers.len() {
            self.check_server(server, life, &records);
        }
        self.check_reboot(&records);
        if self.crewed {
            self.check_rest(&records);
        }
        if self.policies.is_some() {
            self.check_recovered(&records);
        }
    }

    fn check_record(&mut self, record: &Record) {
        if record.state.name() != StateName::Live {
            return;
        }
        let Location::Pane { pane, process } = &record.location else { return };
        let named =
            record.ait.server.as_ref().is_some_and(|e| !e.started.is_empty() && !e.boot_id.is_empty());
        if !named {
            let agent = self.agents.iter().find(|agent| {
                let tmux = &self.servers[agent.server];
                let here = agent.pane == pane.0 && self.reachable(agent.server);
                here && agent.boot == self.kernel.boot
                    && agent.fate.is_none()
                    && tmux.panes.get(&pane.0).is_some_and(|there| there.process.pid == process.pid)
            });
            if agent.is_some() {
                self.fail("known in the end", format!("{} has no epoch", record.id));
            }
            return;
        }
        let Some(server) = self.server_of(record).filter(|at| self.servers[*at].alive) else {
            self.fail("lost in the end", format!("{} is live, its server is not", record.id));
            return;
        };
        if !self.reachable(server) {
            return;
        }
        let Some(agent) = record.agent_process() else { return };
        if !self.kernel.lives(&agent) {
            self.fail("ended in the end", format!("{} is live, its agent {agent:?} is not", record.id));
            return;
        }
        let tmux = &self.servers[server];
        let Some(there) = tmux.panes.get(&pane.0).filter(|there| there.process == *process) else { return };
        let Some(window) = tmux.window_of(pane.0) else { return };
        let known = &tmux.windows[&window];
        let name = if known.name.is_empty() { ait::record::UNNAMED } else { known.name.as_str() };
        let place = tmux.places(window).into_iter().find(|(session, index)| {
            tmux.sessions[session].name == record.session && record.ait.window_index == Some(*index)
        });
        let stamp = there.stamp.clone();
        let text = format!(
            "{}: {:?} in {:?} at {:?}; in truth {name:?} in {:?}",
            record.id,
            record.window,
            record.session,
            record.ait.window_index,
            tmux.places(window)
        );
        let layout = Some(format!("layout-{}", known.layout));
        let names = record.window == name
            && place.is_some()
            && record.ait.window_id.is_some_and(|id| id.0 == window)
            && record.ait.window_layout == layout;
        if !names {
            self.fail("names are right in the end", text);
        } else if stamp != record.id.to_string() {
            self.fail("stamped in the end", format!("%{} of {} has {stamp:?}", pane.0, record.id));
        }
    }

    fn check_server(&mut self, server: usize, life: u32, records: &ait::record::Records) {
        let tmux = &self.servers[server];
        if !tmux.alive {
            return;
        }
        let attached = self.conns.iter().any(|c| c.open && c.server == Some(server) && c.life == life);
        let held = records
            .iter()
            .any(|record| record.location != Location::Gone && self.server_of(record) == Some(server));
        let lonely = tmux.users_sessions().is_empty() && tmux.exit_empty;
        let guests = tmux.guests.iter().any(|guest| self.oracle.announced.contains(guest))
            && !tmux.users_sessions().is_empty()
            && attached;
        let ours = tmux.ours.is_some();
        let orphan = tmux.panes.iter().find(|(_, pane)| {
            let ours = pane.dead && pane.own == Some(true) && !pane.own_is_theirs && !tmux.keeps;
            // one whose record went on to another server while no supervisor ran is not to be known any more
            let here = pane.stamp.parse::<RecordId>().is_ok_and(|id| {
                let line = self.disk.archive.iter().rev().find(|line| line.record.id == id);
                records.get(id).is_none()
                    && !self.crewed
                    && line.is_some_and(|line| self.server_of(&line.record) == Some(server))
            });
            ours && here && self.reachable(server)
        });
        let orphan = orphan.map(|(id, _)| *id);
        if attached && !held {
            self.fail("no client without a record", format!("server {server}"));
        } else if ours && !attached {
            self.fail("`_ait` goes with us", format!("server {server}"));
        } else if lonely {
            self.fail("empty servers end", format!("server {server} has no session of the user's"));
        } else if guests {
            self.fail("guests are shown out", format!("server {server}: {:?}", self.servers[server].guests));
        } else if let Some(pane) = orphan {
            self.fail("dead panes are closed", format!("%{pane} of server {server}"));
        }
    }

    fn check_reboot(&mut self, records: &ait::record::Records) {
        let Some((live, _)) = self.oracle.going_down.clone() else { return };
        if self.kernel.boot == 1 || self.oracle.stripped {
            return;
        }
        for id in live {
            let good = match records.get(id).map(|record| &record.state) {
                Some(State::Live) => true,
                // it came back since, and was lost again
                Some(State::Frozen { lost: Some(lost) })
                    if lost.lived.is_some() && self.oracle.rebooted.contains(&id) =>
                {
                    true
                }
                // a coordinator had begun before, or went on in those seconds
                Some(State::Frozen { lost: None }) if self.crewed => true,
                None if self.crewed => true,
                Some(state) => state.lost().is_some_and(|lost| {
                    // one that was killed in those seconds was killed
                    matches!(lost.cause, LossCause::Reboot | LossCause::AgentCrashed)
                        // a server that was killed in those seconds crashed
                        || (self.crewed && lost.cause == LossCause::ServerCrashed)
                }),
                // one that failed by itself in those seconds did
                None => self.disk.archive.iter().rev().any(|line| line.record.id == id && !line.provisional),
            };
            if !good {
                let state = records.get(id).map(|record| record.state.clone());
                self.fail("a shutdown is not a stop", format!("{id} is {state:?}"));
            }
        }
        if self.oracle.reboot_writes > 1 {
            self.fail("one write", format!("{} writes for one reboot", self.oracle.reboot_writes));
        }
    }

    /// A tick is only the time.
    pub(crate) fn check_tick(&mut self) {
        let now = ait::supervisor::Now::at(std::time::Duration::from_micros(self.now), self.utc());
        let Some(host) = &mut self.host else { return };
        host.machine.handle(now, Input::Tick);
        let action = host.machine.next_action();
        let actions: Vec<_> = action.into_iter().flat_map(|action| self.misbehave_on_tick(action)).collect();
        let more = self.misbehave_on_nothing();
        if let Some(action) = actions.into_iter().chain(more).next() {
            self.fail("a tick is only the time", format!("{action:?}"));
        }
    }

    /// What holds after a clean end.
    pub(crate) fn check_stopped(&mut self, before: usize) {
        if self.host.is_some() {
            self.fail("ends when told", "it still runs".to_owned());
            return;
        }
        if self.kernel.living.len() + self.servers.len() < before {
            self.fail("touches no agent", format!("{} processes, before {before}", self.kernel.living.len()));
        }
        for server in 0..self.servers.len() {
            if !self.servers[server].alive {
                continue;
            }
            if self.servers[server].ours.is_some() {
                self.fail("`_ait` goes with us", format!("server {server} after a clean end"));
                return;
            }
            let marked = self.servers[server].panes.iter().find(|(_, pane)| {
                let id = pane.stamp.parse::<RecordId>().ok();
                let live = id.and_then(|id| self.disk.records.get(id)).filter(|record| {
                    record.state.name() == StateName::Live && self.server_of(record) == Some(server)
                });
                live.is_some_and(|record| record.location.process() == Some(&pane.process))
                    && self.oracle.reachable.contains(&server)
            });
            if let Some((pane, _)) = marked {
                let text = format!("%{pane} of server {server} keeps its stamp");
                self.fail("takes all back", text);
                return;
            }
        }
    }
}
