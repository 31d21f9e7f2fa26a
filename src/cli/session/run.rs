//! `ait run`: one prompt to its end, its exit status kept, its output in a log.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::begin::Begin;
use super::envelope::{self, Answer, Trouble};
use super::start::{Begun, begin as begin_one, started};
use super::{Format, Given, Here, found_in, view_of};
use crate::cli::{Exit, Failure, block_on_any, freeze, print};
use crate::lifecycle::perform::{StopBy, Stops};
use crate::process::{Opened, Watch};
use crate::record::{Mode, RecordId};
use crate::store::{Store, turns};
use crate::watch::Watcher;

/// Run one prompt to its end, in a window of its project: its output is in a log, its exit status is kept.
///
/// The prompt is piped to the agent and stands in no command line. Without --wait it returns as soon as it was launched.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  ait run --agent claude --prompt-file task.md --wait\n  \
                        echo 'Update the changelog' | ait run --agent codex --prompt-stdin --id nightly\n\n\
                        Exit codes: 0 launched, or with --wait ended well; 1 it failed; 13 the time is up and it runs on. Told to end, \
                        --wait leaves it running.")]
pub(crate) struct Args {
    #[command(flatten)]
    begin: Begin,
    /// Wait for its end; its log is printed as it grows
    #[arg(long)]
    wait: bool,
    /// Wait so long at most: 90, 90s, 10m, 2h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = freeze::span)]
    timeout: Option<Duration>,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("run", &args.given, || run_one(&args))
}

fn run_one(args: &Args) -> Result<Answer, Trouble> {
    let begun = begin_one(&args.begin, &args.given, Mode::Run)?;
    if !args.wait {
        return started(begun, &args.given);
    }
    let Begun { store, record: id, warnings, mut stops } = begun;
    let mut log = match args.given.format {
        Format::Text => Some(Log { path: turns::folder(store.paths(), id).join("output.log"), open: None }),
        Format::Json => None,
    };
    let waited = wait(&store, id, &args.given.here, args.timeout, log.as_mut(), &mut stops)?;
    if let Some(log) = &mut log {
        log.pass_on()?;
    }
    let found = found_in(&store, &id.to_string(), &args.given.here)?;
    let view = view_of(&store, &found, &args.given)?;
    let status = found.record.ait.session.as_ref().and_then(|session| session.exit);
    let mut answer = Answer::new(&view, "")?;
    answer.warnings = warnings;
    let (exit, why) = match (waited, status) {
        (Waited::Late, _) => {
            (Exit::NOT_IN_TIME, Some(format!("session {} runs on: the time is up", view.id)))
        }
        (Waited::Told(exit), _) => {
            (exit, Some(format!("session {} runs on; it is waited for no longer", view.id)))
        }
        (Waited::Ended, Some(0)) => (Exit::OK, None),
        (Waited::Ended, Some(status)) => {
            (Exit::FAILED, Some(format!("its agent ended with exit status {status}")))
        }
        (Waited::Ended, None) => (Exit::FAILED, Some("how its agent ended is not known".to_owned())),
    };
    answer.exit = exit;
    answer.warnings.extend(why);
    Ok(answer)
}

/// The log of a run, passed on to standard output as it grows.
struct Log {
    path: PathBuf,
    open: Option<File>,
}

impl Log {
    /// Passes on what came since.
    fn pass_on(&mut self) -> Result<(), Failure> {
        if self.open.is_none() {
            // before its first word there is none
            self.open = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.open else { return Ok(()) };
        let mut piece = Vec::new();
        file.read_to_end(&mut piece)?;
        if piece.is_empty() { Ok(()) } else { print::bytes(&piece) }
    }
}

/// How a wait was over.
#[derive(Debug, Clone, Copy)]
enum Waited {
    /// The run has ended.
    Ended,
    /// The time is up.
    Late,
    /// This process was told to end, as a shell shows it; the run goes on.
    Told(Exit),
}

/// Waits for its process to end, passing its log on meanwhile.
fn wait(
    store: &Store,
    id: RecordId,
    here: &Here,
    span: Option<Duration>,
    log: Option<&mut Log>,
    stops: &mut Stops,
) -> Result<Waited, Trouble> {
    let found = match found_in(store, &id.to_string(), here) {
        Ok(found) => found,
        // so quick that it is on its way to the archive
        Err(_) => return Ok(Waited::Ended),
    };
    let Some(process) = found.record.location.process().filter(|_| found.archived.is_none()) else {
        return Ok(Waited::Ended);
    };
    block_on_any(async {
        let watch = match Watch::open(process).map_err(Failure::from)? {
            Opened::Gone => return Ok(Waited::Ended),
            Opened::Watching(watch) => watch,
        };
        let over = async {
            tokio::select! {
                biased;
                ended = ended(&watch, log) => ended.map(|()| Waited::Ended),
                by = stops.any() => Ok(Waited::Told(match by {
                    StopBy::Interrupt => Exit::code(130),
                    StopBy::Terminate => Exit::code(143),
                })),
            }
        };
        let over = match span {
            Some(span) => tokio::time::timeout(span, over).await.unwrap_or(Ok(Waited::Late)),
            None => over.await,
        };
        over.map_err(Trouble::from)
    })?
}

async fn ended(watch: &Watch, mut log: Option<&mut Log>) -> Result<(), Failure> {
    let mut grows = match log.as_ref().and_then(|log| log.path.parent()) {
        None => None,
        Some(folder) => {
            let mut watcher = Watcher::of_writes()?;
            watcher.add(folder)?;
            Some(watcher)
        }
    };
    loop {
        if let Some(log) = &mut log {
            log.pass_on()?;
        }
        let grown = async {
            match &mut grows {
                Some(watcher) => drop(watcher.next().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            died = watch.died() => return Ok(died?),
            () = grown => {}
        }
    }
}
