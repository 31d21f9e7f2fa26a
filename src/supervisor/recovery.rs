//! Automatic recovery: which lost agents are brought back now, which are only offered, and why.
//!
//! The decision is [`choose`], from the record, the policy and what was tried before. What is to come back is handed out as one
//! [`Action::Recover`] at a time; a process of its own does it, under leases. Should that process or this supervisor die, the
//! same records are chosen again once their leases are free; what was tried is read from the book that process keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Action, Now, Supervisor, Writing};
use crate::record::{Desired, LossCause, Policy, Record, RecordId, Stamp, State};

/// An agent that is lost again this soon after it was brought back is not brought back again unasked, in seconds.
pub const AGAIN: u64 = 60;
/// Attempts that were cut short before the agent was launched, at the most.
pub const TRIES: u32 = 3;
/// Records brought back by one process.
const AT_ONCE: usize = 512;
/// The pause before a recovery that was cut short, doubled each time up to the last.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What the user wants done about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policies {
    /// Agents that went with their server or their boot.
    pub servers: Policy,
    /// Agents that crashed by themselves.
    pub agents: Policy,
}

impl Default for Policies {
    fn default() -> Self {
        Self { servers: Policy::Auto, agents: Policy::Offer }
    }
}

/// What was tried of one loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The loss: when it was written.
    pub lost_at: Stamp,
    /// How often it was begun.
    pub tries: u32,
    /// When it was last begun or ended.
    pub at: Stamp,
    /// How far it came.
    pub end: AttemptEnd,
    /// The reason, one word, and what was seen.
    #[serde(default)]
    pub why: String,
}

impl Attempt {
    /// The first of a loss.
    #[must_use]
    pub fn first(lost_at: Stamp) -> Self {
        Self { lost_at, tries: 1, at: lost_at, end: AttemptEnd::Begun, why: String::new() }
    }

    /// The next one. What failed before has failed until this one ends: one that is cut short is not repeated unasked.
    #[must_use]
    pub fn again(self) -> Self {
        let tries = self.tries.saturating_add(1);
        match self.end {
            AttemptEnd::Failed => Self { tries, ..self },
            AttemptEnd::Begun | AttemptEnd::Recovered => Self { tries, ..Self::first(self.lost_at) },
        }
    }
}

/// How far an attempt came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It was begun; nothing is known of its end.
    Begun,
    /// The agent is back.
    Recovered,
    /// It was refused or did not work: it is not repeated unasked.
    Failed,
}

/// What was tried, by record.
pub type Book = BTreeMap<RecordId, Attempt>;

/// What is done about a lost agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// It is brought back now.
    Recover,
    /// It is brought back on demand.
    Offer(Why),
    /// It is kept, and nothing is said.
    Keep,
}

/// Why an agent is only offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The policy says so.
    Policy,
    /// Its server was stopped, which somebody may have meant.
    Stopped,
    /// It crashed by itself.
    Crashed,
    /// It was killed as the kernel kills for want of memory.
    Memory,
    /// The user wants it frozen or ended.
    Desired,
    /// It was lost again this many seconds after it was brought back.
    Again(u64),
    /// Bringing it back did not work.
    Failed(String),
    /// Bringing it back was cut short too often.
    CutShort(u32),
}

impl Why {
    /// The reason for a person.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Policy => "the settings say to offer it".into(),
            Self::Stopped => "its server was stopped, which may have been meant".into(),
            Self::Crashed => "it crashed by itself".into(),
            Self::Memory => "it was killed, maybe for want of memory".into(),
            Self::Desired => "it was to be frozen or ended".into(),
            Self::Again(seconds) => format!("it was lost again {seconds} s after it was brought back"),
            Self::Failed(why) => format!("bringing it back did not work: {why}"),
            Self::CutShort(tries) => format!("bringing it back was cut short {tries} times"),
        }
    }
}

/// What is done about this record; `None` when it is not lost, or on its way.
#[must_use]
pub fn choose(record: &Record, policies: Policies, before: Option<&Attempt>) -> Option<Choice> {
    let State::Frozen { lost: Some(lost) } = &record.state else { return None };
    let crashed = match lost.cause {
        LossCause::AgentCrashed => true,
        LossCause::ServerStopped | LossCause::ServerCrashed | LossCause::ServerGone | LossCause::Reboot => {
            false
        }
    };
    let policy = record.ait.recover.unwrap_or(if crashed { policies.agents } else { policies.servers });
    if policy == Policy::Off {
        return Some(Choice::Keep);
    }
    let tried = before.filter(|attempt| attempt.lost_at == lost.at);
    let offer = match (lost.cause, record.ait.desired) {
        (_, Some(Desired::Frozen | Desired::Stopped)) => Some(Why::Desired),
        (LossCause::ServerStopped, _) => Some(Why::Stopped),
        // SIGKILL is what the kernel sends for want of memory
        (LossCause::AgentCrashed, _) if lost.signal == Some(9) => Some(Why::Memory),
        (LossCause::AgentCrashed, _) if policy == Policy::Offer => Some(Why::Crashed),
        _ if policy == Policy::Offer => Some(Why::Policy),
        _ => None,
    };
    let again = lost.lived.filter(|lived| *lived < AGAIN).map(Why::Again);
    let over = tried.and_then(|attempt| match attempt.end {
        AttemptEnd::Failed => Some(Why::Failed(attempt.why.clone())),
        AttemptEnd::Begun | AttemptEnd::Recovered if attempt.tries >= TRIES => {
            Some(Why::CutShort(attempt.tries))
        }
        AttemptEnd::Begun | AttemptEnd::Recovered => None,
    });
    Some(offer.or(again).or(over).map_or(Choice::Recover, Choice::Offer))
}

/// How recovery stands.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// What was tried before; nothing is done before that is read.
    book: Option<Book>,
    /// Those being brought back by a process now.
    under_way: Vec<RecordId>,
    /// How often in a row a process ended and left the same to do.
    rounds: u32,
    /// Nothing before then.
    not_before: Option<Duration>,
}

impl Supervisor {
    /// The book was read, maybe at the end of the process that brought agents back.
    pub(super) fn book_read(&mut self, now: Now, book: Book, ended: bool) {
        self.recovery.book = Some(book);
        self.news = true;
        if ended {
            self.greet_all();
            self.recovery.under_way.clear();
            let pause = PAUSE.0.saturating_mul(1 << self.recovery.rounds.min(10)).min(PAUSE.1);
            self.recovery.rounds = self.recovery.rounds.saturating_add(1);
            self.recovery.not_before = Some(now.mono + pause);
        }
    }

    /// Whether a process brings agents back now.
    pub(super) fn is_recovering(&self) -> bool {
        !self.recovery.under_way.is_empty()
    }

    /// What was tried of each loss, once that is read.
    pub(super) fn book(&self) -> Option<&Book> {
        self.recovery.book.as_ref()
    }

    /// When recovery may go on, if there is something to do.
    pub(super) fn recovery_due(&self) -> Option<Duration> {
        self.recovery.not_before.filter(|_| self.recovery.under_way.is_empty())
    }

    /// Brings back what is to come back by itself, unless that is being done.
    pub(super) fn recover(&mut self, now: Now) {
        let Some(book) = &self.recovery.book else { return };
        // what is on its way into the store may be part of a reboot
        if !self.recovery.under_way.is_empty() || !matches!(self.writing, Writing::Idle) {
            return;
        }
        let (free, held): (Vec<&Record>, Vec<&Record>) = self
            .records()
            .filter(|record| {
                choose(record, self.start.policies, book.get(&record.id)) == Some(Choice::Recover)
            })
            .partition(|record| self.is_free(now, record));
        let wanted: Vec<RecordId> = free.into_iter().map(|record| record.id).take(AT_ONCE).collect();
        // a living owner's end will be told; a dead one's lease runs out by the clock
        if held.iter().any(|record| record.lease.as_ref().is_some_and(|lease| self.is_dead(&lease.owner))) {
            self.look_again(now);
        }
        if wanted.is_empty() {
            self.recovery.rounds = 0;
            self.recovery.not_before = None;
            return;
        }
        if self.recovery.not_before.is_some_and(|not_before| now.mono < not_before) {
            return;
        }
        self.recovery.not_before = None;
        self.recovery.under_way.clone_from(&wanted);
        self.actions.push_back(Action::Recover { records: wanted });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::sample;
    use crate::record::{Lost, StateName};

    fn lost(cause: LossCause) -> Record {
        let mut record = sample(StateName::Frozen);
        record.state = State::Frozen {
            lost: Some(Box::new(Lost {
                at: Stamp::from_unix(100),
                cause,
                exit_status: None,
                signal: None,
                evidence: String::new(),
                agent: None,
                lived: None,
                unknown: Default::default(),
            })),
        };
        record.ait.desired = None;
        record
    }

    fn change(record: &mut Record, change: impl FnOnce(&mut Lost)) {
        let State::Frozen { lost: Some(lost) } = &mut record.state else { panic!("it is lost") };
        change(lost);
    }

    fn chosen(record: &Record) -> Choice {
        choose(record, Policies::default(), None).unwrap()
    }

    const SERVERS: [LossCause; 3] = [LossCause::ServerCrashed, LossCause::ServerGone, LossCause::Reboot];

    #[test]
    fn the_cause_decides_what_happens_unasked() {
        for cause in SERVERS {
            assert_eq!(chosen(&lost(cause)), Choice::Recover, "{}", cause.word());
        }
        assert_eq!(chosen(&lost(LossCause::ServerStopped)), Choice::Offer(Why::Stopped));
        let mut crashed = lost(LossCause::AgentCrashed);
        assert_eq!(chosen(&crashed), Choice::Offer(Why::Crashed));
        let eager = Policies { agents: Policy::Auto, ..Policies::default() };
        assert_eq!(choose(&crashed, eager, None), Some(Choice::Recover));
        change(&mut crashed, |lost| lost.signal = Some(9));
        assert_eq!(choose(&crashed, eager, None), Some(Choice::Offer(Why::Memory)));
    }

    #[test]
    fn only_lost_agents_come_back() {
        for state in StateName::ALL {
            assert_eq!(choose(&sample(state), Policies::default(), None), None, "{state}");
        }
    }

    #[test]
    fn the_policy_is_the_users_and_a_records_own_is_stronger() {
        for cause in SERVERS {
            let mut record = lost(cause);
            let offer = Policies { servers: Policy::Offer, ..Policies::default() };
            let off = Policies { servers: Policy::Off, ..Policies::default() };
            assert_eq!(choose(&record, offer, None), Some(Choice::Offer(Why::Policy)));
            assert_eq!(choose(&record, off, None), Some(Choice::Keep));
            record.ait.recover = Some(Policy::Auto);
            assert_eq!(choose(&record, off, None), Some(Choice::Recover));
            record.ait.recover = Some(Policy::Off);
            assert_eq!(chosen(&record), Choice::Keep);
        }
        for desired in [Desired::Frozen, Desired::Stopped] {
            let mut record = lost(LossCause::Reboot);
            record.ait.desired = Some(desired);
            assert_eq!(chosen(&record), Choice::Offer(Why::Desired));
        }
    }

    #[test]
    fn what_does_not_stay_is_not_brought_back_for_ever() {
        let mut record = lost(LossCause::ServerCrashed);
        change(&mut record, |lost| lost.lived = Some(59));
        assert_eq!(chosen(&record), Choice::Offer(Why::Again(59)));
        change(&mut record, |lost| lost.lived = Some(60));
        assert_eq!(chosen(&record), Choice::Recover);
        let tried = |tries, end| {
            let attempt = Attempt {
                lost_at: Stamp::from_unix(100),
                tries,
                at: Stamp::from_unix(101),
                end,
                why: "no_binary".into(),
            };
            choose(&record, Policies::default(), Some(&attempt)).unwrap()
        };
        assert_eq!(tried(1, AttemptEnd::Failed), Choice::Offer(Why::Failed("no_binary".into())));
        assert_eq!(tried(2, AttemptEnd::Begun), Choice::Recover, "cut short is not failed");
        assert_eq!(tried(3, AttemptEnd::Begun), Choice::Offer(Why::CutShort(3)));
        let failed = Attempt { why: "no_binary".into(), ..Attempt::first(Stamp::from_unix(100)) };
        let again = Attempt { end: AttemptEnd::Failed, ..failed }.again();
        assert_eq!((again.tries, again.end), (2, AttemptEnd::Failed), "by hand, and not over yet");
        assert_eq!(Attempt { end: AttemptEnd::Recovered, ..again }.again().end, AttemptEnd::Begun);
        let of_an_earlier_loss = Attempt {
            lost_at: Stamp::from_unix(99),
            tries: 9,
            at: Stamp::from_unix(99),
            end: AttemptEnd::Failed,
            why: String::new(),
        };
        assert_eq!(choose(&record, Policies::default(), Some(&of_an_earlier_loss)), Some(Choice::Recover));
    }
}
