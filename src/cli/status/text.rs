//! The overview as text for a terminal or a pipe. Names from tmux and from files are made safe here.

use std::path::Path;

use super::overview::{Known, Overview, RecordView, Shown};
use crate::api::{Happening, NotifyStatus, ServerState, ServerStatus};
use crate::cli::print::shown;
use crate::cli::table::columns;
use crate::cli::turned;
use crate::coordinator::megabytes;
use crate::turn::Moment;

/// How many of the latest happenings are shown.
const LATEST: usize = 8;

/// The whole text, ending with a line end.
pub(super) fn text(overview: &Overview, now: Moment) -> String {
    let mut out = String::new();
    match &overview.supervisor {
        Some(up) => out.push_str(&format!(
            "supervisor  running, pid {}, since {}, ait {}\n",
            up.pid,
            safe(&up.since),
            safe(&up.version)
        )),
        None => out.push_str(&format!(
            "supervisor  NOT RUNNING: {}; what follows is the store alone\n",
            safe(overview.no_supervisor.as_deref().unwrap_or("none found"))
        )),
    }
    out.push_str(&store(overview));
    for server in &overview.servers {
        out.push_str(&self::server(server));
    }
    out.push_str(&overview.notify.as_ref().map(notify).unwrap_or_default());
    out.push_str(&records(&overview.records, now));
    if !overview.needs_you.is_empty() {
        out.push_str("\nneeds you\n");
        for need in &overview.needs_you {
            let who = need.record.as_ref().map(|id| format!("{id}  ")).unwrap_or_default();
            out.push_str(&format!("  {who}{}\n", safe(&need.what)));
        }
    }
    out.push_str(&happenings("came back", &overview.recovered));
    out.push_str(&happenings("lately", &overview.recent));
    out
}

fn store(overview: &Overview) -> String {
    let store = &overview.store;
    let mut out = format!("store       {}, ", path(&store.path));
    match store.shown {
        Shown::File => out.push_str(&format!("{}\n", count(overview.records.len(), "record"))),
        Shown::Previous => out.push_str(&format!(
            "CORRUPT; shown is the generation before ({}), which may be out of date\n",
            count(overview.records.len(), "record")
        )),
        Shown::None => out.push_str("CORRUPT, and no earlier generation can be read\n"),
    }
    for trouble in &store.trouble {
        out.push_str(&format!("            {}\n", safe(trouble)));
    }
    out
}

fn server(server: &ServerStatus) -> String {
    let state = match &server.state {
        ServerState::Watching => "watched".to_owned(),
        ServerState::Attaching => "being attached".to_owned(),
        ServerState::Idle => "not watched: no record is on it".to_owned(),
        ServerState::Unknown { why } => format!("UNKNOWN: {}", safe(why)),
        ServerState::Gone { cause } => format!("gone ({})", safe(cause)),
    };
    let mut out = format!("server      {}  {state}\n", path(&server.socket));
    let mut facts = Vec::new();
    if let Some(version) = &server.tmux_version {
        facts.push(format!("tmux {}", safe(version)));
    }
    if let Some(epoch) = &server.epoch {
        facts.push(format!("pid {}", epoch.pid));
    }
    if let Some(since) = &server.attached_since {
        facts.push(format!("attached since {}", safe(since)));
    }
    if matches!(server.state, ServerState::Watching) {
        facts.push(count(server.sessions, "session"));
        facts.push(count(server.windows, "window"));
        facts.push(count(server.panes, "pane"));
        facts.push(format!("{} live", server.live));
    }
    if !facts.is_empty() {
        out.push_str(&format!("            {}\n", facts.join(", ")));
    }
    if let Some(last) = &server.last_event {
        out.push_str(&format!("            last event: {}\n", happening(last)));
    }
    for note in &server.notes {
        out.push_str(&format!("            {}\n", safe(note)));
    }
    out
}

fn notify(notify: &NotifyStatus) -> String {
    let NotifyStatus { told, seen, held, waiting, failed, trouble: _ } = notify;
    format!(
        "notify      {told} told, {seen} seen anyway, {held} held back, {waiting} waiting, {failed} failed\n"
    )
}

fn records(records: &[RecordView], now: Moment) -> String {
    if records.is_empty() {
        return "records     none\n".to_owned();
    }
    let rows: Vec<Vec<String>> = records
        .iter()
        .map(|record| {
            let state = match (&record.lost, record.freed) {
                (Some(lost), _) => format!("lost ({})", lost.cause),
                (None, Some(bytes)) => format!("{} ({} freed)", record.state, megabytes(bytes)),
                (None, None) => record.state.to_owned(),
            };
            vec![
                record.id.clone(),
                state,
                safe(&record.agent),
                safe(record.project.rsplit('/').next().unwrap_or(&record.project)),
                safe(&record.window),
                place(record),
                record.since.clone().unwrap_or_else(|| "-".to_owned()),
                turned::words(record.turn.as_ref(), now),
                known(&record.known),
            ]
        })
        .collect();
    let head = ["ID", "STATE", "AGENT", "PROJECT", "WINDOW", "WHERE", "SINCE", "TURN", "KNOWN BY"];
    format!("\n{}", columns(0, &head, &rows))
}

fn place(record: &RecordView) -> String {
    match &record.location {
        Some(place) => {
            let index = place.window_index.map(|index| index.to_string()).unwrap_or_default();
            format!("{} {}:{index}", place.pane, safe(&place.session))
        }
        None => "-".to_owned(),
    }
}

fn known(known: &Known) -> String {
    match known {
        Known::Watched => "watching".to_owned(),
        Known::Unknown { why } => format!("unknown: {}", safe(why)),
        Known::Store { note } => format!("the store ({note})"),
    }
}

fn happenings(title: &str, all: &[Happening]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let latest = &all[all.len().saturating_sub(LATEST)..];
    let lines: String = latest.iter().map(|one| format!("  {}\n", happening(one))).collect();
    format!("\n{title}\n{lines}")
}

fn happening(one: &Happening) -> String {
    let mut out = format!("{} {}", safe(&one.at), safe(&one.what));
    if let Some(record) = &one.record {
        out.push_str(&format!(" {}", safe(record)));
    }
    if !one.detail.is_empty() {
        out.push_str(&format!(": {}", safe(&one.detail)));
    }
    out.push_str(&format!(" (told by {}", safe(&one.source)));
    if let Some(us) = one.to_store_us {
        out.push_str(&format!(", in the store after {}.{:03} ms", us / 1000, us % 1000));
    }
    out.push(')');
    out
}

fn count(number: usize, word: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {word}{ending}")
}

fn path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

fn safe(text: &str) -> String {
    shown(text.as_bytes())
}
