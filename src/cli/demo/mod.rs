//! `ait demo`: the main job, live, on a private tmux server, judged as it goes.
//!
//! A stage is built in a temporary folder (tmux server, HOME, store, supervisor), a play of eight acts is given on it, and
//! the stage is struck: no process, socket or folder is left, also on Ctrl-C. A process of its own that only waits for the demo's
//! end strikes it where the demo was killed. Everything shown was seen from outside, in
//! the store file and on the supervisor's socket. With `--recover` another play is given: conversations that are frozen,
//! restored and recovered. Exit code 0 means that all of it was right.
//!
//! Refuses to touch any tmux server, store or supervisor but its own.

mod book;
mod eye;
mod play;
mod rescue;
mod show;
mod stage;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use tokio::signal::unix::{SignalKind, signal};

use self::play::Play;
use self::show::Show;
use self::stage::Stage;
use super::{Exit, Failure};

/// The longest the play may take before it is called off.
const CURTAIN: Duration = Duration::from_secs(50);

/// Shows the main job on a private tmux server and leaves nothing behind.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Show freeze, restore and recovery instead: conversations that outlive their agents
    #[arg(long)]
    recover: bool,
    /// Strike this stage once the demo on the other end of standard input is gone
    #[arg(long, hide = true, value_name = "FOLDER")]
    strike: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let Args { recover, strike } = args;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(root) = strike {
        return runtime.block_on(stage::strike_left(&root));
    }
    runtime.block_on(perform(recover))
}

/// Why a play ended before its last act.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("waited {} s for {what}; {instead}", .span.as_secs())]
    NotSeen { what: String, span: Duration, instead: String },
    #[error("{what}: expected {expected}, saw {seen}")]
    Seen { what: String, expected: String, seen: String },
    #[error("`{line}` failed: {told}")]
    Command { line: String, told: String },
    #[error("the supervisor ended early: {0}")]
    Supervisor(String),
    #[error("cannot speak to the supervisor: {0}")]
    Api(String),
    #[error("called off after {} s", CURTAIN.as_secs())]
    Late,
    #[error("interrupted")]
    Interrupted,
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
}

async fn perform(recover: bool) -> Result<Exit, Failure> {
    let mut show = Show::to_stdout();
    // handlers first: whatever is built from here on is also struck
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stage = Stage::build().map_err(|wrong| Failure::of(Exit::FAILED, &wrong))?;
    let played = tokio::select! {
        biased;
        _ = interrupt.recv() => Err(Wrong::Interrupted),
        _ = terminate.recv() => Err(Wrong::Interrupted),
        _ = hangup.recv() => Err(Wrong::Interrupted),
        () = tokio::time::sleep(CURTAIN) => Err(Wrong::Late),
        played = play(&mut stage, &mut show, recover) => played,
    };
    if let Err(wrong) = &played {
        // the reader may be what went away: the stage is struck all the same
        let _ = show.wrong(&wrong.to_string());
        if let Some(log) = stage.supervisor_log() {
            let _ = show.wrong(&format!("the supervisor said: {log}"));
        }
    }
    let struck = stage.strike().await;
    let clean = match &struck {
        Ok(took) => show.close(&format!(
            "struck in {} ms: supervisor, server, agents and folder are gone",
            took.as_millis()
        )),
        Err(left) => show.wrong(&format!("left behind: {left}")),
    };
    match (played, struck) {
        (Ok(acts), Ok(_)) => {
            clean?;
            show.close(&format!("all {acts} acts were seen right"))?;
            show.next(&format!("next: {} setup", stage::myself()))?;
            Ok(Exit::OK)
        }
        (Ok(_), Err(_)) | (Err(_), Ok(_) | Err(_)) => Ok(Exit::FAILED),
    }
}

async fn play(stage: &mut Stage, show: &mut Show, recover: bool) -> Result<usize, Wrong> {
    let mut play = Play::open(stage, show).await?;
    if recover {
        return rescue::play(play).await;
    }
    play.fleet().await?;
    play.rename().await?;
    play.crash_one().await?;
    play.split_and_close().await?;
    play.stop_server().await?;
    play.come_back("server_stopped").await?;
    play.kill_server().await?;
    play.come_back("server_crashed").await?;
    Ok(play.acts())
}
