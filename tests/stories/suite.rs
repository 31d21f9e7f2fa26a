//! The suite's own promises: private servers only, nothing left behind, waits that give up.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::terminal::Terminal;
use crate::support::tmux::Start;
use crate::support::{DEADLINE, Home, Tmux, proc, wait_until};

#[test]
fn a_server_lives_in_its_story_and_ends_with_it() {
    let home = Home::new();
    let server = {
        let tmux = Tmux::start(&home);
        assert!(tmux.socket().starts_with(home.root()));
        assert_eq!(tmux.format("main:", "#{socket_path}"), tmux.socket_text());
        assert_eq!(tmux.panes().len(), 1);
        let environment = tmux.ok(["show-environment", "-g"]);
        assert!(environment.contains(&format!("HOME={}", home.home().display())), "{environment}");
        assert!(!environment.contains("CARGO"), "the caller's environment stays out: {environment}");
        tmux.server()
    };
    assert!(!server.alive());
    wait_until("its panes to be gone", DEADLINE, || home.processes().is_empty().then_some(()));
}

#[test]
fn a_socket_outside_the_story_is_refused() {
    let home = Home::new();
    let default = format!("/tmp/tmux-{}/default", rustix::process::getuid().as_raw());
    let start = Start { socket: default, ..Start::default() };
    let refused = std::panic::catch_unwind(|| Tmux::unstarted(&home, start).socket_text());
    assert!(refused.is_err(), "the user's default socket is refused");
}

/// Stories that end servers, set up, look everywhere and adopt.
const ROUGH: &[&str] = &[
    "adopt::a_second_run_knows_what_is_known",
    "doctor::the_list_of_what_was_touched_is_whole",
    "losses::a_stopped_server_loses_its_agents_as_stopped",
    "setup::a_removal_takes_back_what_a_crash_left",
];

#[test]
fn the_server_that_a_bare_tmux_would_reach_is_never_touched() {
    let home = Home::new();
    let canary = Tmux::start(&home);
    let picture = || {
        let ask = |words: &[&str]| canary.ok(words);
        [
            ask(&["list-panes", "-a", "-F", "#{pid} #{session_id} #{window_id} #{pane_id} #{pane_pid}"]),
            ask(&["list-sessions", "-F", "#{session_name} #{session_attached} #{session_last_attached}"]),
            ask(&["show-options", "-g"]),
            ask(&["show-options", "-p"]),
            ask(&["show-hooks", "-g"]),
            ask(&["list-keys"]),
        ]
    };
    let before = picture();
    // whoever names no socket lands on the canary
    let environment = [("TMUX", format!("{},{},0", canary.socket_text(), canary.server().pid))];
    let mut bare = home.command("sh");
    bare.args(["-c", "tmux display-message -p '#{pid}'"]).envs(environment.clone());
    assert_eq!(crate::support::Ran::run(&mut bare).ok().text(), canary.server().pid.to_string());
    bare.env_remove("TMUX");
    assert_eq!(crate::support::Ran::run(&mut bare).ok().text(), canary.server().pid.to_string());
    let mut suite = home.command(std::env::current_exe().unwrap());
    suite.arg("--exact").args(ROUGH).envs(environment);
    let ran = crate::support::Ran::run(&mut suite).ok();
    assert!(ran.text().contains(&format!("{} passed", ROUGH.len())), "{ran}");
    assert!(canary.server().alive());
    assert_eq!(picture(), before);
    assert!(!home.store().exists(), "nor is the user's store");
}

#[test]
fn a_process_that_outlives_its_story_is_found() {
    let home = Home::new();
    let mut orphan = home.command("sleep").arg("600").spawn().unwrap();
    assert_eq!(home.processes().iter().map(|process| process.pid).collect::<Vec<_>>(), [orphan.id()]);
    home.processes()[0].signal(Signal::KILL);
    orphan.wait().unwrap();
    assert_eq!(home.processes(), []);
}

#[test]
fn a_wait_gives_up_at_its_deadline() {
    let never = || wait_until("what never comes", Duration::from_millis(30), || None::<()>);
    assert!(std::panic::catch_unwind(never).is_err());
}

#[test]
fn a_terminal_comes_and_goes() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let terminal = Terminal::attach(&tmux, Some("=main"));
    assert_eq!(terminal.session(&tmux), "main");
    assert_eq!(tmux.format("main:", "#{session_attached}"), "1");
    drop(terminal);
    let attached = |command: &String| command.contains(" attach ");
    let left: Vec<String> = home.processes().iter().map(|process| proc::command(process.pid)).collect();
    assert!(!left.iter().any(attached), "{left:?}");
}

#[test]
fn a_wrapped_tmux_is_for_the_program_under_test_only() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.wrap_tmux("echo 'lost server' >&2; exit 1");
    let run = || crate::support::Ran::run(home.command("sh").args(["-c", "tmux -V"]));
    assert_eq!(run().code(1).errors(), "lost server");
    assert_eq!(tmux.format("main:", "#{session_name}"), "main");
    home.unwrap_tmux();
    run().ok();
}
