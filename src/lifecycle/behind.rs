//! The agent behind a pane: its own process, or one below it, told by programs and arguments, never by a name.

use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;

use crate::process::{self, Facts, Table};
use crate::provider::{self, Catalog, Hosting, Program, Provider};
use crate::record::{Host, ProcessId, RecordId};

/// An agent found in a pane.
pub(crate) struct Agent {
    /// Which agent: its provider's name.
    pub(crate) kind: String,
    /// The process whose end is the agent's end.
    pub(crate) process: ProcessId,
    /// The provider's own process: its arguments and its folder count.
    pub(crate) facts: Facts,
    /// How it sits in its pane.
    pub(crate) host: Host,
    /// The record that knows the shell, when that is still to come: `ait exec --below-shell` waits in its place.
    pub(crate) waits: Option<RecordId>,
}

/// The agent of a pane: the pane's own process, or the nearest one below it.
pub(crate) fn agent(own: &Facts, table: &Table, catalog: &Catalog) -> Option<Agent> {
    if let Some(kind) = recognised(own, catalog) {
        return Some(Agent {
            kind: kind.to_owned(),
            process: own.id.clone(),
            facts: own.clone(),
            host: Host::Pane,
            waits: None,
        });
    }
    let below = table.descendants(own.id.pid).into_iter().filter_map(|id| {
        // the table is a moment old: a pid that was handed out again is another process
        process::facts(id.pid).filter(|facts| facts.id == id)
    });
    let (kind, facts) = below
        .into_iter()
        .find_map(|facts| recognised(&facts, catalog).map(|kind| (kind.to_owned(), facts)))?;
    Some(match stays(own, &facts, table) {
        // all of them end when the agent ends, and tmux tells the status: to the pane its own process is the agent
        None => Agent { kind, process: own.id.clone(), facts, host: Host::Pane, waits: None },
        Some(shell) => {
            let waits = waits(&shell.argv);
            let argv = match waits {
                Some(_) => users_shell(&shell.id),
                None => shell.argv.iter().map(|word| word.to_str_lossy().into_owned()).collect(),
            };
            let cwd = shell.cwd.as_deref().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default();
            Agent { kind, process: facts.id.clone(), facts, host: Host::Shell { argv, cwd }, waits }
        }
    })
}

/// The record in the words of an `ait exec --below-shell`.
fn waits(argv: &[Vec<u8>]) -> Option<RecordId> {
    let (program, rest) = argv.split_first()?;
    let options = rest.strip_prefix(&[b"exec".to_vec()])?.split(|word| word == b"--").next()?;
    let own = program.rsplit(|byte| *byte == b'/').next() == Some(b"ait");
    let below = own && options.iter().any(|word| word == b"--below-shell");
    let at = options.iter().position(|word| word == b"--record").filter(|_| below)?;
    options.get(at + 1)?.to_str().ok()?.parse().ok()
}

/// The shell the user has by the environment of a process; no words where it does not say.
fn users_shell(process: &ProcessId) -> Vec<String> {
    let environment = process::environment(process.pid, &["SHELL"]).unwrap_or_default();
    let shell = environment.into_iter().find(|(name, _)| name == "SHELL");
    shell.and_then(|(_, value)| String::from_utf8(value).ok()).into_iter().collect()
}

/// The first process, from the pane's own down to the agent's parent, that stays when the agent ends: a wrapper may have been
/// started for a shell (`sh -c 'cd x; bash'`), into which the agent was typed.
fn stays(own: &Facts, agent: &Facts, table: &Table) -> Option<Facts> {
    let mut between = Vec::new();
    let mut above = agent.ppid;
    // a table is no snapshot: what does not lead up to the pane's process leads nowhere
    while above != own.id.pid && between.len() < table.rows().len() {
        let Some(row) = table.row(above) else { break };
        between.push(row.id.clone());
        above = row.ppid;
    }
    let between = between.into_iter().rev().filter_map(|id| {
        // as above: another process under that pid is none of ours
        process::facts(id.pid).filter(|facts| facts.id == id)
    });
    std::iter::once(own.clone()).chain(between).find(|facts| {
        match provider::hosting(Program { exe: &exe(facts), argv: &facts.argv }) {
            Hosting::Wrapper => false,
            Hosting::Shell | Hosting::Other => true,
        }
    })
}

/// The name of the provider a process is an agent of, if it is one.
pub(crate) fn recognised<'c>(facts: &Facts, catalog: &'c Catalog) -> Option<&'c str> {
    catalog.recognise(Program { exe: &exe(facts), argv: &facts.argv })
}

/// The provider that answers one prompt in this process and leaves, if it does.
pub(crate) fn prints(facts: &Facts) -> Option<Provider> {
    provider::prints(Program { exe: &exe(facts), argv: &facts.argv })
}

fn exe(facts: &Facts) -> Vec<u8> {
    facts.exe.as_deref().map(|exe| exe.as_os_str().as_bytes().to_vec()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_wait_for_a_shell_is_seen_through() {
        for (line, record) in [
            ("/usr/bin/ait|exec|--record|0a1b2c3d|--nonce|1|--below-shell|--|claude", Some("0a1b2c3d")),
            ("ait|exec|--below-shell|--record|0a1b2c3d|--|claude", Some("0a1b2c3d")),
            ("ait|exec|--record|0a1b2c3d|--|claude|--below-shell", None),
            ("ait|exec|--below-shell|--|claude|--record|0a1b2c3d", None),
            ("ait|exec|--below-shell|--record", None),
            ("bash|exec|--below-shell|--record|0a1b2c3d|--|claude", None),
            ("ait|status", None),
            ("ait", None),
        ] {
            let argv: Vec<Vec<u8>> = line.split('|').map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(waits(&argv), record.map(|record| record.parse().unwrap()), "{line}");
        }
    }
}
