//! `ait restore`: a frozen agent comes back as itself, where it was, once, and what cannot come back says why.

use serde_json::{Value, json};

use crate::support::tmux::Pane;
use crate::support::{DEADLINE, Fake, Home, Ran, Tmux, wait_until};

mod basics;
mod misses;
mod places;
mod proofs;
mod races;

/// An agent that was frozen: its record's id, and its conversation's.
struct Frozen {
    agent: Fake,
    id: String,
    conversation: String,
}

impl Frozen {
    /// Starts Claude in a window of `session`, lets it answer once, and freezes it.
    #[track_caller]
    fn claude(tmux: &Tmux, session: &str, window: &str, project: &str) -> Frozen {
        let root = tmux.home().project(project);
        Frozen::of(tmux, Fake::claude(tmux, session, window, &root))
    }

    /// Lets an agent that is up answer once, and freezes it.
    #[track_caller]
    fn of(tmux: &Tmux, agent: Fake) -> Frozen {
        agent.prompt(tmux, "one");
        let conversation = agent.conversation();
        let id = agent.adopt(tmux);
        freeze(tmux.home(), &id);
        Frozen { agent, id, conversation }
    }

    /// Its record now.
    #[track_caller]
    fn record(&self, home: &Home) -> Value {
        home.record(&self.id).unwrap_or_else(|| panic!("record {} is there", self.id))
    }

    /// The live agent of its record, in the pane the record names.
    #[track_caller]
    fn back(&self, tmux: &Tmux) -> Fake {
        let record = self.record(tmux.home());
        assert_eq!(record["state"], "live", "{record:#}");
        let pane = record["pane_id"].as_str().unwrap();
        let told = tmux.format(pane, "#{pane_id} #{pane_pid} #{window_id} #{session_id}");
        let words: Vec<&str> = told.split(' ').collect();
        let pane = Pane {
            id: words[0].to_owned(),
            pid: words[1].parse().unwrap(),
            window: words[2].to_owned(),
            session: words[3].to_owned(),
        };
        assert_eq!(record["pane_pid"], pane.pid, "{record:#}");
        self.agent.at(pane)
    }

    /// Whether its capture is on disk.
    fn captured(&self, home: &Home) -> bool {
        home.home().join(".config/aitasks/frozen").join(&self.id).join("capture.ansi").is_file()
    }

    /// Fails unless it is frozen with its capture, with this reason for the last failure.
    #[track_caller]
    fn is_frozen(&self, home: &Home, why: &str) {
        let record = self.record(home);
        assert_eq!(record["state"], "frozen", "{record:#}");
        assert_eq!(record["op_nonce"], "", "the lease is given back: {record:#}");
        assert!(self.captured(home), "the capture is kept");
        let error = record["last_error"].as_str().unwrap();
        assert!(error.split_once(':').map_or("", |(_, reason)| reason).starts_with(why), "{error}");
    }

    /// Fails unless the stand-in is up in the pane it was in.
    #[track_caller]
    fn stands(&self, tmux: &Tmux) {
        let pane = &self.agent.pane.id;
        wait_until("the stand-in", DEADLINE, || {
            let told =
                tmux.format(pane, "#{@aitask_frozen} #{@aitask_standin_ready} #{@aitask_restore_attempt}.");
            told.starts_with(&format!("{} ", self.id)).then_some(told).filter(|told| told.ends_with("1 ."))
        });
        let record = self.record(tmux.home());
        assert_eq!(record["pane_id"], pane.as_str());
        assert_eq!(record["pane_pid"].to_string(), tmux.format(pane, "#{pane_pid}"));
    }
}

/// `ait freeze --force`.
#[track_caller]
fn freeze(home: &Home, id: &str) {
    home.ait(["freeze", id, "--force"]).ok();
    let record = home.record(id).unwrap();
    assert_eq!(record["state"], "frozen", "{record:#}");
}

/// `ait restore ID --json` to its end.
#[track_caller]
fn restore(home: &Home, id: &str) -> Ran {
    home.ait(["restore", id, "--json"])
}

/// The last line of a restore's JSON.
#[track_caller]
fn outcome(ran: &Ran) -> Value {
    let text = ran.text();
    let line = text.lines().last().unwrap_or_else(|| panic!("no line: {ran}"));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

/// How many agents of this conversation run.
fn running(home: &Home, conversation: &str) -> usize {
    let is_it = |command: &str| {
        let first = command.split(' ').next().unwrap_or_default();
        first.rsplit('/').next() == Some("claude") && command.contains(conversation)
    };
    home.processes().iter().filter(|process| is_it(&crate::support::proc::command(process.pid))).count()
}

/// Sets the time a restored agent has for its acknowledgement.
fn grace(home: &Home, seconds: u32) {
    let folder = home.home().join(".config/ait");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), format!("[frozen]\nrestore_ack_grace = \"{seconds}s\"\n"))
        .unwrap();
}

/// Manners of one key.
fn manner(key: &str, value: Value) -> Value {
    json!({ key: value })
}
