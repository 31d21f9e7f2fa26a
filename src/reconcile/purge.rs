//! What retires (store contract, section 5): only on positive evidence, never on a partial view, never a record on its
//! way, only within the record's own epoch and boot. The observation file of the earlier scripts can name candidates;
//! it knows no epoch, so the record's own server has the last word.

use std::collections::{HashMap, HashSet};

use super::settle::PaneSight;
use crate::record::{
    Facts, Liveness, PaneId, Record, RetireReason, State, agent_liveness, is_epoch_over, is_lease_free,
};

/// What was seen of a frozen record's capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureSight {
    /// It is there, or the record names none.
    There,
    /// The frozen root reads, and the capture's folder or file is provably absent.
    Absent,
    /// It could not be found out: unmounted, unreadable.
    Unknown,
}

/// Whether a record retires, and why.
#[must_use]
pub fn retires(
    record: &Record,
    sight: &PaneSight,
    capture: CaptureSight,
    facts: &Facts<'_>,
) -> Option<RetireReason> {
    // Without an epoch, or in one that is over, nothing here is evidence: such an agent was lost, not ended.
    if record.ait.server.as_ref().is_none_or(|server| is_epoch_over(server, facts)) {
        return match (&record.state, &record.ait.server) {
            (State::Frozen { .. }, Some(_)) => capture_missing(record, capture, facts),
            (
                State::Live
                | State::Freezing
                | State::Frozen { .. }
                | State::Restoring { .. }
                | State::Aborting { .. },
                _,
            ) => None,
        };
    }
    match &record.state {
        State::Live => {
            let reason = match sight {
                PaneSight::Unknown => return None,
                PaneSight::Gone { window_there: false } => RetireReason::DeadWindow,
                PaneSight::Gone { window_there: true } => RetireReason::DeadPane,
                PaneSight::There(pane) if pane.dead => RetireReason::DeadPane,
                PaneSight::There(_) => return None,
            };
            (agent_liveness(record, facts) == Liveness::Gone).then_some(reason)
        }
        State::Frozen { .. } => capture_missing(record, capture, facts),
        State::Freezing | State::Restoring { .. } | State::Aborting { .. } => None,
    }
}

fn capture_missing(record: &Record, capture: CaptureSight, facts: &Facts<'_>) -> Option<RetireReason> {
    match capture {
        CaptureSight::Absent if record.state.lost().is_none() && is_lease_free(record, facts) => {
            Some(RetireReason::CaptureMissing)
        }
        CaptureSight::Absent | CaptureSight::There | CaptureSight::Unknown => None,
    }
}

/// An observation file: tab-separated rows `ROOT root`, `WINDOW root window`, `PANE root window pane pid dead`,
/// `INCOMPLETE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    roots: HashSet<String>,
    windows: HashMap<String, HashSet<String>>,
    panes: HashMap<(String, String), Vec<SeenPane>>,
    complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeenPane {
    pane: PaneId,
    dead: bool,
}

/// A row that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the observation is no row of it: {text:?}")]
pub struct BadRow {
    /// From 1.
    pub line: usize,
    /// The row, cut to 200 characters.
    pub text: String,
}

impl Observed {
    /// Reads an observation; `real` resolves a root.
    ///
    /// # Errors
    /// [`BadRow`] for the first row that is none.
    pub fn parse(text: &str, real: &mut dyn FnMut(&str) -> String) -> Result<Self, BadRow> {
        let mut observed = Self { complete: true, ..Self::default() };
        for (at, row) in text.lines().enumerate() {
            let bad = || BadRow { line: at + 1, text: row.chars().take(200).collect() };
            let fields: Vec<&str> = row.split('\t').collect();
            match fields.as_slice() {
                [""] => {}
                ["INCOMPLETE"] => observed.complete = false,
                ["ROOT", root] => {
                    observed.roots.insert(real(root));
                }
                ["WINDOW", root, window] => {
                    observed.windows.entry(real(root)).or_default().insert((*window).to_owned());
                }
                ["PANE", root, window, pane, pid, dead] => {
                    let pane = pane.parse().map_err(|_| bad())?;
                    pid.parse::<i32>().map_err(|_| bad())?;
                    let dead = match *dead {
                        "0" => false,
                        "1" => true,
                        _ => return Err(bad()),
                    };
                    let seen = SeenPane { pane, dead };
                    observed.panes.entry((real(root), (*window).to_owned())).or_default().push(seen);
                }
                _ => return Err(bad()),
            }
        }
        Ok(observed)
    }

    /// Whether the observation speaks against a live record. Only a candidate: it knows no epoch.
    #[must_use]
    pub fn doubts(&self, record: &Record) -> bool {
        if !self.complete || !matches!(record.state, State::Live) || !self.roots.contains(&record.root) {
            return false;
        }
        let lives = |pane: &SeenPane| Some(pane.pane) == record.location.pane_id() && !pane.dead;
        // Seen anywhere, it lives: a rename is a rename.
        if self.panes.values().flatten().any(lives) {
            return false;
        }
        let windows = self.windows.get(&record.root);
        let whole = |window: &String| self.panes.contains_key(&(record.root.clone(), window.clone()));
        match windows {
            Some(windows) if windows.contains(&record.window) => windows.iter().all(whole),
            Some(_) | None => true,
        }
    }

    /// Whether the observation may be acted upon at all.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::super::settle::Pane;
    use super::*;
    use crate::record::testing::{World, epoch, sample};
    use crate::record::{LossCause, Lost, ProcessId, ServerEpoch, Stamp, StateName};

    fn run(record: &Record, sight: &PaneSight, capture: CaptureSight, gone: &[i32]) -> Option<RetireReason> {
        World::new(gone).with(|facts| retires(record, sight, capture, facts))
    }

    fn pane(dead: bool) -> PaneSight {
        let process = ProcessId::new(41, "410");
        PaneSight::There(Pane {
            id: PaneId(1),
            process,
            dead,
            stamped: false,
            ready: false,
            attempt: false,
            elsewhere: None,
        })
    }

    #[test]
    fn a_live_record_retires_only_when_pane_and_process_are_gone_in_its_own_epoch() {
        let live = sample(StateName::Live);
        let gone = PaneSight::Gone { window_there: true };
        let window_gone = PaneSight::Gone { window_there: false };
        let there = CaptureSight::There;
        assert_eq!(run(&live, &gone, there, &[41]), Some(RetireReason::DeadPane));
        assert_eq!(run(&live, &window_gone, there, &[41]), Some(RetireReason::DeadWindow));
        assert_eq!(run(&live, &pane(true), there, &[41]), Some(RetireReason::DeadPane));
        assert_eq!(run(&live, &gone, there, &[]), None, "its process lives");
        assert_eq!(run(&live, &pane(false), there, &[41]), None, "its pane lives");
        assert_eq!(run(&live, &PaneSight::Unknown, there, &[41]), None, "a partial view");
        assert_eq!(run(&live, &window_gone, there, &[41, 7]), None, "the epoch is over: lost, not ended");
        let mut earlier = live.clone();
        earlier.ait.server = Some(ServerEpoch { boot_id: "earlier".into(), ..epoch() });
        assert_eq!(run(&earlier, &window_gone, there, &[41]), None, "another boot");
        earlier.ait.server = None;
        assert_eq!(run(&earlier, &window_gone, there, &[41]), None, "no epoch");
    }

    #[test]
    fn records_on_their_way_never_retire() {
        for state in [StateName::Freezing, StateName::Restoring, StateName::Aborting] {
            for capture in [CaptureSight::There, CaptureSight::Absent, CaptureSight::Unknown] {
                let gone = PaneSight::Gone { window_there: false };
                assert_eq!(run(&sample(state), &gone, capture, &[41]), None, "{state} {capture:?}");
            }
        }
    }

    #[test]
    fn a_frozen_record_retires_only_when_its_capture_is_provably_absent() {
        let mut frozen = sample(StateName::Frozen);
        let unseen = PaneSight::Unknown;
        assert_eq!(run(&frozen, &unseen, CaptureSight::Absent, &[]), Some(RetireReason::CaptureMissing));
        assert_eq!(run(&frozen, &unseen, CaptureSight::Unknown, &[]), None);
        assert_eq!(run(&frozen, &unseen, CaptureSight::There, &[]), None);
        frozen.state = State::Frozen {
            lost: Some(Box::new(Lost {
                at: Stamp::from_unix(0),
                cause: LossCause::Reboot,
                exit_status: None,
                signal: None,
                evidence: String::new(),
                agent: None,
                lived: None,
                unknown: Default::default(),
            })),
        };
        assert_eq!(run(&frozen, &unseen, CaptureSight::Absent, &[]), None, "a lost one has nothing else");
    }

    fn observed(text: &str) -> Observed {
        Observed::parse(text, &mut str::to_owned).unwrap()
    }

    #[test]
    fn the_observation_file_names_candidates() {
        let live = sample(StateName::Live);
        assert!(observed("ROOT\t/r\n").doubts(&live), "its window was not seen");
        assert!(
            observed("ROOT\t/r\nWINDOW\t/r\tw\nPANE\t/r\tw\t%1\t41\t1\n").doubts(&live),
            "its pane is dead"
        );
        assert!(
            observed("ROOT\t/r\nWINDOW\t/r\tw\nPANE\t/r\tw\t%2\t42\t0\n").doubts(&live),
            "its pane is not there"
        );
        assert!(!observed("ROOT\t/r\nWINDOW\t/r\tw\nPANE\t/r\tw\t%1\t41\t0\n").doubts(&live));
        assert!(!observed("ROOT\t/r\nWINDOW\t/r\tnew\nPANE\t/r\tnew\t%1\t41\t0\n").doubts(&live), "renamed");
        assert!(!observed("ROOT\t/r\nWINDOW\t/r\tw\n").doubts(&live), "a window whose panes were not seen");
        assert!(!observed("ROOT\t/r\nINCOMPLETE\n").doubts(&live));
        assert!(!observed("ROOT\t/other\n").doubts(&live));
        assert!(!observed("").doubts(&live));
        for state in [StateName::Freezing, StateName::Frozen, StateName::Restoring, StateName::Aborting] {
            assert!(!observed("ROOT\t/r\n").doubts(&sample(state)), "{state}");
        }
    }

    #[test]
    fn an_unknown_row_is_corruption() {
        for (row, line) in [
            ("WHAT\tx", 1),
            ("ROOT", 1),
            ("ROOT\ta\tb", 1),
            ("\nPANE\t/r\tw\t%1\tx\t0", 2),
            ("PANE\t/r\tw\tx\t1\t0", 1),
            ("PANE\t/r\tw\t%1\t1\t2", 1),
        ] {
            let bad = Observed::parse(row, &mut str::to_owned).unwrap_err();
            assert_eq!(bad.line, line, "{row}");
        }
    }
}
