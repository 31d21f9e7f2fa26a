//! What `ait` meets on this machine: the tmux on PATH, the locale, and which socket folder each process sees.

use std::path::{Path, PathBuf};

use tmux_control::Version;

use super::faults;
use super::finding::Finding;
use crate::cli::print::shown;
use crate::cli::setup::diff::shown_path;
use crate::cli::sockets as own_sockets;
use crate::tmux;

/// The tmux on PATH and its faults.
pub(super) async fn tmux() -> Vec<Finding> {
    let binary = match tmux::binary() {
        Ok(binary) => binary,
        Err(wrong) => return vec![Finding::bad("tmux", wrong.to_string()).hint("install tmux 3.2 or later")],
    };
    let name = shown_path(&binary);
    let said = match crate::cli::tmux_says(&binary).await {
        Ok(said) => said,
        Err(wrong) => return vec![Finding::bad("tmux", wrong.to_string().trim_end().to_owned())],
    };
    let Some(version) = Version::parse(said.trim_ascii()) else {
        return vec![Finding::bad("tmux", format!("{name} -V says {}", shown(said.trim_ascii())))];
    };
    if version < Version::release(3, 2, None) {
        let old = Finding::bad("tmux", format!("{name} is tmux {version}; 3.2 or later is needed"));
        return vec![old.hint("install a newer tmux")];
    }
    let mut all = vec![Finding::good("tmux", format!("{version} ({name})"))];
    all.extend(faults::of(version, has_utempter(&binary)));
    all
}

/// Whether a tmux is built with libutempter: the name of the library stands in the program then.
fn has_utempter(binary: &Path) -> Option<bool> {
    const NAME: &[u8] = b"libutempter";
    let program = std::fs::read(binary).ok()?;
    // a wrapper script says nothing about the tmux it runs
    program.starts_with(b"\x7fELF").then(|| program.windows(NAME.len()).any(|part| part == NAME))
}

/// The character set. `tmux` is always called with `-u`; programs in panes follow the user's own.
pub(super) fn locale() -> Finding {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let value = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let is_utf8 = |value: &String| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    };
    match value {
        Some(value) if is_utf8(&value) => Finding::good("locale", value),
        other => Finding::note(
            "locale",
            format!(
                "{} is no UTF-8 locale; ait is not disturbed by it, agents in panes may draw badly",
                other.unwrap_or_else(|| "C".to_owned())
            ),
        ),
    }
}

/// The socket folder as this process sees it, and as the supervisor does.
pub(super) fn sockets(supervisor: Option<i32>) -> Vec<Finding> {
    let here = own_sockets::folder();
    let mut all = vec![folder(&here)];
    if let Some(own) = own_sockets::own()
        && own.parent().is_some_and(|folder| own_sockets::resolved(folder) != own_sockets::resolved(&here))
    {
        all.push(Finding::note(
            "sockets",
            format!("this shell is on a server elsewhere: {}", shown_path(&own)),
        ));
    }
    let Some(pid) = supervisor else { return all };
    if let (Some(ours), Some(theirs)) = (namespace("self"), namespace(&pid.to_string()))
        && ours != theirs
    {
        all.push(
            Finding::bad(
                "sockets",
                format!(
                    "the supervisor (pid {pid}) sees other files than this shell: its /tmp may be its own"
                ),
            )
            .hint(
                "a service with PrivateTmp does not see your tmux sockets; start the supervisor without it",
            ),
        );
    }
    match crate::process::environment(pid, &["TMUX_TMPDIR"]) {
        Ok(variables) => {
            let value = variables.into_iter().map(|(_, value)| value).find(|value| !value.is_empty());
            let base = value.map_or_else(|| PathBuf::from("/tmp"), |value| PathBuf::from(bytes(value)));
            let theirs = base.join(here.file_name().unwrap_or_default());
            if theirs != here && theirs.canonicalize().ok() != here.canonicalize().ok() {
                all.push(
                    Finding::bad(
                        "sockets",
                        format!(
                            "the supervisor looks in {}, this shell in {}",
                            shown_path(&theirs),
                            shown_path(&here)
                        ),
                    )
                    .hint("run `ait setup` with TMUX_TMPDIR as your shells have it"),
                );
            }
        }
        Err(wrong) => {
            all.push(Finding::note("sockets", format!("what the supervisor sees is unknown: {wrong}")))
        }
    }
    all
}

fn folder(path: &Path) -> Finding {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let name = shown_path(path);
    match path.metadata() {
        Ok(meta) => {
            let mode = meta.permissions().mode() & 0o7777;
            if meta.uid() != rustix::process::geteuid().as_raw() {
                Finding::bad("sockets", format!("{name} belongs to user {}", meta.uid()))
            } else if mode & 0o007 != 0 {
                // tmux itself refuses such a folder
                Finding::bad("sockets", format!("{name} is open to others (mode {mode:04o})"))
                    .hint(format!("chmod 700 {name}"))
            } else {
                Finding::good("sockets", format!("{name} ({mode:04o})"))
            }
        }
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {
            Finding::note("sockets", format!("{name} is not there: no server runs in it"))
        }
        Err(wrong) => Finding::bad("sockets", format!("{name} cannot be looked at: {wrong}")),
    }
}

/// Linux: the mount namespace a process lives in.
fn namespace(pid: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

fn bytes(value: Vec<u8>) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(value)
}
