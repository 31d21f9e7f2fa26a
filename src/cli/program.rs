//! Where this program lies, by a path that stays when it is upgraded.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Exit, Failure};

/// The absolute path this program was called by, when it leads to this very program; else the program's own path.
///
/// The name it was called by is preferred: packagers put a link there and change what it points to at an upgrade.
pub(super) fn path() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|wrong| Failure::of(Exit::INTERNAL, &wrong))?;
    let called = std::env::args_os().next();
    let search = std::env::var_os("PATH");
    let folder = std::env::current_dir().ok();
    let named = called.and_then(|called| as_called(&called, search.as_deref(), folder.as_deref()));
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == own);
    if let Some(named) = named.filter(is_own) {
        return Ok(named);
    }
    if !own.is_file() {
        let hint = "it was replaced while it ran; run the new one";
        return Err(Failure::new(Exit::UNAVAILABLE, format!("{} is gone", own.display())).hint(hint));
    }
    Ok(own)
}

/// The path a shell that was told `called` has run: itself where it has a slash, else the first of that name on PATH.
fn as_called(called: &OsStr, search: Option<&OsStr>, folder: Option<&Path>) -> Option<PathBuf> {
    let named = Path::new(called);
    if named.is_absolute() {
        return Some(named.to_owned());
    }
    if named.components().count() > 1 || called.as_encoded_bytes().starts_with(b"./") {
        return Some(folder?.join(named.strip_prefix(".").unwrap_or(named)));
    }
    std::env::split_paths(search?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(named))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_it_was_called_by() {
        let folder = Path::new("/w");
        for (called, path) in
            [("/opt/ait", "/opt/ait"), ("./ait", "/w/ait"), ("target/debug/ait", "/w/target/debug/ait")]
        {
            assert_eq!(as_called(OsStr::new(called), None, Some(folder)), Some(path.into()), "{called}");
        }
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("ait"), "").unwrap();
        assert_eq!(
            as_called(OsStr::new("ait"), Some(bin.path().as_os_str()), None),
            Some(bin.path().join("ait"))
        );
        assert_eq!(as_called(OsStr::new("other"), Some(bin.path().as_os_str()), None), None);
    }
}
