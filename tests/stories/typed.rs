//! An agent that was typed at a shell's prompt: frozen, restored, ended; the shell is back where it was.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::support::fake::new_id;
use crate::support::{DEADLINE, Fake, Home, Tmux, wait_until};

#[test]
fn an_agent_typed_at_a_prompt_is_frozen_restored_and_ended_and_the_shell_is_back() {
    for shell in ["sh", "bash", "zsh", "fish"] {
        if !Path::new("/bin").join(shell).exists() {
            println!("-- no {shell} here");
            continue;
        }
        println!("-- {shell}");
        typed_at_the_prompt_of(shell);
    }
}

fn typed_at_the_prompt_of(shell: &str) {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    // without these zsh greets a new user with questions, and fish reads all manual pages in the background
    std::fs::write(home.home().join(".zshrc"), "").unwrap();
    std::fs::create_dir_all(home.home().join(".local/share/fish/generated_completions")).unwrap();
    tmux.ok(["set-option", "-g", "default-shell", &format!("/bin/{shell}")]);
    home.hooked("claude");
    let root = home.project("alpha");
    let inner = root.join("src");
    std::fs::create_dir(&inner).unwrap();
    let pane = tmux.window("main", "typed", &root, &[]);
    tmux.ok(["send-keys", "-t", &pane.id, "cd src", "Enter"]);
    let id = new_id();
    let agent = Fake::typed(&tmux, &pane, &inner, "claude", &["--session-id", &id]).up(&tmux);
    agent.prompt(&tmux, "one");
    let record = agent.adopt(&tmux);
    assert_eq!(home.record(&record).unwrap()["ait"]["host"]["kind"], "shell");
    let process = agent.process();
    let ran = home.ait(["freeze", &record]);
    println!("{ran}");
    ran.ok();
    assert!(!process.alive());
    assert_eq!(tmux.format(&pane.id, "#{@aitask_frozen}"), record);
    let ran = home.ait(["restore", &record]);
    println!("{ran}");
    ran.ok();
    let agent = agent.at(tmux.panes().into_iter().find(|one| one.id == pane.id).expect("the same pane"));
    agent.screen_until(&tmux, "what it remembers", |screen| screen.contains("1 earlier turns"));
    assert_eq!(agent.conversation(), id);
    agent.prompt(&tmux, "two");
    assert_eq!(home.turns("claude", &id), 2);
    agent.leave(&tmux);
    wait_until("the shell in its folder", DEADLINE, || {
        let told = tmux.format(&pane.id, "#{pane_current_command} #{pane_current_path}");
        (told == format!("{shell} {}", inner.display())).then_some(())
    });
    tmux.ok(["send-keys", "-t", &pane.id, "expr 40000 + 2451", "Enter"]);
    wait_until("the shell to answer", DEADLINE, || {
        let shown = tmux.ok(["capture-pane", "-p", "-t", &pane.id]);
        shown.contains("42451").then_some(())
    });
}

/// A record keeps its folder as text; with another one in its place the agent would come back somewhere else.
#[test]
fn one_in_a_folder_whose_name_is_no_text_is_left_alone_and_why_is_said() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    let root = home.home().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&root).unwrap();
    let pane = tmux.window("main", "typed", &home.home(), &[]);
    tmux.ok(["send-keys", "-t", &pane.id, "cd caf*", "Enter"]);
    let agent = Fake::typed(&tmux, &pane, &root, "claude", &["--session-id", &new_id()]).up(&tmux);
    let told = home.ait(["adopt", &pane.id]).code(1).text();
    assert!(told.contains("its folder's name is no text"), "{told}");
    assert!(home.records().is_empty(), "neither its hook nor the command made one");
    assert!(agent.process().alive());
}
