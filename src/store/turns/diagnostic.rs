//! Why the last event of a record's hook was not taken as it should be; the file is gone once one was.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Paths, RecordId, Whose, folder};
use crate::store::{StoreError, file, make_private};
use crate::turn::Moment;

/// The file's name.
const NAME: &str = "activity.diagnostic.json";
/// Its format.
const FORMAT: &str = "ait.activity-diagnostic.v1";

/// What went wrong, as a code; nothing of what the hook was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    schema_version: String,
    /// The provider's short name.
    pub provider: String,
    /// The launch it is of.
    pub runtime_id: String,
    /// What went wrong: `provider-hook-invalid`, `provider-hook-too-large`, or the code of a turn that is not told.
    pub code: String,
    /// When.
    pub observed_at: Moment,
}

impl Diagnostic {
    /// The one of this launch, if there is one.
    #[must_use]
    pub fn read(paths: &Paths, whose: &Whose) -> Option<Self> {
        let text = fs::read(path(&folder(paths, whose.record))).ok()?;
        let read: Self = serde_json::from_slice(&text).ok()?;
        (read.schema_version == FORMAT && read.runtime_id == whose.runtime).then_some(read)
    }

    /// Writes that something went wrong, 0600.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write(paths: &Paths, whose: &Whose, code: &str, at: Moment) -> Result<(), StoreError> {
        let folder = folder(paths, whose.record);
        make_private(&folder)?;
        let said = Self {
            schema_version: FORMAT.to_owned(),
            provider: whose.provider.clone(),
            runtime_id: whose.runtime.clone(),
            code: code.to_owned(),
            observed_at: at,
        };
        let path = path(&folder);
        let text = serde_json::to_vec(&said).map_err(|error| StoreError::io("print", &path, error.into()))?;
        file::put(&path, &text, false)
    }

    /// An event was taken as it should be: nothing is wrong any more.
    pub fn clear(paths: &Paths, record: RecordId) {
        // there is none, as nearly always; one that cannot be removed is told by its time
        let _ = fs::remove_file(path(&folder(paths, record)));
    }
}

fn path(folder: &Path) -> std::path::PathBuf {
    folder.join(NAME)
}
