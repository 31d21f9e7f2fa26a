//! What is told of a session.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::address::Found;
use super::envelope::Trouble;
use super::face::Face;
use super::look::{Seen, Status};
use super::turn_state;
use crate::cli::Exit;
use crate::client;
use crate::lifecycle::apart;
use crate::provider::{Catalog, Recorded};
use crate::record::{Mode, Record, Session, Stamp};
use crate::store::{Paths, turns};
use crate::turn::Moment;

/// What a view is made with, besides the session.
pub(super) struct Around<'a> {
    pub(super) face: Face,
    pub(super) host: Option<&'a str>,
    pub(super) catalog: &'a Catalog,
    pub(super) paths: &'a Paths,
}

/// A session in the JSON of every command that gives one.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) mode: Mode,
    pub(super) title: Option<String>,
    pub(super) cwd: String,
    pub(super) tmux_session: String,
    pub(super) status: Status,
    pub(super) resumable: bool,
    pub(super) repo_name: Option<String>,
    pub(super) attach_command: String,
    pub(super) ssh_attach_command: Option<String>,
    pub(super) prompt_file: Option<String>,
    pub(super) log_file: Option<String>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider_resume: Option<Resume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_terminal_activity_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runtime_started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_state: Option<Value>,
    /// What `ait` tells besides.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) ours: Option<Ours>,
}

/// What only `ait` tells.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ours {
    /// The record.
    record: String,
    /// The name it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The record's state, or `archived`.
    state: &'static str,
    /// Its place: socket and pane.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Place>,
    /// The exit status of a run that is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i32>,
    /// Why it is in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Place {
    socket: String,
    pane: String,
    pid: i32,
}

/// How its conversation is brought back.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Resume {
    provider: String,
    session_id: String,
    captured_at: String,
    capture_method: String,
    resume_args: Vec<String>,
}

impl View {
    /// What it is called: its title, or else the name it was given.
    pub(super) fn called(&self) -> Option<&str> {
        self.title.as_deref().or_else(|| self.ours.as_ref()?.name.as_deref())
    }
}

impl Around<'_> {
    /// A session as every command tells it. Its turn, which lies in a file of its own, is read only if `turn`.
    pub(super) fn view(&self, found: &Found, seen: Seen, turn: bool) -> View {
        let record = &found.record;
        let none = Session::default();
        let session = record.ait.session.as_ref().unwrap_or(&none);
        let cwd = record.ait.cwd.clone().filter(|cwd| !cwd.is_empty()).unwrap_or_else(|| record.root.clone());
        let created = record.started_at.map(|at| at.to_string()).unwrap_or_default();
        let state_at = record.state_at.or(record.started_at);
        let running = seen.status == Status::Running;
        let updated = updated(found, running).map(|at| at.to_string()).unwrap_or_default();
        let file = |name: &str| folder_of(self.paths, record).join(name).to_string_lossy().into_owned();
        let attach = self.attach(found, running);
        let turn_state = (turn && running).then(|| {
            let turns = turns::of(self.paths, &turns::Whose::of(record));
            let view = client::view(&self.paths.files(), record.id, turns, now());
            turn_state::told(&view, &record.agent_kind, &updated)
        });
        let resume_args = self.resume_args(record);
        View {
            id: id_of(self.face, record),
            agent: record.agent_kind.clone(),
            mode: session.mode,
            title: session.title.clone(),
            repo_name: Path::new(&cwd).file_name().map(|name| name.to_string_lossy().into_owned()),
            cwd,
            tmux_session: record.session.clone(),
            status: seen.status,
            resumable: resume_args.is_some(),
            ssh_attach_command: self.host.map(|host| format!("ssh -t {} {}", quoted(host), quoted(&attach))),
            attach_command: attach,
            prompt_file: session.prompt.then(|| file("prompt.md")),
            log_file: (session.mode == Mode::Run).then(|| file("output.log")),
            provider_resume: resume_args.map(|words| self.resume(record, &created, words)),
            last_terminal_activity_at: seen.activity.filter(|_| running).and_then(second),
            runtime_started_at: running.then(|| state_at.map(|at| at.to_string())).flatten(),
            turn_state,
            ours: (self.face == Face::Ait).then(|| self.ours(found, running)),
            created_at: created,
            updated_at: updated,
        }
    }

    /// What sessions are listed by: the latest first.
    pub(super) fn order(&self, found: &Found, seen: Seen) -> impl Ord + use<> {
        let updated = updated(found, seen.status == Status::Running);
        (Reverse(updated), Reverse(found.record.started_at), id_of(self.face, &found.record))
    }

    fn ours(&self, found: &Found, running: bool) -> Ours {
        let record = &found.record;
        let session = record.ait.session.as_ref();
        let place = record.location.pane_id().zip(record.ait.server.as_ref()).filter(|_| running);
        Ours {
            record: record.id.to_string(),
            name: session.and_then(|session| session.name.clone()),
            state: if found.archived.is_some() { "archived" } else { record.state.name().word() },
            location: place.map(|(pane, server)| Place {
                socket: server.socket.clone(),
                pane: pane.to_string(),
                pid: record.agent_process().map_or(0, |process| process.pid),
            }),
            exit_status: session.and_then(|session| session.exit),
            ended: found.archived.as_ref().map(|(_, reason)| reason.clone()),
        }
    }

    /// What a person types to see it.
    fn attach(&self, found: &Found, running: bool) -> String {
        let record = &found.record;
        match (self.face, record.location.pane_id().filter(|_| running), &record.ait.server) {
            (Face::AgentSession, ..) => format!("tmux attach -t {}", quoted(&record.session)),
            (Face::Ait, Some(pane), Some(server)) => {
                format!("tmux -S {} attach-session -t {}", quoted(&server.socket), quoted(&pane.to_string()))
            }
            (Face::Ait, ..) => format!("ait attach {}", record.id),
        }
    }

    /// The words after the program that bring its conversation back; `None` where it cannot be: without a whole id, or where the id
    /// is held to be one provider's and the words it ran with are another's. The earlier command line tells
    /// those that choose the conversation, and not the agent's own.
    fn resume_args(&self, record: &Record) -> Option<Vec<String>> {
        if record.ait.session.as_ref().is_some_and(|session| session.mode == Mode::Run) {
            return None;
        }
        let recorded = Recorded {
            argv: record.ait.argv.as_deref().unwrap_or_default(),
            bin: record.ait.agent_bin.as_deref().unwrap_or_default(),
        };
        if self.catalog.other_than(&record.agent_kind, recorded).is_some() {
            return None;
        }
        let argv =
            self.catalog.resume_argv(&record.agent_kind, &record.codeagent_session_id, recorded).ok()?;
        let id = record.codeagent_session_id.as_str();
        let cwd = record.ait.cwd.as_deref().unwrap_or(&record.root);
        let words: &[&str] = match (self.face, record.agent_kind.as_str()) {
            (Face::Ait, _) => return Some(argv.into_iter().skip(1).collect()),
            (Face::AgentSession, "codex") => &["resume", id, "--cd", cwd, "--no-alt-screen"],
            (Face::AgentSession, _) => &["--resume", id],
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn resume(&self, record: &Record, captured: &str, resume_args: Vec<String>) -> Resume {
        let chosen = record.ait.session.is_some() && self.catalog.chooses_id(&record.agent_kind);
        let how = match (self.face, record.agent_kind.as_str()) {
            (Face::AgentSession, "codex") => "session-meta",
            (Face::Ait | Face::AgentSession, _) if chosen => "explicit-session-id",
            (Face::Ait | Face::AgentSession, _) => "reported-session-id",
        };
        Resume {
            provider: record.agent_kind.clone(),
            session_id: record.codeagent_session_id.clone(),
            captured_at: captured.to_owned(),
            capture_method: format!("{}-{how}", record.agent_kind),
            resume_args,
        }
    }
}

/// When something last happened to it: its state, what was sent to it, or its end.
fn updated(found: &Found, running: bool) -> Option<Stamp> {
    let record = &found.record;
    let session = record.ait.session.as_ref();
    let archived = found.archived.as_ref().map(|(at, _)| *at);
    let stopped = archived.or_else(|| session?.stopped_at.filter(|_| !running));
    let changed = stopped.or(record.state_at).or(record.started_at);
    changed.max(session.and_then(|session| session.sent_at))
}

/// The id by which a session is told: the record's, or for the earlier command line its name.
pub(super) fn id_of(face: Face, record: &Record) -> String {
    let name = record.ait.session.as_ref().and_then(|session| session.name.clone());
    match face {
        Face::Ait => record.id.to_string(),
        Face::AgentSession => name.unwrap_or_else(|| record.id.to_string()),
    }
}

/// Its folder, as those find it who keep it apart.
pub(super) fn folder_of(paths: &Paths, record: &Record) -> PathBuf {
    apart::link(paths, record).unwrap_or_else(|| turns::folder(paths, record.id))
}

/// A folder of a session that leads elsewhere is not the session's: nothing in it is read or told.
pub(super) fn own_folder(paths: &Paths, found: &Found) -> Result<(), Trouble> {
    let folder = turns::folder(paths, found.record.id);
    let leads_away = folder.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if leads_away {
        let message = format!("{} leads to another place", folder.display());
        return Err(Trouble::new(Exit::USAGE, "session-path-escaped", message));
    }
    Ok(())
}

/// One word of a shell.
pub(super) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| "''".to_owned(), |word| word.into_owned())
}

/// The moment it is.
pub(super) fn now() -> Moment {
    Timestamp::now().into()
}

fn second(at: i64) -> Option<String> {
    Timestamp::from_second(at).ok().map(|at| at.to_string())
}
