//! What shows of an agent that was launched, and what follows from it.

use std::time::Duration;

use crate::record::{Ack, ProcessId};

/// How long another session id must stand before it counts: a provider may begin with a fresh one and load the asked-for
/// conversation into it.
const OTHER_STANDS: Duration = Duration::from_secs(1);

/// One look at a launched agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Its pane.
    pub pane: PaneNow,
    /// The session ids the provider's own files name for it.
    pub named: Vec<Named>,
    /// The provider's own process, where one is seen in the pane or below its process.
    pub agent: Option<ProcessId>,
    /// What it sits at, when a dialog is on its screen.
    pub dialog: Option<String>,
    /// Its prompt line is open, or it works.
    pub up: bool,
    /// The last lines of its screen.
    pub lines: Vec<String>,
}

/// A session id that the provider's own files name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The id.
    pub session_id: String,
    /// By which of them.
    pub by: Ack,
    /// For which process.
    pub process: ProcessId,
}

/// A pane that something was launched in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaneNow {
    /// The launched process runs in it.
    Runs,
    /// It has ended, with this status and signal where tmux has them.
    Dead {
        /// The exit status.
        status: Option<i32>,
        /// The signal.
        signal: Option<i32>,
    },
    /// The pane is gone, or runs another process.
    Gone,
    /// Nobody says.
    Unknown,
}

/// What a look comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing yet.
    Nothing,
    /// It is the asked-for conversation (or, picked anew, some conversation).
    Verified(Named),
    /// It has another conversation.
    Mismatch(String),
    /// It ended: the reason, and what it said last.
    Exited {
        /// `agent_exited:<status>`, `pane_gone`.
        word: String,
        /// The last lines.
        said: String,
    },
}

/// Judges looks, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// A session id that is not the asked-for one, and since when it stands.
    other: Option<(String, Duration)>,
}

impl Evidence {
    /// What a look at `now` comes to. `asked`: the session id asked for, `None` when any will do.
    pub(super) fn judge(&mut self, now: Duration, asked: Option<&str>, proof: &Proof) -> Finding {
        let right = proof.named.iter().find(|named| asked.is_none_or(|asked| named.session_id == asked));
        if let Some(named) = right {
            return Finding::Verified(named.clone());
        }
        let said = said(&proof.lines);
        match proof.pane {
            PaneNow::Runs | PaneNow::Unknown => {}
            PaneNow::Dead { status, signal } => {
                let word = match (status, signal) {
                    (_, Some(signal)) => format!("agent_exited:signal_{signal}"),
                    (Some(status), None) => format!("agent_exited:{status}"),
                    (None, None) => "agent_exited".to_owned(),
                };
                return Finding::Exited { word, said };
            }
            PaneNow::Gone => return Finding::Exited { word: "pane_gone".to_owned(), said },
        }
        let Some(other) = proof.named.first() else {
            self.other = None;
            return Finding::Nothing;
        };
        match &self.other {
            Some((id, since)) if *id == other.session_id => {
                if now.saturating_sub(*since) >= OTHER_STANDS {
                    return Finding::Mismatch(other.session_id.clone());
                }
            }
            Some(_) | None => self.other = Some((other.session_id.clone(), now)),
        }
        Finding::Nothing
    }
}

/// The last lines as one, bounded.
fn said(lines: &[String]) -> String {
    const LIMIT: usize = 300;
    let text = lines.join(" / ");
    let skip = text.chars().count().saturating_sub(LIMIT);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &str) -> Named {
        Named { session_id: id.into(), by: Ack::Registry, process: ProcessId::new(9, "90") }
    }

    fn proof(named: &[Named], pane: PaneNow) -> Proof {
        Proof {
            pane,
            named: named.to_vec(),
            agent: None,
            dialog: None,
            up: false,
            lines: vec!["no such".into(), "conversation".into()],
        }
    }

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_asked_for_id_verifies_and_another_must_stand() {
        let mut evidence = Evidence::default();
        let other = proof(&[named("s2")], PaneNow::Runs);
        assert_eq!(evidence.judge(at(0), Some("s1"), &proof(&[], PaneNow::Runs)), Finding::Nothing);
        assert_eq!(evidence.judge(at(10), Some("s1"), &other), Finding::Nothing);
        assert_eq!(evidence.judge(at(900), Some("s1"), &other), Finding::Nothing);
        let right = proof(&[named("s1")], PaneNow::Runs);
        assert_eq!(evidence.clone().judge(at(950), Some("s1"), &right), Finding::Verified(named("s1")));
        assert_eq!(evidence.judge(at(1010), Some("s1"), &other), Finding::Mismatch("s2".into()));
        assert_eq!(Evidence::default().judge(at(0), None, &other), Finding::Verified(named("s2")));
    }

    #[test]
    fn an_end_says_how_and_what_was_said() {
        let judge = |pane| match Evidence::default().judge(at(0), Some("s1"), &proof(&[], pane)) {
            Finding::Exited { word, said } => {
                assert_eq!(said, "no such / conversation");
                word
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(judge(PaneNow::Dead { status: Some(1), signal: None }), "agent_exited:1");
        assert_eq!(judge(PaneNow::Dead { status: None, signal: Some(9) }), "agent_exited:signal_9");
        assert_eq!(judge(PaneNow::Dead { status: None, signal: None }), "agent_exited");
        assert_eq!(judge(PaneNow::Gone), "pane_gone");
        let mut evidence = Evidence::default();
        assert_eq!(evidence.judge(at(0), Some("s1"), &proof(&[], PaneNow::Unknown)), Finding::Nothing);
    }
}
