//! The book of recoveries: what was tried of each loss, kept in the state folder so that nothing is tried for ever; and up to
//! when it was told to those who attached.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{Paths, Store, StoreError, file, make_private};
use crate::supervisor::recovery::Book;
use crate::supervisor::word::Said;

/// The longest book that is read, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// Records it holds; the oldest go first.
const RECORDS: usize = 4096;

impl Paths {
    /// The book of recoveries.
    #[must_use]
    pub fn book(&self) -> PathBuf {
        self.state.join("recoveries.json")
    }

    /// Up to when all was said at attaches.
    #[must_use]
    pub fn said(&self) -> PathBuf {
        self.state.join("said.json")
    }

    /// The lock of the one process that brings lost agents back.
    #[must_use]
    pub fn recover_lock(&self) -> PathBuf {
        self.state.join("recover.lock")
    }
}

impl Store {
    /// What was tried; one that cannot be read says nothing.
    #[must_use]
    pub fn book(&self) -> Book {
        read(&self.paths.book())
    }

    /// Up to when all was said at attaches; a file that cannot be read says nothing.
    #[must_use]
    pub fn said(&self) -> Said {
        read(&self.paths.said())
    }

    /// Keeps that. Only the supervisor writes it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_said(&self, said: &Said) -> Result<(), StoreError> {
        make_private(&self.paths.state)?;
        let path = self.paths.said();
        let text = serde_json::to_vec(said).map_err(|e| StoreError::io("write", &path, e.into()))?;
        file::put(&path, &text, true)
    }

    /// Keeps what was tried. Only the holder of [`Paths::recover_lock`] writes it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_book(&self, book: &mut Book) -> Result<(), StoreError> {
        while book.len() > RECORDS {
            let Some(oldest) = book.iter().min_by_key(|(_, attempt)| attempt.at).map(|(id, _)| *id) else {
                break;
            };
            book.remove(&oldest);
        }
        make_private(&self.paths.state)?;
        let path = self.paths.book();
        let text = serde_json::to_vec(book).map_err(|e| StoreError::io("write", &path, e.into()))?;
        file::put(&path, &text, true)
    }
}

/// A file of ours, whole; nothing where it cannot be read.
fn read<T: Default + DeserializeOwned>(path: &Path) -> T {
    let mut text = Vec::new();
    // what is no regular file (a pipe) would be waited for
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return T::default();
    }
    let read = fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}
