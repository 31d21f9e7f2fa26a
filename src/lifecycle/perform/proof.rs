//! What shows of a launched agent: its pane, the provider's own files, its screen.

use std::path::PathBuf;

use bstr::ByteSlice;

use super::{Performer, ready};
use crate::coordinator::{Heard, Named, PaneNow, Proof};
use crate::history;
use crate::lifecycle::behind::recognised;
use crate::process::{self, ProcessId, Table};
use crate::provider::{Phase, Provider};
use crate::record::{Ack, Liveness, Location, Record};
use crate::tmux::OneShot;
use crate::tmux::Unanswered;
use crate::tmux::listing::{self, ListError};
use crate::watch::Watcher;
use crate::world::rows::PaneRow;

/// How often tmux is reminded of an end, a few milliseconds each: it may learn of one later than we do.
const REMINDERS: usize = 10;
/// How many of the last lines are told.
const LINES: usize = 5;

impl Performer<'_> {
    /// Hears of changes in the provider's lists of running agents and conversations. Without a watch the machine's own looks
    /// decide.
    pub(super) fn attend(&mut self) -> Heard {
        let Some(record) = &self.record else { return Heard::Touched };
        let folders = folders(record);
        if !folders.is_empty()
            && let Ok(mut watcher) = Watcher::new()
        {
            let watched = folders.iter().filter(|folder| watcher.add(folder).is_ok()).count();
            self.attended = (watched > 0).then_some(watcher);
        }
        Heard::Touched
    }

    pub(super) async fn prove(&mut self) -> Box<Proof> {
        let _ = self.read();
        let mut proof = Proof {
            pane: PaneNow::Unknown,
            named: Vec::new(),
            agent: None,
            dialog: None,
            up: false,
            lines: Vec::new(),
        };
        let Some(record) = self.record.clone() else { return Box::new(proof) };
        let Location::Pane { pane, process } = &record.location else { return Box::new(proof) };
        let table = Table::read().unwrap_or_default();
        let family: Vec<ProcessId> =
            std::iter::once(process.clone()).chain(table.descendants(process.pid)).collect();
        let kind = Provider::named(&record.agent_kind);
        proof.agent = family
            .iter()
            .find(|one| {
                process::facts(one.pid)
                    .is_some_and(|facts| recognised(&facts, &self.world.catalog) == Some(&record.agent_kind))
            })
            .cloned();
        proof.named = named(&record, kind, process, &family);
        if let Some((_, Ok(server))) = self.server() {
            let row = self.row(&server, pane.0, process).await;
            let text = match &row {
                Row::There(row) => screen(&server, pane.0, row.dead).await,
                Row::Ended | Row::Gone | Row::Unknown => String::new(),
            };
            proof.lines = last_lines(&text);
            proof.pane = match &row {
                Row::Unknown => PaneNow::Unknown,
                Row::Gone => PaneNow::Gone,
                Row::There(row) if row.dead => PaneNow::Dead { status: row.status, signal: row.signal },
                Row::There(row) if row.pid != Some(process.pid) => PaneNow::Gone,
                Row::Ended => PaneNow::Dead { status: None, signal: None },
                Row::There(_) => PaneNow::Runs,
            };
            if let Row::There(row) = &row
                && proof.pane == PaneNow::Runs
            {
                let sight = self.world.catalog.look(&record.agent_kind, &row.title.to_str_lossy(), &text);
                match sight.phase {
                    Phase::Dialog(what) => proof.dialog = Some(what.word().to_owned()),
                    Phase::Working | Phase::Asking | Phase::Ready => proof.up = true,
                    Phase::Unknown => {}
                }
            }
        }
        Box::new(proof)
    }

    /// The pane's row. One whose end has no status yet is asked again: tmux learns of an end a moment later than we do, and
    /// some builds only when another process of theirs ends. Whether its process is gone is looked at here and not again: one
    /// that ends after this look is found, with its status, by the next.
    async fn row(&self, server: &OneShot, pane: u32, process: &ProcessId) -> Row {
        let mut row = row(server, pane).await;
        for _ in 0..REMINDERS {
            let is_untold = match &row {
                Row::There(there) if there.dead => there.status.is_none() && there.signal.is_none(),
                Row::There(there) => is_over(there, process),
                Row::Ended | Row::Gone | Row::Unknown => false,
            };
            // not waited for: the same builds can lose the end of this process as well
            if !is_untold || server.run(["run-shell", "-b", "true"]).await.is_err() {
                return row;
            }
            row = self::row(server, pane).await;
        }
        match row {
            Row::There(there) if !there.dead && is_over(&there, process) => Row::Ended,
            row => row,
        }
    }
}

/// Whether the process is the pane's and gone, though the pane does not say so.
fn is_over(row: &PaneRow, process: &ProcessId) -> bool {
    row.pid == Some(process.pid) && process::liveness(process) == Liveness::Gone
}

enum Row {
    There(Box<PaneRow>),
    /// Its process is gone, and tmux does not hear of it.
    Ended,
    Gone,
    Unknown,
}

async fn row(server: &OneShot, pane: u32) -> Row {
    match listing::snapshot(server).await {
        Ok(snapshot) => snapshot
            .panes
            .into_iter()
            .find(|row| row.id.0 == pane)
            .map_or(Row::Gone, |row| Row::There(Box::new(row))),
        Err(ListError::Unanswered(Unanswered::NoServer { .. })) => Row::Gone,
        Err(_) => Row::Unknown,
    }
}

/// What a pane shows. Where it is dead tmux has moved it up by a line to say so: the first one is in the history, and it may be the
/// only one.
async fn screen(server: &OneShot, pane: u32, dead: bool) -> String {
    let pane = format!("%{pane}");
    let mut words = vec!["capture-pane", "-p", "-e", "-t", pane.as_str()];
    if dead {
        words.extend(["-J", "-S", "-1"]);
    }
    server.run(words).await.unwrap_or_default().to_str_lossy().into_owned()
}

/// The last lines with something on them, without escapes; tmux's own line about a dead pane is none of them.
fn last_lines(text: &str) -> Vec<String> {
    let plain = crate::store::plain_screen(text.as_bytes());
    let plain = plain.to_str_lossy();
    let told =
        plain.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Pane is dead"));
    let mut lines: Vec<String> = told.map(str::to_owned).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    lines
}

/// The session ids that the provider's own files name for the launched process or one below it.
fn named(record: &Record, kind: Option<Provider>, process: &ProcessId, family: &[ProcessId]) -> Vec<Named> {
    match kind {
        Some(Provider::Claude) => {
            let env = ready::environment(record);
            let entry = |one: &ProcessId| {
                let entry = history::registry(one, &env)?;
                Some(Named { session_id: entry.session_id, by: Ack::Registry, process: one.clone() })
            };
            family.iter().filter_map(entry).collect()
        }
        Some(Provider::Codex) => {
            let opened = history::opened_by(process.pid);
            opened
                .map(|session_id| Named { session_id, by: Ack::Rollout, process: process.clone() })
                .into_iter()
                .collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The folders in which a provider writes of its running agents.
fn folders(record: &Record) -> Vec<PathBuf> {
    let env = record.ait.env.clone().unwrap_or_default();
    let home = env.get("HOME").map(PathBuf::from).or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    let folder = |variable: &str, below: &str| {
        env.get(variable).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(below)))
    };
    match Provider::named(&record.agent_kind) {
        Some(Provider::Claude) => {
            folder("CLAUDE_CONFIG_DIR", ".claude").map(|at| at.join("sessions")).into_iter().collect()
        }
        Some(Provider::Codex) => {
            let transcript = PathBuf::from(&record.transcript_path).parent().map(PathBuf::from);
            let own = folder("CODEX_HOME", ".codex").map(|at| at.join("sessions"));
            transcript.filter(|at| !at.as_os_str().is_empty()).into_iter().chain(own).collect()
        }
        Some(_) | None => Vec::new(),
    }
}
