//! Our own share of a recovery, per agent: twelve agents in windows of their own, their server killed, `ait recover` by hand.
//!
//! The span of an agent runs from the moment the recovery turns to it (its beginning, or the agent before it being up) until it is
//! launched; what tmux took within those spans, as a wrapper in its place measured it, is left out, and so is all that an agent
//! does after its launch. Counted as ours: every process of `ait`, the login shell's environment, the checks on disk, and the
//! start of the wrapper itself. `ait exec`, which becomes the agent, is measured apart, as what it adds to the start of a
//! program, and added. The floor is a start of `/bin/true`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::support::tmux::real_binary;
use super::support::{Fake, Home, Supervisor, Tmux};

/// Agents.
const AGENTS: usize = 12;
/// Starts of a program, with and without `ait exec`.
const ROUNDS: usize = 50;

pub(crate) fn run() {
    let home = Home::on_tmpfs();
    let settings = home.home().join(".config/ait");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "recover = \"offer\"\n").unwrap();
    let tmux = Tmux::start(&home);
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    let root = home.project("alpha");
    let ids: Vec<String> = (0..AGENTS)
        .map(|number| {
            let agent = Fake::claude(&tmux, "main", &format!("w{number}"), &root);
            agent.prompt(&tmux, "one");
            agent.adopt(&tmux)
        })
        .collect();
    supervisor.watching(&tmux, AGENTS as u64);
    tmux.kill(Signal::KILL);
    home.store_until("all to be lost", |home| {
        let lost = |id: &String| home.record(id).is_some_and(|record| record["ait"]["lost"].is_object());
        ids.iter().all(lost).then_some(())
    });
    supervisor.kill();

    let calls = home.root().join("calls");
    home.script(
        "tmux",
        &format!(
            "#!/bin/bash\na=$EPOCHREALTIME\n'{}' \"$@\"\ncode=$?\necho \"${{a/./}} ${{EPOCHREALTIME/./}}\" >>'{}'\nexit $code\n",
            real_binary().display(),
            calls.display()
        ),
    );
    let mut command = home.ait_command(["recover", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let (mut since, mut spans) = (Some(micros()), Vec::new());
    let mut child = command.spawn().unwrap();
    let mut back = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let told: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let now = micros();
        if told["step"] == "launched" {
            spans.extend(since.take().map(|since| (since, now)));
        } else if told["step"] == "standing" || told["end"].is_string() {
            since.get_or_insert(now);
        }
        back += usize::from(told["word"] == "verified");
    }
    child.wait().unwrap();
    tmux.remember();
    assert_eq!((back, spans.len()), (AGENTS, AGENTS), "all are back, each launched once");
    home.unwrap_tmux();
    let whole: u64 = spans.iter().map(|(from, to)| to - from).sum();
    let within = |from: u64, to: u64| -> u64 {
        spans.iter().map(|(a, b)| to.min(*b).saturating_sub(from.max(*a))).sum()
    };
    let text = fs::read_to_string(&calls).unwrap();
    let times: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let (from, to) = line.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        })
        .collect();
    let tmuxs: u64 = times.iter().map(|(from, to)| within(*from, *to)).sum();

    home.script("claude", "#!/bin/sh\nexit 0\n");
    let program = home.bin().join("claude");
    let exec = ["exec", "--record", &ids[0], "--", "claude"];
    let with = median(|| home.ait_command(exec));
    let without = median(|| home.command(&program));
    let floor = median(|| home.command("/bin/true"));
    let ms = |micros: u64| micros as f64 / 1000.0;
    let (ours, exec) = (whole.saturating_sub(tmuxs) / AGENTS as u64, with.saturating_sub(without));
    println!(
        "recovery, {AGENTS} agents: our own share of one {:.1} ms ({:.1} until it is launched, {:.1} in `ait exec`); tmux {:.1} ms \
         in {:.1} calls; /bin/true {:.1} ms; goal 50 ms",
        ms(ours + exec),
        ms(ours),
        ms(exec),
        ms(tmuxs / AGENTS as u64),
        times.len() as f64 / AGENTS as f64,
        ms(floor),
    );
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_micros() as u64
}

/// What a program takes from its start to its end, in microseconds.
fn median(command: impl Fn() -> std::process::Command) -> u64 {
    let mut all: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let mut command = command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            assert!(command.status().unwrap().success());
            begun.elapsed().as_micros() as u64
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2]
}
