//! What the user has in tmux is the same before, during and after; and commands without a target lead where they led.

use crate::support::terminal::Terminal;
use crate::support::tmux::Start;
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

/// A configuration with something of everything.
const CONFIGURATION: &str = r##"
set-option -g base-index 1
set-option -g status-left "[#S] "
set-option -g destroy-unattached off
set-option -g update-environment "DISPLAY SSH_AUTH_SOCK"
set-option -s escape-time 7
set-option -g @mine "yes | no"
set-window-option -g mode-keys vi
set-hook -g session-created "set-option -g @seen 1"
set-hook -g after-new-window "set-option -g @window 1"
bind-key C-x display-message x
bind-key -n M-y select-window -t 1
set-environment -g MINE "a b"
"##;

#[test]
fn everything_of_the_users_stays_as_it_was() {
    let home = Home::new();
    let tmux = Tmux::start_with(&home, Start { configuration: CONFIGURATION.to_owned(), ..Start::default() });
    tmux.session("other", &home.home(), &["sleep", "1000000"]);
    tmux.ok(["set-option", "-t", "other", "detach-on-destroy", "off"]);
    let user = Terminal::attach(&tmux, Some("=main"));
    let root = home.project("alpha");
    let agent_pane = tmux.window("main", "agent", &root, &home.stand_in(&[]));
    let before = Picture::of(&tmux);
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    assert_eq!(Picture::of(&tmux), before, "a supervisor without records touches nothing");
    assert_eq!(sessions(&tmux), ["main", "other"], "not even by a session");
    let agent = Agent::sign(&tmux, agent_pane, &root, "agent");
    supervisor.attached(&tmux);
    supervisor.watching(&tmux, 1);
    assert_eq!(Picture::of(&tmux), before, "while it watches");
    assert_eq!(sessions(&tmux), ["_ait", "main", "other"]);
    for pane in tmux.panes().iter().filter(|pane| pane.id != agent.pane.id) {
        assert_eq!(
            tmux.ok(["show-options", "-p", "-t", &pane.id]),
            "",
            "a pane without a record has no option"
        );
    }
    let options = tmux.ok(["show-options", "-p", "-t", &agent.pane.id]);
    for line in options.lines() {
        assert!(line.starts_with('@') || line == "remain-on-exit on", "only what is documented: {options}");
    }
    // the life of the server goes on under its eyes
    tmux.ok(["rename-window", "-t", &agent.pane.window, "renamed"]);
    home.until_window(&agent.id, "renamed");
    tmux.ok(["rename-window", "-t", &agent.pane.window, "agent"]);
    home.until_window(&agent.id, "agent");
    assert!(supervisor.stop().success());
    wait_until("the hidden session to be gone", DEADLINE, || {
        (sessions(&tmux) == ["main", "other"]).then_some(())
    });
    assert_eq!(Picture::of(&tmux), before, "after a clean end");
    let options = tmux.ok(["show-options", "-p", "-t", &agent.pane.id]);
    assert!(!options.contains("remain-on-exit"), "taken back: {options}");
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.attached(&tmux);
    supervisor.kill();
    wait_until("the hidden session to be gone", DEADLINE, || {
        (sessions(&tmux) == ["main", "other"]).then_some(())
    });
    assert_eq!(Picture::of(&tmux), before, "after a kill");
    drop(user);
}

#[test]
fn the_hidden_session_goes_with_the_last_record() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "agent");
    supervisor.attached(&tmux);
    tmux.ok(["kill-window", "-t", &agent.pane.window]);
    home.until_ended(&agent.id);
    wait_until("no hidden session without a record", DEADLINE, || {
        (sessions(&tmux) == ["main"]).then_some(())
    });
    assert!(tmux.server().alive());
}

#[test]
fn a_bare_attach_ends_where_it_would_have() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.session("other", &home.home(), &["sleep", "1000000"]);
    // what it would be without ait
    let user = Terminal::attach(&tmux, None);
    let expected = user.session(&tmux);
    drop(user);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let _agent = Agent::start(&tmux, &expected, "agent");
    supervisor.attached(&tmux);
    supervisor.watching(&tmux, 1);
    let user = Terminal::attach(&tmux, None);
    wait_until("the user's terminal to be in the user's session", DEADLINE, || {
        (user.session(&tmux) == expected).then_some(())
    });
}

#[test]
fn a_bare_new_window_ends_where_it_would_have() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.session("other", &home.home(), &["sleep", "1000000"]);
    let bare =
        || tmux.ok(["new-window", "-d", "-P", "-F", "#{window_id} #{session_name}", "sleep", "1000000"]);
    let expected = bare().split_once(' ').unwrap().1.to_owned();
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let _agent = Agent::start(&tmux, &expected, "agent");
    supervisor.attached(&tmux);
    supervisor.watching(&tmux, 1);
    for _ in 0..3 {
        let window = bare().split_once(' ').unwrap().0.to_owned();
        wait_until("the window to be in the user's session", DEADLINE, || {
            let session = tmux.format(&window, "#{session_name}");
            (session == expected).then_some(())
        });
    }
    let hidden = tmux.ok(["list-windows", "-t", "=_ait", "-F", "#{window_id}"]);
    assert_eq!(hidden.lines().count(), 1, "only its own window is left in it");
}

#[test]
fn a_server_whose_last_user_session_ends_exits() {
    for way in ["kill-session", "exit"] {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        let mut supervisor = Supervisor::start(&home, &[&tmux]);
        let agent = Agent::start(&tmux, "main", "agent");
        supervisor.attached(&tmux);
        supervisor.watching(&tmux, 1);
        supervisor.knows(&tmux, &[&agent]);
        let server = tmux.server();
        if way == "exit" {
            for pane in tmux.panes().iter().filter(|pane| pane.id != agent.pane.id) {
                tmux.ok(["kill-pane", "-t", &pane.id]);
            }
            agent.told(&tmux, "exit 0");
        } else {
            tmux.ok(["kill-session", "-t", "=main"]);
        }
        assert!(server.dies(DEADLINE), "{way}: the server exits as it would have");
        assert!(supervisor.process().alive());
        assert!(supervisor.stop().success());
    }
}

#[test]
fn a_user_whose_session_is_destroyed_is_not_stranded() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "detach-on-destroy", "off"]);
    tmux.session("other", &home.home(), &["sleep", "1000000"]);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let _agent = Agent::start(&tmux, "other", "agent");
    supervisor.attached(&tmux);
    supervisor.watching(&tmux, 1);
    let user = Terminal::attach(&tmux, Some("=main"));
    tmux.ok(["kill-session", "-t", "=main"]);
    wait_until("the user to be in a session of the user's", DEADLINE, || {
        (user.session(&tmux) == "other").then_some(())
    });
}

/// Everything of the user's that must not change.
#[derive(Debug, PartialEq, Eq)]
struct Picture {
    parts: Vec<(&'static str, String)>,
}

impl Picture {
    fn of(tmux: &Tmux) -> Picture {
        let of_sessions = |what: &str| {
            let format = format!("#{{session_name}} {what}");
            tmux.ok(["list-sessions", "-f", "#{!=:#{session_name},_ait}", "-F", &format])
        };
        let mut parts = vec![
            ("global options", tmux.ok(["show-options", "-g"])),
            ("global window options", tmux.ok(["show-options", "-gw"])),
            ("server options", tmux.ok(["show-options", "-s"])),
            ("hooks", tmux.ok(["show-hooks", "-g"])),
            ("window hooks", tmux.ok(["show-hooks", "-gw"])),
            ("keys", tmux.ok(["list-keys"])),
            ("environment", tmux.ok(["show-environment", "-g"])),
            ("attached", of_sessions("#{session_attached}")),
            ("destroy-unattached", of_sessions("#{destroy-unattached}")),
            ("detach-on-destroy", of_sessions("#{detach-on-destroy}")),
            (
                "windows",
                tmux.ok([
                    "list-windows",
                    "-a",
                    "-f",
                    "#{!=:#{session_name},_ait}",
                    "-F",
                    "#{session_name} #{window_id} #{window_index} #{window_width}x#{window_height} #{window_active}",
                ]),
            ),
        ];
        for name in sessions(tmux).into_iter().filter(|name| name != "_ait") {
            let target = format!("={name}:");
            parts.push(("session options", tmux.ok(["show-options", "-t", &target])));
            parts.push(("session hooks", tmux.ok(["show-hooks", "-t", &target])));
            parts.push(("session environment", tmux.ok(["show-environment", "-t", &target])));
            parts.push(("window options", tmux.ok(["show-options", "-w", "-t", &target])));
        }
        Picture { parts }
    }
}

fn sessions(tmux: &Tmux) -> Vec<String> {
    let mut names: Vec<String> =
        tmux.ok(["list-sessions", "-F", "#{session_name}"]).lines().map(str::to_owned).collect();
    names.sort();
    names
}
