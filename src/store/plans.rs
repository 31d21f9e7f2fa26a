//! Floor plans on disk: one file per life of a server, as long as a record names that life.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use super::{Store, StoreError, checkpoint, make_private};
use crate::record::{Record, ServerEpoch};
use crate::world::plan::Plan;

/// The longest plan that is read, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;

impl Store {
    /// Keeps a plan in place of the one before of that life.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        make_private(&self.paths.plans())?;
        let path = self.plan_file(&plan.server);
        let text = serde_json::to_vec(plan).map_err(|e| StoreError::io("write", &path, e.into()))?;
        checkpoint::write(&path, &text)
    }

    /// The plan of that life of a server, if one was kept that can be read.
    #[must_use]
    pub fn plan(&self, server: &ServerEpoch) -> Option<Plan> {
        let path = self.plan_file(server);
        let mut text = Vec::new();
        // what is no regular file (a pipe) would be waited for
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text)).ok()?;
        let plan: Plan = serde_json::from_slice(&text).ok()?;
        plan.server.is_same_life(server).then_some(plan)
    }

    /// Removes the plans of lives that no record names, nor one of `ended`: what a shutdown ended first comes back with the rest.
    pub fn sweep_plans<'a>(&self, ended: impl IntoIterator<Item = &'a Record>) {
        let Ok(snapshot) = self.read() else { return };
        let plan_of = |record: &Record| record.ait.server.as_ref().map(|server| self.plan_file(server));
        let mut named: Vec<PathBuf> = snapshot.records.iter().filter_map(plan_of).collect();
        named.extend(ended.into_iter().filter_map(plan_of));
        for entry in fs::read_dir(self.paths.plans()).into_iter().flatten().flatten() {
            if !named.contains(&entry.path()) {
                let _ = fs::remove_file(entry.path());
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
