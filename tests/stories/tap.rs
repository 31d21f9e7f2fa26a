//! What an agent tells its terminal of its turn, read behind a pipe of its pane: only where it was asked for, and in nobody's way.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::sessions::{ait, data};
use crate::support::proc::Process;
use crate::support::{DEADLINE, Home, Supervisor, Tmux, wait, wait_until};

fn settings(home: &Home, text: &str) {
    let folder = home.home().join(".config/ait");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// Starts an agent; its record and its pane.
#[track_caller]
fn started(home: &Home, kind: &str) -> (String, String) {
    home.agent_program(kind);
    let told = data(&ait(home, &["start", "--agent", kind, "--format", "json"]).ok(), "start");
    let id = told["id"].as_str().unwrap().to_owned();
    let pane = home.record(&id).unwrap()["pane_id"].as_str().unwrap().to_owned();
    (id, pane)
}

/// What a source says of an agent's turn, as it is written.
fn claim(home: &Home, id: &str, source: &str) -> Value {
    let path = home.home().join(format!(".local/state/ait/sessions/{id}/activity.json"));
    let all: Value =
        fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    all["claims"][source]["state"].clone()
}

fn tapped(tmux: &Tmux, pane: &str) -> bool {
    tmux.format(pane, "#{pane_pipe}") == "1"
}

#[test]
fn nothing_is_read_unless_it_is_asked_for() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (id, pane) = started(&home, "codex");
    assert!(!tapped(&tmux, &pane));
    assert_eq!(claim(&home, &id, "osc7501"), Value::Null);
}

#[test]
fn what_an_agent_tells_its_terminal_is_known_with_its_source() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, "[signals]\ntap = true\n");
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let (id, pane) = started(&home, "codex");
    assert!(tapped(&tmux, &pane));
    ait(&home, &["send", &id, "--text", "long [[ms=1000000]]", "--submit"]);
    wait_until("it to be working by its own word", DEADLINE, || {
        (claim(&home, &id, "osc7501") == "working").then_some(())
    });
    let why = home.ait(["explain", &id]).ok().text();
    assert!(why.contains("source  osc7501"), "{why}");
    ait(&home, &["send", &id, "--key", "escape"]).ok();
    wait_until("it to wait by its own word", DEADLINE, || {
        (claim(&home, &id, "osc7501") == "waiting").then_some(())
    });
    // a pipe that the user closes stays closed, also when it comes back another time
    tmux.ok(["pipe-pane", "-t", &pane]);
    ait(&home, &["send", &id, "--text", "more [[ms=1]]", "--submit"]);
    assert!(!tapped(&tmux, &pane));
    ait(&home, &["delete", &id]).ok();
    wait_until("its process to end with its pane", DEADLINE, || taps(&home).is_empty().then_some(()));
}

/// The taps that run.
fn taps(home: &Home) -> Vec<Process> {
    let is_tap = |process: &Process| {
        fs::read(format!("/proc/{}/cmdline", process.pid))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"tap"))
    };
    home.processes().into_iter().filter(is_tap).collect()
}

#[test]
fn a_pipe_of_the_users_own_is_left_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, "[signals]\ntap = true\n");
    let own = home.root().join("own");
    for made in ["after-new-window", "after-new-session"] {
        tmux.ok(["set-hook", "-g", made, &format!("pipe-pane -O 'cat >> {}'", own.display())]);
    }
    let (id, pane) = started(&home, "codex");
    assert!(tapped(&tmux, &pane));
    assert!(taps(&home).is_empty(), "{id}: the user's own pipe stays the only one");
    wait_until("what it writes", DEADLINE, || {
        fs::read(&own).is_ok_and(|text| !text.is_empty()).then_some(())
    });
}

#[test]
fn a_flood_is_drained_however_slow_the_writing_is() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    settings(&home, "[signals]\ntap = true\n");
    let (id, pane) = started(&home, "codex");
    // whoever writes of its turn waits for this lock as long as it ever does
    let folder = home.home().join(".local/state/ait/sessions").join(&id);
    fs::create_dir_all(&folder).unwrap();
    let folder = fs::File::open(folder).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let server = tmux.server();
    let before = server.resident().unwrap().own;
    let text = "for n in $(seq 300); do for s in working idle; do printf '\\033]7501;state=%s:app=codex\\007' $s; done; \
                head -c 65536 /dev/zero | tr '\\0' x; done; printf '\\033]7501;state=blocked:app=codex:kind=question\\007'; \
                echo; echo flooded; exec sleep 1000000";
    let flood = home.script("flood", &format!("#!/bin/bash\n{text}\n"));
    tmux.ok(["respawn-pane", "-k", "-t", &pane, flood.to_str().unwrap()]);
    wait_until("the end of the flood", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane]).contains("flooded").then_some(())
    });
    let grown = server.resident().unwrap().own.saturating_sub(before);
    // 20 MB went through, and the history of a pane holds 2,000 lines
    assert!(grown < 12 << 20, "tmux grew by {grown} bytes");
    drop(folder);
    wait_until("the last word of all", DEADLINE, || {
        (claim(&home, &id, "osc7501") == "needs_input").then_some(())
    });
}

/// A pi that speaks OSC 7501 only to a terminal that says it understands.
const PI: &str = "#!/bin/bash\n\
    stty raw -echo\n\
    printf 'pi v1\\r\\nmock-model\\r\\n'\n\
    IFS= read -r -d '\\' -t 20 answer || exit 1\n\
    [ \"$answer\" = $'\\e]7501;?\\e' ] || { printf 'odd: %q' \"$answer\"; exec sleep 1000000; }\n\
    printf '\\033]7501;state=working:app=pi\\007'\n\
    exec sleep 1000000\n";

#[test]
fn one_of_which_nothing_else_tells_is_answered_if_that_is_asked_for() {
    for answer in [true, false] {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        settings(&home, &format!("[signals]\ntap = true\nanswer = {answer}\n"));
        home.script("pi", PI);
        let told = data(&ait(&home, &["start", "--agent", "pi", "--format", "json"]).ok(), "start");
        let id = told["id"].as_str().unwrap();
        let working = || (claim(&home, id, "osc7501") == "working").then_some(());
        if answer {
            wait_until("its own word", DEADLINE, working);
        } else {
            wait::stays("nobody types into it", Duration::from_secs(2), || working().is_none());
        }
        let screen =
            tmux.ok(["capture-pane", "-p", "-t", home.record(id).unwrap()["pane_id"].as_str().unwrap()]);
        assert!(!screen.contains("7501"), "{screen}");
    }
}

/// An agent that writes when it is written to, and of which nothing else tells.
const SILENT: &str = "#!/bin/bash\nwhile IFS= read -r line; do printf 'heard\\n'; done\nexec sleep 1000000\n";

#[test]
fn silence_is_a_guess_that_nothing_acts_on_and_output_takes_it_back() {
    for tracking in [true, false] {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        settings(&home, &format!("tracking = {tracking}\n[signals]\ntap = true\n"));
        let _supervisor = Supervisor::start(&home, &[&tmux]);
        home.script("claude", SILENT);
        let told = data(&ait(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
        let id = told["id"].as_str().unwrap();
        let pane = home.record(id).unwrap()["pane_id"].as_str().unwrap().to_owned();
        assert!(tapped(&tmux, &pane));
        let quiet = || (claim(&home, id, "timing") == "waiting").then_some(());
        if !tracking {
            wait::stays("nobody guesses", Duration::from_secs(13), || quiet().is_none());
            continue;
        }
        wait_until("its silence", DEADLINE, quiet);
        let why = ait(&home, &["explain", id]).ok().text();
        assert!(why.contains("waiting?") && why.contains("timing?"), "{why}");
        ait(&home, &["wait", id, "--until", "waiting", "--timeout", "1s"]).code(13);
        let refused = home.ait(["freeze", id, "--json"]).code(12).json();
        assert_eq!(refused["word"], "unknown", "{refused}");
        tmux.ok(["send-keys", "-t", &pane, "x", "Enter"]);
        wait_until("its output", DEADLINE, || claim(&home, id, "timing").is_null().then_some(()));
        wait_until("its silence again", DEADLINE, quiet);
    }
}
