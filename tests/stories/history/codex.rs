//! Codex's rollouts: four generations of a first line, packed ones, the archive, the index.

use std::fs;

use ait::history::{self, Found, Wanted};
use ait::provider::Provider::Codex;
use serde_json::json;

use super::{ONE, Stores, TIMED, TWO};

const DAY: &str = ".codex/sessions/2026/11/29";

fn rollout(id: &str) -> String {
    format!("rollout-2026-11-29T20-48-51-{id}.jsonl")
}

fn meta(id: &str, cwd: &str) -> serde_json::Value {
    json!({"timestamp": "2026-11-29T20:49:00.520Z", "type": "session_meta", "payload": {
        "id": id, "timestamp": "2026-11-29T20:48:51.000Z", "cwd": cwd, "originator": "codex-tui",
        "cli_version": "0.171.0", "source": "cli", "instructions": "x".repeat(200_000)
    }})
}

fn lines(first: &serde_json::Value) -> String {
    format!(
        "{first}\n{{\"type\":\"event_msg\",\"payload\":{{\"type\":\"task_started\"}}}}\n{{\"type\":\"resp"
    )
}

#[test]
fn four_generations() {
    let stores = Stores::new();
    let ids = [
        "11111111-fa8d-4808-bac6-dc118bbcf4d7",
        "22222222-fa8d-4808-bac6-dc118bbcf4d7",
        "33333333-fa8d-4808-bac6-dc118bbcf4d7",
        "44444444-fa8d-4808-bac6-dc118bbcf4d7",
    ];
    let a = json!({"session": {"id": ids[0], "timestamp": "2025-05-01T10:00:00Z"}, "items": [{"type": "message"}]});
    stores.file(&format!(".codex/sessions/rollout-2025-05-01-{}.json", ids[0]), a.to_string());
    let b = json!({"id": ids[1], "timestamp": "2025-08-01T10:00:00.000Z", "instructions": null, "git": {}});
    let b = format!("{b}\n{{\"record_type\":\"state\"}}\n");
    stores.file(&format!(".codex/sessions/2025/08/01/{}", rollout(ids[1])), b);
    stores.file(&format!("{DAY}/{}", rollout(ids[2])), lines(&meta(ids[2], "/srv/x")));
    let mut d = meta(ids[3], "/srv/x");
    d["ordinal"] = json!(0);
    d["payload"]["session_id"] = json!(ids[3]);
    d["payload"]["parent_thread_id"] = json!(null);
    d["payload"]["history_mode"] = json!("full");
    stores.file(&format!("{DAY}/{}", rollout(ids[3])), lines(&d));
    for id in ids {
        assert!(stores.said("codex", id, "/anywhere").starts_with("here "), "{id}");
    }
    assert_eq!(stores.ids(Codex, None), ids);
    assert_eq!(stores.ids(Codex, Some("/srv/x")), ids[2..]);
    let began = stores.all(Codex, None).into_iter().map(|found| found.started.unwrap().to_string());
    assert!(began.collect::<Vec<_>>().contains(&"2025-08-01T10:00:00Z".to_owned()));
}

#[test]
fn a_packed_rollout_is_read() {
    let stores = Stores::new();
    let packed = ruzstd::encoding::compress_to_vec(
        lines(&meta(TIMED, "/srv/x")).as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    stores.file(&format!("{DAY}/{}.zst", rollout(TIMED)), &packed);
    assert_eq!(stores.said("codex", TIMED, "/srv/x"), format!("here {DAY}/{}.zst", rollout(TIMED)));
    assert_eq!(stores.ids(Codex, Some("/srv/x")), [TIMED]);
    stores.file(&format!("{DAY}/{}.zst", rollout(TIMED)), &packed[..packed.len() / 2]);
    assert_ne!(stores.said("codex", TIMED, "/srv/x"), "missing no_conversation");
    stores.file(&format!("{DAY}/{}.zst", rollout(TIMED)), "not packed at all");
    assert_eq!(stores.said("codex", TIMED, "/srv/x"), "unknown malformed");
}

#[test]
fn sub_agents_are_no_conversations_and_forks_are_their_own() {
    let stores = Stores::new();
    stores.file(&format!("{DAY}/{}", rollout(ONE)), lines(&meta(ONE, "/srv/x")));
    let mut child = meta(TWO, "/srv/x");
    child["payload"]["source"] = json!({"subagent": {"thread_spawn": {"parent_thread_id": ONE}}});
    stores.file(&format!("{DAY}/{}", rollout(TWO)), lines(&child));
    let third = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    let mut spawned = meta(third, "/srv/x");
    spawned["payload"]["parent_thread_id"] = json!(ONE);
    stores.file(&format!("{DAY}/{}", rollout(third)), lines(&spawned));
    // a fork's file repeats its ancestor's first line behind its own
    let mut fork = meta(TIMED, "/srv/x");
    fork["payload"]["forked_from_id"] = json!(ONE);
    stores.file(&format!("{DAY}/{}", rollout(TIMED)), format!("{fork}\n{}\n", meta(ONE, "/srv/x")));
    assert_eq!(stores.ids(Codex, Some("/srv/x")), [TIMED, ONE]);
    assert_eq!(stores.said("codex", TWO, "/srv/x"), "missing sub_session");
    assert_eq!(stores.said("codex", third, "/srv/x"), "missing sub_session");
    assert!(stores.said("codex", TIMED, "/srv/x").starts_with("here "));
}

#[test]
fn each_miss_has_its_word() {
    let stores = Stores::new();
    assert_eq!(stores.said("codex", ONE, "/srv/x"), "missing no_store");
    stores.file(&format!("{DAY}/{}", rollout(TWO)), lines(&meta(ONE, "/srv/x")));
    assert_eq!(
        stores.said("codex", ONE, "/srv/x"),
        "missing no_conversation",
        "a name is not enough, nor its lack"
    );
    assert_eq!(stores.said("codex", TWO, "/srv/x"), "missing other_id");
    stores.file(&format!("{DAY}/{}", rollout(TIMED)), "");
    assert_eq!(stores.said("codex", TIMED, "/srv/x"), "missing no_turn");
    fs::create_dir_all(stores.home().join(".codex/archived_sessions")).unwrap();
    let file = stores.home().join(format!("{DAY}/{}", rollout(TIMED)));
    fs::rename(file, stores.home().join(format!(".codex/archived_sessions/{}", rollout(TIMED)))).unwrap();
    assert_eq!(stores.said("codex", TIMED, "/srv/x"), "missing archived");
}

#[test]
fn the_index_names_a_file_and_a_title() {
    let mut stores = Stores::new();
    // filed under a day that the id does not tell
    let file =
        stores.file(&format!(".codex/sessions/2027/01/05/{}", rollout(ONE)), lines(&meta(ONE, "/srv/x")));
    let table = |file: &std::path::Path| {
        format!(
            "CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, cwd TEXT, title TEXT);
             INSERT INTO threads VALUES ('{ONE}', '{}', '/srv/x', 'Fix it');",
            file.display()
        )
    };
    drop(stores.database(".codex/state_4.sqlite", false, "CREATE TABLE threads (id TEXT);"));
    drop(stores.database("index/state_5.sqlite", true, &table(&file)));
    assert_eq!(stores.all(Codex, None)[0].title, None);
    fs::write(
        stores.home().join(".codex/config.toml"),
        format!("sqlite_home = \"{}/index\"\n", stores.home().display()),
    )
    .unwrap();
    assert_eq!(stores.all(Codex, None)[0].title.as_deref(), Some("Fix it"));
    fs::write(stores.home().join(".codex/config.toml"), "broken = [").unwrap();
    assert_eq!(stores.all(Codex, None)[0].title, None);
    stores.set("CODEX_SQLITE_HOME", stores.home().join("index"));
    assert_eq!(stores.all(Codex, None)[0].title.as_deref(), Some("Fix it"));
    let (_, with) = history::counted("codex", ONE, "/srv/x".as_ref(), &stores.env());
    assert!(stores.said("codex", ONE, "/srv/x").starts_with("here "));
    // an index that is broken is only slower
    fs::write(stores.home().join("index/state_5.sqlite"), "no database").unwrap();
    assert!(stores.said("codex", ONE, "/srv/x").starts_with("here "));
    let (_, without) = history::counted("codex", ONE, "/srv/x".as_ref(), &stores.env());
    assert!(with.lists < without.lists, "the index spared the tree: {with:?} {without:?}");
    // it may name a file elsewhere: that is not followed, and not missing
    drop(stores.database(
        "moved/state_5.sqlite",
        false,
        &table(&stores.file("out.jsonl", lines(&meta(ONE, "/srv/x")))),
    ));
    stores.set("CODEX_SQLITE_HOME", stores.home().join("moved"));
    fs::remove_file(file).unwrap();
    assert_eq!(stores.said("codex", ONE, "/srv/x"), "unknown leads_out");
}

#[test]
fn the_environment_says_where() {
    let mut stores = Stores::new();
    stores.file(&format!("c/sessions/2026/11/30/{}", rollout(TIMED)), lines(&meta(TIMED, "/srv/x")));
    assert_eq!(stores.said("codex", TIMED, "/srv/x"), "missing no_store");
    stores.set("CODEX_HOME", stores.home().join("c"));
    assert!(stores.said("codex", TIMED, "/srv/x").starts_with("here "), "the local day may be the next");
    stores.set("CODEX_HOME", "~/c");
    assert!(stores.said("codex", TIMED, "/srv/x").starts_with("here "));
}

#[test]
fn a_search_without_an_id_says_how_many_fit() {
    let stores = Stores::new();
    let search = |since: &str, claimed: &[&str]| {
        let claimed = claimed.iter().map(|id| (*id).to_owned()).collect();
        let wanted = Wanted { cwd: "/srv/x".as_ref(), since: since.parse().ok(), claimed: &claimed };
        match history::search(Codex, &wanted, &stores.env()) {
            Found::One(found) => found.id,
            Found::Ambiguous(many) => format!("ambiguous {}", many.len()),
            Found::Missing(why) => why.word().to_owned(),
            Found::Unknown(why) => why.word().to_owned(),
        }
    };
    assert_eq!(search("", &[]), "no_conversation");
    stores.file(&format!("{DAY}/{}", rollout(ONE)), lines(&meta(ONE, "/srv/x")));
    stores.file(&format!("{DAY}/{}", rollout(TIMED)), lines(&meta(TIMED, "/srv/other")));
    assert_eq!(search("", &[]), ONE);
    let mut young = meta(TWO, "/srv/x");
    young["payload"]["timestamp"] = json!("2026-11-29T22:00:00Z");
    stores.file(&format!("{DAY}/{}", rollout(TWO)), lines(&young));
    assert_eq!(search("", &[]), "ambiguous 2", "never the newest");
    assert_eq!(search("2026-11-29T21:00:00Z", &[]), TWO);
    assert_eq!(search("", &[TWO]), ONE);
    assert_eq!(search("", &[ONE, TWO]), "claimed");
    assert_eq!(search("2026-11-29T23:00:00Z", &[]), "no_conversation");
}
