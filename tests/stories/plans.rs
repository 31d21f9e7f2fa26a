//! What stands where is kept of each server: the windows that hold an agent, their splits and companions.

use std::fs;

use serde_json::Value;

use crate::support::{Agent, Home, Supervisor, Tmux};

/// The one plan that is kept, once it is as `good` wants it.
fn plan(home: &Home, what: &str, good: impl Fn(&Value) -> bool) -> Value {
    home.store_until(what, |home| {
        let folder = fs::read_dir(home.home().join(".local/state/ait/plans")).ok()?;
        let paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
        let [path] = paths.as_slice() else { return None };
        let plan: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        good(&plan).then_some(plan)
    })
}

#[test]
fn windows_splits_and_companions_are_kept_and_a_crash_leaves_them() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "one");
    supervisor.attached(&tmux);
    let companion = tmux.split(&agent.pane, &home.project("beta"), &["sleep", "1000000"]);
    let other = agent.beside(&tmux);
    tmux.ok(["select-layout", "-t", &agent.pane.window, "even-vertical"]);
    supervisor.watching(&tmux, 2);
    let panes = |plan: &Value| plan["windows"][0]["panes"].as_array().cloned().unwrap_or_default();
    let layout = tmux.format(&agent.pane.id, "#{window_layout}");
    let seen = plan(&home, "the plan to hold three panes and the layout", |plan| {
        let records = panes(plan).iter().filter(|pane| pane["record"].is_string()).count();
        panes(plan).len() == 3 && records == 2 && plan["windows"][0]["layout"] == layout.as_str()
    });
    assert_eq!(seen["windows"].as_array().unwrap().len(), 1, "only windows with an agent: {seen:#}");
    assert_eq!(seen["windows"][0]["name"], "one");
    let kept = panes(&seen);
    let by_pid = |pid: u32| kept.iter().find(|pane| pane["pid"] == pid).unwrap();
    assert_eq!(by_pid(agent.pane.pid)["record"], agent.id.as_str());
    assert_eq!(by_pid(other.pane.pid)["record"], other.id.as_str());
    assert_eq!(by_pid(companion.pid)["record"], Value::Null);
    assert_eq!(by_pid(companion.pid)["cwd"], home.project("beta").to_str().unwrap());
    let order: Vec<u64> = kept.iter().map(|pane| pane["pid"].as_u64().unwrap()).collect();
    let shown = tmux.ok(["list-panes", "-t", &agent.pane.window, "-F", "#{pane_pid}"]);
    let shown: Vec<u64> = shown.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(order, shown, "in the order of the window");
    tmux.kill(rustix::process::Signal::KILL);
    home.until_lost(&agent.id, "server_crashed");
    home.until_lost(&other.id, "server_crashed");
    assert_eq!(plan(&home, "the plan to stay", |_| true), seen);
}

#[test]
fn a_layout_that_changes_alone_is_kept() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let agent = Agent::start(&tmux, "main", "one");
    supervisor.attached(&tmux);
    tmux.split(&agent.pane, &home.project("beta"), &["sleep", "1000000"]);
    let kept = |what: &str| {
        let layout = tmux.format(&agent.pane.id, "#{window_layout}");
        plan(&home, what, |plan| plan["windows"][0]["layout"] == layout.as_str());
    };
    kept("the split");
    supervisor.knows(&tmux, &[&agent]);
    supervisor.settled(&tmux);
    // no notification tells it: the window is in another session than the supervisor's client
    tmux.ok(["select-layout", "-t", &agent.pane.window, "even-horizontal"]);
    kept("the layout");
}
