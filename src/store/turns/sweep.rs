//! Folders of sessions that are no more.

use std::fs;
use std::path::Path;

use crate::record::RecordId;
use crate::store::{Archive, DROPPED, Origin, Store};

impl Store {
    /// Removes the folders of sessions that were deleted: what a hook wrote after the deletion, and all of it where the deletion was
    /// killed once its record was dropped. Every other folder stays: several stores can have one folder of sessions, and what a
    /// store does not know may be another's, or back with a copy of an earlier day.
    pub fn sweep_turns(&self) {
        let files = self.paths().files();
        let archive = Archive::new(&files);
        let (Ok(mut deleted), Ok(ended), Ok(snapshot)) = (archive.deleted(), archive.list(), self.read())
        else {
            return;
        };
        // what was dropped may be back, which a broken store does not say
        if snapshot.bad.is_empty() && !matches!(snapshot.origin, Origin::Previous(_)) {
            deleted.extend(ended.iter().filter(|line| line.reason == DROPPED).map(|line| line.id));
        }
        deleted.retain(|id| snapshot.records.get(*id).is_none());
        let Ok(entries) = fs::read_dir(self.paths().state.join("sessions")) else { return };
        for entry in entries.flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse::<RecordId>().ok());
            if id.is_some_and(|id| deleted.contains(&id)) {
                remove(&entry.path());
            }
        }
    }
}

/// Removes the folder of a session; a link is nobody's folder, and never followed.
pub(in crate::store) fn remove(folder: &Path) {
    if folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stamp;
    use crate::store::{PATIENCE, Paths};

    #[test]
    fn only_the_folders_of_what_was_deleted_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let open = |store: &str| {
            let (frozen, state, runtime) = (at("frozen"), at("state"), at("run"));
            Store::open(Paths { store: at(store), frozen, state, runtime })
        };
        let (store, other) = (open("s.json"), open("other.json"));
        let folders = at("state/sessions");
        let there = |name: &str| folders.join(name).symlink_metadata().is_ok();
        for name in ["00000001", "00000003", "no-record"] {
            fs::create_dir_all(folders.join(name)).unwrap();
            fs::write(folders.join(name).join("prompt.md"), "P").unwrap();
        }
        fs::create_dir(at("elsewhere")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), folders.join("00000002")).unwrap();
        for name in ["s.json", "other.json"] {
            fs::write(at(name), "{\"version\": 1, \"sessions\": []}\n").unwrap();
        }
        for id in ["00000001", "00000002"] {
            store.delete_archived(id.parse().unwrap(), Stamp::from_unix(1), PATIENCE).unwrap();
        }
        other.sweep_turns();
        assert!(there("00000001"), "another store has deleted nothing");
        store.sweep_turns();
        assert_eq!(
            ["00000001", "00000002", "00000003", "no-record", "../../elsewhere"].map(there),
            [false, true, true, true, true],
            "what the store does not know may be another's"
        );
    }
}
