//! What stands behind a record's pane: the agent's own process, the shell that may hold it, the server that started it.

use std::path::PathBuf;

use tmux_control::PaneId;

use crate::lifecycle::behind::agent;
use crate::process::{self, Table};
use crate::provider::Catalog;
use crate::record::{Host, ProcessId};
use crate::supervisor::{Examined, FoundServer, ShellHost};

/// Looks at the process of a pane and at what runs below it. `None` when it is gone or hidden, or when its start does not
/// hold still (a recycled pid). Agents are those of `catalog`.
pub(super) fn examine(pane: PaneId, pid: i32, catalog: &Catalog) -> Option<Examined> {
    let facts = process::facts(pid)?;
    let agent = Table::read().ok().and_then(|table| agent(&facts, &table, catalog));
    let examined = match agent {
        Some(found) => Examined {
            agent: found.process,
            shell: match found.host {
                Host::Pane => None,
                Host::Shell { argv, cwd } => Some(ShellHost { argv, cwd }),
            },
            argv: texts(&catalog.without_text(&found.kind, &found.facts.argv)),
            cwd: found.facts.cwd,
            server: server_of(pane, pid),
            pane_process: facts.id,
        },
        // no agent that is known: the pane's process stands for it, and of its arguments only the program is kept
        None => Examined {
            agent: facts.id.clone(),
            shell: None,
            argv: texts(facts.argv.get(..1).unwrap_or_default()),
            cwd: facts.cwd,
            server: server_of(pane, pid),
            pane_process: facts.id,
        },
    };
    // everything above was read by pid: it counts only if that is still the same process
    (process::start_of(pid).as_ref() == Some(&examined.pane_process.started)).then_some(examined)
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

fn texts(words: &[Vec<u8>]) -> Vec<String> {
    words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The folder tmux makes its sockets in, as this process's environment has it.
pub(super) fn socket_folder() -> PathBuf {
    let base = std::env::var_os("TMUX_TMPDIR").filter(|dir| !dir.is_empty()).unwrap_or_else(|| "/tmp".into());
    PathBuf::from(base).join(format!("tmux-{}", rustix::process::getuid().as_raw()))
}
