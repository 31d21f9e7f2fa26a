//! Recovery: what a crash took is back in its place and in its conversation, once and without a command.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::tmux::Pane;
use crate::support::wait::{stays, within};
use crate::support::{DEADLINE, Fake, Home, Supervisor, Tmux, proc, wait_until};

mod bare;
mod crash;
mod cuts;
mod offers;
mod outlive;
mod reboot;
mod wiped;
mod word;

/// Agents in several projects, with splits and companions.
struct Fleet {
    home: Home,
    tmux: Tmux,
    supervisor: Supervisor,
    agents: Vec<Member>,
}

/// One agent and where it stood.
struct Member {
    id: String,
    conversation: String,
    agent: Fake,
    place: Place,
}

/// A window as tmux tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    session: String,
    index: String,
    window: String,
    layout: String,
    /// Where its panes work, in order.
    folders: Vec<String>,
}

impl Place {
    #[track_caller]
    pub(crate) fn of(tmux: &Tmux, pane: &str) -> Place {
        let told = tmux.format(pane, "#{session_name}\t#{window_index}\t#{window_name}\t#{window_layout}");
        let words: Vec<&str> = told.split('\t').collect();
        let folders = tmux.ok(["list-panes", "-t", pane, "-F", "#{pane_current_path}"]);
        Place {
            session: words[0].to_owned(),
            index: words[1].to_owned(),
            window: words[2].to_owned(),
            layout: shape(words[3]),
            folders: folders.lines().map(str::to_owned).collect(),
        }
    }
}

/// A layout without its checksum and the numbers of its panes, which are new in a new server.
fn shape(layout: &str) -> String {
    let cells = layout.split_once(',').map_or("", |(_, cells)| cells);
    let mut shape = String::new();
    let mut numbers = 0;
    for word in cells.split_inclusive([',', '{', '}', '[', ']']) {
        let (text, end) =
            word.split_at(word.len() - usize::from(!word.ends_with(|c: char| c.is_ascii_digit())));
        if text.contains('x') {
            numbers = 0;
        } else if !text.is_empty() {
            numbers += 1;
        }
        shape += if numbers == 3 { "" } else { text };
        shape += end;
    }
    shape
}

impl Fleet {
    /// A session for each of `projects`, with four agents: a window of two and a shell between them, one alone at index 7, one
    /// in a window whose first pane is a shell.
    #[track_caller]
    fn new(projects: &[&str]) -> Fleet {
        Fleet::with(projects, |_| {})
    }

    /// The same in a world that was prepared.
    #[track_caller]
    fn with(projects: &[&str], prepare: impl FnOnce(&Home)) -> Fleet {
        let home = Home::new();
        home.hooked("claude");
        prepare(&home);
        let tmux = Tmux::start(&home);
        let supervisor = supervisor(&home, &tmux);
        let mut agents = Vec::new();
        for project in projects {
            let root = home.project(project);
            tmux.session(project, &root, &["sleep", "1000000"]);
            let first = Fake::claude(&tmux, project, "pair", &root);
            // its hook has made its record
            supervisor.attached(&tmux);
            tmux.ok([
                "split-window",
                "-d",
                "-t",
                &first.pane.id,
                "-c",
                &home.project("notes").to_string_lossy(),
                "/bin/sh",
            ]);
            let second =
                first.beside(&tmux, "claude", &["--session-id", &crate::support::fake::new_id()]).up(&tmux);
            tmux.ok(["select-layout", "-t", &first.pane.window, "main-vertical"]);
            let alone = Fake::claude(&tmux, project, "alone", &root);
            tmux.ok(["move-window", "-d", "-s", &alone.pane.window, "-t", &format!("{project}:7")]);
            let shell = tmux.window(project, "below", &home.project("notes"), &["/bin/sh"]);
            let new = crate::support::fake::new_id();
            let below = first.at(shell).beside(&tmux, "claude", &["--session-id", &new]).up(&tmux);
            for agent in [first, second, alone, below] {
                agent.prompt(&tmux, "one");
                agents.push(agent);
            }
        }
        let agents: Vec<Member> = agents
            .into_iter()
            .map(|agent| Member {
                id: agent.adopt(&tmux),
                conversation: agent.conversation(),
                place: Place::of(&tmux, &agent.pane.id),
                agent,
            })
            .collect();
        supervisor.watching(&tmux, agents.len() as u64);
        let fleet = Fleet { home, tmux, supervisor, agents };
        fleet.planned();
        fleet
    }

    /// Waits until what stands where is on disk as it is now.
    #[track_caller]
    fn planned(&self) {
        let agents: Vec<(&str, &str)> =
            self.agents.iter().map(|member| (member.id.as_str(), member.agent.pane.id.as_str())).collect();
        planned(&self.home, &self.tmux, &agents);
        for member in &self.agents {
            let known = |home: &Home| {
                let record = home.record(&member.id)?;
                (record["ait"]["server"].is_object() && record["ait"]["agent"].is_object()).then_some(())
            };
            self.home.store_until("the record to be whole", known);
        }
    }

    /// Waits until all are live again on another life of the server, and checks that each is where and what it was, once.
    #[track_caller]
    fn all_back(&self, old: u32) {
        self.home.store_until("all to be back", |home| {
            self.agents.iter().all(|member| is_back(home, &member.id, old)).then_some(())
        });
        self.tmux.remember();
        for member in &self.agents {
            let record = self.home.record(&member.id).unwrap();
            let pane = record["pane_id"].as_str().unwrap();
            self.once(&member.conversation);
            assert_eq!(record["codeagent_session_id"], member.conversation.as_str());
            let place = within(DEADLINE, || (Place::of(&self.tmux, pane) == member.place).then_some(()));
            assert!(
                place.is_some(),
                "it is at {:#?}, not at {:#?}\n{:#}\n{}",
                Place::of(&self.tmux, pane),
                member.place,
                self.supervisor.status(),
                self.supervisor.log()
            );
            let back = member.agent.at(Pane {
                id: pane.to_owned(),
                pid: u32::try_from(record["pane_pid"].as_u64().unwrap()).unwrap(),
                window: self.tmux.format(pane, "#{window_id}"),
                session: self.tmux.format(pane, "#{session_id}"),
            });
            back.ready(&self.tmux);
            assert_eq!(back.turns(), 1, "its conversation goes on");
        }
        let mut windows: Vec<(&String, &String, usize)> = self
            .agents
            .iter()
            .map(|member| (&member.place.session, &member.place.index, member.place.folders.len()))
            .collect();
        windows.sort();
        windows.dedup();
        for session in windows.iter().map(|(session, ..)| *session) {
            let wanted: usize =
                windows.iter().filter(|window| window.0 == session).map(|window| window.2).sum();
            wait_until("no pane too many", DEADLINE, || {
                let panes =
                    self.tmux.ok(["list-panes", "-s", "-t", &format!("={session}:"), "-F", "#{pane_id}"]);
                (panes.lines().count() == wanted).then_some(()).or_else(|| {
                    eprintln!("{session} has {} panes, not {wanted}", panes.lines().count());
                    None
                })
            });
        }
    }

    /// Kills the server, and gives its pid.
    #[track_caller]
    fn crash(&self) -> u32 {
        let old = self.tmux.server().pid;
        self.tmux.kill(Signal::KILL);
        old
    }

    /// Kills the server, waits until all are kept as lost, and gives its pid.
    #[track_caller]
    fn lose(&self) -> u32 {
        let old = self.crash();
        self.until_lost();
        old
    }

    /// Waits until all are kept as lost.
    #[track_caller]
    fn until_lost(&self) {
        self.home.store_until("all to be lost", |home| {
            let lost = |member: &Member| {
                home.record(&member.id).is_some_and(|record| record["ait"]["lost"]["cause"].is_string())
            };
            self.agents.iter().all(lost).then_some(())
        });
    }

    /// Fails unless nothing runs of any of them, once those that hear the hang-up are gone, and goes on not to for a while.
    #[track_caller]
    fn stay_lost(&self) {
        let none = || {
            let back = |member: &Member| {
                let lost = self.home.record(&member.id).is_some_and(|r| r["ait"]["lost"].is_object());
                !lost || running(&self.home, &member.conversation) > 0
            };
            !self.agents.iter().any(back)
        };
        wait_until("those of the server to be gone", DEADLINE, || none().then_some(()));
        stays("nothing comes back unasked", Duration::from_secs(3), none);
    }

    /// Fails unless exactly one agent of that conversation runs.
    #[track_caller]
    fn once(&self, conversation: &str) {
        assert_eq!(running(&self.home, conversation), 1, "{conversation} runs once");
    }
}

/// A supervisor that settles what was cut short at once.
#[track_caller]
fn supervisor(home: &Home, tmux: &Tmux) -> Supervisor {
    let supervisor = Supervisor::launch(home, &[tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
    supervisor.ready();
    supervisor
}

/// Whether the record is live in a server other than the one with this pid.
fn is_back(home: &Home, id: &str, old: u32) -> bool {
    home.record(id).is_some_and(|record| record["state"] == "live" && record["ait"]["server"]["pid"] != old)
}

/// How many agents of this conversation run.
fn running(home: &Home, conversation: &str) -> usize {
    let is_it = |command: &str| {
        let first = command.split(' ').next().unwrap_or_default();
        first.rsplit('/').next() == Some("claude") && command.contains(conversation)
    };
    home.processes().iter().filter(|process| is_it(&proc::command(process.pid))).count()
}

/// Writes the user's settings.
fn settings(home: &Home, text: &str) {
    let folder = home.home().join(".config/ait");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

/// Waits until a plan on disk says where these records' panes stand now.
#[track_caller]
pub(crate) fn planned(home: &Home, tmux: &Tmux, agents: &[(&str, &str)]) {
    let plans = || -> Vec<Value> {
        let folder = std::fs::read_dir(home.home().join(".local/state/ait/plans"));
        let paths = folder.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter_map(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).collect()
    };
    wait_until("the plan", DEADLINE, || {
        let plans = plans();
        let known = |(record, pane): &(&str, &str)| {
            let layout = tmux.format(pane, "#{window_layout}");
            let index = tmux.format(pane, "#{window_index}");
            let mut windows = plans.iter().filter_map(|plan| plan["windows"].as_array()).flatten();
            windows.any(|window| {
                window["layout"] == layout.as_str()
                    && window["index"].as_i64() == index.parse().ok()
                    && window["panes"]
                        .as_array()
                        .is_some_and(|panes| panes.iter().any(|pane| pane["record"] == *record))
            })
        };
        agents.iter().all(known).then_some(())
    });
}
