//! Several at once, and what changes between the look and the act.

use super::{Frozen, outcome, restore, running};
use crate::support::{Home, Tmux};

#[test]
fn of_twenty_restores_of_one_agent_one_wins() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let told: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..20).map(|_| scope.spawn(|| restore(&home, &frozen.id))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let code = |ran: &crate::support::Ran| ran.status.code().unwrap();
    let won = told.iter().filter(|ran| code(ran) == 0).count();
    assert_eq!(won, 1, "{}", told.iter().map(|ran| format!("{ran}\n")).collect::<String>());
    for ran in told.iter().filter(|ran| code(ran) != 0) {
        let word = outcome(ran)["word"].as_str().unwrap().to_owned();
        // those that came after its end find a live agent
        let late = word == "not_frozen" && code(ran) == 12;
        let busy = ["lease_held"].contains(&word.as_str()) && code(ran) == 8;
        assert!(late || busy, "{ran}");
    }
    assert_eq!(running(&home, &frozen.conversation), 1);
    assert_eq!(frozen.back(&tmux).conversation(), frozen.conversation);
}

#[test]
fn a_stranger_under_the_same_pane_id_is_untouched() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    tmux.kill(rustix::process::Signal::KILL);
    tmux.boot();
    let mut strangers = tmux.panes();
    while !strangers.iter().any(|pane| pane.id == frozen.agent.pane.id) {
        tmux.window("main", "stranger", &home.home(), &["sleep", "1000"]);
        strangers = tmux.panes();
    }
    restore(&home, &frozen.id).ok();
    let agent = frozen.back(&tmux);
    assert_ne!(agent.pane.id, frozen.agent.pane.id);
    for stranger in &strangers {
        assert!(tmux.panes().contains(stranger), "{stranger:?} runs on");
    }
    assert_eq!(running(&home, &frozen.conversation), 1);
}
