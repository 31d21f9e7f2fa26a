//! Freezing: an agent is ended only when it may be, its screen is kept, and a stand-in takes its pane.

use serde_json::Value;

use crate::support::{Agent, DEADLINE, Home, Ran, Supervisor, Tmux, wait_until};

/// The one outcome of an `ait freeze --json` or `ait drop --json`.
#[track_caller]
fn outcome(ran: &Ran) -> Value {
    let lines: Vec<Value> = ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ended = lines.into_iter().filter(|line| line["event"] == "outcome");
    let one = ended.next().unwrap_or_else(|| panic!("no outcome: {ran}"));
    assert!(ended.next().is_none(), "one outcome: {ran}");
    one
}

/// The record is frozen with its capture, and its pane shows the viewer.
#[track_caller]
fn is_frozen(home: &Home, tmux: &Tmux, agent: &Agent) {
    let record = home.record(&agent.id).expect("the record is kept");
    assert_eq!(record["state"], "frozen", "{record:#}");
    assert_eq!(record["op_nonce"], "", "no lease is left: {record:#}");
    assert_eq!(record["pane_id"], agent.pane.id.as_str(), "the same pane");
    for name in ["capture_ansi", "capture_txt"] {
        let path = record[name].as_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("waiting"), "{path}: {text:?}");
    }
    let told = tmux.format(
        &agent.pane.id,
        "#{@aitask_frozen} #{@aitask_standin_ready} #{pane_dead} #{pane_pid} #{@aitask_respawn_token}",
    );
    assert_eq!(told, format!("{} 1 0 {} ", agent.id, record["pane_pid"]));
    assert_ne!(record["pane_pid"], agent.pane.pid, "the agent's process is not the stand-in");
}

fn ready(tmux: &Tmux, agent: &Agent) {
    wait_until("the stand-in agent's first words", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &agent.pane.id]).contains("waiting").then_some(())
    });
}

#[test]
fn an_agent_is_ended_and_its_stand_in_takes_the_same_pane() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    ready(&tmux, &agent);
    let process = agent.pane.process();
    let windows =
        tmux.ok(["list-windows", "-a", "-F", "#{session_name} #{window_id} #{window_index} #{window_name}"]);

    let told = outcome(&home.ait(["freeze", &agent.id, "--force", "--json"]).ok());
    assert_eq!(told["word"], "frozen", "{told}");
    assert!(process.dies(DEADLINE));
    is_frozen(&home, &tmux, &agent);
    let after =
        tmux.ok(["list-windows", "-a", "-F", "#{session_name} #{window_id} #{window_index} #{window_name}"]);
    assert_eq!(after, windows, "window, index and session stay");

    let again = home.ait(["freeze", &agent.id, "--force", "--json"]).code(12);
    assert_eq!(outcome(&again)["word"], "frozen", "it says so: {again}");
}

#[test]
fn the_supervisor_watches_a_freeze_and_does_nothing_to_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    ready(&tmux, &agent);
    let told = outcome(&home.ait(["freeze", &agent.id, "--force", "--json"]).ok());
    assert_eq!(told["word"], "frozen", "{told}");
    is_frozen(&home, &tmux, &agent);
    supervisor.stop();
    is_frozen(&home, &tmux, &agent);
}

#[test]
fn what_nobody_knows_is_not_ended_by_a_script() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "work");
    ready(&tmux, &agent);
    let before = home.record(&agent.id);
    for arguments in [vec!["freeze", &agent.id, "--json"], vec!["freeze", &agent.pane.id, "--json"]] {
        let mut command = home.ait_command(arguments);
        command.env("TMUX", format!("{},{},0", tmux.socket_text(), tmux.server().pid));
        let ran = Ran::run(&mut command).code(12);
        assert_eq!(outcome(&ran)["word"], "unknown", "{ran}");
    }
    assert_eq!(home.record(&agent.id), before, "nothing was written");
    assert!(agent.pane.process().alive());
    assert_eq!(tmux.format(&agent.pane.id, "#{@aitask_frozen}"), "");
}

#[test]
fn a_deaf_agent_is_killed_after_its_grace() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "deaf", &root, &home.stand_in(&["--deaf"]));
    let agent = Agent::sign(&tmux, pane, &root, "deaf");
    ready(&tmux, &agent);
    let ran = home.ait(["freeze", &agent.id, "--force", "--json"]).ok();
    assert!(ran.text().contains(r#""step":"killing""#), "{ran}");
    is_frozen(&home, &tmux, &agent);
}

#[test]
fn a_pane_without_an_agent_is_refused() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "shell", &home.home(), &["sleep", "1000"]);
    let ran = home.ait(["freeze", &pane.id, "--socket", &tmux.socket_text(), "--force"]).code(1);
    assert!(ran.errors().contains("no known agent"), "{ran}");
    assert!(pane.process().alive());
}
