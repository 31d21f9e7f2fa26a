//! The processes in an agent's pane: which of them go with the agent, and which are none of its own.

use crate::record::ProcessId;

/// A process in a pane's family, or in its agent's process group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kin {
    /// Who it is.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgrp: i32,
    /// What it is called, for a reader.
    pub name: String,
    /// It serves other panes too (the shared `app-server` of Codex): it is never ended, nor is what is below it.
    pub shared: bool,
    /// What it has of memory to itself, in bytes; 0 where nobody can say.
    pub memory: u64,
}

/// A pane's process and all below it, and who else is in their process groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// All of them, in no order. The coordinator's own process and what is below it are left out.
    pub kin: Vec<Kin>,
}

/// Memory for a reader, `310 MB`.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

impl Family {
    /// The process of this pid and start.
    #[must_use]
    pub fn get(&self, id: &ProcessId) -> Option<&Kin> {
        self.kin.iter().find(|kin| kin.id == *id)
    }

    /// Everything below a process, nearest first; what serves other panes is left out with what is below it.
    #[must_use]
    pub fn below(&self, root: &ProcessId) -> Vec<&Kin> {
        let mut found: Vec<&Kin> = self.children(root.pid);
        let mut next = 0;
        while let Some(parent) = found.get(next).map(|kin| kin.id.pid) {
            for child in self.children(parent) {
                // a table is no snapshot: a pid that was handed out meanwhile must not make a loop
                if child.id != *root && !found.iter().any(|known| known.id == child.id) {
                    found.push(child);
                }
            }
            next += 1;
        }
        found
    }

    /// The agent and all that goes with it: what is below it, and what was orphaned in the agent's own process group.
    #[must_use]
    pub fn tree(&self, agent: &ProcessId) -> Vec<&Kin> {
        let Some(own) = self.get(agent) else { return Vec::new() };
        let mut tree = vec![own];
        tree.extend(self.below(agent));
        if self.owns_group(agent) {
            for kin in self.kin.iter().filter(|kin| kin.pgrp == own.pgrp && kin.ppid == 1 && !kin.shared) {
                if !tree.iter().any(|known| known.id == kin.id) {
                    tree.push(kin);
                }
            }
        }
        tree
    }

    /// What the agent and all that goes with it have of memory to themselves, in bytes; `None` where nobody can say.
    #[must_use]
    pub fn memory(&self, agent: &ProcessId) -> Option<u64> {
        let bytes = self.tree(agent).iter().map(|kin| kin.memory).sum();
        (bytes > 0).then_some(bytes)
    }

    /// The members of the tree that the first signal goes to: the agent's process group, as far as it is the agent's.
    #[must_use]
    pub fn group(&self, agent: &ProcessId) -> Vec<ProcessId> {
        let Some(pgrp) = self.get(agent).map(|own| own.pgrp) else { return Vec::new() };
        self.tree(agent).into_iter().filter(|kin| kin.pgrp == pgrp).map(|kin| kin.id.clone()).collect()
    }

    /// Whether the agent's process group was made for it: it is led by the agent or by one below it.
    fn owns_group(&self, agent: &ProcessId) -> bool {
        let Some(own) = self.get(agent) else { return false };
        own.pgrp == agent.pid || self.below(agent).iter().any(|kin| kin.id.pid == own.pgrp)
    }

    /// What runs in the agent's shell besides the agent: children of the shell that are neither the agent nor above it.
    #[must_use]
    pub fn other_jobs(&self, shell: &ProcessId, agent: &ProcessId) -> Vec<&Kin> {
        // the way from the agent up to its shell
        let mut way = vec![agent.pid];
        while let Some(kin) = way.last().and_then(|pid| self.kin.iter().find(|kin| kin.id.pid == *pid)) {
            if kin.ppid == shell.pid || way.contains(&kin.ppid) {
                break;
            }
            way.push(kin.ppid);
        }
        let group = self.get(agent).map(|own| own.pgrp);
        self.children(shell.pid)
            .into_iter()
            // the rest of the agent's own command line (`claude | tee log`) is the same job
            .filter(|kin| !way.contains(&kin.id.pid) && Some(kin.pgrp) != group)
            .collect()
    }

    fn children(&self, pid: i32) -> Vec<&Kin> {
        self.kin.iter().filter(|kin| kin.ppid == pid && !kin.shared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(pid: i32, ppid: i32, pgrp: i32) -> Kin {
        Kin { id: ProcessId::new(pid, "1"), ppid, pgrp, name: format!("p{pid}"), shared: false, memory: 1000 }
    }

    fn pids<'a>(kin: impl IntoIterator<Item = &'a Kin>) -> Vec<i32> {
        kin.into_iter().map(|kin| kin.id.pid).collect()
    }

    /// A shell (10) with the agent (20) as its foreground job; a tool (30) in a group of its own; an orphan of the agent's
    /// group (40); a stranger in that number's group of another family (50).
    fn below_a_shell() -> Family {
        let mut daemon = kin(60, 20, 60);
        daemon.shared = true;
        Family {
            kin: vec![
                kin(10, 1, 10),
                kin(20, 10, 20),
                kin(21, 20, 20),
                kin(30, 21, 30),
                kin(40, 1, 20),
                daemon,
                kin(61, 60, 60),
            ],
        }
    }

    #[test]
    fn the_tree_holds_what_goes_with_the_agent_and_nothing_shared() {
        let family = below_a_shell();
        let agent = ProcessId::new(20, "1");
        assert_eq!(pids(family.tree(&agent)), [20, 21, 30, 40]);
        let group: Vec<i32> = family.group(&agent).iter().map(|id| id.pid).collect();
        assert_eq!(group, [20, 21, 40], "a tool in a group of its own is not in the first signal");
        assert!(family.tree(&ProcessId::new(20, "2")).is_empty(), "another process under that pid");
    }

    #[test]
    fn a_shared_group_is_signalled_only_as_far_as_it_is_the_agents() {
        // a script without job control: shell, agent and a neighbour in one group
        let family = Family { kin: vec![kin(10, 1, 10), kin(20, 10, 10), kin(21, 20, 10), kin(22, 10, 10)] };
        let group: Vec<i32> = family.group(&ProcessId::new(20, "1")).iter().map(|id| id.pid).collect();
        assert_eq!(group, [20, 21]);
    }

    #[test]
    fn other_jobs_of_the_shell() {
        let mut family = below_a_shell();
        let (shell, agent) = (ProcessId::new(10, "1"), ProcessId::new(20, "1"));
        assert!(family.other_jobs(&shell, &agent).is_empty());
        family.kin.push(kin(70, 10, 20));
        assert!(family.other_jobs(&shell, &agent).is_empty(), "the other end of its pipe");
        family.kin.push(kin(71, 10, 71));
        assert_eq!(pids(family.other_jobs(&shell, &agent)), [71]);
        // a wrapper between shell and agent is no other job
        let wrapped = Family { kin: vec![kin(10, 1, 10), kin(15, 10, 15), kin(20, 15, 16)] };
        assert!(wrapped.other_jobs(&shell, &agent).is_empty());
    }

    #[test]
    fn a_loop_in_a_torn_table_ends() {
        let family = Family { kin: vec![kin(10, 11, 10), kin(11, 10, 10)] };
        assert_eq!(family.tree(&ProcessId::new(10, "1")).len(), 2);
        assert!(family.other_jobs(&ProcessId::new(9, "1"), &ProcessId::new(10, "1")).is_empty());
    }
}
