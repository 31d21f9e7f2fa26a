//! Task files that are kept up to date by themselves, where the user wants that (`tracking`): an agent that was linked into one has
//! its entry brought up to date when its conversation becomes known or is another one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Driver;
use crate::lifecycle::task_file;
use crate::record::{Record, RecordId};

/// Which conversation of which agent was written where.
pub(super) type Tracked = BTreeMap<RecordId, (String, String)>;

impl Driver {
    /// Writes what has changed. Nothing where the user does not want it.
    pub(super) fn track(&mut self) {
        let Some(before) = &self.tracked else { return };
        let entry = |record: &Record| {
            let file = record.ait.task_file.clone()?;
            let known = !record.codeagent_session_id.is_empty();
            known.then(|| (record.id, (file, record.codeagent_session_id.clone())))
        };
        let now: Tracked = self.supervisor.live_records().filter_map(entry).collect();
        let changed: Vec<Record> = now
            .iter()
            .filter(|(id, entry)| before.get(id) != Some(entry))
            .filter_map(|(id, _)| self.supervisor.record(*id).cloned())
            .collect();
        self.tracked = Some(now);
        if changed.is_empty() {
            return;
        }
        let (paths, catalog) = (self.paths.clone(), Arc::clone(&self.catalog));
        // on a disk of the user's, which may be slow: away from the loop, and from what writes the store
        tokio::task::spawn_blocking(move || {
            for record in changed {
                let Some(file) = record.ait.task_file.as_ref().map(PathBuf::from) else { continue };
                match task_file::link(&paths, &file, &[task_file::link_of(&catalog, &record)]) {
                    Ok(true) => tracing::info!(record = %record.id, "its task file is brought up to date"),
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(record = %record.id, %error, "its task file is left as it is")
                    }
                }
            }
        });
    }
}
