//! `ait delete`: a session is ended and forgotten; done only once its pane is verified gone.

use clap::Args as ClapArgs;
use serde_json::json;

use super::address::Book;
use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::view::{folder_of, id_of};
use super::{Meant, begin, paths};
use crate::cli::{Exit, Failure, block_on_any, print};
use crate::lifecycle::perform::Stops;
use crate::lifecycle::remove::{self, NotRemoved};
use crate::process;
use crate::store::Store;

/// End a session's agent, whatever it is doing, and forget the session: record, prompt, log, activity.
///
/// It is done only once its pane is verified gone; else everything is kept. The conversation stays with its provider.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait delete review")]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("delete", &args.one.given, || delete(&args))
}

fn delete(args: &Args) -> Result<Answer, Trouble> {
    let world = begin::world(Store::open(paths()?))?;
    let scope = args.one.given.here.scope(world.store.paths())?;
    let found = Book::open(&world.store)?.seen_by(scope).find(&world.store, &args.one.session)?;
    let id = id_of(Face::ours(), &found.record);
    let removed = block_on_any(async {
        let mut stops = Stops::new().map_err(Failure::from)?;
        let me = process::me().map_err(Failure::from)?;
        remove::remove(&world, &me, &mut stops, found.record.id).await.map_err(trouble)
    })??;
    let data = json!({
        "id": id,
        "tmux_session": found.record.session,
        "killed": removed.killed,
        "deleted": true,
        "session_dir": folder_of(world.store.paths(), &found.record),
    });
    let killed = if removed.killed { "yes" } else { "no" };
    Answer::new(data, format!("deleted {} (tmux killed: {killed})\n", print::shown(id.as_bytes())))
}

fn trouble(why: NotRemoved) -> Trouble {
    match why {
        NotRemoved::Store(error) => error.into(),
        NotRemoved::Busy(_) => Trouble::new(Exit::FAILED, "session-busy", why.to_string()),
        NotRemoved::Folder(_) => Trouble::new(Exit::FAILED, "session-delete-failed", why.to_string()),
        NotRemoved::Unanswered(_)
        | NotRemoved::Process(_)
        | NotRemoved::StillThere(_)
        | NotRemoved::Unknown(_) => {
            Trouble::new(Exit::FAILED, "session-not-stopped", format!("{why}; the session is kept"))
        }
    }
}
