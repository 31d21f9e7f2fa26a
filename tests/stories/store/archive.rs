//! The archive: nothing is forgotten before its time, what is deleted is gone at once, and no cut and no stale index hides
//! a line.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use ait::record::{RecordId, Stamp};
use ait::store::{Archive, COMPACT_AT, Files, KEEP_SCREEN, PATIENCE, Paths, SCREENS, Store};
use serde_json::{Value, json};

use super::super::support::{Home, Ran};
use super::{record, upsert};

fn store(home: &Home) -> Store {
    let state = home.home().join(".local/state/ait");
    let frozen = home.store().with_file_name("frozen");
    Store::open(Paths { store: home.store(), frozen, state, runtime: home.runtime() })
}

fn files(home: &Home) -> Files {
    store(home).paths().files()
}

/// The ids that a list shows, sorted.
fn listed(home: &Home) -> Vec<String> {
    let mut ids: Vec<String> =
        Archive::new(&files(home)).list().unwrap().iter().map(|line| line.id.to_string()).collect();
    ids.sort();
    ids
}

/// A record that was made and dropped; its id.
fn retired(home: &Home, window: &str) -> String {
    let id = upsert(home, window);
    record(home, ["drop", &id]).ok();
    id
}

/// An archive line like `line`, of another record.
fn line_of(line: &Value, id: &str, at: &str, evidence: &str) -> String {
    let mut line = line.clone();
    line["record"]["id"] = id.into();
    line["at"] = at.into();
    line["evidence"] = evidence.into();
    line.to_string() + "\n"
}

fn append(home: &Home, text: &str) {
    let whole = fs::read_to_string(home.archive()).unwrap() + text;
    fs::write(home.archive(), whole).unwrap();
}

fn drop_with_log(home: &Home, id: &str) -> Ran {
    let mut command = home.ait_command(["record", "drop", id]);
    Ran::run(command.env("AIT_LOG", "info")).ok()
}

#[test]
fn past_its_size_it_keeps_the_latest_line_of_each_record_and_says_what_goes() {
    let home = Home::on_tmpfs();
    let first = retired(&home, "one");
    let line = home.archived_record(&first).unwrap();
    let now = line["at"].as_str().unwrap();
    let padding = "x".repeat(100_000);
    let mut text: String =
        (0..90).map(|turn| line_of(&line, "0000000a", now, &format!("{turn} {padding}"))).collect();
    text += &line_of(&line, "0000000b", "2001-01-01T00:00:00Z", "long ago");
    text += &line_of(&line, "0000000c", now, "deleted later");
    text += &(json!({"at": now, "id": "0000000c", "reason": "deleted"}).to_string() + "\n");
    text += &line_of(&line, "0000000d", now, "another");
    append(&home, &text);
    assert!(fs::metadata(home.archive()).unwrap().len() > COMPACT_AT);
    let last = upsert(&home, "two");
    // of one that came back the line is old, the record is not
    let back = upsert(&home, "three");
    append(&home, &line_of(&line, &back, "2001-01-01T00:00:00Z", "before it came back"));
    let folders = home.home().join(".local/state/ait/sessions");
    let of = ["0000000a", "0000000b", "0000000c", "0000000d", &back, "0000000e"];
    of.iter().for_each(|id| fs::create_dir_all(folders.join(id).join("below")).unwrap());
    let ran = drop_with_log(&home, &last);
    assert!(ran.errors().contains("compacted") && ran.errors().contains("expired: 2"), "{ran}");
    assert_eq!(
        of.map(|id| folders.join(id).exists()),
        [true, false, false, true, true, true],
        "the folders of what was deleted or is past its time go, nobody else's"
    );
    let meta = fs::metadata(home.archive()).unwrap();
    assert!(meta.len() < 300_000, "{} bytes are left", meta.len());
    assert_eq!(meta.mode() & 0o7777, 0o600);
    let mut wanted = vec![first, "0000000a".to_owned(), "0000000d".to_owned(), last];
    wanted.sort();
    assert_eq!(listed(&home), wanted);
    assert_eq!(home.archived().len(), 4, "one line each");
    assert_eq!(Archive::new(&files(&home)).since(0).unwrap().len(), 4);
    assert_eq!(Archive::new(&files(&home)).since(i64::MAX).unwrap(), []);
    let kept = home.archived_record("0000000a").unwrap();
    assert!(kept["evidence"].as_str().unwrap().starts_with("89 "), "the latest one");
    record(&home, ["revive", "0000000b"]).code(4);
    record(&home, ["revive", "0000000c"]).code(4);
    assert_eq!(record(&home, ["revive", "0000000d"]).ok().text(), "REVIVED:0000000d");
}

#[test]
fn a_compaction_that_frees_nothing_is_not_done_again() {
    let home = Home::on_tmpfs();
    let first = retired(&home, "one");
    let line = home.archived_record(&first).unwrap();
    let now = line["at"].as_str().unwrap();
    let padding = "x".repeat(100_000);
    append(&home, &(0..90).map(|at| line_of(&line, &format!("{at:08x}"), now, &padding)).collect::<String>());
    let inode = || fs::metadata(home.archive()).unwrap().ino();
    let before = inode();
    retired(&home, "two");
    let compacted = inode();
    assert_ne!(compacted, before);
    retired(&home, "three");
    assert_eq!(inode(), compacted);
    assert_eq!(listed(&home).len(), 93);
}

#[test]
fn what_is_deleted_is_gone_at_once_and_stays_so() {
    let home = Home::on_tmpfs();
    let (gone, kept) = (retired(&home, "one"), retired(&home, "two"));
    let (store, files) = (store(&home), files(&home));
    let id: RecordId = gone.parse().unwrap();
    Archive::new(&files).keep_screen(id, b"its last words").unwrap();
    assert!(Archive::new(&files).screen(id).is_some());
    store.delete_archived(id, Stamp::from_unix(2_000_000_000), PATIENCE).unwrap();
    assert_eq!(listed(&home), [kept.as_str()]);
    assert!(Archive::new(&files).get(id).unwrap().is_none());
    assert!(Archive::new(&files).screen(id).is_none(), "its last screen goes with it");
    record(&home, ["revive", &gone]).code(4);
    // also for one who reads the whole file
    fs::remove_file(&files.index).unwrap();
    assert_eq!(listed(&home), [kept.as_str()]);
}

#[test]
fn the_index_is_only_a_copy() {
    let home = Home::on_tmpfs();
    let mut ids: Vec<String> = (0..5).map(|at| retired(&home, &format!("w{at}"))).collect();
    ids.sort();
    let index = files(&home).index;
    let whole = fs::read(&index).unwrap();
    // one of another file, and so of other records
    let other = String::from_utf8(whole.clone()).unwrap().replacen("\"inode\":", "\"inode\":1", 1);
    let other = other.replace(&ids[0], "ffffffff");
    for broken in [&b""[..], b"garbage\n", &whole[..whole.len() / 2], other.as_bytes()] {
        fs::write(&index, broken).unwrap();
        assert_eq!(listed(&home), ids, "with an index of {:?}", String::from_utf8_lossy(broken));
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(listed(&home), ids);
    ids.push(retired(&home, "w5"));
    ids.sort();
    assert_eq!(listed(&home), ids);
    assert_eq!(fs::metadata(&index).unwrap().mode() & 0o7777, 0o600, "and it is made again");
}

#[test]
fn half_a_line_of_a_killed_writer_hides_no_other() {
    let home = Home::on_tmpfs();
    let first = retired(&home, "one");
    append(&home, "{\"at\":\"2026-01-01T00:00:00Z\",\"record\":{\"id\":\"0000");
    let second = retired(&home, "two");
    let mut ids = vec![first.clone(), second.clone()];
    ids.sort();
    assert_eq!(listed(&home), ids);
    for id in [first, second] {
        assert_eq!(record(&home, ["revive", &id]).ok().text(), format!("REVIVED:{id}"));
    }
}

/// The archive lets go of its screens in time; a revived record's capture must not go with them.
#[test]
fn a_revived_record_has_its_last_screen_for_good() {
    let home = Home::on_tmpfs();
    let id = retired(&home, "one");
    let files = files(&home);
    let number = u32::from_str_radix(&id, 16).unwrap();
    let kept = screen(&home, number, 1, std::time::Duration::ZERO);
    record(&home, ["revive", &id]).ok();
    let capture = home.record(&id).unwrap()["capture_ansi"].as_str().unwrap().to_owned();
    fs::remove_file(&kept).unwrap();
    assert_eq!(Archive::new(&files).screen(RecordId::from_bits(number)), None);
    assert_eq!(fs::read(&capture).unwrap(), b"x");
    assert_eq!(fs::metadata(&capture).unwrap().mode() & 0o7777, 0o600);
}

/// Puts a last screen of `size` bytes there, `age` old.
fn screen(home: &Home, id: u32, size: u64, age: std::time::Duration) -> PathBuf {
    let (id, files) = (RecordId::from_bits(id), files(home));
    let archive = Archive::new(&files);
    archive.keep_screen(id, b"x").unwrap();
    let path = archive.screen(id).expect("it is kept");
    let file = File::options().write(true).open(&path).unwrap();
    // its size counts, not what is in it
    file.set_len(size).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    path
}

#[test]
fn last_screens_are_kept_for_their_time_and_within_their_size() {
    let home = Home::on_tmpfs();
    let minute = std::time::Duration::from_secs(60);
    let expired = screen(&home, 1, 10, KEEP_SCREEN + minute);
    let old = screen(&home, 2, 10, KEEP_SCREEN - minute);
    assert!(!expired.exists() && old.exists());
    assert_eq!(fs::metadata(&old).unwrap().mode() & 0o7777, 0o600);
    let large = screen(&home, 3, SCREENS - 20, 2 * minute);
    let small = screen(&home, 4, 15, minute);
    assert!(old.exists() && large.exists(), "still within the size");
    let newest = screen(&home, 5, 15, std::time::Duration::ZERO);
    assert!(!old.exists(), "the oldest goes first");
    assert!(large.exists() && small.exists() && newest.exists(), "and no more than must");
    let last = screen(&home, 6, 15, std::time::Duration::ZERO);
    assert!(!large.exists() && small.exists() && newest.exists() && last.exists());
}
