//! What is not brought back unasked, and why.

use serde_json::json;

use super::{Fleet, running, settings};
use crate::support::{DEADLINE, wait_until};

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
    // nor by a process that was to do it unasked and had to wait until that was no longer wanted
    let ids: Vec<&str> = fleet.agents.iter().map(|member| member.id.as_str()).collect();
    let told =
        fleet.home.ait([&["coordinate", "recover", "--unasked"], ids.as_slice()].concat()).code(1).text();
    assert_eq!(told.matches("which may have been meant").count(), ids.len(), "{told}");
    fleet.stay_lost();
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
}

#[test]
fn an_agent_that_is_lost_again_at_once_is_offered() {
    let fleet = Fleet::new(&["alpha"]);
    let old = fleet.crash();
    fleet.all_back(old);
    let old = fleet.lose();
    fleet.stay_lost();
    fleet.supervisor.status_until("the offers", |status| {
        let told = status.to_string();
        let offered = |id: &str| told.contains(&format!("`ait recover {id}` does"));
        (told.contains("it was lost again") && fleet.agents.iter().all(|m| offered(&m.id))).then_some(())
    });
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
}

#[test]
fn what_the_settings_say_is_done_and_what_a_record_says_is_stronger() {
    for (policy, says) in [("offer", "the settings say to offer it"), ("off", "kept, as the settings say")] {
        let fleet = Fleet::with(&["alpha"], |home| settings(home, &format!("recover = \"{policy}\"\n")));
        let own = &fleet.agents[2];
        fleet.home.ait(["recover", "--set", "auto", &own.id]).ok();
        let old = fleet.crash();
        fleet.home.store_until("the one to be back", |home| super::is_back(home, &own.id, old).then_some(()));
        fleet.tmux.remember();
        fleet.supervisor.status_until("what is said of the others", |status| {
            (status.to_string().matches(says).count() >= 3).then_some(())
        });
        for member in &fleet.agents {
            let wanted = usize::from(member.id == own.id);
            // those of the server may not have heard the hang-up yet
            wait_until("those that are to run and no others", DEADLINE, || {
                (running(&fleet.home, &member.conversation) == wanted).then_some(())
            });
        }
        let others: Vec<&str> =
            fleet.agents.iter().map(|m| m.id.as_str()).filter(|id| *id != own.id).collect();
        fleet.home.ait([&["recover"], others.as_slice()].concat()).ok();
        fleet.all_back(old);
    }
}

#[test]
fn three_agents_that_fail_in_a_row_stop_the_rest() {
    let fleet = Fleet::new(&["alpha", "beta"]);
    fleet.home.manners("claude", json!({ "exit": 3 }));
    let old = fleet.lose();
    let failed = fleet.supervisor.status_until("those that failed", |status| {
        let told = status.to_string();
        let count = told.matches("bringing it back did not work: agent_exited").count();
        (count >= 3 && told.contains("breaker")).then_some(count)
    });
    assert_eq!(failed, 3, "the rest was not tried");
    fleet.stay_lost();
    fleet.home.manners("claude", json!({}));
    fleet.home.ait(["recover"]).ok();
    fleet.all_back(old);
}

#[test]
fn without_a_supervisor_nobody_says_that_nothing_was_lost() {
    let mut fleet = Fleet::new(&["alpha"]);
    fleet.supervisor.stop();
    assert_eq!(fleet.home.ait(["recover"]).ok().text(), "no agent is lost");
    let server = fleet.tmux.server();
    server.signal(rustix::process::Signal::KILL);
    for member in &fleet.agents {
        assert!(member.agent.pane.process().dies(DEADLINE));
    }
    let told = fleet.home.ait(["recover"]).code(69).errors();
    assert!(told.contains("no supervisor runs") && told.contains("hint: `ait setup` starts it"), "{told}");
}
