//! `ait doctor`: what may be wrong on this machine, and everything `ait` has set.
//!
//! It only looks. Whatever cannot be looked at is said to be so, never passed over.

mod config;
mod faults;
mod finding;
mod hooks;
mod places;
mod servers;
mod starting;
mod surroundings;

use clap::Args as ClapArgs;
use serde::Serialize;

use super::print::shown;
use super::setup::diff::shown_path;
use super::{Exit, Failure, print, program, setup, sockets};
use crate::client::{self, Client, Found};
use crate::record::Records;
use crate::service;
use crate::store::{Origin, Paths, Store};
use finding::{Finding, Level};
use servers::Touched;

/// Look for what may be wrong on this machine, and list what ait has set.
///
/// Tmux and its faults, folders, store, autostart, supervisor, and each server. It only looks.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Exit codes: 0 nothing is wrong, 10 something is, 65 your settings cannot be taken.")]
pub(super) struct Args {
    /// List everything ait has set on each tmux server and in your files.
    #[arg(long)]
    touched: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The whole answer.
#[derive(Debug, Serialize)]
struct Report {
    healthy: bool,
    findings: Vec<Finding>,
    touched: TouchedAll,
}

/// Everything `ait` has set.
#[derive(Debug, Default, Serialize)]
struct TouchedAll {
    servers: Vec<Touched>,
    files: Vec<TouchedFile>,
    settings: Vec<hooks::Entered>,
}

/// A line of the user's files that is ours, or the first line that counts of a file that is ours as a whole.
#[derive(Debug, Serialize)]
struct TouchedFile {
    path: String,
    line: usize,
    text: String,
    /// Ours as a whole.
    whole: bool,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    super::block_on(async move {
        let (report, taken) = look().await;
        if args.json {
            print::json(&report)?;
        } else {
            print::text(&if args.touched { touched_text(&report.touched) } else { text(&report) })?;
        }
        Ok(match (report.healthy, taken) {
            (_, false) => Exit::BAD_DATA,
            (true, true) => Exit::OK,
            (false, true) => Exit::DEGRADED,
        })
    })
}

/// What was found, and whether the settings can be taken.
async fn look() -> (Report, bool) {
    let mut findings = surroundings::tmux().await;
    findings.push(surroundings::locale());
    let mut touched = TouchedAll::default();
    let mut records = None;
    let mut supervisor = None;
    match Paths::from_env() {
        Ok(paths) => {
            findings.extend(places::check(&paths));
            let (found, read) = store(&paths);
            findings.extend(found);
            records = read;
            let (found, pid) = watching(&paths);
            findings.extend(found);
            supervisor = pid;
        }
        Err(wrong) => findings.push(Finding::bad("store", wrong.to_string())),
    }
    match setup::place() {
        Ok(place) => {
            let (found, entries) = starting::check(&place, program::path().ok().as_deref());
            findings.extend(found);
            touched.files = entries.iter().map(file).collect();
        }
        Err(wrong) => findings.push(Finding::bad("autostart", wrong.to_string().trim_end().to_owned())),
    }
    let (found, taken) = config::check();
    findings.extend(found);
    let (found, entered) = hooks::check();
    findings.extend(found);
    touched.settings = entered;
    findings.extend(surroundings::sockets(supervisor));
    for socket in sockets::all(&[], records.as_ref()) {
        let seen = servers::check(&socket, supervisor, records.as_ref()).await;
        findings.extend(seen.findings);
        touched.servers.extend(seen.touched);
    }
    let healthy = findings.iter().all(|finding| finding.level != Level::Bad);
    (Report { healthy, findings, touched }, taken)
}

fn file(found: &service::Found) -> TouchedFile {
    TouchedFile {
        path: shown_path(&found.path),
        line: found.line,
        text: shown(&found.text),
        whole: found.autostart != service::Autostart::Tmux,
    }
}

/// The store as a reader meets it.
fn store(paths: &Paths) -> (Vec<Finding>, Option<Records>) {
    let snapshot = match Store::open(paths.clone()).read() {
        Ok(snapshot) => snapshot,
        Err(wrong) => {
            let hint = "`ait store repair` shows what can be put right";
            return (vec![Finding::bad("store", wrong.to_string()).hint(hint)], None);
        }
    };
    let shown = shown_path(&paths.store);
    let mut all = vec![match &snapshot.origin {
        Origin::Store => Finding::good("store", format!("{shown}: {}", counted(snapshot.records.len()))),
        Origin::Missing => {
            Finding::note("store", format!("{shown} is not there yet: no record was ever made"))
        }
        Origin::Previous(fault) => Finding::bad(
            "store",
            format!(
                "{shown} is corrupt: {fault}; the generation before has {}",
                counted(snapshot.records.len())
            ),
        )
        .hint("`ait store repair` puts the last good generation back"),
    }];
    for bad in &snapshot.bad {
        let id = bad.id.as_deref().unwrap_or("without an id");
        all.push(
            Finding::bad("store", format!("record {id} on line {} is broken: {}", bad.line, bad.reason))
                .hint("`ait store repair` shows what can be put right"),
        );
    }
    (all, Some(snapshot.records.clone()))
}

fn counted(records: usize) -> String {
    if records == 1 { "1 record".to_owned() } else { format!("{records} records") }
}

/// The supervisor, and its pid when one runs.
fn watching(paths: &Paths) -> (Vec<Finding>, Option<i32>) {
    let said = match client::find(&paths.files()) {
        Ok(Found::Running(Some(said))) => said,
        Ok(Found::Running(None)) => return (vec![Finding::note("supervisor", "it is just starting")], None),
        Ok(Found::Nobody(_)) => {
            let none = Finding::bad("supervisor", "none runs: nobody watches the agents");
            return (vec![none.hint("`ait setup` starts it, and with the machine from then on")], None);
        }
        Err(wrong) => return (vec![Finding::bad("supervisor", wrong.to_string())], None),
    };
    let own = env!("CARGO_PKG_VERSION");
    let finding = match Client::connect(&said).and_then(|mut client| client.status()) {
        Ok(_) if said.version != own => Finding::bad(
            "supervisor",
            format!("pid {} is version {}, this program is {own}", said.pid, said.version),
        )
        .hint("`ait setup` starts the new one"),
        Ok(report) if report.store.path != paths.files().store => {
            Finding::bad("supervisor", format!("pid {} watches {}", said.pid, shown_path(&report.store.path)))
        }
        Ok(_) => Finding::good(
            "supervisor",
            format!("pid {}, version {}, since {}", said.pid, said.version, said.since),
        ),
        Err(silent) => Finding::bad("supervisor", format!("pid {}: {silent}", said.pid))
            .hint("a stopped one (SIGSTOP) goes on after `kill -CONT`; ending it loses nothing"),
    };
    (vec![finding], Some(said.pid))
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let what = shown(finding.what.as_bytes());
        out.push_str(&format!("{:<4} {:<10} {what}\n", finding.level.word(), finding.about));
        if let Some(hint) = &finding.hint {
            out.push_str(&format!("                -> {}\n", shown(hint.as_bytes())));
        }
    }
    let bad = report.findings.iter().filter(|finding| finding.level == Level::Bad).count();
    out.push_str(&match bad {
        0 => "\nnothing is wrong\n".to_owned(),
        1 => "\n1 thing is wrong\n".to_owned(),
        more => format!("\n{more} things are wrong\n"),
    });
    out
}

fn touched_text(touched: &TouchedAll) -> String {
    let mut out = String::new();
    for server in &touched.servers {
        out.push_str(&format!("server {}\n", server.socket));
        if server.hidden_session {
            out.push_str("  session _ait, with remain-on-exit off on its own pane\n");
        } else if server.panes.is_empty() {
            out.push_str("  nothing\n");
        }
        for [pane, option, value] in &server.panes {
            out.push_str(&format!("  pane {pane}  {option} {}\n", shown(value.as_bytes())));
        }
    }
    out.push_str("files\n");
    for file in &touched.files {
        let part = if file.whole { "the whole file".to_owned() } else { format!("line {}", file.line) };
        out.push_str(&format!("  {} ({part}): {}\n", file.path, file.text));
    }
    for entered in &touched.settings {
        out.push_str(&format!("  {}\n", entered.line()));
    }
    if touched.files.is_empty() && touched.settings.is_empty() {
        out.push_str("  nothing\n");
    }
    out.push_str("and nothing else; of tmux no global option, no hook, no key, no environment\n");
    out
}
