//! Folders of sessions that are no more.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, SystemTime};

use crate::record::RecordId;
use crate::store::{Archive, Origin, Store};

/// How long a folder that nothing names is left alone: a session is begun, or a last word of one that was deleted is written.
const GRACE: Duration = Duration::from_secs(3600);

impl Store {
    /// Removes the folders of sessions that neither the store nor the archive knows any more: of a deletion that was cut short, of
    /// a hook that came after it, of a session whose time in the archive is over. A store that is
    /// missing, or has anything broken in it, tells of none.
    pub fn sweep_turns(&self) {
        self.sweep_turns_at(SystemTime::now());
    }

    fn sweep_turns_at(&self, now: SystemTime) {
        // the folders first: a session's record is written before its folder is made
        let Ok(entries) = fs::read_dir(self.paths().state.join("sessions")) else { return };
        let folders: Vec<fs::DirEntry> = entries.flatten().collect();
        // the archive last: a record that ends meanwhile is in it before it leaves the store
        let Ok(snapshot) = self.read() else { return };
        let Ok(archived) = Archive::new(&self.paths().files()).list() else { return };
        if !snapshot.bad.is_empty() || !matches!(snapshot.origin, Origin::Store) {
            return;
        }
        let archived: HashSet<RecordId> = archived.into_iter().map(|line| line.id).collect();
        for folder in folders {
            let Some(id) = folder.file_name().to_str().and_then(|name| name.parse::<RecordId>().ok()) else {
                continue;
            };
            let Ok(meta) = folder.metadata() else { continue };
            let old = meta.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > GRACE));
            let known = snapshot.records.get(id).is_some() || archived.contains(&id);
            // a link is nobody's folder, and never followed
            if meta.is_dir() && old && !known {
                let _ = fs::remove_dir_all(folder.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Paths;

    #[test]
    fn what_nobody_knows_is_swept_and_nothing_while_the_store_is_broken() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let (store, state) = (at("s.json"), at("state"));
        let store =
            Store::open(Paths { store: store.clone(), frozen: at("frozen"), state, runtime: at("run") });
        let folders = at("state/sessions");
        let there = |name: &str| folders.join(name).symlink_metadata().is_ok();
        for name in ["00000001", "no-record"] {
            fs::create_dir_all(folders.join(name)).unwrap();
            fs::write(folders.join(name).join("prompt.md"), "P").unwrap();
        }
        fs::create_dir(at("elsewhere")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), folders.join("00000002")).unwrap();
        store.sweep_turns();
        assert!(there("00000001"), "a session is being begun");
        let later = SystemTime::now() + 2 * GRACE;
        fs::write(at("s.json"), "{").unwrap();
        store.sweep_turns_at(later);
        assert!(there("00000001"), "a store that cannot be read knows of none");
        fs::remove_file(at("s.json")).unwrap();
        store.sweep_turns_at(later);
        assert!(there("00000001"), "nor one that is not there");
        fs::write(at("s.json"), "{\"version\": 1, \"sessions\": []}\n").unwrap();
        store.sweep_turns_at(later);
        assert_eq!(
            ["00000001", "00000002", "no-record", "../../elsewhere"].map(there),
            [false, true, true, true]
        );
    }
}
