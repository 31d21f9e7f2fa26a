//! The text of a store file, read strictly: a fault is named with its place, a single bad record is set aside by name,
//! and nothing broken is ever read as empty.

use std::fmt;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::json::read_object;
use super::records::VERSION;
use super::{Record, Records};

/// A store file as read.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// The good records.
    pub records: Records,
    /// The bad ones.
    pub bad: Vec<BadRecord>,
    /// The file's format number.
    pub version: i64,
}

/// A record that could not be read; the file around it could.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its id, as far as it can be told.
    pub id: Option<String>,
    /// What is wrong with it.
    pub reason: String,
    /// Line of the file it begins on, from 1.
    pub line: usize,
    /// Its text as it stands in the file.
    pub text: String,
}

/// What is wrong with a whole file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line} column {column} (byte {offset})")]
pub struct Fault {
    /// What is wrong.
    pub reason: String,
    /// From 1; 0 if the fault has no place.
    pub line: usize,
    /// From 1; 0 if the fault has no place.
    pub column: usize,
    /// Bytes before it.
    pub offset: usize,
}

read_object! {
    #[derive(Default)]
    struct Good {
        version: Option<i64>,
        sessions: Option<Shared>,
    }
}

/// The records of a list, each put where it stays as it is read: there may be thousands, and they are large.
struct Shared(Vec<Arc<Record>>);

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Shared;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of records")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shared, A::Error> {
                let mut records = Vec::new();
                while let Some(record) = list.next_element()? {
                    records.push(Arc::new(record));
                }
                Ok(Shared(records))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

read_object! {
    #[derive(Default)]
    struct Raw {
        version: Option<i64>,
        sessions: Option<Vec<Box<RawValue>>>,
    }
}

/// Reads the text of a store file. Whitespace alone is an empty store.
///
/// # Errors
/// [`Fault`] if the text is no store file as a whole.
pub fn read(text: &[u8]) -> Result<Parsed, Fault> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(Parsed { version: VERSION, ..Parsed::default() });
    }
    // that it is text is looked at once, not again for each text in it
    match std::str::from_utf8(text).map(serde_json::from_str::<Good>) {
        Ok(Ok(good)) => {
            let version = check_version(good.version)?;
            let Shared(list) = good.sessions.ok_or_else(|| Fault::whole("sessions is not a list"))?;
            let count = list.len();
            let records = Records::from_list(list, good.unknown);
            // An id used twice is found the slow way, so that it is named.
            if records.len() == count {
                Ok(Parsed { records, bad: Vec::new(), version })
            } else {
                read_each(text)
            }
        }
        Ok(Err(_)) | Err(_) => read_each(text),
    }
}

/// Reads record by record, setting the bad ones aside.
fn read_each(text: &[u8]) -> Result<Parsed, Fault> {
    let raw: Raw = serde_json::from_slice(text).map_err(|error| Fault::at(&error, text))?;
    let version = check_version(raw.version)?;
    let list = raw.sessions.ok_or_else(|| Fault::whole("sessions is not a list"))?;
    let mut good: Vec<Arc<Record>> = Vec::with_capacity(list.len());
    let mut ids = std::collections::HashSet::new();
    let mut bad = Vec::new();
    let mut from = 0;
    for (index, entry) in list.iter().enumerate() {
        let place = find(text, entry.get().as_bytes(), from);
        from = place + entry.get().len();
        let reason = match serde_json::from_str::<Record>(entry.get()) {
            Ok(record) if ids.insert(record.id) => {
                good.push(Arc::new(record));
                continue;
            }
            Ok(record) => format!("record {}: the id is used twice", record.id),
            Err(error) => plain(&error),
        };
        let line = 1 + text[..place].iter().filter(|b| **b == b'\n').count();
        bad.push(BadRecord { index, id: id_of(entry.get()), reason, line, text: entry.get().to_owned() });
    }
    Ok(Parsed { records: Records::from_list(good, raw.unknown), bad, version })
}

fn check_version(version: Option<i64>) -> Result<i64, Fault> {
    match version {
        Some(version) if version >= 1 => Ok(version),
        Some(version) => Err(Fault::whole(&format!("version {version} was never written"))),
        None => Err(Fault::whole("version is missing")),
    }
}

impl Fault {
    fn at(error: &serde_json::Error, text: &[u8]) -> Self {
        let (line, column) = (error.line(), error.column());
        let line_start = match line {
            0 | 1 => 0,
            line => {
                let ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
                ends.take(line - 1).last().unwrap_or(0)
            }
        };
        Self {
            reason: plain(error),
            line,
            column,
            offset: (line_start + column.saturating_sub(1)).min(text.len()),
        }
    }

    fn whole(reason: &str) -> Self {
        Self { reason: reason.to_owned(), line: 1, column: 1, offset: 0 }
    }
}

/// The message without serde's own " at line …".
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) if error.line() > 0 => text[..at].to_owned(),
        Some(_) | None => text,
    }
}

/// Where `part` stands in `text`, at or after `from`.
fn find(text: &[u8], part: &[u8], from: usize) -> usize {
    text[from..].windows(part.len().max(1)).position(|window| window == part).map_or(from, |at| from + at)
}

fn id_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    serde_json::from_str::<Id>(text).ok().map(|id| id.id.chars().take(40).collect())
}
