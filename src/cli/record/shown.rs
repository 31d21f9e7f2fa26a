//! `list` and `show`: no lock, and a broken store is shown as what it is.

use std::path::Path;

use serde::Serialize;

use super::super::{Exit, Failure, print};
use super::{escaped, failed};
use crate::record::{Record, RecordId, StateName};
use crate::store::{Origin, Snapshot, Store, real_path};

/// The records as JSON, with where they come from.
#[derive(Serialize)]
struct Shown<'a> {
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad: Vec<Bad<'a>>,
    sessions: Vec<&'a Record>,
}

#[derive(Serialize)]
struct Bad<'a> {
    id: Option<&'a str>,
    line: usize,
    reason: &'a str,
}

pub(super) fn list(
    store: &Store,
    state: Option<StateName>,
    root: Option<&Path>,
    json: bool,
) -> Result<Exit, Failure> {
    let snapshot = store.read().map_err(failed)?;
    let root = root.map(|root| real_path(root).to_string_lossy().into_owned());
    let sessions: Vec<&Record> = snapshot
        .records
        .iter()
        .filter(|record| state.is_none_or(|state| record.state.name() == state))
        .filter(|record| root.as_ref().is_none_or(|root| record.root == *root))
        .collect();
    if json {
        let (origin, fault) = match &snapshot.origin {
            Origin::Store => ("store", None),
            Origin::Missing => ("missing", None),
            Origin::Previous(fault) => ("previous", Some(fault.to_string())),
        };
        let bad =
            snapshot.bad.iter().map(|bad| Bad { id: bad.id.as_deref(), line: bad.line, reason: &bad.reason });
        print::json(&Shown { origin, fault, bad: bad.collect(), sessions })?;
    } else {
        let line = |record: &&Record| {
            let fields = [
                record.id.to_string(),
                record.state.name().to_string(),
                escaped(&record.root),
                escaped(&record.window),
                record.location.pane_id().map_or_else(String::new, |pane| pane.to_string()),
                escaped(&record.task_id),
                escaped(&record.agent_string),
                record.state_at.map_or_else(String::new, |at| at.to_string()),
            ];
            format!("SESSION:{}\n", fields.join("|"))
        };
        print::text(&sessions.iter().map(line).collect::<String>())?;
    }
    warn(store, &snapshot)
}

pub(super) fn show(store: &Store, id: RecordId, json: bool) -> Result<Exit, Failure> {
    let snapshot = store.read().map_err(failed)?;
    let Some(record) = snapshot.records.get(id) else {
        warn(store, &snapshot)?;
        return Err(Failure::new(Exit::code(4), format!("NO_SUCH_RECORD:{id}")));
    };
    if json {
        print::json(record.as_ref())?;
    } else {
        print::text(&lines(record).map_err(|wrong| Failure::of(Exit::INTERNAL, &wrong))?)?;
    }
    warn(store, &snapshot)
}

/// One `key:value` line per field; objects and lists as JSON on one line.
fn lines(record: &Record) -> serde_json::Result<String> {
    let fields = match serde_json::to_value(record)? {
        serde_json::Value::Object(fields) => fields,
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Array(_) => serde_json::Map::new(),
    };
    Ok(fields
        .into_iter()
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!("{}:{}\n", escaped(&key), escaped(&text)),
            other => format!("{}:{}\n", escaped(&key), escaped(&other.to_string())),
        })
        .collect())
}

/// Says what is wrong with the store that was shown, and gives the exit code that says so.
fn warn(store: &Store, snapshot: &Snapshot) -> Result<Exit, Failure> {
    let path = store.paths().files().store;
    let hint = "`ait store repair` shows what would be put back";
    match &snapshot.origin {
        Origin::Previous(fault) => {
            let message = format!(
                "corrupt store {}: {fault}; what is shown is the generation before it",
                path.display()
            );
            Err(Failure::new(Exit::code(4), message).hint(hint))
        }
        Origin::Store | Origin::Missing => match snapshot.bad.first() {
            Some(bad) => {
                let message = format!(
                    "store {} holds {} broken record(s) that are not shown, the first on line {}: {}",
                    path.display(),
                    snapshot.bad.len(),
                    bad.line,
                    escaped(&bad.reason)
                );
                Err(Failure::new(Exit::code(4), message).hint(hint))
            }
            None => Ok(Exit::OK),
        },
    }
}
