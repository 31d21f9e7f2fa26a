//! Starting the supervisor now, and ending it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::cli::{Exit, Failure};
use crate::client::{self, Client, Found};
use crate::process::{Opened, ProcessId, Watch};
use crate::store::{Paths, Supervising};

/// How long a start and an end may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// Whether a supervisor runs on this store.
pub(super) fn is_up() -> Result<bool, Failure> {
    Ok(matches!(client::find(&Paths::from_env()?.files())?, Found::Running(_)))
}

/// Starts `program supervise --detach`, which leaves a running one alone, and gives the pid of the one that runs. One of
/// another version is ended first.
pub(super) async fn now(program: &Path) -> Result<i32, Failure> {
    let files = Paths::from_env()?.files();
    if let Found::Running(Some(said)) = client::find(&files)?
        && said.version != env!("CARGO_PKG_VERSION")
    {
        end(&said).await?;
    }
    let mut command = tokio::process::Command::new(program);
    command.args(["supervise", "--detach"]).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let started = tokio::time::timeout(DEADLINE, command.status()).await;
    let failed = |why: String| {
        Failure::new(Exit::UNAVAILABLE, format!("the supervisor did not start: {why}"))
            .hint("`ait supervise` runs it in the foreground and shows what is wrong")
    };
    match started {
        Err(_) => return Err(failed(format!("no end of its start within {} s", DEADLINE.as_secs()))),
        Ok(Err(wrong)) => return Err(failed(wrong.to_string())),
        Ok(Ok(status)) if !status.success() => return Err(failed(status.to_string())),
        Ok(Ok(_)) => {}
    }
    match client::find(&files)? {
        Found::Running(Some(said)) => Ok(said.pid),
        Found::Running(None) | Found::Nobody(_) => Err(failed("it does not hold its lock".to_owned())),
    }
}

/// Ends the supervisor of this store, if one runs, and waits until it has ended.
pub(super) async fn stop() -> Result<(), Failure> {
    match client::find(&Paths::from_env()?.files())? {
        Found::Nobody(_) => Ok(()),
        Found::Running(Some(said)) => end(&said).await,
        Found::Running(None) => {
            Err(Failure::new(Exit::UNAVAILABLE, "the supervisor is just starting").hint("run it again"))
        }
    }
}

async fn end(said: &Supervising) -> Result<(), Failure> {
    let id = ProcessId { pid: said.pid, started: said.started.clone() };
    let watch = match Watch::open(&id)? {
        Opened::Watching(watch) => watch,
        Opened::Gone => return Ok(()),
    };
    if let Err(silent) = Client::connect(said).and_then(|mut client| client.stop()) {
        tracing::info!("{silent}; sending SIGTERM");
        client::terminate(said)?;
    }
    match tokio::time::timeout(DEADLINE, watch.died()).await {
        Ok(died) => Ok(died?),
        Err(_) => Err(Failure::new(
            Exit::UNAVAILABLE,
            format!("the supervisor (pid {}) did not end within {} s", said.pid, DEADLINE.as_secs()),
        )),
    }
}
