//! A freeze cut short.

use super::batch::{Moment, matrix};
use super::subject::{Operation, World};
use super::{Between, Cut, Few, How};
use crate::support::{Agent, DEADLINE, wait_until};

/// Before the lease it is the agent's own end; under it, while the agent lives, it is taken back; then it only goes forward.
pub(super) fn allowed(moment: &Moment, cut: Cut) -> Vec<&'static str> {
    let goes_on = cut.how == How::Stop;
    match (moment.state.as_str(), cut.between) {
        ("live", Between::Nothing) if !goes_on => vec!["runs, live"],
        ("freezing", Between::Nothing) if !goes_on && moment.alive => vec!["runs, live"],
        ("live" | "freezing" | "frozen", Between::Nothing) => vec!["frozen, viewer"],
        ("live", Between::Process) if !goes_on => vec!["lost by itself"],
        // by then the freeze may have been taken back
        ("live" | "freezing", Between::Process) => vec!["frozen, viewer", "lost by itself"],
        ("frozen", Between::Process) => vec!["frozen, viewer"],
        ("live", Between::Pane | Between::Window) if !goes_on => vec!["ended by itself"],
        ("live", Between::Server) if !goes_on => vec!["lost by itself"],
        ("live" | "freezing", Between::Pane | Between::Window) => vec!["frozen, no pane", "ended by itself"],
        ("live" | "freezing", Between::Server) => vec!["frozen, no pane", "lost by itself"],
        ("frozen", Between::Pane | Between::Window | Between::Server) => vec!["frozen, no pane"],
        (_, _) => Vec::new(),
    }
}

#[test]
fn a_freeze_cut_at_any_step_leaves_its_agent_or_its_viewer() {
    matrix("freeze", Operation::Freeze, Few::AndKills, allowed);
}

#[test]
fn killed_by_the_agent_it_ends() {
    let world = World::new();
    let (home, tmux) = (&world.home, &world.tmux);
    for ends in [true, false] {
        let root = home.project("alpha");
        let then = if ends { "exit 0" } else { "echo still here" };
        // the coordinator is the owner of the lease
        let script = format!(
            "trap 'kill -KILL $(sed -n \"s/.*\\\"op_owner_pid\\\": \\([1-9][0-9]*\\).*/\\1/p\" \"{}\"); {then}' TERM; \
             echo waiting; while :; do sleep 1000 & wait $!; done",
            home.store().display()
        );
        let pane = tmux.window("main", "avenger", &root, &["/bin/sh", "-c", &script]);
        let agent = Agent::sign(tmux, pane, &root, "avenger");
        wait_until("the agent", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", &agent.pane.id]).contains("waiting").then_some(())
        });
        home.store_until("the supervisor to know it", |home| {
            home.record(&agent.id)?["ait"]["host"].is_object().then_some(())
        });
        let process = agent.pane.process();
        home.ait(["freeze", &agent.id, "--force"]).code(1);
        let end = wait_until("an end of it", DEADLINE, || {
            let record = home.record(&agent.id)?;
            let told = tmux.format(&agent.pane.id, "#{pane_dead} #{@aitask_frozen} #{@aitask_standin_ready}");
            match (record["state"].as_str()?, record["op_nonce"].as_str()?, process.alive()) {
                ("live", "", true) if told == "0  " => Some("runs, live"),
                ("frozen", "", false) if told == format!("0 {} 1", agent.id) => Some("frozen, viewer"),
                (_, _, _) => None,
            }
        });
        assert_eq!(end, if ends { "frozen, viewer" } else { "runs, live" });
        println!("coordinator killed by its agent, which {}: {end}", if ends { "ends" } else { "lives on" });
        if !ends {
            tmux.ok(["kill-pane", "-t", &agent.pane.id]);
        }
    }
}
