//! What real agents leave on disk is found where they left it.

use std::collections::BTreeMap;
use std::path::Path;

use ait::history::{self, Environment, Located};

use crate::install::{CLAUDE, CODEX, GEMINI, HERMES, Kind, OPENCODE, PI};
use crate::support::{DEADLINE, wait_until};
use crate::world::{World, story};

/// One turn, then its conversation is found: by folder, by id, and nowhere else.
fn is_found(world: &World, kind: Kind) {
    let agent = world.start(kind, "alpha", "work");
    agent.ready();
    agent.turn("the first question", "first-answer");
    let folder = world.home.project("alpha");
    let list = |folder: &Path| {
        let words = ["discover", "--json", "--provider", kind.name, "--cwd"];
        let told = world.home.ait(words.map(str::to_owned).into_iter().chain([folder.display().to_string()]));
        told.ok().json()["conversations"].as_array().unwrap().clone()
    };
    // some are written when the turn has ended
    let found = wait_until("the conversation to be on disk", DEADLINE, || list(&folder).pop());
    assert_eq!(list(&folder).len(), 1, "{:#?}", list(&folder));
    assert_eq!(found["cwd"], folder.display().to_string());
    assert!(found["started"].is_string(), "{found:#}");
    assert!(list(&world.home.project("beta")).is_empty(), "not in another folder");
    let home = world.home.home().display().to_string();
    let env = Environment::recorded(&BTreeMap::from([("HOME".to_owned(), home)]));
    let id = found["id"].as_str().unwrap();
    match history::locate(kind.name, id, &folder, &env) {
        Located::Present { path, files_under_cwd: true, cwd, now_id: None } => {
            assert_eq!(path.display().to_string(), found["file"].as_str().unwrap());
            assert_eq!(cwd.as_deref(), Some(folder.as_path()));
        }
        other => panic!("{other:?}"),
    }
    println!("{}: {id} in {}", kind.name, found["file"]);
}

#[test]
fn claude() {
    story(&[CLAUDE], |world| is_found(world, CLAUDE));
}

#[test]
fn codex() {
    story(&[CODEX], |world| is_found(world, CODEX));
}

#[test]
fn gemini() {
    story(&[GEMINI], |world| is_found(world, GEMINI));
}

#[test]
fn opencode() {
    story(&[OPENCODE], |world| is_found(world, OPENCODE));
}

#[test]
fn pi() {
    story(&[PI], |world| is_found(world, PI));
}

#[test]
fn hermes() {
    story(&[HERMES], |world| is_found(world, HERMES));
}
