//! One record out of the store file without reading the others: for a hook, which runs at every turn of every agent.
//!
//! The file's own layout is what makes it possible (a record begins and ends with a line of its own, and no line end stands
//! in a text); a file of another layout shows nothing here, and is then read as a whole.

use bstr::ByteSlice;

use super::paths::Files;
use super::{StoreError, file};
use crate::record::Record;
use crate::record::report::Report;

/// Places looked at for one process.
const PLACES: usize = 64;

/// The live record of the agent that reports; `None` where that cannot be told by looking at single records.
pub(super) fn record_of(files: &Files, report: &Report) -> Result<Option<Record>, StoreError> {
    let Some((_, text)) = file::read(&files.store)? else { return Ok(None) };
    Ok(find(&text, report))
}

fn find(text: &[u8], report: &Report) -> Option<Record> {
    for process in &report.line {
        let needle = format!("pid\": {}", process.pid);
        for at in text.find_iter(needle.as_bytes()).take(PLACES) {
            if text.get(at + needle.len()).is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let Some(record) = around(text, at) else { continue };
            if report.record_of(std::iter::once(&record)).is_some() {
                return Some(record);
            }
        }
    }
    None
}

/// The record that the byte at `at` stands in.
fn around(text: &[u8], at: usize) -> Option<Record> {
    let begin = text.get(..at)?.rfind(b"\n    {\n")? + 1;
    let end = at + text.get(at..)?.find(b"\n    }")? + b"\n    }".len();
    serde_json::from_slice(text.get(begin..end)?).ok()
}
