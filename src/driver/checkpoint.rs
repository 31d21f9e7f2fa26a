//! Keeping the screen of a live agent, and hearing from the providers' hooks when it is worth it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::sync::mpsc;

use super::Driver;
use super::scribe::Job;
use crate::record::RecordId;
use crate::store::turns;
use crate::supervisor::Input;
use crate::tmux::guarded::{Epoch, Guard, PaneOption, capture};
use crate::tmux::{OneShot, Unanswered};

/// Lines of history a checkpoint holds above the screen.
const LINES: u32 = 2000;
/// The longest checkpoint, in bytes; a longer one is taken again without its history.
const LONGEST: usize = 1024 * 1024;

impl Driver {
    /// Watches the folders of live records in which hooks tell of turns.
    pub(super) fn listen_for_turns(&mut self) {
        let there = |id: RecordId| Some(turns::folder(&self.paths, id)).filter(|folder| folder.is_dir());
        let wanted: BTreeSet<PathBuf> = self.supervisor.live().filter_map(there).collect();
        if wanted != self.turns {
            if let Err(error) = self.watcher.keep(&self.sessions, &wanted) {
                tracing::warn!(%error, "turns are not heard of");
            }
            let known = std::mem::replace(&mut self.turns, wanted);
            // what was told before anybody listened
            let new: Vec<RecordId> = self
                .supervisor
                .live()
                .filter(|id| {
                    let folder = turns::folder(&self.paths, *id);
                    self.turns.contains(&folder) && !known.contains(&folder)
                })
                .collect();
            new.into_iter().for_each(|record| self.hear_turn(record));
        }
    }

    /// Something of a record's own folder changed: the folder is new, or a turn was told.
    pub(super) fn session_touched(&mut self, path: &Path) {
        let Ok(below) = path.strip_prefix(&self.sessions) else { return };
        let mut names = below.iter();
        let id = names.next().and_then(|name| name.to_str()?.parse::<RecordId>().ok());
        let (Some(record), file) = (id, names.next()) else { return };
        match file {
            None => self.listen_for_turns(),
            Some(name) if name == "activity.json" => {}
            Some(_) => return,
        }
        self.hear_turn(record);
    }

    /// Tells what is written of a record's turn.
    fn hear_turn(&mut self, record: RecordId) {
        if let Ok(Some(turns)) = turns::read(&self.paths, record) {
            self.hear(Instant::now(), Input::Turned { record, turns: Box::new(turns) });
        }
    }
}

/// Captures the pane, if it carries the record's stamp, and hands what it shows to the writing thread; whatever comes of it,
/// the supervisor hears that it is over.
pub(super) fn keep(
    jobs: mpsc::Sender<Job>,
    socket: PathBuf,
    (pid, started_at): (i32, i64),
    pane: tmux_control::PaneId,
    record: RecordId,
) {
    tokio::spawn(async move {
        let guard = Guard::new(pane, Epoch { pid, started_at }).stamped(PaneOption::Record, record);
        let screen = match OneShot::new(socket) {
            Ok(server) => {
                let server = server.limit(LONGEST);
                match capture(&server, &guard, LINES).await {
                    Err(Unanswered::TooLong { .. }) => capture(&server, &guard, 0).await,
                    answer => answer,
                }
            }
            Err(error) => Err(error),
        };
        let screen = screen.unwrap_or_else(|error| {
            tracing::info!(%record, %error, "a checkpoint could not be taken");
            None
        });
        let then = Box::new(Input::Checkpointed { record });
        // the thread lives as long as we do
        let _ = jobs.send(Job::Checkpoint(record, screen, then)).await;
    });
}
