//! The earlier scripts' directory lock beside our own: held by the living it is waited for, held by the dead it is taken.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::super::support::Home;
use super::super::support::run::Running;
use super::{record, refused, upsert};

fn lockd(home: &Home) -> PathBuf {
    home.store().with_file_name("agent_sessions.json.lockd")
}

/// A lock as the earlier scripts make it.
fn held_by(home: &Home, pid: Option<u32>) {
    fs::create_dir(lockd(home)).unwrap();
    if let Some(pid) = pid {
        fs::write(lockd(home).join("pid"), format!("{pid}\n")).unwrap();
        fs::write(lockd(home).join("owner"), format!("{pid}-1-2-3\n")).unwrap();
    }
}

fn aged(home: &Home, age: Duration) {
    let folder = fs::File::open(lockd(home)).unwrap();
    folder.set_modified(SystemTime::now() - age).unwrap();
}

fn sleeper(home: &Home) -> Running {
    Running::start(home.command("sleep").arg("600"))
}

#[test]
fn a_living_holder_is_waited_for_and_then_said_to_be_busy() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let holder = sleeper(&home);
    held_by(&home, Some(holder.process().pid));
    let ran = refused(&home, 3, ["fill-task", &id, "--task-id", "1"]);
    assert!(ran.errors().contains("LOCK_BUSY"), "{ran}");
    assert!(ran.took >= Duration::from_secs(2), "it waits its time: {:?}", ran.took);
    assert!(lockd(&home).join("pid").exists(), "a living holder keeps it");
    assert_eq!(record(&home, ["list"]).ok().text().lines().count(), 1, "readers take no lock");
    fs::remove_dir_all(lockd(&home)).unwrap();
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert!(!lockd(&home).exists(), "and it is given back");
}

#[test]
fn a_dead_holder_is_stolen_from() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    held_by(&home, Some(gone.id()));
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert!(!lockd(&home).exists());
}

#[test]
fn a_lock_without_a_pid_is_waited_for_until_it_is_old() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    held_by(&home, None);
    refused(&home, 3, ["fill-task", &id, "--task-id", "1"]);
    aged(&home, Duration::from_secs(11));
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
}

#[test]
fn a_holder_whose_pid_was_handed_out_again_is_gone() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let stranger = sleeper(&home);
    held_by(&home, Some(stranger.process().pid));
    aged(&home, Duration::from_secs(3600));
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert!(stranger.process().alive());
}

#[test]
fn our_own_lock_left_by_a_killed_writer_is_no_lock() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    held_by(&home, Some(std::process::id()));
    fs::write(lockd(&home).join("owner"), "ait-0123456789abcdef\n").unwrap();
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
}
