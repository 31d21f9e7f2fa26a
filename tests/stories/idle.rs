//! Idle is idle: no system call, no fork, little memory, with fifty panes and fifty records.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::support::calls::calls;
use crate::support::proc::{self, Process};
use crate::support::{Agent, Home, Supervisor, Tmux, not_run, wait_until};

/// Resident memory of an idle supervisor, at most.
const RESIDENT: u64 = 15 * 1024 * 1024;

#[test]
fn an_idle_supervisor_sleeps_in_the_kernel() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    for window in 0..10 {
        let first = Agent::start(&tmux, "main", &format!("window {window}"));
        tmux.ok(["resize-window", "-t", &first.pane.window, "-x", "200", "-y", "60"]);
        for _ in 0..4 {
            first.beside(&tmux);
            tmux.ok(["select-layout", "-t", &first.pane.window, "even-vertical"]);
        }
    }
    supervisor.attached(&tmux);
    supervisor.watching(&tmux, 50);
    supervisor.settled(&tmux);
    checkpointed(&home, &tmux);
    let watcher = supervisor.process();
    modest(watcher);
    if let Err(why) = proc::strace() {
        not_run(&why);
        return;
    }
    let client: Vec<Process> = proc::children(watcher.pid);
    let page = tmux.ok(["list-panes", "-s", "-t", "=_ait", "-F", "#{pane_pid}"]);
    let page = Process::of(page.trim().parse().unwrap()).unwrap();
    assert_eq!(client.len(), 1, "one long-lived client and nothing else: {client:?}");
    let watched: Vec<Process> = client.into_iter().chain([watcher, page]).collect();
    // the screen of an agent is kept once more up to half a minute after it was kept last
    wait_until("it to be quiet", Duration::from_secs(180), || {
        calls(&home, &watched, Duration::from_secs(35)).is_empty().then_some(())
    });
    let seen = calls(&home, &watched, Duration::from_secs(60));
    assert_eq!(seen, [""; 0], "system calls in 60 s");
    modest(watcher);
    assert!(watched.iter().all(|process| process.alive()));
}

/// A build without optimisation maps several times the text of the one that is shipped: of it, heap and stacks count.
fn modest(watcher: Process) {
    let resident = watcher.resident().unwrap();
    println!("{resident:?}");
    let counted = if cfg!(debug_assertions) { resident.own } else { resident.all };
    assert!(counted <= RESIDENT, "{resident:?}");
}

/// Waits until the screen of every agent was kept once more after the half minute of its last output: then none is due.
fn checkpointed(home: &Home, tmux: &Tmux) {
    wait_until("the last checkpoints", Duration::from_secs(120), || {
        let kept = |record: &serde_json::Value| {
            let id = record["id"].as_str().unwrap();
            let path = home.home().join(".local/state/ait/checkpoints").join(id).join("capture.txt");
            let output: u64 =
                tmux.format(record["pane_id"].as_str().unwrap(), "#{window_activity}").parse().unwrap();
            let at = fs::metadata(path).ok()?.modified().unwrap();
            let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            (at / 30 > output / 30).then_some(())
        };
        home.records().iter().all(|record| kept(record).is_some()).then_some(())
    });
}
