//! The stand-in agent: ends as it is told, sleeps in the kernel otherwise.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{DEADLINE, Home, Tmux, proc, wait_until};

#[test]
fn it_ends_with_the_status_or_the_signal_it_is_told() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    for (line, status, signal) in
        [("exit 7", "7", ""), ("exit 0", "0", ""), ("die KILL", "", "9"), ("die SEGV", "", "11")]
    {
        let pane = tmux.window("main", "agent", &home.home(), &home.stand_in(&["--title", "busy"]));
        wait_until("the title", DEADLINE, || {
            (tmux.format(&pane.id, "#{pane_title}") == "busy").then_some(())
        });
        let process = pane.process();
        tmux.ok(["send-keys", "-t", &pane.id, line, "Enter"]);
        assert!(process.dies(DEADLINE), "{line}");
        wait_until("the status", DEADLINE, || {
            // Builds with libutempter learn of the end only when another child ends.
            tmux.collect();
            let told = tmux.format(&pane.id, "#{pane_dead} #{pane_dead_status}/#{pane_dead_signal}");
            (told == format!("1 {status}/{signal}")).then_some(())
        });
    }
}

#[test]
fn it_answers_term_as_its_flags_say() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let ready = |pane: &str| {
        wait_until("the stand-in", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", pane]).contains("waiting").then_some(())
        });
    };
    let plain = tmux.window("main", "plain", &home.home(), &home.stand_in(&[]));
    let polite = tmux.window("main", "polite", &home.home(), &home.stand_in(&["--on-term", "3"]));
    let deaf = tmux.window("main", "deaf", &home.home(), &home.stand_in(&["--deaf"]));
    for pane in [&plain, &polite, &deaf] {
        ready(&pane.id);
    }
    for pane in [&plain, &polite] {
        let process = pane.process();
        process.signal(Signal::TERM);
        assert!(process.dies(DEADLINE));
    }
    let process = deaf.process();
    process.signal(Signal::TERM);
    process.signal(Signal::HUP);
    tmux.ok(["kill-pane", "-t", &deaf.id]);
    wait_until("the pane to be gone", DEADLINE, || (!tmux.panes().contains(&deaf)).then_some(()));
    assert!(!process.dies(Duration::from_millis(200)), "it outlives its pane");
    assert_eq!(proc::state(process.pid), Some('S'), "it sleeps in the kernel");
    process.signal(Signal::KILL);
    assert!(process.dies(DEADLINE));
}
