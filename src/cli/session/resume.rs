//! `ait resume`: a stopped session's own conversation again, under the same id.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::address::Found;
use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::look::Status;
use super::view::View;
use super::{Given, begin, found, one_in, task, view_of};
use crate::cli::{Exit, Failure, block_on_any, print};
use crate::coordinator::{End, Outcome, Told};
use crate::lifecycle::host;
use crate::lifecycle::perform::World;
use crate::lifecycle::revive::{self, NotRevived};
use crate::provider::{Catalog, Recorded};
use crate::record::{Record, RecordId, State};
use crate::store::Store;

/// Bring a stopped session's own conversation back, under the same id; a running one stays as it is.
///
/// Never the latest conversation: the exact one that is recorded, or none. Words it ran with that would choose another one are not
/// given to it again.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  ait resume review\n  ait resume --task task.org")]
pub(crate) struct Args {
    /// The session: its id, a beginning of it, or its name; with --task its conversation's id, or a beginning of that
    #[arg(value_name = "ID", required_unless_present = "task")]
    session: Option<String>,
    /// The session that this task file (.org, .md) names; of several the one you choose
    #[arg(long, value_name = "FILE")]
    task: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("resume", &args.given, || resume(&args))
}

fn resume(args: &Args) -> Result<Answer, Trouble> {
    let (store, found) = meant(args)?;
    let view = view_of(&store, &found, &args.given)?;
    match view.status {
        Status::Running => return told("running already:", &view, Vec::new()),
        Status::Unknown if matches!(found.record.state, State::Restoring { .. }) => {
            return Err(busy("it is being started or restored").detail("id", view.id));
        }
        Status::Unknown => {
            let message = "it is not known whether it runs: its server does not answer";
            return Err(Trouble::new(Exit::FAILED, "session-status-unknown", message).detail("id", view.id));
        }
        Status::Stopped => {}
    }
    let world = begin::world(store)?;
    if !view.resumable {
        return Err(why_not(&world.catalog, &found.record).detail("id", view.id));
    }
    let id = found.record.id;
    let outcome = block_on_any(async {
        revive::revive(&world, id).await.map_err(trouble)?;
        restore(&world, id).await
    })??;
    let mut warnings = outcome.warnings.clone();
    match outcome.end {
        End::Done if outcome.word == "verified" => {}
        End::Done => warnings.push(format!("{}: {}", outcome.word, outcome.detail)),
        End::Refused if outcome.word == "lease_held" => return Err(busy(&outcome.detail)),
        // of two at once the other one was quicker
        End::Refused if outcome.word == "not_frozen" => {
            let view = one_in(&world.store, &id.to_string(), &args.given)?;
            return match view.status {
                Status::Running => told("running already:", &view, warnings),
                Status::Stopped | Status::Unknown => Err(busy(&words(&outcome))),
            };
        }
        End::Refused => return Err(not_resumable(&words(&outcome)).detail("id", view.id)),
        End::Failed if outcome.word == "session_mismatch" => return Err(not_resumable(&words(&outcome))),
        End::Planned | End::Failed | End::Left => {
            return Err(Trouble::new(Exit::FAILED, "command-failed", words(&outcome)));
        }
    }
    told("resumed", &one_in(&world.store, &id.to_string(), &args.given)?, warnings)
}

/// The session that is meant, by its name or by a task file.
fn meant(args: &Args) -> Result<(Store, Found), Trouble> {
    let word = args.session.as_deref();
    let Some(file) = &args.task else { return found(word.unwrap_or_default(), &args.given.here) };
    let store = Store::open(super::paths()?);
    let found = task::meant(file, word, &store, args.given.format)?;
    super::view::own_folder(store.paths(), &found)?;
    Ok((store, found))
}

/// The restore coordinator, in a process of its own as always.
async fn restore(world: &World, id: RecordId) -> Result<Outcome, Trouble> {
    let words = ["restore", "--mode", "resume"].map(Into::into).into_iter().chain([id.to_string().into()]);
    let mut hosted = host::spawn(&world.program, words).map_err(Failure::from)?;
    let mut last = None;
    while let Some(told) = hosted.next().await {
        if let Told::Outcome { outcome, .. } = told {
            last = Some(outcome);
        }
    }
    last.ok_or_else(|| Trouble::new(Exit::FAILED, "command-failed", "the coordinator ended without a word"))
}

fn told(done: &str, view: &View, warnings: Vec<String>) -> Result<Answer, Trouble> {
    let shown = |text: &str| print::shown(text.as_bytes());
    // the earlier command line tells both alike
    let done = if Face::ours() == Face::AgentSession { "resumed" } else { done };
    let mut text = format!("{done} {} session {}\n", shown(&view.agent), shown(&view.id));
    text.push_str(&format!("tmux: {}\nattach: {}\n", shown(&view.tmux_session), view.attach_command));
    let mut answer = Answer::new(view, text)?;
    answer.warnings = warnings;
    Ok(answer)
}

fn words(outcome: &Outcome) -> String {
    format!("{}: {}", outcome.word, outcome.detail)
}

/// Why the record names no conversation that could be brought back.
fn why_not(catalog: &Catalog, record: &Record) -> Trouble {
    let kind = record.agent_kind.as_str();
    let recorded = Recorded {
        argv: record.ait.argv.as_deref().unwrap_or_default(),
        bin: record.ait.agent_bin.as_deref().unwrap_or_default(),
    };
    if !catalog.kinds().any(|known| known == kind) {
        let message = format!("{kind:?} is no kind of agent that is known");
        return Trouble::new(Exit::BAD_DATA, "invalid-agent", message);
    }
    if let Some(other) = catalog.other_than(kind, recorded) {
        let message = format!("its conversation is said to be one of {kind}, and it ran as {other}");
        return Trouble::new(Exit::BAD_DATA, "session-provider-mismatch", message);
    }
    not_resumable("no exact conversation of it is known that could be brought back")
}

fn not_resumable(message: &str) -> Trouble {
    Trouble::new(Exit::BAD_DATA, "session-not-resumable", message)
}

fn busy(message: &str) -> Trouble {
    let trouble = Trouble::new(Exit::FAILED, "session-busy", message);
    trouble.hint(
        "try again in a moment; if whoever was at it was killed, a supervisor settles it (`ait supervise`), and after a minute \
         `ait delete` takes it away",
    )
}

fn trouble(why: NotRevived) -> Trouble {
    match why {
        NotRevived::Store(error) => error.into(),
        NotRevived::Busy(_) => busy(&why.to_string()),
        NotRevived::Nowhere(_) => Trouble::new(Exit::FAILED, "session-not-found", why.to_string()),
        NotRevived::Refused(_) | NotRevived::Left(_) => {
            Trouble::new(Exit::FAILED, "command-failed", why.to_string())
        }
    }
}
