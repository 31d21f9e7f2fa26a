//! Agents that end, in every place and in every way: archived with evidence, or kept as lost; the neighbours stay.

use rustix::process::Signal;

use crate::support::tmux::Start;
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, agents, wait_until};

/// A server, a supervisor on it, and one agent that nothing happens to.
struct Scene {
    home: Home,
    tmux: Tmux,
    bystander: Agent,
    supervisor: Supervisor,
}

impl Scene {
    fn new(configuration: &str) -> Scene {
        let home = Home::new();
        let start = Start { configuration: configuration.to_owned(), ..Start::default() };
        let tmux = Tmux::start_with(&home, start);
        tmux.session("other", &home.home(), &["sleep", "1000000"]);
        let supervisor = Supervisor::start(&home, &[&tmux]);
        let bystander = Agent::start(&tmux, "other", "bystander");
        supervisor.attached(&tmux);
        supervisor.watching(&tmux, 1);
        Scene { home, tmux, bystander, supervisor }
    }

    /// An agent in a window of `session`, known to the supervisor.
    fn agent(&self, session: &str) -> Agent {
        let agent = Agent::start(&self.tmux, session, "worker");
        self.supervisor.watching(&self.tmux, 2);
        self.supervisor.knows(&self.tmux, &[&agent]);
        agent
    }

    /// The agent's record is archived, nothing else moved, and its pane goes.
    fn ended(&self, agent: &Agent) -> serde_json::Value {
        let line = self.home.until_ended(&agent.id);
        assert!(!line["reason"].as_str().unwrap_or_default().is_empty(), "{line:#}");
        self.home.all_live(&[&self.bystander]);
        line
    }

    fn lost(&self, agent: &Agent, cause: &str) -> serde_json::Value {
        let record = self.home.until_lost(&agent.id, cause);
        assert!(self.home.archived_record(&agent.id).is_none(), "a loss is no end");
        self.home.all_live(&[&self.bystander]);
        record
    }

    /// What is set on the agent's pane itself.
    fn marks(&self, agent: &Agent) -> String {
        self.tmux.ok(["show-options", "-p", "-t", &agent.pane.id])
    }

    /// The agent's pane is kept when its process ends.
    fn is_kept(&self, agent: &Agent) {
        wait_until("the pane to be kept", DEADLINE, || {
            self.marks(agent).contains("remain-on-exit on").then_some(())
        });
    }

    fn pane_goes(&self, agent: &Agent) {
        wait_until("the dead pane to be closed", DEADLINE, || {
            (!self.tmux.panes().iter().any(|pane| pane.id == agent.pane.id)).then_some(())
        });
    }
}

#[test]
fn a_closed_window_ends_its_agent() {
    for session in ["main", "other"] {
        let scene = Scene::new("");
        let agent = scene.agent(session);
        scene.tmux.ok(["kill-window", "-t", &agent.pane.window]);
        scene.ended(&agent);
    }
}

#[test]
fn a_closed_split_ends_its_agent_and_leaves_the_other() {
    for session in ["main", "other"] {
        let scene = Scene::new("");
        let agent = scene.agent(session);
        let split = agent.beside(&scene.tmux);
        scene.supervisor.watching(&scene.tmux, 3);
        scene.tmux.ok(["kill-pane", "-t", &split.pane.id]);
        scene.ended(&split);
        scene.home.all_live(&[&agent]);
    }
}

#[test]
fn a_killed_session_ends_its_agents() {
    let scene = Scene::new("");
    scene.tmux.session("third", &scene.home.home(), &["sleep", "1000000"]);
    let first = Agent::start(&scene.tmux, "third", "one");
    let second = first.beside(&scene.tmux);
    scene.supervisor.watching(&scene.tmux, 3);
    scene.tmux.ok(["kill-session", "-t", "=third"]);
    scene.ended(&first);
    scene.ended(&second);
}

#[test]
fn an_exit_is_archived_with_its_status_and_the_pane_closes() {
    for (session, status) in [("main", 0), ("other", 0), ("main", 3), ("other", 42)] {
        let scene = Scene::new("");
        let agent = scene.agent(session);
        agent.told(&scene.tmux, &format!("exit {status}"));
        let line = scene.ended(&agent);
        assert!(says_status(&line, status), "exit {status} is not told: {line:#}");
        scene.pane_goes(&agent);
        let screens = scene.home.archive().with_file_name("agent_sessions.archive.screens");
        let screen = std::fs::read_to_string(screens.join(format!("{}.ansi", agent.id))).unwrap();
        assert!(screen.contains(&format!("exit {status}")), "its last screen is kept: {screen:?}");
    }
}

#[test]
fn an_exit_in_a_split_is_archived_with_its_status() {
    let scene = Scene::new("");
    let agent = scene.agent("other");
    let split = agent.beside(&scene.tmux);
    scene.supervisor.watching(&scene.tmux, 3);
    scene.supervisor.knows(&scene.tmux, &[&split]);
    split.told(&scene.tmux, "exit 9");
    let line = scene.ended(&split);
    assert!(says_status(&line, 9), "{line:#}");
    scene.home.all_live(&[&agent]);
}

#[test]
fn a_user_who_keeps_dead_panes_keeps_them() {
    let scene = Scene::new("set-option -g remain-on-exit on\n");
    let agent = scene.agent("main");
    agent.told(&scene.tmux, "exit 5");
    let line = scene.ended(&agent);
    assert!(says_status(&line, 5), "{line:#}");
    // a later end shows that the supervisor went on, and the first pane is there still
    let next = Agent::start(&scene.tmux, "main", "next");
    scene.supervisor.watching(&scene.tmux, 2);
    scene.tmux.ok(["kill-window", "-t", &next.pane.window]);
    scene.ended(&next);
    assert!(scene.tmux.panes().iter().any(|pane| pane.id == agent.pane.id), "the user's dead pane is kept");
}

#[test]
fn a_user_who_keeps_dead_panes_from_now_on_keeps_them() {
    let scene = Scene::new("");
    let agent = scene.agent("main");
    scene.is_kept(&agent);
    scene.tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    agent.told(&scene.tmux, "exit 5");
    let line = scene.ended(&agent);
    assert!(says_status(&line, 5), "{line:#}");
    // what was ours goes, and the pane stays by the user's own setting
    wait_until("our marks to go", DEADLINE, || scene.marks(&agent).is_empty().then_some(()));
    let next = Agent::start(&scene.tmux, "main", "next");
    scene.supervisor.watching(&scene.tmux, 2);
    scene.tmux.ok(["kill-window", "-t", &next.pane.window]);
    scene.ended(&next);
    assert!(scene.tmux.panes().iter().any(|pane| pane.id == agent.pane.id), "the user's dead pane is kept");
}

#[test]
fn a_pane_that_the_user_gave_to_something_else_has_nothing_of_ours() {
    let scene = Scene::new("");
    let agent = scene.agent("main");
    scene.is_kept(&agent);
    scene.tmux.ok(["respawn-pane", "-k", "-t", &agent.pane.id, "sleep", "1000000"]);
    scene.ended(&agent);
    wait_until("our marks to go", DEADLINE, || scene.marks(&agent).is_empty().then_some(()));
}

#[test]
fn a_death_by_signal_is_a_loss() {
    for (session, signal, number) in [
        ("main", Signal::KILL, 9),
        ("other", Signal::KILL, 9),
        ("other", Signal::SEGV, 11),
        ("main", Signal::ABORT, 6),
    ] {
        let scene = Scene::new("");
        let agent = scene.agent(session);
        match signal {
            // the runtime of the stand-in lets the first one pass, so the stand-in does it itself
            Signal::SEGV => agent.told(&scene.tmux, "die SEGV"),
            _ => assert!(agent.pane.process().signal(signal)),
        }
        let record = scene.lost(&agent, "agent_crashed");
        let told = &record["ait"]["lost"]["signal"];
        let (major, minor) = scene.tmux_version();
        if (major, minor) >= (3, 3) {
            assert_eq!(told, number, "{record:#}");
        }
    }
}

#[test]
fn a_death_by_signal_in_a_split_is_a_loss() {
    let scene = Scene::new("");
    let agent = scene.agent("other");
    let split = agent.beside(&scene.tmux);
    scene.supervisor.watching(&scene.tmux, 3);
    scene.supervisor.knows(&scene.tmux, &[&split]);
    split.pane.process().signal(Signal::KILL);
    scene.lost(&split, "agent_crashed");
    scene.home.all_live(&[&agent]);
}

#[test]
fn a_term_is_an_end() {
    let scene = Scene::new("");
    let agent = scene.agent("main");
    agent.pane.process().signal(Signal::TERM);
    scene.ended(&agent);
}

#[test]
fn an_agent_below_a_shell_ends_and_the_shell_stays() {
    for signal in [None, Some(Signal::KILL)] {
        let scene = Scene::new("");
        let root = scene.home.project("alpha");
        let shell = scene.tmux.window("other", "typed", &root, &["sh", "-i"]);
        let line = scene.home.stand_in(&[]).join(" ");
        scene.tmux.ok(["send-keys", "-t", &shell.id, "-l", &line]);
        scene.tmux.ok(["send-keys", "-t", &shell.id, "Enter"]);
        let child = wait_until("the agent below the shell", DEADLINE, || {
            crate::support::proc::children(shell.pid)
                .into_iter()
                .find(|child| crate::support::proc::command(child.pid).contains("demo-agent"))
        });
        let agent = Agent::sign(&scene.tmux, shell.clone(), &root, "typed");
        scene.supervisor.knows(&scene.tmux, &[&agent]);
        let record = scene.home.record(&agent.id).unwrap();
        assert_eq!(record["ait"]["agent"]["pid"], child.pid, "the agent is the shell's child: {record:#}");
        scene.supervisor.watching(&scene.tmux, 2);
        match signal {
            Some(signal) => drop(child.signal(signal).then_some(())),
            None => agent.told(&scene.tmux, "exit 4"),
        }
        assert!(child.dies(DEADLINE));
        // ended, status unknown, never recovered by itself: lifecycle.md, "Who hosts the agent"
        scene.ended(&agent);
        assert!(scene.tmux.panes().contains(&shell), "the user's shell stays");
        assert!(shell.process().alive());
    }
}

#[test]
fn a_window_in_two_sessions_is_one_agent() {
    let scene = Scene::new("");
    let agent = scene.agent("main");
    scene.tmux.ok(["link-window", "-d", "-s", &agent.pane.window, "-t", "other:7"]);
    scene.tmux.ok(["unlink-window", "-t", "other:7"]);
    scene.tmux.ok(["link-window", "-d", "-s", &agent.pane.window, "-t", "other:8"]);
    scene.supervisor.settled(&scene.tmux);
    scene.home.all_live(&[&agent, &scene.bystander]);
    assert_eq!(scene.home.records().len(), 2, "counted once");
    // gone from its first session only
    scene.tmux.ok(["unlink-window", "-t", "main:worker"]);
    scene.supervisor.settled(&scene.tmux);
    scene.home.all_live(&[&agent, &scene.bystander]);
    scene.tmux.ok(["kill-window", "-t", &agent.pane.window]);
    scene.ended(&agent);
}

#[test]
fn a_grouped_session_that_goes_takes_nothing_with_it() {
    let scene = Scene::new("");
    let agent = scene.agent("main");
    scene.tmux.ok(["new-session", "-d", "-t", "main", "-s", "group"]);
    scene.supervisor.settled(&scene.tmux);
    assert_eq!(scene.home.records().len(), 2, "counted once");
    scene.tmux.ok(["kill-session", "-t", "=group"]);
    scene.supervisor.settled(&scene.tmux);
    scene.home.all_live(&[&agent, &scene.bystander]);
    agent.told(&scene.tmux, "exit 0");
    scene.ended(&agent);
}

#[test]
fn an_end_while_no_supervisor_ran_is_found_at_its_start() {
    let mut scene = Scene::new("");
    let agent = scene.agent("main");
    assert!(scene.supervisor.stop().success());
    scene.tmux.ok(["kill-window", "-t", &agent.pane.window]);
    scene.home.all_live(&[&scene.bystander]);
    assert_eq!(agents::told(&scene.home.record(&agent.id).unwrap()), "live", "nobody watched");
    scene.supervisor = Supervisor::start(&scene.home, &[&scene.tmux]);
    scene.ended(&agent);
}

impl Scene {
    fn tmux_version(&self) -> (u32, u32) {
        let version = self.tmux.format("main:", "#{version}");
        let mut numbers = version.trim_start_matches("next-").split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        (number(), number())
    }
}

/// Whether the archive's line carries the exit status, in its evidence or in its record.
fn says_status(line: &serde_json::Value, status: i64) -> bool {
    fn holds(value: &serde_json::Value, status: i64) -> bool {
        match value {
            serde_json::Value::Object(map) => map.iter().any(|(key, value)| {
                (key == "exit_status" || key == "status") && value == status || holds(value, status)
            }),
            serde_json::Value::Array(items) => items.iter().any(|item| holds(item, status)),
            serde_json::Value::String(text) => {
                text.contains(&format!("status {status}")) || text.contains(&format!("exit {status}"))
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => false,
        }
    }
    holds(line, status)
}
