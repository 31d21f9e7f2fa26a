//! The server is killed, or the machine goes: all is back by itself.

use rustix::process::Signal;

use super::Fleet;

#[test]
fn a_killed_server_takes_nothing_with_it() {
    let fleet = Fleet::new(&["alpha", "beta"]);
    let old = fleet.tmux.server().pid;
    fleet.tmux.kill(Signal::KILL);
    fleet.all_back(old);
}
