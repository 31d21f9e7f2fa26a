//! Where retired records go: one JSON line each, never forgotten before their time. A small index beside it keeps lists
//! fast; it is a copy and is made again whenever it does not fit. Writers hold the store's lock, readers hold nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::file::{sync_folder, temporary};
use super::paths::{Files, make_private};
use crate::record::{Record, RecordId, Session, Stamp};

/// Past this size the archive is compacted.
pub const COMPACT_AT: u64 = 8 * 1024 * 1024;
/// How long a line is kept unless deleted.
pub const KEEP: Duration = Duration::from_secs(365 * 86_400);
/// How long a last screen is kept.
pub const KEEP_SCREEN: Duration = Duration::from_secs(30 * 86_400);
/// How much all last screens may take.
pub const SCREENS: u64 = 64 * 1024 * 1024;
/// No line is longer than this; a longer one is damage.
const LINE: u64 = 4 * 1024 * 1024;
/// The reason of a line that takes all earlier ones of its id away.
const DELETED: &str = "deleted";
/// The reason of what was dropped: no session any more, only a memory of its conversation.
pub const DROPPED: &str = "dropped";
/// The format of the index; one of another is made again.
const INDEX: u32 = 2;

/// A retired record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// When it was retired.
    pub at: Stamp,
    /// What was seen, in words.
    #[serde(default)]
    pub evidence: String,
    /// Whether a shutdown that followed may still claim this end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// Why, one word.
    pub reason: String,
    /// The record as it was.
    pub record: Record,
}

/// What a list shows of a retired record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The record.
    pub id: RecordId,
    /// When it was retired.
    pub at: Stamp,
    /// Why, one word.
    pub reason: String,
    /// Whether a shutdown that followed may still claim this end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// Its project.
    #[serde(default)]
    pub root: String,
    /// Its window.
    #[serde(default)]
    pub window: String,
    /// Its agent and model.
    #[serde(default)]
    pub agent_string: String,
    /// Its conversation.
    #[serde(default)]
    pub codeagent_session_id: String,
    /// Its task.
    #[serde(default)]
    pub task_id: String,
    /// The session it was started as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Where its line begins.
    offset: u64,
    /// How long its line is.
    len: u64,
}

/// What a compaction removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Lines that a later line of the same id replaced, or that could not be read.
    pub replaced: usize,
    /// Records past their time.
    pub expired: usize,
    /// Records deleted.
    pub deleted: usize,
    /// The ids of both, of which the archive says nothing from now on.
    pub forgotten: Vec<RecordId>,
}

/// The archive of one store.
#[derive(Debug)]
pub struct Archive<'a> {
    files: &'a Files,
}

/// The first line of the index: which file it is of.
#[derive(Debug, Serialize, Deserialize)]
struct IndexOf {
    format: u32,
    inode: u64,
    /// Size right after the last compaction.
    base: u64,
}

#[derive(Deserialize)]
struct LineHead {
    at: Stamp,
    reason: String,
    #[serde(default)]
    provisional: bool,
    #[serde(default)]
    id: Option<RecordId>,
    #[serde(default)]
    record: Option<RecordHead>,
}

#[derive(Deserialize)]
struct RecordHead {
    id: RecordId,
    #[serde(default)]
    root: String,
    #[serde(default)]
    window: String,
    #[serde(default)]
    agent_string: String,
    #[serde(default)]
    codeagent_session_id: String,
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    ait: OursHead,
}

#[derive(Default, Deserialize)]
struct OursHead {
    #[serde(default)]
    session: Option<Session>,
}

#[derive(Serialize)]
struct Tombstone {
    at: Stamp,
    id: RecordId,
    reason: &'static str,
}

impl<'a> Archive<'a> {
    /// The archive beside this store.
    #[must_use]
    pub fn new(files: &'a Files) -> Self {
        Self { files }
    }

    /// All retired records that were not deleted, the latest of each id, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let mut list: Vec<Listed> = self.latest()?.filter(|line| line.reason != DELETED).collect();
        list.sort_by_key(|line| (line.at, line.id));
        Ok(list)
    }

    /// Which records were deleted for good, as far as that is still on file.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn deleted(&self) -> Result<HashSet<RecordId>, StoreError> {
        Ok(self.latest()?.filter(|line| line.reason == DELETED).map(|line| line.id).collect())
    }

    /// The latest line of each id.
    fn latest(&self) -> Result<impl Iterator<Item = Listed> + use<>, StoreError> {
        let lines = match self.open()? {
            Some(file) => self.lines(&file)?,
            None => Vec::new(),
        };
        let latest: HashMap<RecordId, Listed> = lines.into_iter().map(|line| (line.id, line)).collect();
        Ok(latest.into_values())
    }

    /// A retired record, whole; `None` if there is none of that id, or it was deleted.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn get(&self, id: RecordId) -> Result<Option<Archived>, StoreError> {
        let Some(file) = self.open()? else { return Ok(None) };
        let last = self.lines(&file)?.into_iter().rev().find(|line| line.id == id);
        let Some(line) = last.filter(|line| line.reason != DELETED) else { return Ok(None) };
        let text = self.read_line(&file, &line)?;
        Ok(serde_json::from_slice::<Archived>(&text).ok().filter(|archived| archived.record.id == id))
    }

    /// What was retired at or after a time (unix seconds), whole, the latest line of each id, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn since(&self, oldest: i64) -> Result<Vec<Archived>, StoreError> {
        let lines: Vec<Listed> = self.list()?.into_iter().filter(|line| line.at.unix() >= oldest).collect();
        self.whole(&lines)
    }

    /// These lines whole; one that is no such line any more is left out.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn whole(&self, lines: &[Listed]) -> Result<Vec<Archived>, StoreError> {
        let Some(file) = self.open()? else { return Ok(Vec::new()) };
        let mut whole = Vec::new();
        for line in lines {
            let text = self.read_line(&file, line)?;
            whole.extend(
                serde_json::from_slice::<Archived>(&text).ok().filter(|found| found.record.id == line.id),
            );
        }
        Ok(whole)
    }

    /// Adds lines and syncs them; only then may the store forget the records. The store's lock must be held.
    pub(super) fn append(&self, retired: &[Archived]) -> Result<(), StoreError> {
        let lines: Vec<Vec<u8>> =
            retired.iter().map(|line| serde_json::to_vec(line).unwrap_or_default()).collect();
        self.append_lines(&lines)
    }

    /// Takes a retired record away for good, from now on. The store's lock must be held.
    pub(super) fn delete(&self, id: RecordId, at: Stamp) -> Result<(), StoreError> {
        let tombstone = Tombstone { at, id, reason: DELETED };
        self.append_lines(&[serde_json::to_vec(&tombstone).unwrap_or_default()])?;
        let _ = fs::remove_file(self.screen_file(id));
        Ok(())
    }

    /// Past [`COMPACT_AT`]: keeps the latest line of each id that is neither deleted nor past `keep`. The store's lock
    /// must be held.
    pub(super) fn compact(&self, now: Stamp, keep: Duration) -> Result<Option<Compacted>, StoreError> {
        let path = &self.files.archive;
        let Some(file) = self.open()? else { return Ok(None) };
        let size = self.meta(&file)?.size();
        // What is left after a compaction does not shrink by doing it again.
        let base = self.read_index().map_or(0, |(head, _)| head.base);
        if size < COMPACT_AT || size < base.saturating_mul(2) {
            return Ok(None);
        }
        let all = self.lines(&file)?;
        let count = all.len();
        let mut latest: BTreeMap<RecordId, Listed> = BTreeMap::new();
        for line in all {
            latest.insert(line.id, line);
        }
        let mut told = Compacted { replaced: count - latest.len(), ..Compacted::default() };
        let oldest = now.unix().saturating_sub(i64::try_from(keep.as_secs()).unwrap_or(i64::MAX));
        let mut stay: Vec<Listed> = Vec::new();
        for line in latest.into_values() {
            if line.reason == DELETED {
                told.deleted += 1;
            } else if line.at.unix() < oldest {
                told.expired += 1;
            } else {
                stay.push(line);
                continue;
            }
            told.forgotten.push(line.id);
        }
        stay.sort_by_key(|line| (line.at, line.id));
        let new = temporary(path);
        let written = (|| {
            let mut out = private(&new, true).map_err(|e| StoreError::io("make", &new, e))?;
            for line in &mut stay {
                let text = self.read_line(&file, line)?;
                out.write_all(&text)
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(|e| StoreError::io("write", &new, e))?;
            }
            out.sync_all().map_err(|e| StoreError::io("sync", &new, e))?;
            fs::rename(&new, path).map_err(|e| StoreError::io("replace", path, e))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written?;
        sync_folder(path);
        if let Some(file) = self.open()? {
            let base = self.meta(&file)?.size();
            self.write_index(&file, base)?;
        }
        Ok(Some(told))
    }

    /// Keeps the last screen of an ended agent; what is too old or too much goes, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn keep_screen(&self, id: RecordId, screen: &[u8]) -> Result<(), StoreError> {
        make_private(&self.files.screens)?;
        let path = self.screen_file(id);
        let new = temporary(&path);
        let written = private(&new, true)
            .and_then(|mut file| file.write_all(screen))
            .and_then(|()| fs::rename(&new, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&new);
            return Err(StoreError::io("write", &path, error));
        }
        self.prune_screens(SystemTime::now());
        Ok(())
    }

    /// The last screen of an ended agent, where it is still kept.
    #[must_use]
    pub fn screen(&self, id: RecordId) -> Option<PathBuf> {
        Some(self.screen_file(id)).filter(|path| path.is_file())
    }

    fn prune_screens(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.files.screens) else { return };
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.size(), entry.path()))
            })
            .collect();
        kept.sort();
        let mut total: u64 = kept.iter().map(|(_, size, _)| size).sum();
        for (modified, size, path) in kept {
            let old = now.duration_since(modified).is_ok_and(|age| age > KEEP_SCREEN);
            if old || total > SCREENS {
                total -= size;
                let _ = fs::remove_file(path);
            }
        }
    }

    fn screen_file(&self, id: RecordId) -> PathBuf {
        self.files.screens.join(format!("{id}.ansi"))
    }

    fn open(&self) -> Result<Option<File>, StoreError> {
        match File::open(&self.files.archive) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("open", &self.files.archive, error)),
        }
    }

    fn meta(&self, file: &File) -> Result<fs::Metadata, StoreError> {
        file.metadata().map_err(|e| StoreError::io("look at", &self.files.archive, e))
    }

    fn append_lines(&self, lines: &[Vec<u8>]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = &self.files.archive;
        let failed = |what: &'static str| move |error: io::Error| StoreError::io(what, path, error);
        let mut file = private(path, false).map_err(failed("open"))?;
        let size = self.meta(&file)?.size();
        let mut text = Vec::new();
        if size > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(size - 1)).map_err(failed("read"))?;
            file.read_exact(&mut last).map_err(failed("read"))?;
            if last != *b"\n" {
                // A writer died within a line; ours begins on its own.
                text.push(b'\n');
            }
        }
        for line in lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(|error| {
            // Half a line would be read as damage; the file goes back to what it was.
            let _ = file.set_len(size);
            StoreError::io("write", path, error)
        })?;
        if size == 0 {
            sync_folder(path);
        }
        // The index is a copy: it is brought up to date, and if that fails it is made again by whoever needs it.
        let base = self.read_index().map_or(0, |(head, _)| head.base);
        if let Err(error) = self.write_index(&file, base) {
            tracing::warn!("{error}");
        }
        Ok(())
    }

    /// Every readable line's head, in the file's order: from the index as far as it goes, the rest from the file.
    fn lines(&self, file: &File) -> Result<Vec<Listed>, StoreError> {
        let meta = self.meta(file)?;
        let known = self.read_index().filter(|(head, lines)| {
            head.inode == meta.ino() && lines.last().is_none_or(|line| line.offset + line.len < meta.size())
        });
        let mut lines = known.map(|(_, lines)| lines).unwrap_or_default();
        let from = lines.last().map_or(0, |line| line.offset + line.len + 1);
        lines.extend(self.scan(file, from)?);
        Ok(lines)
    }

    fn scan(&self, file: &File, from: u64) -> Result<Vec<Listed>, StoreError> {
        let failed = |error: io::Error| StoreError::io("read", &self.files.archive, error);
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        reader.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut lines = Vec::new();
        let mut offset = from;
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = reader.by_ref().take(LINE).read_until(b'\n', &mut text).map_err(failed)? as u64;
            if read == 0 {
                return Ok(lines);
            }
            if text.last() == Some(&b'\n') {
                text.pop();
                lines.extend(head_of(&text, offset));
            }
            offset += read;
        }
    }

    fn read_line(&self, file: &File, line: &Listed) -> Result<Vec<u8>, StoreError> {
        let mut text = vec![0; usize::try_from(line.len.min(LINE)).unwrap_or(0)];
        let read = std::os::unix::fs::FileExt::read_exact_at(file, &mut text, line.offset);
        read.map_err(|e| StoreError::io("read", &self.files.archive, e))?;
        Ok(text)
    }

    fn read_index(&self) -> Option<(IndexOf, Vec<Listed>)> {
        let text = fs::read_to_string(&self.files.index).ok()?;
        let mut lines = text.split_terminator('\n');
        let head: IndexOf =
            serde_json::from_str(lines.next()?).ok().filter(|head: &IndexOf| head.format == INDEX)?;
        let lines = lines.map(serde_json::from_str).collect::<Result<Vec<Listed>, _>>().ok()?;
        Some((head, lines))
    }

    /// Brings the index up to date with the file: adds what is missing, or makes it anew.
    fn write_index(&self, file: &File, base: u64) -> Result<(), StoreError> {
        let path = &self.files.index;
        let failed = |error: io::Error| StoreError::io("write", path, error);
        let meta = self.meta(file)?;
        let fits = self.read_index().filter(|(head, _)| head.inode == meta.ino() && head.base == base);
        let all = self.lines(file)?;
        let line = |value: &Listed| serde_json::to_string(value).unwrap_or_default() + "\n";
        if let Some((_, known)) = fits
            && all.len() >= known.len()
        {
            let more: String = all[known.len()..].iter().map(line).collect();
            return private(path, false)
                .and_then(|mut index| index.write_all(more.as_bytes()))
                .map_err(failed);
        }
        let head = IndexOf { format: INDEX, inode: meta.ino(), base };
        let mut text = serde_json::to_string(&head).unwrap_or_default() + "\n";
        text.extend(all.iter().map(line));
        let new = temporary(path);
        private(&new, true)
            .and_then(|mut index| index.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, path))
            .inspect_err(|_| drop(fs::remove_file(&new)))
            .map_err(failed)
    }
}

/// The ids among `lines` that the store holds again are no longer archived.
#[must_use]
pub fn without(lines: Vec<Listed>, held: &HashSet<RecordId>) -> Vec<Listed> {
    lines.into_iter().filter(|line| !held.contains(&line.id)).collect()
}

fn head_of(text: &[u8], offset: u64) -> Option<Listed> {
    let head: LineHead = serde_json::from_slice(text).ok()?;
    let len = text.len() as u64;
    match (head.record, head.id) {
        (Some(record), _) => Some(Listed {
            id: record.id,
            at: head.at,
            reason: head.reason,
            provisional: head.provisional,
            root: record.root,
            window: record.window,
            agent_string: record.agent_string,
            codeagent_session_id: record.codeagent_session_id,
            task_id: record.task_id,
            session: record.ait.session,
            offset,
            len,
        }),
        (None, Some(id)) if head.reason == DELETED => Some(Listed {
            id,
            at: head.at,
            reason: head.reason,
            provisional: false,
            root: String::new(),
            window: String::new(),
            agent_string: String::new(),
            codeagent_session_id: String::new(),
            task_id: String::new(),
            session: None,
            offset,
            len,
        }),
        (None, _) => None,
    }
}

/// Opens a file for appending, 0600 whatever the umask.
fn private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(new).create(!new).mode(0o600);
    let file = options.open(path)?;
    if file.metadata()?.mode() & 0o7777 != 0o600 {
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}
