//! `ait discover`: the conversations that providers keep on disk.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use serde::Serialize;

use super::setup::diff::shown_path;
use super::table::columns;
use super::{Exit, Failure, print};
use crate::history::{self, Conversation, Discovered, Environment};
use crate::provider::Provider;

/// Characters of a title that are shown.
const TITLE: usize = 40;

/// List the conversations that providers keep on disk.
///
/// Strictly read only: nothing under a provider's home is created, changed or removed. The providers' own variables
/// (CLAUDE_CONFIG_DIR, CODEX_HOME, HERMES_HOME …) are taken from this shell.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait discover                      of this folder\n  ait discover --provider codex --all\n\n\
                  Exit codes: 0 all was read, 1 something could not be read (what was found is listed)."
)]
pub(super) struct Args {
    /// Only this provider's.
    #[arg(long, value_name = "NAME", value_parser = names())]
    provider: Option<String>,
    /// Of this folder instead of the one we are in.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    cwd: Option<PathBuf>,
    /// Of every folder.
    #[arg(long)]
    all: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(history::known().map(Provider::name))
}

#[derive(Serialize)]
struct Told {
    cwd: Option<String>,
    conversations: Vec<Line>,
    doubts: Vec<Doubt>,
}

#[derive(Serialize)]
struct Line {
    provider: &'static str,
    id: String,
    cwd: Option<String>,
    started: Option<String>,
    changed: Option<String>,
    file: String,
    title: Option<String>,
}

#[derive(Serialize)]
struct Doubt {
    word: &'static str,
    why: String,
}

/// Runs `ait discover`.
pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let cwd = if args.all { None } else { Some(folder(args.cwd)?) };
    let provider = args.provider.as_deref().and_then(Provider::named);
    let found = history::discover(provider, cwd.as_deref(), &Environment::ours());
    if args.json {
        print::json(&told(cwd.as_deref(), &found))?;
    } else {
        print::text(&words(cwd.as_deref(), &found.conversations))?;
    }
    let Some(first) = found.doubts.first() else { return Ok(Exit::OK) };
    let more = match found.doubts.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let failure = Failure::new(Exit::FAILED, print::shown(format!("{first}{more}").as_bytes()));
    Err(failure.hint("what lies there is not listed; `ait discover --json` names every such place"))
}

/// The folder, absolute; it need not be there any more.
fn folder(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir();
    match given {
        Some(given) if given.is_absolute() => Ok(given),
        Some(given) => Ok(here?.join(given).components().collect()),
        None => here.map_err(|wrong| {
            Failure::of(Exit::FAILED, &wrong).hint("--cwd names a folder, --all lists those of every folder")
        }),
    }
}

fn told(cwd: Option<&Path>, found: &Discovered) -> Told {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let time = |time: Option<Timestamp>| time.map(seconds);
    let line = |found: &Conversation| Line {
        provider: found.provider.name(),
        id: found.id.clone(),
        cwd: found.cwd.as_deref().map(path),
        started: time(found.started),
        changed: time(found.changed),
        file: path(&found.file),
        title: found.title.clone(),
    };
    Told {
        cwd: cwd.map(path),
        conversations: found.conversations.iter().map(line).collect(),
        doubts: found.doubts.iter().map(|why| Doubt { word: why.word(), why: why.to_string() }).collect(),
    }
}

fn words(cwd: Option<&Path>, found: &[Conversation]) -> String {
    if found.is_empty() {
        return match cwd {
            Some(cwd) => format!("no conversation of {}\n", shown_path(cwd)),
            None => "no conversation\n".to_owned(),
        };
    }
    let row = |found: &Conversation| {
        let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), seconds);
        let title: String = found.title.as_deref().unwrap_or("-").chars().take(TITLE).collect();
        vec![
            found.provider.name().to_owned(),
            print::shown(found.id.as_bytes()),
            time(found.started),
            time(found.changed),
            found.cwd.as_deref().map_or_else(|| "-".to_owned(), shown_path),
            print::shown(title.as_bytes()),
            shown_path(&found.file),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    columns(0, &["PROVIDER", "ID", "STARTED", "CHANGED", "FOLDER", "TITLE", "FILE"], &rows)
}

/// UTC, to the second.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
