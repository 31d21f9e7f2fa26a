//! `ait demo`: right from its first act to its last, in every terminal, and nothing is left.

use std::time::Duration;

use crate::support::tmux::Start;
use crate::support::{AIT, Home, Ran, Tmux, proc, wait, wait_until};

/// The demo ends by itself in well under a minute; a loaded machine is given more.
const WHOLE: Duration = Duration::from_secs(100);

/// Its temporary folder lies in the story's, so that the story's own check finds what it leaves.
fn stage(home: &Home) -> std::path::PathBuf {
    let folder = home.root().join("t");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn nothing_left(home: &Home, except: &[proc::Process]) {
    let left: Vec<_> = std::fs::read_dir(stage(home)).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "folders left: {left:?}");
    let left: Vec<String> = home
        .processes()
        .into_iter()
        .filter(|process| !except.contains(process))
        .filter(|process| !proc::command(process.pid).starts_with("sh"))
        .map(|process| proc::command(process.pid))
        .collect();
    assert!(left.is_empty(), "processes left: {left:?}");
}

#[test]
fn it_sees_everything_right_and_leaves_nothing() {
    let home = Home::new();
    let mut command = home.ait_command(["demo"]);
    command.env("TMPDIR", stage(&home)).env("NO_COLOR", "1");
    let ran = Ran::run(&mut command).ok();
    let text = ran.text();
    println!("{text}");
    assert!(!text.contains('\x1b'), "no colour where none is wanted");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "wrapped");
    for words in
        ["agent_crashed", "server_stopped", "server_crashed", "one write", "none is doubled", "setup"]
    {
        assert!(text.contains(words), "{words:?} is not told:\n{text}");
    }
    nothing_left(&home, &[]);
    assert!(!home.store().exists(), "the user's own store is not touched");
}

#[test]
fn freezing_restoring_and_a_killed_server_are_seen_right_and_nothing_is_left() {
    let home = Home::new();
    let mut command = home.ait_command(["demo", "--recover"]);
    command.env("TMPDIR", stage(&home)).env("NO_COLOR", "1");
    let ran = Ran::run(&mut command).ok();
    let text = ran.text();
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "wrapped");
    for words in [
        "is frozen",
        "is live again",
        "turn 2, 1 earlier",
        "SIGKILL to the tmux server",
        "all four are live again on a new server; none is doubled",
        "all 3 acts were seen right",
    ] {
        assert!(text.contains(words), "{words:?} is not told:\n{text}");
    }
    nothing_left(&home, &[]);
    assert!(!home.store().exists(), "the user's own store is not touched");
}

#[test]
fn it_fits_a_narrow_terminal() {
    let home = Home::new();
    let tmux = Tmux::start_with(&home, Start::default());
    let folder = stage(&home);
    let line = format!("TMPDIR='{}' '{AIT}' demo; echo ended with $?; exec sleep 1000000", folder.display());
    let go = "read go; ".to_owned() + &line;
    let pane = tmux.session("narrow", &home.home(), &["sh", "-c", &go]);
    tmux.ok(["resize-window", "-t", &pane.window, "-x", "34", "-y", "200"]);
    tmux.ok(["send-keys", "-t", &pane.id, "go", "Enter"]);
    let screen = wait_until("the demo to end", WHOLE, || {
        let screen = tmux.ok(["capture-pane", "-p", "-S", "-", "-t", &pane.id]);
        screen.contains("ended with").then_some(screen)
    });
    assert!(screen.contains("ended with 0"), "{screen}");
    assert!(screen.contains("  saw    six live records"), "{screen}");
    assert!(screen.contains("\nnext:"), "{screen}");
    let wide = screen.lines().filter(|line| line.chars().count() > 34).count();
    assert_eq!(wide, 0, "{screen}");
    assert!(screen.contains("\n         "), "continued lines are indented: {screen}");
    assert!(std::fs::read_dir(&folder).unwrap().next().is_none(), "folders left");
}

#[test]
fn interrupted_or_killed_it_leaves_nothing_either() {
    let acts = [("demo", "an agent is killed"), ("demo --recover", "the tmux server is killed")];
    for ((words, act), key) in acts.into_iter().flat_map(|act| ["C-c", "TERM", "KILL"].map(|key| (act, key)))
    {
        let home = Home::new();
        let tmux = Tmux::start_with(&home, Start::default());
        let folder = stage(&home);
        let line =
            format!("TMPDIR='{}' '{AIT}' {words}; echo ended with $?; exec sleep 1000000", folder.display());
        let pane = tmux.session("demo", &home.home(), &["sh", "-c", &line]);
        tmux.ok(["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"]);
        let screen = || tmux.ok(["capture-pane", "-p", "-S", "-", "-t", &pane.id]);
        let comes = wait::within(WHOLE, || screen().contains(act).then_some(()));
        assert!(comes.is_some(), "{words} does not come to `{act}`:\n{}", screen());
        let ours = |process: &proc::Process| proc::command(process.pid).ends_with(&format!(" {words}"));
        if key == "C-c" {
            tmux.ok(["send-keys", "-t", &pane.id, "C-c"]);
        } else {
            let demo = proc::children(pane.pid).into_iter().find(ours);
            let signal =
                if key == "KILL" { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
            demo.expect("the demo runs").signal(signal);
        }
        wait_until("the demo to be gone", WHOLE, || {
            let gone = !proc::children(pane.pid).iter().any(ours);
            (gone && std::fs::read_dir(&folder).unwrap().next().is_none()).then_some(())
        });
        let left = || -> Vec<String> {
            let lines = home.processes().into_iter().map(|process| proc::command(process.pid));
            lines.filter(|line| line.contains("ait-demo-")).collect()
        };
        if key == "KILL" {
            // whoever struck the stage in its place goes last
            wait_until("the guardian to be gone", WHOLE, || left().is_empty().then_some(()));
        }
        assert!(left().is_empty(), "processes left: {:?}", left());
    }
}
