//! A restore cut short.

use super::batch::{Moment, matrix};
use super::subject::Operation;
use super::{Between, Cut, Few, How};

fn allowed(moment: &Moment, cut: Cut) -> Vec<&'static str> {
    let goes_on = cut.how == How::Stop;
    // one that is seen late is on its way back already
    let state = if moment.state == "aborting" { "restoring" } else { moment.state.as_str() };
    match (state, cut.between) {
        ("frozen", Between::Nothing) if !goes_on => vec!["frozen, viewer"],
        // what was launched before the cut is known again by its mark
        ("restoring", Between::Nothing) if !goes_on => vec!["frozen, viewer", "runs, live"],
        ("frozen" | "restoring" | "live", Between::Nothing) => vec!["runs, live"],
        ("frozen", Between::Process) if !goes_on => vec!["frozen, viewer"],
        ("frozen", Between::Process) => vec!["frozen, viewer", "runs, live"],
        ("restoring", Between::Process) if cut.how == How::Kill => vec!["frozen, viewer", "lost by itself"],
        ("restoring", Between::Process) => vec!["frozen, viewer", "lost by itself", "runs, live"],
        // the stand-in's stamp may be on its pane yet
        ("live", Between::Process) => vec!["lost by itself", "frozen, viewer"],
        ("frozen", Between::Pane | Between::Window | Between::Server) if !goes_on => vec!["frozen, no pane"],
        // it comes back in another place
        ("frozen", Between::Pane | Between::Window | Between::Server) => {
            vec!["frozen, no pane", "runs, live"]
        }
        ("restoring", Between::Pane | Between::Window) if !goes_on => {
            vec!["frozen, no pane", "ended by itself"]
        }
        ("restoring", Between::Pane | Between::Window) => {
            vec!["frozen, no pane", "ended by itself", "runs, live"]
        }
        ("restoring", Between::Server) if !goes_on => vec!["frozen, no pane", "lost by itself"],
        ("restoring", Between::Server) => vec!["frozen, no pane", "lost by itself", "runs, live"],
        ("live", Between::Pane | Between::Window) => vec!["ended by itself"],
        ("live", Between::Server) => vec!["lost by itself"],
        (_, _) => Vec::new(),
    }
}

#[test]
fn a_restore_cut_at_any_step_leaves_one_agent_or_its_viewer() {
    matrix("restore", Operation::Restore, Few::AndKills, allowed);
}
