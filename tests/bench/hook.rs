//! The hook against `/bin/true`, at 1,000 records: an event that changes no record, as most are, and the start of a
//! conversation that is new to its record.
//!
//! Both are run from below a process that goes by the name of an agent in a pane of a private tmux, as a provider runs them.

use std::fs;
use std::time::Duration;

use super::support::{AIT, DEADLINE, Home, Tmux, wait_until};

/// Rounds of each.
const ROUNDS: usize = 300;

pub(crate) fn run() {
    let home = Home::on_tmpfs();
    let tmux = Tmux::start(&home);
    let (go, out) = (home.root().join("go"), home.root().join("times"));
    let shell =
        format!("exec -a claude bash -c 'echo ready; read -r line; . {}; read -r line'", go.display());
    let pane = tmux.window("main", "bench", &home.project("alpha"), &["bash", "-c", &shell]);
    let one = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    fs::write(
        &go,
        format!(
            r#"
us() {{ local t=$EPOCHREALTIME; echo "${{t/./}}"; }}
timed() {{ local a b; a=$(us); "${{@:2}}" <"$payload" >/dev/null 2>&1; b=$(us); echo "$1 $((b - a))"; }}
payload={root}/p; echo '{{"session_id":"{one}","source":"startup"}}' >$payload
{AIT} hook SessionStart --provider claude <$payload
for n in $(seq {ROUNDS}); do
  timed true /bin/true
  timed turn {AIT} hook Stop --provider claude
  payload={root}/q; printf '{{"session_id":"7c9e6679-7425-40de-944b-%012x","source":"clear"}}' $n >$payload
  timed start {AIT} hook SessionStart --provider claude
done >{out}.new 2>&1
mv {out}.new {out}
"#,
            root = home.root().display(),
            out = out.display(),
        ),
    )
    .expect("a script");
    super::store::fill_home(&home, 1_000);
    wait_until("the agent to be ready", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("ready").then_some(())
    });
    tmux.ok(["send-keys", "-t", &pane.id, "x", "Enter"]);
    wait_until("the hooks to be done", Duration::from_secs(300), || out.exists().then_some(()));
    let text = fs::read_to_string(&out).expect("times");
    let median = |what: &str| {
        let mut all: Vec<u64> =
            text.lines().filter_map(|line| line.strip_prefix(what)?.trim().parse().ok()).collect();
        assert_eq!(all.len(), ROUNDS, "{text}");
        all.sort_unstable();
        all[all.len() / 2]
    };
    let (floor, turn, start) = (median("true"), median("turn"), median("start"));
    let ratio = |time: u64| time as f64 / floor as f64;
    println!(
        "hook, 1,000 records, n = {ROUNDS}: /bin/true {floor} us, a turn {turn} us ({:.2} x), another conversation \
         {start} us ({:.2} x); goal 5 x",
        ratio(turn),
        ratio(start),
    );
    tmux.ok(["send-keys", "-t", &pane.id, "x", "Enter"]);
}
