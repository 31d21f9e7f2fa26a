//! Reading other people's files: bounded, counted, and never through a link that leads out of the store.
//!
//! Refuses to: create, change or remove anything, wait on a pipe, or read what is no regular file. What cannot be read is
//! a [`Doubt`], never an absence.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Doubt;

/// Entries of one folder that are looked at.
const LIST_LIMIT: usize = 1_000_000;
/// One line, or one file that is read whole, in bytes.
pub(super) const LINE_LIMIT: usize = 4 << 20;
/// What is read of one file to find out what it is, in bytes.
pub(super) const SCAN_LIMIT: u64 = 64 << 20;

/// The largest database that is copied to be read, in bytes.
pub(super) const LIMIT_OF_A_COPY: u64 = 4 << 30;

/// What a question cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Files opened.
    pub opens: u64,
    /// Folders listed.
    pub lists: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// The one place that reads; it counts.
#[derive(Debug, Default)]
pub(super) struct Disk {
    opens: Cell<u64>,
    lists: Cell<u64>,
    bytes: Cell<u64>,
}

impl Disk {
    pub(super) fn cost(&self) -> Cost {
        Cost { opens: self.opens.get(), lists: self.lists.get(), bytes: self.bytes.get() }
    }

    fn count(&self, cell: &Cell<u64>, more: u64) {
        cell.set(cell.get() + more);
    }

    /// The store folder at `path`, its own links followed (the user may keep it elsewhere); `None` when there is none.
    pub(super) fn shelf(&self, path: &Path) -> Result<Option<Shelf<'_>>, Doubt> {
        match path.canonicalize() {
            Ok(real) => Ok(Some(Shelf { disk: self, real })),
            Err(wrong) => absent(path, &wrong),
        }
    }
}

/// `None` for what is not there, a doubt for what may be.
fn absent<T>(path: &Path, wrong: &io::Error) -> Result<Option<T>, Doubt> {
    match wrong.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(Doubt::Unreadable { path: path.to_owned(), why: wrong.to_string() }),
    }
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A link; where it leads is only asked when it is opened.
    Link,
    Other,
}

/// A name in a folder.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A folder of a provider's store; nothing outside is read through it.
#[derive(Debug)]
pub(super) struct Shelf<'d> {
    disk: &'d Disk,
    real: PathBuf,
}

impl<'d> Shelf<'d> {
    /// Its path, links resolved.
    pub(super) fn path(&self) -> &Path {
        &self.real
    }

    /// The reader it counts on.
    pub(super) fn disk(&self) -> &'d Disk {
        self.disk
    }

    /// Where `below` really lies; `None` when there is nothing.
    fn inside(&self, below: &Path) -> Result<Option<PathBuf>, Doubt> {
        let path = self.real.join(below);
        match path.canonicalize() {
            Ok(real) if real.starts_with(&self.real) => Ok(Some(real)),
            Ok(_) => Err(Doubt::LeadsOut { path }),
            Err(wrong) => absent(&path, &wrong),
        }
    }

    /// The names in a folder, sorted; names that are no UTF-8 are no provider's. `None` when there is no such folder.
    pub(super) fn list(&self, below: impl AsRef<Path>) -> Result<Option<Vec<Entry>>, Doubt> {
        let Some(path) = self.inside(below.as_ref())? else { return Ok(None) };
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(wrong) => return absent(&path, &wrong),
        };
        self.disk.count(&self.disk.lists, 1);
        let mut names = Vec::new();
        for entry in entries {
            let unreadable =
                |wrong: io::Error| Doubt::Unreadable { path: path.clone(), why: wrong.to_string() };
            let entry = entry.map_err(unreadable)?;
            if names.len() == LIST_LIMIT {
                return Err(Doubt::TooMuch { path });
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = match entry.file_type().map_err(unreadable)? {
                kind if kind.is_file() => Kind::File,
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_symlink() => Kind::Link,
                _ => Kind::Other,
            };
            names.push(Entry { name, kind });
        }
        names.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Some(names))
    }

    /// A regular file, opened to read; `None` when there is none.
    pub(super) fn open(&self, below: impl AsRef<Path>) -> Result<Option<Page<'d>>, Doubt> {
        let Some(path) = self.inside(below.as_ref())? else { return Ok(None) };
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = match options.read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(wrong) => return absent(&path, &wrong),
        };
        self.disk.count(&self.disk.opens, 1);
        let facts = file
            .metadata()
            .map_err(|wrong| Doubt::Unreadable { path: path.clone(), why: wrong.to_string() })?;
        Ok(facts.is_file().then(|| Page { disk: self.disk, file, facts, path }))
    }

    /// Whether a regular file lies there, without opening it.
    pub(super) fn holds(&self, below: impl AsRef<Path>) -> Result<bool, Doubt> {
        Ok(self.real_file(below.as_ref())?.is_some())
    }

    /// Where a regular file really lies, without opening it.
    pub(super) fn real_file(&self, below: &Path) -> Result<Option<PathBuf>, Doubt> {
        let Some(path) = self.inside(below)? else { return Ok(None) };
        match path.symlink_metadata() {
            Ok(facts) => Ok(facts.is_file().then_some(path)),
            Err(wrong) => absent(&path, &wrong),
        }
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct Page<'d> {
    disk: &'d Disk,
    file: File,
    facts: Metadata,
    /// Where it really lies.
    pub(super) path: PathBuf,
}

impl<'d> Page<'d> {
    /// When it was last written.
    pub(super) fn changed(&self) -> Option<Timestamp> {
        self.facts.modified().ok().and_then(|time| Timestamp::try_from(time).ok())
    }

    /// All of it; a doubt when it is longer than [`LINE_LIMIT`].
    pub(super) fn whole(self) -> Result<Vec<u8>, Doubt> {
        let path = self.path.clone();
        let mut bytes = Vec::new();
        let taken =
            Counted { disk: self.disk, inner: self.file }.take(LINE_LIMIT as u64 + 1).read_to_end(&mut bytes);
        match taken {
            Err(wrong) => Err(Doubt::Unreadable { path, why: wrong.to_string() }),
            Ok(_) if bytes.len() > LINE_LIMIT => Err(Doubt::TooMuch { path }),
            Ok(_) => Ok(bytes),
        }
    }

    /// Its last `length` bytes, or all of it.
    pub(super) fn end(mut self, length: u64) -> Result<Vec<u8>, Doubt> {
        use std::io::Seek;
        let start = self.facts.len().saturating_sub(length);
        let mut bytes = Vec::new();
        let read = self
            .file
            .seek(io::SeekFrom::Start(start))
            .and_then(|_| Counted { disk: self.disk, inner: self.file }.take(length).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(bytes),
            Err(wrong) => Err(Doubt::Unreadable { path: self.path, why: wrong.to_string() }),
        }
    }

    /// Writes all of it to `to`; false when it is longer than `limit`.
    pub(super) fn copy(self, to: &mut impl io::Write, limit: u64) -> io::Result<bool> {
        let mut source = Counted { disk: self.disk, inner: self.file }.take(limit + 1);
        Ok(io::copy(&mut source, to)? <= limit)
    }

    /// Line by line; a file whose name ends in `.zst` is unpacked on the way.
    pub(super) fn lines(self) -> Result<Lines<'d>, Doubt> {
        let packed = self.path.extension() == Some(OsStr::new("zst"));
        let counted = Counted { disk: self.disk, inner: self.file };
        let source: Box<dyn Read + 'd> = if packed {
            let stream = ruzstd::decoding::StreamingDecoder::new(counted).map_err(|wrong| {
                Doubt::Malformed { path: self.path.clone(), why: format!("not zstd: {wrong}") }
            })?;
            Box::new(stream)
        } else {
            Box::new(counted)
        };
        Ok(Lines { source: BufReader::with_capacity(16 << 10, source), left: SCAN_LIMIT, path: self.path })
    }
}

struct Counted<'d> {
    disk: &'d Disk,
    inner: File,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.disk.count(&self.disk.bytes, read as u64);
        Ok(read)
    }
}

/// The lines of a file, each and all within a bound.
pub(super) struct Lines<'d> {
    source: BufReader<Box<dyn Read + 'd>>,
    left: u64,
    path: PathBuf,
}

impl Lines<'_> {
    /// The next line without its end; a line longer than [`LINE_LIMIT`] comes as an empty one. `None` at the end of the file,
    /// a doubt when [`SCAN_LIMIT`] is used up.
    pub(super) fn next_line(&mut self) -> Result<Option<Vec<u8>>, Doubt> {
        use std::io::BufRead;
        let mut line = Vec::new();
        let mut huge = false;
        let mut any = false;
        loop {
            if self.left == 0 {
                return Err(Doubt::TooMuch { path: self.path.clone() });
            }
            let unreadable =
                |wrong: io::Error| Doubt::Unreadable { path: self.path.clone(), why: wrong.to_string() };
            let chunk = self.source.fill_buf().map_err(unreadable)?;
            if chunk.is_empty() {
                return Ok(any.then_some(line));
            }
            any = true;
            let (part, ended) = match memchr::memchr(b'\n', chunk) {
                Some(at) => (&chunk[..at], true),
                None => (chunk, false),
            };
            huge |= line.len() + part.len() > LINE_LIMIT;
            if huge {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(ended);
            self.source.consume(used);
            self.left = self.left.saturating_sub(used as u64);
            if ended {
                return Ok(Some(line));
            }
        }
    }

    /// The next line that is a JSON object; torn, empty and foreign lines are passed over.
    pub(super) fn next_object(
        &mut self,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, Doubt> {
        while let Some(line) = self.next_line()? {
            if let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(&line) {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }
}
