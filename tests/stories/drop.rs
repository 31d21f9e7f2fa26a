//! Dropping: a frozen agent is forgotten with its pane and its screen; the archive keeps its conversation's id.

use rustix::process::Signal;

use crate::freeze::outcome;
use crate::support::{AIT, Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

#[track_caller]
fn frozen(home: &Home, tmux: &Tmux, window: &str) -> Agent {
    let agent = Agent::start(tmux, "main", window);
    home.ait(["freeze", &agent.id, "--force"]).ok();
    agent
}

fn is_forgotten(home: &Home, agent: &Agent) {
    assert!(home.record(&agent.id).is_none(), "the record is removed");
    let archived = home.archived_record(&agent.id).expect("the archive has it");
    assert!(archived.to_string().contains(&agent.conversation), "{archived}");
    let captures = home.home().join(".config/aitasks/frozen").join(&agent.id);
    assert!(!captures.exists(), "{} is removed", captures.display());
}

#[test]
fn a_frozen_agent_is_forgotten_and_its_window_goes() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    let told = outcome(&home.ait(["drop", &agent.id, "--json"]).ok());
    assert_eq!(told["word"], "dropped", "{told}");
    is_forgotten(&home, &agent);
    assert!(!tmux.panes().contains(&agent.pane));
    assert!(
        !tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]).contains("work"),
        "the empty window too"
    );
    home.ait(["drop", &agent.id]).code(1);
}

#[test]
fn companions_in_its_window_stay() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    let companion = tmux.split(&agent.pane, &agent.root, &["sleep", "1000"]);
    home.ait(["drop", &agent.id]).ok();
    is_forgotten(&home, &agent);
    let panes: Vec<String> = tmux.panes().into_iter().map(|pane| pane.id).collect();
    assert!(panes.contains(&companion.id) && !panes.contains(&agent.pane.id), "{panes:?}");
    assert!(companion.process().alive());
}

#[test]
fn a_running_agent_is_dropped_only_by_force() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let told = outcome(&home.ait(["drop", &agent.id, "--json"]).code(12));
    assert_eq!(told["word"], "live", "{told}");
    assert!(agent.pane.process().alive());
    let process = agent.pane.process();
    home.ait(["drop", &agent.id, "--force"]).ok();
    assert!(process.dies(DEADLINE));
    is_forgotten(&home, &agent);
    assert!(!tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]).contains("work"));
}

#[test]
fn a_pane_that_is_not_the_stand_ins_is_never_closed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    // the user gave the pane to something else: its stamp came off
    tmux.ok(["set-option", "-p", "-u", "-t", &agent.pane.id, "@aitask_frozen"]);
    tmux.ok(["set-option", "-p", "-u", "-t", &agent.pane.id, "@aitask_record"]);
    tmux.ok(["respawn-pane", "-k", "-t", &agent.pane.id, "sleep", "1000"]);
    home.ait(["drop", &agent.id]).ok();
    is_forgotten(&home, &agent);
    assert_eq!(tmux.format(&agent.pane.id, "#{pane_current_command}"), "sleep", "the stranger is untouched");
}

#[test]
fn a_stamp_that_a_stranger_inherited_closes_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    // stamps survive whatever is put into a pane
    tmux.ok(["respawn-pane", "-k", "-t", &agent.pane.id, "sleep", "1000"]);
    let told = outcome(&home.ait(["drop", &agent.id, "--json"]).ok());
    assert_eq!(told["word"], "dropped", "{told}");
    assert!(told["detail"].as_str().unwrap().contains(&agent.pane.id), "{told}");
    is_forgotten(&home, &agent);
    assert_eq!(tmux.format(&agent.pane.id, "#{pane_current_command}"), "sleep", "the stranger is untouched");
}

#[test]
fn the_dead_pane_of_a_crashed_agent_goes_with_its_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.knows(&tmux, &[&agent]);
    agent.pane.process().signal(Signal::KILL);
    home.until_lost(&agent.id, "agent_crashed");
    assert_eq!(tmux.format(&agent.pane.id, "#{pane_dead} #{@aitask_record}"), format!("1 {}", agent.id));
    // nobody else is there to close it
    supervisor.kill();
    home.ait(["drop", &agent.id]).ok();
    is_forgotten(&home, &agent);
    assert!(!tmux.panes().iter().any(|pane| pane.id == agent.pane.id), "the dead pane is closed");
}

#[test]
fn what_was_put_for_it_on_the_next_server_is_closed_with_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    let old = tmux.server();
    old.signal(Signal::KILL);
    assert!(old.dies(DEADLINE));
    tmux.boot();
    // as a recovery leaves it that is cut before it says so on the record
    let spare = tmux.window("main", "work", &agent.root, &[AIT, "frozenagent", "--record", &agent.id]);
    let inherited = tmux.window("main", "other", &agent.root, &["sleep", "1000"]);
    for pane in [&spare, &inherited] {
        tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_frozen", &agent.id]);
    }
    home.ait(["drop", &agent.id]).ok();
    is_forgotten(&home, &agent);
    let panes = tmux.panes();
    assert!(!panes.contains(&spare), "nothing stands in for what is forgotten: {panes:?}");
    assert!(panes.contains(&inherited), "the stranger is untouched");
}

#[test]
fn what_may_still_run_its_agent_is_a_survivor() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    let other = tmux.window("main", "attempt", &agent.root, &["sleep", "1000"]);
    tmux.ok([
        "set-option",
        "-p",
        "-t",
        &other.id,
        "@aitask_restore_attempt",
        &format!("{}:0000abcd", agent.id),
    ]);
    let told = outcome(&home.ait(["drop", &agent.id, "--json"]).code(12));
    assert_eq!(told["word"], format!("survivor:{}", other.id), "{told}");
    let record = home.record(&agent.id).unwrap();
    assert_eq!((&record["state"], &record["op_nonce"]), (&"frozen".into(), &"".into()), "the lease is back");
    assert!(other.process().alive());
    tmux.ok(["kill-pane", "-t", &other.id]);
    home.ait(["drop", &agent.id]).ok();
    is_forgotten(&home, &agent);
}

#[test]
fn a_server_that_does_not_answer_loses_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = frozen(&home, &tmux, "work");
    home.wrap_tmux("exit 1");
    let told = outcome(&home.ait(["drop", &agent.id, "--json"]).code(1));
    assert_eq!(told["word"], "server_unknown", "{told}");
    home.unwrap_tmux();
    let record = home.record(&agent.id).unwrap();
    assert_eq!((&record["state"], &record["op_nonce"]), (&"frozen".into(), &"".into()), "{record:#}");
    wait_until("the stand-in", DEADLINE, || {
        tmux.panes().iter().any(|pane| pane.id == agent.pane.id).then_some(())
    });
}
