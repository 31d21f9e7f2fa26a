//! The agent behind a pane: its own process, or one below it, told by programs and arguments, never by a name.

use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;

use crate::process::{self, Facts, Table};
use crate::provider::{self, Hosting, Program, Provider};
use crate::record::{Host, ProcessId};

/// An agent found in a pane.
pub(crate) struct Agent {
    /// Which agent.
    pub(crate) provider: Provider,
    /// The process whose end is the agent's end.
    pub(crate) process: ProcessId,
    /// The provider's own process: its arguments and its folder count.
    pub(crate) facts: Facts,
    /// How it sits in its pane.
    pub(crate) host: Host,
}

/// The agent of a pane: the pane's own process, or the nearest one below it.
pub(crate) fn agent(own: &Facts, table: &Table) -> Option<Agent> {
    if let Some(provider) = recognised(own) {
        return Some(Agent { provider, process: own.id.clone(), facts: own.clone(), host: Host::Pane });
    }
    let below = table.descendants(own.id.pid).into_iter().filter_map(|id| {
        // the table is a moment old: a pid that was handed out again is another process
        process::facts(id.pid).filter(|facts| facts.id == id)
    });
    let (provider, facts) =
        below.into_iter().find_map(|facts| recognised(&facts).map(|provider| (provider, facts)))?;
    let exe = exe(own);
    Some(match provider::hosting(Program { exe: &exe, argv: &own.argv }) {
        // it ends when the agent ends, and tmux tells its status: to the pane it is the agent
        Hosting::Wrapper => Agent { provider, process: own.id.clone(), facts, host: Host::Pane },
        Hosting::Shell | Hosting::Other => {
            let argv = own.argv.iter().map(|word| word.to_str_lossy().into_owned()).collect();
            let cwd = own.cwd.as_deref().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default();
            Agent { provider, process: facts.id.clone(), facts, host: Host::Shell { argv, cwd } }
        }
    })
}

fn recognised(facts: &Facts) -> Option<Provider> {
    provider::recognise(Program { exe: &exe(facts), argv: &facts.argv })
}

fn exe(facts: &Facts) -> Vec<u8> {
    facts.exe.as_deref().map(|exe| exe.as_os_str().as_bytes().to_vec()).unwrap_or_default()
}
