//! A broken store is named with its place, shown as what it is, never read as empty, never written over, and repaired
//! only on request.

use std::fs;
use std::path::PathBuf;

use super::super::support::Home;
use super::{record, refused, upsert};

fn prev(home: &Home) -> PathBuf {
    home.store().with_file_name("agent_sessions.json.prev")
}

/// Two records, so that there is a generation before.
fn two(home: &Home) -> (String, String) {
    (upsert(home, "one"), upsert(home, "two"))
}

#[test]
fn garbage_after_the_end_is_named_with_its_byte_and_cut_off_by_repair() {
    let home = Home::on_tmpfs();
    let (one, two) = two(&home);
    let good = fs::read(home.store()).unwrap();
    fs::write(home.store(), [good.as_slice(), &[b'x'; 1111]].concat()).unwrap();
    let ran = refused(&home, 4, ["fill-task", &one, "--task-id", "1"]);
    assert!(ran.errors().contains(&format!("(byte {})", good.len())), "{ran}");
    assert!(ran.errors().contains("ait store repair"), "{ran}");
    let ran = record(&home, ["list", "--json"]).code(4);
    assert_eq!(ran.json()["origin"], "previous", "readers show the generation before, labelled");
    assert_eq!(ran.json()["sessions"].as_array().unwrap().len(), 1);
    home.ait(["store", "check"]).code(65);
    let ran = home.ait(["store", "repair", "--dry-run"]).ok();
    assert!(ran.text().contains("1111 byte(s)"), "{ran}");
    home.ait(["store", "repair"]).code(65);
    assert_ne!(fs::read(home.store()).unwrap(), good, "nobody was there to say yes");
    home.ait(["store", "repair", "--yes"]).ok();
    assert_eq!(fs::read(home.store()).unwrap(), good);
    let kept = fs::read_dir(home.store().parent().unwrap()).unwrap().flatten();
    assert_eq!(kept.filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-")).count(), 1);
    record(&home, ["fill-task", &two, "--task-id", "1"]).ok();
}

#[test]
fn every_repair_keeps_what_was_broken() {
    let home = Home::on_tmpfs();
    two(&home);
    let good = fs::read(home.store()).unwrap();
    // in quick succession: within one second, too
    let broken = ["first", "second", "third"].map(|words| [&good, words.as_bytes()].concat());
    for text in &broken {
        fs::write(home.store(), text).unwrap();
        home.ait(["store", "repair", "--yes"]).ok();
        assert_eq!(fs::read(home.store()).unwrap(), good);
        home.ait(["store", "repair", "--yes"]).ok();
    }
    let folder = fs::read_dir(home.store().parent().unwrap()).unwrap().flatten();
    let kept = folder.filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-"));
    let mut kept: Vec<Vec<u8>> = kept.map(|entry| fs::read(entry.path()).unwrap()).collect();
    kept.sort();
    assert_eq!(kept, broken, "and nothing where nothing was broken");
}

#[test]
fn zero_bytes_beside_a_generation_before_is_corruption() {
    let home = Home::on_tmpfs();
    let (one, _) = two(&home);
    fs::write(home.store(), "").unwrap();
    let ran = refused(&home, 4, ["fill-task", &one, "--task-id", "1"]);
    assert!(ran.errors().contains("the file is empty, the generation before it holds"), "{ran}");
    let list = record(&home, ["list"]).code(4);
    assert!(list.text().contains(&one), "never \"no agents\": {list}");
    home.ait(["store", "repair", "--yes"]).ok();
    assert!(home.record(&one).is_some());
}

#[test]
fn a_missing_file_and_a_blank_one_without_a_past_are_empty_stores() {
    let home = Home::on_tmpfs();
    assert_eq!(record(&home, ["list"]).ok().text(), "");
    assert!(!home.store().exists(), "reading makes nothing");
    fs::create_dir_all(home.store().parent().unwrap()).unwrap();
    fs::write(home.store(), " \n").unwrap();
    assert_eq!(record(&home, ["list"]).ok().text(), "");
    record(&home, ["upsert", "--root", "/", "--window", "w", "--pane", "", "--pane-pid", "0"]).ok();
    assert_eq!(home.records().len(), 1);
}

#[test]
fn a_torn_file_comes_back_from_the_generation_before() {
    let home = Home::on_tmpfs();
    let (one, two) = two(&home);
    let text = fs::read(home.store()).unwrap();
    fs::write(home.store(), &text[..text.len() / 2]).unwrap();
    refused(&home, 4, ["drop", &one]);
    refused(&home, 4, ["upsert", "--root", "/", "--window", "n", "--pane", "", "--pane-pid", "0"]);
    home.ait(["store", "repair", "--yes"]).ok();
    assert!(home.record(&one).is_some() && home.record(&two).is_none());
    fs::write(home.store(), "{").unwrap();
    fs::write(prev(&home), "{").unwrap();
    let ran = record(&home, ["list"]).code(4);
    assert!(ran.errors().contains("line 1"), "{ran}");
    home.ait(["store", "repair", "--yes"]).code(65);
    assert_eq!(fs::read(home.store()).unwrap(), b"{", "with nothing whole to put back, nothing is touched");
}

#[test]
fn one_bad_record_does_not_hide_the_others() {
    let home = Home::on_tmpfs();
    let (one, two) = two(&home);
    let text = fs::read_to_string(home.store()).unwrap();
    fs::write(home.store(), text.replacen("\"pane_id\": \"%2\"", "\"pane_id\": \"\"", 1)).unwrap();
    let ran = record(&home, ["list"]).code(4);
    assert!(ran.text().contains(&one) && !ran.text().contains(&two), "{ran}");
    assert!(ran.errors().contains(&two) && ran.errors().contains("pane_id and pane_pid"), "{ran}");
    refused(&home, 4, ["fill-task", &one, "--task-id", "1"]);
    home.ait(["store", "repair", "--yes"]).ok();
    assert!(home.record(&one).is_some() && home.record(&two).is_none());
    record(&home, ["fill-task", &one, "--task-id", "1"]).ok();
}

#[test]
fn a_newer_format_is_read_and_never_written_and_unknown_fields_survive() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let text = fs::read_to_string(home.store()).unwrap();
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    fs::write(home.store(), &newer).unwrap();
    assert!(record(&home, ["list"]).ok().text().contains(&id));
    let ran = refused(&home, 4, ["fill-task", &id, "--task-id", "1"]);
    assert!(ran.errors().contains("format 2"), "{ran}");
    home.ait(["store", "repair", "--yes"]).code(65);
    assert_eq!(fs::read_to_string(home.store()).unwrap(), newer);
    let known = text
        .replacen("\"version\": 1", "\"version\": 1,\n  \"written_by\": \"x\"", 1)
        .replacen("\"window_slot\": 0", "\"window_slot\": 0,\n      \"zoom\": 1.50", 1)
        .replacen("\"ait\": {", "\"ait\": {\n        \"aim\": null,", 1);
    fs::write(home.store(), &known).unwrap();
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    let now = fs::read_to_string(home.store()).unwrap();
    assert_eq!(now, known.replacen("\"task_id\": \"\"", "\"task_id\": \"1\"", 1));
}

#[test]
fn leftovers_of_killed_writers_are_never_read_and_go_with_the_next_write() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let folder = home.store().parent().unwrap().to_owned();
    let left = [
        folder.join(".agent_sessions.json.0123456789abcdef.tmp"),
        folder.join(".agent_sessions.json.prev.0123456789abcdef.tmp"),
    ];
    for path in &left {
        fs::write(path, "{ half").unwrap();
    }
    let other = folder.join(".agent_sessions.json.mine.tmp");
    fs::write(&other, "x").unwrap();
    let locked = folder.join("agent_sessions.json.lockd.ait-dead");
    fs::create_dir(&locked).unwrap();
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert!(left.iter().all(|path| !path.exists()) && !locked.exists());
    assert!(other.exists(), "a name this program does not make");
}

#[test]
fn what_is_no_file_is_refused_and_never_waited_for() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    fs::remove_file(home.store()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, home.store(), 0o600.into()).unwrap();
    record(&home, ["list"]).code(1);
    record(&home, ["fill-task", &id, "--task-id", "1"]).code(1);
    let kind = fs::metadata(home.store()).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind), "it is left as it is");
}

#[test]
fn an_observation_without_end_is_refused() {
    let home = Home::on_tmpfs();
    upsert(&home, "w");
    let before = fs::read(home.store()).unwrap();
    let told = record(&home, ["purge", "--observed", "/dev/zero"]).code(4);
    assert!(told.errors().contains("longer than"), "{}", told.errors());
    assert_eq!(fs::read(home.store()).unwrap(), before);
}

#[test]
fn an_unchanged_store_is_not_rewritten() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(home.store()).unwrap());
    let before = inode();
    record(&home, ["fill-task", &id]).ok();
    assert_eq!(inode(), before);
    record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert_ne!(inode(), before);
    assert_eq!(
        std::os::unix::fs::MetadataExt::ino(&fs::metadata(prev(&home)).unwrap()),
        before,
        "the generation before is kept"
    );
}
