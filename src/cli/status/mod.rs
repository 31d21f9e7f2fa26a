//! `ait status`: what is under care, how that is known, and what needs you.
//!
//! With a supervisor it is the supervisor's view beside the store; without one the store alone, and it says so. `--watch`
//! draws anew at each change the supervisor tells of, never by a timer.

mod offer;
mod overview;
mod text;

use std::io::IsTerminal;

use clap::Args as ClapArgs;
use jiff::Timestamp;

use super::turned::Turned;
use super::{Exit, Failure, print};
use crate::client::{self, Client, ClientError, Found};
use crate::config::{Config, Loaded};
use crate::process;
use crate::record::{Liveness, Record, VERSION};
use crate::store::{self, Origin, Paths, Store, StoreError};
use crate::supervisor::recovery::Policies;
use offer::Offers;
use overview::{Health, Heard, Overview, Shown, Stored};

/// Clears a terminal and goes to its beginning.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Show the supervisor, the servers, the records, and what was lost, came back or needs you.
///
/// Without a supervisor it shows the store alone, and says so.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 healthy, 10 something needs a look, 11 no supervisor runs, 65 the store is corrupt."
)]
pub(super) struct Args {
    /// As JSON; with --watch one line of JSON per change.
    #[arg(long)]
    json: bool,
    /// Stay and show every change as it happens.
    #[arg(long, short = 'w')]
    watch: bool,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let paths = Paths::from_env()?;
    if args.watch { watch(&args, &paths) } else { once(&args, &paths) }
}

fn once(args: &Args, paths: &Paths) -> Result<Exit, Failure> {
    let overview = look(paths)?;
    if args.json {
        print::json(&overview)?
    } else {
        print::text(&text::text(&overview, Timestamp::now().into()))?
    }
    Ok(overview.health.exit())
}

fn watch(args: &Args, paths: &Paths) -> Result<Exit, Failure> {
    let running = match client::find(&paths.files())? {
        Found::Running(Some(said)) => said,
        Found::Running(None) | Found::Nobody(_) => return once(args, paths),
    };
    let mut changes = Client::connect(&running)?.watch()?;
    let clears = !args.json && std::io::stdout().is_terminal();
    loop {
        let ended = changes.wait().is_err();
        let overview = look(paths)?;
        if args.json {
            print::json_line(&overview)?;
        } else {
            let begin = if clears { CLEAR } else { "" };
            print::text(&format!("{begin}{}\n", text::text(&overview, Timestamp::now().into())))?;
        }
        if ended || overview.health == Health::NoSupervisor {
            return Ok(overview.health.exit());
        }
    }
}

fn look(paths: &Paths) -> Result<Overview, Failure> {
    let heard = hear(paths)?;
    let boot = process::boot_id().ok();
    let policies = Config::load()
        .ok()
        .map(|Loaded { config, .. }| Policies { servers: config.recover, agents: config.recover_agents });
    let offers = Offers { policies, book: Store::open(paths.clone()).book() };
    Ok(Overview::new(stored(paths)?, heard, &offers, &|record| alive(record, boot.as_deref())))
}

fn hear(paths: &Paths) -> Result<Heard, Failure> {
    let said = match client::find(&paths.files())? {
        Found::Running(Some(said)) => said,
        Found::Running(None) => return Ok(Heard::Silent { why: "it is starting".to_owned() }),
        Found::Nobody(None) => return Ok(Heard::Nobody { why: "none has run on this store".to_owned() }),
        Found::Nobody(Some(last)) => {
            let how = match last.stopped_at {
                Some(at) => format!("the last one (pid {}) ended at {at}", last.pid),
                None => format!("the last one (pid {}, since {}) did not end cleanly", last.pid, last.since),
            };
            return Ok(Heard::Nobody { why: how });
        }
    };
    let both = |mut client: Client| Ok((client.status()?, Turned::of(&mut client)?));
    match Client::connect(&said).and_then(both) {
        Ok((report, turned)) => Ok(Heard::Report(Box::new(report), turned)),
        Err(
            silent @ (ClientError::Socket { .. } | ClientError::NoAnswer { .. } | ClientError::Refused(_)),
        ) => Ok(Heard::Silent { why: format!("pid {}: {silent}", said.pid) }),
        Err(other) => Err(other.into()),
    }
}

/// The agent's own process; one of another boot is gone.
fn alive(record: &Record, here: Option<&str>) -> Liveness {
    let boot =
        record.ait.server.as_ref().map(|server| server.boot_id.as_str()).filter(|boot| !boot.is_empty());
    match (boot, here) {
        (Some(boot), Some(here)) if boot != here => Liveness::Gone,
        (Some(_) | None, _) => {
            record.agent_process().map_or(Liveness::Unknown, |agent| store::liveness(&agent))
        }
    }
}

/// The store as far as it can be read; corruption is shown, not failed on.
fn stored(paths: &Paths) -> Result<Stored, Failure> {
    let path = paths.files().store;
    let store = Store::open(paths.clone());
    let snapshot = match store.read() {
        Ok(snapshot) => snapshot,
        Err(corrupt @ StoreError::Corrupt { .. }) => {
            return Ok(Stored {
                path,
                records: None,
                shown: Shown::None,
                trouble: vec![corrupt.to_string()],
            });
        }
        Err(other) => return Err(other.into()),
    };
    let mut trouble = Vec::new();
    let shown = match &snapshot.origin {
        Origin::Store | Origin::Missing => Shown::File,
        Origin::Previous(fault) => {
            trouble.push(format!("corrupt: {fault}; `ait store repair` puts the last good generation back"));
            Shown::Previous
        }
    };
    for bad in &snapshot.bad {
        let id = bad.id.as_deref().unwrap_or("without an id");
        trouble.push(format!("record {id} on line {} is broken: {}", bad.line, bad.reason));
    }
    if snapshot.version > VERSION {
        trouble.push(format!(
            "format {} is newer than this program's {VERSION}: it is read, never written",
            snapshot.version
        ));
    }
    Ok(Stored { path, records: Some(snapshot.records.clone()), shown, trouble })
}
