//! Floor plans on disk: one file per life of a server, as long as it is the last that says where the agent of a record stood.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Store, StoreError, file, make_private};
use crate::record::{Record, RecordId, ServerEpoch};
use crate::world::plan::Plan;

/// The longest plan that is read, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;
/// Plans that are looked through.
const MOST: usize = 64;

impl Store {
    /// Keeps a plan in place of the one before of that life.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        make_private(&self.paths.plans())?;
        let path = self.plan_file(&plan.server);
        let text = serde_json::to_vec(plan).map_err(|e| StoreError::io("write", &path, e.into()))?;
        file::put(&path, &text, true)
    }

    /// The plan of that life of a server, if one was kept that can be read.
    #[must_use]
    pub fn plan(&self, server: &ServerEpoch) -> Option<Plan> {
        read(&self.plan_file(server)).filter(|plan| plan.server.is_same_life(server))
    }

    /// All plans that were kept and can be read, the latest first, `MOST` at the most.
    #[must_use]
    pub fn plans(&self) -> Vec<Plan> {
        let entries = fs::read_dir(self.paths.plans()).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(|entry| Some((entry.metadata().and_then(|meta| meta.modified()).ok()?, entry.path())))
            .collect();
        files.sort_by(|one, other| other.cmp(one));
        files.iter().take(MOST).filter_map(|(_, path)| read(path)).collect()
    }

    /// Removes the plans of lives that no record names, nor one of `ended`: what a shutdown ended first comes back with the rest.
    /// One that names an agent whose own server went before its plan was kept stays.
    pub fn sweep_plans<'a>(&self, ended: impl IntoIterator<Item = &'a Record>) {
        let Ok(snapshot) = self.read() else { return };
        let mut records: Vec<&Record> = ended.into_iter().collect();
        records.extend(snapshot.records.iter());
        let lives = || records.iter().filter_map(|record| record.ait.server.as_ref());
        let named: BTreeSet<PathBuf> = lives().map(|server| self.plan_file(server)).collect();
        let planned: BTreeSet<RecordId> = named
            .iter()
            .filter_map(|path| read(path))
            .flat_map(|plan| plan.agents().collect::<Vec<_>>())
            .collect();
        let wanted: BTreeSet<RecordId> =
            records.iter().map(|record| record.id).filter(|id| !planned.contains(id)).collect();
        for entry in fs::read_dir(self.paths.plans()).into_iter().flatten().flatten() {
            let path = entry.path();
            let still = named.contains(&path)
                || !wanted.is_empty()
                    && read(&path).is_some_and(|plan| plan.agents().any(|id| wanted.contains(&id)));
            if !still {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn plan_file(&self, server: &ServerEpoch) -> PathBuf {
        // FNV-1a: stable over versions, which the standard hasher is not
        let bytes = server.socket.bytes().chain([0]).chain(server.boot_id.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let started: String = server.started.chars().filter(char::is_ascii_alphanumeric).collect();
        self.paths.plans().join(format!("{hash:016x}-{}-{started}.json", server.pid))
    }
}

fn read(path: &Path) -> Option<Plan> {
    // what is no regular file (a pipe) would be waited for
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut text = Vec::new();
    fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text)).ok()?;
    serde_json::from_slice(&text).ok()
}
