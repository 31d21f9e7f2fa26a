//! `ait exec`: an agent comes back with the surroundings it was recorded with, and only then.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Home, Tmux, proc, wait_until};

/// The environment of a process.
fn environment(pid: u32) -> BTreeMap<String, String> {
    let text = String::from_utf8(fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
    text.split('\0').filter_map(|pair| pair.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
}

/// The record `ait adopt` makes of the agent in a pane.
#[track_caller]
fn adopted(tmux: &Tmux, pane: &Pane) -> Value {
    let mut command = tmux.home().ait_command(["adopt", &pane.id, "--socket"]);
    command.arg(tmux.socket());
    crate::support::Ran::run(&mut command).ok();
    let id = tmux.format(&pane.id, "#{@aitask_record}");
    tmux.home().record(&id).unwrap_or_else(|| panic!("no record {id:?}"))
}

/// A pane that shows `text`.
#[track_caller]
fn until_shown(tmux: &Tmux, pane: &str, text: &str) {
    wait_until(&format!("{text:?} on the screen of {pane}"), DEADLINE, || {
        let screen = tmux.ok(["capture-pane", "-p", "-t", pane]);
        screen.contains(text).then_some(()).or_else(|| {
            eprintln!("it shows {:?}", screen.trim_end());
            None
        })
    });
}

/// Replaces what a pane runs, with the marks of another agent and another account around it.
#[track_caller]
fn respawn(tmux: &Tmux, pane: &str, words: &[&str]) -> u32 {
    tmux.ok(["set-option", "-p", "-t", pane, "remain-on-exit", "on"]);
    let mut line = vec!["respawn-pane", "-k", "-t", pane, "-c", "/"];
    line.extend([
        "-e",
        "CLAUDECODE=1",
        "-e",
        "CLAUDE_CODE_SESSION_ID=other",
        "-e",
        "CLAUDE_CONFIG_DIR=/other",
    ]);
    line.push("--");
    line.extend(words);
    tmux.ok(line);
    tmux.format(pane, "#{pane_pid}").parse().unwrap()
}

#[test]
fn the_recorded_surroundings_come_back_and_the_pid_stays() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "agent", &root, &home.stand_in(&["--say", "first"]));
    until_shown(&tmux, &pane.id, "first");
    let record = adopted(&tmux, &pane);
    let id = record["id"].as_str().unwrap();
    assert!(record["ait"]["env"]["PATH"].is_string(), "{record:#}");

    let words = ["claude", "demo-agent", "--say", "a  b; $HOME #{pid}"];
    let line: Vec<&str> = [AIT, "exec", "--record", id, "--"].into_iter().chain(words).collect();
    let pid = respawn(&tmux, &pane.id, &line);
    until_shown(&tmux, &pane.id, "a  b; $HOME #{pid}");
    assert_eq!(tmux.format(&pane.id, "#{pane_pid}"), pid.to_string());
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), root);
    assert!(proc::command(pid).starts_with("claude demo-agent"), "{}", proc::command(pid));
    let seen = environment(pid);
    for marker in ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CONFIG_DIR", "AITASK_RESTORE_NONCE"] {
        assert!(!seen.contains_key(marker), "{marker}: {seen:#?}");
    }
    assert_eq!(seen["PATH"], record["ait"]["env"]["PATH"].as_str().unwrap());
    assert_eq!(seen["TMUX_PANE"], pane.id);
}

#[test]
fn what_is_missing_is_said_and_nothing_runs() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let folder = root.join("deep");
    fs::create_dir(&folder).unwrap();
    let pane = tmux.window("main", "agent", &folder, &home.stand_in(&["--say", "first"]));
    until_shown(&tmux, &pane.id, "first");
    let id = adopted(&tmux, &pane)["id"].as_str().unwrap().to_owned();
    let run = |words: &[&str]| {
        let line: Vec<&str> =
            ["exec", "--record", id.as_str()].into_iter().chain(words.iter().copied()).collect();
        home.ait(line)
    };
    let told = run(&["--", "no-such-agent"]).code(127);
    assert!(told.errors().contains("no-such-agent is neither"), "{told}");
    let told = run(&["--nonce", "00000000", "--", "claude"]).code(121);
    assert!(told.errors().contains("not being restored"), "{told}");
    let told = run(&["--nonce", "00000000", "--mark", "--", "claude"]).code(122);
    assert!(told.errors().contains("no pane of tmux"), "{told}");
    home.ait(["exec", "--record", "00000000", "--", "claude"]).code(121);
    tmux.ok(["respawn-pane", "-k", "-c", "/", "-t", &pane.id, "sleep 1000"]);
    fs::remove_dir(&folder).unwrap();
    let told = run(&["--", "claude", "demo-agent"]).code(125);
    assert!(told.errors().contains("deep is gone"), "{told}");
}

#[test]
fn below_a_shell_the_agent_is_in_front_and_the_shell_comes_back() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "agent", &root, &["sh"]);
    tmux.ok(["send-keys", "-t", &pane.id, "claude demo-agent --say first", "Enter"]);
    // typed before the shell has drawn its prompt, the line is shown twice
    wait_until("the agent's word", DEADLINE, || {
        let screen = tmux.ok(["capture-pane", "-p", "-t", &pane.id]);
        screen.lines().any(|line| line.ends_with("first") && !line.contains("--say")).then_some(())
    });
    let record = adopted(&tmux, &pane);
    let id = record["id"].as_str().unwrap();
    assert_eq!(record["ait"]["host"]["kind"], "shell", "{record:#}");

    let words =
        [AIT, "exec", "--below-shell", "--record", id, "--", "claude", "demo-agent", "--say", "again"];
    let pid = respawn(&tmux, &pane.id, &words);
    until_shown(&tmux, &pane.id, "again");
    let agent = wait_until("the agent below", DEADLINE, || proc::children(pid).first().copied());
    assert_eq!(foreground(pid), agent.pid as i32, "the agent has the terminal");
    // typed keys reach it, and a stop from the terminal does not leave a dead pane
    tmux.ok(["send-keys", "-t", &pane.id, "C-z"]);
    tmux.ok(["send-keys", "-t", &pane.id, "hello", "Enter"]);
    until_shown(&tmux, &pane.id, "> hello");
    tmux.ok(["send-keys", "-t", &pane.id, "exit 3", "Enter"]);
    assert!(agent.dies(DEADLINE));
    wait_until("the shell", DEADLINE, || (proc::command(pid) == "sh").then_some(()));
    tmux.ok(["send-keys", "-t", &pane.id, "echo \"in $PWD\" $CLAUDECODE.", "Enter"]);
    until_shown(&tmux, &pane.id, &format!("in {} .", root.display()));
    assert_eq!(tmux.format(&pane.id, "#{pane_pid} #{pane_dead}"), format!("{pid} 0"));

    // a pane that is closed takes the agent along
    let pid = respawn(&tmux, &pane.id, &words);
    let agent = wait_until("the agent below", DEADLINE, || {
        proc::children(pid).first().copied().filter(|agent| proc::command(agent.pid).starts_with("claude"))
    });
    tmux.ok(["kill-pane", "-t", &pane.id]);
    assert!(agent.dies(DEADLINE), "it is hung up with its pane");
}

/// The foreground group of a process's terminal.
fn foreground(pid: u32) -> i32 {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(5).unwrap().parse().unwrap()
}
