//! Claude Code's project folders: names that lose information, conversations that moved, folders beside them.

use std::fs;
use std::os::unix::fs::symlink;

use ait::provider::Provider::Claude;

use super::{ONE, Stores, TWO, claude_lines};

#[test]
fn a_folder_shared_by_three_paths_is_told_apart_by_what_is_inside() {
    let stores = Stores::new();
    let third = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    stores.claude("-home-u-my-app", ONE, "/home/u/my.app");
    stores.claude("-home-u-my-app", TWO, "/home/u/my_app");
    stores.claude("-home-u-my-app", third, "/home/u/my app");
    let file = |id: &str| format!(".claude/projects/-home-u-my-app/{id}.jsonl");
    assert_eq!(stores.said("claude", ONE, "/home/u/my.app"), format!("here {}", file(ONE)));
    assert_eq!(stores.said("claude", TWO, "/home/u/my_app"), format!("here {}", file(TWO)));
    // not this folder's, though it lies in the folder of that name
    let told = format!("elsewhere /home/u/my.app {}", file(ONE));
    assert_eq!(stores.said("claude", ONE, "/home/u/my_app"), told);
    assert_eq!(stores.ids(Claude, Some("/home/u/my_app")), [TWO]);
    assert_eq!(stores.ids(Claude, Some("/home/u/my app")), [third]);
    assert_eq!(stores.ids(Claude, Some("/home/u/my-app")), [""; 0]);
    assert_eq!(stores.ids(Claude, None).len(), 3);
    let found = &stores.all(Claude, Some("/home/u/my.app"))[0];
    assert_eq!(found.title.as_deref(), Some("Fix the parser"));
    assert_eq!(found.started.unwrap().to_string(), "2026-11-29T20:53:51.057Z");
}

#[test]
fn only_the_asked_for_id_counts() {
    let stores = Stores::new();
    stores.claude("-srv-x", ONE, "/srv/x");
    assert_eq!(stores.said("claude", TWO, "/srv/x"), "missing no_conversation", "the newest is not it");
    stores.claude("-srv-x", TWO, "/srv/x");
    assert_eq!(stores.said("claude", ONE, "/srv/x"), format!("here .claude/projects/-srv-x/{ONE}.jsonl"));
    for bad in ["", "-c", "--continue", "..", "a/b", "a\u{1b}b", &"x".repeat(513)] {
        assert_eq!(stores.said("claude", bad, "/srv/x"), "missing bad_id", "{bad:?}");
    }
    assert_eq!(stores.said("aider", ONE, "/srv/x"), "unknown no_rule");
    assert_eq!(stores.said("no such", ONE, "/srv/x"), "unknown no_rule");
    assert_eq!(Stores::new().said("claude", ONE, "/srv/x"), "missing no_store");
    let nobody = ait::history::Environment::default();
    let answer = ait::history::locate("claude", ONE, "/srv/x".as_ref(), &nobody);
    assert!(matches!(answer, ait::history::Located::Unknown { why } if why.word() == "no_home"));
}

#[test]
fn what_stands_before_the_first_folder_may_be_anything() {
    let stores = Stores::new();
    let huge = format!("{{\"type\":\"attachment\",\"data\":\"{}\"}}\n", "x".repeat(6 << 20));
    let text = format!("\n\u{feff}not json\n[1]\n{huge}{}", claude_lines(ONE, "/srv/x"));
    stores.file(&format!(".claude/projects/-srv-x/{ONE}.jsonl"), text);
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("here "));
    assert_eq!(stores.ids(Claude, Some("/srv/x")), [ONE]);
    // begun, and nothing said in it: the provider finds no conversation
    let begun = "{\"type\":\"mode\",\"sessionId\":\"x\"}\n{\"type\":\"user\",\"cwd\":\"/srv/x\"";
    stores.file(&format!(".claude/projects/-srv-x/{TWO}.jsonl"), begun);
    assert_eq!(stores.said("claude", TWO, "/srv/x"), "missing no_turn");
    stores.file(&format!(".claude/projects/-srv-x/{TWO}.jsonl"), "");
    assert_eq!(stores.said("claude", TWO, "/srv/x"), "missing no_turn");
    // a line without an end: nothing is held of it, and it is given up in time
    let endless =
        fs::File::create(stores.home().join(format!(".claude/projects/-srv-x/{TWO}.jsonl"))).unwrap();
    endless.set_len(1 << 40).unwrap();
    assert_eq!(stores.said("claude", TWO, "/srv/x"), "unknown too_much");
}

#[test]
fn side_folders_hold_no_conversation() {
    let stores = Stores::new();
    stores.claude("-srv-x", ONE, "/srv/x");
    let side = claude_lines(ONE, "/srv/x").replace("\"isSidechain\":false", "\"isSidechain\":true");
    stores.file(&format!(".claude/projects/-srv-x/{ONE}/subagents/agent-a1.jsonl"), &side);
    stores.file(&format!(".claude/projects/-srv-x/{ONE}/tool-results/{TWO}.jsonl"), &side);
    stores.file(".claude/projects/-srv-x/agent-b2.jsonl", &side);
    stores.file(&format!(".claude/projects/-srv-x/{TWO}.jsonl"), &side);
    assert_eq!(stores.ids(Claude, Some("/srv/x")), [ONE]);
    assert_eq!(stores.ids(Claude, None), [ONE]);
    assert_eq!(stores.said("claude", TWO, "/srv/x"), "missing sub_session");
    assert_eq!(stores.said("claude", "agent-b2", "/srv/x"), "missing sub_session");
}

#[test]
fn a_long_path_is_found_whatever_hash_its_folder_has() {
    let stores = Stores::new();
    let cwd = format!("/w/{}", "a".repeat(198));
    let start = format!("-w-{}", "a".repeat(197));
    stores.claude(&format!("{start}-ipsd09"), ONE, &cwd);
    stores.claude(&format!("{start}-1x2y3z"), TWO, &cwd);
    let other = "0f6b2c55-7d1f-4f0e-9f3e-3f0a5be1c2bb";
    stores.claude(&format!("{start}-1x2y3z"), other, &format!("{cwd}b"));
    assert!(stores.said("claude", ONE, &cwd).starts_with("here "));
    assert!(stores.said("claude", TWO, &cwd).starts_with("here "));
    assert!(stores.said("claude", other, &cwd).starts_with("elsewhere "));
    let mut both = [ONE, TWO];
    both.sort_unstable();
    assert_eq!(stores.ids(Claude, Some(&cwd)), both);
}

#[test]
fn the_environment_says_where() {
    let mut stores = Stores::new();
    let file = stores.file(&format!("elsewhere/projects/-srv-x/{ONE}.jsonl"), claude_lines(ONE, "/srv/x"));
    assert_eq!(stores.said("claude", ONE, "/srv/x"), "missing no_store");
    stores.set("CLAUDE_CONFIG_DIR", stores.home().join("elsewhere"));
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("here "));
    let named = stores.home().join("elsewhere/projects/of-my-choosing");
    fs::create_dir_all(&named).unwrap();
    fs::rename(&file, named.join(file.file_name().unwrap())).unwrap();
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("elsewhere /srv/x "));
    stores.set("CLAUDE_CODE_PROJECT_DIR_NAME", "of-my-choosing");
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("here "));
    assert_eq!(stores.ids(Claude, Some("/srv/x")), [ONE]);
    stores.set("CLAUDE_CONFIG_DIR", "relative");
    assert_eq!(
        stores.said("claude", ONE, "/srv/x"),
        "unknown relative",
        "to the agent's folder, not to ours"
    );
    stores.set("CLAUDE_CONFIG_DIR", "");
    assert_eq!(stores.said("claude", ONE, "/srv/x"), "missing no_store", "set and empty is not set");
}

#[test]
fn folders_that_go_by_another_name() {
    let stores = Stores::new();
    stores.file(".claude/projects/-srv-x/.session-aliases", "-srv-old\n../../out\n");
    stores.claude("-srv-old", ONE, "/srv/x");
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("here "));
    assert_eq!(stores.ids(Claude, Some("/srv/x")), [ONE]);
    // moved to where the agent went: filed under the later folder
    let long = format!("\n{}", "{\"type\":\"attachment\"}\n".repeat(10_000));
    let moved = claude_lines(TWO, "/srv/from")
        + &long
        + "\n{\"type\":\"relocated\",\"relocatedCwd\":\"/srv/to\",\"sessionId\":\"x\"}\n";
    stores.file(&format!(".claude/projects/-srv-to/{TWO}.jsonl"), moved);
    assert!(stores.said("claude", TWO, "/srv/to").starts_with("here "));
    assert!(stores.said("claude", TWO, "/srv/from").starts_with("elsewhere /srv/to "));
}

#[test]
fn a_later_cd_does_not_change_what_it_is_filed_under() {
    let stores = Stores::new();
    let text = claude_lines(ONE, "/srv/x") + "\n" + &claude_lines(ONE, "/srv/x/deep/below");
    stores.file(&format!(".claude/projects/-srv-x/{ONE}.jsonl"), text);
    assert!(stores.said("claude", ONE, "/srv/x").starts_with("here "));
    assert!(stores.said("claude", ONE, "/srv/x/deep/below").starts_with("elsewhere /srv/x "));
}

#[test]
fn two_worktrees_of_one_repository_keep_their_own() {
    let stores = Stores::new();
    let main = stores.home().join("repo");
    let tree = main.join(".claude/worktrees/fix");
    fs::create_dir_all(main.join(".git/worktrees/fix")).unwrap();
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}/.git/worktrees/fix\n", main.display())).unwrap();
    let (main, tree) = (main.to_str().unwrap(), tree.to_str().unwrap());
    let slug = |path: &str| path.replace(['/', '.', '_'], "-");
    stores.claude(&slug(main), ONE, main);
    stores.claude(&slug(tree), TWO, tree);
    assert_eq!(stores.ids(Claude, Some(main)), [ONE]);
    assert_eq!(stores.ids(Claude, Some(tree)), [TWO]);
    let told = stores.said("claude", TWO, main);
    assert!(told.starts_with(&format!("elsewhere {tree} ")), "resumed in its own folder: {told}");
    // the same folder by another path is the same folder
    let link = stores.home().join("link");
    symlink(main, &link).unwrap();
    assert!(stores.said("claude", ONE, &link).starts_with("here "));
    assert_eq!(stores.ids(Claude, Some(link.to_str().unwrap())), [ONE]);
}

#[test]
fn two_copies_are_two_unless_one_lies_where_a_resume_looks() {
    let stores = Stores::new();
    stores.claude("-srv-a", ONE, "/srv/a");
    stores.claude("-srv-b", ONE, "/srv/b");
    assert_eq!(stores.said("claude", ONE, "/srv/c"), "ambiguous 2");
    assert_eq!(stores.said("claude", ONE, "/srv/b"), format!("here .claude/projects/-srv-b/{ONE}.jsonl"));
}

#[test]
fn links_are_followed_only_within_the_store() {
    let stores = Stores::new();
    let secret = stores.file("secret.jsonl", claude_lines(ONE, "/srv/x"));
    let folder = stores.home().join(".claude/projects/-srv-x");
    fs::create_dir_all(&folder).unwrap();
    symlink(&secret, folder.join(format!("{ONE}.jsonl"))).unwrap();
    assert_eq!(stores.said("claude", ONE, "/srv/x"), "unknown leads_out");
    let found = ait::history::discover(Some(Claude), None, &stores.env());
    assert!(found.conversations.is_empty());
    assert_eq!(found.doubts.iter().map(|doubt| doubt.word()).collect::<Vec<_>>(), ["leads_out"]);
    // a folder under its new name, linked from the old one
    stores.claude("-srv-new", TWO, "/srv/new");
    symlink("-srv-new", stores.home().join(".claude/projects/-srv-old")).unwrap();
    assert!(stores.said("claude", TWO, "/srv/new").starts_with("here "));
    let other = Stores::new();
    // the whole store kept on another disk
    other.file(&format!("disk/projects/-srv-x/{ONE}.jsonl"), claude_lines(ONE, "/srv/x"));
    symlink(other.home().join("disk"), other.home().join(".claude")).unwrap();
    assert!(other.said("claude", ONE, "/srv/x").starts_with("here "));
}

#[test]
fn what_cannot_be_read_is_not_missing() {
    let stores = Stores::new();
    stores.claude("-srv-y", TWO, "/srv/y");
    // a loop of links cannot be resolved, by nobody
    symlink("-srv-x", stores.home().join(".claude/projects/-srv-x")).unwrap();
    assert_eq!(stores.said("claude", ONE, "/srv/x"), "unknown unreadable");
    assert_eq!(stores.said("claude", ONE, "/srv/y"), "unknown unreadable", "it may lie in that folder");
    assert!(stores.said("claude", TWO, "/srv/y").starts_with("here "));
    // what only looks like a file is never waited for
    let pipe = stores.home().join(format!(".claude/projects/-srv-y/{ONE}.jsonl"));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::remove_file(stores.home().join(".claude/projects/-srv-x")).unwrap();
    assert_eq!(stores.said("claude", ONE, "/srv/y"), "missing no_conversation");
}
