//! Every supervised agent of a session at once: the server lives (control-mode.md, R1).

use rustix::process::Signal;

use crate::support::wait::trials;
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

/// Windows in the session whose agents all end at once.
const WINDOWS: usize = 8;

#[test]
fn a_session_whose_agents_all_end_at_once_takes_no_server_down() {
    let home = Home::on_tmpfs();
    let tmux = Tmux::start(&home);
    let server = tmux.server();
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let count = trials(24, 200);
    for trial in 0..count {
        let signal = if trial % 2 == 0 { Signal::TERM } else { Signal::KILL };
        let first = tmux.session("doomed", &root, &home.stand_in(&[]));
        let mut agents = vec![Agent::sign(&tmux, first, &root, "w0")];
        for window in 1..WINDOWS {
            agents.push(Agent::start(&tmux, "doomed", &format!("w{window}")));
        }
        supervisor.watching(&tmux, WINDOWS as u64);
        wait_until("every pane to be kept on exit", DEADLINE, || {
            let kept = tmux.ok(["list-panes", "-s", "-t", "=doomed", "-F", "#{remain-on-exit}"]);
            kept.lines().all(|line| line == "on" || line == "1").then_some(())
        });
        let processes: Vec<_> = agents.iter().map(|agent| agent.pane.process()).collect();
        for process in &processes {
            process.signal(signal);
        }
        for agent in &agents {
            if signal == Signal::TERM {
                home.until_ended(&agent.id);
            } else {
                home.until_lost(&agent.id, "agent_crashed");
            }
        }
        assert!(server.alive(), "trial {trial} of {count}: the server lives");
        if signal == Signal::TERM {
            wait_until("the session to be closed pane by pane", DEADLINE, || {
                (!tmux.run(["has-session", "-t", "=doomed"]).status.success()).then_some(())
            });
        } else {
            tmux.ok(["kill-session", "-t", "=doomed"]);
            for agent in &agents {
                home.ait(["record", "drop", &agent.id]).ok();
            }
        }
        assert!(server.alive(), "trial {trial} of {count}: the server lives");
        supervisor.status_until("no live record", |status| {
            let of = crate::support::supervisor::server_of(status, &tmux)?;
            (of["live"] == 0).then_some(())
        });
    }
    println!("{count} trials");
    let last = Agent::start(&tmux, "main", "last");
    supervisor.watching(&tmux, 1);
    tmux.ok(["kill-session", "-t", "=main"]);
    assert!(server.dies(DEADLINE), "the server exits after its last session");
    drop(last);
}
