//! What stands behind a record's pane: the agent's own process, the shell that may hold it, the server that started it.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use tmux_control::PaneId;

use crate::process::{self, Facts};
use crate::provider::{self, Program, Provider};
use crate::record::ProcessId;
use crate::supervisor::{Examined, FoundServer, ShellHost};

/// Shells whose children are jobs of the user's.
const SHELLS: &[&[u8]] =
    &[b"sh", b"bash", b"zsh", b"fish", b"dash", b"ksh", b"mksh", b"tcsh", b"csh", b"ash", b"nu", b"elvish", b"xonsh"];

/// Looks at the process of a pane and at what runs below it. `None` when it is gone or hidden, or when its start does not
/// hold still (a recycled pid).
pub(super) fn examine(pane: PaneId, pid: i32) -> Option<Examined> {
    let facts = process::facts(pid)?;
    let (agent, shell) = agent_of(&facts);
    let examined = Examined {
        pane_process: facts.id.clone(),
        agent: agent.id.clone(),
        shell: shell.then(|| ShellHost { argv: texts(&facts.argv), cwd: facts.cwd.clone() }),
        server: server_of(pane, pid),
        argv: shown_argv(&agent),
        cwd: agent.cwd.clone(),
    };
    // everything above was read by pid: it counts only if that is still the same process
    (process::start_of(pid).as_ref() == Some(&examined.pane_process.started)).then_some(examined)
}

/// The agent, and whether it is a job of an interactive shell.
fn agent_of(pane: &Facts) -> (Facts, bool) {
    if provider_of(pane).is_some() || !is_shell(pane) {
        return (pane.clone(), false);
    }
    let below = process::descendants(pane.id.pid).unwrap_or_default();
    let agent = below
        .iter()
        .filter_map(|child| process::facts(child.pid).filter(|facts| facts.id == *child))
        .find(|facts| provider_of(facts).is_some());
    match agent {
        Some(agent) => (agent, is_interactive(pane)),
        None => (pane.clone(), false),
    }
}

fn provider_of(facts: &Facts) -> Option<Provider> {
    let exe = facts.exe.clone().map(|exe| exe.into_os_string().into_vec()).unwrap_or_default();
    provider::recognise(Program { exe: &exe, argv: &facts.argv })
}

fn is_shell(facts: &Facts) -> bool {
    let called = facts.argv.first().map(Vec::as_slice).unwrap_or_default();
    let name = called.rsplit(|b| *b == b'/').next().unwrap_or(called);
    let name = name.strip_prefix(b"-").unwrap_or(name);
    SHELLS.contains(&name) || SHELLS.contains(&facts.comm.as_slice())
}

/// A shell that was given a command or a script ends with it: the pane is the agent's, not the user's.
fn is_interactive(shell: &Facts) -> bool {
    shell.argv.iter().skip(1).all(|argument| {
        let flag = argument.starts_with(b"-") || argument.starts_with(b"+");
        let command = flag && !argument.starts_with(b"--") && argument.contains(&b'c');
        flag && !command
    })
}

/// The server that started the pane's process, by the environment it was started with.
fn server_of(pane: PaneId, pid: i32) -> Option<FoundServer> {
    let env = process::tmux_of(pid).ok()??;
    // another pane's environment: this process was not started by tmux for this pane
    if env.pane.is_some_and(|at| at != pane.0) {
        return None;
    }
    let started = process::start_of(env.server_pid)?;
    Some(FoundServer { socket: env.socket, process: ProcessId::new(env.server_pid, started) })
}

/// The arguments as a record may keep them: no prompt text.
fn shown_argv(agent: &Facts) -> Vec<String> {
    match provider_of(agent) {
        Some(_) => provider::without_text(&agent.argv)
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
        // not a known agent: its program alone
        None => texts(agent.argv.get(..1).unwrap_or_default()),
    }
}

fn texts(words: &[Vec<u8>]) -> Vec<String> {
    words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Folders tmux makes its sockets in: the user's own, and the default one.
pub(super) fn socket_folder() -> PathBuf {
    let base = std::env::var_os("TMUX_TMPDIR").filter(|dir| !dir.is_empty()).unwrap_or_else(|| "/tmp".into());
    PathBuf::from(base).join(format!("tmux-{}", rustix::process::getuid().as_raw()))
}
