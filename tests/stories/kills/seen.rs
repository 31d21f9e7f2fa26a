//! What there is of many agents at one moment: records, panes, processes; and what that comes to for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::subject::{Subject, World};
use crate::support::proc::{self, Process};
use crate::support::{Home, Tmux};

/// One look at everything.
#[derive(Debug)]
pub(super) struct Seen {
    records: BTreeMap<String, Value>,
    /// Why each that is archived is.
    archived: BTreeMap<String, String>,
    /// The rows of each server.
    panes: BTreeMap<PathBuf, Vec<Row>>,
    /// Pid, parent and command line of what goes by `claude`.
    agents: Vec<(u32, u32, String)>,
    frozen: PathBuf,
}

/// A pane: its process, whether that ended, its stand-in's record, whether that has drawn.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    pane: String,
    dead: bool,
    pid: u32,
    frozen: String,
    ready: bool,
}

impl Seen {
    pub(super) fn look<'a>(world: &World, subjects: impl Iterator<Item = &'a Subject>) -> Seen {
        let mut servers: BTreeMap<PathBuf, &Tmux> = BTreeMap::new();
        for subject in subjects {
            let tmux = subject.tmux(world);
            servers.insert(tmux.socket().to_owned(), tmux);
        }
        Seen::of(&world.home, servers.into_values())
    }

    /// One look at these servers. Processes last: what a record says of an agent was so before it was counted.
    pub(super) fn of<'a>(home: &Home, servers: impl Iterator<Item = &'a Tmux>) -> Seen {
        let by_id = |record: Value| Some((record["id"].as_str()?.to_owned(), record));
        let records = home.records().into_iter().filter_map(by_id).collect();
        let archived = home.archived().into_iter().filter_map(|line| {
            Some((line["record"]["id"].as_str()?.to_owned(), line["reason"].as_str()?.to_owned()))
        });
        let archived = archived.collect();
        let panes = servers.map(|tmux| (tmux.socket().to_owned(), rows(tmux))).collect();
        let is_agent = |command: &str| {
            let first = command.split(' ').next().unwrap_or_default();
            first.rsplit('/').next() == Some("claude")
        };
        let agents = proc::all().into_iter().filter_map(|pid| {
            let command = proc::command(pid);
            is_agent(&command).then(|| Some((pid, proc::parent(pid)?, command))).flatten()
        });
        let agents = agents.collect();
        Seen { records, archived, panes, agents, frozen: home.home().join(".config/aitasks/frozen") }
    }

    /// A record as it is.
    pub(super) fn record(&self, id: &str) -> Option<&Value> {
        self.records.get(id)
    }

    /// The agents of a conversation. What one of them forks goes by its name for a moment, and is not counted.
    pub(super) fn running(&self, conversation: &str) -> Vec<u32> {
        let of: Vec<&(u32, u32, String)> =
            self.agents.iter().filter(|(.., command)| command.contains(conversation)).collect();
        let pids: Vec<u32> = of.iter().map(|(pid, ..)| *pid).collect();
        of.iter().filter(|(_, parent, _)| !pids.contains(parent)).map(|(pid, ..)| *pid).collect()
    }

    /// What it comes to; `None` while it is none of the ends there may be.
    pub(super) fn end(&self, id: &str, conversation: &str, socket: &Path) -> Option<&'static str> {
        let agents = self.running(conversation);
        assert!(agents.len() <= 1, "{id} has more than one agent: {agents:?} {:#?}", self.record(id));
        let rows = self.panes.get(socket)?;
        let stamped: Vec<&Row> = rows.iter().filter(|row| row.frozen == id).collect();
        let Some(record) = self.record(id) else {
            let reason = self.archived.get(id)?;
            if !agents.is_empty() || !stamped.is_empty() {
                return None;
            }
            return match (reason.as_str(), self.frozen.join(id).exists()) {
                ("dropped", true) => None,
                ("dropped", false) => Some("dropped"),
                (_, _) => Some("ended by itself"),
            };
        };
        if record["op_nonce"] != "" {
            return None;
        }
        match (record["state"].as_str()?, agents.as_slice(), stamped.as_slice()) {
            ("live", [agent], []) => {
                let pane = record["pane_id"].as_str()?;
                let row = rows.iter().find(|row| row.pane == pane)?;
                let same = record["pane_pid"] == row.pid && !row.dead && *agent == row.pid;
                same.then_some("runs, live")
            }
            ("frozen", [], []) if record["ait"]["lost"].is_object() => Some("lost by itself"),
            ("frozen", [], stamped) => {
                // of one that was lost: a crash may have come before anything was captured, and a viewer that was put there
                // says that it has drawn once its record says where it is
                let lost = record["ait"]["lost"].is_object();
                if !lost && !self.frozen.join(id).join("capture.ansi").is_file() {
                    return None;
                }
                match stamped {
                    [] => Some("frozen, no pane"),
                    // a viewer that was started again by itself is known by its pane
                    // and a dead pane that its record does not name shows the last words of an agent that crashed
                    [row] if lost && row.dead && record["pane_id"] == "" => Some("lost by itself"),
                    [row] => {
                        let alive = Process::of(row.pid).is_some_and(Process::alive);
                        (!row.dead && (row.ready || lost) && alive).then_some("frozen, viewer")
                    }
                    [..] => None,
                }
            }
            (_, _, _) => None,
        }
    }

    /// What there is of one, for a reader.
    pub(super) fn told(&self, id: &str, conversation: &str, socket: &Path) -> String {
        let rows: Vec<&Row> = self.panes.get(socket).into_iter().flatten().collect();
        let (record, archived) = (self.record(id), self.archived.get(id));
        format!("agents {:?}\narchived {archived:?}\n{record:#?}\n{rows:#?}", self.running(conversation))
    }
}

fn rows(tmux: &Tmux) -> Vec<Row> {
    let format =
        "#{pane_id} #{pane_dead} #{pane_pid} #{?@aitask_frozen,#{@aitask_frozen},-} #{@aitask_standin_ready}";
    let told = tmux.run(["list-panes", "-a", "-F", format]);
    let row = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [pane, dead, pid, frozen, ready] = words[..] else { return None };
        Some(Row {
            pane: pane.to_owned(),
            dead: dead == "1",
            pid: pid.parse().ok()?,
            frozen: frozen.to_owned(),
            ready: ready == "1",
        })
    };
    if told.status.success() { told.text().lines().filter_map(row).collect() } else { Vec::new() }
}

/// Whether the record's lease is held, and by what it is told that nothing moves.
pub(super) fn held(record: Option<&Value>) -> Option<(String, String)> {
    let record = record?;
    let word = |name: &str| record[name].as_str().map(str::to_owned);
    Some((word("state")?, word("op_nonce").filter(|nonce| !nonce.is_empty())?))
}
