//! A restore cut short at each of its calls to tmux: its coordinator is killed before and after each, while the pane's process, its pane or its window is left alone or killed in between. After the supervisor has settled
//! it is one of: one agent runs and its record is live; or none runs, the record is frozen with its capture, and the viewer
//! stands in the pane if there is one. Never two agents. The matrix is printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::{Frozen, running};
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
    Process,
    Pane,
    Window,
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
    write("how", cut.how);
    if cut.after {
        write("after", "");
    }
    let pane = &frozen.agent.pane.id;
    let tmux = format!("'{}' -S '{}'", crate::support::tmux::real_binary().display(), tmux.socket_text());
    write(
        "between",
        &match cut.between {
            Between::Nothing => "true".to_owned(),
            Between::Process => format!("kill -KILL $({tmux} display-message -p -t {pane} '#{{pane_pid}}')"),
            Between::Pane => format!("{tmux} kill-pane -t {pane}"),
            Between::Window => format!("{tmux} kill-window -t {pane}"),
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
    let panes = tmux.ok(["list-panes", "-a", "-F", format]);
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
    wait_until(&format!("the command {what} to end"), SETTLES, || case.restore.try_wait().unwrap());
    let ended =
        wait_until(&format!("the end of {what}: {:?}", home.record(&case.frozen.id)), SETTLES, || {
            end(home, tmux, &case.frozen)
        });
    assert_eq!(end(home, tmux, &case.frozen), Some(ended), "{what}: it stays so");
    (case.cut, if hit.is_some() { ended } else { "not reached" })
}

fn matrix(cuts: &[Cut]) {
    let (home, tmux, _supervisor) = world();
    let mut ends = BTreeMap::new();
    for batch in cuts.chunks(12) {
        let frozen: Vec<Frozen> = batch
            .iter()
            .map(|cut| {
                let window = format!("{}{}{}{:?}", cut.how, cut.at, cut.after, cut.between);
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
    for (cut, end) in &ends {
        let side = if cut.after { "after " } else { "before" };
        println!("  {:4} {side} call {:2}  {:8}  {end}", cut.how, cut.at, format!("{:?}", cut.between));
    }
}

fn all(how: &'static str, betweens: &[Between]) -> Vec<Cut> {
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
    matrix(&all("KILL", &[Between::Nothing]));
}

#[test]
fn a_coordinator_killed_together_with_what_it_works_on_leaves_no_second_agent() {
    let few = [Between::Pane];
    let every = [Between::Process, Between::Pane, Between::Window];
    let count = crate::support::wait::trials(few.len(), every.len());
    matrix(&all("KILL", if count == few.len() { &few } else { &every }));
}
