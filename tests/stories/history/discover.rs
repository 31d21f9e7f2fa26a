//! `ait discover`: what a person sees of all this.

use std::os::unix::fs::symlink;

use super::{ONE, TWO, claude_lines};
use crate::support::Home;

fn write(home: &Home, slug: &str, id: &str, cwd: &str) {
    let folder = home.home().join(".claude/projects").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{id}.jsonl")), claude_lines(id, cwd)).unwrap();
}

#[test]
fn the_conversations_of_this_folder() {
    let home = Home::new();
    let here = home.home();
    assert_eq!(home.ait(["discover"]).ok().text(), format!("no conversation of {}", here.display()));
    assert_eq!(home.ait(["discover", "--all"]).ok().text(), "no conversation");
    let slug = here.to_str().unwrap().replace(['/', '.', '_'], "-");
    write(&home, &slug, ONE, here.to_str().unwrap());
    write(&home, "-srv-x", TWO, "/srv/x");
    let text = home.ait(["discover"]).ok().text();
    assert!(text.starts_with("PROVIDER"), "{text}");
    for part in ["claude", ONE, "2026-11-29T20:53:51Z", "Fix the parser", ".jsonl"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(TWO), "{text}");
    let json = home.ait(["discover", "--cwd", "/srv/x", "--json"]).ok().json();
    let found = &json["conversations"][0];
    assert_eq!((found["id"].as_str(), found["cwd"].as_str()), (Some(TWO), Some("/srv/x")));
    assert_eq!(json["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(
        home.ait(["discover", "--all", "--json"]).ok().json()["conversations"].as_array().unwrap().len(),
        2
    );
    let none = home.ait(["discover", "--provider", "codex", "--all", "--json"]).ok().json();
    assert_eq!(none["conversations"], serde_json::json!([]));
}

#[test]
fn what_cannot_be_read_is_said_beside_what_was_found() {
    let home = Home::new();
    write(&home, "-srv-x", ONE, "/srv/x");
    symlink("-srv-y", home.home().join(".claude/projects/-srv-y")).unwrap();
    let ran = home.ait(["discover", "--all"]).code(1);
    assert!(ran.text().contains(ONE), "{ran}");
    assert!(ran.errors().contains("-srv-y") && ran.errors().contains("hint: "), "{ran}");
    let json = home.ait(["discover", "--all", "--json"]).code(1).json();
    assert_eq!(json["doubts"][0]["word"], "unreadable");
    assert!(
        home.ait(["discover", "--cwd", "/srv/x"]).ok().text().contains(ONE),
        "not in the way of this folder"
    );
}

#[test]
fn wrong_words_are_usage() {
    let home = Home::new();
    for words in
        [&["discover", "--provider", "vim"][..], &["discover", "--all", "--cwd", "/"], &["discover", "x"]]
    {
        let ran = home.ait(words).code(64);
        assert!(ran.errors().starts_with("error: "), "{ran}");
    }
    let mut command = home.ait_command(["discover"]);
    command.env_remove("HOME");
    let ran = crate::support::Ran::run(&mut command).code(1);
    assert!(ran.errors().contains("HOME"), "{ran}");
}
