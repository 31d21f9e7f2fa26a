//! The viewer on a real tmux: it stands in a frozen agent's pane, says when it is up, shows what was kept, gives its terminal
//! back however it ends, and is brought back when it is killed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::proc::{self, Process};
use crate::support::run::Running;
use crate::support::{AIT, Agent, DEADLINE, Home, Supervisor, Tmux, wait, wait_until};

/// An agent whose freeze was carried through by hand, up to the viewer in its pane.
struct Frozen {
    agent: Agent,
    /// The viewer.
    viewer: Process,
}

const CAPTURE: &str = "first line\n\x1b[31mneedle\x1b[39m in red \x1b]52;c;aGk=\x07\nlast line\n";

impl Frozen {
    #[track_caller]
    fn new(tmux: &Tmux, window: &str) -> Frozen {
        let home = tmux.home();
        let agent = Agent::start(tmux, "main", window);
        tmux.ok(["set-option", "-p", "-t", &agent.pane.id, "remain-on-exit", "on"]);
        let nonce = begin(home, &agent);
        tmux.ok(["set-option", "-p", "-t", &agent.pane.id, "@aitask_frozen", &agent.id]);
        respawn(tmux, &agent, &[AIT, "frozenagent", "--record", &agent.id]);
        until_ready(tmux, &agent);
        let viewer = viewer(tmux, &agent);
        let pid = viewer.pid.to_string();
        let verb = ["record", "freeze-commit", &agent.id, "--nonce", &nonce];
        home.ait(verb.into_iter().chain(["--pane", &agent.pane.id, "--pane-pid", &pid])).ok();
        Frozen { agent, viewer }
    }

    fn keys(&self, tmux: &Tmux, keys: &[&str]) {
        tmux.ok(["send-keys", "-t", &self.agent.pane.id].iter().chain(keys));
    }

    /// Waits until the page shows this.
    #[track_caller]
    fn shows(&self, tmux: &Tmux, text: &str) -> String {
        shows(tmux, &self.agent.pane.id, text)
    }
}

/// `freeze-begin` with a capture where it belongs; gives the token.
#[track_caller]
fn begin(home: &Home, agent: &Agent) -> String {
    begin_as(home, agent, std::process::id())
}

/// The same by a coordinator of this pid.
#[track_caller]
fn begin_as(home: &Home, agent: &Agent, owner: u32) -> String {
    let folder = captures(home, &agent.id);
    fs::create_dir_all(&folder).unwrap();
    let (ansi, txt) = (folder.join("capture.ansi"), folder.join("capture.txt"));
    fs::write(&ansi, CAPTURE).unwrap();
    fs::write(&txt, "plain\n").unwrap();
    let owner = owner.to_string();
    let files = [ansi, txt].map(|path| path.to_string_lossy().into_owned());
    let verb = ["record", "freeze-begin", &agent.id, "--owner-pid", &owner, "--lines", "3"];
    let told =
        home.ait(verb.into_iter().chain(["--capture-ansi", &files[0], "--capture-txt", &files[1]])).ok();
    told.text().rsplit_once('|').expect("a token").1.to_owned()
}

fn captures(home: &Home, id: &str) -> PathBuf {
    home.home().join(".config/aitasks/frozen").join(id)
}

#[track_caller]
fn respawn(tmux: &Tmux, agent: &Agent, words: &[&str]) {
    tmux.ok(["respawn-pane", "-k", "-t", &agent.pane.id, "--"].iter().chain(words));
}

#[track_caller]
fn until_ready(tmux: &Tmux, agent: &Agent) {
    wait_until("the viewer to say that it is up", DEADLINE, || {
        (tmux.format(&agent.pane.id, "#{@aitask_standin_ready}") == "1").then_some(())
    });
}

#[track_caller]
fn viewer(tmux: &Tmux, agent: &Agent) -> Process {
    let pid = tmux.format(&agent.pane.id, "#{pane_pid}").parse().unwrap();
    Process::of(pid).expect("the viewer runs")
}

#[track_caller]
fn shows(tmux: &Tmux, pane: &str, text: &str) -> String {
    wait_until(&format!("the page to show {text:?}"), DEADLINE, || {
        let page = tmux.ok(["capture-pane", "-p", "-t", pane]);
        page.contains(text).then_some(page)
    })
}

/// Met: the reader of keys never came back from a terminal that had hung up, and the viewer of a closed pane burnt a core for ever.
#[test]
fn a_viewer_whose_terminal_goes_ends_with_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    for round in 0..8 {
        let frozen = Frozen::new(&tmux, &format!("gone-{round}"));
        if round % 2 == 0 {
            // a key that is half read when it happens
            frozen.keys(&tmux, &["Escape"]);
        }
        tmux.ok(["kill-pane", "-t", &frozen.agent.pane.id]);
        assert!(frozen.viewer.dies(DEADLINE), "round {round}: the viewer outlived its pane");
    }
}

#[test]
fn it_stands_in_shows_searches_copies_and_closes() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::new(&tmux, "alpha-1");
    let page = frozen.shows(&tmux, "frozen");
    for text in ["alpha · alpha-1 · claude/stand-in", "3 lines", "first line", "needle in red", "last line"]
    {
        assert!(page.contains(text), "{text:?} is shown:\n{page}");
    }
    let coloured = tmux.ok(["capture-pane", "-p", "-e", "-t", &frozen.agent.pane.id]);
    assert!(coloured.contains("\x1b[38;5;1mneedle"), "{coloured:?}");
    frozen.keys(&tmux, &["r"]);
    wait_until("no colour", DEADLINE, || {
        let page = tmux.ok(["capture-pane", "-p", "-e", "-t", &frozen.agent.pane.id]);
        (!page.contains("\x1b[38;5;1m")).then_some(())
    });
    frozen.keys(&tmux, &["/", "n", "e", "e", "Enter"]);
    frozen.shows(&tmux, "›needle in red");
    frozen.keys(&tmux, &["S-Down", "y"]);
    frozen.shows(&tmux, "copied to the tmux buffer");
    assert_eq!(tmux.ok(["show-buffer"]), "needle in red\nlast line");
    frozen.keys(&tmux, &["?"]);
    frozen.shows(&tmux, "close this pane; the record stays frozen");
    frozen.keys(&tmux, &["q", "q"]);
    assert!(frozen.viewer.dies(DEADLINE));
    wait_until("the pane to be closed, though ended panes are kept", DEADLINE, || {
        tmux.panes().iter().all(|pane| pane.id != frozen.agent.pane.id).then_some(())
    });
    let record = home.record(&frozen.agent.id).expect("the record stays");
    assert_eq!(record["state"], "frozen");
    assert!(captures(&home, &frozen.agent.id).join("capture.ansi").exists());
}

#[test]
fn it_follows_its_record_and_says_why_a_restore_failed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::new(&tmux, "follows");
    let id = frozen.agent.id.as_str();
    let owner = std::process::id().to_string();
    let told =
        home.ait(["record", "restore-begin", id, "--owner-pid", &owner, "--mode", "resume"]).ok().text();
    let nonce = told.rsplit_once('|').unwrap().1.to_owned();
    frozen.shows(&tmux, "it is being brought back (resume)");
    home.ait(["record", "restore-abort", id, "--nonce", &nonce, "--error", "no_binary"]).ok();
    frozen.shows(&tmux, "bringing it back failed: no_binary");
    let pid = frozen.viewer.pid.to_string();
    let verb = ["record", "standin-respawned", id, "--nonce", &nonce];
    home.ait(verb.into_iter().chain(["--pane", &frozen.agent.pane.id, "--pane-pid", &pid])).ok();
    frozen.shows(&tmux, "the last restore failed: no_binary");
    // a store that cannot be read is no end of a stand-in, nor of what it knows
    let store = fs::read(home.store()).unwrap();
    let previous = home.store().with_file_name("agent_sessions.json.prev");
    fs::write(home.store(), "{").unwrap();
    let _ = fs::remove_file(previous);
    fs::write(home.store(), "{ ").unwrap();
    frozen.shows(&tmux, "the store cannot be trusted");
    fs::write(home.store(), store).unwrap();
    frozen.shows(&tmux, "the last restore failed: no_binary");
    // dropped here, after a question: the record and the pane are gone
    frozen.keys(&tmux, &["k"]);
    frozen.shows(&tmux, "D drops, any other key keeps");
    frozen.keys(&tmux, &["y"]);
    frozen.shows(&tmux, "kept");
    assert!(home.record(id).is_some());
    frozen.keys(&tmux, &["k"]);
    frozen.shows(&tmux, "D drops, any other key keeps");
    frozen.keys(&tmux, &["D"]);
    assert!(frozen.viewer.dies(DEADLINE));
    assert!(home.record(id).is_none());
    assert_eq!(home.archived_record(id).expect("the archive keeps it")["reason"], "dropped");
    assert!(!captures(&home, id).exists());
    wait_until("the pane to be closed", DEADLINE, || {
        tmux.panes().iter().all(|pane| pane.id != frozen.agent.pane.id).then_some(())
    });
}

#[test]
fn only_the_pane_that_carries_the_stamp_is_marked_and_closed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Agent::start(&tmux, "main", "other");
    // a viewer somebody opened beside, of a record that nobody knows
    let pane = tmux.window("main", "beside", &home.home(), &[AIT, "frozenagent", "--record", "00000bad"]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_frozen", &agent.id]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"]);
    shows(&tmux, &pane.id, "the store has no such record");
    let viewer = pane.process();
    tmux.ok(["send-keys", "-t", &pane.id, "q"]);
    assert!(viewer.dies(DEADLINE));
    assert_eq!(tmux.format(&pane.id, "#{@aitask_standin_ready}"), "");
    assert!(tmux.panes().iter().any(|other| other.id == pane.id), "a pane with another stamp is left alone");
    tmux.ok(["kill-pane", "-t", &pane.id]);
    let refused = home.ait(["frozenagent"]).code(69);
    assert!(refused.errors().contains("standard output is not a terminal"), "{refused}");
    home.ait(["frozenagent", "--record", "nonsense"]).code(64);
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::new(&tmux, "ends");
    let script = home.script(
        "in-a-shell",
        "#!/bin/sh\n\"$1\" frozenagent --record \"$2\"\necho \"ended $?\"\nstty -a\nexec sleep 1000000\n",
    );
    let script = script.to_string_lossy().into_owned();
    let ways = [(Some(Signal::TERM), 143), (Some(Signal::HUP), 129), (Some(Signal::INT), 130), (None, 0)];
    for (signal, status) in ways {
        let pane = tmux.window("main", "shell", &home.home(), &[&script, AIT, &frozen.agent.id]);
        shows(&tmux, &pane.id, "needle in red");
        let flags = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}";
        assert_eq!(tmux.format(&pane.id, flags), "1 0 1");
        match signal {
            Some(signal) => {
                let children = proc::children(pane.pid);
                assert_eq!(children.len(), 1, "the viewer: {children:?}");
                children[0].signal(signal);
            }
            None => drop(tmux.ok(["send-keys", "-t", &pane.id, "q"])),
        }
        let page = shows(&tmux, &pane.id, &format!("ended {status}"));
        assert!(!page.contains("needle"), "the alternate screen is left:\n{page}");
        let page = shows(&tmux, &pane.id, "icanon");
        assert!(!page.contains("-icanon") && !page.contains("-echo "), "raw mode is left:\n{page}");
        assert_eq!(tmux.format(&pane.id, flags), "0 1 0", "{signal:?}");
        tmux.ok(["kill-pane", "-t", &pane.id]);
    }
}

#[test]
fn a_killed_stand_in_is_brought_back_once() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let frozen = Frozen::new(&tmux, "comes back");
    supervisor.attached(&tmux);
    supervisor.settled(&tmux);
    // a value of another's: gone by the respawn, and set by the new viewer alone
    tmux.ok(["set-option", "-p", "-t", &frozen.agent.pane.id, "@aitask_standin_ready", "stale"]);
    frozen.viewer.signal(Signal::KILL);
    assert!(frozen.viewer.dies(DEADLINE));
    let pane = frozen.agent.pane.id.as_str();
    let again = wait_until("another viewer", DEADLINE, || {
        let pid: u32 = tmux.format(pane, "#{?pane_dead,0,#{pane_pid}}").parse().ok()?;
        (pid != frozen.viewer.pid).then(|| Process::of(pid)).flatten()
    });
    frozen.shows(&tmux, "needle in red");
    until_ready(&tmux, &frozen.agent);
    wait::stays("the same viewer stands there", Duration::from_secs(2), || {
        again.alive() && tmux.format(pane, "#{pane_pid}") == again.pid.to_string()
    });
    assert_eq!(home.record(&frozen.agent.id).unwrap()["state"], "frozen");
}

#[test]
fn a_freeze_that_was_cut_short_is_brought_to_its_end() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::launch(&home, &[&tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
    supervisor.ready();
    let agent = Agent::start(&tmux, "main", "cut short");
    supervisor.watching(&tmux, 1);
    supervisor.knows(&tmux, &[&agent]);
    let mut coordinator = Running::start(home.command("sleep").arg("1000000"));
    begin_as(&home, &agent, coordinator.process().pid);
    tmux.ok(["set-option", "-p", "-t", &agent.pane.id, "@aitask_frozen", &agent.id]);
    let before = agent.pane.process();
    before.signal(Signal::TERM);
    assert!(before.dies(DEADLINE));
    // the agent is ended and nobody is left to go on
    coordinator.process().signal(Signal::KILL);
    coordinator.join(DEADLINE);
    let record = home.store_until("the freeze to be ended", |home| {
        home.record(&agent.id).filter(|record| record["state"] == "frozen")
    });
    let viewer = viewer(&tmux, &agent);
    assert_eq!(
        (&record["pane_id"], &record["pane_pid"]),
        (&agent.pane.id.clone().into(), &viewer.pid.into())
    );
    assert_eq!(record["standin_pid"], viewer.pid);
    assert_eq!(tmux.format(&agent.pane.id, "#{@aitask_standin_ready}"), "1");
    shows(&tmux, &agent.pane.id, "needle in red");
    shows(&tmux, &agent.pane.id, "3 lines · frozen");
}

#[test]
fn the_list_shows_all_frozen_agents_and_opens_one() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let one = Frozen::new(&tmux, "one");
    Agent::start(&tmux, "main", "alive");
    let pane = tmux.window("main", "list", &home.home(), &[AIT, "frozenagent"]);
    let page = shows(&tmux, &pane.id, "1 frozen");
    assert!(page.contains("one") && !page.contains("alive"), "{page}");
    let two = Frozen::new(&tmux, "two");
    shows(&tmux, &pane.id, "2 frozen");
    tmux.ok(["send-keys", "-t", &pane.id, "G", "Enter"]);
    let page = shows(&tmux, &pane.id, "needle in red");
    assert!(page.contains("alpha · two"), "{page}");
    // not this viewer's to drop
    tmux.ok(["send-keys", "-t", &pane.id, "k"]);
    shows(&tmux, &pane.id, &format!("not dropped: its stand-in is in {}", two.agent.pane.id));
    tmux.ok(["send-keys", "-t", &pane.id, "Escape"]);
    shows(&tmux, &pane.id, "2 frozen");
    let viewer = pane.process();
    tmux.ok(["send-keys", "-t", &pane.id, "q"]);
    assert!(viewer.dies(DEADLINE));
    assert!(one.viewer.alive() && two.viewer.alive());
}

#[test]
fn an_idle_viewer_sleeps_in_the_kernel() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::new(&tmux, "idle");
    frozen.shows(&tmux, "needle in red");
    // how often its threads were scheduled, by the kernel's own count
    let switches = || -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", frozen.viewer.pid)).unwrap();
        let of = |line: &str| line.split_once("voluntary_ctxt_switches:")?.1.trim().parse::<u64>().ok();
        threads
            .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
            .map(|status| status.lines().filter_map(of).sum::<u64>())
            .sum()
    };
    wait_until("three quiet seconds", Duration::from_secs(60), || {
        let before = switches();
        wait::moment(Duration::from_secs(3));
        (switches() == before).then_some(())
    });
    let before = switches();
    frozen.keys(&tmux, &["g"]);
    frozen.shows(&tmux, "›first line");
    assert!(switches() > before, "the count is alive");
}
