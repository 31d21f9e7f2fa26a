//! `<state>/hook.log`: one line for each event that was let go or had to wait. Bounded, and never in the way.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use crate::store::{Paths, make_private};

/// Where the log is turned over, in bytes; the one before is kept beside it.
const LIMIT: u64 = 256 * 1024;
/// The longest line, in bytes.
const LINE: usize = 1024;

/// Writes a line, if that can be done.
pub(super) fn line(paths: &Paths, provider: &str, event: &str, what: &str) {
    let path = paths.state.join("hook.log");
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > LIMIT) {
        let _ = fs::rename(&path, path.with_extension("log.1"));
    }
    let _ = make_private(&paths.state);
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let text = format!("{time} {provider} {event}: {what}");
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(LINE));
    text.push('\n');
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    // a log that cannot be written is no reason to disturb an agent
    let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
}
