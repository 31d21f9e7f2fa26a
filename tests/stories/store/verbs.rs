//! Result lines, exit codes, and what a name can and cannot do.

use std::fs;

use super::super::support::Home;
use super::{id_of, nonce_of, record, refused, upsert};

#[test]
fn a_life_through_every_state_says_what_the_contract_says() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let me = std::process::id().to_string();
    let begin = [
        "freeze-begin",
        &id,
        "--owner-pid",
        &me,
        "--capture-ansi",
        "/a",
        "--capture-txt",
        "/t",
        "--lines",
        "3",
    ];
    let line = record(&home, begin).ok().text();
    assert!(line.starts_with(&format!("FREEZING:{id}|")), "{line}");
    let nonce = nonce_of(&line);
    refused(&home, 6, ["freeze-commit", &id, "--nonce", "00000000", "--pane", "", "--pane-pid", "0"]);
    let commit = ["freeze-commit", &id, "--nonce", &nonce, "--pane", "%7", "--pane-pid", &me];
    assert_eq!(record(&home, commit).ok().text(), format!("FROZEN:{id}"));
    let frozen = home.record(&id).unwrap();
    assert_eq!((frozen["state"].as_str(), frozen["op_nonce"].as_str()), (Some("frozen"), Some("")));
    assert_eq!(frozen["pane_id"], "%7");
    assert!(!frozen["frozen_at"].as_str().unwrap().is_empty());

    let line = record(&home, ["restore-begin", &id, "--owner-pid", &me, "--mode", "resume"]).ok().text();
    let nonce = nonce_of(&line);
    assert_eq!(line, format!("RESTORING:{id}|{nonce}"));
    let at = ["--nonce", &nonce, "--pane", "%7", "--pane-pid", &me];
    let with = |verb: &str| home.ait(["record", verb, &id].into_iter().chain(at));
    with("restore-confirm").code(5);
    assert_eq!(with("restore-launched").ok().text(), format!("LAUNCHED:{id}"));
    assert_eq!(with("restore-confirm").ok().text(), format!("LIVE:{id}|liveness"));
    let live = home.record(&id).unwrap();
    assert_eq!(live["capture_ansi"], "/a", "an unverified restore keeps the capture");
    assert_eq!((live["ack"].as_str(), live["restore_attempts"].as_i64()), (Some("liveness"), Some(1)));

    assert_eq!(record(&home, ["fill-task", &id, "--task-id", "17"]).ok().text(), format!("FILLED:{id}"));
    record(&home, ["fill-task", &id, "--task-id", "18"]).ok();
    assert_eq!(home.record(&id).unwrap()["task_id"], "17", "only blanks are filled");
    let line = record(&home, ["lease-take", &id, "--owner-pid", &me]).ok().text();
    refused(&home, 8, ["lease-take", &id, "--owner-pid", &me]);
    let release = ["lease-release", &id, "--nonce", &nonce_of(&line)];
    assert_eq!(record(&home, release).ok().text(), format!("RELEASED:{id}"));
    assert_eq!(record(&home, ["drop", &id]).ok().text(), format!("DROPPED:{id}"));
    assert!(home.records().is_empty());
    assert_eq!(home.archived_record(&id).unwrap()["reason"], "dropped");
}

#[test]
fn a_restore_is_acknowledged_only_by_the_session_that_was_asked_for() {
    let home = Home::on_tmpfs();
    let me = std::process::id().to_string();
    let place = ["--root", "/", "--window", "w", "--pane", "%1", "--pane-pid", &me];
    let made = home.ait(["record", "upsert", "--session-id", "asked"].into_iter().chain(place)).ok().text();
    let id = id_of(&made);
    let captures = home.home().join(".config/aitasks/frozen").join(&id);
    fs::create_dir_all(&captures).unwrap();
    fs::write(captures.join("capture.ansi"), "x").unwrap();
    let ansi = captures.join("capture.ansi").to_string_lossy().into_owned();
    let begin = [
        "freeze-begin",
        &id,
        "--owner-pid",
        &me,
        "--capture-ansi",
        &ansi,
        "--capture-txt",
        "",
        "--lines",
        "1",
    ];
    let nonce = nonce_of(&record(&home, begin).ok().text());
    record(&home, ["freeze-commit", &id, "--nonce", &nonce, "--pane", "", "--pane-pid", "0"]).ok();
    let nonce =
        nonce_of(&record(&home, ["restore-begin", &id, "--owner-pid", &me, "--mode", "resume"]).ok().text());
    let acknowledge = |session: &str| {
        let words = ["record", "upsert", "--restore-of", &id, "--nonce", &nonce, "--session-id", session];
        home.ait(words.into_iter().chain(place))
    };
    assert_eq!(acknowledge("another").code(7).text(), format!("RESTORE_SESSION_MISMATCH:{id}"));
    let record_now = home.record(&id).unwrap();
    assert_eq!(record_now["last_error"], format!("{nonce}:session_mismatch"), "the one refusal that writes");
    assert_eq!(record_now["state"], "restoring");
    assert!(captures.exists());
    assert_eq!(acknowledge("asked").ok().text(), format!("UPSERTED:{id}|restored"));
    let live = home.record(&id).unwrap();
    assert_eq!(
        (live["state"].as_str(), live["ack"].as_str(), live["last_error"].as_str()),
        (Some("live"), Some("hook"), Some(""))
    );
    assert!(!captures.exists(), "a verified restore needs its capture no more");
}

#[test]
fn every_refused_verb_leaves_the_file_byte_for_byte() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let me = std::process::id().to_string();
    let at = ["--nonce", "00000000", "--pane", "", "--pane-pid", "0"];
    for verb in ["freeze-commit", "restore-launched", "restore-confirm", "standin-respawned"] {
        let before = fs::read(home.store()).unwrap();
        home.ait(["record", verb, &id].into_iter().chain(at)).code(5);
        home.ait(["record", verb, "ffffffff"].into_iter().chain(at)).code(4);
        assert_eq!(fs::read(home.store()).unwrap(), before, "{verb}");
    }
    refused(&home, 5, ["freeze-abort", &id, "--nonce", "00000000"]);
    refused(&home, 5, ["restore-begin", &id, "--owner-pid", &me, "--mode", "resume"]);
    refused(&home, 5, ["restore-abort", &id, "--nonce", "00000000"]);
    refused(&home, 6, ["lease-release", &id, "--nonce", "00000000"]);
    refused(&home, 6, ["drop", &id, "--nonce", "00000000"]);
    refused(&home, 5, ["lose", &id, "--cause", "server_gone"]);
    refused(&home, 5, ["end", &id, "--reason", "exited"]);
    refused(&home, 4, ["revive", &id]);
    refused(&home, 4, ["drop", "ffffffff"]);
    refused(&home, 4, ["show", "ffffffff"]);
    for words in [
        ["drop", "FFFFFFFF"],
        ["drop", "../../../x"],
        ["drop", "ffff"],
        ["list", "--state=zombie"],
        ["what", "x"],
        ["drop", "--nonce"],
    ] {
        refused(&home, 2, words);
    }
    for (pane, pid) in [("", "7"), ("%1", "0"), ("%1", "-1"), ("main:0.0", "7"), ("%01", "7")] {
        let pid = format!("--pane-pid={pid}");
        refused(&home, 2, ["upsert", "--root", "/", "--window", "w", "--pane", pane, &pid]);
    }
    refused(&home, 2, ["upsert", "--root", "/", "--window", "--pane", "%1", "--pane-pid", "7"]);
}

#[test]
fn no_name_can_forge_a_line() {
    let home = Home::on_tmpfs();
    let long = "x".repeat(300);
    for window in [
        "a|b",
        "tab\there",
        "line\nUPSERTED:00000000|created",
        "quo'te\"s",
        "#{pid}#(id)",
        "agent 😀",
        "-x",
        &long,
        "\\|",
        "é:.",
        "\u{1b}[31m",
    ] {
        let id = upsert(&home, window);
        let stored = home.record(&id).unwrap();
        assert_eq!(stored["window"], window);
        let list = record(&home, ["list"]).ok().text();
        assert_eq!(list.lines().count(), home.records().len(), "{list:?}");
        assert!(
            list.lines().all(|line| line.starts_with("SESSION:") && line.split('|').count() == 8),
            "{list:?}"
        );
        assert_eq!(record(&home, ["show", &id, "--json"]).ok().json(), stored, "JSON gives it as it is");
    }
    let slots = home.records().into_iter().map(|record| record["window_slot"].as_i64().unwrap());
    assert!(slots.into_iter().all(|slot| slot == 0), "each window is its own");
}

#[test]
fn an_empty_value_never_overwrites_a_set_one() {
    let home = Home::on_tmpfs();
    let me = std::process::id().to_string();
    let place = ["--root", "/", "--window", "w", "--pane", "%1", "--pane-pid", &me];
    let said = [
        "--operation",
        "pick",
        "--task-id",
        "5",
        "--session-id",
        "s",
        "--transcript",
        "/t",
        "--agent-string",
        "a/b",
    ];
    let first = home.ait(["record", "upsert"].into_iter().chain(place).chain(said)).ok().text();
    let blank =
        ["--operation", "", "--task-id", "", "--session-id", "", "--transcript", "", "--agent-string", ""];
    let second = home.ait(["record", "upsert"].into_iter().chain(place).chain(blank)).ok().text();
    let id = id_of(&first);
    assert_eq!((first, second), (format!("UPSERTED:{id}|created"), format!("UPSERTED:{id}|updated")));
    let stored = home.record(&id).unwrap();
    for (field, value) in
        [("operation", "pick"), ("task_id", "5"), ("codeagent_session_id", "s"), ("transcript_path", "/t")]
    {
        assert_eq!(stored[field], value);
    }
    home.ait(["record", "upsert", "--clear-session-id"].into_iter().chain(place)).ok();
    assert_eq!(home.record(&id).unwrap()["codeagent_session_id"], "");
}

#[test]
fn a_drop_removes_the_record_and_its_captures_and_nothing_else() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let frozen = home.home().join(".config/aitasks/frozen");
    let folder = frozen.join(&id);
    fs::create_dir_all(&folder).unwrap();
    for name in ["capture.ansi", "capture.txt", "notes"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    let precious = home.root().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("capture.ansi"), "x").unwrap();
    record(&home, ["drop", &id]).ok();
    assert!(!folder.join("capture.ansi").exists() && !folder.join("capture.txt").exists());
    assert!(folder.join("notes").exists(), "somebody else's file");
    let linked = upsert(&home, "linked");
    std::os::unix::fs::symlink(&precious, frozen.join(&linked)).unwrap();
    record(&home, ["drop", &linked]).ok();
    assert!(precious.join("capture.ansi").exists(), "a link leads to files that are not ours");
}
