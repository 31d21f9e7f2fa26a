//! What cannot come back: each by its name, nothing started, nothing lost.

use std::fs;

use super::{Frozen, outcome, restore, running};
use crate::support::{Fake, Home, Tmux};

/// A refusal before anything was written.
#[track_caller]
fn refused(home: &Home, frozen: &Frozen, word: &str) {
    let before = fs::read(home.store()).unwrap();
    let told = restore(home, &frozen.id).code(12);
    let outcome = outcome(&told);
    assert_eq!(outcome["word"], word, "{told}");
    assert_eq!(fs::read(home.store()).unwrap(), before, "nothing was written");
    assert!(frozen.captured(home), "the capture is kept");
    assert_eq!(running(home, &frozen.conversation), 0, "nothing was started");
}

#[test]
fn a_missing_program_folder_or_conversation_is_named() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let file = home.conversation_file("claude", &frozen.conversation).unwrap();
    let aside = home.root().join("aside");
    fs::rename(&file, &aside).unwrap();
    refused(&home, &frozen, "transcript_missing");
    fs::rename(&aside, &file).unwrap();

    let root = home.project("alpha");
    fs::rename(&root, home.root().join("moved")).unwrap();
    refused(&home, &frozen, "cwd_missing");
    fs::rename(home.root().join("moved"), &root).unwrap();

    home.no_agent_program("claude");
    refused(&home, &frozen, "no_binary");
    home.agent_program("claude");
    restore(&home, &frozen.id).ok();
    frozen.back(&tmux);
}

#[test]
fn without_an_exact_id_or_a_way_to_use_one_it_is_refused() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    let set = |pairs: &[(&str, &str)]| {
        let text = fs::read_to_string(home.store()).unwrap();
        let mut store: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (key, value) in pairs {
            store["sessions"][0][*key] = (*value).into();
        }
        fs::write(home.store(), serde_json::to_string_pretty(&store).unwrap() + "\n").unwrap();
    };
    set(&[("codeagent_session_id", "")]);
    refused(&home, &frozen, "no_session");
    set(&[("codeagent_session_id", "latest")]);
    refused(&home, &frozen, "bad_session");
    set(&[
        ("codeagent_session_id", &frozen.conversation),
        ("agent_kind", "aider"),
        ("agent_string", "aider/x"),
    ]);
    refused(&home, &frozen, "resume_unsupported:aider");
}

#[test]
fn an_agent_that_runs_already_is_not_started_again() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let frozen = Frozen::claude(&tmux, "main", "cart", "alpha");
    // resumed by hand, in a window nobody adopted
    let root = home.project("alpha");
    let by_hand =
        Fake::window(&tmux, "main", "hand", &root, "claude", &["--resume", &frozen.conversation]).up(&tmux);
    let told = restore(&home, &frozen.id).code(12);
    assert_eq!(outcome(&told)["word"], format!("already_live:{}", by_hand.pane.id), "{told}");
    assert_eq!(running(&home, &frozen.conversation), 1);
    by_hand.leave(&tmux);
    restore(&home, &frozen.id).ok();
    assert_eq!(frozen.back(&tmux).conversation(), frozen.conversation);
}
