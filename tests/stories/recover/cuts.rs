//! Who recovers is killed in between: the end is the same, and nothing is doubled.

use crate::support::wait::trials;
use crate::support::wrapper::{Act, Calls, When};
use crate::support::{DEADLINE, wait_until};

use super::{Fleet, is_back, settings, supervisor};

/// How many calls to tmux the recovery of a fleet of four takes at the least: what is cut lies within.
const CALLS: usize = 24;

#[test]
fn a_recovery_that_is_killed_is_finished_by_the_next() {
    let fleet = Fleet::with(&["alpha"], |home| settings(home, "recover = \"offer\"\n"));
    let calls = Calls::of(&fleet.home, "coordinate");
    let all = (1..=CALLS).flat_map(|number| [(number, When::Before), (number, When::After)]);
    for (number, when) in all.step_by(trials(7, 1)) {
        let old = fleet.lose();
        calls.at(number, when, &Act::Kill);
        // killed, it has no end to tell
        fleet.home.ait(["recover"]);
        assert!(calls.happened(), "call {number} is one of {:#?}", calls.made());
        wait_until("all to be back by and by", DEADLINE, || {
            let back = fleet.agents.iter().all(|member| is_back(&fleet.home, &member.id, old));
            if !back {
                fleet.home.ait(["recover"]);
            }
            back.then_some(())
        });
        fleet.all_back(old);
    }
}

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
