//! Reading a provider's SQLite database without leaving a trace beside it.
//!
//! A plain read-only open of a database in WAL mode creates `-wal` and `-shm` files beside it and leaves them there. So: without
//! a log beside it, it is opened as one that cannot change (`immutable=1`), and what was read counts only if it did not change
//! meanwhile; with one, database and log are copied to a private folder refused, checked, and read there.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row};

use super::Doubt;
use super::disk::{LIMIT_OF_A_COPY, Shelf};

/// How often a database that changes under our eyes is read again.
const ATTEMPTS: usize = 6;
/// How long SQLite waits for another's lock, which there is none of.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// Rows that are taken of one question.
pub(super) const ROW_LIMIT: usize = 1_000_000;

/// What is asked of a database.
type Ask<'a, T> = &'a dyn Fn(&Base) -> rusqlite::Result<T>;

/// An open database.
pub(super) struct Base {
    connection: Connection,
}

impl Base {
    /// The rows of a question, each made into something by `made`.
    pub(super) fn rows<T>(
        &self,
        question: &str,
        parameters: &[&dyn rusqlite::ToSql],
        made: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.connection.prepare(question)?;
        let rows = statement.query_map(parameters, |row| made(row))?;
        rows.take(ROW_LIMIT).collect()
    }

    /// `SELECT` of these columns; one that this version of the table lacks is empty. A table that is not there is an error
    /// when it is asked for.
    pub(super) fn select(&self, table: &str, columns: &[&str]) -> rusqlite::Result<String> {
        let there: Vec<String> =
            self.rows(&format!("SELECT name FROM pragma_table_info('{table}')"), &[], |row| row.get(0))?;
        let named = |column: &&str| match there.iter().any(|known| known == column) {
            true => (*column).to_owned(),
            false => format!("NULL AS {column}"),
        };
        let columns: Vec<String> = columns.iter().map(named).collect();
        Ok(format!("SELECT {} FROM {table}", columns.join(", ")))
    }
}

/// Reads from the database `below` the shelf; `None` when there is none.
pub(super) fn read<T>(
    shelf: &Shelf<'_>,
    below: impl AsRef<Path>,
    ask: Ask<'_, T>,
) -> Result<Option<T>, Doubt> {
    let below = below.as_ref();
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let Some(before) = Picture::of(shelf, below)? else { return Ok(None) };
        let tried =
            if before.log.is_none() { in_place(&before.path, ask) } else { copied(shelf, below, ask) };
        match tried {
            Err(Failed::Doubt(doubt)) => return Err(doubt),
            Err(Failed::Sqlite(wrong)) => {
                // a database that did not change and cannot be read will not be readable the next time
                let still = Picture::of(shelf, below)?.as_ref() == Some(&before);
                last = Some(wrong.to_string());
                if still {
                    break;
                }
            }
            Ok(answer) => match Picture::of(shelf, below)? {
                Some(after) if after.same_base(&before) => return Ok(Some(answer)),
                _ => last = Some("it changed while it was read".to_owned()),
            },
        }
    }
    let why = last.unwrap_or_default();
    Err(Doubt::Database { path: shelf.path().join(below), why })
}

enum Failed {
    Sqlite(rusqlite::Error),
    Doubt(Doubt),
}

impl From<rusqlite::Error> for Failed {
    fn from(wrong: rusqlite::Error) -> Self {
        Self::Sqlite(wrong)
    }
}

/// Size, times and number of a file: another of any of these is another content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

fn mark(path: &Path) -> Option<Mark> {
    let facts = path.symlink_metadata().ok()?;
    let modified = (facts.mtime(), facts.mtime_nsec());
    Some(Mark { inode: facts.ino(), size: facts.size(), modified })
}

/// A database and what lies beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Picture {
    path: PathBuf,
    base: Option<Mark>,
    /// The write-ahead log, or the journal of a writer that was cut short.
    log: Option<Mark>,
}

impl Picture {
    fn of(shelf: &Shelf<'_>, below: &Path) -> Result<Option<Picture>, Doubt> {
        let Some(path) = shelf.real_file(below)? else { return Ok(None) };
        let beside = |ending| mark(&with(&path, ending)).filter(|mark| mark.size > 0);
        Ok(Some(Picture { base: mark(&path), log: beside("-wal").or_else(|| beside("-journal")), path }))
    }

    /// The pages were not written to: a log that only grew is cut at its last whole change by SQLite itself.
    fn same_base(&self, before: &Picture) -> bool {
        self.base == before.base && self.log.is_some() == before.log.is_some()
    }
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn in_place<T>(path: &Path, ask: Ask<'_, T>) -> Result<T, Failed> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{}?immutable=1", escaped(path)), flags)?;
    Ok(ask(&Base { connection })?)
}

/// A path inside a URI.
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let shown = |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    path.as_os_str().as_bytes().iter().map(shown).collect()
}

fn copied<T>(shelf: &Shelf<'_>, below: &Path, ask: Ask<'_, T>) -> Result<T, Failed> {
    let refused = |why: String| Failed::Doubt(Doubt::Database { path: shelf.path().join(below), why });
    let folder = tempfile::Builder::new().prefix("ait-history-").tempdir();
    let folder = folder.map_err(|wrong| refused(format!("no folder for a copy: {wrong}")))?;
    let inside = folder.path().canonicalize().is_ok_and(|real| real.starts_with(shelf.path()));
    if inside {
        return Err(refused("the folder for temporary files lies in the store".to_owned()));
    }
    let base = folder.path().join("copy.db");
    for ending in ["", "-wal", "-journal"] {
        let Some(page) = shelf.open(with(below, ending)).map_err(Failed::Doubt)? else { continue };
        let to = with(&base, ending);
        let copy = |to: &Path| -> std::io::Result<bool> {
            let mut file = File::create(to)?;
            let whole = page.copy(&mut file, LIMIT_OF_A_COPY)?;
            file.flush()?;
            Ok(whole)
        };
        match copy(&to) {
            Ok(true) => {}
            Ok(false) => return Err(Failed::Doubt(Doubt::TooMuch { path: shelf.path().join(below) })),
            Err(wrong) => return Err(refused(format!("cannot be copied: {wrong}"))),
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&base, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    let well: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if well != "ok" {
        return Err(torn(well));
    }
    let answer = ask(&Base { connection })?;
    Ok(answer)
}

/// A copy that caught its owner in the middle of a change.
fn torn(why: String) -> Failed {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Failed::Sqlite(rusqlite::Error::SqliteFailure(code, Some(why)))
}
