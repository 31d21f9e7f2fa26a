//! Nothing under a provider's home is created, changed or removed by looking: a watch on every folder says so, and is shown
//! to be one that can say otherwise.

use std::fs;
use std::path::{Path, PathBuf};

use ait::history;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use serde_json::json;

use super::{ONE, Stores, TIMED, TWO};
use crate::support::{AIT, DEADLINE, Ran, proc, wait_until};

/// A watch on a folder and all below it.
struct Watch {
    fd: OwnedFd,
}

impl Watch {
    fn on(root: &Path) -> Watch {
        // what another story starts holds our files for a moment, and closes what we have written and closed already
        wait_until("nobody else to have the files", DEADLINE, || {
            let me = std::process::id();
            proc::holders(root).iter().all(|pid| *pid == me).then_some(())
        });
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        let flags = inotify::WatchFlags::CREATE
            | inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::ATTRIB
            | inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::DELETE_SELF
            | inotify::WatchFlags::MOVE;
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            inotify::add_watch(&fd, &folder, flags).unwrap();
            let entries = fs::read_dir(&folder).unwrap().flatten();
            folders.extend(
                entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path()),
            );
        }
        Watch { fd }
    }

    /// What happened since it was last asked.
    fn seen(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&now)).unwrap() > 0 {
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
            while let Ok(event) = reader.next() {
                seen.push(format!("{:?} {:?}", event.file_name(), event.events()));
                if reader.is_buffer_empty() {
                    break;
                }
            }
        }
        seen
    }
}

/// Every file with its content and times; a read changes the time of the last read, and only that.
fn picture(root: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut folders = vec![root.to_owned()];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let facts = path.symlink_metadata().unwrap();
            if facts.is_dir() {
                folders.push(path.clone());
            }
            let bytes = if facts.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.push((
                path,
                facts.ino() ^ facts.mtime_nsec().unsigned_abs() ^ u64::from(facts.mode()),
                bytes,
            ));
        }
    }
    all.sort();
    all
}

/// A home with a store of every provider; the connections keep the logs of two databases beside them.
fn full() -> (Stores, Vec<rusqlite::Connection>) {
    let stores = Stores::new();
    stores.claude("-srv-x", ONE, "/srv/x");
    stores.file(&format!(".claude/projects/-srv-x/{ONE}/subagents/agent-a.jsonl"), "{}\n");
    stores.file(".claude/sessions/1.json", "{\"pid\":1,\"sessionId\":\"x\"}");
    let meta = format!("{}\n", json!({"type": "session_meta", "payload": {"id": TIMED, "cwd": "/srv/x"}}));
    let rollout = format!(".codex/sessions/2026/11/29/rollout-2026-11-29T20-48-51-{TIMED}.jsonl");
    stores.file(&rollout, &meta);
    let packed = ruzstd::encoding::compress_to_vec(
        meta.replace(TIMED, TWO).as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    stores.file(&rollout.replace(TIMED, TWO).replace(".jsonl", ".jsonl.zst"), packed);
    let threads = "CREATE TABLE threads (id TEXT, rollout_path TEXT, title TEXT);";
    let sessions = "CREATE TABLE sessions (id TEXT, cwd TEXT); INSERT INTO sessions VALUES ('h', '/srv/x');";
    let session =
        "CREATE TABLE session (id TEXT, directory TEXT); INSERT INTO session VALUES ('ses_o', '/srv/x');";
    // at rest in WAL mode, with a living writer, and in the plain mode
    drop(stores.database(".codex/state_5.sqlite", true, threads));
    let writers = vec![
        stores.database(".hermes/state.db", true, sessions),
        stores.database(".local/share/opencode/opencode.db", true, session),
    ];
    drop(stores.database(".hermes/profiles/rest/state.db", true, &sessions.replace("'h'", "'r'")));
    drop(stores.database(".hermes/profiles/plain/state.db", false, &sessions.replace("'h'", "'p'")));
    let line =
        json!({"sessionId": "g0000000", "startTime": "2026-11-29T20:00:00Z", "kind": "main"}).to_string();
    stores.file(".gemini/projects.json", json!({"projects": {"/srv/x": "x"}}).to_string());
    stores.file(".gemini/tmp/x/chats/session-2026-11-29T20-00-g0000000.jsonl", &line);
    let start = json!({"type": "session.start", "data": {"sessionId": "c", "context": {"cwd": "/srv/x"}}});
    stores.file(".copilot/session-state/c/events.jsonl", start.to_string());
    let user = json!({"sessionId": "q", "cwd": "/srv/x", "type": "user"});
    stores.file(".qwen/projects/-srv-x/chats/q.jsonl", user.to_string());
    let head = json!({"type": "session", "id": "p", "cwd": "/srv/x"});
    stores.file(".pi/agent/sessions/--srv-x--/2026_p.jsonl", head.to_string());
    (stores, writers)
}

/// Asks everything there is to ask.
fn ask_all(stores: &Stores) {
    let ids = [
        ("claude", ONE),
        ("codex", TIMED),
        ("codex", TWO),
        ("hermes", "h"),
        ("hermes", "r"),
        ("hermes", "p"),
        ("gemini", "g0000000"),
        ("opencode", "ses_o"),
        ("copilot", "c"),
        ("qwen", "q"),
        ("pi", "p"),
    ];
    for (kind, id) in ids {
        let said = stores.said(kind, id, "/srv/x");
        assert!(said.starts_with("here ") || said.starts_with("elsewhere "), "{kind} {id}: {said}");
        assert!(stores.said(kind, "nobody", "/srv/x").starts_with("missing "), "{kind}");
    }
    for cwd in [None, Some(Path::new("/srv/x"))] {
        let found = history::discover(None, cwd, &stores.env());
        assert_eq!(found.doubts, []);
        assert_eq!(found.conversations.len(), ids.len());
    }
    let me = ait::process::me().unwrap();
    assert_eq!(history::registry(&me, &stores.env()), None);
    let mut command = std::process::Command::new(AIT);
    command.env_clear().env("HOME", stores.home()).args(["discover", "--all", "--json"]);
    let told = Ran::run(&mut command).ok().json();
    assert_eq!(told["conversations"].as_array().unwrap().len(), ids.len());
}

#[test]
fn looking_leaves_no_trace() {
    let (stores, writers) = full();
    let home = stores.home();
    for folder in [".hermes/state.db-wal", ".local/share/opencode/opencode.db-wal"] {
        assert!(home.join(folder).exists(), "a living writer's log: {folder}");
    }
    let before = picture(&home);
    let watch = Watch::on(&home);
    ask_all(&stores);
    assert_eq!(watch.seen(), [""; 0]);
    assert_eq!(picture(&home), before);
    // the writers go on unhindered
    for writer in &writers {
        writer.execute_batch("CREATE TABLE later (x); PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    }
    assert_ne!(watch.seen(), [""; 0], "their own writing is seen");
    // a writer that was killed leaves its log: the same
    drop(writers);
    let (killed, writers) = full();
    let log = killed.home().join(".hermes/state.db-wal");
    let (base, kept) = (log.with_file_name("state.db"), killed.home().join("kept"));
    fs::create_dir_all(&kept).unwrap();
    for file in [&base, &log] {
        fs::copy(file, kept.join(file.file_name().unwrap())).unwrap();
    }
    drop(writers);
    for file in [&base, &log] {
        fs::copy(kept.join(file.file_name().unwrap()), file).unwrap();
    }
    let watch = Watch::on(&killed.home());
    ask_all(&killed);
    assert_eq!(watch.seen(), [""; 0]);
}

#[test]
fn the_watch_sees_what_a_plain_look_leaves_behind() {
    let (stores, _writers) = full();
    let watch = Watch::on(&stores.home());
    let resting = stores.home().join(".hermes/profiles/rest/state.db");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let plain = rusqlite::Connection::open_with_flags(&resting, flags).unwrap();
    let rows: i64 = plain.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
    drop(plain);
    assert!(
        watch.seen().iter().any(|event| event.contains("state.db-shm")),
        "opened read only, it still wrote"
    );
    fs::write(stores.home().join(".claude/probe"), "x").unwrap();
    assert!(watch.seen().iter().any(|event| event.contains("probe")));
    fs::remove_file(stores.home().join(".claude/probe")).unwrap();
    assert!(watch.seen().iter().any(|event| event.contains("probe")));
}
