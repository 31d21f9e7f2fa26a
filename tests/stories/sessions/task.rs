//! Task files: which conversations belong to a task, in the user's own file, and the way back from there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{data, habits, refusal};
use crate::support::fake::new_id;
use crate::support::run::Running;
use crate::support::{DEADLINE, Fake, Home, Ran, Supervisor, Tmux, wait_until};

/// A worktree of git's, with a project's marker.
fn worktree(home: &Home, name: &str) -> PathBuf {
    let folder = home.project(name);
    fs::create_dir_all(folder.join(".git")).unwrap();
    folder
}

fn ait(home: &Home, folder: &Path, words: &[&str]) -> Ran {
    let mut command = home.ait_command(words);
    command.current_dir(folder);
    Ran::run(&mut command)
}

/// A task file of the user's, in the main folder.
fn task(home: &Home, name: &str, text: &str) -> String {
    let path = home.root().join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Every file below a folder: its bytes and when it was written.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64)> {
    let mut folders = vec![folder.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            if meta.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.insert(path, (bytes, meta.mtime(), meta.mtime_nsec()));
            }
        }
    }
    found
}

/// An agent that has answered a prompt, and its record.
#[track_caller]
fn talked(home: &Home, tmux: &Tmux, name: &str) -> (Fake, String) {
    let agent = Fake::claude(tmux, "main", name, &worktree(home, name));
    agent.prompt(tmux, "hello");
    let id = agent.adopt(tmux);
    (agent, id)
}

#[track_caller]
fn kill(tmux: &Tmux, agent: &Fake) {
    let process = agent.process();
    tmux.ok(["kill-pane", "-t", &agent.pane.id]);
    assert!(process.dies(DEADLINE));
}

#[test]
fn agents_of_several_worktrees_are_linked_into_one_file_side_by_side() {
    let home = Home::new();
    let tmux = habits(&home);
    home.hooked("claude");
    let text = "#+TITLE: Carts\n#+AGENT: claude\n\n* Task Description\n\nMine";
    let file = task(&home, "task.org", text);
    let (one, _) = talked(&home, &tmux, "alpha");
    let (two, _) = talked(&home, &tmux, "beta");
    let before = files(&home.home().join(".claude"));
    assert!(before.keys().any(|path| path.extension().is_some_and(|ending| ending == "jsonl")));
    let link = |agent: &Fake| {
        let mut command = home.ait_command(["task", "link", &file]);
        command.current_dir(&agent.cwd);
        Running::start(&mut command)
    };
    let (mut first, mut second) = (link(&one), link(&two));
    assert!(first.join(DEADLINE).success() && second.join(DEADLINE).success());
    assert_eq!(files(&home.home().join(".claude")), before, "the provider's files are only read");
    let shown = data(&ait(&home, &one.cwd, &["task", "show", &file, "--format", "json"]).ok(), "task-show");
    let mut sessions = shown["sessions"].as_array().unwrap().clone();
    sessions.sort_by_key(|session| session["worktree"].as_str().unwrap().to_owned());
    let entry =
        |agent: &Fake| json!({"worktree": agent.cwd, "backend": "claude", "session": agent.conversation()});
    assert_eq!(sessions, [entry(&one), entry(&two)]);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.starts_with("#+TITLE: Carts\n#+AGENT: claude\n#+SESSION_ID: "), "{now}");
    assert!(now.contains("\n\n* Task Description\n\nMine\n\n* AI Sessions\n** "), "{now}");
    // the mirror line names the one that was linked last; linked once more, nothing changes
    let words = ["task", "link", &file, "--format", "json"];
    ait(&home, &one.cwd, &words).ok();
    let inode = fs::metadata(&file).unwrap().ino();
    let again = data(&ait(&home, &one.cwd, &words).ok(), "task-link");
    assert_eq!((&again["changed"], again["sessions"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "it is not even written");
    // a folder where nobody works
    let nobody = ait(&home, &home.home(), &["task", "link", &file, "--format", "json"]).code(1);
    assert_eq!(refusal(&nobody), "session-not-found");
}

#[test]
fn a_conversation_that_is_not_known_yet_is_written_in_place_later() {
    let home = Home::new();
    let tmux = habits(&home);
    let folder = worktree(&home, "alpha");
    let file = task(&home, "task.md", "# Carts\r\n\r\nMine\r\n");
    let agent = Fake::window(&tmux, "main", "cart", &folder, "codex", &["--no-daemon"]).up(&tmux);
    let id = agent.adopt(&tmux);
    let told =
        data(&ait(&home, &folder, &["task", "link", &file, &id, "--format", "json"]).ok(), "task-link");
    assert_eq!(told["sessions"][0]["session"], Value::Null, "{told:#}");
    let item = format!("- worktree: {} · backend: codex", folder.display());
    let whole = format!("# Carts\r\n\r\nMine\r\n\r\n## AI Sessions\r\n\r\n{item}\r\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    agent.prompt(&tmux, "hello");
    let conversation = agent.conversation();
    ait(&home, &folder, &["task", "link", &file, &id]).ok();
    let known = whole
        .replace("# Carts\r\n", &format!("# Carts\r\n<!-- ait:session-id {conversation} -->\r\n"))
        .replace(&item, &format!("{item} · session: {conversation}"));
    assert_eq!(fs::read_to_string(&file).unwrap(), known);
}

/// A task file with one Codex linked that has no conversation yet, and has its first one now; what the file was before.
fn first_words(home: &Home, tmux: &Tmux, settings: &str) -> (Fake, String, String) {
    let folder = home.home().join(".config/ait");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), settings).unwrap();
    let folder = worktree(home, "alpha");
    let file = task(home, "task.md", "# Carts\n");
    let agent = Fake::window(tmux, "main", "cart", &folder, "codex", &["--no-daemon"]).up(tmux);
    let id = agent.adopt(tmux);
    ait(home, &folder, &["task", "link", &file, &id]).ok();
    let linked = fs::read_to_string(&file).unwrap();
    (agent, file, linked)
}

#[test]
fn a_task_file_follows_its_conversations_where_that_is_wanted() {
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, file, linked) = first_words(&home, &tmux, "tracking = true\n");
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    assert!(!linked.contains("session:"), "{linked}");
    agent.prompt(&tmux, "hello");
    let follows = |what: &str, conversation: &str| {
        wait_until(what, DEADLINE, || {
            let text = fs::read_to_string(&file).ok()?;
            let named = format!("<!-- ait:session-id {conversation} -->");
            (text.contains(&named) && text.contains(&format!("session: {conversation}"))).then_some(text)
        })
    };
    let first = agent.conversation();
    let text = follows("its first conversation in the file", &first);
    assert_eq!(text.lines().count(), linked.lines().count() + 1, "in place: {text}");
    agent.say(&tmux, "/new");
    agent.ready(&tmux);
    agent.say(&tmux, "once more");
    let second = wait_until("its next conversation", DEADLINE, || {
        agent.known_conversation().filter(|conversation| *conversation != first)
    });
    let text = follows("its next conversation in the file", &second);
    assert!(
        !text.contains(&first) && text.matches("backend: codex").count() == 1,
        "its entry goes along: {text}"
    );
}

#[test]
fn a_task_file_is_written_by_nobody_unasked() {
    let home = Home::new();
    let tmux = habits(&home);
    let (agent, file, linked) = first_words(&home, &tmux, "");
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    agent.prompt(&tmux, "hello");
    let conversation = agent.conversation();
    home.store_until("its conversation on record", |home| {
        home.records()
            .iter()
            .any(|record| record["codeagent_session_id"] == conversation.as_str())
            .then_some(())
    });
    // a round trip through the supervisor, which has heard of it by then
    home.ait(["status", "--json"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), linked);
}

#[test]
fn the_one_conversation_of_a_task_comes_straight_back() {
    let home = Home::new();
    let tmux = habits(&home);
    home.hooked("claude");
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let file = task(&home, "task.md", "# Carts\n");
    let (agent, id) = talked(&home, &tmux, "alpha");
    ait(&home, &agent.cwd, &["task", "link", &file]).ok();
    let linked = fs::read(&file).unwrap();
    let conversation = agent.conversation();
    kill(&tmux, &agent);
    home.until_ended(&id);
    let told =
        data(&ait(&home, &home.home(), &["resume", "--task", &file, "--format", "json"]).ok(), "resume");
    assert_eq!((&told["id"], &told["status"]), (&json!(id), &json!("running")), "{told:#}");
    assert_eq!(told["provider_resume"]["session_id"], json!(conversation));
    assert_eq!(fs::read(&file).unwrap(), linked, "nothing is written unasked");
}

#[test]
fn of_several_conversations_one_is_chosen() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let file = task(&home, "task.org", "#+TITLE: Carts\n");
    let agents = [talked(&home, &tmux, "alpha"), talked(&home, &tmux, "beta")];
    let mut conversations = Vec::new();
    for (agent, id) in &agents {
        ait(&home, &agent.cwd, &["task", "link", &file, id]).ok();
        conversations.push(agent.conversation());
    }
    for (agent, id) in &agents {
        kill(&tmux, agent);
        home.until_ended(id);
    }
    // a script is told which there are
    let refused = ait(&home, &home.home(), &["resume", "--task", &file]).code(64);
    let lines: Vec<String> = refused.text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{refused}");
    assert!(lines[1].starts_with("2  claude  ") && lines[1].ends_with(&conversations[1]), "{refused}");
    let refused = ait(&home, &home.home(), &["resume", "--task", &file, "--format", "json"]).code(64);
    assert_eq!(refusal(&refused), "task-ambiguous");
    assert_eq!(refused.json()["error"]["details"]["sessions"].as_array().unwrap().len(), 2);
    // and says one
    let words = ["resume", "--task", &file, &conversations[0], "--format", "json"];
    let told = data(&ait(&home, &home.home(), &words).ok(), "resume");
    assert_eq!(told["id"], json!(agents[0].1));
    // a person is asked
    let line = format!("'{}' resume --task '{file}'", crate::support::AIT);
    tmux.ok(["send-keys", "-t", "main:0", "-l", &line]);
    tmux.ok(["send-keys", "-t", "main:0", "Enter"]);
    let shows = |what: &str| {
        wait_until(what, DEADLINE, || {
            tmux.run(["capture-pane", "-p", "-J", "-t", "main:0"]).text().contains(what).then_some(())
        });
    };
    shows("Which one? [1-2]");
    tmux.ok(["send-keys", "-t", "main:0", "-l", "2"]);
    tmux.ok(["send-keys", "-t", "main:0", "Enter"]);
    shows(&format!("resumed claude session {}", agents[1].1));
    assert_eq!(home.record(&agents[1].1).unwrap()["state"], "live");
}

#[test]
fn what_no_record_has_is_said_with_the_providers_own_way() {
    let home = Home::new();
    let id = new_id();
    let entry =
        |backend: &str| format!("## AI Sessions\n- worktree: /srv/a · backend: {backend} · session: {id}\n");
    for (text, code, hint) in [
        (entry("claude"), "session-not-found", format!("claude --resume {id}")),
        (entry("nobody"), "session-not-found", "none that is known here".to_owned()),
        (
            "## AI Sessions\n- worktree /srv/a\n".to_owned(),
            "task-no-session",
            "ait task link FILE".to_owned(),
        ),
        (String::new(), "task-no-session", "ait task link FILE".to_owned()),
    ] {
        let file = task(&home, "task.md", &text);
        let ran = ait(&home, &home.home(), &["resume", "--task", &file, "--format", "json"]).code(1);
        assert_eq!(refusal(&ran), code);
        assert!(ran.json()["error"]["hint"].as_str().unwrap().contains(&hint), "{ran}");
        assert!(ran.json()["error"]["details"].get("handoff").is_none(), "{ran}");
        // what the file hands over is told instead, and nothing else of it
        let text = format!("# Carts\n## Agent Handoff 2026-11-02\nDone: a.\n### Next\nb\n{text}");
        let older = format!("{text}## Agent Handoff 2026-11-01\nDone: nothing.\n");
        let file = task(&home, "task.md", &older);
        let told = ait(&home, &home.home(), &["resume", "--task", &file, "--format", "json"]).code(1).json();
        let handoff = "## Agent Handoff 2026-11-02\nDone: a.\n### Next\nb";
        assert_eq!(told["error"]["details"]["handoff"], handoff, "{told:#}");
        let ran = ait(&home, &home.home(), &["resume", "--task", &file]).code(1);
        assert_eq!(ran.text(), handoff, "{ran}");
    }
}

#[test]
fn a_file_keeps_its_mode_and_its_link_and_one_that_is_not_ours_to_write_stays() {
    let home = Home::new();
    let tmux = habits(&home);
    home.hooked("claude");
    let (agent, id) = talked(&home, &tmux, "alpha");
    let file = task(&home, "task.md", "# Carts\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    // as it lies in a worktree
    let link = agent.cwd.join("task.md");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    ait(&home, &agent.cwd, &["task", "link", "task.md", &id]).ok();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new(&file));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o640);
    assert!(fs::read_to_string(&file).unwrap().contains("## AI Sessions"));
    let locked = task(&home, "locked.md", "# Carts\n");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o440)).unwrap();
    let twice = task(&home, "twice.md", "# Carts\n");
    fs::hard_link(&twice, home.root().join("second.md")).unwrap();
    let pipe = home.root().join("pipe.md");
    Ran::run(home.command("mkfifo").arg(&pipe)).ok();
    let pipe = pipe.to_string_lossy().into_owned();
    let other = task(&home, "task.txt", "# Carts\n");
    for (file, code, exit) in [
        (&locked, "task-file-failed", 1),
        (&twice, "task-file-failed", 1),
        (&pipe, "task-file-invalid", 64),
        (&other, "task-file-invalid", 64),
        (&"none.md".to_owned(), "task-file-not-found", 64),
    ] {
        let ran = ait(&home, &agent.cwd, &["task", "link", file, &id, "--format", "json"]).code(exit);
        assert_eq!(refusal(&ran), code, "{file}");
    }
    for file in [&locked, &twice, &other] {
        assert_eq!(fs::read_to_string(file).unwrap(), "# Carts\n");
    }
}
