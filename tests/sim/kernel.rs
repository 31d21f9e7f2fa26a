//! The fake kernel: processes with starts, pids that come again, boots that end.

use std::collections::BTreeMap;

use ait::record::{Liveness, ProcessId, RecordId};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A tmux server, by its number.
    Tmux(usize),
    /// An agent, by its number.
    Agent(usize),
    /// A user's shell.
    Shell,
    /// Something an agent started.
    Tool,
    /// A stand-in.
    Viewer,
    /// A coordinator, by its number.
    Coordinator(usize),
    /// Something else.
    Stranger,
}

/// How a process takes SIGTERM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Term {
    /// It ends.
    #[default]
    Obeys,
    /// It ends in its own time.
    Dawdles,
    /// It does not.
    Ignores,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By itself.
    Exit(i32),
    /// By a signal.
    Signal(i32),
}

/// A process that lives.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) what: What,
    /// Does not end by HUP.
    pub(crate) deaf: bool,
    /// What it does on TERM.
    pub(crate) term: Term,
    /// Who started it, where that matters.
    pub(crate) parent: Option<ProcessId>,
    /// The record whose stand-in it was started as by a recovery.
    pub(crate) stands_for: Option<RecordId>,
    /// The server and the pane whose terminal it has.
    pub(crate) terminal: Option<(usize, u32)>,
}

/// All processes of one machine.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) boot: u32,
    /// Unix seconds.
    pub(crate) boot_began: i64,
    pub(crate) living: BTreeMap<i32, Process>,
    next_pid: i32,
    /// The pids there are.
    pub(crate) pids: std::ops::Range<i32>,
    ticks: u64,
}

/// Few pids, so that they come again soon.
const PIDS: std::ops::Range<i32> = 100..160;

impl Kernel {
    pub(crate) fn new(boot_began: i64) -> Self {
        Self { boot: 1, boot_began, living: BTreeMap::new(), next_pid: PIDS.start, pids: PIDS, ticks: 0 }
    }

    pub(crate) fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }

    /// Another boot: no process is left, and pids and starts begin where they began before.
    pub(crate) fn reboot(&mut self, began: i64) {
        self.boot += 1;
        self.boot_began = began;
        self.living.clear();
        self.next_pid = self.pids.start;
        self.ticks = 0;
    }

    pub(crate) fn spawn(&mut self, what: What, terminal: Option<(usize, u32)>) -> ProcessId {
        while self.living.contains_key(&self.next_pid) {
            self.advance();
        }
        self.ticks += 1;
        let id = ProcessId::new(self.next_pid, self.ticks.to_string());
        self.living.insert(
            id.pid,
            Process {
                id: id.clone(),
                what,
                deaf: false,
                term: Term::Obeys,
                parent: None,
                stands_for: None,
                terminal,
            },
        );
        self.advance();
        id
    }

    fn advance(&mut self) {
        self.next_pid += 1;
        if self.next_pid >= self.pids.end {
            self.next_pid = self.pids.start;
        }
    }

    pub(crate) fn process(&self, id: &ProcessId) -> Option<&Process> {
        self.living.get(&id.pid).filter(|process| process.id == *id)
    }

    pub(crate) fn lives(&self, id: &ProcessId) -> bool {
        self.process(id).is_some()
    }

    /// What a caller can find out.
    pub(crate) fn liveness(&self, id: &ProcessId) -> Liveness {
        match self.living.get(&id.pid) {
            Some(process) if id.started.is_empty() || process.id == *id => Liveness::Alive,
            Some(_) | None => Liveness::Gone,
        }
    }

    /// Every process with that terminal.
    pub(crate) fn on_terminal(&self, server: usize, pane: u32) -> Vec<ProcessId> {
        self.living
            .values()
            .filter(|process| process.terminal == Some((server, pane)))
            .map(|process| process.id.clone())
            .collect()
    }
}
