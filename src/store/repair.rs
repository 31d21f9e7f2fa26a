//! Curing a broken store: what would change is told first, the broken file is kept aside, the best that is whole is put
//! back. Nothing is invented and nothing is thrown away.

use std::fs;
use std::path::PathBuf;

use super::StoreError;
use super::file::{self, replace_keeping};
use super::paths::Files;
use crate::record::read::{BadRecord, Fault, Parsed, read};
use crate::record::{Records, Stamp, VERSION};

/// What is wrong and what would be done about it.
#[derive(Debug, Clone)]
pub struct Repair {
    /// The whole-file fault, if it is that.
    pub fault: Option<Fault>,
    /// The broken records, if it is those.
    pub bad: Vec<BadRecord>,
    /// Where the good records come from.
    pub cure: Cure,
    /// The records as they would be.
    pub records: Records,
    broken: Vec<u8>,
}

/// Where the good records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// The file itself without this many bytes after its end.
    Cut(usize),
    /// The generation before.
    Previous,
    /// The file itself without its broken records; this many of them come from the generation before.
    Sift(usize),
}

/// Looks at the store; `None` if it is well.
pub(super) fn diagnose(files: &Files) -> Result<Option<Repair>, StoreError> {
    let broken = file::read(&files.store)?.map(|(_, text)| text).unwrap_or_default();
    let previous =
        file::read(&files.prev)?.and_then(|(_, text)| read(&text).ok().filter(|_| !text.is_empty()));
    if broken.is_empty() {
        // No store yet, or one that was emptied under a good generation.
        let exists = files.store.exists();
        return Ok(previous.filter(|_| exists).map(|previous| Repair {
            fault: Some(Fault { reason: "the file is empty".to_owned(), line: 1, column: 1, offset: 0 }),
            bad: Vec::new(),
            cure: Cure::Previous,
            records: previous.records,
            broken,
        }));
    }
    match read(&broken) {
        Ok(Parsed { version, .. }) if version > VERSION => {
            Err(StoreError::Newer { path: files.store.clone(), version })
        }
        Ok(Parsed { bad, .. }) if bad.is_empty() => Ok(None),
        Ok(Parsed { records, bad, .. }) => Ok(Some(sift(records, bad, previous, broken))),
        Err(fault) => {
            if let Some((end, parsed)) = leading_store(&broken) {
                let cure = Cure::Cut(broken.len() - end);
                return Ok(Some(Repair {
                    fault: Some(fault),
                    bad: parsed.bad,
                    cure,
                    records: parsed.records,
                    broken,
                }));
            }
            match previous {
                Some(previous) => Ok(Some(Repair {
                    fault: Some(fault),
                    bad: previous.bad,
                    cure: Cure::Previous,
                    records: previous.records,
                    broken,
                })),
                None => Err(StoreError::Corrupt { path: files.store.clone(), fault }),
            }
        }
    }
}

/// Puts the cure in place; the locks must be held. Gives the path the broken file is kept at.
pub(super) fn carry_out(files: &Files, repair: &Repair, now: Stamp) -> Result<PathBuf, StoreError> {
    let there = file::read(&files.store)?.map(|(_, text)| text).unwrap_or_default();
    let text = repair.records.print().map_err(|e| StoreError::io("print", &files.store, e.into()))?;
    if there != repair.broken {
        let fault = Fault {
            reason: "the file changed since it was looked at".to_owned(),
            line: 1,
            column: 1,
            offset: 0,
        };
        return Err(StoreError::Corrupt { path: files.store.clone(), fault });
    }
    let stamp = now.to_string().replace([':', '-'], "");
    let aside = sibling(files, &format!(".corrupt-{stamp}"));
    // A second repair within the second must not write over the first one's evidence.
    let aside = (0u32..)
        .map(|n| if n == 0 { aside.clone() } else { sibling(files, &format!(".corrupt-{stamp}-{n}")) });
    let aside = aside.take(1000).find(|path| !path.exists()).unwrap_or_else(|| sibling(files, ".corrupt"));
    fs::hard_link(&files.store, &aside)
        .or_else(|_| fs::copy(&files.store, &aside).map(drop))
        .map_err(|e| StoreError::io("keep", &aside, e))?;
    // The generation before stays what it is: the broken one must not take its place.
    replace_keeping(files, &text, false)?;
    Ok(aside)
}

/// The good records, and for each broken one its record of the generation before, if that one had it.
fn sift(records: Records, bad: Vec<BadRecord>, previous: Option<Parsed>, broken: Vec<u8>) -> Repair {
    let mut list: Vec<_> = records.shared().cloned().collect();
    let mut brought = 0;
    for bad in &bad {
        let id = bad.id.as_deref().and_then(|id| id.parse().ok());
        let before = id.and_then(|id| previous.as_ref().and_then(|p| p.records.get(id)));
        if let Some(before) = before.filter(|before| records.get(before.id).is_none()) {
            list.push(before.clone());
            brought += 1;
        }
    }
    let records = Records::from_list(list, records.unknown().clone());
    Repair { fault: None, bad, cure: Cure::Sift(brought), records, broken }
}

/// The store that the text begins with, when something else follows it.
fn leading_store(text: &[u8]) -> Option<(usize, Parsed)> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let end = values.byte_offset();
    // The newline after it is the store's own.
    let end = end + text.get(end..)?.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let parsed = read(text.get(..end)?).ok()?;
    (parsed.version <= VERSION).then_some((end, parsed))
}

fn sibling(files: &Files, ending: &str) -> PathBuf {
    let mut name = files.store.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
