//! Which agent ran the hook: the processes above it, up to those of its pane.
//!
//! The nearest agent above is the one that speaks. It is heard only if no other agent stands above it in its pane: what an
//! agent starts by its tools has the same hooks. A wrapper of the same provider (`node codex` above `codex`) is the agent
//! itself.

use crate::lifecycle::behind::{prints, recognised};
use crate::lifecycle::shared::{KIND, is_server};
use crate::process::{self, Facts};
use crate::provider::{Catalog, Provider};
use crate::record::ProcessId;

/// Ancestors looked at.
const DEPTH: usize = 64;

/// Who speaks.
#[derive(Debug)]
pub(super) enum Speaker {
    /// An agent of that provider, at the root of its pane.
    Agent(Line),
    /// An agent below another one.
    Nested {
        /// The one above.
        below: i32,
    },
    /// The nearest agent is of another provider, of this name.
    Other(String),
    /// The provider's program, which prints one answer and leaves: a tool, whoever started it.
    Prints,
    /// The provider's shared server, which runs the turns of several agents.
    Shared(ProcessId),
    /// No agent of that provider, in a pane: somebody's own call.
    Nobody,
    /// Not in tmux at all.
    Elsewhere,
}

/// An agent's processes.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// From the one that ran the hook up to the pane's own, nearest first.
    pub(super) processes: Vec<ProcessId>,
    /// The provider's outermost own process.
    pub(super) agent: ProcessId,
}

/// Who speaks through the hook that is this process: one of the provider `kind`. Agents are those of `catalog`.
pub(super) fn speaker(kind: &str, catalog: &Catalog) -> Speaker {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let (above, in_tmux) = ancestors(parent);
    // the shared server is in no pane, whoever started it
    if !in_tmux && !above.iter().any(|facts| is_server(&facts.argv)) {
        return Speaker::Elsewhere;
    }
    judge(kind, &above, catalog)
}

/// The agent of the provider `kind` whose outermost own process is `pid`, as [`speaker`] would tell it.
pub(super) fn agent_at(pid: i32, kind: &str, catalog: &Catalog) -> Speaker {
    match ancestors(pid) {
        (above, true) => judge(kind, &above, catalog),
        (_, false) => Speaker::Elsewhere,
    }
}

fn judge(kind: &str, above: &[Facts], catalog: &Catalog) -> Speaker {
    let known: Vec<Option<&str>> = above
        .iter()
        .map(|facts| recognised(facts, catalog).or_else(|| prints(facts).map(Provider::name)))
        .collect();
    let nearest = known.iter().position(Option::is_some);
    if let Some(at) = above.iter().position(|facts| is_server(&facts.argv)) {
        // whoever started it is its parent, and no turn of its is that one's more than another's
        let server = above[at].id.clone();
        return match nearest {
            Some(nearest) if nearest < at => Speaker::Nested { below: server.pid },
            _ if kind == KIND => Speaker::Shared(server),
            _ => Speaker::Nobody,
        };
    }
    let Some(nearest) = nearest else { return Speaker::Nobody };
    if let Some(other) = known[nearest]
        && other != kind
    {
        return Speaker::Other(other.to_owned());
    }
    if prints(&above[nearest]).is_some() {
        return Speaker::Prints;
    }
    let mut outermost = nearest;
    while known.get(outermost + 1) == Some(&Some(kind))
        && is_wrapper(&above[outermost + 1], &above[outermost])
    {
        outermost += 1;
    }
    if let Some(further) = known.iter().skip(outermost + 1).position(Option::is_some) {
        return Speaker::Nested { below: above[outermost + 1 + further].id.pid };
    }
    Speaker::Agent(Line {
        processes: above[nearest..].iter().map(|facts| facts.id.clone()).collect(),
        agent: above[outermost].id.clone(),
    })
}

/// Whether a process only started the one below it, as the npm packages do: the same job, and the same arguments as far as
/// titles have left them. What an agent's tool starts is another job.
fn is_wrapper(above: &Facts, below: &Facts) -> bool {
    above.pgrp == below.pgrp && (arguments(above).ends_with(arguments(below)) || arguments(below).is_empty())
}

fn arguments(facts: &Facts) -> &[Vec<u8>] {
    let words = facts.argv.get(1..).unwrap_or(&[]);
    let end = words.iter().rposition(|word| !word.is_empty()).map_or(0, |at| at + 1);
    &words[..end]
}

/// The process `pid` and those above it up to a tmux server's child; whether there is such a server.
fn ancestors(mut pid: i32) -> (Vec<Facts>, bool) {
    let mut above = Vec::new();
    while pid > 1 && above.len() < DEPTH {
        let Some(facts) = process::facts(pid) else { break };
        if facts.comm.starts_with(b"tmux") {
            return (above, true);
        }
        pid = facts.ppid;
        above.push(facts);
    }
    (above, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, pgrp: i32, argv: &[&str]) -> Facts {
        Facts {
            id: ProcessId::new(pid, "1"),
            ppid: 0,
            pgrp,
            comm: Vec::new(),
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            exe: None,
            cwd: None,
        }
    }

    fn heard(provider: Provider, above: &[Facts]) -> String {
        match judge(provider.name(), above, &Catalog::default()) {
            Speaker::Agent(line) => {
                let pids: Vec<i32> = line.processes.iter().map(|id| id.pid).collect();
                format!("{pids:?} {}", line.agent.pid)
            }
            Speaker::Nested { below } => format!("nested {below}"),
            Speaker::Other(other) => other,
            Speaker::Prints => "prints".to_owned(),
            Speaker::Shared(server) => format!("shared {}", server.pid),
            Speaker::Nobody => "nobody".to_owned(),
            Speaker::Elsewhere => "elsewhere".to_owned(),
        }
    }

    #[test]
    fn the_agent_at_the_root_of_its_pane_speaks_and_no_other() {
        let sh = |pid| process(pid, pid, &["/bin/sh", "-c", "ait hook Stop --provider claude"]);
        let claude = |pid, pgrp| process(pid, pgrp, &["claude", "--model", "x"]);
        let shell = process(1, 1, &["-bash"]);
        assert_eq!(heard(Provider::Claude, &[sh(9), claude(5, 5), shell.clone()]), "[5, 1] 5");
        assert_eq!(heard(Provider::Claude, &[sh(9), claude(5, 5)]), "[5] 5");
        let printing = process(8, 7, &["claude", "-p", "x"]);
        let tool = process(7, 7, &["bash", "-c", "claude x"]);
        assert_eq!(heard(Provider::Claude, &[sh(9), printing.clone(), shell.clone()]), "prints");
        assert_eq!(heard(Provider::Claude, &[sh(9), printing.clone(), tool.clone(), claude(5, 5)]), "prints");
        assert_eq!(heard(Provider::Claude, &[sh(9), printing, claude(5, 5)]), "prints", "without a shell");
        let inner = process(8, 7, &["claude", "x"]);
        assert_eq!(heard(Provider::Claude, &[sh(9), inner.clone(), tool, claude(5, 5)]), "nested 5");
        assert_eq!(
            heard(Provider::Claude, &[sh(9), inner, claude(5, 5)]),
            "nested 5",
            "started without a shell"
        );
        let codex = process(4, 4, &["codex"]);
        assert_eq!(heard(Provider::Claude, &[sh(9), claude(5, 5), codex.clone()]), "nested 4");
        assert_eq!(heard(Provider::Claude, &[sh(9), codex]), "codex");
        assert_eq!(heard(Provider::Claude, &[sh(9), shell]), "nobody");
    }

    #[test]
    fn a_wrapper_of_the_same_job_is_the_agent_itself() {
        let node = process(5, 5, &["node", "/usr/bin/codex", "resume", "x"]);
        let codex = process(6, 5, &["/opt/codex", "resume", "x"]);
        let shell = process(1, 1, &["-bash"]);
        assert_eq!(heard(Provider::Codex, &[codex.clone(), node.clone(), shell]), "[6, 5, 1] 5");
        let other = process(6, 5, &["/opt/codex", "another prompt"]);
        assert_eq!(heard(Provider::Codex, &[other, node]), "nested 5");
    }

    #[test]
    fn the_shared_server_speaks_for_nobody_above_it() {
        let sh = process(9, 9, &["/bin/sh", "-c", "ait hook Stop --provider codex"]);
        let server = process(7, 7, &["codex", "app-server", "--listen", "unix://"]);
        let first = process(5, 5, &["codex"]);
        let line = [sh.clone(), server.clone(), first.clone()];
        assert_eq!(heard(Provider::Codex, &line), "shared 7");
        assert_eq!(heard(Provider::Codex, &line[..2]), "shared 7", "whoever started it is gone");
        assert_eq!(heard(Provider::Claude, &line), "nobody");
        let inner = process(8, 8, &["codex", "--no-daemon", "x"]);
        assert_eq!(heard(Provider::Codex, &[sh.clone(), inner, server, first.clone()]), "nested 7");
        let own = process(7, 7, &["codex", "app-server", "--listen", "stdio://"]);
        assert_eq!(heard(Provider::Codex, &[sh, own, first]), "[5] 5", "a server of one alone");
    }
}
