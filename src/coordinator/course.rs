//! What the machines of one operation have in common besides their stages: the acts that are to be performed next, the pause
//! before something is tried again, and what is said besides the outcome.

use std::collections::VecDeque;
use std::time::Duration;

use super::Act;
use super::told::{Outcome, Step};

/// The pauses before a server that did not say is asked again.
pub(super) const SERVER: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// The pauses before a verb that a busy store did not take is tried again.
pub(super) const STORE: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)];

/// How far one operation is within its stage.
#[derive(Debug)]
pub(super) struct Course {
    acts: VecDeque<Act>,
    /// When the machine wants to be told the time.
    pub(super) due: Option<Duration>,
    /// Pauses that were made in this stage.
    pub(super) tries: usize,
    /// It was asked to stop.
    pub(super) stop: bool,
    warnings: Vec<String>,
}

impl Course {
    /// One that begins with this act.
    pub(super) fn new(first: Act) -> Self {
        Self { acts: VecDeque::from([first]), due: None, tries: 0, stop: false, warnings: Vec::new() }
    }

    /// One more act, behind those that wait.
    pub(super) fn act(&mut self, act: Act) {
        self.acts.push_back(act);
    }

    /// Says how far it is.
    pub(super) fn tell(&mut self, step: &str, detail: impl Into<String>) {
        self.act(Act::Tell(Step::new(step, detail)));
    }

    /// Says something with the outcome.
    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// The first act of another stage.
    pub(super) fn go(&mut self, act: Act) {
        self.tries = 0;
        self.due = None;
        self.act(act);
    }

    /// Waits for the next pause of `pauses`; whether there was one left.
    pub(super) fn again(&mut self, now: Duration, pauses: &[Duration]) -> bool {
        let Some(pause) = pauses.get(self.tries) else { return false };
        self.tries += 1;
        self.due = Some(now + *pause);
        true
    }

    /// Whether what is waited for is due; then it is waited for no more.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// The last act.
    pub(super) fn finish(&mut self, outcome: Outcome) {
        self.due = None;
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(outcome.warnings.iter().cloned());
        self.act(Act::Finish(outcome.warn(warnings)));
    }

    /// What to do next.
    pub(super) fn next(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }
}
