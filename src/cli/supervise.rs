//! `ait supervise`: the supervisor, in the foreground or in a session of its own.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::config::{self, Config, Loaded};
use crate::driver::{self, Ended, Options};
use crate::process;
use crate::provider::Catalog;
use crate::record::Policy;
use crate::store::{Paths, Supervising, make_private};

use super::{Exit, Failure, program, sockets};

/// How long a detached supervisor may take to be ready.
const READY: Duration = Duration::from_secs(15);
/// A log past this size starts anew, in bytes.
const LOG: u64 = 1024 * 1024;

/// Watch every tmux server that has a record, and keep the records true.
///
/// One supervisor runs per store; a second start says which one does and exits 0. SIGTERM, SIGINT or SIGHUP ends it
/// cleanly: what it set on the servers is taken back, no agent and no server is touched.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A tmux socket to report on even when no record names it (repeatable)
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Go on in the background, in a session of its own, and return once it is ready
    #[arg(long)]
    detach: bool,
    /// What `--detach` starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let paths = Paths::from_env()?;
    let program = program::path()?;
    if args.detach {
        return detach(&paths, &program, &args.socket);
    }
    if args.detached {
        leave();
    }
    // what runs for us has nothing of whoever started us
    process::close_inherited();
    let sockets =
        args.socket.iter().map(|socket| std::path::absolute(socket).unwrap_or(socket.clone())).collect();
    let (config, trouble) = settings();
    let (catalog, refused) = catalog(&config);
    let default_socket = sockets::folder().join("default");
    let options =
        Options { paths, sockets, default_socket, program, config, catalog, settings: trouble.or(refused) };
    let ended = driver::run(options, |said| ready(said, args.detached));
    notify(sd_notify::NotifyState::Stopping);
    match ended {
        Ok(Ended::Cleanly) => {}
        Ok(Ended::AlreadyRuns(by)) => already(by.as_ref())?,
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::OK)
}

/// The user's settings, and why they are not those of the file. With a broken one agents are still kept, nothing is done that the
/// file may forbid, and nobody is told of anything.
fn settings() -> (Config, Option<String>) {
    match Config::load() {
        Ok(Loaded { config, warnings }) => {
            for warning in warnings {
                tracing::warn!("settings: {warning}");
            }
            (config, None)
        }
        Err(error) => {
            let trouble = format!("{error}; nothing is recovered by itself, and nobody is notified");
            tracing::error!("settings: {trouble}");
            let archive = config::Archive { keep: Duration::MAX };
            (Config { recover: Policy::Offer, archive, ..Config::default() }, Some(trouble))
        }
    }
}

/// The kinds of agents there are; where the user's own cannot be used, those that are built in.
fn catalog(config: &Config) -> (Catalog, Option<String>) {
    match config.catalog() {
        Ok(catalog) => (catalog, None),
        Err(refused) => {
            let trouble = format!("{refused}; no agent of your own is known");
            tracing::error!("settings: {trouble}");
            (Catalog::default().keeping(&config.env.keep), Some(trouble))
        }
    }
}

/// Out of the caller's session and folder: neither a closed terminal nor a mount to be taken away concerns us.
fn leave() {
    // already a leader of its own session when started by a service manager
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
}

fn ready(said: &Supervising, detached: bool) {
    notify(sd_notify::NotifyState::Ready);
    tracing::info!(pid = said.pid, socket = %said.socket.display(), "supervising");
    if detached {
        let mut out = std::io::stdout();
        // the parent may be gone; nobody else reads this
        let _ = writeln!(out, "ready {}", said.pid);
        let _ = out.flush();
        if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
        }
    }
}

/// Tells systemd, when it started us and asked to be told.
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager is not told");
    }
}

fn already(by: Option<&Supervising>) -> Result<(), Failure> {
    super::print::text(&match by {
        Some(by) => format!("already running: pid {} since {} ({})\n", by.pid, by.since, by.socket.display()),
        None => "already running: one is just starting\n".to_owned(),
    })
}

/// Starts it in the background and waits until it says that it is ready.
fn detach(paths: &Paths, program: &Path, sockets: &[PathBuf]) -> Result<Exit, Failure> {
    let log = paths.state.join("supervisor.log");
    let failed = |what: &str, error: std::io::Error| {
        Failure::new(Exit::UNAVAILABLE, format!("cannot {what} {}: {error}", log.display()))
    };
    make_private(&paths.state)?;
    if log.metadata().is_ok_and(|meta| meta.len() > LOG) {
        std::fs::rename(&log, log.with_extension("log.old")).map_err(|error| failed("put aside", error))?;
    }
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| failed("open", error))?;
    let mut command = Command::new(program);
    command.args(["supervise", "--detached"]);
    for socket in sockets {
        command.arg("--socket").arg(std::path::absolute(socket).unwrap_or_else(|_| socket.clone()));
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().map_err(|error| {
            Failure::new(Exit::UNAVAILABLE, format!("cannot start {}: {error}", program.display()))
        })?;
    let hint = format!("its log is {}", log.display());
    match first_line(&mut child) {
        Some(line) => match line.strip_prefix("ready ") {
            Some(pid) => super::print::text(&format!("supervising: pid {}\n", pid.trim()))?,
            None => super::print::text(&line)?,
        },
        None => {
            let status = child.try_wait().ok().flatten();
            let how =
                status.map_or("is not ready yet".to_owned(), |status| format!("ended early ({status})"));
            return Err(Failure::new(Exit::UNAVAILABLE, format!("the supervisor {how}")).hint(hint));
        }
    }
    Ok(Exit::OK)
}

/// The first line the child says, if it says one in time; `None` at its end without one.
fn first_line(child: &mut Child) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout.take(4096)).read_line(&mut line);
        // nobody waits any more when it took too long
        let _ = tell.send(read.is_ok_and(|got| got > 0).then_some(line));
    });
    told.recv_timeout(READY).ok().flatten()
}
