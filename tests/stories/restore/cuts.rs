//! A restore cut short at each of its calls to tmux: its coordinator is killed, or stopped and then let go on or killed, while
//! the pane's process, its pane, its window or its server is left alone or killed in between. While it is stopped nothing
//! moves. After the supervisor has settled it is one of: one agent runs and its record is live; or none runs, the record is
//! frozen with its capture, and the viewer stands in the pane if there is one. Never two agents. The matrix is printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{Frozen, running};
use crate::support::proc::Process;
use crate::support::wait::stays;
use crate::support::{Home, Supervisor, Tmux, wait_until};

/// Calls to tmux of a restore into its stand-in's pane: twice listing and epoch, listing, epoch, sessions, respawn, then
/// listing and screen until it is proven, and the stamps.
const CALLS: usize = 11;
/// The lease's grace, the acknowledgement's, and a machine with other work.
const SETTLES: Duration = Duration::from_secs(90);

/// Cuts the caller at the call `$CUT/at`, as `$CUT/how` says, before or after it, and does `$CUT/between`.
const WRAPPER: &str = r#"
[ -n "$CUT" ] || exec "$TMUX_REAL" "$@"
n=$(($(cat "$CUT/count" 2>/dev/null || echo 0) + 1))
echo $n >"$CUT/count"
[ "$n" = "$(cat "$CUT/at")" ] || exec "$TMUX_REAL" "$@"
how=$(cat "$CUT/how")
if [ -e "$CUT/after" ]; then "$TMUX_REAL" "$@" >"$CUT/out" 2>"$CUT/err"; code=$?; fi
[ "$how" = NONE ] || kill -$how $PPID
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
    Process,
    Pane,
    Window,
    Server,
}

/// What its coordinator is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT when it was seen that nothing moves.
    Stop,
    /// SIGSTOP, and SIGKILL when it was seen that nothing moves.
    StopKill,
    /// Nothing.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    how: How,
    at: usize,
    after: bool,
    between: Between,
}

struct Case {
    cut: Cut,
    frozen: Frozen,
    folder: PathBuf,
    restore: Child,
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

fn begin(home: &Home, tmux: &Tmux, frozen: Frozen, cut: Cut) -> Case {
    let folder = home.root().join(format!("cut-{}", frozen.id));
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("at", &cut.at.to_string());
    write(
        "how",
        match cut.how {
            How::Kill => "KILL",
            How::Stop | How::StopKill => "STOP",
            How::None => "NONE",
        },
    );
    if cut.after {
        write("after", "");
    }
    let pane = &frozen.agent.pane.id;
    let server = tmux.server().pid;
    let tmux = format!("'{}' -S '{}'", crate::support::tmux::real_binary().display(), tmux.socket_text());
    write(
        "between",
        &match cut.between {
            Between::Nothing => "true".to_owned(),
            Between::Process => format!("kill -KILL $({tmux} display-message -p -t {pane} '#{{pane_pid}}')"),
            Between::Pane => format!("{tmux} kill-pane -t {pane}"),
            Between::Window => format!("{tmux} kill-window -t {pane}"),
            Between::Server => format!("kill -KILL {server}"),
        },
    );
    let mut command = home.ait_command(["restore", &frozen.id]);
    command.env("CUT", &folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let restore = command.spawn().unwrap();
    Case { cut, frozen, folder, restore }
}

/// What it came to; `None` while it is none of the ends there may be.
fn end(home: &Home, tmux: &Tmux, frozen: &Frozen) -> Option<&'static str> {
    let agents = running(home, &frozen.conversation);
    assert!(agents <= 1, "{} has {agents} agents: {:#?}", frozen.id, home.record(&frozen.id));
    let Some(record) = home.record(&frozen.id) else {
        return home.archived_record(&frozen.id).filter(|_| agents == 0).map(|_| "ended by itself");
    };
    if record["op_nonce"] != "" {
        return None;
    }
    let format = "#{pane_id} #{pane_dead} #{pane_pid} #{@aitask_frozen} #{@aitask_standin_ready}";
    let told = tmux.run(["list-panes", "-a", "-F", format]);
    let panes = if told.status.success() { told.text() } else { String::new() };
    let pane = record["pane_id"].as_str()?;
    let row = panes.lines().find(|line| !pane.is_empty() && line.split(' ').next() == Some(pane));
    match (record["state"].as_str()?, agents) {
        ("live", 1) => (row? == format!("{pane} 0 {}  ", record["pane_pid"])).then_some("runs, live"),
        ("frozen", 0) if record["ait"]["lost"].is_object() => Some("lost by itself"),
        ("frozen", 0) if frozen.captured(home) => match row {
            None => Some("frozen, no pane"),
            Some(row) => {
                // a viewer that was started again by itself is known by its pane
                let words: Vec<&str> = row.split(' ').collect();
                (words[1] == "0" && words[3..] == [frozen.id.as_str(), "1"]).then_some("frozen, viewer")
            }
        },
        _ => None,
    }
}

fn finish(home: &Home, tmux: &Tmux, mut case: Case) -> (Cut, &'static str) {
    let what = format!("{:?} ({})", case.cut, case.frozen.id);
    // a restore that was proven sooner makes fewer calls: nothing was cut then
    let hit = wait_until(&format!("the cut {what}"), SETTLES, || {
        let hit =
            fs::read_to_string(case.folder.join("hit")).ok().and_then(|hit| hit.trim().parse::<u32>().ok());
        hit.map(Some).or_else(|| case.restore.try_wait().unwrap().map(|_| None))
    });
    if let (Some(coordinator), How::Stop | How::StopKill) = (hit, case.cut.how) {
        nothing_moves(home, &case.frozen, &what);
        let then = if case.cut.how == How::Stop { Signal::CONT } else { Signal::KILL };
        Process::of(coordinator).unwrap().signal(then);
    }
    wait_until(&format!("the command {what} to end"), SETTLES, || case.restore.try_wait().unwrap());
    let ended =
        wait_until(&format!("the end of {what}: {:?}", home.record(&case.frozen.id)), SETTLES, || {
            end(home, tmux, &case.frozen)
        });
    assert_eq!(end(home, tmux, &case.frozen), Some(ended), "{what}: it stays so");
    (case.cut, if hit.is_some() { ended } else { "not reached" })
}

/// While the owner of its lease is stopped, the record is its own: far longer than the grace of one that is gone.
fn nothing_moves(home: &Home, frozen: &Frozen, what: &str) {
    let held = || home.record(&frozen.id).map(|record| (record["state"].clone(), record["op_nonce"].clone()));
    let before = held();
    if before.as_ref().is_some_and(|(_, nonce)| nonce != "") {
        let what = format!("{what}: it is left alone while stopped");
        stays(&what, Duration::from_secs(3), || held() == before);
    }
}

fn matrix(cuts: &[Cut]) {
    let (home, tmux, _supervisor) = world();
    let mut ends = BTreeMap::new();
    for batch in cuts.chunks(12) {
        let frozen: Vec<Frozen> = batch
            .iter()
            .map(|cut| {
                let window = format!("{:?}{}{}{:?}", cut.how, cut.at, cut.after, cut.between);
                Frozen::claude(&tmux, "main", &window, "alpha")
            })
            .collect();
        let cases: Vec<Case> =
            frozen.into_iter().zip(batch).map(|(frozen, cut)| begin(&home, &tmux, frozen, *cut)).collect();
        for case in cases {
            let (cut, end) = finish(&home, &tmux, case);
            ends.insert(cut, end);
        }
    }
    show(&ends);
}

fn show(ends: &BTreeMap<Cut, &'static str>) {
    for (cut, end) in ends {
        let side = if cut.after { "after " } else { "before" };
        println!(
            "  {:8} {side} call {:2}  {:8}  {end}",
            format!("{:?}", cut.how),
            cut.at,
            format!("{:?}", cut.between)
        );
    }
}

fn all(how: How, betweens: &[Between]) -> Vec<Cut> {
    let mut all = Vec::new();
    for at in 1..=CALLS {
        for after in [false, true] {
            all.extend(betweens.iter().map(|between| Cut { how, at, after, between: *between }));
        }
    }
    all
}

#[test]
fn a_coordinator_that_is_killed_at_any_call_leaves_one_agent_or_its_viewer() {
    matrix(&all(How::Kill, &[Between::Nothing]));
}

#[test]
fn a_coordinator_killed_together_with_what_it_works_on_leaves_no_second_agent() {
    let few = [Between::Pane];
    let every = [Between::Process, Between::Pane, Between::Window];
    let count = crate::support::wait::trials(few.len(), every.len());
    matrix(&all(How::Kill, if count == few.len() { &few } else { &every }));
}

/// The calls at which a stop differs: before the lease is taken, under it, at the respawn, while it is proven.
const STOPS: [usize; 4] = [2, 5, 8, 9];

#[test]
fn while_a_coordinator_is_stopped_nothing_moves_and_then_it_ends_right() {
    let cuts = [How::Stop, How::StopKill]
        .into_iter()
        .flat_map(|how| STOPS.map(|at| Cut { how, at, after: true, between: Between::Nothing }));
    matrix(&cuts.collect::<Vec<Cut>>());
}

#[test]
fn a_server_killed_in_between_leaves_no_second_agent() {
    let mut ends = BTreeMap::new();
    for how in [How::Kill, How::None] {
        for (at, after) in [(3, true), (7, false), (8, true), (9, true)] {
            let (home, tmux, _supervisor) = world();
            let frozen = Frozen::claude(&tmux, "main", "work", "alpha");
            let case = begin(&home, &tmux, frozen, Cut { how, at, after, between: Between::Server });
            let (cut, end) = finish(&home, &tmux, case);
            ends.insert(cut, end);
        }
    }
    show(&ends);
}
