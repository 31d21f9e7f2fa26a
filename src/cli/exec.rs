//! `ait exec`: becomes an agent, with the surroundings its record keeps. What stands in a pane's command line when an agent
//! is brought back.
//!
//! The process stays: the agent has this process's pid, except below a shell, where this process waits and becomes the
//! shell when the agent has ended.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use clap::Args as ClapArgs;

use super::{Exit, Failure, block_on, settings};
use crate::lifecycle::exec::{self, NotStarted};
use crate::lifecycle::{below_shell, launch};
use crate::record::{Nonce, Record, RecordId};
use crate::store::{Paths, Store};
use crate::tmux;

/// The restore it was meant for is over.
const SUPERSEDED: Exit = Exit::code(121);
/// The pane cannot be marked as that of the restore.
const UNMARKED: Exit = Exit::code(122);
/// The recorded folder is gone.
const NO_FOLDER: Exit = Exit::code(125);
/// The program cannot be started.
const NOT_RUN: Exit = Exit::code(126);
/// The program is nowhere.
const NO_BINARY: Exit = Exit::code(127);

/// Become the agent of a record, with its recorded environment and folder.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes, when no agent was started: 121 the restore is over, 122 the pane cannot be marked,\n\
                  125 its folder is gone, 126 its program cannot be run, 127 its program is nowhere."
)]
pub(super) struct Args {
    /// The record
    #[arg(long, value_name = "ID")]
    record: RecordId,
    /// The token of the restore this is; nothing is started once that is over
    #[arg(long, value_name = "N")]
    nonce: Option<Nonce>,
    /// Mark the pane as that of the restore first
    #[arg(long, requires = "nonce")]
    mark: bool,
    /// The tmux to mark it with; the one on PATH unless given
    #[arg(long, value_name = "PATH")]
    tmux_bin: Option<OsString>,
    /// Stay as the agent's parent, and become the recorded shell when it has ended
    #[arg(long, conflicts_with = "front")]
    below_shell: bool,
    /// Take the terminal before becoming the agent
    #[arg(long)]
    front: bool,
    /// The agent's program by its name, and its arguments
    #[arg(last = true, required = true, num_args = 1..)]
    words: Vec<OsString>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    if let Some(program) = &args.tmux_bin {
        tmux::choose(program);
    }
    if args.mark
        && let Some(nonce) = args.nonce
    {
        mark(args.record, nonce)?;
    }
    let catalog = settings::catalog()?;
    let here: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
    let record = read(args.record)?;
    let mut agent = exec::prepare(&catalog, &record, args.nonce, &args.words, &here).map_err(refused)?;
    if !args.below_shell {
        if args.front {
            below_shell::come_to_front()?;
        }
        return Err(cannot(&args.words, &agent.exec()));
    }
    // once more this program, in a group of its own: it takes the terminal itself before it becomes the agent
    let own = std::env::current_exe().map_err(|wrong| Failure::of(Exit::INTERNAL, &wrong))?;
    let mut again = Command::new(own);
    again.args([OsStr::new("exec"), OsStr::new("--record"), OsStr::new(&args.record.to_string())]);
    if let Some(nonce) = args.nonce {
        again.arg("--nonce").arg(nonce.to_string());
    }
    again.args(["--front", "--"]).args(&args.words);
    let shell = exec::shell_behind(&catalog, &record, &here);
    below_shell::host(&mut again, shell).map(Exit::code).map_err(|wrong| cannot(&args.words, &wrong))
}

fn read(id: RecordId) -> Result<Arc<Record>, Failure> {
    let snapshot = Store::open(Paths::from_env()?).read()?;
    snapshot.records.get(id).cloned().ok_or_else(|| Failure::new(SUPERSEDED, format!("no such record: {id}")))
}

/// Nothing may run in a pane that nobody could find again.
fn mark(record: RecordId, nonce: Nonce) -> Result<(), Failure> {
    block_on(async move {
        let marked = launch::mark_own_pane(record, nonce).await;
        marked.map(|()| Exit::OK).map_err(|why| Failure::new(UNMARKED, why))
    })
    .map(drop)
}

fn refused(error: NotStarted) -> Failure {
    let exit = match &error {
        NotStarted::Superseded(_) => SUPERSEDED,
        NotStarted::NoBinary { .. } => NO_BINARY,
        NotStarted::NoFolder { .. } => NO_FOLDER,
        NotStarted::NoProgram => Exit::USAGE,
    };
    Failure::of(exit, &error)
}

fn cannot(words: &[OsString], wrong: &std::io::Error) -> Failure {
    let name = words.first().map(|name| name.display().to_string()).unwrap_or_default();
    Failure::new(NOT_RUN, format!("cannot run {name}: {wrong}"))
}
