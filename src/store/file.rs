//! The store file itself: read without a lock, replaced whole. [`replace`] is the one function that writes it, and its
//! order is the order of durability: temporary file, fsync, the generation before kept, rename, fsync of the folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::paths::Files;
use super::{StoreError, system};

/// What tells one generation of the file from another. The file is kept open beside it, so that the inode's number
/// cannot be handed out again meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

impl Mark {
    pub(super) fn of(meta: &fs::Metadata) -> Self {
        Self { modified: (meta.mtime(), meta.mtime_nsec()), size: meta.size(), inode: meta.ino() }
    }
}

/// A generation of the store file, open.
#[derive(Debug)]
pub(super) struct Generation {
    // Never read again: while it is open, its inode number stays its own.
    pub(super) _file: File,
    pub(super) mark: Mark,
}

/// The mark of the file as it is now; `None` if there is no file.
pub(super) fn look(path: &Path) -> Result<Option<Mark>, StoreError> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(Mark::of(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("look at", path, error)),
    }
}

/// Opens and reads the file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<(Generation, Vec<u8>)>, StoreError> {
    // a pipe in its place would be waited for until somebody writes into it
    let mut file =
        match OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("open", path, error)),
        };
    let meta = file.metadata().map_err(|e| StoreError::io("look at", path, e))?;
    if !meta.is_file() {
        return Err(StoreError::io("read", path, io::Error::other("it is not a regular file")));
    }
    let mut text = Vec::with_capacity(usize::try_from(meta.size()).unwrap_or(0) + 1);
    file.read_to_end(&mut text).map_err(|e| StoreError::io("read", path, e))?;
    Ok(Some((Generation { mark: Mark::of(&meta), _file: file }, text)))
}

/// What a write found worth telling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// The mode the store had, if others could use it.
    pub from: Option<u32>,
}

/// Replaces the store by this text. On any error the old generation is there, whole.
pub(super) fn replace(files: &Files, text: &[u8]) -> Result<(Generation, Narrowed), StoreError> {
    replace_keeping(files, text, true)
}

/// [`replace`]; the present generation becomes the one before only if `keep`.
pub(super) fn replace_keeping(
    files: &Files,
    text: &[u8],
    keep: bool,
) -> Result<(Generation, Narrowed), StoreError> {
    let before = match fs::metadata(&files.store) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::io("look at", &files.store, error)),
    };
    let had = before.as_ref().map_or(0o600, |meta| meta.mode() & 0o7777);
    let narrowed = Narrowed { from: (had & !0o600 != 0).then_some(had) };
    let mode = had & 0o600;
    let new = temporary(&files.store);
    let written = write_whole(&new, text, mode).and_then(|generation| {
        if keep && before.is_some_and(|meta| meta.size() > 0) {
            keep_previous(files, mode)?;
        }
        fs::rename(&new, &files.store).map_err(|e| StoreError::io("replace", &files.store, e))?;
        Ok(generation)
    });
    let generation = match written {
        Ok(generation) => generation,
        Err(error) => {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
    };
    sync_folder(&files.store);
    Ok((generation, narrowed))
}

/// Writes a file that must not be there yet: mode before content, synced.
fn write_whole(path: &Path, text: &[u8], mode: u32) -> Result<Generation, StoreError> {
    let failed = |what: &'static str| move |error: io::Error| StoreError::io(what, path, error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(failed("make"))?;
    file.set_permissions(PermissionsExt::from_mode(mode)).map_err(failed("set the mode of"))?;
    file.write_all(text).map_err(failed("write"))?;
    file.sync_all().map_err(failed("sync"))?;
    let mark = Mark::of(&file.metadata().map_err(failed("look at"))?);
    Ok(Generation { _file: file, mark })
}

/// Keeps the present generation as the one before: linked to a temporary name and renamed over.
fn keep_previous(files: &Files, mode: u32) -> Result<(), StoreError> {
    let kept = temporary(&files.prev);
    let done = match fs::hard_link(&files.store, &kept) {
        Ok(()) => Ok(()),
        // No links here: a copy, as durable as the file.
        Err(error) if error.kind() != io::ErrorKind::StorageFull => {
            let text = fs::read(&files.store).map_err(|e| StoreError::io("read", &files.store, e))?;
            write_whole(&kept, &text, mode).map(drop)
        }
        Err(error) => Err(StoreError::io("link", &kept, error)),
    };
    let done = done
        .and_then(|()| fs::rename(&kept, &files.prev).map_err(|e| StoreError::io("replace", &files.prev, e)));
    // Two links of one file do not replace each other: a crash between the two renames leaves that to the next writer.
    let _ = fs::remove_file(&kept);
    done?;
    let previous = fs::metadata(&files.prev).map_err(|e| StoreError::io("look at", &files.prev, e))?;
    if previous.mode() & 0o7777 != mode {
        let narrowed = fs::set_permissions(&files.prev, PermissionsExt::from_mode(mode));
        narrowed.map_err(|e| StoreError::io("set the mode of", &files.prev, e))?;
    }
    Ok(())
}

/// Makes a rename durable. The new generation is in place by then: a folder that cannot be synced is told, not undone.
pub(super) fn sync_folder(path: &Path) {
    let Some(folder) = path.parent() else { return };
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::warn!("cannot sync {}: {error}", folder.display());
    }
}

/// A name beside `path` that nothing else has: hidden, so that no reader takes it for a store.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{:08x}{:08x}.tmp", system::draw(), system::draw()))
}

/// Puts a file of ours in place whole or not at all, 0600.
pub(super) fn put(path: &Path, bytes: &[u8], sync: bool) -> Result<(), StoreError> {
    let new = temporary(path);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_data()?;
        }
        fs::rename(&new, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        StoreError::io("write", path, error)
    })
}

/// Removes what killed writers of this file left beside it.
pub(super) fn remove_temporaries(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = format!(".{}.", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name().to_string_lossy(), &prefix) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes temporary files that killed writers left; the lock must be held.
pub(super) fn sweep(files: &Files) {
    [&files.store, &files.prev, &files.archive, &files.index]
        .into_iter()
        .for_each(|path| remove_temporaries(path));
}

/// Whether `name` is `prefix`, 16 hex digits, `.tmp`: exactly what [`temporary`] makes.
fn is_temporary(name: &str, prefix: &str) -> bool {
    let middle = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".tmp"));
    middle.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_this_module_makes_are_swept() {
        let made = temporary(Path::new("/x/s.json"));
        let name = made.file_name().unwrap().to_string_lossy().into_owned();
        assert!(is_temporary(&name, ".s.json."), "{name}");
        for other in [
            "s.json",
            ".s.json.tmp",
            ".s.json.bak.tmp",
            ".s.json.0123456789abcdeg.tmp",
            "s.json.0123456789abcdef.tmp",
        ] {
            assert!(!is_temporary(other, ".s.json."), "{other}");
        }
    }
}
