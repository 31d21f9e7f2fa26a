//! What is not brought back unasked, and why.

use super::Fleet;

#[test]
fn a_server_that_was_stopped_is_offered_and_not_done() {
    let fleet = Fleet::new(&["alpha"]);
    let old = fleet.tmux.server().pid;
    fleet.tmux.ok(["kill-server"]);
    for member in &fleet.agents {
        fleet.home.until_lost(&member.id, "server_stopped");
    }
    let plan = fleet.home.ait(["recover", "--dry-run"]).ok().text();
    for member in &fleet.agents {
        assert!(plan.contains(&format!("claude --resume {}", member.conversation)), "{plan}");
    }
    for member in &fleet.agents {
        assert_eq!(super::running(&fleet.home, &member.conversation), 0);
    }
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
}
