//! The server is killed: all is back by itself.

use super::Fleet;

#[test]
fn a_killed_server_takes_nothing_of_three_projects_with_it() {
    let fleet = Fleet::new(&["alpha", "beta", "gamma"]);
    assert_eq!(fleet.agents.len(), 12);
    let old = fleet.crash();
    fleet.all_back(old);
}
