//! A drop cut short.

use super::batch::{Moment, matrix};
use super::subject::Operation;
use super::{Between, Cut, Few, How, freeze};

/// A drop that has said on the record that the viewer is to be closed is done; before, nothing was begun.
fn allowed(moment: &Moment, cut: Cut) -> Vec<&'static str> {
    match (moment.state.as_str(), cut.between) {
        ("", _) => vec!["dropped"],
        ("frozen", _) if cut.how == How::Stop => vec!["dropped"],
        ("frozen", Between::Nothing | Between::Process) if moment.doomed => vec!["frozen, viewer", "dropped"],
        ("frozen", Between::Nothing | Between::Process) => vec!["frozen, viewer"],
        // it may have been given up before its pane was killed
        ("frozen", Between::Pane | Between::Window | Between::Server) if moment.doomed => {
            vec!["dropped", "frozen, no pane"]
        }
        ("frozen", Between::Pane | Between::Window | Between::Server) => vec!["frozen, no pane"],
        (_, _) => Vec::new(),
    }
}

/// A live one is frozen first.
fn allowed_of_live(moment: &Moment, cut: Cut) -> Vec<&'static str> {
    match (moment.state.as_str(), cut.how) {
        ("live" | "freezing", How::Stop) => match cut.between {
            Between::Nothing => vec!["dropped"],
            // an agent that ended by itself is not there to be frozen
            Between::Process | Between::Server => vec!["dropped", "lost by itself"],
            Between::Pane | Between::Window => vec!["dropped", "ended by itself"],
        },
        ("live" | "freezing", How::Kill | How::StopKill) => freeze::allowed(moment, cut),
        (_, _) => allowed(moment, cut),
    }
}

#[test]
fn a_drop_cut_at_any_step_is_done_or_can_be_done_again() {
    matrix("drop", Operation::Drop, Few::AndKills, allowed);
}

#[test]
fn a_forced_drop_cut_at_any_step_leaves_its_agent_or_its_viewer_or_nothing() {
    matrix("drop --force", Operation::DropLive, Few::ByTurns, allowed_of_live);
}
