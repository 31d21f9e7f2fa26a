//! A tmux that cannot start a process in a pane: it is tried again, and given up with a pane that can be used and the truth.

use std::fs;

use serde_json::Value;

use crate::freeze::outcome;
use crate::support::{DEADLINE, Fake, Home, Supervisor, Tmux, wait_until};

/// From here on tmux refuses as many respawns as the file says, as it does when there is no terminal to be had.
fn refuse(home: &Home, times: u32) {
    fs::write(home.root().join("refusals"), times.to_string()).unwrap();
}

/// How many are left to be refused.
fn left(home: &Home) -> u32 {
    fs::read_to_string(home.root().join("refusals")).unwrap().trim().parse().unwrap()
}

fn world() -> (Home, Tmux, Fake) {
    let home = Home::new();
    home.hooked("claude");
    let tmux = Tmux::start(&home);
    refuse(&home, 0);
    home.wrap_tmux(&format!(
        r#"case "$*" in *respawn-pane*)
    left=$(cat '{file}')
    if [ "$left" -gt 0 ]; then
        echo $((left - 1)) >'{file}'
        echo 'respawn pane failed: fork failed: Device not configured' >&2
        exit 1
    fi ;;
esac
exec "$TMUX_REAL" "$@""#,
        file = home.root().join("refusals").display()
    ));
    let agent = Fake::claude(&tmux, "main", "one", &home.project("alpha"));
    agent.prompt(&tmux, "one");
    (home, tmux, agent)
}

/// The record's state and its last error.
fn state(home: &Home, id: &str) -> (String, String) {
    let record = home.record(id).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&record["state"]), text(&record["last_error"]))
}

#[test]
fn a_respawn_that_is_refused_once_is_tried_again() {
    let (home, tmux, agent) = world();
    let (id, conversation) = (agent.adopt(&tmux), agent.conversation());
    refuse(&home, 1);
    let told = outcome(&home.ait(["freeze", &id, "--force", "--json"]).ok());
    assert_eq!((told["word"].as_str(), left(&home)), (Some("frozen"), 0), "{told}");
    refuse(&home, 1);
    home.ait(["restore", &id]).ok();
    assert_eq!((state(&home, &id).0.as_str(), left(&home)), ("live", 0));
    assert_eq!(home.turns("claude", &conversation), 1);
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], conversation.as_str());
}

#[test]
fn a_restore_whose_respawns_are_all_refused_leaves_the_viewer_and_the_reason() {
    let (home, tmux, agent) = world();
    let (id, conversation) = (agent.adopt(&tmux), agent.conversation());
    home.ait(["freeze", &id, "--force"]).ok();
    let stands = home.record(&id).unwrap()["pane_pid"].clone();
    refuse(&home, 1_000);
    let ran = home.ait(["restore", &id]);
    assert!(!ran.status.success(), "{ran}");
    let (state, why) = state(&home, &id);
    assert_eq!(state, "frozen");
    assert!(why.contains("Device not configured"), "{why}");
    assert_eq!(tmux.format(&agent.pane.id, "#{pane_dead} #{pane_pid}"), format!("0 {stands}"));
    refuse(&home, 0);
    home.ait(["restore", &id]).ok();
    assert_eq!(home.turns("claude", &conversation), 1);
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], conversation.as_str());
}

#[test]
fn a_freeze_whose_respawns_are_all_refused_keeps_the_record_and_is_finished_later() {
    let (home, tmux, agent) = world();
    let (id, conversation) = (agent.adopt(&tmux), agent.conversation());
    let process = agent.process();
    refuse(&home, 1_000);
    let ran = home.ait(["freeze", &id, "--force"]);
    assert!(process.dies(DEADLINE), "{ran}");
    let (told, _) = state(&home, &id);
    assert!(matches!(told.as_str(), "freezing" | "frozen"), "never live without its agent: {told}");
    refuse(&home, 0);
    let supervisor = Supervisor::launch(&home, &[&tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
    supervisor.ready();
    wait_until("the viewer", DEADLINE, || {
        let told = tmux.format(&agent.pane.id, "#{@aitask_frozen} #{@aitask_standin_ready} #{pane_dead}");
        (state(&home, &id).0 == "frozen" && told == format!("{id} 1 0")).then_some(())
    });
    home.ait(["restore", &id]).ok();
    assert_eq!(home.turns("claude", &conversation), 1);
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], conversation.as_str());
}
