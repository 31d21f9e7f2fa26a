//! The systemd user unit.
//!
//! `KillMode=process`: stopping, restarting or upgrading the supervisor ends the supervisor alone, never a tmux server or
//! an agent that happens to live in its control group.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::call::call;
use super::{Place, ServiceError, Start};

const UNIT: &str = "ait.service";
const FIRST: &[u8] = b"# Written by `ait setup`; `ait setup --remove` takes it away.\n";

/// Where the unit lies.
pub(super) fn path(place: &Place) -> PathBuf {
    place.config().join("systemd/user").join(UNIT)
}

/// Whether a unit was written by us.
pub(super) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(FIRST)
}

/// The unit's text.
pub(super) fn unit(start: &Start, file: &Path) -> Result<Vec<u8>, ServiceError> {
    let mut out = FIRST.to_vec();
    out.extend_from_slice(
        b"[Unit]\nDescription=ait: keeps coding agents alive across everything that happens to tmux\n\n[Service]\n\
          Type=notify\nExecStart=",
    );
    out.extend(quoted(start.program.as_os_str().as_bytes(), "the path of ait", file, true)?);
    out.extend_from_slice(b" supervise\nKillMode=process\nRestart=on-failure\n");
    let path = start.path.iter().map(|path| ("PATH", path));
    for (name, value) in start.environment.iter().map(|(name, value)| (*name, value)).chain(path) {
        out.extend_from_slice(b"Environment=");
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        out.extend(quoted(&pair, name, file, false)?);
        out.push(b'\n');
    }
    out.extend_from_slice(b"\n[Install]\nWantedBy=default.target\n");
    Ok(out)
}

/// A word in double quotes; `%` is doubled, and `$` too on a command line.
fn quoted(word: &[u8], what: &str, file: &Path, command: bool) -> Result<Vec<u8>, ServiceError> {
    let mut out = vec![b'"'];
    for &byte in word {
        match byte {
            b'\n' | b'\r' => {
                return Err(ServiceError::LineEnd { what: what.to_owned(), path: file.to_owned() });
            }
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'%' => out.extend_from_slice(b"%%"),
            b'$' if command => out.extend_from_slice(b"$$"),
            other => out.push(other),
        }
    }
    out.push(b'"');
    Ok(out)
}

/// The number of the line, from 0, that names the program, and the program.
pub(super) fn program(bytes: &[u8]) -> Option<(usize, PathBuf)> {
    let (at, line) =
        bytes.split(|b| *b == b'\n').enumerate().find(|(_, line)| line.starts_with(b"ExecStart="))?;
    let mut word = line.strip_prefix(b"ExecStart=")?.iter().copied().peekable();
    let in_quotes = word.next_if_eq(&b'"').is_some();
    let mut program = Vec::new();
    while let Some(byte) = word.next() {
        match byte {
            b'"' if in_quotes => break,
            b' ' if !in_quotes => break,
            b'\\' => program.extend(word.next()),
            b'%' | b'$' => {
                program.push(byte);
                word.next_if_eq(&byte);
            }
            other => program.push(other),
        }
    }
    Some((at, PathBuf::from(OsString::from_vec(program))))
}

/// Whether a user manager answers.
pub(super) async fn answers() -> bool {
    call(&["systemctl", "--user", "show", "--property=Version"]).await.is_ok_and(|said| !said.is_empty())
}

/// Reads the unit, starts it at every login and now.
pub(super) async fn register() -> Result<(), ServiceError> {
    call(&["systemctl", "--user", "daemon-reload"]).await?;
    call(&["systemctl", "--user", "enable", UNIT]).await?;
    // a unit that changed is started anew: `start` would leave the old one running
    call(&["systemctl", "--user", "restart", UNIT]).await.map(drop)
}

/// Stops it and starts it no more.
pub(super) async fn unregister() -> Result<(), ServiceError> {
    if !answers().await {
        return Ok(());
    }
    call(&["systemctl", "--user", "disable", "--now", UNIT]).await.map(drop)
}

/// Forgets the unit. It is gone from the disk; a manager that does not answer reads no unit either.
pub(super) async fn forget() {
    if let Err(unanswered) = call(&["systemctl", "--user", "daemon-reload"]).await {
        tracing::info!("{unanswered}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_says_what_is_to_be_started() {
        let start = Start {
            program: "/opt/50% off/$x/\"ait\"".into(),
            environment: vec![("TMUX_TMPDIR", "/run/user/1".into())],
            path: Some("/usr/bin:/home/u/b%in".into()),
        };
        let bytes = unit(&start, Path::new("f")).unwrap();
        assert!(is_ours(&bytes));
        assert_eq!(program(&bytes), Some((6, start.program.clone())));
        let text = String::from_utf8(bytes).unwrap();
        for line in [
            "Type=notify",
            "KillMode=process",
            "ExecStart=\"/opt/50%% off/$$x/\\\"ait\\\"\" supervise",
            "Environment=\"TMUX_TMPDIR=/run/user/1\"",
            "Environment=\"PATH=/usr/bin:/home/u/b%%in\"",
            "WantedBy=default.target",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }
}
