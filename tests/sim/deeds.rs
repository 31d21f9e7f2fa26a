//! What coordinators do, performed on the fakes with the tests the real performance makes.

use ait::coordinator::{
    Act, Acted, Applied, Captured, Composer, Conversation, Deed, Family, Heard, Kin, Mood, PaneAct,
    ServerSight, Sight, Sign,
};
use ait::record::{Capture, Nonce, Outcome, ProcessId, Record, RecordId, Verb};
use ait::supervisor::{Answer, Ask};
use ait::world::rows::Snapshot;

use crate::kernel::What;
use crate::mutants::Mutant;
use crate::world::{Event, MS, SECOND, Sim};

/// Who answers on the socket of a record's server.
pub(crate) enum Reach {
    /// The record names none.
    Unnamed,
    /// Its life is over and nobody listens.
    Over,
    /// Another life of it answers.
    Other(usize),
    /// It does not say.
    Unknown,
    /// It is there.
    Up(usize),
}

/// How long a plain tmux process is waited for.
const PATIENCE: u64 = 3 * SECOND;

impl Sim {
    /// Performs an act: how much later than at once it is answered, and the answer.
    pub(crate) fn perform_act(&mut self, at: usize, act: Act) -> (u64, Heard) {
        let now = |heard| (0, heard);
        match act {
            Act::Read => now(Heard::Record(self.read_record(at))),
            Act::Follow => now(self.follow(at)),
            Act::Apply(verb) => now(Heard::Applied(self.apply_for(at, *verb))),
            Act::Look => {
                let (delay, sight) = self.look_for(at);
                (delay, Heard::Server(sight))
            }
            Act::Family => now(Heard::Family(Ok(self.family_of(at)))),
            Act::Examine => now(Heard::Sight(self.examine_for())),
            Act::Locate => now(Heard::Conversation(self.locate_for())),
            Act::Capture => now(Heard::Captured(self.capture_for(at))),
            Act::Pane(act) => {
                let (delay, acted) = self.act_on_pane(at, &act);
                (delay, Heard::Acted(acted))
            }
            Act::Clear => {
                let (delay, acted) = self.clear_for(at);
                (delay, Heard::Acted(acted))
            }
            Act::Watch(process) => now(self.watch_for(at, process)),
            Act::Signal { to, signal } => {
                self.send_for(at, to, signal);
                now(Heard::Signalled(Vec::new()))
            }
            Act::Ready { mode } => now(Heard::Ready(Box::new(self.ready_for(at, mode)))),
            Act::Launch(launch) => {
                let launched = self.launch_for(at, &launch);
                now(Heard::Launched(launched))
            }
            Act::Attend => {
                self.actors[at].attending = true;
                now(Heard::Touched)
            }
            Act::Prove => now(Heard::Proof(Box::new(self.prove_for(at)))),
            Act::Tell(_) | Act::Finish(_) => now(Heard::Time),
        }
    }

    fn apply_for(&mut self, at: usize, verb: Verb) -> Applied {
        let record = self.actors[at].record;
        if self.disk.full || (!self.calm && self.dice.percent(2)) {
            return Applied::Failed("the disk is full".to_owned());
        }
        if self.is(Mutant::EndsUnbegun) && matches!(verb, Verb::FreezeBegin { .. }) {
            return Applied::Done(Outcome::Freezing(Nonce::from_bits(1)));
        }
        let mut results = self.write_steps_of_others(&[(Some(record), verb)]);
        self.store_changed();
        match results.pop() {
            Some(Ok((_, outcome))) => Applied::Done(outcome),
            Some(Err(refused)) => Applied::Refused(refused),
            None => Applied::Failed("no answer".to_owned()),
        }
    }

    /// Whether the life of a record's server is over.
    fn is_over(&self, record: Option<&Record>) -> bool {
        let epoch = record.and_then(|record| record.ait.server.as_ref());
        epoch.is_some_and(|epoch| {
            epoch.boot_id != self.kernel.boot_id() || !self.kernel.lives(&epoch.process())
        })
    }

    /// Who answers for a record.
    pub(crate) fn reach(&self, record: Option<&Record>) -> Reach {
        let Some(epoch) = record.and_then(|record| record.ait.server.as_ref()) else { return Reach::Unnamed };
        let own = record.and_then(|record| self.server_of(record));
        let over = self.is_over(record);
        let socket = std::path::PathBuf::from(&epoch.socket);
        let listener = self.listening.get(&socket).copied().filter(|server| {
            self.files.contains(&socket) && self.servers[*server].alive && !self.servers[*server].exiting
        });
        match listener {
            None if over => Reach::Over,
            None => Reach::Unknown,
            Some(server) if self.servers[server].paused => {
                if over {
                    Reach::Over
                } else {
                    Reach::Unknown
                }
            }
            Some(server) if own == Some(server) => Reach::Up(server),
            Some(server) => Reach::Other(server),
        }
    }

    pub(crate) fn snapshot(&self, server: usize) -> Snapshot {
        let mut all = Snapshot::default();
        for part in 0..3 {
            self.servers[server].list(part, &mut all);
        }
        all
    }

    fn look_for(&mut self, at: usize) -> (u64, ServerSight) {
        let known = self.actors[at].known.clone();
        match self.reach(known.as_deref()) {
            Reach::Unnamed => (0, ServerSight::Unnamed),
            Reach::Over => (0, ServerSight::Over),
            Reach::Other(_) if self.is_over(known.as_deref()) => (0, ServerSight::Over),
            Reach::Other(_) => (0, ServerSight::Unknown("another server has its socket".to_owned())),
            Reach::Unknown => (PATIENCE, ServerSight::Unknown("no answer".to_owned())),
            Reach::Up(_) if !self.calm && self.dice.percent(2) => {
                (0, ServerSight::Unknown("a row makes no sense".to_owned()))
            }
            Reach::Up(server) => (0, ServerSight::Listed(Box::new(self.snapshot(server)))),
        }
    }

    /// Whether a process is below another.
    pub(crate) fn is_below(&self, process: &ProcessId, root: &ProcessId) -> bool {
        let mut at = process.clone();
        while let Some(parent) = self.kernel.process(&at).and_then(|process| process.parent.clone()) {
            if parent == *root {
                return true;
            }
            at = parent;
        }
        false
    }

    fn family_of(&self, at: usize) -> Family {
        let Some(known) = &self.actors[at].known else { return Family::default() };
        let roots: Vec<ProcessId> =
            [known.location.process().cloned(), known.agent_process()].into_iter().flatten().collect();
        let is_kin = |process: &crate::kernel::Process| {
            roots.iter().any(|root| root.pid == process.id.pid || self.is_below(&process.id, root))
                || (process.what == What::Tool
                    && process.parent.as_ref().is_some_and(|parent| roots.iter().any(|root| root == parent)))
        };
        let kin = self.kernel.living.values().filter(|process| is_kin(process)).map(|process| {
            let parent = process.parent.as_ref().filter(|parent| self.kernel.lives(parent));
            let tool = process.what == What::Tool && process.id.pid % 2 == 0;
            let group = process.parent.as_ref().filter(|_| tool).map_or(process.id.pid, |parent| parent.pid);
            Kin {
                id: process.id.clone(),
                ppid: parent.map_or(1, |parent| parent.pid),
                pgrp: group,
                name: format!("{:?}", process.what),
                shared: false,
                memory: 0,
            }
        });
        Family { kin: kin.collect() }
    }

    fn examine_for(&mut self) -> Sight {
        let ready =
            Sight { mood: Mood::Ready, source: "hook".into(), composer: Composer::Empty, ..Sight::unknown() };
        match self.dice.below(20) {
            0 => Sight { mood: Mood::Working, ..ready },
            1 => Sight { composer: Composer::Text, ..ready },
            _ => ready,
        }
    }

    fn locate_for(&mut self) -> Conversation {
        if self.dice.percent(5) {
            return Conversation::Missing("no_turn".to_owned());
        }
        Conversation::Present { path: String::new() }
    }

    fn capture_for(&mut self, at: usize) -> Result<Captured, String> {
        let known = self.actors[at].known.clone();
        let Reach::Up(server) = self.reach(known.as_deref()) else { return Err("no server".to_owned()) };
        let record = known.as_deref();
        let pane = record.and_then(|record| record.location.pane_id());
        let there = pane.and_then(|pane| self.servers[server].panes.get(&pane.0));
        let pid = record.and_then(|record| record.location.process()).map(|process| process.pid);
        if there.is_none_or(|there| Some(there.process.pid) != pid) || self.disk.full {
            return Err("it cannot be captured".to_owned());
        }
        let (id, lines) = (self.actors[at].record, self.dice.between(1, 500));
        if !self.is(Mutant::EndsUncaptured) {
            self.disk.captures.insert(id, lines);
        }
        let capture = Capture { ansi: format!("{id}.ansi"), lines, txt: format!("{id}.txt") };
        Ok(Captured { capture, kept_earlier: false })
    }

    fn act_on_pane(&mut self, at: usize, act: &PaneAct) -> (u64, Acted) {
        let (record, known) = (self.actors[at].record, self.actors[at].known.clone());
        match self.reach(known.as_deref()) {
            Reach::Unnamed => (0, Acted::Refused("its record names no server".to_owned())),
            Reach::Over => (0, Acted::NoServer),
            Reach::Other(server) if self.is(Mutant::ForgetsEpoch) => (0, self.deed(server, record, act)),
            // the test of the epoch does not hold, or there is no such pane
            Reach::Other(_) => (0, Acted::NotMet),
            Reach::Unknown => {
                let own = known.as_deref().and_then(|record| self.server_of(record));
                if let Some(server) = own.filter(|_| self.dice.percent(50)) {
                    let act = act.clone();
                    self.park(server, || Event::Deed { server, record, act });
                }
                (PATIENCE, Acted::Unknown("no answer".to_owned()))
            }
            Reach::Up(server) => {
                let acted = self.deed(server, record, act);
                if !self.calm && self.dice.percent(2) {
                    return (PATIENCE, Acted::Unknown("no proof that it was done".to_owned()));
                }
                (0, acted)
            }
        }
    }

    /// What stands in for a record where another server has its socket.
    fn clear_for(&mut self, at: usize) -> (u64, Acted) {
        let (record, known) = (self.actors[at].record, self.actors[at].known.clone());
        let server = match self.reach(known.as_deref()) {
            Reach::Unnamed => return (0, Acted::NoServer),
            Reach::Up(server) | Reach::Other(server) => server,
            Reach::Over | Reach::Unknown => {
                let epoch = known.as_deref().and_then(|record| record.ait.server.as_ref());
                let socket = epoch.map(|epoch| std::path::PathBuf::from(&epoch.socket)).unwrap_or_default();
                let listener = self.listening.get(&socket).filter(|server| {
                    self.files.contains(&socket)
                        && self.servers[**server].alive
                        && !self.servers[**server].exiting
                });
                let unknown = Acted::Unknown("no answer".to_owned());
                return if listener.is_some() { (PATIENCE, unknown) } else { (0, Acted::NoServer) };
            }
        };
        let stamp = record.to_string();
        let panes = self.servers[server].panes.iter().filter(|(_, there)| there.frozen == stamp);
        let panes: Vec<(u32, i32)> = panes.map(|(pane, there)| (*pane, there.process.pid)).collect();
        for (pane, pid) in panes {
            let act = PaneAct { pane: ait::record::PaneId(pane), pid: Some(pid), deed: Deed::KillStandin };
            self.deed(server, record, &act);
        }
        self.end_if_empty(server);
        (0, Acted::Done)
    }

    /// One guarded deed on a server.
    pub(crate) fn deed(&mut self, server: usize, record: RecordId, act: &PaneAct) -> Acted {
        let stamp = record.to_string();
        let Some(there) = self.servers[server].panes.get(&act.pane.0) else {
            return Acted::Refused(format!("can't find pane: {}", act.pane));
        };
        let is_named = act.pid == Some(there.process.pid);
        let process = act.pid.is_none() || is_named || self.is(Mutant::ForgetsProcess);
        let viewer = self.kernel.process(&there.process).is_some_and(|process| process.what == What::Viewer);
        let vacant = there.dead || viewer || self.is(Mutant::ForgetsProcess);
        let frozen = there.frozen == stamp || self.is(Mutant::ForgetsEpoch) || self.is(Mutant::ForgetsStamp);
        let met = match act.deed {
            Deed::StampFrozen | Deed::StampRestored { .. } => process,
            Deed::UnstampFrozen { .. } => process && frozen,
            Deed::RespawnStandin => frozen && (vacant || is_named),
            Deed::KillStandin => process && frozen && vacant,
            Deed::KillDead => there.dead && there.stamp == stamp,
        };
        if !met {
            return Acted::NotMet;
        }
        self.check_deed(server, record, act);
        self.note(|| format!("server {server}: {:?} of {record} on {}", act.deed, act.pane));
        let forgets = self.is(Mutant::ForgetsStandin);
        let tmux = &mut self.servers[server];
        tmux.stirred = true;
        let Some(there) = tmux.panes.get_mut(&act.pane.0) else { return Acted::NotMet };
        match act.deed {
            Deed::StampFrozen => {
                (there.ready, there.own, there.frozen) = (false, Some(true), stamp);
            }
            Deed::UnstampFrozen { release } => {
                there.frozen.clear();
                if release {
                    there.own = None;
                }
            }
            Deed::RespawnStandin if forgets => {}
            Deed::RespawnStandin => self.respawn_viewer(server, act.pane.0),
            Deed::KillStandin | Deed::KillDead => self.remove_pane(server, act.pane.0),
            Deed::StampRestored { release } => {
                (there.stamp, there.ready) = (stamp, false);
                there.frozen.clear();
                there.attempt.clear();
                if release {
                    there.own = None;
                }
            }
        }
        Acted::Done
    }

    /// `respawn-pane -k`: what has the terminal is hung up, and the new process takes it.
    pub(crate) fn respawn_pane(&mut self, server: usize, pane: u32, what: What) -> ProcessId {
        let before = self.kernel.on_terminal(server, pane);
        let process = self.kernel.spawn(what, Some((server, pane)));
        if let Some(there) = self.servers[server].panes.get_mut(&pane) {
            there.process = process.clone();
            (there.dead, there.how, there.unreaped, there.held) = (false, None, None, false);
            there.ready = false;
        }
        self.servers[server].stirred = true;
        for process in before {
            self.after(100, 2 * MS, Event::Signal { process, signal: 1 });
        }
        process
    }

    fn respawn_viewer(&mut self, server: usize, pane: u32) {
        if let Some(there) = self.servers[server].panes.get_mut(&pane) {
            there.attempt.clear();
        }
        let stands_for = self.servers[server].panes.get(&pane).and_then(|there| there.frozen.parse().ok());
        let process = self.respawn_pane(server, pane, What::Viewer);
        if let Some(known) = self.kernel.living.get_mut(&process.pid) {
            known.stands_for = stands_for;
        }
        if !self.calm && self.dice.percent(4) {
            self.after(MS, 300 * MS, Event::Exit { process, status: 101 });
        } else {
            self.after(5 * MS, 800 * MS, Event::Drawn { server, pane, process });
        }
    }

    pub(crate) fn drawn(&mut self, server: usize, pane: u32, process: &ProcessId) {
        if self.park(server, || Event::Drawn { server, pane, process: process.clone() }) {
            return;
        }
        let lives = self.kernel.lives(process);
        let Some(there) = self.servers[server].panes.get_mut(&pane) else { return };
        if there.process == *process && lives {
            there.ready = true;
            self.servers[server].stirred = true;
        }
    }

    fn send_for(&mut self, at: usize, mut to: Vec<ProcessId>, sign: Sign) {
        if self.is(Mutant::EndsAnother)
            && let Some(other) = self.living_agents().first()
        {
            to.push(self.agents[*other].id.clone());
        }
        let signal = match sign {
            Sign::Term => 15,
            Sign::Kill => 9,
        };
        for process in to {
            if self.kernel.lives(&process) {
                self.check_signal(at, &process);
                self.signal(&process, signal);
            }
        }
    }

    /// What the supervisor asks for of the same deeds.
    pub(crate) fn obey_deed(&mut self, server: usize, ask: &Ask) -> Option<Answer> {
        let (pane, record, pid, deed) = match ask {
            Ask::UnstampFrozen { pane, record } => {
                (pane, record, None, Deed::UnstampFrozen { release: false })
            }
            Ask::StampFrozen { pane, record } => (pane, record, None, Deed::StampFrozen),
            Ask::RespawnStandin { pane, record, over } => (pane, record, *over, Deed::RespawnStandin),
            _ => return None,
        };
        let there = self.servers[server].panes.get(&pane.0);
        if matches!(ask, Ask::StampFrozen { .. })
            && there.is_none_or(|at| !at.dead || at.stamp != record.to_string())
        {
            return Some(Answer::NotDone);
        }
        let act = PaneAct { pane: ait::record::PaneId(pane.0), pid, deed };
        let acted = self.deed(server, *record, &act);
        Some(if acted == Acted::Done { Answer::Done } else { Answer::NotDone })
    }

    /// Something happens to what a coordinator works with.
    pub(crate) fn disturb(&mut self, record: RecordId, what: u64) {
        let Some(known) = self.disk.records.get(record).cloned() else { return };
        let server =
            self.server_of(&known).filter(|at| self.servers[*at].alive && !self.servers[*at].exiting);
        let pane = known.location.pane_id().map(|pane| pane.0);
        let pane = pane.filter(|pane| server.is_some_and(|at| self.servers[at].panes.contains_key(pane)));
        match (what, server, pane) {
            (9 | 10, ..) => {
                let Some(process) = known.agent_process().or_else(|| known.location.process().cloned())
                else {
                    return;
                };
                let signal = self.dice.pick(&[1, 9, 15]).unwrap_or(9);
                self.after(0, 5 * MS, Event::Signal { process, signal });
            }
            (11, Some(server), Some(pane)) => {
                self.note(|| format!("%{pane} of server {server} is closed"));
                self.remove_pane(server, pane);
            }
            (12, Some(server), Some(pane)) => {
                self.note(|| format!("%{pane} of server {server} is given to a stranger"));
                self.respawn_pane(server, pane, What::Stranger);
            }
            (13, Some(server), _) => self.fall(server, crate::tmux::Fall::Crashed),
            (14, Some(server), _) => {
                self.stop_server(server);
                self.after(15 * MS, 300 * MS, Event::Act);
            }
            (15, Some(server), _) => {
                // another life of it takes the socket at once, and gives out the same ids
                let which = usize::from(self.servers[server].socket.ends_with("work"));
                self.fall(server, crate::tmux::Fall::Crashed);
                self.start_server(which);
            }
            _ => {}
        }
    }
}
