//! A shutdown is not a stop: agents, server and supervisor told to end in every order, then another boot.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, agents};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    Agents,
    Server,
    Supervisor,
}

const ORDERS: [[Party; 3]; 6] = {
    use Party::{Agents, Server, Supervisor};
    [
        [Agents, Server, Supervisor],
        [Agents, Supervisor, Server],
        [Server, Agents, Supervisor],
        [Server, Supervisor, Agents],
        [Supervisor, Agents, Server],
        [Supervisor, Server, Agents],
    ]
};

#[test]
fn every_order_of_a_slow_shutdown_is_a_loss_by_reboot() {
    for order in ORDERS {
        shutdown(order, true);
    }
}

#[test]
fn every_order_of_a_quick_shutdown_is_a_loss_by_reboot() {
    for order in ORDERS {
        shutdown(order, false);
    }
}

/// SIGTERM to each party in `order`, each ended before the next is told if `slow`; another boot; a fresh server.
fn shutdown(order: [Party; 3], slow: bool) {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    let one = Agent::start(&tmux, "main", "one");
    supervisor.attached(&tmux);
    let two = one.beside(&tmux);
    let three = Agent::start(&tmux, "main", "three");
    let fleet = [one, two, three];
    supervisor.watching(&tmux, 3);
    supervisor.settled(&tmux);
    supervisor.knows(&tmux, &fleet.iter().collect::<Vec<_>>());
    let server = tmux.server();
    let processes: Vec<_> = fleet.iter().map(|agent| agent.pane.process()).collect();
    for party in order {
        let told = match party {
            Party::Agents => processes.clone(),
            Party::Server => vec![server],
            Party::Supervisor => vec![supervisor.process()],
        };
        for process in &told {
            process.signal(Signal::TERM);
        }
        if slow {
            for process in &told {
                assert!(process.dies(Duration::from_secs(10)), "{order:?}: {party:?}");
            }
        }
    }
    for process in processes.iter().chain([&server]) {
        assert!(process.dies(DEADLINE), "{order:?}");
    }
    assert!(supervisor.stop().success(), "{order:?}: the supervisor ends cleanly");
    another_boot(&home);
    // the user's own fresh server, with one unrelated session
    tmux.boot();
    let supervisor = Supervisor::start(&home, &[&tmux]);
    for agent in &fleet {
        home.store_until(
            &format!("{order:?}, slow {slow}: record {} to be lost by reboot", agent.id),
            |home| home.record(&agent.id).filter(|record| agents::is_lost(record, "reboot")),
        );
    }
    assert_eq!(home.records().len(), fleet.len(), "{order:?}: none doubled, none retired");
    assert!(supervisor.process().alive());
    for agent in &fleet {
        let (back, how) = agent.again(&tmux, "main");
        assert_eq!((back.id.as_str(), how.as_str()), (agent.id.as_str(), "rejoined"), "{order:?}");
    }
}

#[test]
fn a_power_cut_is_a_loss_by_reboot_in_one_write() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    let one = Agent::start(&tmux, "main", "one");
    let two = one.beside(&tmux);
    supervisor.watching(&tmux, 2);
    supervisor.kill();
    tmux.kill(Signal::KILL);
    another_boot(&home);
    tmux.boot();
    let mut generations = crate::support::store::Generations::of(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    home.until_lost(&one.id, "reboot");
    home.until_lost(&two.id, "reboot");
    assert_eq!(generations.count(), 1);
    assert!(home.archived().is_empty());
}

/// Rewrites this boot's id in everything that is stored, which is what a reboot looks like from within the next boot.
pub(crate) fn another_boot(home: &Home) {
    let now = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let now = now.trim();
    // of the same length, so that the archive's index still fits
    let then = now.chars().map(|c| if c == '-' { '-' } else { '0' }).collect::<String>();
    let folder = home.store().parent().unwrap().to_owned();
    let state = home.home().join(".local/state/ait");
    let mut rewritten = 0;
    for folder in [folder, state] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            if text.contains(now) {
                // in place: the files keep their modes
                fs::write(entry.path(), text.replace(now, &then)).unwrap();
                rewritten += 1;
            }
        }
    }
    assert!(rewritten > 0, "the store names its boot");
    // a floor plan's file is named by the boot, too
    for entry in fs::read_dir(home.home().join(".local/state/ait/plans")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap().replace(now, &then);
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        let bytes = plan["server"]["socket"].as_str().unwrap().bytes().chain([0]).chain(then.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let name = entry.file_name().into_string().unwrap();
        let rest = name.split_once('-').unwrap().1;
        fs::write(entry.path(), text).unwrap();
        fs::rename(entry.path(), entry.path().with_file_name(format!("{hash:016x}-{rest}"))).unwrap();
    }
}
