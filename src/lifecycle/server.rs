//! Starting a tmux server in place of one that a crash took, so that it lives as long as the user's own would.
//!
//! In a systemd user scope of its own where a user manager answers, so that no end of a service or a login takes it along;
//! else as tmux does it, in a session of its own. With the environment of a login shell: ours may be that of a service. What marks
//! a child of some agent, and the secret of a control plane, is in neither.
//! Refuses to start a second server where one listens.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::process::{self, Opened, ProcessId, Watch};
use crate::provider;
use crate::store::make_private;
use crate::tmux::{OneShot, Probe, Unanswered, binary, probe, within};
use crate::watch::{Touched, Watcher};

/// How long a login shell may take to say its environment.
const LOGIN: Duration = Duration::from_secs(5);
/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);
/// Times it is tried: right after the end of one, tmux may meet what is left of it.
const TRIES: u32 = 5;
/// How long a sign that the socket is free is waited for between two tries: its folder changes, or who listened on it ends. What
/// was missed is made good by the next try.
const SIGN: Duration = Duration::from_millis(500);
/// The most that is read of an environment, in bytes.
const ENVIRONMENT: usize = 1024 * 1024;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// There is no `tmux`, or it cannot be asked.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// It is not known whether one listens: nothing is started beside it.
    #[error("it is not known whether a server listens on {socket}: {why}")]
    Unknown {
        /// The socket.
        socket: PathBuf,
        /// Why.
        why: String,
    },
    /// tmux did not start one.
    #[error("no server starts on {socket}: {words}")]
    Refused {
        /// The socket.
        socket: PathBuf,
        /// What it said last.
        words: String,
    },
}

/// Runs `new-session` with these words on a socket: on the server that listens there, else on one that is started for it.
/// Gives what the command printed, and whether a server was started.
///
/// # Errors
/// [`NotStarted`].
pub async fn new_session(socket: &Path, words: &[OsString]) -> Result<(Vec<u8>, bool), NotStarted> {
    let mut said = String::new();
    let mut holder = None;
    for turn in 0..TRIES {
        if turn > 0 {
            // nothing came: the next try says why
            let _ = tokio::time::timeout(SIGN, sign(socket, holder.take())).await;
        }
        match probe(socket) {
            Probe::Listening(peer) => match OneShot::new(socket)?.run(words).await {
                Ok(answer) => return Ok((answer, false)),
                Err(Unanswered::NoServer { words, .. } | Unanswered::Unreachable { words, .. }) => {
                    said = words.to_string();
                    holder = peer.pid.and_then(process::identify);
                }
                Err(other) => return Err(other.into()),
            },
            Probe::NoSocket | Probe::Refused => match start(socket, words).await? {
                Ok(answer) => return Ok((answer, true)),
                Err(words) => said = words,
            },
            Probe::Unknown(why) => {
                return Err(NotStarted::Unknown { socket: socket.to_owned(), why: why.to_string() });
            }
        }
    }
    Err(NotStarted::Refused { socket: socket.to_owned(), words: said })
}

/// Something that may have made the socket free: a change in its folder, or the end of who listened on it.
async fn sign(socket: &Path, holder: Option<ProcessId>) {
    let changed = async {
        let folder = socket.parent().unwrap_or(socket);
        match Watcher::new().and_then(|mut watcher| watcher.add(folder).map(|()| watcher)) {
            Ok(mut watcher) => match watcher.next().await {
                Touched::Path(_) | Touched::All => {}
            },
            Err(_) => std::future::pending().await,
        }
    };
    let ended = async {
        match holder.as_ref().map(Watch::open) {
            Some(Ok(Opened::Watching(watch))) if watch.died().await.is_ok() => {}
            Some(Ok(Opened::Gone)) => {}
            Some(Ok(Opened::Watching(_)) | Err(_)) | None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = changed => {}
        () = ended => {}
    }
}

/// One try; the inner error is what was said.
async fn start(socket: &Path, words: &[OsString]) -> Result<Result<Vec<u8>, String>, NotStarted> {
    let tmux = binary()?;
    if let Some(folder) = socket.parent()
        && let Err(error) = make_private(folder)
    {
        return Ok(Err(error.to_string()));
    }
    let environment = login_environment().await;
    let plain: Vec<OsString> = [tmux.into_os_string(), "-u".into(), "-S".into(), socket.into()]
        .into_iter()
        .chain(words.iter().cloned())
        .collect();
    if answers_for_user(&environment) {
        let scope = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--"].map(OsString::from);
        let scoped: Vec<OsString> = scope.into_iter().chain(plain.iter().cloned()).collect();
        if let Ok(answer) = run(&scoped, &environment).await {
            return Ok(Ok(answer));
        }
        // a manager that does not do it keeps nobody from having a server
    }
    Ok(run(&plain, &environment).await)
}

/// Whether the user's own service manager answers there.
fn answers_for_user(environment: &[(OsString, OsString)]) -> bool {
    let runtime = environment.iter().find(|(name, _)| name == "XDG_RUNTIME_DIR").map(|(_, value)| value);
    runtime.is_some_and(|runtime| {
        std::os::unix::net::UnixStream::connect(Path::new(runtime).join("systemd/private")).is_ok()
    })
}

async fn run(words: &[OsString], environment: &[(OsString, OsString)]) -> Result<Vec<u8>, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("no program".into()) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().filter(|(name, _)| !name.to_str().is_some_and(provider::scrub)).cloned())
        .env_remove("TMUX")
        .env_remove("TMUX_PANE")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let output = match within(START, command.output()).await {
        None => return Err(format!("no answer within {} s", START.as_secs())),
        Some(Err(error)) => return Err(error.to_string()),
        Some(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// The environment a login shell of this user gives, with what our own has of the places everything lies in; ours as it is
/// where no shell says.
async fn login_environment() -> Vec<(OsString, OsString)> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let ours = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = ours("HOME").or_else(|| user.as_ref().map(|user| user.dir.clone().into_os_string()));
    let shell = user.as_ref().map(|user| user.shell.clone()).filter(|shell| shell.is_absolute());
    let mut base: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: Option<OsString>| {
        base.extend(value.map(|value| (OsString::from(name), value)));
    };
    set("HOME", home);
    set("SHELL", shell.as_ref().map(|shell| shell.clone().into_os_string()));
    for name in ["USER", "LOGNAME"] {
        set(name, user.as_ref().map(|user| user.name.clone().into()));
    }
    for name in
        ["XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS", "LANG", "PATH"]
    {
        set(name, ours(name));
    }
    let shell = shell.unwrap_or_else(|| PathBuf::from("/bin/sh"));
    let said = tokio::time::timeout(LOGIN, ask(&shell, &base)).await.ok().flatten();
    said.unwrap_or_else(|| {
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        all.extend(base.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
        all
    })
}

/// What a login shell prints of its environment; its profile may print before.
async fn ask(shell: &Path, base: &[(OsString, OsString)]) -> Option<Vec<(OsString, OsString)>> {
    use tokio::io::AsyncReadExt;
    let mut command = Command::new(shell);
    command.as_std_mut().arg0("-ait");
    let mut child = command
        .args(["-l", "-c", "printf '\\001'; exec env -0"])
        .env_clear()
        .envs(base.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let mut said = Vec::new();
    child.stdout.take()?.take(ENVIRONMENT as u64).read_to_end(&mut said).await.ok()?;
    if !child.wait().await.ok()?.success() {
        return None;
    }
    let start = said.iter().position(|byte| *byte == 1)? + 1;
    let variables: Vec<(OsString, OsString)> = said[start..]
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let equals = line.iter().position(|byte| *byte == b'=')?;
            let value = line.get(equals + 1..)?;
            Some((OsStr::from_bytes(&line[..equals]).to_owned(), OsString::from_vec(value.to_vec())))
        })
        .filter(|(name, _)| !matches!(name.to_str(), Some("_" | "SHLVL" | "PWD" | "OLDPWD")))
        .collect();
    (!variables.is_empty()).then_some(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shell_that_talks_is_understood_and_one_that_fails_is_not() {
        let base = vec![("HOME".into(), "/".into()), ("PATH".into(), "/usr/bin:/bin".into())];
        let said = ask(Path::new("/bin/sh"), &base).await.unwrap();
        assert!(said.iter().any(|(name, value)| name == "HOME" && value == "/"), "{said:?}");
        assert_eq!(ask(Path::new("/bin/false"), &base).await, None);
        assert_eq!(ask(Path::new("/no/such/shell"), &base).await, None);
    }
}
