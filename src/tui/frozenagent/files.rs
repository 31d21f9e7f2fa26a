//! The files behind a record: its capture and its conversation. Opened for reading only, plain files only, and never more of
//! one than a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::model::{Kept, known};
use crate::record::{Record, RecordId};
use crate::store::Paths;
use crate::tui::transcript;

/// The most of a capture that is read, in bytes; of a longer one the end.
const CAPTURE_LIMIT: u64 = 64 << 20;
/// The most of a conversation that is read, in bytes; of a longer one the end.
const TRANSCRIPT_LIMIT: u64 = 4 << 20;
/// Where a file that is no text shows it.
const HEAD: usize = 1024;

/// What stands for a record: the capture with colours, else the plain one, else a page of what is known.
pub(super) fn capture(paths: &Paths, id: RecordId, record: Option<&Record>) -> (Kept, Vec<u8>) {
    let folder = paths.captures(id);
    let recorded = |text: Option<&String>| text.filter(|path| !path.is_empty()).map(PathBuf::from);
    let of = record.map(|record| &record.capture);
    let candidates = [
        (recorded(of.map(|capture| &capture.ansi)), Kept::Ansi),
        (Some(folder.join("capture.ansi")), Kept::Ansi),
        (recorded(of.map(|capture| &capture.txt)), Kept::Txt),
        (Some(folder.join("capture.txt")), Kept::Txt),
    ];
    let mut tried: Vec<PathBuf> = Vec::new();
    let mut misses = Vec::new();
    for (path, kept) in candidates {
        let Some(path) = path.filter(|path| !tried.contains(path)) else { continue };
        match tail(&path, CAPTURE_LIMIT) {
            Ok((bytes, _)) if bytes.is_empty() => misses.push(format!("{} is empty", path.display())),
            Ok((bytes, true)) => return (Kept::Tail, bytes),
            Ok((bytes, false)) => return (kept, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                misses.push(format!("{} is not there", path.display()));
            }
            Err(error) => misses.push(format!("cannot read {}: {error}", path.display())),
        }
        tried.push(path);
    }
    (Kept::Nothing, known(id, record, &misses).into_bytes())
}

/// A conversation as text.
pub(super) fn conversation(path: &str) -> Result<String, String> {
    let (bytes, cut) =
        tail(Path::new(path), TRANSCRIPT_LIMIT).map_err(|error| format!("cannot read {path}: {error}"))?;
    if bytes.iter().take(HEAD).any(|byte| *byte == 0) {
        return Err(format!("{path} is no text"));
    }
    Ok(transcript::text(&bytes, cut))
}

/// The end of a file from the beginning of a line on, and whether there is more before it.
fn tail(path: &Path, limit: u64) -> io::Result<(Vec<u8>, bool)> {
    // a pipe in a file's place must not be waited for
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file: File = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a plain file"));
    }
    let cut = meta.len() > limit;
    if cut {
        file.seek(SeekFrom::Start(meta.len() - limit))?;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    if cut && let Some(end) = memchr::memchr(b'\n', &bytes) {
        bytes.drain(..=end);
    }
    Ok((bytes, cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StateName;
    use crate::record::testing::sample;

    fn paths(base: &Path) -> Paths {
        Paths {
            store: base.join("s.json"),
            frozen: base.join("frozen"),
            state: base.join("state"),
            runtime: base.join("run"),
        }
    }

    #[test]
    fn the_best_capture_that_is_there_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let paths = paths(base.path());
        let record = sample(StateName::Frozen);
        let folder = paths.make_captures(record.id).unwrap();
        let (kept, page) = capture(&paths, record.id, Some(&record));
        let page = String::from_utf8(page).unwrap();
        assert_eq!(kept, Kept::Nothing);
        assert!(page.contains("sid") && page.contains("capture.ansi is not there"), "{page}");
        std::fs::write(folder.join("capture.ansi"), "").unwrap();
        std::fs::write(folder.join("capture.txt"), "plain\n").unwrap();
        assert_eq!(capture(&paths, record.id, Some(&record)), (Kept::Txt, b"plain\n".to_vec()));
        std::fs::write(folder.join("capture.ansi"), "\x1b[1mbold\n").unwrap();
        assert_eq!(capture(&paths, record.id, None), (Kept::Ansi, b"\x1b[1mbold\n".to_vec()));
        let mut elsewhere = record.clone();
        elsewhere.capture.ansi = base.path().join("other").to_string_lossy().into_owned();
        std::fs::write(base.path().join("other"), "other\n").unwrap();
        assert_eq!(capture(&paths, record.id, Some(&elsewhere)), (Kept::Ansi, b"other\n".to_vec()));
    }

    #[test]
    fn of_a_long_file_the_end_is_read_from_a_line_on() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 100).unwrap(), (b"one\ntwo\nthree\n".to_vec(), false));
        assert_eq!(tail(&path, 9).unwrap(), (b"three\n".to_vec(), true));
    }

    #[test]
    fn what_is_no_plain_text_file_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let pipe = base.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(conversation(&pipe.to_string_lossy()).unwrap_err().contains("not a plain file"));
        assert!(conversation(&base.path().to_string_lossy()).unwrap_err().contains("cannot read"));
        let binary = base.path().join("db");
        std::fs::write(&binary, b"SQLite format 3\0").unwrap();
        assert!(conversation(&binary.to_string_lossy()).unwrap_err().contains("is no text"));
    }
}
