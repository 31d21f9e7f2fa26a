//! Windows renamed, moved, linked, broken out; sessions renamed; names of every kind: identities stay right.

use crate::support::tmux::{Pane, Start};
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

struct Scene {
    home: Home,
    tmux: Tmux,
    supervisor: Supervisor,
}

impl Scene {
    fn new(start: Start) -> Scene {
        let home = Home::new();
        let tmux = Tmux::start_with(&home, start);
        tmux.session("other", &home.home(), &["sleep", "1000000"]);
        let supervisor = Supervisor::start(&home, &[&tmux]);
        Scene { home, tmux, supervisor }
    }

    fn agent(&self, session: &str, window: &str) -> Agent {
        let live = self.home.records().iter().filter(|record| record["state"] == "live").count() as u64;
        let agent = Agent::start(&self.tmux, session, window);
        self.supervisor.watching(&self.tmux, live + 1);
        agent
    }

    /// The record follows to `name`; nothing is doubled, ended or lost by it.
    fn follows(&self, agent: &Agent, name: &str) {
        let count = self.home.records().len();
        self.home.until_window(&agent.id, name);
        self.home.all_live(&[agent]);
        assert_eq!(self.home.records().len(), count, "a rename makes no record");
        assert!(self.home.archived().is_empty(), "a rename ends nothing");
    }
}

#[test]
fn a_renamed_window_is_followed_in_every_session() {
    let scene = Scene::new(Start::default());
    for session in ["main", "other"] {
        let agent = scene.agent(session, "before");
        for name in ["after", "after again", "before"] {
            scene.tmux.ok(["rename-window", "-t", &agent.pane.window, name]);
            scene.follows(&agent, name);
        }
    }
}

#[test]
fn a_window_renamed_by_its_own_program_is_followed() {
    let scene = Scene::new(Start::default());
    scene.tmux.ok(["set-option", "-g", "allow-rename", "on"]);
    let agent = scene.agent("other", "before");
    agent.told(&scene.tmux, "window from inside");
    scene.follows(&agent, "from inside");
}

#[test]
fn a_window_renamed_by_itself_is_followed() {
    let scene = Scene::new(Start::default());
    let agent = scene.agent("other", "before");
    // the format is looked at when the pane prints something, at most every half second
    scene.tmux.ok(["set-option", "-w", "-t", &agent.pane.window, "automatic-rename-format", "self"]);
    scene.tmux.ok(["set-option", "-w", "-t", &agent.pane.window, "automatic-rename", "on"]);
    wait_until("tmux to rename the window", DEADLINE, || {
        agent.told(&scene.tmux, "print something");
        (scene.tmux.format(&agent.pane.id, "#{window_name}") == "self").then_some(())
    });
    scene.follows(&agent, "self");
}

#[test]
fn two_windows_that_swap_names_swap_them_in_their_records() {
    let scene = Scene::new(Start::default());
    let one = scene.agent("main", "one");
    let two = scene.agent("main", "two");
    scene.tmux.ok(["rename-window", "-t", &one.pane.window, "three"]);
    scene.tmux.ok(["rename-window", "-t", &two.pane.window, "one"]);
    scene.tmux.ok(["rename-window", "-t", &one.pane.window, "two"]);
    scene.follows(&one, "two");
    scene.follows(&two, "one");
}

#[test]
fn a_moved_window_is_followed_and_lives() {
    let scene = Scene::new(Start::default());
    let agent = scene.agent("main", "worker");
    scene.tmux.ok(["move-window", "-d", "-s", &agent.pane.window, "-t", "main:9"]);
    scene.supervisor.settled(&scene.tmux);
    scene.home.all_live(&[&agent]);
    scene.tmux.ok(["move-window", "-d", "-s", &agent.pane.window, "-t", "other:"]);
    scene.home.store_until("the record's session", |home| {
        home.record(&agent.id).filter(|record| record["session"] == "other")
    });
    scene.home.all_live(&[&agent]);
    scene.tmux.ok(["rename-session", "-t", "=other", "elsewhere"]);
    scene.home.store_until("the session's new name", |home| {
        home.record(&agent.id).filter(|record| record["session"] == "elsewhere")
    });
    scene.home.all_live(&[&agent]);
    assert_eq!(scene.home.records().len(), 1);
}

#[test]
fn a_pane_broken_out_takes_its_record_along() {
    let scene = Scene::new(Start::default());
    let agent = scene.agent("main", "pair");
    let split = agent.beside(&scene.tmux);
    scene.supervisor.watching(&scene.tmux, 2);
    scene.tmux.ok(["break-pane", "-d", "-s", &split.pane.id, "-n", "alone"]);
    scene.follows(&split, "alone");
    scene.home.all_live(&[&agent]);
    assert_eq!(scene.home.record(&agent.id).unwrap()["window"], "pair");
    scene.tmux.ok(["join-pane", "-d", "-s", &split.pane.id, "-t", &agent.pane.id]);
    scene.follows(&split, "pair");
    scene.home.all_live(&[&agent, &split]);
}

#[test]
fn indices_are_no_identity() {
    let configuration =
        "set-option -g base-index 1\nset-option -g pane-base-index 1\nset-option -g renumber-windows on\n";
    let scene = Scene::new(Start { configuration: configuration.to_owned(), ..Start::default() });
    let first = scene.agent("main", "first");
    let second = scene.agent("main", "second");
    let third = scene.agent("main", "third");
    scene.tmux.ok(["kill-window", "-t", &first.pane.window]);
    scene.home.until_ended(&first.id);
    assert_eq!(scene.tmux.format(&third.pane.id, "#{window_index}"), "3", "renumbered");
    scene.supervisor.settled(&scene.tmux);
    scene.home.all_live(&[&second, &third]);
    scene.tmux.ok(["swap-window", "-d", "-s", &second.pane.window, "-t", &third.pane.window]);
    scene.supervisor.settled(&scene.tmux);
    for (agent, name) in [(&second, "second"), (&third, "third")] {
        assert_eq!(scene.home.record(&agent.id).unwrap()["window"], name);
    }
    scene.home.all_live(&[&second, &third]);
}

/// Names that look like something else; each with a part that its record must show.
const ODD: [&[u8]; 16] = [
    b"with some spaces",
    b" leading and trailing ",
    b"a|b|c",
    b"UPSERTED:00000000|created",
    b"a\tb",
    b"a\nb",
    b"#{pid}",
    b"##{pane_id} #(touch pwned)",
    b"\"double\" and 'single'",
    b"main:0.0",
    b"-t %0",
    b"$HOME ~ {x} ; kill-server",
    b"%end 1 2 1",
    "rocket \u{1f680} \u{e9}\u{301}".as_bytes(),
    b"bad \xff\xfe utf8",
    b"back\\slash",
];

#[test]
fn odd_names_stay_names() {
    let scene = Scene::new(Start::default());
    let agent = scene.agent("other", "plain");
    let long = "x".repeat(300);
    let bytes: Vec<&[u8]> = ODD.into_iter().chain([long.as_bytes()]).collect();
    for name in bytes {
        odd_name(&scene, &agent, name);
    }
    assert!(!scene.home.home().join("pwned").exists(), "a name ran a command");
    assert!(!agent.root.join("pwned").exists(), "a name ran a command");
    scene.home.all_live(&[&agent]);
    assert_eq!(scene.home.records().len(), 1);
    scene.tmux.ok(["kill-window", "-t", &agent.pane.window]);
    scene.home.until_ended(&agent.id);
}

/// Renames to `name` as data, then to a plain name, which proves that the odd one was taken in on the way.
fn odd_name(scene: &Scene, agent: &Agent, name: &[u8]) {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(name);
    let mut command = scene.tmux.command(["rename-window", "-t", &agent.pane.window]);
    // a rename expands formats: what is to arrive as `#` is given as `##`
    let escaped: Vec<u8> = name
        .as_bytes()
        .iter()
        .flat_map(|byte| {
            let count = if *byte == b'#' { 2 } else { 1 };
            std::iter::repeat_n(*byte, count)
        })
        .collect();
    command.arg("--").arg(std::ffi::OsStr::from_bytes(&escaped));
    let renamed = crate::support::Ran::run(&mut command);
    if !renamed.status.success() {
        // 3.7 and later refuse control characters and invalid UTF-8 in names
        assert!(renamed.errors().contains("invalid"), "{renamed}");
        return;
    }
    let stored = scene.tmux.format(&agent.pane.id, "#{window_name}");
    scene.home.until_window(&agent.id, &stored);
    scene.home.all_live(&[agent]);
    assert_eq!(scene.home.records().len(), 1, "{stored:?} makes no second record");
    let listed = scene.home.ait(["record", "list"]).ok().text();
    assert_eq!(listed.lines().count(), 1, "{stored:?} makes no second line: {listed}");
}

#[test]
fn an_agent_signed_in_under_an_odd_name_is_one_record() {
    let scene = Scene::new(Start::default());
    for (at, name) in ["a|b", "#{pid}", "two words", "q'u\"o", "-n", "\u{1f680}"].into_iter().enumerate() {
        let escaped = name.replace('#', "##");
        let root = scene.home.project("alpha");
        let pane = scene.tmux.window("main", "x", &root, &scene.home.stand_in(&[]));
        scene.tmux.ok(["rename-window", "-t", &pane.window, "--", &escaped]);
        let agent = Agent::sign(&scene.tmux, pane, &root, name);
        scene.supervisor.watching(&scene.tmux, at as u64 + 1);
        let stored = scene.tmux.format(&agent.pane.id, "#{window_name}");
        scene.home.until_window(&agent.id, &stored);
        assert_eq!(scene.home.records().len(), at + 1);
        scene.home.all_live(&[&agent]);
    }
}

#[test]
fn a_session_with_an_odd_name_is_watched() {
    let scene = Scene::new(Start::default());
    for name in ["two words", "a:b.c", "$x{y}", "#S", "-s", "_ait2", "\u{1f680}"] {
        let pane = session(&scene.tmux, name);
        let window = format!("in {}", pane.id);
        let root = scene.home.project("alpha");
        scene.tmux.ok(["rename-window", "-t", &pane.window, &window]);
        let agent = Agent::sign(&scene.tmux, pane, &root, &window);
        scene.tmux.ok(["rename-window", "-t", &agent.pane.window, "renamed"]);
        scene.home.until_window(&agent.id, "renamed");
        scene.tmux.ok(["kill-session", "-t", &agent.pane.session]);
        scene.home.until_ended(&agent.id);
    }
}

fn session(tmux: &Tmux, name: &str) -> Pane {
    let words = tmux.home().stand_in(&[]);
    // formats are expanded here too
    tmux.session(&name.replace('#', "##"), &tmux.home().home(), &words)
}

#[test]
fn the_c_locale_loses_no_name() {
    let environment = [("LANG", "C"), ("LC_ALL", "C")].map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
    let home = Home::new();
    let tmux = Tmux::start_with(&home, Start { environment, ..Start::default() });
    let supervisor = Supervisor::launch(&home, &[&tmux], &[("LANG", "C"), ("LC_ALL", "C")]);
    supervisor.ready();
    let agent = Agent::start(&tmux, "main", "plain");
    supervisor.watching(&tmux, 1);
    for name in ["caf\u{e9}", "\u{1f680} lift", "\u{65e5}\u{672c}"] {
        tmux.ok(["rename-window", "-t", &agent.pane.window, name]);
        home.until_window(&agent.id, name);
    }
    home.all_live(&[&agent]);
}
