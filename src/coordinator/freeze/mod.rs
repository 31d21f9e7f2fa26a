//! Freeze: ends an agent and puts the stand-in into its pane.
//!
//! ```text
//! record → pane → family → sight → conversation → capture → freeze-begin → stamp → sight → family, watches → TERM → KILL
//!   └────────── refused, nothing changed ──────────┘        └────── taken back while the agent lives ──────┘
//! → dead → descendants → stand-in → freeze-commit
//!   └──── only forward ────┘
//! ```

mod forward;

use std::time::Duration;

use super::course::{Course, SERVER, STORE};
use super::family::{Family, megabytes};
use super::sight::{Mood, Policy, Sight, judge};
use super::told::{End, Outcome};
use super::{
    Act, Acted, Applied, Captured, Conversation, Coordinator, Deed, Heard, PaneAct, ServerSight, Sign, Task,
    Watching,
};
use crate::record::{
    self, Bind, Host, Location, Nonce, PaneId, ProcessId, Record, Refused, State, StateName, Verb,
};
use crate::world::rows::RemainOnExit;

/// How long an agent has after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How long anything has after SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(5);
/// How long descendants have after SIGTERM.
const KIN_GRACE: Duration = Duration::from_secs(2);
/// The pauses before a conversation that is not on disk yet is looked for again: 6.2 s in all.
const FLUSH: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_millis(1000),
    Duration::from_millis(1500),
    Duration::from_millis(3000),
];
/// The pauses before a stand-in that has not drawn yet is looked at again: 10 s in all.
const READY: [Duration; 9] = [
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_millis(1300),
    Duration::from_millis(2500),
    Duration::from_millis(5000),
];
/// How often a stand-in that is not there is started again.
const STANDS: usize = 6;

/// What a freeze is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The record, and who coordinates.
    pub task: Task,
    /// How much must be known of what the agent does.
    pub policy: Policy,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// One freeze.
#[derive(Debug)]
pub struct Freeze {
    order: Order,
    stage: Stage,
    course: Course,
    /// How often the stand-in was started again.
    stands: usize,
    sight: Sight,
    /// Nobody told of the agent, and it was looked at from the beginning again.
    looked_twice: bool,
    /// The provider's file of the conversation.
    transcript: String,
    /// What the agent's processes have of memory to themselves, in bytes.
    memory: Option<u64>,
}

/// Everything about the agent that is to be ended.
#[derive(Debug, Clone)]
struct Target {
    record: Box<Record>,
    pane: PaneId,
    /// The pane's own process.
    process: ProcessId,
    agent: ProcessId,
    /// The pane closes by itself when its process ends, unless told otherwise.
    closes: bool,
}

/// A freeze under its lease.
#[derive(Debug, Clone)]
struct Held {
    target: Target,
    nonce: Nonce,
}

#[derive(Debug)]
enum Stage {
    /// Waits for the record.
    Reading,
    /// Waits for the server's listing.
    Looking(Box<Record>),
    /// Waits for the family, which holds the agent.
    Knowing(Target),
    /// Waits for what the agent is doing.
    Examining(Target),
    /// Waits for the conversation, or for the next look for it.
    Locating(Target),
    /// Waits until the transcript's path is on the record.
    Noting(Target),
    /// Waits for the capture.
    Capturing(Target),
    /// Waits for `freeze-begin`.
    Beginning(Target),
    /// Waits for the record as it is under the lease.
    Holding(Held),
    /// Waits for the capture that nobody else can take away.
    Recapturing(Held),
    /// Waits for the stamp.
    Stamping(Held),
    /// Waits for the listing that says what became of a pane that took no stamp.
    Missing { held: Held, outcome: Outcome },
    /// Waits for what the agent is doing now, under the lease.
    Rechecking(Held),
    /// Waits for the tree that is about to be ended.
    Counting(Held),
    /// Waits for the agent's death.
    Ending { held: Held, kin: Vec<ProcessId>, killed: bool },
    /// Waits for the tree as it is now that the agent is dead.
    Recounting { held: Held, kin: Vec<ProcessId> },
    /// Waits for the deaths of what is left of the tree.
    Clearing { held: Held, kin: Vec<ProcessId>, killed: bool },
    /// Waits for the stand-in's start.
    Standing(Held),
    /// Waits until the stand-in has drawn, or for the next look at it.
    Appearing(Held),
    /// Waits for `freeze-commit`.
    Committing { held: Held, at: Location },
    /// Waits for the stamp to come off.
    Unstamping { held: Held, outcome: Outcome },
    /// Waits for `freeze-abort`.
    Aborting { held: Held, outcome: Outcome },
    /// Over.
    Over,
}

impl Freeze {
    /// A freeze that has done nothing yet.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self {
            order,
            stage: Stage::Reading,
            course: Course::new(Act::Read),
            stands: 0,
            sight: Sight::unknown(),
            looked_twice: false,
            transcript: String::new(),
            memory: None,
        }
    }

    fn forced(&self) -> bool {
        self.order.policy == Policy::Force
    }

    /// Goes on to a stage whose first act is this one.
    fn go(&mut self, stage: Stage, act: Act) {
        self.stage = stage;
        self.course.go(act);
    }

    fn finish(&mut self, outcome: Outcome) {
        self.stage = Stage::Over;
        self.course.finish(outcome);
    }

    fn refuse(&mut self, word: &str, detail: impl Into<String>) {
        self.finish(Outcome::new(End::Refused, word, detail));
    }

    // -- before anything is written

    fn read(&mut self, record: Option<Box<Record>>) {
        let Some(record) = record else {
            return self.refuse("no_record", format!("there is no record {}", self.order.task.record));
        };
        match &record.state {
            State::Live => {}
            State::Frozen { .. } => return self.refuse("frozen", "it is frozen already"),
            State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                return self
                    .refuse("lease_held", format!("another operation is at it ({})", record.state.name()));
            }
        }
        if record.location == Location::Gone {
            return self.refuse("pane_gone", "its record names no pane");
        }
        self.go(Stage::Looking(record), Act::Look);
    }

    fn looked(&mut self, record: Box<Record>, server: ServerSight) {
        let rows = match server {
            ServerSight::Listed(snapshot) => snapshot.panes,
            ServerSight::Over => return self.refuse("server_gone", "its server is gone"),
            ServerSight::Unnamed => return self.refuse("no_server", "its record names no server"),
            ServerSight::Unknown(why) => return self.refuse("server_unknown", why),
        };
        let Location::Pane { pane, process } = &record.location else {
            return self.refuse("pane_gone", "its record names no pane");
        };
        let (pane, process) = (*pane, process.clone());
        let Some(row) = rows.iter().find(|row| row.id.0 == pane.0) else {
            return self.refuse("pane_gone", format!("pane {pane} is in no window"));
        };
        if !row.frozen.is_empty() {
            return self.refuse("stand_in", format!("pane {pane} holds a stand-in"));
        }
        if row.dead || row.pid != Some(process.pid) {
            return self.refuse("not_an_agent", format!("pane {pane} runs another process now"));
        }
        let Some(agent) = record.agent_process() else {
            return self.refuse("not_an_agent", "nobody knows which process below the shell it is");
        };
        let closes = row.remain_on_exit != RemainOnExit::On;
        if record.codeagent_session_id.is_empty() && record.task_id.is_empty() && !self.forced() {
            let seen = "it has no conversation and no task to come back to";
            let hint = "--force ends it all the same; only its screen is kept";
            return self.finish(Outcome::new(End::Refused, "no_session", seen).hint(hint));
        }
        self.go(Stage::Knowing(Target { record, pane, process, agent, closes }), Act::Family);
    }

    fn known(&mut self, target: Target, family: Result<Family, String>) {
        let family = match family {
            Ok(family) => family,
            Err(why) => return self.refuse("processes_unknown", why),
        };
        let same = |known: &ProcessId| {
            let found = family.kin.iter().find(|kin| kin.id.pid == known.pid && agree(&kin.id, known));
            found.map(|kin| kin.id.clone())
        };
        // a record of an earlier script has no starts: from here on there is one
        let (Some(agent), Some(process)) = (same(&target.agent), same(&target.process)) else {
            return self.refuse("not_an_agent", format!("its process {} is gone", target.agent.pid));
        };
        let target = Target { agent, process, ..target };
        if matches!(target.record.ait.host, Some(Host::Shell { .. })) && !self.forced() {
            let jobs = family.other_jobs(&target.process, &target.agent);
            let others: Vec<String> =
                jobs.iter().map(|kin| format!("{} ({})", kin.name, kin.id.pid)).collect();
            if !others.is_empty() {
                let seen = format!("its shell has other jobs: {}", others.join(", "));
                let hint = "--force ends them with the shell";
                return self.finish(Outcome::new(End::Refused, "shell_jobs", seen).hint(hint));
            }
        }
        self.memory = family.memory(&target.agent);
        self.go(Stage::Examining(target), Act::Examine);
    }

    fn examined(&mut self, target: Target, sight: Sight) {
        if let Some(refusal) = judge(&sight, self.order.policy) {
            // nobody tells of one that is being ended: its record says so by now
            if sight.mood == Mood::Unknown && !std::mem::replace(&mut self.looked_twice, true) {
                return self.go(Stage::Reading, Act::Read);
            }
            return self.finish(refusal.outcome());
        }
        self.sight = sight;
        if target.record.codeagent_session_id.is_empty() {
            return self.capture(target);
        }
        self.go(Stage::Locating(target), Act::Locate);
    }

    fn located(&mut self, now: Duration, target: Target, conversation: Conversation) {
        let (word, why) = match conversation {
            Conversation::Present { path } => {
                self.transcript = path;
                return self.note(target);
            }
            Conversation::Missing(why) => ("transcript_missing", why),
            Conversation::Unknown(why) => ("transcript_unknown", why),
        };
        let late = word == "transcript_missing" && !self.order.dry_run && !self.forced();
        if late && self.course.again(now, &FLUSH) {
            self.stage = Stage::Locating(target);
        } else if self.forced() {
            self.course.warn(format!("its conversation may not come back: {why}"));
            self.capture(target);
        } else {
            let hint = "--force ends it all the same";
            self.finish(Outcome::new(End::Refused, word, why).hint(hint));
        }
    }

    /// The viewer shows the conversation itself: its file goes on the record first.
    fn note(&mut self, target: Target) {
        let known = target.record.transcript_path == self.transcript || self.transcript.is_empty();
        if known || self.order.dry_run {
            return self.capture(target);
        }
        let bind = self.binding(&target);
        self.go(Stage::Noting(target), bind);
    }

    fn binding(&self, target: &Target) -> Act {
        // an upsert would bring one that was lost meanwhile back to life
        Act::Apply(Box::new(Verb::Bind(Box::new(Bind {
            line: vec![target.agent.clone()],
            agent: target.agent.clone(),
            generation: target.record.ait.generation,
            session_id: target.record.codeagent_session_id.clone(),
            transcript: self.transcript.clone(),
            instead_of: Some(target.record.codeagent_session_id.clone()),
        }))))
    }

    /// The path is a convenience: a refusal stops nothing, `freeze-begin` has its own guards. A busy store is asked again.
    fn noted(&mut self, now: Duration, target: Target, applied: Applied) {
        match applied {
            Applied::Failed(_) if self.course.again(now, &STORE) => {
                self.stage = Stage::Noting(target);
                return;
            }
            Applied::Failed(why) => {
                self.course.warn(format!("the file of its conversation is not noted: {why}"))
            }
            Applied::Done(_) | Applied::Refused(_) => {}
        }
        self.capture(target);
    }

    fn capture(&mut self, target: Target) {
        if self.order.dry_run {
            let seen = self.with_memory(target.record.window.clone());
            return self.finish(Outcome::new(End::Planned, "would_freeze", seen));
        }
        self.go(Stage::Capturing(target), Act::Capture);
    }

    /// `what`, and what memory the freeze gives back.
    fn with_memory(&self, what: String) -> String {
        match self.memory {
            Some(bytes) => format!("{what}, {} of memory", megabytes(bytes)),
            None => what,
        }
    }

    fn captured(&mut self, target: Target, captured: Result<Captured, String>) {
        let captured = match captured {
            Ok(captured) => captured,
            Err(why) => return self.finish(Outcome::new(End::Failed, "capture_failed", why)),
        };
        if self.course.stop {
            return self.finish(stopped());
        }
        let kept = if captured.kept_earlier { " (an earlier, better one is kept)" } else { "" };
        self.course.tell("captured", format!("{} lines{kept}", captured.capture.lines));
        let begin = Verb::FreezeBegin {
            owner: self.order.task.me.clone(),
            capture: captured.capture,
            phase: self.sight.phase().to_owned(),
            memory: self.memory,
        };
        // a try that failed counts on: a disk that has room for the capture may have none for the store
        let tries = self.course.tries;
        self.go(Stage::Beginning(target), Act::Apply(Box::new(begin)));
        self.course.tries = tries;
    }

    fn begun(&mut self, now: Duration, target: Target, applied: Applied) {
        match applied {
            Applied::Done(record::Outcome::Freezing(nonce)) => {
                self.go(Stage::Holding(Held { target, nonce }), Act::Read);
            }
            Applied::Done(other) => {
                self.finish(Outcome::new(End::Failed, "store_failed", format!("{other:?}")));
            }
            Applied::Refused(refused) => self.finish(refusal(&refused)),
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Capturing(target);
                } else {
                    self.finish(Outcome::new(End::Failed, "store_failed", why));
                }
            }
        }
    }

    // -- the agent lives: it can be taken back

    /// What was looked at before the lease was may be a life of the agent that is over: one that came back elsewhere meanwhile
    /// is left alone.
    fn held(&mut self, held: Held, record: Option<Box<Record>>) {
        let same = record.is_some_and(|record| {
            let target = &held.target;
            let agent = record.agent_process().is_some_and(|agent| is_one(&agent, &target.agent));
            let place = record.location.process().is_some_and(|own| is_one(own, &target.process));
            agent && place && record.location.pane_id() == Some(target.pane)
        });
        if same {
            // another freeze that was taken back meanwhile took the captures with it
            return self.go(Stage::Recapturing(held), Act::Capture);
        }
        let outcome = failed("changed", "its agent is another one by now");
        let abort = Verb::FreezeAbort { nonce: held.nonce };
        self.go(Stage::Aborting { held, outcome }, Act::Apply(Box::new(abort)));
    }

    fn stamp(&mut self, held: Held) {
        let (pane, pid) = (held.target.pane, held.target.process.pid);
        let stamp = PaneAct { pane, pid: Some(pid), deed: Deed::StampFrozen };
        self.go(Stage::Stamping(held), Act::Pane(stamp));
    }

    fn stamped(&mut self, held: Held, acted: Acted) {
        if self.course.stop {
            return self.take_back(held, stopped());
        }
        match acted {
            Acted::Done => {
                self.course.tell("stamped", held.target.pane.to_string());
                if self.forced() {
                    self.go(Stage::Counting(held), Act::Family);
                } else {
                    self.go(Stage::Rechecking(held), Act::Examine);
                }
            }
            Acted::NotMet => {
                let outcome = failed("pane_changed", "its pane runs something else now");
                self.go(Stage::Missing { held, outcome }, Act::Look);
            }
            Acted::Refused(why) => {
                let outcome = failed("pane_gone", why);
                self.go(Stage::Missing { held, outcome }, Act::Look);
            }
            Acted::NoServer => {
                let outcome = failed("server_gone", "its server is gone");
                self.go(Stage::Missing { held, outcome }, Act::Look);
            }
            Acted::Unknown(why) => self.take_back(held, failed("server_unknown", why)),
        }
    }

    /// A pane that went away under the lease leaves the way forward: what may be left of the agent is ended, and the record is
    /// frozen without a pane. A pane that is there was given to something else.
    fn missed(&mut self, held: Held, outcome: Outcome, server: ServerSight) {
        let gone = match server {
            ServerSight::Over => true,
            ServerSight::Listed(snapshot) => !snapshot.panes.iter().any(|row| row.id.0 == held.target.pane.0),
            ServerSight::Unnamed | ServerSight::Unknown(_) => false,
        };
        if gone {
            self.go(Stage::Counting(held), Act::Family);
        } else {
            self.take_back(held, outcome);
        }
    }

    /// It may have begun a turn since the first look: then the race is lost, and it is left alone.
    fn rechecked(&mut self, held: Held, sight: &Sight) {
        // one that died meanwhile shows nothing any more
        let accepted = match self.order.policy {
            Policy::Named | Policy::Accepted => Policy::Accepted,
            policy => policy,
        };
        match judge(sight, accepted) {
            Some(refusal) if !matches!(sight.mood, Mood::Unknown) => {
                self.take_back(held, refusal.outcome());
            }
            Some(_) | None => self.go(Stage::Counting(held), Act::Family),
        }
    }

    fn counted(&mut self, now: Duration, held: Held, family: Result<Family, String>) {
        let family = match family {
            Ok(family) => family,
            Err(why) => return self.take_back(held, failed("processes_unknown", why)),
        };
        if self.course.stop {
            return self.take_back(held, stopped());
        }
        let agent = held.target.agent.clone();
        let kin: Vec<ProcessId> =
            family.tree(&agent).iter().map(|kin| kin.id.clone()).filter(|id| *id != agent).collect();
        let mut first = family.group(&agent);
        if !first.contains(&agent) {
            // it died meanwhile, or its row was not read: its own handle says which
            first.push(agent.clone());
        }
        self.course.tell("ending", format!("process {} and {} below it", agent.pid, kin.len()));
        self.course.act(Act::Watch(agent));
        for one in &kin {
            self.course.act(Act::Watch(one.clone()));
        }
        self.go(Stage::Ending { held, kin, killed: false }, Act::Signal { to: first, signal: Sign::Term });
        self.course.due = Some(now + TERM_GRACE);
    }

    fn unended(&mut self, now: Duration, held: Held, kin: Vec<ProcessId>, killed: bool) {
        if killed {
            let seen = format!("process {} lives on after SIGKILL", held.target.agent.pid);
            return self.take_back(held, failed("cannot_end", seen));
        }
        let agent = held.target.agent.clone();
        self.course.tell("killing", format!("process {} did not end on SIGTERM", agent.pid));
        self.go(
            Stage::Ending { held, kin, killed: true },
            Act::Signal { to: vec![agent], signal: Sign::Kill },
        );
        self.course.due = Some(now + KILL_GRACE);
    }

    /// Leaves the agent running: the stamp comes off, then the record is live again.
    fn take_back(&mut self, held: Held, outcome: Outcome) {
        let (pane, release) = (held.target.pane, held.target.closes);
        let act = PaneAct { pane, pid: None, deed: Deed::UnstampFrozen { release } };
        self.go(Stage::Unstamping { held, outcome }, Act::Pane(act));
    }

    fn unstamped(&mut self, held: Held, mut outcome: Outcome, acted: Acted) {
        match acted {
            // not met: it was never stamped
            Acted::Done | Acted::NotMet | Acted::Refused(_) | Acted::NoServer => {}
            Acted::Unknown(why) => outcome.warnings.push(format!("its pane may still be stamped: {why}")),
        }
        let abort = Verb::FreezeAbort { nonce: held.nonce };
        self.go(Stage::Aborting { held, outcome }, Act::Apply(Box::new(abort)));
    }

    fn aborted(&mut self, now: Duration, held: Held, outcome: Outcome, applied: Applied) {
        match applied {
            Applied::Done(_) => self.finish(outcome),
            Applied::Refused(refused) => {
                let seen = format!("{}; its record could not be put back: {refused}", outcome.detail);
                self.finish(Outcome::new(End::Left, &outcome.word, seen));
            }
            Applied::Failed(why) => {
                if self.course.again(now, &STORE) {
                    self.stage = Stage::Aborting { held, outcome };
                } else {
                    let seen = format!("{}; its record could not be put back: {why}", outcome.detail);
                    self.finish(Outcome::new(End::Left, &outcome.word, seen));
                }
            }
        }
    }

    /// A watched process has died.
    fn died(&mut self, process: &ProcessId) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Ending { held, mut kin, killed } => {
                kin.retain(|one| one != process);
                if held.target.agent == *process {
                    self.dead(held, kin);
                } else {
                    self.stage = Stage::Ending { held, kin, killed };
                }
            }
            Stage::Clearing { held, mut kin, killed } => {
                kin.retain(|one| one != process);
                if kin.is_empty() {
                    self.stand_in(held);
                } else {
                    self.stage = Stage::Clearing { held, kin, killed };
                }
            }
            Stage::Recounting { held, mut kin } => {
                kin.retain(|one| one != process);
                self.stage = Stage::Recounting { held, kin };
            }
            other => self.stage = other,
        }
    }

    /// The deadline has come: what was waited for is tried again or given up.
    fn overdue(&mut self, now: Duration) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Locating(target) => {
                self.stage = Stage::Locating(target);
                self.course.act(Act::Locate);
            }
            Stage::Noting(target) => {
                let bind = self.binding(&target);
                self.stage = Stage::Noting(target);
                self.course.act(bind);
            }
            // a busy store: the capture is taken anew with the next try
            Stage::Capturing(target) => {
                self.stage = Stage::Capturing(target);
                self.course.act(Act::Capture);
            }
            Stage::Ending { held, kin, killed } => self.unended(now, held, kin, killed),
            Stage::Clearing { held, kin, killed } => self.uncleared(now, held, kin, killed),
            Stage::Standing(held) => {
                self.stands += 1;
                let pid = Some(held.target.process.pid);
                let act = PaneAct { pane: held.target.pane, pid, deed: Deed::RespawnStandin };
                self.stage = Stage::Standing(held);
                self.course.act(Act::Pane(act));
            }
            Stage::Appearing(held) => {
                self.stage = Stage::Appearing(held);
                self.course.act(Act::Look);
            }
            Stage::Committing { held, at } => {
                self.course
                    .act(Act::Apply(Box::new(Verb::FreezeCommit { nonce: held.nonce, at: at.clone() })));
                self.stage = Stage::Committing { held, at };
            }
            Stage::Aborting { held, outcome } => {
                self.course.act(Act::Apply(Box::new(Verb::FreezeAbort { nonce: held.nonce })));
                self.stage = Stage::Aborting { held, outcome };
            }
            other => self.stage = other,
        }
    }

    /// Asked to stop: at once before anything is written, by taking it back while the agent was not told to end; after
    /// that it goes on to its end, which is near.
    fn stopped(&mut self) {
        self.course.stop = true;
        if matches!(self.stage, Stage::Locating(_) | Stage::Noting(_)) && self.course.due.is_some() {
            self.finish(stopped());
        }
    }
}

impl Coordinator for Freeze {
    fn handle(&mut self, now: Duration, heard: Heard) {
        match heard {
            Heard::Stop => return self.stopped(),
            Heard::Died(process) => return self.died(&process),
            Heard::Time => {
                if self.course.is_due(now) {
                    self.overdue(now);
                }
                return;
            }
            Heard::Watching { process, watch } => {
                match watch {
                    Watching::Alive => {}
                    Watching::Gone => self.died(&process),
                    Watching::Blind(why) => {
                        self.course.warn(format!("process {} cannot be watched: {why}", process.pid));
                    }
                }
                return;
            }
            Heard::Signalled(failed) => {
                for (process, why) in failed {
                    self.course.warn(format!("process {} cannot be signalled: {why}", process.pid));
                }
                return;
            }
            Heard::NoStore(why) => {
                return match std::mem::replace(&mut self.stage, Stage::Over) {
                    Stage::Reading => self.finish(Outcome::new(End::Failed, "store_failed", why)),
                    Stage::Holding(held) => self.held(held, None),
                    other => self.stage = other,
                };
            }
            Heard::Record(_)
            | Heard::Applied(_)
            | Heard::Server(_)
            | Heard::Family(_)
            | Heard::Sight(_)
            | Heard::Conversation(_)
            | Heard::Captured(_)
            | Heard::Acted(_)
            | Heard::Ready(_)
            | Heard::Launched(_)
            | Heard::Touched
            | Heard::Proof(_) => {}
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        match (stage, heard) {
            (Stage::Reading, Heard::Record(record)) => self.read(record),
            (Stage::Looking(record), Heard::Server(server)) => self.looked(record, server),
            (Stage::Knowing(target), Heard::Family(family)) => self.known(target, family),
            (Stage::Examining(target), Heard::Sight(sight)) => self.examined(target, sight),
            (Stage::Locating(target), Heard::Conversation(found)) => self.located(now, target, found),
            (Stage::Noting(target), Heard::Applied(applied)) => self.noted(now, target, applied),
            (Stage::Capturing(target), Heard::Captured(captured)) => self.captured(target, captured),
            (Stage::Beginning(target), Heard::Applied(applied)) => self.begun(now, target, applied),
            (Stage::Holding(held), Heard::Record(record)) => self.held(held, record),
            // where it fails there is the one before
            (Stage::Recapturing(held), Heard::Captured(_)) => self.stamp(held),
            (Stage::Stamping(held), Heard::Acted(acted)) => self.stamped(held, acted),
            (Stage::Missing { held, outcome }, Heard::Server(server)) => self.missed(held, outcome, server),
            (Stage::Rechecking(held), Heard::Sight(sight)) => self.rechecked(held, &sight),
            (Stage::Counting(held), Heard::Family(family)) => self.counted(now, held, family),
            (Stage::Recounting { held, kin }, Heard::Family(family)) => {
                self.recounted(now, held, kin, family)
            }
            (Stage::Standing(held), Heard::Acted(acted)) => self.stood(now, held, acted),
            (Stage::Appearing(held), Heard::Server(server)) => self.appeared(now, held, server),
            (Stage::Committing { held, at }, Heard::Applied(applied)) => {
                self.committed(now, held, at, applied)
            }
            (Stage::Unstamping { held, outcome }, Heard::Acted(acted)) => {
                self.unstamped(held, outcome, acted)
            }
            (Stage::Aborting { held, outcome }, Heard::Applied(applied)) => {
                self.aborted(now, held, outcome, applied);
            }
            // an answer nobody waits for any more
            (stage, _) => self.stage = stage,
        }
    }

    fn next_act(&mut self) -> Option<Act> {
        self.course.next()
    }

    fn deadline(&self) -> Option<Duration> {
        self.course.due
    }
}

/// The same process, as far as both say.
fn is_one(one: &ProcessId, other: &ProcessId) -> bool {
    one.pid == other.pid && agree(one, other)
}

/// The same start, as far as both say.
fn agree(one: &ProcessId, other: &ProcessId) -> bool {
    one.started.is_empty() || other.started.is_empty() || one.started == other.started
}

fn failed(word: &str, seen: impl Into<String>) -> Outcome {
    Outcome::new(End::Failed, word, seen)
}

fn stopped() -> Outcome {
    failed("stopped", "it was told to stop")
}

fn refusal(refused: &Refused) -> Outcome {
    let word = match refused {
        // between our look and our word another operation began
        Refused::LeaseHeld(_)
        | Refused::State {
            state: StateName::Freezing | StateName::Restoring | StateName::Aborting, ..
        } => "lease_held",
        Refused::NoSuchRecord(_) => "no_record",
        Refused::State { .. } | Refused::Upsert { .. } | Refused::NoEvidence { .. } | Refused::Nonce(_) => {
            "refused"
        }
    };
    Outcome::new(End::Refused, word, refused.to_string())
}

#[cfg(test)]
mod tests;
