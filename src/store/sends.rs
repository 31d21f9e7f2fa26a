//! What was sent to a session: one send at a time, and a send under a key once.
//!
//! `<state>/sessions/<record id>/send.lock` is held while something is written into the pane. `sends.json` beside it holds the last
//! 256 keys, hashed, each with a hash of what was sent and, once that is known, its receipt. A key without a receipt is of a
//! send that was cut short: what became of it nobody knows. A file that cannot be read stays as it is: whether a key was sent is not
//! known then, and nothing is sent under one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::paths::{Paths, make_private};
use super::{StoreError, file, turns};
use crate::record::RecordId;

/// Keys that are remembered of one session.
const KEPT: usize = 256;
/// The most that is read of the file, in bytes.
const LIMIT: u64 = 1024 * 1024;
/// The format of the file.
const FORMAT: &str = "ait.sends.v1";

/// The sends of one session, held.
#[derive(Debug)]
pub struct Sends {
    folder: PathBuf,
    _held: File,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Earlier {
    /// Nothing: it is noted from now on.
    New,
    /// It was sent; its receipt.
    Done(Value),
    /// A send under it was cut short.
    CutShort,
    /// Something else was sent under it.
    Other,
    /// The file that would tell is broken.
    Unreadable(PathBuf),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    schema_version: String,
    sends: Vec<Line>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    key: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receipt: Option<Value>,
}

impl Sends {
    /// Waits for every other send to this session to end.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn hold(paths: &Paths, record: RecordId) -> Result<Self, StoreError> {
        let folder = turns::folder(paths, record);
        make_private(&folder)?;
        let path = folder.join("send.lock");
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = OpenOptions::new();
        file.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let held = file.open(&path).map_err(|error| StoreError::io("open", &path, error))?;
        flock(&held, FlockOperation::LockExclusive)
            .map_err(|error| StoreError::io("lock", &path, error.into()))?;
        Ok(Self { folder, _held: held })
    }

    /// Notes that this is about to be sent under this key, if nothing was.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin(&self, key: &str, sent: &[&[u8]]) -> Result<Earlier, StoreError> {
        let Some(mut written) = self.read()? else { return Ok(Earlier::Unreadable(self.path())) };
        let (key, digest) = (hash(&[key.as_bytes()]), hash(&[&[key.as_bytes()], sent].concat()));
        if let Some(line) = written.sends.iter().find(|line| line.key == key) {
            return Ok(match &line.receipt {
                _ if line.digest != digest => Earlier::Other,
                Some(receipt) => Earlier::Done(receipt.clone()),
                None => Earlier::CutShort,
            });
        }
        written.sends.push(Line { key, digest, receipt: None });
        self.write(written)?;
        Ok(Earlier::New)
    }

    /// Keeps the receipt of a key; without one nothing was sent, and the key is free again.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn end(&self, key: &str, receipt: Option<Value>) -> Result<(), StoreError> {
        // broken since it was begun: the key is in it as far as anybody can tell
        let Some(mut written) = self.read()? else { return Ok(()) };
        let key = hash(&[key.as_bytes()]);
        match receipt {
            Some(receipt) => {
                for line in written.sends.iter_mut().filter(|line| line.key == key) {
                    line.receipt = Some(receipt.clone());
                }
            }
            None => written.sends.retain(|line| line.key != key),
        }
        self.write(written)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("sends.json")
    }

    /// What is written; `None` if that is not in our format.
    fn read(&self) -> Result<Option<Written>, StoreError> {
        let path = self.path();
        let failed = |error| StoreError::io("read", &path, error);
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Written::default())),
            Err(error) => return Err(failed(error)),
        };
        let mut text = Vec::new();
        file.take(LIMIT).read_to_end(&mut text).map_err(failed)?;
        let written = serde_json::from_slice::<Written>(&text).ok();
        Ok(written.filter(|written| written.schema_version == FORMAT))
    }

    fn write(&self, mut written: Written) -> Result<(), StoreError> {
        let path = self.path();
        written.schema_version = FORMAT.to_owned();
        let spare = written.sends.len().saturating_sub(KEPT);
        written.sends.drain(..spare);
        let mut text =
            serde_json::to_vec(&written).map_err(|error| StoreError::io("print", &path, error.into()))?;
        text.push(b'\n');
        // a retry after a power cut must find it
        file::put(&path, &text, true)
    }
}

fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn held(folder: &std::path::Path) -> Sends {
        let _held = File::create(folder.join("send.lock")).unwrap();
        Sends { folder: folder.to_owned(), _held }
    }

    #[test]
    fn a_key_is_sent_once_and_means_one_text() {
        let folder = tempfile::tempdir().unwrap();
        let sends = held(folder.path());
        assert_eq!(sends.begin("k", &[b"text"]).unwrap(), Earlier::New);
        assert_eq!(sends.begin("k", &[b"text"]).unwrap(), Earlier::CutShort, "nobody came to its end");
        sends.end("k", Some(json!({"known": "typed"}))).unwrap();
        assert_eq!(sends.begin("k", &[b"text"]).unwrap(), Earlier::Done(json!({"known": "typed"})));
        assert_eq!(sends.begin("k", &[b"te", b"xt"]).unwrap(), Earlier::Other);
        let text = fs::read_to_string(folder.path().join("sends.json")).unwrap();
        assert!(!text.contains("text\""), "{text}");
        assert_eq!(sends.begin("other", &[b"text"]).unwrap(), Earlier::New);
        sends.end("other", None).unwrap();
        assert_eq!(sends.begin("other", &[b"text"]).unwrap(), Earlier::New, "it was refused before");
    }

    #[test]
    fn the_oldest_keys_go_first_and_a_broken_file_tells_nothing_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let sends = held(folder.path());
        for at in 0..KEPT + 2 {
            sends.begin(&at.to_string(), &[]).unwrap();
        }
        assert_eq!(sends.begin("2", &[]).unwrap(), Earlier::CutShort);
        assert_eq!(sends.begin("0", &[]).unwrap(), Earlier::New);
        let path = folder.path().join("sends.json");
        for broken in ["{", "", r#"{"schema_version":"ait.sends.v9","sends":[]}"#] {
            fs::write(&path, broken).unwrap();
            assert_eq!(sends.begin("2", &[]).unwrap(), Earlier::Unreadable(path.clone()), "{broken}");
            sends.end("2", Some(json!({}))).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), broken, "it is left for whoever can read it");
        }
    }
}
