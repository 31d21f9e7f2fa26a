//! One file that changes: its bytes before and after, and the writing of them.
//!
//! The mode, the owner and a symlink stay; the new bytes are in place at once or not at all. A file is not to be written
//! when its owner's write bit is off, when it is another user's, when it has a second name (a rename would part them), or
//! when its folder refuses.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::ServiceError;

/// A file before and after.
#[derive(Debug, Clone)]
pub struct Change {
    path: PathBuf,
    target: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl Change {
    /// The bytes of a file; `None` when there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, ServiceError> {
        read(path)
    }

    /// The file, as it is named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes now; `None` when it is not there.
    #[must_use]
    pub fn before(&self) -> Option<&[u8]> {
        self.before.as_deref()
    }

    /// Its bytes then; `None` when it goes.
    #[must_use]
    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// The change of `path` to `after`; `None` where that changes nothing.
    pub(crate) fn of(path: &Path, after: Option<Vec<u8>>) -> Result<Option<Self>, ServiceError> {
        let before = read(path)?;
        if before == after {
            return Ok(None);
        }
        let target = match before {
            Some(_) => {
                path.canonicalize().map_err(|source| ServiceError::Read { path: path.into(), source })?
            }
            None => path.to_owned(),
        };
        Ok(Some(Self { path: path.to_owned(), target, before, after }))
    }

    /// The change of a file that is ours as a whole. One that is there and not ours is refused where we want it, and left
    /// alone where we do not.
    pub(super) fn whole_file(
        path: &Path,
        wanted: Option<Vec<u8>>,
        is_ours: fn(&[u8]) -> bool,
    ) -> Result<Option<Self>, ServiceError> {
        match read(path)? {
            Some(bytes) if !is_ours(&bytes) => match wanted {
                Some(_) => Err(ServiceError::NotOurs {
                    path: path.to_owned(),
                    why: "it was not written by `ait setup`".to_owned(),
                }),
                None => Ok(None),
            },
            _ => Self::of(path, wanted),
        }
    }

    /// Whether the file may be written, looked at without writing.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let refuse = |why: &str| Err(ServiceError::NotOurs { path: self.path.clone(), why: why.to_owned() });
        if self.before.is_some() {
            let meta = fs::metadata(&self.target)
                .map_err(|source| ServiceError::Read { path: self.target.clone(), source })?;
            if meta.permissions().mode() & 0o200 == 0 {
                return refuse("it is read-only");
            }
            if meta.uid() != rustix::process::geteuid().as_raw() {
                return refuse("it belongs to another user");
            }
            if meta.nlink() > 1 {
                return refuse("it has a second name (a hard link), which a rewrite would part from it");
            }
        } else if self.path.is_symlink() {
            return refuse("it is a symlink to nothing");
        }
        // the nearest folder that is there decides
        let folder = self.target.ancestors().skip(1).find(|folder| folder.is_dir());
        let Some(folder) = folder else { return refuse("it has no folder") };
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|errno| ServiceError::Write { path: self.path.clone(), source: io::Error::from(errno) })
    }

    /// Writes it, unless the file is no longer what it was when it was read. All but the rename is done before the last look at
    /// that, for the writing takes its time.
    ///
    /// # Errors
    /// The file is then as it was before.
    pub fn apply(&self) -> Result<(), ServiceError> {
        self.unchanged()?;
        self.check()?;
        let prepared = match &self.after {
            Some(bytes) => Some(self.prepare(bytes).map_err(|source| self.not_written(source))?),
            None => None,
        };
        self.put(prepared)
    }

    fn unchanged(&self) -> Result<(), ServiceError> {
        let same = read(&self.path)? == self.before
            && (self.before.is_none() || self.path.canonicalize().is_ok_and(|now| now == self.target));
        if same { Ok(()) } else { Err(ServiceError::Changed { path: self.path.clone() }) }
    }

    /// The new bytes, safe on disk beside the file.
    fn prepare(&self, bytes: &[u8]) -> io::Result<NamedTempFile> {
        let folder = parent(&self.target);
        let mode = match &self.before {
            Some(_) => fs::metadata(&self.target)?.permissions().mode() & 0o7777,
            None => {
                fs::create_dir_all(folder)?;
                0o644
            }
        };
        let mut file = tempfile::Builder::new().prefix(".ait-").tempfile_in(folder)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Puts them in the file's place; `None` takes the file away.
    fn put(&self, prepared: Option<NamedTempFile>) -> Result<(), ServiceError> {
        self.unchanged()?;
        let done = match prepared {
            None => fs::remove_file(&self.target),
            Some(file) => {
                let kept = match self.before {
                    Some(_) => file.persist(&self.target),
                    // somebody else's new file is not replaced
                    None => file.persist_noclobber(&self.target),
                };
                kept.map(drop).map_err(|failed| failed.error)
            }
        };
        done.and_then(|()| sync(parent(&self.target))).map_err(|source| self.not_written(source))
    }

    fn not_written(&self, source: io::Error) -> ServiceError {
        if source.kind() == io::ErrorKind::AlreadyExists {
            ServiceError::Changed { path: self.path.clone() }
        } else {
            ServiceError::Write { path: self.path.clone(), source }
        }
    }
}

/// The bytes of a file; `None` when there is none (a symlink to nothing included).
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, ServiceError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(missing) if matches!(missing.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(ServiceError::Read { path: path.to_owned(), source }),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "a").unwrap();
        let change = Change::of(&path, Some(b"b".to_vec())).unwrap().unwrap();
        fs::write(&path, "c").unwrap();
        assert!(matches!(change.apply(), Err(ServiceError::Changed { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"c");
        let made = Change::of(&folder.path().join("new"), Some(b"b".to_vec())).unwrap().unwrap();
        fs::write(folder.path().join("new"), "theirs").unwrap();
        assert!(matches!(made.apply(), Err(ServiceError::Changed { .. })));
        assert_eq!(fs::read(folder.path().join("new")).unwrap(), b"theirs");
    }

    #[test]
    fn a_file_that_changed_while_the_new_one_was_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for after in [Some(&b"b"[..]), None] {
            fs::write(&path, "a").unwrap();
            let change = Change::of(&path, after.map(<[u8]>::to_vec)).unwrap().unwrap();
            let prepared = after.map(|bytes| change.prepare(bytes).unwrap());
            fs::write(&path, "c").unwrap();
            assert!(matches!(change.put(prepared), Err(ServiceError::Changed { .. })));
            assert_eq!(fs::read(&path).unwrap(), b"c");
            let names: Vec<_> =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["f"], "nothing is left beside it");
        }
    }

    #[test]
    fn a_symlink_and_a_mode_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "a").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        Change::of(&link, Some(b"b".to_vec())).unwrap().unwrap().apply().unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real"));
        assert_eq!(fs::read(&real).unwrap(), b"b");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o640);
    }

    #[test]
    fn what_is_not_to_be_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "a").unwrap();
        fs::hard_link(&path, folder.path().join("second")).unwrap();
        let change = Change::of(&path, Some(b"b".to_vec())).unwrap().unwrap();
        assert!(matches!(change.apply(), Err(ServiceError::NotOurs { .. })));
        fs::remove_file(folder.path().join("second")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(change.apply(), Err(ServiceError::NotOurs { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"a");
    }
}
