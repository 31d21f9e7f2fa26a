//! The session commands at 1,000 sessions: `list` and `glance` against the one look at tmux that neither can do without, `start`
//! against the agent's own coming up, as it is when nobody is in between.
//!
//! All of it on tmpfs and on a private tmux server. Of a start, the agent's own time is taken off: what is left is ours.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::figures::{Row, Samples};
use super::support::{AIT, Home, Ran, Tmux};

/// Sessions there are.
const SESSIONS: u32 = 1_000;
/// Rounds of each.
const ROUNDS: (usize, usize) = (200, 30);

pub(crate) fn run() -> Vec<Row> {
    let home = Home::on_tmpfs();
    let tmux = Tmux::start(&home);
    home.agent_program("claude");
    let root = home.project("alpha");
    let at = |words: &[&str]| {
        let mut command = home.ait_command(words);
        command.current_dir(&root);
        command
    };
    let started = Ran::run(&mut at(&["start", "--agent", "claude", "--id", "one", "--format", "json"])).ok();
    let first = started.json()["data"]["id"].as_str().expect("an id").to_owned();
    fill(&home, &first);

    let look = ["list-panes", "-a", "-F", "#{pid} #{pane_id} #{pane_pid} #{window_activity}"];
    let mut floor = || tmux.command(look);
    let list = pairs(ROUNDS.0, &mut floor, &mut || at(&["list", "--format", "json"]));
    let glance = pairs(ROUNDS.0, &mut floor, &mut || at(&["glance", "one", "--format", "json"]));

    // an agent that stands as soon as it runs: what passes until its record is live is the start's own
    home.script("quick", "#!/bin/sh\nprintf '\\033]0;✓ x\\007❯ '\nread -r line\n");
    let quick = home.bin().join("quick").display().to_string();
    let mut bare = || tmux.command(["new-window", "-d", "-P", "-F", "#{pane_id}", "--", &quick, "x"]);
    let mut names = 0..;
    let mut start = || {
        let name = format!("s{}", names.next().unwrap_or_default());
        at(&["start", "--agent", "hermes", "--agent-bin", &quick, "--id", &name, "--format", "json"])
    };
    let starts = pairs(ROUNDS.1, &mut bare, &mut start);
    let rows = vec![
        Row::new("list of 1,000 sessions", list.1, list.0, "<= 15 ms"),
        Row::new("glance at one of 1,000", glance.1, glance.0, "<= 15 ms"),
        Row::new("start beside 1,000", starts.1, starts.0, "<= 100 ms of ours"),
    ];
    tmux.ok(["kill-server"]);
    rows
}

/// As many sessions as that, each a copy of the first.
fn fill(home: &Home, first: &str) {
    let text = std::fs::read_to_string(home.store()).expect("the store");
    let mut store: Value = serde_json::from_str(&text).expect("JSON");
    let all = store["sessions"].as_array_mut().expect("records");
    let one = all.iter().find(|record| record["id"] == first).expect("the first").clone();
    for number in 1..SESSIONS {
        let mut copy = one.clone();
        copy["id"] = format!("{:08x}", 0xabc0_0000_u32 + number).into();
        copy["window_slot"] = (number + 10).into();
        copy["ait"]["session"]["name"] = format!("copy-{number}").into();
        all.push(copy);
    }
    std::fs::write(home.store(), serde_json::to_string_pretty(&store).expect("JSON") + "\n")
        .expect("a write");
}

/// The floor and the command in turn, so that a slow moment hits both.
fn pairs(
    rounds: usize,
    floor: &mut dyn FnMut() -> Command,
    command: &mut dyn FnMut() -> Command,
) -> (Samples, Samples) {
    let (mut least, mut ours) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        least.push(timed(floor()));
        ours.push(timed(command()));
    }
    (least, ours)
}

fn timed(mut command: Command) -> Duration {
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let took = begin.elapsed();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} of {AIT}");
    took
}
