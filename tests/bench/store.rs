//! A verb on the store against its floor: reading, parsing, writing, syncing and renaming the same bytes.
//!
//! Both run in one process on tmpfs. `verb` is a cold writer, as `ait record` is: a new [`Store`] that knows nothing;
//! `warm` is a writer that wrote the generation before, as the supervisor is.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use ait::record::{Host, Location, Ours, PaneId, ProcessId, RecordId, ServerEpoch, Step, Upsert, Verb};
use ait::store::{PATIENCE, Paths, Store, System};
use criterion::Criterion;

use super::support::Home;

/// Times one and the other in turn, so that a slow moment hits both.
const ROUNDS: usize = 1_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    for count in [1_000, 10_000] {
        let base = tempfile::tempdir_in("/dev/shm").expect("a tmpfs at /dev/shm");
        let paths = Paths {
            store: base.path().join("agent_sessions.json"),
            frozen: base.path().join("frozen"),
            state: base.path().join("state"),
            runtime: base.path().join("run"),
        };
        let ids = fill(&paths, count);
        let copy = base.path().join("floor.json");
        fs::copy(&paths.store, &copy).expect("a copy");
        let system = System::here();
        let mut turn = 0;
        let mut fill_task = |store: &Store| {
            turn += 1;
            let title = Ours { title: Some(format!("turn {turn:08}")), ..Ours::default() };
            let (id, at) = ids[turn % ids.len()].clone();
            let verb = Verb::Enrich { at, ours: Box::new(title), lost: None, replace: true };
            let answers = store.apply(&[(Some(id), verb)], &system.facts(), PATIENCE).expect("a verb");
            assert!(answers.iter().all(Result::is_ok));
        };
        let warm = Store::open(paths.clone());
        let mut group = criterion.benchmark_group(format!("store/{count}"));
        group.sample_size(10);
        group.bench_function("floor", |b| b.iter(|| floor(&copy)));
        group.bench_function("verb", |b| b.iter(|| fill_task(&Store::open(paths.clone()))));
        group.bench_function("warm", |b| b.iter(|| fill_task(&warm)));
        group.finish();

        let rounds = if count > 1_000 { ROUNDS / 10 } else { ROUNDS };
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            times[0].push(timed(|| floor(&copy)));
            times[1].push(timed(|| fill_task(&Store::open(paths.clone()))));
        }
        // By itself: another writer between its turns would make it read anew.
        for _ in 0..rounds {
            times[2].push(timed(|| fill_task(&warm)));
        }
        let [floor, verb, warm] = times.map(median);
        let ratio = |time: Duration| time.as_secs_f64() / floor.as_secs_f64();
        println!(
            "store, {count} records, {} bytes, n = {rounds}: floor {floor:?}, a verb {verb:?} ({:.2} x), \
             by a writer that knows the file {warm:?} ({:.2} x); goal 2 x",
            fs::metadata(&paths.store).expect("the store").len(),
            ratio(verb),
            ratio(warm),
        );
    }
}

/// What no writer can do without: the same bytes read, parsed as JSON, written, synced and renamed.
fn floor(store: &Path) {
    let text = fs::read(store).expect("the store");
    let parsed: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    std::hint::black_box(&parsed);
    let new = store.with_extension("new");
    let mut file = File::create(&new).expect("a file");
    file.write_all(&text).and_then(|()| file.sync_all()).expect("written");
    fs::rename(&new, store).expect("renamed");
}

/// The store of a home, filled.
pub(crate) fn fill_home(home: &Home, count: u32) {
    let state = home.home().join(".local/state/ait");
    let store = home.store();
    let frozen = store.with_file_name("frozen");
    fill(&Paths { store, frozen, state, runtime: home.runtime().join("ait") }, count);
}

/// A store of `count` live records as the supervisor keeps them, forty windows to a project.
fn fill(paths: &Paths, count: u32) -> Vec<(RecordId, Location)> {
    let store = Store::open(paths.clone());
    let system = System::here();
    let step = |n: u32| -> Step {
        let at = Location::pane(PaneId(n), ProcessId::new(1_000_000 + n as i32, n.to_string()));
        let mut upsert = Upsert::new(format!("/no/such/project-{}", n / 40), format!("agent-pick-{n}"), at);
        upsert.session = "aitasks".into();
        upsert.session_id = format!("3f0c5f5e-0000-4000-8000-{n:012}");
        upsert.transcript = format!("/home/u/.claude/projects/-no-such-project/{n:012}.jsonl");
        upsert.agent_string = "claudecode/opus5".into();
        upsert.operation = "pick".into();
        upsert.task_id = n.to_string();
        upsert.ours = Ours {
            server: Some(ServerEpoch {
                socket: "/tmp/tmux-1000/default".into(),
                pid: 7,
                started: "70".into(),
                started_at: Some(1_788_000_000),
                boot_id: "7c0b2c1e-0000-4000-8000-000000000000".into(),
                unknown: Default::default(),
            }),
            host: Some(Host::Pane),
            argv: Some(vec!["claude".into(), "--model".into(), "opus".into()]),
            cwd: Some("/no/such/project".into()),
            title: Some("turn 00000000".into()),
            ..Ours::default()
        };
        (None, Verb::Upsert(Box::new(upsert)))
    };
    let steps: Vec<Step> = (0..count).map(step).collect();
    let answers = store.apply(&steps, &system.facts(), PATIENCE).expect("filled");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), count as usize);
    let snapshot = store.read().expect("read");
    snapshot.records.iter().map(|record| (record.id, record.location.clone())).collect()
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
