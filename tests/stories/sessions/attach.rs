//! Attaching: a terminal shows a session, leaves it with the session running, and what does not come to that is told.

use std::io::{Read, Write};
use std::process::Stdio;

use super::{ait, data, habits};
use crate::support::run::Running;
use crate::support::{AIT, DEADLINE, Home, Tmux, wait_until};

/// A terminal in which `ait attach` runs.
struct Terminal(Running);

impl Terminal {
    fn start(home: &Home, word: &str, term: &str) -> Terminal {
        let mut command = home.command("script");
        command.args(["-q", "-f", "-e", "-c", &format!("'{AIT}' attach {word}"), "/dev/null"]);
        command.env("TERM", term).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Terminal(Running::start(&mut command))
    }

    fn sends(&mut self, bytes: &[u8]) {
        let pipe = self.0.child().stdin.as_mut().unwrap();
        pipe.write_all(bytes).and_then(|()| pipe.flush()).unwrap();
    }

    /// How it ended, and all it showed.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut shown = String::new();
        let mut out = self.0.child().stdout.take().unwrap();
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = out.read_to_end(&mut bytes);
            bytes
        });
        let status = self.0.join(DEADLINE);
        shown.push_str(&String::from_utf8_lossy(&read.join().unwrap()));
        (status.code(), shown)
    }
}

/// The control clients there are.
fn listeners(tmux: &Tmux) -> Vec<String> {
    let told = tmux.ok(["list-clients", "-F", "#{client_control_mode} #{client_name} #{session_name}"]);
    told.lines().filter_map(|line| line.strip_prefix("1 ").map(str::to_owned)).collect()
}

#[test]
fn from_a_pane_that_no_terminal_shows_nobody_is_sent_there() {
    let home = Home::new();
    let tmux = habits(&home);
    let start = ["start", "--agent", "claude", "--id", "one", "--session", "apart", "--format", "json"];
    data(&ait(&home, &start).ok(), "start");
    let _supervisor = crate::support::Supervisor::start(&home, &[&tmux]);
    let pane = tmux.window("main", "shell", &home.project("alpha"), &["sh"]);
    // somebody looks at another session, and the supervisor listens
    tmux.ok(["new-session", "-d", "-s", "elsewhere", "exec sleep 1000"]);
    let terminal = crate::support::terminal::Terminal::attach(&tmux, Some("elsewhere"));
    let before = wait_until("the supervisor's client", DEADLINE, || {
        let listeners = listeners(&tmux);
        (listeners.len() == 1).then_some(listeners)
    });
    let typed = format!("'{AIT}' attach one; echo it ended with $?");
    tmux.ok(["send-keys", "-t", &pane.id, "-l", &typed]);
    tmux.ok(["send-keys", "-t", &pane.id, "Enter"]);
    let said = wait_until("how it ended", DEADLINE, || {
        let screen = tmux.ok(["capture-pane", "-p", "-J", "-t", &pane.id]);
        screen.contains("it ended with 69").then_some(screen)
    });
    assert!(said.contains("no terminal shows the pane this runs in"), "{said}");
    assert_eq!(terminal.session(&tmux), "elsewhere");
    assert_eq!(listeners(&tmux), before);
}

/// The panes that terminals show.
fn shown(tmux: &Tmux) -> Vec<String> {
    let told = tmux.ok(["list-clients", "-F", "#{client_control_mode} #{session_name} #{pane_id}"]);
    told.lines().filter_map(|line| line.strip_prefix("0 ").map(str::to_owned)).collect()
}

#[test]
fn a_terminal_shows_the_session_and_leaves_it_running() {
    let home = Home::new();
    let tmux = habits(&home);
    // two windows in one session, of which the other one is in front
    let start = |id: &str| {
        data(&ait(&home, &["start", "--agent", "claude", "--id", id, "--format", "json"]).ok(), "start")
    };
    let (one, other) = (start("one"), start("two"));
    let pane = |seen: &serde_json::Value| seen["location"]["pane"].as_str().unwrap().to_owned();
    tmux.ok(["select-window", "-t", &pane(&other)]);
    let mut terminal = Terminal::start(&home, "one", "xterm-256color");
    let wanted = format!("alpha {}", pane(&one));
    wait_until("the terminal to show the session", DEADLINE, || {
        (shown(&tmux) == [wanted.as_str()]).then_some(())
    });
    // what is typed reaches the agent
    terminal.sends(b"hello there");
    wait_until("the words in its prompt line", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane(&one)]).contains("hello there").then_some(())
    });
    // the prefix and d
    terminal.sends(b"\x02d");
    let (code, text) = terminal.ended();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("[detached (from session alpha)]"), "{text}");
    assert!(shown(&tmux).is_empty());
    let still = data(&ait(&home, &["show", "one", "--format", "json"]).ok(), "show");
    assert_eq!((&still["status"], &still["location"]), (&"running".into(), &one["location"]));
}

#[test]
fn a_terminal_that_cannot_show_it_is_told() {
    let home = Home::new();
    let tmux = habits(&home);
    data(&ait(&home, &["start", "--agent", "claude", "--id", "one", "--format", "json"]).ok(), "start");
    let (code, text) = Terminal::start(&home, "one", "no-such-terminal").ended();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("terminal"), "{text}");
    let (code, text) = Terminal::start(&home, "nobody", "xterm").ended();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("error: there is no session nobody"), "{text}");
    assert!(shown(&tmux).is_empty());
}

#[test]
fn within_the_same_tmux_its_terminal_goes_there() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = data(
        &ait(&home, &["start", "--agent", "claude", "--id", "one", "--session", "apart", "--format", "json"])
            .ok(),
        "start",
    );
    let pane = tmux.window("main", "shell", &home.project("alpha"), &["sh"]);
    let terminal = crate::support::terminal::Terminal::attach(&tmux, Some("main"));
    tmux.ok(["select-window", "-t", &pane.id]);
    wait_until("a prompt", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains(['$', '#']).then_some(())
    });
    tmux.ok(["send-keys", "-t", &pane.id, "-l", &format!("'{AIT}' attach one; echo it ended with $?")]);
    tmux.ok(["send-keys", "-t", &pane.id, "Enter"]);
    wait_until("the terminal to go there", DEADLINE, || (terminal.session(&tmux) == "apart").then_some(()));
    assert_eq!(shown(&tmux), [format!("apart {}", seen["location"]["pane"].as_str().unwrap())]);
    wait_until("how it ended", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-J", "-t", &pane.id]).contains("it ended with 0").then_some(())
    });
}
