//! Who saw that a prompt was taken: the agent's hook, or its conversation's file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice;

use crate::lifecycle::identity;
use crate::lifecycle::perform::World;
use crate::record::Record;
use crate::store::turns::{self, Whose};
use crate::turn::What;
use crate::watch::Watcher;

/// How long a prompt is given to be seen, before the screen is asked.
const SPAN: Duration = Duration::from_millis(1500);
/// How much of the text is looked for in a conversation's file, in bytes.
const NEEDLE: usize = 200;
/// How much of what was added to that file is read, in bytes.
const ADDED: u64 = 16 << 20;

/// What was there before Enter.
pub(super) struct Witness<'a> {
    world: &'a World,
    record: &'a Record,
    whose: Whose,
    /// Events that were taken.
    accepted: u64,
    /// How long the conversation's file was.
    length: u64,
    /// The text as JSON has it.
    needle: Vec<u8>,
    watcher: Option<Watcher>,
}

impl<'a> Witness<'a> {
    /// Hears of what happens from now on.
    pub(super) fn new(world: &'a World, record: &'a Record, text: &[u8]) -> Self {
        let whose = Whose::of(record);
        let paths = world.store.paths();
        let file = identity::transcript(&world.catalog, record);
        let folder = |file: &PathBuf| file.parent().map(PathBuf::from);
        let own = [Some(turns::folder(paths, record.id)), file.as_ref().and_then(folder)];
        // its first prompt begins its conversation
        let begun =
            if record.codeagent_session_id.is_empty() { identity::openings(record) } else { Vec::new() };
        let folders = own.into_iter().flatten().chain(begun);
        let watcher = Watcher::new().and_then(|mut watcher| {
            for folder in folders {
                watcher.add(&folder)?;
            }
            Ok(watcher)
        });
        Self {
            world,
            record,
            accepted: turns::of(paths, &whose).accepted,
            whose,
            length: file.and_then(|file| file.metadata().ok()).map_or(0, |data| data.len()),
            needle: needle(text),
            watcher: watcher.ok(),
        }
    }

    /// The first proof that comes.
    pub(super) async fn wait(&mut self) -> Option<&'static str> {
        let heard = tokio::time::timeout(SPAN, async {
            loop {
                if let Some(proof) = self.proof() {
                    return proof;
                }
                match &mut self.watcher {
                    Some(watcher) => drop(watcher.next().await),
                    None => std::future::pending().await,
                }
            }
        })
        .await;
        // a file in a folder that was not there at first is told of by nobody
        heard.ok().or_else(|| self.proof())
    }

    fn proof(&self) -> Option<&'static str> {
        if self.is_told() {
            Some("hook")
        } else if self.is_written() {
            Some("transcript")
        } else {
            None
        }
    }

    /// A prompt was handed in since, its hook says.
    fn is_told(&self) -> bool {
        let paths = self.world.store.paths();
        if turns::of(paths, &self.whose).accepted == self.accepted {
            return false;
        }
        let journal = turns::journal(paths, self.record.id).unwrap_or_default();
        journal.iter().any(|entry| {
            let later = entry.runtime == self.whose.runtime && entry.number > self.accepted;
            later && entry.event.what == What::TurnStarted
        })
    }

    /// The conversation's file, of one that began only now too.
    fn file(&self) -> Option<PathBuf> {
        if !self.record.codeagent_session_id.is_empty() {
            return identity::transcript(&self.world.catalog, self.record);
        }
        let (agent, nothing) = (self.record.agent_process()?, BTreeMap::new());
        let environment = self.record.ait.env.as_ref().unwrap_or(&nothing);
        let begun = identity::conversation(&self.record.agent_kind, &agent, environment)?;
        identity::transcript(
            &self.world.catalog,
            &Record { codeagent_session_id: begun, ..self.record.clone() },
        )
    }

    /// What was added to the conversation's file since holds the text.
    fn is_written(&self) -> bool {
        if self.needle.is_empty() {
            return false;
        }
        let Some(path) = self.file() else { return false };
        let added = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(self.length))?;
            let mut added = Vec::new();
            file.take(ADDED).read_to_end(&mut added)?;
            std::io::Result::Ok(added)
        };
        added().is_ok_and(|added| added.find(&self.needle).is_some())
    }
}

/// The beginning of a text as it stands within a string of JSON.
fn needle(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= NEEDLE).unwrap_or(text.len());
    let quoted = serde_json::to_string(text.get(..end).unwrap_or_default().trim()).unwrap_or_default();
    quoted.trim_matches('"').as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_for_as_json_writes_it() {
        assert_eq!(needle(b" a\n\tb "), b"a\\n\\tb");
        assert_eq!(needle("é".repeat(500).as_bytes()).len(), NEEDLE);
        assert_eq!(needle(b"\n"), b"");
    }
}
