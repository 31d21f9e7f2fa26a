//! The record store from outside: `ait record` and `ait store` on real files, real locks, real signals, real tmux.

mod archive;
mod corruption;
mod disk;
mod epochs;
mod leases;
mod locks;
mod verbs;
mod writers;

use std::fs;

use super::support::{Home, Ran};

/// Runs `ait record` with these words.
#[track_caller]
fn record<const N: usize>(home: &Home, words: [&str; N]) -> Ran {
    home.ait(["record"].into_iter().chain(words))
}

/// Makes a live record in a window and gives its id. Its process is this test, its pane %1, its epoch unknown.
#[track_caller]
fn upsert(home: &Home, window: &str) -> String {
    let pid = std::process::id().to_string();
    let pane = format!("%{}", 1 + home.records().len());
    let window = format!("--window={window}");
    let line =
        record(home, ["upsert", "--root", "/", &window, "--pane", &pane, "--pane-pid", &pid]).ok().text();
    id_of(&line)
}

/// The id in a result line.
#[track_caller]
fn id_of(line: &str) -> String {
    let (_, rest) = line.split_once(':').unwrap_or_else(|| panic!("no result line: {line}"));
    rest.split('|').next().unwrap_or_default().to_owned()
}

/// The token in a result line.
#[track_caller]
fn nonce_of(line: &str) -> String {
    line.split('|').nth(1).unwrap_or_else(|| panic!("no token: {line}")).to_owned()
}

/// Runs `ait record` and holds that it refused with `code` and left the store's bytes alone.
#[track_caller]
fn refused<const N: usize>(home: &Home, code: i32, words: [&str; N]) -> Ran {
    let before = fs::read(home.store()).unwrap_or_default();
    let ran = record(home, words).code(code);
    assert_eq!(fs::read(home.store()).unwrap_or_default(), before, "a refused verb wrote: {ran}");
    ran
}
