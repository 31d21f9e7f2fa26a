//! What the user must never notice: options, hooks, keys, environment, sizes, counts, the default target.

use std::collections::BTreeMap;

use rustix::process::Signal;

use super::{attach, end, listed};
use crate::support::tmux::Start;
use crate::support::{Home, Tmux, wait_for};

/// All that `ait` promises to leave alone, as tmux prints it.
fn touched(tmux: &Tmux) -> BTreeMap<&'static str, String> {
    let sessions = [
        "list-sessions",
        "-F",
        "#{session_name} #{session_attached} #{session_windows}",
        "-f",
        "#{!=:#{session_name},_ait}",
    ];
    let windows = [
        "list-windows",
        "-a",
        "-F",
        "#{session_name} #{window_id} #{window_width}x#{window_height} #{window_flags} #{window_layout}",
        "-f",
        "#{!=:#{session_name},_ait}",
    ];
    [
        ("global options", &["show-options", "-g"][..]),
        ("global window options", &["show-options", "-gw"]),
        ("server options", &["show-options", "-s"]),
        ("global hooks", &["show-hooks", "-g"]),
        ("global window hooks", &["show-hooks", "-gw"]),
        ("keys", &["list-keys"]),
        ("global environment", &["show-environment", "-g"]),
        ("session options", &["show-options", "-t", "=main:"]),
        ("session environment", &["show-environment", "-t", "=main"]),
        ("window options", &["show-options", "-w", "-t", "@0"]),
        ("pane options", &["show-options", "-p", "-t", "%0"]),
        ("buffers", &["list-buffers"]),
        ("sessions", &sessions),
        ("windows", &windows),
    ]
    .into_iter()
    .map(|(what, words)| (what, tmux.ok(words)))
    .collect()
}

#[tokio::test]
async fn attaching_staying_and_leaving_changes_nothing_of_the_users() {
    let home = Home::new();
    let configuration = "set -g history-limit 5000\nset -g status off\nset -g aggressive-resize on\n\
                         set -g remain-on-exit on\nset-hook -g pane-died[3] 'run-shell true'\n\
                         bind-key X kill-server\nset-environment -g MINE yes\n"
        .to_owned();
    let tmux = Tmux::start_with(&home, Start { configuration, ..Start::default() });
    tmux.window("main", "second", &home.home(), &["sleep", "1000"]);
    tmux.ok(["new-session", "-d", "-s", "other", "-x", "111", "-y", "33", "sleep 1000"]);
    let before = touched(&tmux);
    let (client, mut events) = attach(&tmux).await;
    listed(&client).await;
    assert_eq!(touched(&tmux), before, "while it is attached");
    let hold = client.identity().hold.to_string();
    assert_eq!(
        tmux.ok(["show-options", "-p", "-t", &hold]),
        "remain-on-exit off",
        "all that is set, on our own pane"
    );
    assert_eq!(tmux.ok(["show-options", "-w", "-t", &hold]), "");
    assert_eq!(tmux.ok(["show-environment", "-t", "=_ait"]), "", "nothing of our environment");
    drop(client);
    let _ = end(&mut events).await;
    wait_for("the session to go", || (!tmux.ok(["list-sessions"]).contains("_ait:")).then_some(())).await;
    assert_eq!(touched(&tmux), before, "after it left");
}

#[tokio::test]
async fn the_default_target_is_known_from_before_the_attach() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.session("other", &home.home(), &["sleep", "1000"]);
    let before = tmux.ok(["display-message", "-p", "#{session_id}"]);
    let (client, _events) = attach(&tmux).await;
    assert_eq!(client.identity().default_session.unwrap().to_string(), before);
}

#[tokio::test]
async fn many_comings_and_goings_leave_nothing_and_the_same_server() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pid = tmux.server();
    for round in 0..20 {
        let (client, mut events) = attach(&tmux).await;
        if round % 2 == 0 {
            let name = client.identity().client.to_string();
            let client_pid: i32 = name.strip_prefix("client-").unwrap().parse().unwrap();
            let process = ait::process::identify(client_pid).unwrap();
            let _ = ait::process::signal(&process, Signal::KILL).unwrap();
        } else {
            drop(client);
        }
        let _ = end(&mut events).await;
    }
    wait_for("the session to go", || {
        (tmux.ok(["list-sessions", "-F", "#{session_name}"]) == "main").then_some(())
    })
    .await;
    assert_eq!(tmux.ok(["list-clients"]), "");
    wait_for("all to be reaped", || {
        crate::support::proc::zombies(std::process::id()).is_empty().then_some(())
    })
    .await;
    assert!(pid.alive());
    assert_eq!(tmux.ok(["list-windows", "-a", "-F", "#{window_id}"]), "@0");
}
