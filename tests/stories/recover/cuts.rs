//! The supervisor that recovers is killed in between: the end is the same, and nothing is doubled. Cuts of the recovery itself are
//! in `kills`.

use crate::support::DEADLINE;
use crate::support::wrapper::{Act, Calls, When};

use super::{Fleet, supervisor};

/// How many calls to tmux the recovery of a fleet of four takes at the least: what is cut lies within.
const CALLS: usize = 24;

/// The supervisor is killed at that call of its coordinators, and they with it if `both`; then there is one again.
#[track_caller]
fn cut(number: usize, when: When, both: bool) {
    let mut fleet = Fleet::new(&["alpha"]);
    let calls = Calls::of(&fleet.home, "coordinate");
    let line = format!("kill -9 {}", fleet.supervisor.process().pid);
    calls.at(number, when, &if both { Act::DoAndKill(line) } else { Act::Do(line) });
    let old = fleet.crash();
    assert!(fleet.supervisor.process().dies(DEADLINE), "call {number} comes");
    fleet.supervisor.kill();
    fleet.supervisor = supervisor(&fleet.home, &fleet.tmux);
    fleet.all_back(old);
}

#[test]
fn a_supervisor_that_is_killed_early_in_a_recovery_goes_on_with_it() {
    cut(1, When::Before, false);
    cut(5, When::After, false);
}

#[test]
fn a_supervisor_that_is_killed_late_in_a_recovery_goes_on_with_it() {
    cut(14, When::Before, false);
    cut(CALLS, When::After, false);
}

#[test]
fn a_supervisor_that_is_killed_with_its_recovery_does_it_again() {
    for (number, when) in [(2, When::Before), (6, When::After), (16, When::Before), (21, When::After)] {
        cut(number, when, true);
    }
}
