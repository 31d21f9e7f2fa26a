//! `ait logs`: what a session has said: a run's log, a conversation's pane, what was kept of either.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use clap::Args as ClapArgs;
use serde_json::json;

use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::look::Status;
use super::{Meant, screen, view_of};
use crate::cli::{Exit, Failure, block_on_any};
use crate::store::Paths;

/// The most of a log's end that is read, in bytes.
const READ: u64 = 16 * 1024 * 1024;

/// Print the end of what a session has said.
///
/// Of a run that is its log; of a conversation its pane with its history, or the last screen that was kept.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait logs nightly --tail 500")]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
    /// How many lines, at most 100000
    #[arg(long, value_name = "LINES", default_value_t = 120, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    tail: u32,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("logs", &args.one.given, || logs(&args))
}

fn logs(args: &Args) -> Result<Answer, Trouble> {
    let (store, found) = args.one.found()?;
    let view = view_of(&store, &found, &args.one.given)?;
    let lines = args.tail as usize;
    let log = view.log_file.as_ref().map(Path::new).filter(|log| log.exists());
    let kept = || kept_screen(store.paths(), &found);
    let (source, text) = match (log, view.status) {
        (Some(log), _) => ("file", end_of(log, lines)?),
        (None, Status::Running) => {
            let screen = block_on_any(screen::capture(&found, args.tail))??;
            // the earlier command line gives the whole screen below so many lines of its history
            let whole = Face::ours() == Face::AgentSession;
            ("tmux", if whole { screen } else { screen::last(&screen, lines) })
        }
        (None, Status::Stopped | Status::Unknown) => match kept() {
            Some(kept) => ("file", end_of(&kept, lines)?),
            None => {
                let message = "it is not running, and nothing of its screen was kept";
                return Err(Trouble::new(Exit::FAILED, "logs-unavailable", message));
            }
        },
    };
    Answer::new(json!({"id": view.id, "source": source, "text": text}), text.clone())
}

/// The plain text of its last screen, where it was frozen or lost.
fn kept_screen(paths: &Paths, found: &super::address::Found) -> Option<std::path::PathBuf> {
    let name = Path::new(&found.record.capture.txt).file_name()?;
    Some(paths.captures(found.record.id).join(name)).filter(|path| path.is_file())
}

/// The last lines of a file; what is no text in it is shown as such.
fn end_of(path: &Path, lines: usize) -> Result<String, Trouble> {
    let failed = |why: std::io::Error| {
        let message = format!("cannot read {}: {why}", path.display());
        Trouble::new(Exit::FAILED, "log-read-failed", message)
    };
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(READ))).map_err(failed)?;
    let mut text = Vec::new();
    file.take(READ).read_to_end(&mut text).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    Ok(all[all.len().saturating_sub(lines)..].concat())
}
