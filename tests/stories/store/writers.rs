//! Many writers at once, and writers killed at any moment.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use super::super::support::Home;
use super::{record, upsert};

#[test]
fn fifty_processes_with_twenty_verbs_each_apply_every_verb_once() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "counter");
    let busy = AtomicU32::new(0);
    let pid = std::process::id().to_string();
    // Each upsert moves the record to a pane of its own, which counts one generation up.
    let step = |writer: u32, turn: u32| {
        let pane = format!("%{}", 1000 + writer * 20 + turn);
        loop {
            let place = ["--root", "/", "--window", "counter", "--pane", &pane, "--pane-pid", &pid];
            let ran = home.ait(["record", "upsert", "--id", &id].into_iter().chain(place));
            match ran.status.code() {
                Some(0) => break,
                Some(3) => busy.fetch_add(1, Ordering::Relaxed),
                _ => panic!("neither applied nor busy: {ran}"),
            };
        }
    };
    thread::scope(|scope| {
        for writer in 0..50 {
            scope.spawn(move || (0..20).for_each(|turn| step(writer, turn)));
        }
    });
    let record = home.record(&id).unwrap();
    assert_eq!(record["ait"]["generation"], 1001, "busy {} times", busy.into_inner());
    let left = fs::read_dir(home.store().parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".tmp") && !name.contains("lockd")), "{left:?}");
}

#[test]
fn a_writer_killed_at_any_moment_leaves_a_whole_store_and_no_lock() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let whole = {
        let start = Instant::now();
        record(&home, ["fill-task", &id, "--operation", "x"]).ok();
        start.elapsed()
    };
    for turn in 0u32..200 {
        let window = format!("w{turn}");
        let mut writer = home.ait_command([
            "record",
            "upsert",
            "--root",
            "/",
            "--window",
            &window,
            "--pane",
            "",
            "--pane-pid",
            "0",
        ]);
        let mut child = writer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Killed somewhere between its first and its last instruction, each time elsewhere.
        let moment = whole.mul_f64(f64::from(turn % 100) / 80.0);
        let start = Instant::now();
        while start.elapsed() < moment && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(home.record(&id).is_some(), "the store is whole after turn {turn}");
    }
    // a lock that nobody holds any more would make it say `LOCK_BUSY`
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    let left = fs::read_dir(home.store().parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".tmp") && !name.contains("lockd")), "{left:?}");
}
