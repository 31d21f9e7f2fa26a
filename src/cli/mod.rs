//! The command line: arguments in, text or JSON out, one file per command.
//!
//! A command file says what it takes (`Args`), does it (`run`), and gives an [`Exit`] or a [`Failure`]. Nothing here
//! decides anything about records, and no command prints its own errors: `failure` is the one place where an error
//! becomes a message, a hint and an exit code.
//!
//! To add a command: a file with `pub(super) struct Args` and `pub(super) fn run(args: Args) -> Result<Exit, Failure>`,
//! one variant here, one arm in `Command::run`. The comment of its `Args` is its help: the first line in the list, the
//! whole of it in `ait COMMAND --help`.

mod adopt;
mod ask;
mod completions;
mod coordinate;
mod demo;
mod demo_agent;
mod discover;
mod doctor;
mod drop;
mod exec;
mod failure;
mod freeze;
mod frozenagent;
mod hold;
mod hook;
mod man;
mod print;
mod program;
mod progress;
mod record;
mod recover;
mod restore;
mod session;
mod settings;
mod setup;
mod sockets;
mod status;
mod store;
mod supervise;
mod table;
mod tap;
mod targets;
mod tell;
mod tether;
mod turned;

use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use failure::{Exit, Failure};

/// What `--version` prints besides the version: what it was built for, and which format of the record file it writes.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let (build, arch, os) = (
        if cfg!(debug_assertions) { "debug" } else { "release" },
        std::env::consts::ARCH,
        std::env::consts::OS,
    );
    let (version, format) = (env!("CARGO_PKG_VERSION"), crate::record::VERSION);
    format!("{version}\nbuild: {build}, {arch} {os}\nrecord file: format {format}")
});

/// Keeps every coding agent on this machine alive across everything that happens to tmux.
#[derive(Debug, Parser)]
#[command(
    name = "ait",
    version,
    long_version = LONG_VERSION.as_str(),
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Environment:\n  AIT_LOG    what to log to standard error, for example `info` or `ait=debug`\n\n\
                  Exit codes: 0 done, 1 failed, 64 usage, 65 bad data, 69 unavailable, 70 internal.\n\
                  `ait status`, `ait doctor` and `ait record` have more; their help says which."
)]
struct Ait {
    #[command(subcommand)]
    command: Command,
}

/// What `ait` can be told to do.
#[derive(Debug, Subcommand)]
enum Command {
    Setup(setup::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Adopt(adopt::Args),
    Freeze(freeze::Args),
    Restore(restore::Args),
    Recover(recover::Args),
    Drop(drop::Args),
    Start(session::start::Args),
    Run(session::run::Args),
    List(session::list::Args),
    Show(session::show::Args),
    Explain(session::explain::Args),
    Activity(session::activity::Args),
    #[command(name = "command")]
    Attaching(session::command::Args),
    Resume(session::resume::Args),
    Glance(session::glance::Args),
    Logs(session::logs::Args),
    Attach(session::attach::Args),
    Send(session::send::Args),
    Wait(session::wait::Args),
    Delete(session::delete::Args),
    Task(session::task::Args),
    Discover(discover::Args),
    Frozenagent(frozenagent::Args),
    /// Show the main job on a private tmux server; leaves nothing behind
    Demo(demo::Args),
    /// A stand-in agent for `ait demo` and the tests
    #[command(hide = true)]
    DemoAgent(demo_agent::Args),
    #[command(alias = "completion")]
    Completions(completions::Args),
    Man(man::Args),
    /// One verb on the record store; exit codes: 0 ok, 2 usage, 3 lock busy, 4 corrupt store or no such record,
    /// 5 refused, 6 nonce mismatch, 7 session mismatch, 8 lease held
    Record(record::Args),
    /// Where the record store lies, whether it is well, and repair
    Store(store::Args),
    #[command(hide = true)]
    Exec(exec::Args),
    #[command(hide = true)]
    Runner(session::runner::Args),
    /// An operation of several steps, in a session of its own
    #[command(hide = true)]
    Coordinate(coordinate::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    /// The pane of the hidden session `_ait`
    #[command(hide = true)]
    Hold(hold::Args),
    Supervise(supervise::Args),
    /// Write a line to terminals
    #[command(hide = true)]
    Tell(tell::Args),
    #[command(hide = true)]
    Tap(tap::Args),
    /// Become the control client of a supervisor
    #[command(hide = true)]
    Tether(tether::Args),
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Setup(args) => setup::run(args),
            Self::Status(args) => status::run(args),
            Self::Doctor(args) => doctor::run(args),
            Self::Adopt(args) => adopt::run(args),
            Self::Freeze(args) => freeze::run(args),
            Self::Restore(args) => restore::run(args),
            Self::Recover(args) => recover::run(args),
            Self::Drop(args) => drop::run(args),
            Self::Start(args) => session::start::run(args),
            Self::Run(args) => session::run::run(args),
            Self::Runner(args) => session::runner::run(args),
            Self::Resume(args) => session::resume::run(args),
            Self::List(args) => session::list::run(args),
            Self::Show(args) => session::show::run(args),
            Self::Explain(args) => session::explain::run(args),
            Self::Activity(args) => session::activity::run(args),
            Self::Attaching(args) => session::command::run(args),
            Self::Glance(args) => session::glance::run(args),
            Self::Logs(args) => session::logs::run(args),
            Self::Attach(args) => session::attach::run(args),
            Self::Send(args) => session::send::run(args),
            Self::Wait(args) => session::wait::run(args),
            Self::Delete(args) => session::delete::run(args),
            Self::Task(args) => session::task::run(args),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
            Self::Coordinate(args) => coordinate::run(args),
            Self::Discover(args) => discover::run(args),
            Self::Frozenagent(args) => frozenagent::run(args),
            Self::Demo(args) => demo::run(args),
            Self::DemoAgent(args) => demo_agent::run(args),
            Self::Exec(args) => exec::run(args),
            Self::Hold(args) => hold::run(args),
            Self::Hook(args) => hook::run(args),
            Self::Supervise(args) => supervise::run(args),
            Self::Record(args) => record::run(args),
            Self::Store(args) => store::run(args),
            Self::Tell(args) => tell::run(args),
            Self::Tap(args) => tap::run(args),
            Self::Tether(args) => tether::run(args),
        }
    }
}

/// Runs the command the arguments name and gives the process's exit code.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(called) = demo_agent::called_as_provider(&arguments) {
        return match demo_agent::run_as(called) {
            Ok(exit) => exit.into(),
            Err(failure) => failure.report().into(),
        };
    }
    if let Some(heard) = hook::heard(&arguments) {
        if let Some(args) = heard {
            // nothing of it reaches the agent that waits for it
            let _ = hook::run(args);
        }
        return Exit::OK.into();
    }
    let face = session::face::Face::ours();
    let arguments = face.arranged(&arguments);
    let parsed = match parse(face, &arguments) {
        Ok(parsed) => parsed,
        Err(wrong) => return refuse(&wrong, &arguments).into(),
    };
    // a log has no place on the page of a face
    if !matches!(parsed.command, Command::Frozenagent(_)) || !std::io::stderr().is_terminal() {
        log_to_stderr();
    }
    match parsed.command.run() {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}

/// Reads the words; called as `agent-session`, only that command line's commands are known.
fn parse(face: session::face::Face, arguments: &[OsString]) -> Result<Ait, clap::Error> {
    let mut command = face.dressed(Ait::command());
    if let Some(word) = arguments.get(1).filter(|word| !face.has(word)) {
        let message = format!("unrecognized subcommand '{}'", word.to_string_lossy());
        return Err(command.error(ErrorKind::InvalidSubcommand, message));
    }
    let matches = command.try_get_matches_from_mut(arguments)?;
    Ait::from_arg_matches(&matches)
}

/// Runs what waits for tmux, sockets and processes to its end.
fn block_on(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    block_on_any(work)?
}

/// The same for work that gives something else.
fn block_on_any<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(work))
}

/// What `tmux -V` prints. The binary is asked, no server.
async fn tmux_says(binary: &Path) -> Result<Vec<u8>, Failure> {
    let mut command = tokio::process::Command::new(binary);
    command.arg("-V").stdin(Stdio::null()).kill_on_drop(true);
    let shown = setup::diff::shown_path(binary);
    let failed = |why: String| Failure::new(Exit::UNAVAILABLE, format!("{shown} -V {why}"));
    match tokio::time::timeout(Duration::from_secs(5), command.output()).await {
        Err(_) => Err(failed("does not end".to_owned())),
        Ok(Err(wrong)) => Err(failed(format!("cannot be run: {wrong}"))),
        Ok(Ok(ended)) if !ended.status.success() => Err(failed(format!("ends with {}", ended.status))),
        Ok(Ok(ended)) => Ok(ended.stdout),
    }
}

/// Prints what clap has to say: help and version to standard output, everything else to standard error.
fn refuse(wrong: &clap::Error, arguments: &[OsString]) -> Exit {
    if let Some(said) = session::envelope::unparsed(wrong, arguments) {
        return said.unwrap_or_else(|failure| failure.report());
    }
    // a reader that went away (`ait --help | head -1`) is not an error
    let _ = wrong.print();
    match wrong.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::OK,
        // `ait record` keeps the exit codes of the format it shares: 2 is usage there
        _ if arguments.get(1).is_some_and(|first| first == "record") => Exit::RECORD_USAGE,
        _ if arguments.len() == 1 && session::face::Face::ours() == session::face::Face::AgentSession => {
            Exit::RECORD_USAGE
        }
        _ => Exit::USAGE,
    }
}

/// `AIT_LOG` names what is logged; unset, only what went wrong is.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("AIT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // a second start in one process (a test) keeps the first subscriber
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_every_command_are_well_formed() {
        Ait::command().debug_assert();
    }
}
