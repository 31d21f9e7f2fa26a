//! At 100,000 files a known id opens only its own.

use std::fs;
use std::path::Path;

use ait::history::{self, Located};
use uuid::Uuid;

use super::{ONE, Stores, TIMED, claude_lines};

/// Links of one file, so that a store of 100,000 is quickly made.
const LINKS: usize = 1_000;

/// Fills `folders` with 1,000 files each, named by `name` with an id that is new each time.
fn fill(stores: &Stores, folders: usize, folder: impl Fn(usize) -> String, name: impl Fn(&str) -> String) {
    for n in 0..folders {
        let folder = folder(n);
        let first = stores.file(&format!("{folder}/seed"), claude_lines(ONE, &format!("/srv/p{n}")));
        let below = stores.home().join(&folder);
        for _ in 0..LINKS {
            fs::hard_link(&first, below.join(name(&Uuid::new_v4().to_string()))).unwrap();
        }
        fs::remove_file(first).unwrap();
    }
}

#[test]
fn of_claude() {
    let stores = Stores::new();
    fill(&stores, 100, |n| format!(".claude/projects/-srv-p{n}"), |id| format!("{id}.jsonl"));
    stores.claude("-srv-p7", ONE, "/srv/p7");
    let (answer, cost) = history::counted("claude", ONE, Path::new("/srv/p7"), &stores.env());
    assert!(matches!(answer, Located::Present { files_under_cwd: true, .. }), "{answer:?}");
    assert_eq!((cost.opens, cost.lists), (1, 0), "{cost:?}");
    assert!(cost.bytes < 64 << 10, "{cost:?}");
    // from another folder: the project folders are listed, and still only one file is opened
    let (answer, cost) = history::counted("claude", ONE, Path::new("/srv/none"), &stores.env());
    assert!(matches!(answer, Located::Present { files_under_cwd: false, .. }), "{answer:?}");
    assert_eq!((cost.opens, cost.lists), (1, 1), "{cost:?}");
    let (_, cost) = history::counted("claude", TIMED, Path::new("/srv/p7"), &stores.env());
    assert_eq!((cost.opens, cost.lists, cost.bytes), (0, 1, 0), "an id that is nowhere: {cost:?}");
}

#[test]
fn of_codex() {
    let stores = Stores::new();
    let day = |n: usize| format!(".codex/sessions/2026/{:02}/{:02}", n / 28 + 1, n % 28 + 1);
    fill(&stores, 100, day, |id| format!("rollout-2026-11-29T20-48-51-{id}.jsonl"));
    let meta = |id: &str| {
        format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"/srv/x\"}}}}\n")
    };
    stores
        .file(&format!(".codex/sessions/2026/11/29/rollout-2026-11-29T20-48-51-{TIMED}.jsonl"), meta(TIMED));
    let (answer, cost) = history::counted("codex", TIMED, Path::new("/srv/x"), &stores.env());
    assert!(matches!(answer, Located::Present { .. }), "{answer:?}");
    assert_eq!((cost.opens, cost.lists), (1, 1), "{cost:?}");
    assert!(cost.bytes < 64 << 10, "{cost:?}");
    // an id without a time in it: names are read until it is met, files never
    stores.file(&format!(".codex/sessions/2026/01/01/rollout-2026-01-01T20-48-51-{ONE}.jsonl"), meta(ONE));
    let (answer, cost) = history::counted("codex", ONE, Path::new("/srv/x"), &stores.env());
    assert!(matches!(answer, Located::Present { .. }), "{answer:?}");
    assert_eq!(cost.opens, 1, "{cost:?}");
    assert!(cost.lists > 100, "the count counts: {cost:?}");
}
