//! `ait wait`: until a session waits, asks, or has ended.

use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use serde_json::json;

use super::Meant;
use super::envelope::{self, Answer, Trouble};
use crate::cli::{Exit, Failure, block_on_any, freeze, print};
use crate::lifecycle::until::{self, NotWaited, Until, Waited};
use crate::record::{RecordId, State};
use crate::store::Store;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Wanted {
    /// It waits for the next prompt.
    Waiting,
    /// It asks for a permission or an answer.
    NeedsInput,
    /// It has ended.
    Exited,
}

impl Wanted {
    fn until(self) -> (Until, &'static str) {
        match self {
            Self::Waiting => (Until::Waiting, "waiting"),
            Self::NeedsInput => (Until::NeedsInput, "needs_input"),
            Self::Exited => (Until::Exited, "exited"),
        }
    }
}

/// Wait until a session waits for a prompt, asks for something, or has ended.
///
/// It sleeps until it is told: by the agent's hooks, its provider's own list, the supervisor, and the end of its process.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  ait send review --text 'Go on' --submit && ait wait review --until waiting --timeout 10m\n\n\
                        Exit codes: 0 it came, 13 not in time, 14 it cannot come: the session is gone."
)]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
    /// What to wait for
    #[arg(long, value_enum, value_name = "STATE")]
    until: Wanted,
    /// How long at most: 90, 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = freeze::span)]
    timeout: Option<Duration>,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("wait", &args.one.given, || waited(&args))
}

fn waited(args: &Args) -> Result<Answer, Trouble> {
    let (store, found) = args.one.found()?;
    let (until, word) = args.until.until();
    let waited = match (&found.archived, until) {
        (Some(_), Until::Exited) => Waited::Reached(None),
        (Some(_), Until::Waiting | Until::NeedsInput) => Waited::Gone,
        (None, _) => block_on_any(until::wait(&store, found.record.id, until, args.timeout))?.map_err(
            |why| match why {
                NotWaited::Store(why) => why.into(),
                other @ (NotWaited::Blind(_) | NotWaited::Process(_)) => {
                    Trouble::new(Exit::FAILED, "wait-failed", other.to_string())
                }
            },
        )?,
    };
    let (result, exit, view) = match waited {
        Waited::Reached(view) => ("reached", Exit::OK, view),
        Waited::Late(view) => ("timeout", Exit::NOT_IN_TIME, view),
        Waited::Gone => ("gone", Exit::SESSION_GONE, None),
    };
    let id = found.record.id.to_string();
    let state = view
        .as_ref()
        .map_or(if exit == Exit::NOT_IN_TIME { "unknown" } else { "exited" }, |view| view.state.word());
    let source = view.as_ref().map_or_else(|| "-".to_owned(), |view| view.shown_source());
    let line = match result {
        "reached" => format!("{} {state} ({source})\n", print::shown(id.as_bytes())),
        "timeout" => format!("{} not {word} in time: {state} ({source})\n", print::shown(id.as_bytes())),
        _ => format!("{} is gone{}\n", print::shown(id.as_bytes()), kept(&store, found.record.id)),
    };
    let data = json!({"id": id, "until": word, "result": result, "state": state, "source": source});
    Ok(Answer { exit, ..Answer::new(data, line)? })
}

/// What is left of one that is gone, and what brings it back.
fn kept(store: &Store, id: RecordId) -> &'static str {
    let frozen = store.read().is_ok_and(|snapshot| {
        snapshot.records.get(id).is_some_and(|record| matches!(record.state, State::Frozen { .. }))
    });
    if frozen { ": it is frozen; `ait restore` brings it back" } else { "" }
}
