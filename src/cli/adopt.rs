//! `ait adopt`: takes agents that already run under care.
//!
//! A pane is judged by its process, never by a name. What is refused is refused with its reason, and what is not asked for
//! is not touched.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde::Serialize;

use super::setup::diff::shown_path;
use super::table::columns;
use super::{Exit, Failure, print, settings, sockets};
use crate::lifecycle::adopt::{self, Candidate, Holds, Look, LookError, Pane, Taken};
use crate::lifecycle::identity::{self, Noted};
use crate::record::{Outcome, PaneId, RecordId};
use crate::store::{Paths, Store, System};
use crate::tmux::listing::ListError;
use crate::tmux::{OneShot, Unanswered};

/// Make records for agents that already run, recognised by their processes.
///
/// The record is written first and the pane stamped after. A pane that has a record is left as it is; one that holds no
/// known agent is refused with the reason.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait adopt --all --dry-run    what would be adopted\n  ait adopt %3 %7              \
                        these panes\n\nA pane is named by its id (`tmux list-panes -a -F '#{pane_id}'`), on the server \
                        this shell is in, or the only one that runs, or --socket."
)]
pub(super) struct Args {
    /// The panes, by id.
    #[arg(value_name = "PANE", required_unless_present = "all", conflicts_with = "all")]
    panes: Vec<PaneId>,
    /// Every pane of every server in tmux's socket folder (and of --socket).
    #[arg(long)]
    all: bool,
    /// Say what would be done and do nothing.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// A server by its socket; may be given several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Whether anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Only looked at.
    Plan,
    /// Done.
    Act,
}

/// What is said of one pane.
#[derive(Debug, Serialize)]
struct Line {
    socket: String,
    pane: String,
    session: String,
    window: String,
    /// `adopted`, `would_adopt`, `known`, `stand_in`, `refused`, `no_agent`.
    is: &'static str,
    provider: Option<String>,
    record: Option<String>,
    /// The store's answer, or why not.
    note: String,
}

/// What came of a whole run.
#[derive(Debug, Default, Serialize)]
struct Report {
    panes: Vec<Line>,
    /// Servers that could not be looked at, with the reason. Nothing is known of their panes.
    unknown: Vec<[String; 2]>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let mode = if args.dry_run { Mode::Plan } else { Mode::Act };
    super::block_on(async move {
        let store = Store::open(Paths::from_env()?);
        let report = if args.all {
            every(&store, &args.socket, mode).await?
        } else {
            some(&store, &args, mode).await?
        };
        if args.json {
            print::json(&report)?;
        } else {
            print::text(&text(&report, !args.all))?;
        }
        let refused = report.panes.iter().any(|line| match line.is {
            "refused" => true,
            "no_agent" | "stand_in" => !args.all,
            _ => false,
        });
        Ok(match (refused, report.unknown.is_empty()) {
            (true, _) => Exit::FAILED,
            (false, false) => Exit::UNAVAILABLE,
            (false, true) => Exit::OK,
        })
    })
}

/// Adopts everything there is, for `ait setup`; a server that cannot be looked at is said and left alone.
pub(super) async fn all(mode: Mode) -> Result<(), Failure> {
    let store = Store::open(Paths::from_env()?);
    let report = every(&store, &[], mode).await?;
    print::text(&text(&report, false))
}

async fn every(store: &Store, given: &[PathBuf], mode: Mode) -> Result<Report, Failure> {
    let catalog = settings::catalog()?;
    let mut report = Report::default();
    for socket in sockets::all(given, None) {
        let must_answer = given.iter().any(|named| sockets::resolved(named) == socket);
        let server = OneShot::new(&socket)?;
        match adopt::look(&server, &store.read()?.records, &catalog).await {
            Ok(look) => {
                for pane in &look.panes {
                    report.panes.push(one(store, &server, &look, pane, mode).await?);
                }
            }
            // a socket that a dead server left
            Err(LookError::List(ListError::Unanswered(Unanswered::NoServer { .. }))) if !must_answer => {}
            Err(why) => report.unknown.push([shown_path(&socket), why.to_string()]),
        }
    }
    Ok(report)
}

async fn some(store: &Store, args: &Args, mode: Mode) -> Result<Report, Failure> {
    let mut report = Report::default();
    let server = OneShot::new(which(&args.socket).await?)?;
    let look = adopt::look(&server, &store.read()?.records, &settings::catalog()?).await?;
    for id in &args.panes {
        let Some(pane) = look.panes.iter().find(|pane| pane.id == *id) else {
            let socket = shown_path(server.socket());
            return Err(Failure::new(Exit::FAILED, format!("there is no pane {id} on {socket}"))
                .hint("`tmux list-panes -a` shows the panes; --socket names another server"));
        };
        report.panes.push(one(store, &server, &look, pane, mode).await?);
    }
    Ok(report)
}

/// The server a bare pane id is meant on: the one named, else this shell's, else the only one that answers.
pub(super) async fn which(given: &[PathBuf]) -> Result<PathBuf, Failure> {
    let one_of = |several: &[PathBuf]| {
        let names: Vec<String> = several.iter().map(|socket| shown_path(socket)).collect();
        Failure::new(Exit::USAGE, format!("a pane id does not say which server: {}", names.join(", ")))
            .hint("name it with --socket")
    };
    match given {
        [] => {}
        [socket] => return Ok(socket.clone()),
        several => return Err(one_of(several)),
    }
    if let Some(own) = sockets::own() {
        return Ok(own);
    }
    let mut running = Vec::new();
    for socket in sockets::all(&[], None) {
        match OneShot::new(&socket)?.run(["display-message", "-p", "#{pid}"]).await {
            Err(Unanswered::NoServer { .. }) => {}
            // one that does not answer may be the one that is meant
            Ok(_) | Err(_) => running.push(socket),
        }
    }
    match running.as_slice() {
        [socket] => Ok(socket.clone()),
        [] => {
            Err(Failure::new(Exit::UNAVAILABLE, "no tmux server runs").hint("--socket names one elsewhere"))
        }
        several => Err(one_of(several)),
    }
}

async fn one(store: &Store, server: &OneShot, look: &Look, pane: &Pane, mode: Mode) -> Result<Line, Failure> {
    let mut line = Line {
        socket: shown_path(server.socket()),
        pane: pane.id.to_string(),
        session: print::shown(&pane.session),
        window: print::shown(&pane.window),
        is: "no_agent",
        provider: None,
        record: None,
        note: String::new(),
    };
    match &pane.holds {
        Holds::Agent(candidate) => {
            line.provider = Some(candidate.kind.clone());
            match mode {
                Mode::Plan => {
                    line.is = "would_adopt";
                    line.note = print::shown(candidate.upsert.root.as_bytes());
                }
                Mode::Act => act(store, server, look, pane, candidate, &mut line).await?,
            }
        }
        Holds::Known { record, kind, unstamped } => {
            line.is = "known";
            line.provider.clone_from(kind);
            line.record = Some(record.to_string());
            if mode == Mode::Act {
                line.note = brought_up(store, server, look, pane, *record, *unstamped).await?;
            }
        }
        Holds::StandIn { stamp } => {
            line.is = "stand_in";
            line.note = format!("it is the stand-in of record {}", print::shown(stamp));
        }
        Holds::Nothing { why } => line.note = print::shown(why.as_bytes()),
    }
    Ok(line)
}

/// Puts right what an earlier run could not do or know; what was done, for a person.
async fn brought_up(
    store: &Store,
    server: &OneShot,
    look: &Look,
    pane: &Pane,
    record: RecordId,
    unstamped: bool,
) -> Result<String, Failure> {
    let mut done = Vec::new();
    if unstamped {
        let stamped = adopt::stamp(server, &look.epoch, pane.id, None, record).await;
        done.push(stamped.map_or_else(|why| format!("not stamped: {why}"), |()| "stamped".to_owned()));
    }
    match identity::note(store, &System::here(), record)? {
        Noted::AsItWas => {}
        Noted::Now => done.push("its conversation is known now".to_owned()),
        Noted::Refused(why) => done.push(format!("its conversation is not noted: {why}")),
    }
    Ok(done.join("; "))
}

async fn act(
    store: &Store,
    server: &OneShot,
    look: &Look,
    pane: &Pane,
    candidate: &Candidate,
    line: &mut Line,
) -> Result<(), Failure> {
    match adopt::take(server, store, &System::here(), look, pane.id, candidate).await? {
        Taken::Recorded { record, outcome, unstamped } => {
            line.is = "adopted";
            line.record = Some(record.to_string());
            line.note = match outcome {
                Outcome::Rejoined => "joined its record again".to_owned(),
                Outcome::Updated => "its record was brought up to date".to_owned(),
                _ => print::shown(candidate.upsert.root.as_bytes()),
            };
            if let Some(why) = unstamped {
                line.note =
                    format!("{}; its pane is not stamped: {}", line.note, print::shown(why.as_bytes()));
            }
        }
        Taken::Refused(refused) => {
            line.is = "refused";
            line.note = refused.to_string();
        }
    }
    Ok(())
}

/// The report as text. Panes without an agent are told one by one only when they were asked for.
fn text(report: &Report, each: bool) -> String {
    let word = |line: &Line| {
        match line.is {
            "would_adopt" => "would adopt",
            "no_agent" => "no agent",
            "stand_in" => "stand-in",
            other => other,
        }
        .to_owned()
    };
    let told: Vec<&Line> = report.panes.iter().filter(|line| each || line.is != "no_agent").collect();
    let rows: Vec<Vec<String>> = told
        .iter()
        .map(|line| {
            vec![
                word(line),
                line.provider.clone().unwrap_or_else(|| "-".to_owned()),
                line.record.clone().unwrap_or_else(|| "-".to_owned()),
                line.pane.clone(),
                format!("{}:{}", line.session, line.window),
                line.note.clone(),
            ]
        })
        .collect();
    let mut out = columns(0, &["", "", "", "", "", ""], &rows);
    let silent = report.panes.len() - told.len();
    if told.is_empty() {
        out.push_str("no agent to adopt\n");
    }
    match silent {
        0 => {}
        1 => out.push_str("1 other pane holds no agent that is known\n"),
        more => out.push_str(&format!("{more} other panes hold no agent that is known\n")),
    }
    for [socket, why] in &report.unknown {
        out.push_str(&format!("unknown: {socket}: {}\n", print::shown(why.as_bytes())));
    }
    out
}
