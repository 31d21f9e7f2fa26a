//! Where an agent comes back when its pane is gone.

use rustix::process::Signal;

use super::{Frozen, outcome, restore, running};
use crate::support::{Fake, Home, Tmux};

/// Restores, and gives the agent where it is now.
#[track_caller]
fn back(home: &Home, tmux: &Tmux, frozen: &Frozen) -> Fake {
    let told = restore(home, &frozen.id).ok();
    assert_eq!(outcome(&told)["word"], "verified", "{told}");
    let agent = frozen.back(tmux);
    assert_eq!(agent.conversation(), frozen.conversation);
    assert_eq!(running(home, &frozen.conversation), 1);
    assert!(!frozen.captured(home));
    agent
}

#[track_caller]
fn place(tmux: &Tmux, agent: &Fake) -> String {
    tmux.format(&agent.pane.id, "#{session_name}:#{window_index}:#{window_name}")
}

#[test]
fn a_closed_window_is_made_again_in_its_place_and_a_taken_index_is_left_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let odd = "a#{pid} $(x);'b c";
    let escaped = odd.replace('#', "##");
    let frozen = Frozen::claude(&tmux, "main", &escaped, "alpha");
    let before = place(&tmux, &frozen.agent);
    tmux.ok(["kill-window", "-t", &frozen.agent.pane.window]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(place(&tmux, &agent), before, "session, index and name");
    let record = frozen.record(&home);
    assert_eq!(record["window"], odd);
    assert_eq!(record["ait"]["window_id"], agent.pane.window.as_str(), "{record:#}");

    super::freeze(&home, &frozen.id);
    tmux.ok(["kill-window", "-t", &agent.pane.window]);
    let index = before.split(':').nth(1).unwrap();
    let taken = tmux.ok([
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{window_id}",
        "-t",
        &format!("main:{index}"),
        "-n",
        &escaped,
        "sleep 1000",
    ]);
    let agent = back(&home, &tmux, &frozen);
    assert_ne!(agent.pane.window, taken);
    assert_eq!(tmux.format(&taken, "#{window_panes} #{window_index}"), format!("1 {index}"), "left alone");
    assert!(place(&tmux, &agent).starts_with(&format!("main:{}:", index.parse::<u32>().unwrap() + 1)));
}

#[test]
fn a_window_that_still_has_companions_gets_it_back_as_a_split() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let agent = Fake::claude(&tmux, "main", "cart", &root);
    let companion = tmux.split(&agent.pane, &root, &["sleep", "1000"]);
    let frozen = Frozen::of(&tmux, agent);
    tmux.ok(["kill-pane", "-t", &frozen.agent.pane.id]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(agent.pane.window, companion.window);
    assert_eq!(tmux.format(&companion.window, "#{window_panes}"), "2");
    assert_eq!(companion.process().pid, companion.pid, "the companion was not touched");
}

#[test]
fn a_split_comes_back_in_its_order_and_the_layout_is_laid_over_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let agent = Fake::claude(&tmux, "main", "cart", &root);
    let below = tmux.split(&agent.pane, &root, &["sleep", "1000"]);
    let last = tmux.split(&below, &root, &["sleep", "1000"]);
    tmux.ok(["select-layout", "-t", &below.window, "main-vertical"]);
    tmux.ok(["resize-pane", "-t", &agent.pane.id, "-x", "61"]);
    let frozen = Frozen::of(&tmux, agent);
    let panes = |own: &str| {
        let format = "#{pane_id} #{pane_left} #{pane_top} #{pane_width} #{pane_height}";
        tmux.ok(["list-panes", "-t", &below.window, "-F", format]).replace(own, "own")
    };
    let before = panes(&frozen.agent.pane.id);
    assert!(before.starts_with("own 0 0 61 "), "{before}");
    tmux.ok(["kill-pane", "-t", &frozen.agent.pane.id]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(panes(&agent.pane.id), before);
    // another number of panes: nothing is arranged
    super::freeze(&home, &frozen.id);
    tmux.ok(["kill-pane", "-t", &agent.pane.id]);
    tmux.ok(["kill-pane", "-t", &last.id]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(agent.pane.window, below.window);
    assert_eq!(tmux.format(&below.window, "#{window_panes}"), "2");
}

#[test]
fn a_restored_pane_closes_with_its_agent_where_no_supervisor_runs() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(tmux.ok(["show-options", "-p", "-v", "-t", &agent.pane.id, "remain-on-exit"]), "");
    agent.leave(&tmux);
    crate::support::wait_until("its pane to close", crate::support::DEADLINE, || {
        tmux.collect();
        (!tmux.panes().iter().any(|pane| pane.id == agent.pane.id)).then_some(())
    });
}

#[test]
fn a_gone_session_is_made_again_and_another_projects_is_not_used() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    tmux.session("work", &root, &["sleep", "1000"]);
    let frozen = Frozen::claude(&tmux, "work", "cart", "alpha");
    let index = tmux.format(&frozen.agent.pane.id, "#{window_index}");
    tmux.ok(["kill-session", "-t", "=work:"]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(place(&tmux, &agent), format!("work:{index}:cart"));

    super::freeze(&home, &frozen.id);
    tmux.ok(["kill-session", "-t", "=work:"]);
    // a second later: sessions tell their age in seconds
    let frozen_at = frozen.record(&home)["frozen_at"].as_str().unwrap().to_owned();
    crate::support::wait_until("the next second", crate::support::DEADLINE, || {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        (now > frozen_at).then_some(())
    });
    let foreign = tmux.session("work", &home.project("beta"), &["sleep", "1000"]);
    let agent = back(&home, &tmux, &frozen);
    assert_eq!(place(&tmux, &agent), format!("work-2:{index}:cart"));
    assert_eq!(
        tmux.format(&foreign.session, "#{session_windows}"),
        "1",
        "the other project's is not touched"
    );
}

#[test]
fn without_a_server_one_is_started_with_the_recorded_surroundings() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let before = place(&tmux, &frozen.agent);
    tmux.kill(Signal::KILL);
    let mut command = home.ait_command(["restore", &frozen.id, "--json"]);
    command.env("CLAUDECODE", "1").env("CLAUDE_CONFIG_DIR", "/nowhere");
    let told = crate::support::Ran::run(&mut command);
    tmux.remember();
    let told = told.ok();
    assert_eq!(outcome(&told)["word"], "verified", "{told}");
    let agent = frozen.back(&tmux);
    assert_eq!(agent.conversation(), frozen.conversation);
    assert_eq!(place(&tmux, &agent), before);
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", agent.pane.pid)).unwrap();
    assert!(!environment.contains("CLAUDECODE=1") && !environment.contains("/nowhere"), "{environment}");
    let server = std::fs::read_to_string(format!("/proc/{}/environ", tmux.server().pid)).unwrap();
    assert!(!server.contains("CLAUDECODE=1"), "the server has no agent's marks");
}

#[test]
fn a_session_of_the_users_choice() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    tmux.ok(["kill-window", "-t", &frozen.agent.pane.window]);
    home.ait(["restore", &frozen.id, "--session", "-odd name"]).ok();
    let agent = frozen.back(&tmux);
    assert_eq!(tmux.format(&agent.pane.id, "#{session_name}"), "-odd name");
    assert_eq!(frozen.record(&home)["session"], "-odd name");
}

#[test]
fn a_stand_in_that_its_agent_left_for_another_session_is_closed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    frozen.stands(&tmux);
    let pane = &frozen.agent.pane.id;
    home.ait(["restore", &frozen.id, "--session", "other"]).ok();
    let agent = frozen.back(&tmux);
    assert_eq!(tmux.format(&agent.pane.id, "#{session_name}"), "other");
    assert_ne!(agent.pane.id, *pane);
    assert!(tmux.panes().iter().all(|one| one.id != *pane), "nothing stands in for an agent that runs");
}

#[test]
fn a_stranger_in_its_stand_ins_pane_is_left_there() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    // stamps survive whatever is put into a pane
    let pane = &frozen.agent.pane.id;
    tmux.ok(["respawn-pane", "-k", "-t", pane, "sleep", "1000"]);
    let agent = back(&home, &tmux, &frozen);
    assert_ne!(agent.pane.id, *pane);
    assert_eq!(tmux.format(pane, "#{pane_dead} #{pane_current_command}"), "0 sleep");
    assert!(place(&tmux, &agent).starts_with("main:"));
}
