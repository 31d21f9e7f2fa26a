//! Scrollback and screen of a pane, with colours and without, written to where captures lie.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::Performer;
use crate::coordinator::Captured;
use crate::record::{Capture, PaneId};
use crate::tmux::OneShot;

/// The names of a capture's files in the record's folder.
const ANSI: &str = "capture.ansi";
const TXT: &str = "capture.txt";

impl Performer<'_> {
    /// Captures the record's pane; an earlier capture that holds more stays.
    pub(super) async fn capture(&self) -> Result<Captured, String> {
        let record = self.record.as_ref().ok_or("there is no record")?;
        let pane = record.location.pane_id().ok_or("its record names no pane")?;
        let (_, server) = self.server().ok_or("its record names no server")?;
        let server = server.map_err(|error| error.to_string())?;
        let ansi = text(&server, pane, self.world.capture_max_lines).await?;
        let lines = ansi.iter().filter(|byte| **byte == b'\n').count() as u64;
        let earlier = &record.capture;
        let there = !earlier.is_empty() && Path::new(&earlier.ansi).is_file();
        if there && earlier.lines > lines {
            return Ok(Captured { capture: earlier.clone(), kept_earlier: true });
        }
        let folder = self.world.store.paths().make_captures(self.id).map_err(|error| error.to_string())?;
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        // without colours only after the escapes are out: one question to tmux, so both show the same moment
        let plain = plain(&ansi);
        replace(&folder, TXT, &plain).and_then(|()| replace(&folder, ANSI, &ansi)).map_err(|error| {
            // half a capture is none; an earlier one the record names stays
            if !there {
                self.world.store.remove_captures(self.id);
            }
            failed(error)
        })?;
        let path = |name: &str| folder.join(name).to_str().map(str::to_owned).ok_or("its folder is no text");
        let capture = Capture { ansi: path(ANSI)?, lines, txt: path(TXT)? };
        Ok(Captured { capture, kept_earlier: false })
    }
}

/// What tmux shows of a pane: at most `cap` lines of history and the screen, wrapped lines joined, colours kept.
async fn text(server: &OneShot, pane: PaneId, cap: u32) -> Result<Vec<u8>, String> {
    let (pane, from) = (pane.to_string(), format!("-{cap}"));
    let words = ["capture-pane", "-p", "-e", "-J", "-S", from.as_str(), "-t", pane.as_str()];
    // 50,000 coloured lines are some ten megabytes
    let server = server.clone().limit(128 << 20);
    let mut answer = server.run(words).await.map_err(|error| error.to_string())?;
    // the empty rest of the screen is no output
    while answer.ends_with(b"\n\n") || answer == b"\n" {
        answer.pop();
    }
    Ok(answer)
}

/// The text without escape sequences.
pub(super) fn plain(ansi: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ansi.len());
    let mut bytes = ansi.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != 0x1b {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            // a control sequence ends with a letter or one of `@[\]^_`{|}~`
            Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
            // a string (a title, a link) ends with BEL or ST
            Some(b']' | b'P' | b'_' | b'^' | b'X') => loop {
                match bytes.next() {
                    None | Some(0x07) => break,
                    Some(0x1b) => {
                        bytes.next_if_eq(&b'\\');
                        break;
                    }
                    Some(_) => {}
                }
            },
            // a character set is one byte more
            Some(b'(' | b')' | b'*' | b'+') => drop(bytes.next()),
            Some(_) | None => {}
        }
    }
    // SI and SO switch character sets where tmux prints lines with them
    out.retain(|byte| *byte != 0x0e && *byte != 0x0f);
    out
}

/// Writes a file beside its place, syncs it and renames it there.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, folder.join(name)))
        .and_then(|()| fs::File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_escapes() {
        for (ansi, text) in [
            (&b"\x1b[1;31mred\x1b[0m plain"[..], "red plain"),
            (b"\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\ after", "link after"),
            (b"\x1b]0;title\x07x", "x"),
            (b"\x1b(0\x0eqqq\x0f\x1b(B", "qqq"),
            (b"a\nb\x1b", "a\nb"),
            (b"\x1b[", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain(ansi)), text);
        }
    }
}
