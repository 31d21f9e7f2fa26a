//! What the end of an agent's process means, once its server has answered a question asked after that end.

use std::time::Duration;

use super::Tag;
use crate::record::ProcessId;
use crate::world::rows::PaneRow;

/// A live record whose agent's process has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dying {
    /// The process: a record that moved on to another one is not dying.
    pub(super) agent: ProcessId,
    /// When that was heard.
    pub(super) at: Duration,
    /// Listings asked until then: only a later one says what it means.
    pub(super) after: u64,
    /// The question about its pane alone that was put last; its answer says it too.
    pub(super) asked: Option<Tag>,
    /// That question was answered.
    pub(super) told: bool,
    /// How often tmux was made to notice.
    pub(super) nudges: u32,
    /// When to make it notice again.
    pub(super) next: Option<Duration>,
}

/// Times tmux is made to notice a death before the end is settled without a status, a little later each time.
const NUDGES: u32 = 10;
/// How many of them come at once: tmux and we hear of a death in the same moment, and it may need another one.
const AT_ONCE: u32 = 4;

impl Dying {
    /// A death just heard of.
    pub(super) fn new(agent: ProcessId, at: Duration, after: u64) -> Self {
        Self { agent, at, after, asked: None, told: false, nudges: 0, next: None }
    }

    /// Whether the server has answered a question asked after the death, or after the last nudge; `answered` is the last
    /// listing that was.
    pub(super) fn is_answered(&self, answered: u64) -> bool {
        self.told || answered > self.after
    }

    /// The pause before the next nudge.
    pub(super) fn pause(&self) -> Duration {
        match self.nudges.checked_sub(AT_ONCE) {
            None => Duration::ZERO,
            Some(n) => Duration::from_millis(2 << (n * 3 / 2)),
        }
    }

    /// Whether the next nudge is the one by a child.
    pub(super) fn is_stubborn(&self) -> bool {
        self.nudges >= AT_ONCE - 1
    }
}

/// What is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// tmux has not noticed yet, or has no status yet: make it, and ask again.
    Nudge,
    /// It ended: to the archive.
    Ended {
        /// One word.
        reason: &'static str,
        /// In words.
        evidence: String,
        /// Whether a shutdown that follows soon may still claim it (lifecycle, "A shutdown is not a stop").
        provisional: bool,
        /// Whether the pane lives on without the agent, so that its stamp comes off.
        pane_lives: bool,
    },
    /// It was taken: recoverable.
    Lost {
        /// In words.
        evidence: String,
        /// Exit status, where there is one.
        exit_status: Option<i32>,
        /// Signal, where known.
        signal: Option<i32>,
    },
}

/// Judges a dead agent from the row of its pane in an answer to a question asked after its death.
///
/// `pane_pid` is the pane process the record names, `below_shell` whether the agent was a child of the user's shell.
pub(super) fn judge(row: Option<&PaneRow>, pane_pid: i32, below_shell: bool, dying: &Dying) -> Verdict {
    let Some(row) = row else {
        return Verdict::Ended {
            reason: "dead_window",
            evidence: "its pane is in no window of its server".into(),
            provisional: true,
            pane_lives: false,
        };
    };
    // tmux 3.8 gives no pid for a dead pane
    if row.pid.is_some_and(|pid| pid != pane_pid) {
        return Verdict::Ended {
            reason: "respawned",
            evidence: format!("pane {} runs another process now", row.id),
            provisional: false,
            pane_lives: !row.dead,
        };
    }
    if below_shell {
        // the status is the shell's own and says nothing of the agent
        let fate = if row.dead { "with its shell" } else { "below its shell" };
        return Verdict::Ended {
            reason: if row.dead { "dead_pane" } else { "exited" },
            evidence: format!("the agent ended {fate}, status unknown"),
            provisional: true,
            pane_lives: !row.dead,
        };
    }
    if row.dead {
        if let Some(signal) = row.signal {
            return by_signal(signal);
        }
        if let Some(status) = row.status {
            return by_status(status);
        }
    }
    if dying.nudges < NUDGES {
        return Verdict::Nudge;
    }
    let what = if row.dead { "tmux has no status of it" } else { "something else holds its pane open" };
    Verdict::Lost { evidence: format!("its process has ended, and {what}"), exit_status: None, signal: None }
}

/// HUP, INT and TERM are how somebody ends an agent; every other signal is how one is taken.
fn by_signal(signal: i32) -> Verdict {
    const HUP: i32 = 1;
    const INT: i32 = 2;
    const TERM: i32 = 15;
    match signal {
        HUP | INT | TERM => Verdict::Ended {
            reason: "dead_pane",
            evidence: format!("ended by signal {signal}"),
            provisional: true,
            pane_lives: false,
        },
        other => Verdict::Lost {
            evidence: format!("killed by signal {other}"),
            exit_status: None,
            signal: Some(other),
        },
    }
}

/// A shutdown shows as success or as the shell's word for HUP, INT and TERM.
fn by_status(status: i32) -> Verdict {
    Verdict::Ended {
        reason: if status == 0 { "exited" } else { "failed" },
        evidence: format!("exit status {status}"),
        provisional: matches!(status, 0 | 129 | 130 | 143),
        pane_lives: false,
    }
}

#[cfg(test)]
mod tests {
    use tmux_control::{PaneId, SessionId, WindowId};

    use super::*;
    use crate::world::rows::RemainOnExit;

    const PID: i32 = 4242;

    fn dying(nudges: u32) -> Dying {
        Dying { nudges, ..Dying::new(ProcessId::bare(PID), Duration::ZERO, 0) }
    }

    fn row(dead: bool, status: Option<i32>, signal: Option<i32>) -> PaneRow {
        PaneRow {
            session: SessionId(0),
            window: WindowId(0),
            id: PaneId(0),
            pid: Some(PID),
            dead,
            status,
            signal,
            active: true,
            title: "".into(),
            stamp: "".into(),
            frozen: "".into(),
            ready: false,
            agent_session: "".into(),
            attempt: "".into(),
            remain_on_exit: RemainOnExit::On,
        }
    }

    #[test]
    fn a_death_that_tmux_has_not_noticed_is_made_noticed_and_never_guessed() {
        for row in [row(false, None, None), row(true, None, None)] {
            assert_eq!(judge(Some(&row), PID, false, &dying(0)), Verdict::Nudge);
            let last = judge(Some(&row), PID, false, &dying(NUDGES));
            assert!(matches!(last, Verdict::Lost { signal: None, exit_status: None, .. }), "{last:?}");
        }
    }

    #[test]
    fn signals_tell_an_end_from_a_loss() {
        for signal in 1..=31 {
            let verdict = judge(Some(&row(true, None, Some(signal))), PID, false, &dying(0));
            match signal {
                1 | 2 | 15 => {
                    assert!(matches!(verdict, Verdict::Ended { provisional: true, .. }), "{signal}")
                }
                _ => assert!(
                    matches!(verdict, Verdict::Lost { signal: Some(s), .. } if s == signal),
                    "{signal}"
                ),
            }
        }
    }

    #[test]
    fn every_status_is_an_end_and_only_a_shutdowns_are_provisional() {
        for status in 0..=255 {
            let Verdict::Ended { reason, provisional, .. } =
                judge(Some(&row(true, Some(status), None)), PID, false, &dying(0))
            else {
                panic!("status {status} is no end");
            };
            assert_eq!(reason, if status == 0 { "exited" } else { "failed" });
            assert_eq!(provisional, [0, 129, 130, 143].contains(&status), "{status}");
        }
    }

    #[test]
    fn a_gone_pane_is_an_end_and_a_reused_one_too() {
        assert!(matches!(judge(None, PID, false, &dying(0)), Verdict::Ended { reason: "dead_window", .. }));
        let verdict = judge(Some(&row(false, None, None)), PID + 1, false, &dying(0));
        assert!(matches!(
            verdict,
            Verdict::Ended { reason: "respawned", provisional: false, pane_lives: true, .. }
        ));
    }

    #[test]
    fn below_a_shell_the_pane_lives_on() {
        let verdict = judge(Some(&row(false, None, None)), PID, true, &dying(0));
        assert!(matches!(verdict, Verdict::Ended { pane_lives: true, .. }));
        // the shell went with it: its own status says nothing of the agent, HUP above all
        let verdict = judge(Some(&row(true, None, None)), PID, true, &dying(0));
        assert!(matches!(verdict, Verdict::Ended { pane_lives: false, .. }));
    }

    #[test]
    fn a_dead_pane_without_a_pid_is_still_the_records() {
        let mut row = row(true, Some(3), None);
        row.pid = None;
        assert!(matches!(judge(Some(&row), PID, false, &dying(0)), Verdict::Ended { reason: "failed", .. }));
    }
}
