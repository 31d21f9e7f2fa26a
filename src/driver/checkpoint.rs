//! Keeping the screen of a live agent, and hearing from the providers' hooks when it is worth it.

use std::path::PathBuf;

use tokio::sync::mpsc;

use super::scribe::Job;
use crate::record::RecordId;
use crate::supervisor::Input;
use crate::tmux::guarded::{Epoch, Guard, PaneOption, capture};
use crate::tmux::{OneShot, Unanswered};

/// Lines of history a checkpoint holds above the screen.
const LINES: u32 = 2000;
/// The longest checkpoint, in bytes; a longer one is taken again without its history.
const LONGEST: usize = 1024 * 1024;

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
