//! The launchd agent of macOS. Written from the manuals and untested.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::call::call;
use super::{Place, ServiceError, Start};

const LABEL: &str = "ait.supervise";
const MARK: &[u8] = b"<!-- Written by `ait setup`; `ait setup --remove` takes it away. -->";

/// Where the agent's description lies.
pub(super) fn path(place: &Place) -> PathBuf {
    place.home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"))
}

/// Whether it was written by us.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|part| part == MARK)
}

/// The description's text.
pub(super) fn plist(start: &Start, file: &Path) -> Result<Vec<u8>, ServiceError> {
    let mut out = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    out.extend_from_slice(MARK);
    out.extend_from_slice(b"\n<plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>");
    out.extend_from_slice(LABEL.as_bytes());
    out.extend_from_slice(b"</string>\n  <key>ProgramArguments</key>\n  <array>\n    <string>");
    out.extend(escaped(start.program.as_os_str().as_bytes(), "the path of ait", file)?);
    out.extend_from_slice(
        b"</string>\n    <string>supervise</string>\n  </array>\n  <key>RunAtLoad</key>\n  <true/>\n  \
          <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
          <key>AbandonProcessGroup</key>\n  <true/>\n  <key>EnvironmentVariables</key>\n  <dict>\n",
    );
    let path = start.path.iter().map(|path| ("PATH", path));
    for (name, value) in start.environment.iter().map(|(name, value)| (*name, value)).chain(path) {
        out.extend_from_slice(format!("    <key>{name}</key>\n    <string>").as_bytes());
        out.extend(escaped(value.as_bytes(), name, file)?);
        out.extend_from_slice(b"</string>\n");
    }
    out.extend_from_slice(b"  </dict>\n</dict>\n</plist>\n");
    Ok(out)
}

fn escaped(word: &[u8], what: &str, file: &Path) -> Result<Vec<u8>, ServiceError> {
    let mut out = Vec::with_capacity(word.len());
    for &byte in word {
        match byte {
            b'\n' | b'\r' => {
                return Err(ServiceError::LineEnd { what: what.to_owned(), path: file.to_owned() });
            }
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(other),
        }
    }
    Ok(out)
}

/// The number of the line, from 0, that names the program, and the program.
pub(super) fn program(bytes: &[u8]) -> Option<(usize, PathBuf)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.lines().position(|line| line.trim() == "<array>")? + 1;
    let word = text.lines().nth(at)?.trim().strip_prefix("<string>")?.strip_suffix("</string>")?;
    let word = word.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some((at, PathBuf::from(OsString::from_vec(word.into_bytes()))))
}

/// Starts it at every login and now.
pub(super) async fn register(place: &Place) -> Result<(), ServiceError> {
    let domain = format!("gui/{}", place.uid);
    let file = path(place);
    // one that is loaded already keeps its old text
    if let Err(absent) = call(&["launchctl", "bootout", &format!("{domain}/{LABEL}")]).await {
        tracing::debug!("{absent}");
    }
    call(&["launchctl", "bootstrap", &domain, &file.to_string_lossy()]).await.map(drop)
}

/// Stops it and starts it no more.
pub(super) async fn unregister(place: &Place) -> Result<(), ServiceError> {
    call(&["launchctl", "bootout", &format!("gui/{}/{LABEL}", place.uid)]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_the_program() {
        let start = Start {
            program: "/Users/u/a & <b>/ait".into(),
            environment: vec![("TMUX_TMPDIR", "/tmp".into())],
            path: None,
        };
        let bytes = plist(&start, Path::new("f")).unwrap();
        assert!(is_ours(&bytes));
        assert_eq!(program(&bytes).map(|(_, program)| program), Some(start.program));
    }
}
