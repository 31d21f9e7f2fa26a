//! Whether an agent can come back: its arguments, program, folder and conversation, and whether it is back already.

use std::path::{Path, PathBuf};

use super::Performer;
use crate::coordinator::Conversation;
use crate::coordinator::preflight::{Ready, Survivor};
use crate::history::{self, Environment, Located};
use crate::lifecycle::adopt;
use crate::lifecycle::behind::{prints, recognised};
use crate::lifecycle::{exec, identity, shared};
use crate::process::{self, ProcessId, Table};
use crate::provider::{Catalog, Provider, Recorded};
use crate::record::{Liveness, PaneId, Record, RestoreMode, ServerEpoch, State};
use crate::tmux::listing::{self, ListError};
use crate::tmux::{OneShot, Unanswered};
use crate::world::rows::PaneRow;

/// A server that was listed.
struct Listed {
    epoch: ServerEpoch,
    panes: Vec<PaneRow>,
}

impl Performer<'_> {
    /// Gathers what preflight judges. Nothing is written.
    pub(super) async fn ready(&mut self, mode: RestoreMode) -> Box<Ready> {
        // the latest, not the one that was read at the beginning
        let _ = self.read();
        let Some(record) = self.record.clone() else {
            return Box::new(Ready::nothing("its record is gone"));
        };
        let (mut argv, session_id) = self.argv(&record, mode);
        let elsewhere = match (mode, &mut argv) {
            (RestoreMode::Resume, Ok(words)) => elsewhere(&record, words),
            (RestoreMode::Resume | RestoreMode::Repick, _) => None,
        };
        let folder = exec::folder_of(&record);
        let (conversation, filed) = match mode {
            RestoreMode::Resume => conversation(&self.world.catalog, &record),
            RestoreMode::Repick => (Conversation::Unknown("a new one begins".to_owned()), None),
        };
        let name = argv.as_ref().ok().and_then(|argv| argv.first());
        let binary = name.is_some_and(|name| exec::find(&record, name.as_ref()).is_some());
        let there = filed.as_deref().map_or(folder.as_path(), Path::new).is_dir();
        let mut ready = Ready {
            argv,
            session_id,
            binary,
            folder: (folder.to_string_lossy().into_owned(), there),
            conversation,
            filed,
            twin: self.twin(&record),
            survivors: Vec::new(),
            elsewhere,
            unknown: None,
        };
        self.survivors(&record, &mut ready).await;
        Box::new(ready)
    }

    /// The arguments, and the session id the agent will have, where that is known.
    fn argv(&self, record: &Record, mode: RestoreMode) -> (Result<Vec<String>, String>, Option<String>) {
        let recorded = Recorded {
            argv: record.ait.argv.as_deref().unwrap_or_default(),
            bin: record.ait.agent_bin.as_deref().unwrap_or_default(),
        };
        let (catalog, kind) = (&self.world.catalog, record.agent_kind.as_str());
        match mode {
            RestoreMode::Resume => {
                let id = record.codeagent_session_id.as_str();
                let argv = catalog.resume_argv(kind, id, recorded).map_err(|why| why.word());
                (argv, Some(id.to_owned()))
            }
            RestoreMode::Repick => {
                let chosen = catalog.chooses_id(kind).then(|| uuid::Uuid::new_v4().to_string());
                let argv = catalog
                    .launch_argv(kind, chosen.as_deref(), recorded)
                    .map_err(|_| format!("launch_unsupported:{kind}"));
                (argv, chosen)
            }
        }
    }

    /// Another record that is live with this conversation.
    fn twin(&self, record: &Record) -> Option<(crate::record::RecordId, Option<PaneId>)> {
        let id = &record.codeagent_session_id;
        let snapshot = self.world.store.read().ok()?;
        let same = |other: &&Record| {
            other.id != record.id
                && !id.is_empty()
                && other.codeagent_session_id == *id
                && other.agent_kind == record.agent_kind
                && matches!(other.state, State::Live | State::Restoring { .. })
        };
        let found = snapshot.records.iter().find(same)?;
        Some((found.id, found.location.pane_id()))
    }

    /// Panes of earlier attempts, the lost agent's old process, and every other process with this conversation.
    async fn survivors(&self, record: &Record, ready: &mut Ready) {
        let mut servers = Vec::new();
        for socket in sockets(record) {
            match list(&socket).await {
                Ok(listed) => servers.extend(listed),
                Err(why)
                    if record.ait.server.as_ref().is_some_and(|own| Path::new(&own.socket) == socket) =>
                {
                    ready.unknown = Some(why);
                }
                // a server that the record never was on, and that does not answer, is not waited for
                Err(_) => {}
            }
        }
        let table = match Table::read() {
            Ok(table) => table,
            Err(error) => return ready.unknown = Some(error.to_string()),
        };
        let mark = format!("{}:", record.id);
        for server in &servers {
            for row in server.panes.iter().filter(|row| !row.dead && row.attempt.starts_with(mark.as_bytes()))
            {
                let Some(process) = row.pid.and_then(process::identify) else { continue };
                let family = std::iter::once(process.clone()).chain(table.descendants(process.pid));
                let proven =
                    family.into_iter().any(|one| has_conversation(&self.world.catalog, record, &one));
                let pane = PaneId(row.id.0);
                if ready.survivors.iter().any(|one| one.process == process) {
                    continue;
                }
                ready.survivors.push(Survivor {
                    pane: Some((pane, server.epoch.clone(), process.clone())),
                    process,
                    proven,
                    attempt: true,
                });
            }
        }
        let known: Vec<ProcessId> = ready
            .survivors
            .iter()
            .flat_map(|one| std::iter::once(one.process.clone()).chain(table.descendants(one.process.pid)))
            .collect();
        for process in running(&self.world.catalog, record, &table) {
            if known.contains(&process) {
                continue;
            }
            let pane = servers.iter().find_map(|server| {
                let row = server.panes.iter().find(|row| {
                    row.pid.is_some_and(|pid| pid == process.pid || table.descendants(pid).contains(&process))
                })?;
                Some((PaneId(row.id.0), server.epoch.clone(), row.pid.and_then(process::identify)?))
            });
            ready.survivors.push(Survivor { pane, process, proven: true, attempt: false });
        }
        let old = crate::record::outlived(record, &self.world.system.facts()).cloned();
        if let Some(old) =
            old.filter(|old| !old.started.is_empty() && process::liveness(old) == Liveness::Alive)
            && !ready.survivors.iter().any(|one| one.process == old)
        {
            ready.survivors.push(Survivor { pane: None, process: old, proven: false, attempt: false });
        }
    }
}

impl Ready {
    /// Nothing could be found out.
    fn nothing(why: &str) -> Self {
        Self {
            argv: Err("no_record".to_owned()),
            session_id: None,
            binary: false,
            folder: (String::new(), false),
            conversation: Conversation::Unknown(why.to_owned()),
            filed: None,
            twin: None,
            survivors: Vec::new(),
            elsewhere: None,
            unknown: Some(why.to_owned()),
        }
    }
}

/// What the shared server of Codex has open only that server can go on with: then the agent is started on it, as it was.
/// The server, where the arguments that are kept ask for another one.
fn elsewhere(record: &Record, words: &mut Vec<String>) -> Option<ProcessId> {
    if record.agent_kind != shared::KIND {
        return None;
    }
    let mut environment = record.ait.env.clone().unwrap_or_default();
    if let Ok(home) = std::env::var("HOME") {
        environment.entry("HOME".to_owned()).or_insert(home);
    }
    let server = shared::holder(&shared::home(&environment)?, &record.codeagent_session_id)?;
    let kept: Vec<String> = words.iter().filter(|word| *word != shared::OWN).cloned().collect();
    if shared::has_own_server(&kept) {
        return Some(server);
    }
    *words = kept;
    None
}

/// The environment the provider's files are looked for with.
pub(super) fn environment(record: &Record) -> Environment {
    let recorded = record.ait.env.clone().unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_else(|| PathBuf::from("/"));
    Environment::recorded(&recorded).with_home(&home)
}

/// The conversation on disk, and the folder it is filed under where that is another than the record's.
pub(super) fn conversation(catalog: &Catalog, record: &Record) -> (Conversation, Option<String>) {
    let folder = exec::folder_of(record);
    let env = environment(record);
    match identity::locate(catalog, record, &folder, &env) {
        Located::Present { path, files_under_cwd, cwd, .. } => {
            let filed = cwd.filter(|_| !files_under_cwd).map(|cwd| cwd.to_string_lossy().into_owned());
            (Conversation::Present { path: path.to_string_lossy().into_owned() }, filed)
        }
        Located::Missing { why } => (Conversation::Missing(why.word().to_owned()), None),
        Located::Ambiguous { candidates } => {
            (Conversation::Unknown(format!("{} files say they are it", candidates.len())), None)
        }
        Located::Unknown { why } => (Conversation::Unknown(why.to_string()), None),
    }
}

/// Every process that is an agent of this conversation, the topmost of each family.
fn running(catalog: &Catalog, record: &Record, table: &Table) -> Vec<ProcessId> {
    if record.codeagent_session_id.is_empty() {
        return Vec::new();
    }
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let found: Vec<ProcessId> = table
        .rows()
        .iter()
        .filter(|row| !row.zombie && row.id.pid != own)
        .filter(|row| has_conversation(catalog, record, &row.id))
        .map(|row| row.id.clone())
        .collect();
    let below = |one: &ProcessId| {
        found.iter().any(|other| other != one && table.descendants(other.pid).contains(one))
    };
    found.iter().filter(|one| !below(one)).cloned().collect()
}

/// Whether a process is an agent of this record's kind with its conversation: by its arguments, or by the provider's own
/// files.
fn has_conversation(catalog: &Catalog, record: &Record, process: &ProcessId) -> bool {
    let kind = record.agent_kind.as_str();
    // the table is a moment old: a pid that was handed out again is another process
    let Some(facts) = process::facts(process.pid).filter(|facts| facts.id == *process) else { return false };
    // one that only prints an answer writes to its conversation all the same
    let agent = recognised(&facts, catalog).or_else(|| prints(&facts).map(Provider::name));
    if agent != Some(kind) {
        return false;
    }
    let id = record.codeagent_session_id.as_str();
    let by_arguments = || catalog.session_id(kind, &facts.argv).as_deref() == Some(id);
    match Provider::named(kind) {
        Some(Provider::Claude) => match history::registry(process, &environment(record)) {
            Some(entry) => entry.session_id == id,
            None => by_arguments(),
        },
        Some(Provider::Codex) => match history::opened_by(process.pid) {
            Some(opened) => opened == id,
            None => by_arguments(),
        },
        Some(_) | None => by_arguments(),
    }
}

/// The sockets a record's agent can be on: its own, and the one a bare `tmux` would use.
pub(in crate::lifecycle) fn sockets(record: &Record) -> Vec<PathBuf> {
    let own = record.ait.server.as_ref().map(|server| PathBuf::from(&server.socket));
    let mut sockets: Vec<PathBuf> = own.into_iter().collect();
    let default = default_socket();
    if !sockets.contains(&default) {
        sockets.push(default);
    }
    sockets
}

/// The socket a bare `tmux` uses: `$TMUX_TMPDIR` (else `/tmp`), `tmux-<uid>/default`.
fn default_socket() -> PathBuf {
    let base = std::env::var_os("TMUX_TMPDIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let uid = rustix::process::geteuid().as_raw();
    let folder = base.unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("tmux-{uid}"));
    folder.canonicalize().unwrap_or(folder).join("default")
}

/// Lists a server; `None` when nobody serves that socket.
async fn list(socket: &Path) -> Result<Option<Listed>, String> {
    let server = OneShot::new(socket).map_err(|error| error.to_string())?;
    let snapshot = match listing::snapshot(&server).await {
        Ok(snapshot) => snapshot,
        Err(ListError::Unanswered(Unanswered::NoServer { .. })) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let epoch = adopt::epoch(&server).await.map_err(|error| error.to_string())?;
    Ok(Some(Listed { epoch, panes: snapshot.panes }))
}
