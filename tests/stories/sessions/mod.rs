//! The session command line on a tmux full of a user's habits.

mod activity;
mod attach;
mod called;
mod identity;
mod list;
mod places;
mod providers;
mod resume;
mod run;
mod send;
mod start;
mod task;
mod wait;

use std::path::PathBuf;

use serde_json::Value;

use crate::support::tmux::Start;
use crate::support::{Home, Ran, Tmux};

/// A server as many users have theirs: nothing is where a program might expect it.
pub(crate) fn habits(home: &Home) -> Tmux {
    let configuration = "set -g base-index 1\nset -g pane-base-index 1\nset -g mouse on\nset -g renumber-windows on\n\
                         set -g automatic-rename on\nset -g remain-on-exit on\nset -g default-command 'exec sh -i'\n\
                         set -g status off\n";
    Tmux::start_with(home, Start { configuration: configuration.to_owned(), ..Start::default() })
}

/// `ait …` run inside the project `alpha`, on the story's own server.
#[track_caller]
pub(crate) fn ait(home: &Home, words: &[&str]) -> Ran {
    let mut command = home.ait_command(words);
    home.agent_program("claude");
    command.current_dir(home.project("alpha"));
    Ran::run(&mut command)
}

/// A tmux in front of tmux that writes down what it is asked, word by word.
pub(crate) struct Asked {
    home: Home,
    file: PathBuf,
}

impl Asked {
    pub(crate) fn of(home: &Home) -> Asked {
        let asked = Asked { home: home.clone(), file: home.root().join("asked") };
        asked.forget();
        home.wrap_tmux(&format!(
            "{{ printf '%s\\0' \"$@\"; echo; }} >> '{}'\nexec \"$TMUX_REAL\" \"$@\"",
            asked.file.display()
        ));
        asked
    }

    /// The words of each call so far.
    pub(crate) fn calls(&self) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let calls = text.split("\0\n").filter(|call| !call.is_empty());
        calls.map(|call| call.split('\0').map(str::to_owned).collect()).collect()
    }

    /// Those of them that have this in one of their words.
    pub(crate) fn with(&self, text: &str) -> Vec<Vec<String>> {
        self.calls().into_iter().filter(|call| call.iter().any(|word| word.contains(text))).collect()
    }

    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.home.unwrap_tmux();
    }
}

/// The data of an envelope of this command that says all went well.
#[track_caller]
pub(crate) fn data(ran: &Ran, command: &str) -> Value {
    let envelope = envelope(ran);
    assert_eq!(envelope["schema_version"], format!("cli.ait.{command}.v1"), "{envelope:#}");
    assert_eq!(envelope["ok"], true, "{envelope:#}");
    envelope["data"].clone()
}

/// The error code of an envelope that says it did not.
#[track_caller]
pub(crate) fn refusal(ran: &Ran) -> String {
    let envelope = envelope(ran);
    assert_eq!(envelope["ok"], false, "{envelope:#}");
    envelope["error"]["code"].as_str().unwrap_or_else(|| panic!("{envelope:#}")).to_owned()
}

/// One object on one line, with no other fields than the contract's.
#[track_caller]
pub(crate) fn envelope(ran: &Ran) -> Value {
    let text = ran.text();
    assert_eq!(text.lines().count(), 1, "one line: {ran}");
    let envelope: Value = serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {ran}"));
    let known = ["schema_version", "ok", "data", "warnings", "error"];
    for name in envelope.as_object().expect("an object").keys() {
        assert!(known.contains(&name.as_str()), "{name}: {envelope:#}");
    }
    envelope
}

/// Makes the record a session of that name, as a start would.
pub(crate) fn name(home: &Home, id: &str, name: &str) {
    edit(home, |records| {
        for record in records.iter_mut().filter(|record| record["id"] == id) {
            record["ait"]["session"] = serde_json::json!({"mode": "interactive", "name": name});
        }
    });
}

/// Changes the store's file by hand.
pub(crate) fn edit(home: &Home, change: impl FnOnce(&mut Vec<Value>)) {
    let text = std::fs::read_to_string(home.store()).unwrap();
    let mut store: Value = serde_json::from_str(&text).unwrap();
    change(store["sessions"].as_array_mut().unwrap());
    std::fs::write(home.store(), serde_json::to_string_pretty(&store).unwrap() + "\n").unwrap();
}
