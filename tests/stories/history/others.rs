//! Gemini, Copilot, Qwen and pi.

use ait::provider::Provider::{Copilot, Gemini, Pi, Qwen};
use serde_json::json;

use super::{ONE, Stores, TWO};

fn gemini_line(id: &str, kind: &str) -> String {
    let head = json!({"sessionId": id, "projectHash": "h", "startTime": "2026-11-29T20:00:00.000Z",
        "lastUpdated": "2026-11-29T20:00:00.000Z", "kind": kind});
    format!("{head}\n{{\"$set\":{{\"lastUpdated\":\"x\"}}}}\n{{\"id\":\"m\",\"type\":\"us")
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn gemini_is_mapped_to_its_project_three_ways() {
    let mut stores = Stores::new();
    let file =
        |project: &str, name: &str| format!(".gemini/tmp/{project}/chats/session-2026-11-29T20-00-{name}");
    let third = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    let other = "5be1c2bb-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    stores.file(".gemini/projects.json", json!({"projects": {"/srv/mapped": "mapped"}}).to_string());
    stores.file(&file("mapped", &format!("{}.jsonl", &ONE[..8])), gemini_line(ONE, "main"));
    stores.file(".gemini/tmp/marked-1/.project_root", "/srv/marked\n");
    stores.file(&file("marked-1", &format!("{}.jsonl", &TWO[..8])), gemini_line(TWO, "main"));
    let old = json!({"sessionId": third, "projectHash": sha256("/srv/old"), "startTime": "2025-11-29T20:00:00Z",
        "lastUpdated": "2025-11-29T20:00:00Z", "messages": []});
    stores.file(&file(&sha256("/srv/old"), &format!("{}.json", &third[..8])), old.to_string());
    stores.file(&format!(".gemini/tmp/mapped/chats/{ONE}/session-x.jsonl"), gemini_line(other, "subagent"));
    stores.file(&file("mapped", &format!("{}.jsonl", &other[..8])), gemini_line(other, "subagent"));
    for (id, root) in [(ONE, "/srv/mapped"), (TWO, "/srv/marked"), (third, "/srv/old")] {
        assert!(stores.said("gemini", id, root).starts_with("here "), "{root}");
        assert!(stores.said("gemini", id, "/srv/none").starts_with("elsewhere "), "{root}");
        assert_eq!(stores.ids(Gemini, Some(root)), [id]);
    }
    assert_eq!(stores.said("gemini", other, "/srv/mapped"), "missing sub_session");
    assert_eq!(stores.said("gemini", &ONE.replace("bac6", "bac7"), "/srv/mapped"), "missing no_conversation");
    assert_eq!(stores.ids(Gemini, None).len(), 3);
    // a resumed conversation goes on in a second file
    let second = ".gemini/tmp/mapped/chats/session-2026-11-30T08-00-3c02bdca.jsonl";
    stores.file(second, gemini_line(ONE, "main"));
    assert_eq!(stores.said("gemini", ONE, "/srv/mapped"), format!("here {second}"));
    assert_eq!(stores.ids(Gemini, Some("/srv/mapped")), [ONE]);
    // the same id in another project is another copy
    stores.file(&file("marked-1", &format!("{}.jsonl", &ONE[..8])), gemini_line(ONE, "main"));
    assert_eq!(stores.said("gemini", ONE, "/srv/none"), "ambiguous 2");
    assert!(stores.said("gemini", ONE, "/srv/marked").starts_with("here "));
    stores.set("GEMINI_CLI_HOME", stores.home().join("nowhere"));
    assert_eq!(stores.said("gemini", ONE, "/srv/mapped"), "missing no_store");
}

#[test]
fn copilot_is_known_by_its_first_event() {
    let mut stores = Stores::new();
    let start = |id: &str, cwd: &str| {
        let event = json!({"type": "session.start", "id": "e", "timestamp": "2026-08-01T10:00:00Z",
            "data": {"sessionId": id, "startTime": "2026-08-01T10:00:00Z", "context": {"cwd": cwd}}});
        format!("{{\"type\":\"session.info\"}}\n{event}\n{{\"type\":\"user.mess")
    };
    assert_eq!(stores.said("copilot", ONE, "/srv/x"), "missing no_store");
    stores.file(&format!(".copilot/session-state/{ONE}/events.jsonl"), start(ONE, "/srv/x"));
    stores.file(
        &format!(".copilot/session-state/{ONE}/workspace.yaml"),
        "id: x\nname: \"Fix it\"\nnested:\n  cwd: /no\n",
    );
    // a folder that goes by another name, and one whose name lies
    stores.file(".copilot/session-state/renamed/events.jsonl", start(TWO, "/srv/y"));
    let third = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    stores.file(&format!(".copilot/session-state/{third}/events.jsonl"), start("another", "/srv/x"));
    stores.file(".copilot/session-state/vscode.metadata.json", "{}");
    let legacy = "5be1c2bb-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    let old = json!({"sessionId": legacy, "startTime": "2025-10-01T10:00:00Z", "chatMessages": []});
    stores.file(&format!(".copilot/history-session-state/session_{legacy}_1.json"), old.to_string());
    assert_eq!(stores.said("copilot", ONE, "/no"), format!("here .copilot/session-state/{ONE}/events.jsonl"));
    assert_eq!(stores.said("copilot", TWO, "/no"), "here .copilot/session-state/renamed/events.jsonl");
    assert_eq!(stores.said("copilot", third, "/no"), "missing no_conversation");
    assert!(stores.said("copilot", legacy, "/no").starts_with("here .copilot/history-session-state/"));
    assert_eq!(stores.ids(Copilot, Some("/srv/y")), [TWO]);
    assert_eq!(stores.ids(Copilot, None).len(), 4);
    let here = stores.all(Copilot, Some("/srv/x"));
    assert_eq!(here.iter().find(|found| found.id == ONE).unwrap().title.as_deref(), Some("Fix it"));
    stores.set("COPILOT_HOME", stores.home().join("nowhere"));
    assert_eq!(stores.said("copilot", ONE, "/srv/x"), "missing no_store");
}

#[test]
fn qwen_of_both_generations() {
    let mut stores = Stores::new();
    let line = |id: &str, cwd: &str| {
        let user = json!({"sessionId": id, "cwd": cwd, "timestamp": "2026-11-29T20:00:00Z", "type": "user"});
        format!("{{\"type\":\"system\"}}\n{user}\n{{\"tor")
    };
    stores.file(&format!(".qwen/projects/-srv-my-app/chats/{ONE}.jsonl"), line(ONE, "/srv/my.app"));
    stores.file(&format!(".qwen/projects/-srv-my-app/chats/{TWO}.jsonl"), line(TWO, "/srv/my_app"));
    let third = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    let old =
        json!({"sessionId": third, "projectHash": "h", "startTime": "2025-11-29T20:00:00Z", "messages": []});
    stores
        .file(&format!(".qwen/tmp/{}/chats/session-2025-0f6b2c55.json", sha256("/srv/old")), old.to_string());
    assert!(stores.said("qwen", ONE, "/srv/my.app").starts_with("here "));
    assert!(stores.said("qwen", ONE, "/srv/my_app").starts_with("elsewhere /srv/my.app "));
    assert!(stores.said("qwen", ONE, "/srv/far").starts_with("elsewhere /srv/my.app "));
    assert!(stores.said("qwen", third, "/srv/old").starts_with("here "));
    assert_eq!(stores.said("qwen", &ONE.replace("bac6", "bac7"), "/srv/old"), "missing no_conversation");
    assert_eq!(stores.ids(Qwen, Some("/srv/my_app")), [TWO]);
    assert_eq!(stores.ids(Qwen, Some("/srv/old")), [third]);
    assert_eq!(stores.ids(Qwen, None).len(), 3);
    stores.file(&format!("q/projects/-srv-x/chats/{ONE}.jsonl"), line(ONE, "/srv/x"));
    stores.set("QWEN_HOME", stores.home().join("q"));
    assert!(stores.said("qwen", ONE, "/srv/x").starts_with("here q/"));
    stores.set("QWEN_RUNTIME_DIR", stores.home().join("nowhere"));
    assert_eq!(
        stores.said("qwen", ONE, "/srv/x"),
        "missing no_store",
        "the runtime folder goes before the home"
    );
}

#[test]
fn pi_is_known_by_its_first_line() {
    let mut stores = Stores::new();
    let head = |id: &str, cwd: &str| {
        let head = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-11-29T20:00:00.000Z", "cwd": cwd});
        format!("{head}\n{{\"type\":\"mess")
    };
    let name = |id: &str| format!("2026-11-29T20-00-00-000Z_{id}.jsonl");
    stores.file(&format!(".pi/agent/sessions/--srv-x--/{}", name(ONE)), head(ONE, "/srv/x"));
    stores.file(&format!(".pi/agent/sessions/--srv-x--/{}", name(TWO)), head(ONE, "/srv/x"));
    let collided = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    stores.file(&format!(".pi/agent/sessions/--srv-a-b--/{}", name(collided)), head(collided, "/srv/a/b"));
    assert!(stores.said("pi", ONE, "/srv/x").starts_with("here "));
    assert!(stores.said("pi", ONE, "/srv/y").starts_with("elsewhere /srv/x "));
    assert_eq!(stores.said("pi", TWO, "/srv/x"), "missing other_id");
    assert!(stores.said("pi", collided, "/srv/a-b").starts_with("elsewhere /srv/a/b "));
    assert_eq!(stores.ids(Pi, Some("/srv/a/b")), [collided]);
    assert_eq!(stores.ids(Pi, Some("/srv/a-b")), [""; 0]);
    stores.file(&format!("agent/sessions/--srv-z--/{}", name(ONE)), head(ONE, "/srv/z"));
    stores.set("PI_CODING_AGENT_DIR", stores.home().join("agent"));
    assert!(stores.said("pi", ONE, "/srv/z").starts_with("here agent/"));
    stores.file(&format!("flat/{}", name(TWO)), head(TWO, "/srv/z"));
    stores.set("PI_CODING_AGENT_SESSION_DIR", stores.home().join("flat"));
    assert!(stores.said("pi", TWO, "/srv/z").starts_with("here flat/"));
    assert_eq!(stores.said("pi", ONE, "/srv/z"), "missing no_conversation");
    assert_eq!(stores.ids(Pi, Some("/srv/z")), [TWO]);
}
