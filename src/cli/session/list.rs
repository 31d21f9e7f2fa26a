//! `ait list`: the sessions there are, at one look.

use clap::Args as ClapArgs;
use serde::{Serialize, Serializer};

use super::address::{Book, Found};
use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::look::Look;
use super::look::Status;
use super::turn_state;
use super::view::{Around, View, now};
use super::{Format, Given, paths};
use crate::cli::turned::{self, Turned};
use crate::cli::{Exit, Failure, block_on_any, print, settings};
use crate::store::{Paths, Store};
use crate::turn::{self, Moment};

/// List the sessions that were started here, running or stopped, the latest first.
///
/// One that ended or was lost stays listed as stopped until it is deleted. What its agent is at is what the supervisor knows,
/// with who says so and since when; without a supervisor, and where no signal came, it is unknown, `-`. What is broken in the
/// store is a warning, and the others are listed.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait list                   ID  AGENT  STATUS  TURN  FOLDER  NAME, one line per session\n  \
                        ait list --format json     as one object"
)]
pub(crate) struct Args {
    /// Every agent, however it came
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("list", &args.given, || list(&args))
}

fn list(args: &Args) -> Result<Answer, Trouble> {
    let host = args.given.here.host()?;
    let paths = paths()?;
    let store = Store::open(paths.clone());
    let book = Book::open(&store)?.seen_by(args.given.here.scope(&paths)?);
    let mut found = book.all(&store, args.all)?;
    let look = block_on_any(Look::at(found.iter().map(|found| &*found.record)))?;
    let catalog = settings::catalog()?;
    let around = Around { face: Face::ours(), host: host.as_deref(), catalog: &catalog, paths: &paths };
    found.sort_by_cached_key(|found| around.order(found, look.seen(&found.record)));
    let list = Listed { around, found: &found, look: &look, turned: Turned::ask(&paths), now: now() };
    let mut answer = match args.given.format {
        Format::Text => Answer::new((), list.text()),
        Format::Json => Answer::new(&list, ""),
    }?;
    answer.warnings = book.warnings();
    answer.warnings.extend(led_away(&paths, &found));
    answer.warnings.extend(look.warnings);
    Ok(answer)
}

/// All that is listed, in order; each view is made as it is told.
struct Listed<'a> {
    around: Around<'a>,
    found: &'a [Found],
    look: &'a Look,
    turned: Turned,
    now: Moment,
}

impl Listed<'_> {
    /// What is told of each, and what its agent is at.
    fn views(&self) -> impl Iterator<Item = (View, Option<&turn::View>)> {
        self.found.iter().map(|found| {
            let view = self.around.view(found, self.look.seen(&found.record), false);
            let turn = self.turned.get(found.record.id).filter(|_| view.status == Status::Running);
            (view, turn)
        })
    }

    fn text(&self) -> String {
        if self.found.is_empty() {
            return "no agent sessions\n".to_owned();
        }
        let line = |(view, turn): (View, Option<&turn::View>)| {
            let shown = |text: &str| print::shown(text.as_bytes());
            let (id, agent) = (shown(&view.id), shown(&view.agent));
            let (status, cwd) = (view.status.word(), shown(&view.cwd));
            match self.around.face {
                Face::Ait => {
                    let turn = turned::words(turn, self.now);
                    let name = view.called().map(|name| format!("  {}", shown(name))).unwrap_or_default();
                    format!("{id}  {agent}  {status}  {turn}  {cwd}{name}\n")
                }
                Face::AgentSession => format!("{id}  {agent}  {status}  {cwd}\n"),
            }
        };
        self.views().map(line).collect()
    }
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.views().map(|(mut view, turn)| {
            view.turn_state = turn.map(|turn| turn_state::told(turn, &view.agent, &view.updated_at));
            view
        }))
    }
}

/// Folders of sessions that lead elsewhere, found by listing the folder they lie in.
fn led_away(paths: &Paths, found: &[Found]) -> Vec<String> {
    let entries = std::fs::read_dir(paths.state.join("sessions")).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let names: Vec<String> = links.map(|link| link.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let ours = found.iter().map(|found| found.record.id.to_string()).filter(|id| names.contains(id));
    ours.map(|id| format!("the folder of session {id} leads to another place; nothing in it is read"))
        .collect()
}
