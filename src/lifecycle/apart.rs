//! Sessions that are kept apart by a folder of their own, as the earlier command line keeps its: `<folder>/sessions/<id>` leads to
//! the session's own folder, wherever the store has that.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::Record;
use crate::store::{Paths, turns};

/// Where it is found by those who keep it apart; `None` where the store's own folder is all there is.
#[must_use]
pub fn link(paths: &Paths, record: &Record) -> Option<PathBuf> {
    let session = record.ait.session.as_ref()?;
    let (folder, name) = (Path::new(session.state_dir.as_ref()?), session.name.as_ref()?);
    (folder.is_absolute() && folder != paths.state).then(|| folder.join("sessions").join(name))
}

/// Makes that way, and its own folder if need be.
///
/// # Errors
/// The system refuses, or something else stands there.
pub fn make(paths: &Paths, record: &Record) -> io::Result<()> {
    let Some(link) = link(paths, record) else { return Ok(()) };
    let own = turns::folder(paths, record.id);
    let to = |wrong: crate::store::StoreError| io::Error::other(wrong.to_string());
    crate::store::make_private(&own).map_err(to)?;
    link.parent().map_or(Ok(()), |above| crate::store::make_private(above).map_err(to))?;
    // one that leads nowhere is of a session that is gone
    if link.is_symlink() && !link.exists() {
        std::fs::remove_file(&link)?;
    }
    std::os::unix::fs::symlink(own, link)
}

/// Takes it away, if it leads there.
pub fn remove(paths: &Paths, record: &Record) {
    let Some(link) = link(paths, record) else { return };
    if std::fs::read_link(&link).is_ok_and(|to| to == turns::folder(paths, record.id)) {
        // without it nobody is led anywhere else
        let _ = std::fs::remove_file(link);
    }
}
