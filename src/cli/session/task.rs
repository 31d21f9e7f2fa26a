//! `ait task`: which conversations belong to a task, in the user's own Org or Markdown file; and the one of them that
//! `ait resume --task` means.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::json;

use super::address::{Book, Found};
use super::envelope::{self, Answer, Trouble};
use super::{Format, Given, paths};
use crate::cli::{Exit, Failure, ask, print, settings, sockets};
use crate::lifecycle::root::worktree;
use crate::lifecycle::task_file::{self, TaskError, link_of, worktree_of};
use crate::provider::Recorded;
use crate::record::{Record, State};
use crate::service::ServiceError;
use crate::store::{Store, System};
use crate::task::{Entry, Link};

/// Keep which conversations belong to a task in the task's own Org or Markdown file.
///
/// In Org the keyword SESSION_ID and a heading `AI Sessions`, in Markdown a comment under the title and a section `AI Sessions`:
/// an entry each, with its worktree, its backend and its conversation. No other line is touched, and nothing is kept elsewhere.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait task link task.org             the agent of this pane, else those that work in this folder\n  \
                        ait task link task.md review       that session\n  \
                        ait resume --task task.md          brings it back"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write sessions and their conversations into a task file; run again, it changes only what is not as it should be
    Link(LinkArgs),
    /// Show what a task file says
    Show(ShowArgs),
}

#[derive(Debug, ClapArgs)]
struct LinkArgs {
    /// The task file: .org or .md
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The sessions; without any, the agent of this pane, else those that work in this folder's worktree
    #[arg(value_name = "ID")]
    sessions: Vec<String>,
    #[command(flatten)]
    given: Given,
}

#[derive(Debug, ClapArgs)]
struct ShowArgs {
    /// The task file: .org or .md
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    match args.verb {
        Verb::Link(args) => envelope::say("task-link", &args.given, || link(&args)),
        Verb::Show(args) => envelope::say("task-show", &args.given, || show(&args)),
    }
}

fn link(args: &LinkArgs) -> Result<Answer, Trouble> {
    let paths = paths()?;
    let store = Store::open(paths.clone());
    let catalog = settings::catalog()?;
    let records: Vec<Arc<Record>> = if args.sessions.is_empty() {
        here(&store)?
    } else {
        let book = Book::open(&store)?.seen_by(args.given.here.scope(&paths)?);
        let found = args.sessions.iter().map(|word| Ok(book.find(&store, word)?.record));
        found.collect::<Result<_, Trouble>>()?
    };
    let links: Vec<Link> = records.iter().map(|record| link_of(&catalog, record)).collect();
    let changed = task_file::link(&paths, &args.file, &links).map_err(trouble)?;
    task_file::remember(&store, &System::here(), &records, &args.file)?;
    let mut text = String::new();
    let mut sessions = Vec::new();
    for (record, link) in records.iter().zip(&links) {
        let id = record.id.to_string();
        let known = link.session.as_deref().unwrap_or("its conversation is not known yet");
        let line = format!("{id}  {}  {}  {known}\n", link.backend, link.worktree);
        text.push_str(&print::shown(line.trim_end().as_bytes()));
        text.push('\n');
        sessions.push(json!({
            "id": id, "backend": link.backend, "worktree": link.worktree, "session": link.session,
        }));
    }
    let data = json!({"file": args.file.display().to_string(), "changed": changed, "sessions": sessions});
    Answer::new(data, text)
}

fn show(args: &ShowArgs) -> Result<Answer, Trouble> {
    let entries = task_file::entries(&args.file).map_err(trouble)?;
    let text = if entries.is_empty() { "no sessions\n".to_owned() } else { listed(&entries) };
    Answer::new(json!({"file": args.file.display().to_string(), "sessions": entries}), text)
}

/// The agent of the pane this runs in, else the live ones of this folder's worktree.
fn here(store: &Store) -> Result<Vec<Arc<Record>>, Trouble> {
    let snapshot = store.read()?;
    let live = || snapshot.records.shared().filter(|record| matches!(record.state, State::Live));
    let own = std::env::var("TMUX_PANE").ok().zip(sockets::own().map(|socket| sockets::resolved(&socket)));
    if let Some((pane, socket)) = own {
        let is_own = |record: &&Arc<Record>| {
            record.location.pane_id().is_some_and(|own| own.to_string() == pane)
                && record.ait.server.as_ref().is_some_and(|epoch| Path::new(&epoch.socket) == socket)
        };
        if let Some(record) = live().find(is_own) {
            return Ok(vec![Arc::clone(record)]);
        }
    }
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let folder = worktree(&folder).unwrap_or(folder);
    let mine: Vec<Arc<Record>> =
        live().filter(|record| Path::new(&worktree_of(record)) == folder).cloned().collect();
    if mine.is_empty() {
        let message = format!("no agent works in {}", folder.display());
        let trouble = Trouble::new(Exit::FAILED, "session-not-found", message);
        return Err(trouble.hint("name one: `ait task link FILE ID`; `ait list --all` shows them"));
    }
    Ok(mine)
}

/// The session of a task file that is meant: the one there is, the one whose conversation begins so, or the one that is chosen.
pub(super) fn meant(
    file: &Path,
    word: Option<&str>,
    store: &Store,
    format: Format,
) -> Result<Found, Trouble> {
    let entries: Vec<Entry> = task_file::entries(file)
        .map_err(trouble)?
        .into_iter()
        .filter(|entry| is_meant(entry, word))
        .collect();
    let entry = match &entries[..] {
        [] => {
            let message = format!("{} names no such conversation", file.display());
            let trouble = Trouble::new(Exit::FAILED, "task-no-session", message);
            let trouble = trouble.hint("`ait task link FILE` writes one; `ait task show FILE` shows them");
            return Err(handed_over(trouble, file, format)?);
        }
        [one] => one,
        several => chosen(several, file, format)?,
    };
    let id = entry.session.as_deref().unwrap_or_default();
    match Book::open(store)?.of_conversation(store, entry.backend.as_deref(), id)? {
        Some(found) => Ok(found),
        None => Err(handed_over(unrecorded(entry, id), file, format)?),
    }
}

/// No conversation is brought back: what the file hands over is told with it, where it does.
fn handed_over(trouble: Trouble, file: &Path, format: Format) -> Result<Trouble, Trouble> {
    let Some(text) = task_file::handoff(file).map_err(self::trouble)? else { return Ok(trouble) };
    if format == Format::Text {
        print::text(&text.lines().map(|line| print::shown(line.as_bytes()) + "\n").collect::<String>())?;
    }
    Ok(trouble.detail("handoff", text))
}

fn is_meant(entry: &Entry, word: Option<&str>) -> bool {
    let id = entry.session.as_deref();
    id.is_some_and(|id| word.is_none_or(|word| !word.is_empty() && id.starts_with(word)))
}

/// Asks which, where a person can answer.
fn chosen<'a>(entries: &'a [Entry], file: &Path, format: Format) -> Result<&'a Entry, Trouble> {
    if format == Format::Text && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let at = ask::which(&listed(entries), entries.len())?;
        return at.and_then(|at| entries.get(at)).ok_or_else(|| {
            Trouble::new(Exit::FAILED, "task-none-chosen", "none was chosen, and nothing was done")
        });
    }
    if format == Format::Text {
        print::text(&listed(entries))?;
    }
    let message = format!("{} names {} conversations", file.display(), entries.len());
    let sessions = serde_json::to_value(entries).unwrap_or_default();
    let trouble = Trouble::new(Exit::USAGE, "task-ambiguous", message).detail("sessions", sessions);
    Err(trouble.hint("say which by its conversation: `ait resume --task FILE ID`"))
}

/// One line each, numbered.
fn listed(entries: &[Entry]) -> String {
    let line = |(number, entry): (usize, &Entry)| {
        let or = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let line = format!("{number}  {}  {}  {}", or(&entry.backend), entry.worktree, or(&entry.session));
        print::shown(line.as_bytes()) + "\n"
    };
    (1..).zip(entries).map(line).collect()
}

/// No record has that conversation: what brings it back without one.
fn unrecorded(entry: &Entry, id: &str) -> Trouble {
    let message = format!("no session here has the conversation {id}");
    let trouble = Trouble::new(Exit::FAILED, "session-not-found", message).detail("session", id);
    let kind = entry.backend.as_deref().unwrap_or_default();
    let argv =
        settings::catalog().ok().and_then(|catalog| catalog.resume_argv(kind, id, Recorded::default()).ok());
    match argv {
        Some(argv) => trouble.hint(format!(
            "in {}: `{}` brings it back, and `ait adopt` takes it under care",
            entry.worktree,
            argv.join(" ")
        )),
        None => trouble
            .hint("its backend is none that is known here; its task file has what there is to hand over"),
    }
}

fn trouble(why: TaskError) -> Trouble {
    let message = why.to_string();
    match why {
        TaskError::NoFormat(_) | TaskError::Odd { .. } => {
            Trouble::new(Exit::USAGE, "task-file-invalid", message)
        }
        TaskError::Missing(_) => Trouble::new(Exit::USAGE, "task-file-not-found", message),
        TaskError::Unwritable(_) => Trouble::new(Exit::BAD_DATA, "task-value-invalid", message),
        TaskError::File(ServiceError::Changed { .. }) => {
            Trouble::new(Exit::FAILED, "task-file-changed", message)
                .hint("run it again: it reads the file anew")
        }
        TaskError::File(_) => Trouble::new(Exit::FAILED, "task-file-failed", message),
        TaskError::Store(error) => error.into(),
        TaskError::Busy => Trouble::new(Exit::UNAVAILABLE, "task-file-busy", message),
    }
}
