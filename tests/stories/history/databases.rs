//! Hermes and OpenCode: conversations in SQLite, read whole and without a trace, also beside a living writer.

use std::fs;

use ait::history::{self, Located};
use ait::provider::Provider::{Hermes, OpenCode};
use serde_json::json;

use super::Stores;

const SESSIONS: &str =
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, started_at REAL,
    ended_at REAL, end_reason TEXT, cwd TEXT, title TEXT);";

fn hermes(id: &str, parent: &str, times: (u32, u32), reason: &str) -> String {
    let text = |text: &str| if text.is_empty() { "NULL".to_owned() } else { format!("'{text}'") };
    format!(
        "INSERT INTO sessions VALUES ('{id}', 'cli', {}, {}, {}, {}, '/srv/x', 'T {id}');",
        text(parent),
        times.0,
        if times.1 == 0 { "NULL".to_owned() } else { times.1.to_string() },
        text(reason)
    )
}

#[test]
fn a_condensed_conversation_is_followed_to_its_tip() {
    let stores = Stores::new();
    let rows = [
        hermes("first", "", (1, 5), "compression"),
        hermes("second", "first", (5, 9), "compression"),
        hermes("third", "second", (9, 0), ""),
        hermes("aside", "second", (7, 8), ""),
        hermes("alone", "", (1, 0), ""),
        hermes("delegate", "alone", (2, 3), ""),
        hermes("trunk", "", (1, 5), "branched"),
        hermes("branch", "trunk", (5, 0), ""),
        hermes("parted", "", (1, 5), "compression"),
        hermes("left", "parted", (5, 0), ""),
        hermes("right", "parted", (5, 0), ""),
        hermes("round", "round", (5, 5), "compression"),
    ];
    drop(stores.database(".hermes/state.db", true, &format!("{SESSIONS}{}", rows.concat())));
    assert_eq!(stores.said("hermes", "first", "/srv/x"), "now third");
    assert_eq!(stores.said("hermes", "second", "/srv/x"), "now third");
    assert_eq!(stores.said("hermes", "third", "/any"), "here .hermes/state.db");
    assert_eq!(stores.said("hermes", "branch", "/any"), "here .hermes/state.db");
    assert_eq!(stores.said("hermes", "delegate", "/any"), "missing sub_session");
    assert_eq!(
        stores.said("hermes", "aside", "/any"),
        "missing sub_session",
        "it began before its parent was condensed"
    );
    assert_eq!(stores.said("hermes", "parted", "/any"), "ambiguous 2");
    assert_eq!(stores.said("hermes", "round", "/any"), "here .hermes/state.db", "a circle ends");
    assert_eq!(stores.said("hermes", "nobody", "/any"), "missing no_conversation");
    let ids = stores.ids(Hermes, Some("/srv/x"));
    assert_eq!(ids, ["alone", "branch", "left", "right", "third", "trunk"]);
    assert_eq!(stores.ids(Hermes, Some("/srv/y")), [""; 0]);
    let third = stores.all(Hermes, None).into_iter().find(|found| found.id == "third").unwrap();
    assert_eq!(third.started.unwrap().as_second(), 9);
    assert_eq!(third.title.as_deref(), Some("T third"));
}

#[test]
fn every_profile_is_looked_at_and_the_one_in_use_is_told() {
    let mut stores = Stores::new();
    assert_eq!(stores.said("hermes", "a", "/srv/x"), "missing no_store");
    let one = |id: &str| format!("{SESSIONS}{}", hermes(id, "", (1, 0), ""));
    drop(stores.database(".hermes/state.db", true, &one("a")));
    drop(stores.database(".hermes/profiles/work/state.db", true, &one("b")));
    assert_eq!(stores.said("hermes", "a", "/srv/x"), "here .hermes/state.db");
    assert!(stores.said("hermes", "b", "/srv/x").starts_with("elsewhere "));
    stores.file(".hermes/active_profile", "work\n");
    assert_eq!(stores.said("hermes", "b", "/srv/x"), "here .hermes/profiles/work/state.db");
    assert!(stores.said("hermes", "a", "/srv/x").starts_with("elsewhere "));
    assert_eq!(stores.ids(Hermes, None), ["a", "b"]);
    stores.set("HERMES_HOME", stores.home().join(".hermes/profiles/work"));
    assert_eq!(stores.said("hermes", "b", "/srv/x"), "here .hermes/profiles/work/state.db");
    assert_eq!(stores.said("hermes", "a", "/srv/x"), "missing no_conversation");
}

const SESSION: &str =
    "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT,
    title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER, time_archived INTEGER);";

fn opencode(id: &str, parent: &str, folder: &str) -> String {
    let parent = if parent.is_empty() { "NULL".to_owned() } else { format!("'{parent}'") };
    format!(
        "INSERT INTO session VALUES ('{id}', 'p', {parent}, 's', '{folder}', 'Fix', '1', 1000, 2000, NULL);"
    )
}

#[test]
fn opencode_in_databases_and_before_them() {
    let mut stores = Stores::new();
    let tree = |id: &str, parent: serde_json::Value| json!({"id": id, "parentID": parent, "directory": "/srv/x", "title": "Old", "time": {"created": 1, "updated": 2}});
    stores.file(
        ".local/share/opencode/storage/session/p/ses_old.json",
        tree("ses_old", json!(null)).to_string(),
    );
    stores.file(
        ".local/share/opencode/storage/session/p/ses_sub.json",
        tree("ses_sub", json!("ses_old")).to_string(),
    );
    assert!(stores.said("opencode", "ses_old", "/srv/x").starts_with("here "));
    assert_eq!(stores.said("opencode", "ses_sub", "/srv/x"), "missing sub_session");
    assert_eq!(stores.ids(OpenCode, Some("/srv/x")), ["ses_old"]);
    let rows = [opencode("ses_a", "", "/srv/x"), opencode("ses_b", "ses_a", "/srv/x")].concat();
    drop(stores.database(".local/share/opencode/opencode.db", true, &format!("{SESSION}{rows}")));
    let file = "here .local/share/opencode/opencode.db";
    assert_eq!(stores.said("opencode", "ses_a", "/srv/x"), file);
    assert!(stores.said("opencode", "ses_a", "/srv/y").starts_with("elsewhere /srv/x "));
    assert_eq!(stores.said("opencode", "ses_b", "/srv/x"), "missing sub_session");
    assert_eq!(
        stores.said("opencode", "ses_old", "/srv/x"),
        "missing no_conversation",
        "it was moved, or removed there"
    );
    let channel = format!("{SESSION}{}", opencode("ses_dev", "", "/srv/x"));
    drop(stores.database(".local/share/opencode/opencode-dev.db", true, &channel));
    assert_eq!(stores.said("opencode", "ses_dev", "/srv/x"), "here .local/share/opencode/opencode-dev.db");
    assert_eq!(stores.ids(OpenCode, Some("/srv/x")), ["ses_a", "ses_dev"]);
    stores.set("OPENCODE_DISABLE_CHANNEL_DB", "1");
    assert_eq!(stores.said("opencode", "ses_dev", "/srv/x"), "missing no_conversation");
    drop(stores.database("my.db", false, &format!("{SESSION}{}", opencode("ses_mine", "", "/srv/x"))));
    stores.set("OPENCODE_DB", stores.home().join("my.db"));
    assert_eq!(stores.said("opencode", "ses_mine", "/srv/x"), "here my.db");
    stores.set("OPENCODE_DB", stores.home().join("none.db"));
    stores.set("XDG_DATA_HOME", stores.home().join("data"));
    assert_eq!(stores.said("opencode", "ses_a", "/srv/x"), "missing no_store");
}

#[test]
fn what_a_living_writer_has_not_moved_into_the_database_is_seen() {
    let stores = Stores::new();
    let writer = stores.database(".hermes/state.db", true, SESSIONS);
    writer.execute_batch(&hermes("late", "", (1, 0), "")).unwrap();
    assert!(
        fs::metadata(stores.home().join(".hermes/state.db-wal")).unwrap().len() > 0,
        "it lies in the log"
    );
    assert_eq!(stores.said("hermes", "late", "/srv/x"), "here .hermes/state.db");
    // an open change is not there yet
    writer.execute_batch("BEGIN IMMEDIATE;").unwrap();
    writer.execute_batch(&hermes("unfinished", "", (1, 0), "")).unwrap();
    assert_eq!(stores.said("hermes", "unfinished", "/srv/x"), "missing no_conversation");
    writer.execute_batch("COMMIT;").unwrap();
    assert_eq!(stores.said("hermes", "unfinished", "/srv/x"), "here .hermes/state.db");
}

#[test]
fn a_writer_that_never_rests_gives_right_answers_or_none() {
    let stores = Stores::new();
    let writer =
        stores.database(".hermes/state.db", true, &format!("{SESSIONS}{}", hermes("there", "", (1, 0), "")));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut seen, mut unknown) = (0, 0);
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                n += 1;
                let row = hermes(&format!("n{n}"), "", (1, 0), "");
                writer
                    .execute_batch(&format!("{row} DELETE FROM sessions WHERE id = 'n{}';", n - 1))
                    .unwrap();
                if n % 7 == 0 {
                    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
                }
            }
        });
        for _ in 0..60 {
            match stores.locate("hermes", "there", "/srv/x") {
                Located::Present { .. } => seen += 1,
                Located::Unknown { why } if why.word() == "database" => unknown += 1,
                other => panic!("{other:?}"),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    eprintln!("seen {seen}, unknown {unknown}");
    assert_eq!(stores.said("hermes", "there", "/srv/x"), "here .hermes/state.db", "once it rests");
}

#[test]
fn a_change_cut_short_is_undone_in_the_copy_only() {
    let stores = Stores::new();
    let base = stores.home().join(".hermes/state.db");
    let writer =
        stores.database(".hermes/state.db", false, &format!("{SESSIONS}{}", hermes("kept", "", (1, 0), "")));
    // pages are written before the end of the change, as when the cache is full
    writer.execute_batch("PRAGMA cache_size=1; BEGIN IMMEDIATE;").unwrap();
    for n in 0..2_000 {
        writer.execute_batch(&hermes(&format!("n{n}"), "", (1, 0), "")).unwrap();
    }
    let crashed = Stores::new();
    let (to, from) = (crashed.home().join(".hermes"), stores.home().join(".hermes"));
    fs::create_dir_all(&to).unwrap();
    for name in ["state.db", "state.db-journal"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let before = fs::read(to.join("state.db")).unwrap();
    assert_ne!(before.len(), 0);
    assert_eq!(crashed.ids(Hermes, None), ["kept"], "{}", base.display());
    assert_eq!(fs::read(to.join("state.db")).unwrap(), before);
    assert!(to.join("state.db-journal").exists());
}

#[test]
fn a_broken_database_is_unknown() {
    let stores = Stores::new();
    stores.file(".hermes/state.db", "no database at all, but long enough to be looked at as one".repeat(50));
    assert_eq!(stores.said("hermes", "a", "/srv/x"), "unknown database");
    let found = history::discover(Some(Hermes), None, &stores.env());
    assert_eq!((found.conversations.len(), found.doubts.len()), (0, 1));
    let other = Stores::new();
    drop(other.database(".hermes/state.db", true, "CREATE TABLE things (id TEXT);"));
    assert_eq!(other.said("hermes", "a", "/srv/x"), "unknown database", "no table of that name");
    let fewer = Stores::new();
    let rows = "CREATE TABLE sessions (id TEXT, started_at REAL); INSERT INTO sessions VALUES ('a', 1);";
    drop(fewer.database(".hermes/state.db", true, rows));
    assert_eq!(
        fewer.said("hermes", "a", "/srv/x"),
        "here .hermes/state.db",
        "an earlier table has fewer columns"
    );
}
