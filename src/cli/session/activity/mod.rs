//! `ait activity`: what is known of an agent's turn, told and asked by programs.

mod doctor;
mod event;
mod setup;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::json;

use super::address::Found;
use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::view::{id_of, now};
use super::{Meant, turn_state};
use crate::cli::{Exit, Failure, print};
use crate::client;
use crate::store::turns;
use crate::turn::View;

/// Tell what an agent is at, and ask.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  ait activity status review --format json\n  \
                        ait activity event review --stdin < event.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Event(event::Args),
    Status(StatusArgs),
    Doctor(doctor::Args),
    Setup(setup::Args),
}

/// Show what is written of a session's turn; unknown where nothing is, or nothing that can be read or still holds.
#[derive(Debug, ClapArgs)]
struct StatusArgs {
    #[command(flatten)]
    one: Meant,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    match args.action {
        Action::Event(args) => event::run(&args),
        Action::Doctor(args) => doctor::run(&args),
        Action::Setup(args) => setup::run(&args),
        Action::Status(args) => envelope::say("activity-status", &args.one.given, || {
            let (store, found) = args.one.found()?;
            let view = match found.archived {
                Some(_) => View::unknown(),
                None => {
                    let turns = turns::of(store.paths(), &turns::Whose::of(&found.record));
                    client::view(&store.paths().files(), found.record.id, turns, now())
                }
            };
            answer(&found, &view, false)
        }),
    }
}

/// The answer of both.
fn answer(found: &Found, view: &View, duplicate: bool) -> Result<Answer, Trouble> {
    let record = &found.record;
    let at = found.archived.as_ref().map(|(at, _)| *at).or(record.state_at).or(record.started_at);
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    let id = id_of(Face::ours(), record);
    let data = json!({
        "id": id,
        "turn_state": turn_state::told(view, &record.agent_kind, &at),
        "duplicate": duplicate,
    });
    Answer::new(
        data,
        format!("{}  {}  {}\n", print::shown(id.as_bytes()), view.shown_state(), view.shown_source()),
    )
}
