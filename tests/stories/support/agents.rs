//! Stand-in agents with records: started in a pane, signed into the store, stamped; and what their records say.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tmux::Pane;
use super::{Home, Tmux};

/// An agent in a pane, and the record that was made for it.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// The record's id.
    pub(crate) id: String,
    /// Where it was started.
    pub(crate) pane: Pane,
    /// Its project.
    pub(crate) root: PathBuf,
    /// The window name it was signed in under.
    pub(crate) window: String,
    /// Its provider's session id.
    pub(crate) conversation: String,
}

impl Agent {
    /// Starts a stand-in in a new window `window` of `session` and signs it in.
    #[track_caller]
    pub(crate) fn start(tmux: &Tmux, session: &str, window: &str) -> Agent {
        let root = tmux.home().project("alpha");
        let pane = tmux.window(session, window, &root, &tmux.home().stand_in(&[]));
        Agent::sign(tmux, pane, &root, window)
    }

    /// Starts a stand-in in a split beside this agent and signs it in under the same window.
    #[track_caller]
    pub(crate) fn beside(&self, tmux: &Tmux) -> Agent {
        let pane = tmux.split(&self.pane, &self.root, &tmux.home().stand_in(&[]));
        Agent::sign(tmux, pane, &self.root, &self.window)
    }

    /// Signs the agent in `pane` into the store under a new conversation.
    #[track_caller]
    pub(crate) fn sign(tmux: &Tmux, pane: Pane, root: &Path, window: &str) -> Agent {
        let conversation = format!("conversation-{}", std::process::id())
            + &format!("-{}", pane.id.trim_start_matches('%'))
            + &format!("-{}", pane.pid);
        Agent::sign_as(tmux, pane, root, window, &conversation).0
    }

    /// Signs the agent in `pane` in under `conversation`; also how `ait record upsert` put it (`created`, `rejoined` …).
    #[track_caller]
    pub(crate) fn sign_as(
        tmux: &Tmux,
        pane: Pane,
        root: &Path,
        window: &str,
        conversation: &str,
    ) -> (Agent, String) {
        let told = upsert(tmux, &pane, root, window, conversation).ok().text();
        let rest = told.strip_prefix("UPSERTED:").unwrap_or_else(|| panic!("not an upsert: {told}"));
        let (id, how) = rest.split_once('|').unwrap_or_else(|| panic!("not an upsert: {told}"));
        tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_record", id]);
        let agent = Agent {
            id: id.to_owned(),
            pane,
            root: root.to_owned(),
            window: window.to_owned(),
            conversation: conversation.to_owned(),
        };
        (agent, how.to_owned())
    }

    /// Starts the same conversation again in a new window and signs it in.
    #[track_caller]
    pub(crate) fn again(&self, tmux: &Tmux, session: &str) -> (Agent, String) {
        let pane = tmux.window(session, &self.window, &self.root, &tmux.home().stand_in(&[]));
        Agent::sign_as(tmux, pane, &self.root, &self.window, &self.conversation)
    }

    /// Types a line into the pane: `exit 3`, `die KILL`, `window NAME` …
    #[track_caller]
    pub(crate) fn told(&self, tmux: &Tmux, line: &str) {
        tmux.ok(["send-keys", "-t", &self.pane.id, "-l", line]);
        tmux.ok(["send-keys", "-t", &self.pane.id, "Enter"]);
    }
}

/// `ait record upsert` for the agent in `pane`, to its end.
#[track_caller]
pub(crate) fn upsert(tmux: &Tmux, pane: &Pane, root: &Path, window: &str, conversation: &str) -> super::Ran {
    let session = tmux.format(&pane.id, "#{session_name}");
    let mut command = tmux.home().ait_command(["record", "upsert"]);
    // as an agent's own hook runs it: inside the pane's tmux
    command.env("TMUX", format!("{},{},0", tmux.socket_text(), tmux.server().pid));
    command.arg("--root").arg(root);
    command.args(["--window", window, "--pane", &pane.id, "--pane-pid", &pane.pid.to_string()]);
    command.args(["--session", &session, "--session-id", conversation]);
    command.args(["--agent-string", "claude/stand-in"]);
    super::Ran::run(&mut command)
}

/// `live`, or `lost: <cause>`, or the state's name.
pub(crate) fn told(record: &Value) -> String {
    match record["ait"]["lost"]["cause"].as_str() {
        Some(cause) => format!("lost: {cause}"),
        None => record["state"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Whether the record is kept as lost for `cause`, with no location.
pub(crate) fn is_lost(record: &Value, cause: &str) -> bool {
    record["state"] == "frozen"
        && record["ait"]["lost"]["cause"] == cause
        && record["pane_id"] == ""
        && record["pane_pid"] == 0
}

impl Home {
    /// Waits until this record is kept as lost for `cause`, and gives it.
    #[track_caller]
    pub(crate) fn until_lost(&self, id: &str, cause: &str) -> Value {
        self.store_until(&format!("record {id} to be lost: {cause}"), |home| {
            home.record(id).filter(|record| is_lost(record, cause))
        })
    }

    /// Waits until this record is archived and gone from the store, and gives the archive's line.
    #[track_caller]
    pub(crate) fn until_ended(&self, id: &str) -> Value {
        self.store_until(&format!("record {id} to be archived"), |home| {
            home.record(id).is_none().then(|| home.archived_record(id)).flatten()
        })
    }

    /// Waits until this record's window is `name`, and gives it.
    #[track_caller]
    pub(crate) fn until_window(&self, id: &str, name: &str) -> Value {
        self.store_until(&format!("record {id} to be in window {name:?}"), |home| {
            home.record(id).filter(|record| record["window"] == name)
        })
    }

    /// Fails unless every one of `agents` has a live record where it was signed in.
    #[track_caller]
    pub(crate) fn all_live(&self, agents: &[&Agent]) {
        for agent in agents {
            let record = self.record(&agent.id).unwrap_or_else(|| panic!("record {} is there", agent.id));
            assert_eq!(told(&record), "live", "{record:#}");
            assert_eq!(record["pane_id"], agent.pane.id.as_str(), "{record:#}");
        }
    }
}
