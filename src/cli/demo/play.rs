//! The play: what is done to the server, and what must be seen after it.
//!
//! Each act does one thing that happens to tmux, waits until the store file shows what it must show, then asks the
//! supervisor where it knows it from. What is not seen in time, or seen wrong, ends the play.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Wrong;
use super::book::{Book, Entry};
use super::eye::Eye;
use super::show::{Show, milliseconds};
use super::stage::{Stage, await_deaths, myself};
use super::wire::Wire;
use crate::api::{Happening, ServerState, StatusReport};
use crate::process::{self, ProcessId, Signal};

/// How long an act waits for what it must see. Nothing is measured against it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long without a write counts as settled.
const QUIET: Duration = Duration::from_millis(700);

/// Who plays: project, session and window; two of them share a window.
const CAST: [(&str, &str); 6] = [
    ("shop", "cart"),
    ("shop", "search"),
    ("blog", "drafts"),
    ("blog", "theme"),
    ("maps", "tiles"),
    ("maps", "tiles"),
];

/// A running play.
pub(super) struct Play<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) show: &'a mut Show,
    eye: Eye,
    wire: Wire,
    agents: Vec<Agent>,
    acts: usize,
}

/// One stand-in agent and the record it must have.
#[derive(Debug, Clone)]
struct Agent {
    project: &'static str,
    root: PathBuf,
    window: String,
    conversation: String,
    record: String,
    pane: String,
    process: ProcessId,
}

impl<'a> Play<'a> {
    /// Starts server and supervisor, both empty.
    pub(super) async fn open(stage: &'a mut Stage, show: &'a mut Show) -> Result<Play<'a>, Wrong> {
        let version = stage.tmux_version().await?;
        let folder = stage.root().display().to_string();
        said(
            show.open(&format!("ait demo: {version} on a private server in {folder}; yours is not touched")),
        )?;
        let eye = Eye::on(&stage.store())
            .map_err(|source| Wrong::Io { what: "cannot watch the store".to_owned(), source })?;
        stage.supervise()?;
        let wire = connect(stage).await?;
        Ok(Play { stage, show, eye, wire, agents: Vec::new(), acts: 0 })
    }

    /// Acts given so far.
    pub(super) fn acts(&self) -> usize {
        self.acts
    }

    /// Six agents start in three projects.
    pub(super) async fn fleet(&mut self) -> Result<(), Wrong> {
        self.act("six agents start in three projects")?;
        for (project, window) in CAST {
            let root = self.stage.project(project)?;
            let conversation = uuid::Uuid::new_v4().to_string();
            self.enter(project, root, window, conversation).await?;
        }
        self.did("3 sessions, 5 windows, 6 panes; two agents share a window")?;
        let begun = Instant::now();
        let ids = self.ids();
        self.see("six live records", begun, |book| {
            (book.records.len() == ids.len() && ids.iter().all(|id| book.record(id).is_some_and(Entry::live)))
                .then(|| "six live records".to_owned())
        })
        .await?;
        let report = self
            .report_until("the supervisor to watch six panes", |report| {
                let server = report.servers.iter().find(|s| s.state == ServerState::Watching)?;
                let whole = (server.sessions, server.windows, server.panes, server.live) == (3, 5, 6, 6);
                whole.then(|| format!("{} sessions, {} windows, {} panes", 3, server.windows, server.panes))
            })
            .await?;
        said(self.show.saw(&format!("the supervisor watches {report}"), begun.elapsed()))
    }

    /// A window is renamed; its record follows.
    pub(super) async fn rename(&mut self) -> Result<(), Wrong> {
        self.act("a window is renamed")?;
        let Agent { record, pane, .. } = self.agents[0].clone();
        let begun = Instant::now();
        self.stage.tmux(&["rename-window", "-t", &pane, "checkout"]).await?;
        self.did("rename-window `cart` to `checkout`")?;
        self.see("the record's new window", begun, |book| {
            let entry = book.record(&record)?;
            (entry.window == "checkout" && entry.live())
                .then(|| format!("record {record} is now `checkout`, same id, still live"))
        })
        .await?;
        self.agents[0].window = "checkout".to_owned();
        self.source(&record, "renamed").await
    }

    /// One agent is killed by a signal; it is kept as lost.
    pub(super) async fn crash_one(&mut self) -> Result<(), Wrong> {
        self.act("an agent is killed")?;
        let Agent { record, pane, process, .. } = self.agents[2].clone();
        self.kept(&pane).await?;
        let begun = Instant::now();
        kill(&process, Signal::KILL)?;
        self.did("SIGKILL to the agent in `drafts`")?;
        self.see("the agent's loss", begun, |book| {
            book.record(&record)?
                .lost_by("agent_crashed")
                .then(|| format!("record {record} is kept as lost: agent_crashed; the other five are live"))
        })
        .await?;
        self.others_live(&[&record])?;
        self.source(&record, "lost").await
    }

    /// A pane is split, an agent works in it, the pane is closed.
    pub(super) async fn split_and_close(&mut self) -> Result<(), Wrong> {
        self.act("a pane is split, then closed")?;
        let Agent { project, root, window, pane, .. } = self.agents[1].clone();
        let split = self.words(&["split-window", "-d", "-t", &pane], &root);
        let split: Vec<&str> = split.iter().map(String::as_str).collect();
        let answer = self.stage.tmux(&split).await?;
        let conversation = uuid::Uuid::new_v4().to_string();
        let guest = self.sign(project, root, &window, conversation, &answer).await?;
        let id = guest.record.clone();
        let begun = Instant::now();
        self.see("a seventh record", begun, |book| {
            book.record(&id)?.live().then(|| format!("a seventh record, {id}, beside `search`"))
        })
        .await?;
        let begun = Instant::now();
        self.stage.tmux(&["kill-pane", "-t", &guest.pane]).await?;
        self.did("split-window, then kill-pane")?;
        self.see("the end of the seventh", begun, |book| {
            book.retired(&id).map(|reason| format!("record {id} is archived: {reason}"))
        })
        .await?;
        let crashed = self.agents[2].record.clone();
        self.others_live(&[&crashed])?;
        self.source(&id, "ended").await
    }

    /// `kill-server`.
    pub(super) async fn stop_server(&mut self) -> Result<(), Wrong> {
        self.act("the server is stopped")?;
        let server = self.server().await?;
        let crashed = self.agents[2].record.clone();
        let before = self.book()?.archive.len();
        let generation = self.settled().await;
        let begun = Instant::now();
        self.stage.tmux(&["kill-server"]).await?;
        self.did("kill-server")?;
        self.fleet_lost("server_stopped", Some(&crashed), begun, generation, before).await?;
        self.server_is_gone(&server, "server_stopped").await
    }

    /// SIGKILL to the server.
    pub(super) async fn kill_server(&mut self) -> Result<(), Wrong> {
        self.act("the server is killed")?;
        let server = self.server().await?;
        let before = self.book()?.archive.len();
        let generation = self.settled().await;
        let begun = Instant::now();
        kill(&server, Signal::KILL)?;
        self.did("SIGKILL to the tmux server")?;
        self.fleet_lost("server_crashed", None, begun, generation, before).await?;
        self.server_is_gone(&server, "server_crashed").await
    }

    /// A new server, the same conversations: the records are joined again.
    pub(super) async fn come_back(&mut self, cause: &str) -> Result<(), Wrong> {
        self.act("a new server comes up")?;
        let former = std::mem::take(&mut self.agents);
        let begun = Instant::now();
        for agent in &former {
            self.enter(agent.project, agent.root.clone(), &agent.window, agent.conversation.clone()).await?;
        }
        self.did("six agents start on a new server, each with the conversation it had")?;
        let same = self.agents.iter().zip(&former).all(|(now, then)| now.record == then.record);
        if !same {
            return Err(Wrong::Seen {
                what: format!("records joined again after {cause}"),
                expected: former.iter().map(|a| a.record.clone()).collect::<Vec<_>>().join(" "),
                seen: self.ids().join(" "),
            });
        }
        let ids = self.ids();
        self.see("six records joined again", begun, |book| {
            let live = ids.iter().all(|id| book.record(id).is_some_and(Entry::live));
            (live && book.records.len() == ids.len())
                .then(|| "the six lost records are live again under their ids; none is doubled".to_owned())
        })
        .await?;
        self.report_until("the supervisor to watch the new server", |report| {
            report.servers.iter().any(|s| s.state == ServerState::Watching && s.live == 6).then_some(())
        })
        .await
    }

    // The parts the acts are made of.

    pub(super) fn act(&mut self, title: &str) -> Result<(), Wrong> {
        self.acts += 1;
        said(self.show.act(self.acts, title))
    }

    pub(super) fn did(&self, text: &str) -> Result<(), Wrong> {
        said(self.show.did(text))
    }

    fn ids(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.record.clone()).collect()
    }

    pub(super) fn book(&self) -> Result<Book, Wrong> {
        let store = self.stage.store();
        Book::read(&store)
            .map_err(|source| Wrong::Io { what: format!("cannot read {}", store.display()), source })
    }

    /// Starts one agent in its window, which is made if it is not there, and signs it into the store.
    async fn enter(
        &mut self,
        project: &'static str,
        root: PathBuf,
        window: &str,
        conversation: String,
    ) -> Result<(), Wrong> {
        let neighbour = self.agents.iter().find(|a| a.project == project && a.window == window);
        let fellow = self.agents.iter().any(|a| a.project == project);
        let session = format!("={project}:");
        let start: Vec<&str> = match (neighbour, fellow) {
            (Some(neighbour), _) => vec!["split-window", "-d", "-t", &neighbour.pane],
            (None, true) => vec!["new-window", "-d", "-t", &session, "-n", window],
            (None, false) => vec!["new-session", "-d", "-x", "120", "-y", "30", "-s", project, "-n", window],
        };
        let words = self.words(&start, &root);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = self.stage.tmux(&words).await?;
        let agent = self.sign(project, root, window, conversation, &answer).await?;
        self.agents.push(agent);
        Ok(())
    }

    /// A starting command with what every one of them has: the answer asked for, the folder, the agent.
    fn words(&self, start: &[&str], root: &std::path::Path) -> Vec<String> {
        let mut words: Vec<String> = start.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["-P", "-F", "#{pane_id} #{pane_pid}", "-c"].map(str::to_owned));
        words.push(root.to_string_lossy().into_owned());
        words.push(myself());
        words.push("demo-agent".to_owned());
        words
    }

    /// Makes or joins the record of the agent in the pane that tmux named in `answer`, and stamps the pane.
    async fn sign(
        &mut self,
        project: &'static str,
        root: PathBuf,
        window: &str,
        conversation: String,
        answer: &str,
    ) -> Result<Agent, Wrong> {
        let odd = |expected: &str, seen: &str| Wrong::Seen {
            what: format!("the start of `{window}`"),
            expected: expected.to_owned(),
            seen: seen.to_owned(),
        };
        let (pane, pid) = answer.split_once(' ').ok_or_else(|| odd("a pane and a pid", answer))?;
        let process =
            pid.parse().ok().and_then(process::identify).ok_or_else(|| odd("a running agent", answer))?;
        let place = root.to_string_lossy().into_owned();
        let told = self
            .stage
            .ait(&[
                "record",
                "upsert",
                "--root",
                &place,
                "--window",
                window,
                "--pane",
                pane,
                "--pane-pid",
                pid,
                "--session",
                project,
                "--session-id",
                &conversation,
                "--agent-string",
                "demo/stand-in",
            ])
            .await?;
        let record = told
            .strip_prefix("UPSERTED:")
            .and_then(|rest| rest.split('|').next())
            .ok_or_else(|| odd("UPSERTED:<id>|…", &told))?
            .to_owned();
        self.stage.tmux(&["set-option", "-p", "-t", pane, "@aitask_record", &record]).await?;
        Ok(Agent {
            project,
            root,
            window: window.to_owned(),
            conversation,
            record,
            pane: pane.to_owned(),
            process,
        })
    }

    /// Waits until `found` tells what it found in the store file, and shows it with the time since the act.
    pub(super) async fn see(
        &mut self,
        what: &str,
        begun: Instant,
        found: impl FnMut(&Book) -> Option<String>,
    ) -> Result<(), Wrong> {
        self.see_within(what, begun, PATIENCE, found).await
    }

    /// [`Play::see`] with a patience of its own.
    pub(super) async fn see_within(
        &mut self,
        what: &str,
        begun: Instant,
        patience: Duration,
        mut found: impl FnMut(&Book) -> Option<String>,
    ) -> Result<(), Wrong> {
        let late = tokio::time::sleep(patience);
        tokio::pin!(late);
        loop {
            let book = self.book()?;
            if let Some(text) = found(&book) {
                return said(self.show.saw(&text, begun.elapsed()));
            }
            self.stage.supervisor_runs()?;
            tokio::select! {
                changed = self.eye.blink() => {
                    changed.map_err(|source| Wrong::Io { what: "cannot watch the store".to_owned(), source })?;
                }
                () = &mut late => {
                    return Err(Wrong::NotSeen {
                        what: what.to_owned(), span: patience, instead: self.book()?.summary(),
                    });
                }
            }
        }
    }

    /// All records but those in `except` are live.
    fn others_live(&self, except: &[&String]) -> Result<(), Wrong> {
        let book = self.book()?;
        let wrong = self
            .agents
            .iter()
            .filter(|agent| !except.contains(&&agent.record))
            .find(|agent| !book.record(&agent.record).is_some_and(Entry::live));
        match wrong {
            None => Ok(()),
            Some(agent) => Err(Wrong::Seen {
                what: format!("the agent in `{}`, which nothing happened to", agent.window),
                expected: "a live record".to_owned(),
                seen: book.summary(),
            }),
        }
    }

    /// Waits until the supervisor keeps the pane's end readable; before that a death leaves no status behind.
    async fn kept(&self, pane: &str) -> Result<(), Wrong> {
        let begun = Instant::now();
        while self.stage.tmux(&["show-options", "-p", "-v", "-t", pane, "remain-on-exit"]).await? != "on" {
            if begun.elapsed() > PATIENCE {
                return Err(Wrong::NotSeen {
                    what: format!("`remain-on-exit` on pane {pane}"),
                    span: PATIENCE,
                    instead: self.book()?.summary(),
                });
            }
            // tmux tells of no option's change
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Waits until nothing was written for a while (the supervisor writes layouts late, since they come in bursts), and
    /// gives the number of generations so far.
    pub(super) async fn settled(&mut self) -> u64 {
        while let Ok(Ok(())) = tokio::time::timeout(QUIET, self.eye.blink()).await {}
        self.eye.generations().await
    }

    /// The whole fleet is lost for `cause` in one write, and nothing was archived.
    async fn fleet_lost(
        &mut self,
        cause: &str,
        crashed: Option<&String>,
        begun: Instant,
        generation: u64,
        archived: usize,
    ) -> Result<(), Wrong> {
        let agents = self.ids();
        let is_lost = |entry: &Entry, id: &String| {
            entry.lost_by(if Some(id) == crashed { "agent_crashed" } else { cause })
        };
        let count = agents.len() - usize::from(crashed.is_some());
        self.see("the loss of the fleet", begun, |book| {
            let all = agents.iter().all(|id| book.record(id).is_some_and(|entry| is_lost(entry, id)));
            all.then(|| format!("all {count} live records are kept as lost: {cause}"))
        })
        .await?;
        let book = self.book()?;
        if book.archive.len() != archived {
            return Err(Wrong::Seen {
                what: "the archive".to_owned(),
                expected: format!("{archived} lines, as before"),
                seen: book.summary(),
            });
        }
        match self.eye.generations().await - generation {
            1 => said(self.show.from("one write of the store; nothing archived")),
            writes => Err(Wrong::Seen {
                what: "the loss of a server".to_owned(),
                expected: "one write".to_owned(),
                seen: format!("{writes} writes"),
            }),
        }
    }

    async fn server_is_gone(&mut self, server: &ProcessId, cause: &str) -> Result<(), Wrong> {
        if !await_deaths(std::slice::from_ref(server), PATIENCE).await {
            return Err(Wrong::Seen {
                what: "the server".to_owned(),
                expected: "its end".to_owned(),
                seen: format!("process {} alive", server.pid),
            });
        }
        self.report_until("the supervisor to know the server as gone", |report| {
            report.servers.iter().find_map(|status| match &status.state {
                ServerState::Gone { cause: told } if told == cause => Some(()),
                ServerState::Gone { .. }
                | ServerState::Watching
                | ServerState::Attaching
                | ServerState::Idle
                | ServerState::Unknown { .. } => None,
            })
        })
        .await
    }

    pub(super) async fn server(&self) -> Result<ProcessId, Wrong> {
        let pid = self.stage.tmux(&["display-message", "-p", "#{pid}"]).await?;
        pid.parse().ok().and_then(process::identify).ok_or_else(|| Wrong::Seen {
            what: "the server".to_owned(),
            expected: "a running process".to_owned(),
            seen: pid,
        })
    }

    /// Shows where the supervisor knows from that `what` happened to `record`.
    async fn source(&mut self, record: &str, what: &str) -> Result<(), Wrong> {
        let happening = self
            .report_until("the supervisor to tell of it", |report| {
                let told = report.recent.iter().rev();
                told.filter(|h| h.what == what).find(|h| h.record.as_deref() == Some(record)).cloned()
            })
            .await?;
        let Happening { what, source, to_store_us, .. } = happening;
        let took = milliseconds(Duration::from_micros(to_store_us.unwrap_or_default()));
        said(self.show.from(&format!("{source}: {what}, in the store {took} after it was heard")))
    }

    /// Asks the supervisor, again at each of its changes, until `found` gives something.
    async fn report_until<T>(
        &mut self,
        what: &str,
        mut found: impl FnMut(&StatusReport) -> Option<T>,
    ) -> Result<T, Wrong> {
        let late = tokio::time::sleep(PATIENCE);
        tokio::pin!(late);
        loop {
            self.stage.supervisor_runs()?;
            let report = self.wire.report().await?;
            if let Some(found) = found(&report) {
                return Ok(found);
            }
            tokio::select! {
                changed = self.wire.changed() => changed?,
                () = &mut late => {
                    let servers: Vec<String> =
                        report.servers.iter().map(|s| format!("{:?} with {} live", s.state, s.live)).collect();
                    return Err(Wrong::NotSeen {
                        what: what.to_owned(),
                        span: PATIENCE,
                        instead: format!("it knows of {servers:?}; {}", self.book()?.summary()),
                    });
                }
            }
        }
    }
}

/// Connects to the supervisor once its runtime folder shows a socket.
async fn connect(stage: &mut Stage) -> Result<Wire, Wrong> {
    let begun = Instant::now();
    loop {
        stage.supervisor_runs()?;
        if let Some(wire) = Wire::connect(&stage.runtime()).await? {
            return Ok(wire);
        }
        if begun.elapsed() > PATIENCE {
            return Err(Wrong::Api("it opened no socket".to_owned()));
        }
        // the only wait of the demo that no event ends: the folder to watch is not there yet
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn kill(process: &ProcessId, signal: Signal) -> Result<(), Wrong> {
    match process::signal(process, signal) {
        Ok(process::Delivery::Delivered) => Ok(()),
        Ok(process::Delivery::Gone) => Err(Wrong::Seen {
            what: format!("process {}", process.pid),
            expected: "running".to_owned(),
            seen: "gone before it was killed".to_owned(),
        }),
        Err(error) => Err(Wrong::Command { line: "kill".to_owned(), told: error.to_string() }),
    }
}

pub(super) fn said(written: std::io::Result<()>) -> Result<(), Wrong> {
    written.map_err(|source| Wrong::Io { what: "cannot write to standard output".to_owned(), source })
}
