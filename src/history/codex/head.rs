//! What a rollout says of itself: four generations of a first line.
//!
//! (a) one JSON object with `session` and `items`; (b) a bare object with `id` and `timestamp`, no folder; (c) an envelope
//! `{timestamp, type: "session_meta", payload}`; (d) the same with `ordinal`, `session_id` and `parent_thread_id`. The first
//! `session_meta` of a file is its own; a fork's file repeats those of its ancestors behind it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::history::Doubt;
use crate::history::disk::Shelf;

/// Lines that may stand before the first that says whose the file is.
const BEFORE: usize = 64;

/// The head of one rollout.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub(super) file: PathBuf,
    pub(super) id: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) started: Option<Timestamp>,
    pub(super) changed: Option<Timestamp>,
    pub(super) sub_agent: bool,
}

/// Reads the head; `None` when nothing in the file says whose it is.
pub(super) fn head(shelf: &Shelf<'_>, file: &Path) -> Result<Option<Head>, Doubt> {
    let Some(page) = shelf.open(file)? else { return Ok(None) };
    let empty = Head { file: page.path.clone(), changed: page.changed(), ..Head::default() };
    if file.extension().is_some_and(|ending| ending == "json") {
        let object = serde_json::from_slice::<Value>(&page.whole()?).ok();
        return Ok(object.as_ref().and_then(|object| oldest(object, empty)));
    }
    let mut lines = page.lines()?;
    for _ in 0..BEFORE {
        let Some(line) = lines.next_object()? else { return Ok(None) };
        if let Some(head) = enveloped(&line, empty.clone()).or_else(|| bare(&line, empty.clone())) {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

fn oldest(object: &Value, head: Head) -> Option<Head> {
    let session = object.get("session")?.as_object()?;
    bare(session, head)
}

fn enveloped(line: &Map<String, Value>, head: Head) -> Option<Head> {
    (text(line, "type")? == "session_meta").then_some(())?;
    let payload = line.get("payload")?.as_object()?;
    let sub_agent =
        text(payload, "parent_thread_id").is_some() || payload.get("source").is_some_and(of_a_sub_agent);
    let id = text(payload, "id").or_else(|| text(payload, "session_id"))?;
    let started = time(payload).or_else(|| time(line));
    Some(Head { id: Some(id.to_owned()), cwd: folder(payload), started, sub_agent, ..head })
}

fn bare(line: &Map<String, Value>, head: Head) -> Option<Head> {
    let id = text(line, "id").filter(|_| !line.contains_key("type"))?;
    Some(Head { id: Some(id.to_owned()), cwd: folder(line), started: time(line), ..head })
}

/// `"subagent"`, `"sub_agent…"`, or an object with such a key.
fn of_a_sub_agent(source: &Value) -> bool {
    let told = |word: &str| word.to_ascii_lowercase().replace(['_', '-'], "").starts_with("subagent");
    match source {
        Value::String(word) => told(word),
        Value::Object(object) => object.keys().any(|word| told(word)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn folder(object: &Map<String, Value>) -> Option<PathBuf> {
    text(object, "cwd").map(PathBuf::from)
}

fn time(object: &Map<String, Value>) -> Option<Timestamp> {
    text(object, "timestamp")?.parse().ok()
}
