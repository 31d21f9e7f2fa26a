//! A freeze cut short at each of its calls to tmux: its coordinator is killed, or stopped and let go on, before and after
//! each, while the agent, its pane, its window or its server is left alone or killed in between. After the supervisor has
//! settled it is one of: the agent runs and its record is live; or it is ended, the record is frozen with its capture, and the
//! viewer stands in the pane if there is one. The matrix is printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::proc::Process;
use crate::support::wait::{stays, within};
use crate::support::{Agent, DEADLINE, Home, Supervisor, Tmux, wait_until};

/// Calls to tmux of a forced freeze: listing, epoch, title and screen, capture, capture under
/// the lease, stamp, respawn, listing, epoch.
const CALLS: usize = 9;

/// Cuts the caller at the call `$CUT/at`, as `$CUT/how` says, before or after it, and does `$CUT/between`.
const WRAPPER: &str = r#"
[ -n "$CUT" ] || exec "$TMUX_REAL" "$@"
n=$(($(cat "$CUT/count" 2>/dev/null || echo 0) + 1))
echo $n >"$CUT/count"
[ "$n" = "$(cat "$CUT/at")" ] || exec "$TMUX_REAL" "$@"
how=$(cat "$CUT/how")
[ "$how" = none ] && exec "$TMUX_REAL" "$@"
if [ -e "$CUT/after" ]; then "$TMUX_REAL" "$@" >"$CUT/out" 2>"$CUT/err"; code=$?; fi
kill -$how $PPID
CUT= sh "$CUT/between"
echo $PPID >"$CUT/hit.new"
mv "$CUT/hit.new" "$CUT/hit"
[ "$how" = KILL ] && exit 1
[ -e "$CUT/after" ] || exec "$TMUX_REAL" "$@"
cat "$CUT/out"
cat "$CUT/err" >&2
exit $code
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Between {
    Nothing,
    Agent,
    Pane,
    Window,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    how: &'static str,
    at: usize,
    after: bool,
    between: Between,
}

struct Case {
    cut: Cut,
    agent: Agent,
    process: Process,
    folder: PathBuf,
    freeze: Child,
}

fn world() -> (Home, Tmux, Supervisor) {
    let home = Home::new();
    let settings = home.home().join(".config/ait");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "recover = \"off\"\nrecover_agents = \"off\"\n").unwrap();
    let tmux = Tmux::start(&home);
    home.wrap_tmux(WRAPPER);
    let supervisor = Supervisor::launch(&home, &[&tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
    supervisor.ready();
    (home, tmux, supervisor)
}

fn begin(home: &Home, tmux: &Tmux, agent: Agent, cut: Cut) -> Case {
    let process = agent.pane.process();
    let folder = home.root().join(format!("cut-{}-{}", agent.id, cut.at));
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("at", &cut.at.to_string());
    write("how", cut.how);
    if cut.after {
        write("after", "");
    }
    let on_server = |what: &str| {
        format!("'{}' -S '{}' {what}", super::support::tmux::real_binary().display(), tmux.socket_text())
    };
    write(
        "between",
        &match cut.between {
            Between::Nothing => "true".to_owned(),
            Between::Agent => format!("kill -KILL {}", agent.pane.pid),
            Between::Pane => on_server(&format!("kill-pane -t {}", agent.pane.id)),
            Between::Window => on_server(&format!("kill-window -t {}", agent.pane.id)),
            Between::Server => format!("kill -KILL {}", tmux.server().pid),
        },
    );
    let mut command = home.ait_command(["freeze", &agent.id, "--force"]);
    command.env("CUT", &folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let freeze = command.spawn().unwrap();
    Case { cut, process, agent, folder, freeze }
}

/// What it came to; `None` while it is none of the ends there may be.
fn end(home: &Home, tmux: &Tmux, agent: &Agent, process: Process) -> Option<&'static str> {
    let Some(record) = home.record(&agent.id) else {
        return home.archived_record(&agent.id).map(|_| "ended by itself");
    };
    let alive = process.alive();
    let told = tmux.run([
        "list-panes",
        "-a",
        "-F",
        "#{pane_id} #{pane_dead} #{pane_pid} #{@aitask_frozen} #{@aitask_standin_ready}",
    ]);
    let panes = if told.status.success() { told.text() } else { String::new() };
    let row = panes.lines().find(|line| line.split(' ').next() == Some(agent.pane.id.as_str()));
    match record["state"].as_str()? {
        "live" if record["op_nonce"] == "" && alive => {
            (row? == format!("{} 0 {}  ", agent.pane.id, agent.pane.pid)).then_some("runs, live")
        }
        "frozen" if record["ait"]["lost"].is_object() => (!alive).then_some("lost by itself"),
        "frozen" if !alive && fs::metadata(record["capture_ansi"].as_str()?).is_ok() => match row {
            None => Some("frozen, no pane"),
            Some(row) => {
                let viewer = format!("{} 0 {} {} 1", agent.pane.id, record["pane_pid"], agent.id);
                (row == viewer).then_some("frozen, viewer")
            }
        },
        _ => None,
    }
}

/// The first call after `freeze-begin`.
const BEGUN: usize = 5;
/// The call that stamps the pane; the agent is told to end after it.
const STAMP: usize = 6;

/// What a cut may come to. One that is let go on finds out what was done meanwhile: the supervisor may have been first.
fn allowed(cut: Cut) -> &'static [&'static str] {
    let (begun, killed) = (cut.at >= BEGUN, cut.how == "KILL");
    match cut.between {
        Between::Nothing if killed && cut.at <= STAMP => &["runs, live"],
        Between::Nothing => &["frozen, viewer"],
        Between::Agent if begun => &["frozen, viewer"],
        Between::Agent if killed => &["lost by itself"],
        Between::Agent => &["frozen, viewer", "lost by itself"],
        Between::Pane | Between::Window | Between::Server if begun => &["frozen, no pane"],
        Between::Pane | Between::Window if killed => &["ended by itself"],
        Between::Server if killed => &["lost by itself"],
        Between::Pane | Between::Window => &["frozen, no pane", "ended by itself"],
        Between::Server => &["frozen, no pane", "lost by itself"],
    }
}

fn finish(home: &Home, tmux: &Tmux, mut case: Case) -> (Cut, &'static str) {
    let what = format!("{:?} ({})", case.cut, case.agent.id);
    let coordinator = wait_until(&format!("the cut {what}"), DEADLINE, || {
        fs::read_to_string(case.folder.join("hit")).ok()?.trim().parse::<u32>().ok()
    });
    if case.cut.how == "STOP" {
        let state = || home.record(&case.agent.id).map(|record| record["state"].clone());
        if state() == Some("freezing".into()) {
            stays(&format!("{what}: it is left alone while stopped"), Duration::from_secs(3), || {
                state() == Some("freezing".into())
            });
        }
        Process::of(coordinator).unwrap().signal(Signal::CONT);
    }
    let front = Process::of(case.freeze.id());
    assert!(front.is_none_or(|front| front.dies(DEADLINE)), "{what}: the command ends with its coordinator");
    case.freeze.wait().unwrap();
    let found = within(DEADLINE, || end(home, tmux, &case.agent, case.process));
    let Some(ended) = found else { panic!("{what} comes to no end: {:#?}", home.record(&case.agent.id)) };
    assert!(allowed(case.cut).contains(&ended), "{what}: {ended}");
    // it stays so
    assert_eq!(end(home, tmux, &case.agent, case.process), Some(ended), "{what}");
    (case.cut, ended)
}

fn show(title: &str, ends: &BTreeMap<Cut, &'static str>) {
    println!("{title}");
    for (cut, end) in ends {
        let side = if cut.after { "after " } else { "before" };
        println!("  {:4} {side} call {}  {:8}  {end}", cut.how, cut.at, format!("{:?}", cut.between));
    }
}

fn cuts(how: &'static str, betweens: &[Between]) -> Vec<Cut> {
    let mut all = Vec::new();
    for at in 1..=CALLS {
        for after in [false, true] {
            all.extend(betweens.iter().map(|between| Cut { how, at, after, between: *between }));
        }
    }
    all
}

fn matrix(how: &'static str) {
    let (home, tmux, _supervisor) = world();
    let mut ends = BTreeMap::new();
    for batch in cuts(how, &[Between::Nothing, Between::Agent, Between::Pane, Between::Window]).chunks(16) {
        let agents: Vec<Agent> = batch
            .iter()
            .map(|cut| Agent::start(&tmux, "main", &format!("{how}{}{}{:?}", cut.at, cut.after, cut.between)))
            .collect();
        for agent in &agents {
            home.store_until("the supervisor to know it", |home| {
                home.record(&agent.id)?["ait"]["host"].is_object().then_some(())
            });
        }
        let cases: Vec<Case> =
            agents.into_iter().zip(batch).map(|(agent, cut)| begin(&home, &tmux, agent, *cut)).collect();
        std::thread::scope(|scope| {
            let (home, tmux) = (&home, tmux.home());
            let _ = tmux;
            let threads: Vec<_> = cases
                .into_iter()
                .map(|case| {
                    let server = Tmux::unstarted(home, Default::default());
                    scope.spawn(move || finish(home, &server, case))
                })
                .collect();
            let mut failed = 0;
            for thread in threads {
                match thread.join() {
                    Ok((cut, end)) => drop(ends.insert(cut, end)),
                    Err(_) => failed += 1,
                }
            }
            if failed > 0 {
                show("so far:", &ends);
            }
            assert_eq!(failed, 0, "each comes to an end that may be");
        });
    }
    show(&format!("freeze, coordinator sent SIG{how}:"), &ends);
}

#[test]
fn killed_at_each_call() {
    matrix("KILL");
}

#[test]
fn stopped_at_each_call_and_let_go_on() {
    matrix("STOP");
}

#[test]
fn killed_at_each_call_and_its_server_with_it() {
    let mut ends = BTreeMap::new();
    for cut in cuts("KILL", &[Between::Server]) {
        let (home, tmux, _supervisor) = world();
        let agent = Agent::start(&tmux, "main", "work");
        home.store_until("the supervisor to know it", |home| {
            home.record(&agent.id)?["ait"]["host"].is_object().then_some(())
        });
        let case = begin(&home, &tmux, agent, cut);
        let (cut, end) = finish(&home, &tmux, case);
        ends.insert(cut, end);
    }
    show("freeze, coordinator and server sent SIGKILL:", &ends);
}

#[test]
fn killed_by_the_agent_it_ends() {
    let (home, tmux, _supervisor) = world();
    for ends in [true, false] {
        let root = home.project("alpha");
        let then = if ends { "exit 0" } else { "echo still here" };
        // the coordinator is the owner of the lease
        let script = format!(
            "trap 'kill -KILL $(sed -n \"s/.*\\\"op_owner_pid\\\": \\([1-9][0-9]*\\).*/\\1/p\" \"{}\"); {then}' TERM; \
             echo waiting; while :; do sleep 1000 & wait $!; done",
            home.store().display()
        );
        let pane = tmux.window("main", "avenger", &root, &["/bin/sh", "-c", &script]);
        let agent = Agent::sign(&tmux, pane, &root, "avenger");
        wait_until("the agent", DEADLINE, || {
            tmux.ok(["capture-pane", "-p", "-t", &agent.pane.id]).contains("waiting").then_some(())
        });
        home.store_until("the supervisor to know it", |home| {
            home.record(&agent.id)?["ait"]["host"].is_object().then_some(())
        });
        let process = agent.pane.process();
        home.ait(["freeze", &agent.id, "--force"]).code(1);
        let found = within(DEADLINE, || end(&home, &tmux, &agent, process));
        let Some(end) = found else {
            panic!("no end: {:#?}", home.record(&agent.id));
        };
        assert_eq!(end, if ends { "frozen, viewer" } else { "runs, live" });
        println!("coordinator killed by its agent, which {}: {end}", if ends { "ends" } else { "lives on" });
        if !ends {
            tmux.ok(["kill-pane", "-t", &agent.pane.id]);
        }
    }
}
