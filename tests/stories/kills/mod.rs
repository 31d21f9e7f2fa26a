//! Operations cut short, enumerated: the coordinator of a freeze, a restore, a drop or a recovery is killed, or stopped and then
//! let go on or killed, before and after each of its calls to tmux and each of its writes of the store, while the process in
//! the pane, the pane, its window or its server is left alone or killed in between.
//!
//! While it is stopped nothing moves. After the supervisor has settled it is one of: one agent runs and its record is live; or
//! none runs, the record is frozen with its capture, and the viewer stands in the pane if there is one; or, of a drop, it is
//! forgotten. Never neither, never both, never a second agent. The matrix is printed.
//!
//! `AIT_TEST_FULL=1` runs all of it. Otherwise one cell of each step runs, another kind at each, so that every kind of cut has its
//! turn; and where an operation's steps are its own, each of them is killed alone as well. `AIT_TEST_CUTS` names cells as they are
//! printed, `after call 9 Kill Nothing` or a part of it, several with commas between: only those run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::support::wait::trials;

mod batch;
mod cut;
mod drop;
mod freeze;
mod recover;
mod restore;
mod seen;
mod subject;

/// A step of a coordinator, by its number; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// A call to tmux.
    Call(usize),
    /// A write of the store, and which of its renames that is.
    Write(usize, usize),
}

/// On which side of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// It is not done.
    Before,
    /// It is done, and its doer does not know.
    After,
}

/// What the coordinator is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT when it was seen that nothing moves.
    Stop,
    /// SIGSTOP, and SIGKILL when it was seen that nothing moves.
    StopKill,
}

/// What is killed besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Between {
    Nothing,
    /// What runs in the pane then: the agent, or the viewer.
    Process,
    Pane,
    Window,
    Server,
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    at: At,
    side: Side,
    how: How,
    between: Between,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { at, side, how, between } = self;
        let side = format!("{side:?}").to_lowercase();
        let (step, number) = match at {
            At::Call(number) => ("call", number),
            At::Write(number, _) => ("write", number),
        };
        write!(f, "{side:6} {step:5} {number:2}  {:8}  {:8}", format!("{how:?}"), format!("{between:?}"))
    }
}

impl Cut {
    /// Whether these words are part of what it is printed as.
    fn is_called(self, name: &str) -> bool {
        let words = |text: &str| format!(" {} ", text.split_whitespace().collect::<Vec<_>>().join(" "));
        words(&self.to_string()).contains(&words(name))
    }
}

/// Every cell of these steps. A coordinator cannot be stopped in front of a write: it is where the step before has left it.
fn every(steps: &[At]) -> Vec<Cut> {
    let mut all = Vec::new();
    for at in steps {
        for side in [Side::Before, Side::After] {
            for between in
                [Between::Nothing, Between::Process, Between::Pane, Between::Window, Between::Server]
            {
                for how in [How::Kill, How::Stop, How::StopKill] {
                    let cut = Cut { at: *at, side, how, between };
                    if !(matches!(at, At::Write(..)) && side == Side::Before && how != How::Kill) {
                        all.push(cut);
                    }
                }
            }
        }
    }
    all
}

/// Which cells run where not all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Few {
    /// One of each step, by turns.
    ByTurns,
    /// And a kill alone of each.
    AndKills,
}

/// The cells that run: those that are named, all, or some of each step.
fn chosen(all: Vec<Cut>, few: Few) -> Vec<Cut> {
    if let Ok(names) = std::env::var("AIT_TEST_CUTS") {
        return all.into_iter().filter(|cut| names.split(',').any(|name| cut.is_called(name))).collect();
    }
    if trials(0, 1) == 1 {
        return all;
    }
    let mut of: BTreeMap<(At, Side), Vec<Cut>> = BTreeMap::new();
    for cut in all {
        of.entry((cut.at, cut.side)).or_default().push(cut);
    }
    let mut some = Vec::new();
    for (turn, cuts) in of.into_values().enumerate() {
        let (plain, rest): (Vec<Cut>, Vec<Cut>) =
            cuts.into_iter().partition(|cut| (cut.how, cut.between) == (How::Kill, Between::Nothing));
        let by_turns: Vec<Cut> = match few {
            Few::AndKills => rest,
            Few::ByTurns => plain.iter().chain(&rest).copied().collect(),
        };
        // far apart, so that neighbours differ in both
        let turn = by_turns.get(turn * 11 % by_turns.len().max(1)).or(by_turns.first()).copied();
        some.extend(turn);
        some.extend(plain.into_iter().filter(|_| few == Few::AndKills));
    }
    some
}

/// Prints what each cell came to.
fn show(title: &str, ends: &BTreeMap<Cut, &'static str>) {
    println!("{title}: {} cuts", ends.len());
    for (cut, end) in ends {
        println!("  {cut}  {end}");
    }
}

#[test]
fn a_cut_is_called_as_it_is_printed() {
    let all = every(&[At::Call(1), At::Call(11), At::Write(1, 3)]);
    let called = |name: &str| all.iter().filter(|cut| cut.is_called(name)).count();
    for cut in &all {
        assert_eq!(called(&cut.to_string()), 1, "{cut}");
    }
    assert_eq!([called("call 1"), called("after call 11"), called("before write 1 Kill Pane")], [30, 15, 1]);
    assert_eq!([called("Kill Nothing"), called("call")], [6, 60]);
}

#[test]
fn by_default_each_step_and_each_kind_of_cut_has_its_turn() {
    let steps: Vec<At> = (1..=11).map(At::Call).chain((1..=3).map(|n| At::Write(n, n))).collect();
    let all = every(&steps);
    for few in [Few::ByTurns, Few::AndKills] {
        let some = chosen(all.clone(), few);
        let steps = |cuts: &[Cut]| cuts.iter().map(|cut| (cut.at, cut.side)).collect::<BTreeSet<_>>();
        let kinds = |cuts: &[Cut]| cuts.iter().map(|cut| (cut.how, cut.between)).collect::<BTreeSet<_>>();
        assert_eq!(steps(&some), steps(&all));
        assert_eq!(kinds(&some), kinds(&all));
        assert_eq!(kinds(&all).len(), 15);
    }
}
