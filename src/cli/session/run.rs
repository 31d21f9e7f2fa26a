//! `ait run`: one prompt to its end, its exit status kept, its output in a log.

use std::path::Path;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::begin::Begin;
use super::envelope::{self, Answer, Trouble};
use super::start::{begin as begin_one, started};
use super::{Given, found, one};
use crate::cli::{Exit, Failure, block_on_any};
use crate::process::{Opened, Watch};
use crate::record::{Mode, RecordId};

/// Run one prompt to its end, in a window of its project: its output is in a log, its exit status is kept.
///
/// The prompt is piped to the agent and stands in no command line. Without --wait it returns as soon as it was launched.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  ait run --agent claude --prompt-file task.md --wait\n  \
                        echo 'Update the changelog' | ait run --agent codex --prompt-stdin --id nightly\n\n\
                        Exit codes: 0 launched, or with --wait ended well; 1 it failed; 13 the time is up and it runs on.")]
pub(crate) struct Args {
    #[command(flatten)]
    begin: Begin,
    /// Wait for its end, and print its log
    #[arg(long)]
    wait: bool,
    /// Wait at most so many seconds
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    timeout: Option<u64>,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("run", &args.given, || run_one(&args))
}

fn run_one(args: &Args) -> Result<Answer, Trouble> {
    let (id, warnings) = begin_one(&args.begin, &args.given, Mode::Run)?;
    if !args.wait {
        return started(id, &args.given, warnings);
    }
    let in_time = wait(id, args.timeout.map(Duration::from_secs))?;
    let view = one(&id.to_string(), &args.given)?;
    let status = found(&id.to_string())?.1.record.ait.session.as_ref().and_then(|session| session.exit);
    let log = view.log_file.as_deref().map(Path::new).and_then(|log| std::fs::read(log).ok());
    let mut answer = Answer::new(&view, String::from_utf8_lossy(&log.unwrap_or_default()))?;
    answer.warnings = warnings;
    answer.exit = match (in_time, status) {
        (false, _) => Exit::NOT_IN_TIME,
        (true, Some(0)) => Exit::OK,
        (true, Some(_) | None) => Exit::FAILED,
    };
    Ok(answer)
}

/// Waits for its process to end; whether it did in time.
fn wait(id: RecordId, span: Option<Duration>) -> Result<bool, Trouble> {
    let found = match found(&id.to_string()) {
        Ok((_, found)) => found,
        // so quick that it is on its way to the archive
        Err(_) => return Ok(true),
    };
    let Some(process) = found.record.location.process().filter(|_| found.archived.is_none()) else {
        return Ok(true);
    };
    block_on_any(async {
        match Watch::open(process).map_err(Failure::from)? {
            Opened::Gone => Ok(true),
            Opened::Watching(watch) => match span {
                Some(span) => match tokio::time::timeout(span, watch.died()).await {
                    Ok(died) => died.map(|()| true).map_err(|why| Failure::from(why).into()),
                    Err(_) => Ok(false),
                },
                None => watch.died().await.map(|()| true).map_err(|why| Failure::from(why).into()),
            },
        }
    })?
}
