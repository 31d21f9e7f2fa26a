//! The screen of a live agent is kept while it lives, so that a crash of its server shows it afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::support::{Agent, Home, Supervisor, Tmux, agents};

/// The checkpoint of an agent, once it shows these words.
fn kept(home: &Home, agent: &Agent, words: &str) -> std::path::PathBuf {
    let path = home.home().join(".local/state/ait/checkpoints").join(&agent.id).join("capture.ansi");
    home.store_until(&format!("{words:?} to be kept"), |_| {
        fs::read_to_string(&path).is_ok_and(|text| text.contains(words)).then_some(())
    });
    path
}

#[test]
fn a_server_that_is_killed_leaves_the_last_screen_of_its_agents() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "one");
    let other = agent.beside(&tmux);
    supervisor.watching(&tmux, 2);
    let path = kept(&home, &agent, "stand-in agent");
    kept(&home, &other, "stand-in agent");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    tmux.server().signal(Signal::KILL);
    home.store_until("both to be lost", |home| {
        let lost =
            |agent: &Agent| home.record(&agent.id).is_some_and(|r| agents::is_lost(&r, "server_crashed"));
        (lost(&agent) && lost(&other)).then_some(())
    });
    for agent in [&agent, &other] {
        let record = home.record(&agent.id).unwrap();
        let read = |key: &str| fs::read_to_string(record[key].as_str().unwrap()).unwrap();
        assert!(read("capture_ansi").contains("stand-in agent"), "{record:#}");
        let plain = read("capture_txt");
        assert!(plain.contains("stand-in agent") && !plain.contains('\u{1b}'), "{plain:?}");
        assert!(record["capture_lines"].as_u64().unwrap() > 0);
    }
    assert!(!path.exists(), "a capture now, no checkpoint");
}
