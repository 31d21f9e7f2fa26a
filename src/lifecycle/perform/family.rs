//! The family of the record's pane, from one look at all processes.

use std::collections::BTreeSet;

use bstr::ByteSlice;

use super::Performer;
use crate::coordinator::{Family, Kin};
use crate::process::{self, Row, Table};

impl Performer<'_> {
    pub(super) fn family(&self) -> Result<Family, String> {
        let table = Table::read().map_err(|error| error.to_string())?;
        let record = self.record.as_ref();
        let roots: Vec<i32> = record
            .into_iter()
            .flat_map(|record| [record.location.process().cloned(), record.agent_process()])
            .flatten()
            .map(|process| process.pid)
            .collect();
        let mut pids: BTreeSet<i32> = roots.iter().copied().collect();
        for root in &roots {
            pids.extend(table.descendants(*root).into_iter().map(|id| id.pid));
        }
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let ours: BTreeSet<i32> = table.descendants(own).into_iter().map(|id| id.pid).chain([own]).collect();
        let groups: BTreeSet<i32> =
            table.rows().iter().filter(|row| pids.contains(&row.id.pid)).map(|row| row.pgrp).collect();
        let kin = table
            .rows()
            .iter()
            .filter(|row| !row.zombie && !ours.contains(&row.id.pid))
            .filter(|row| pids.contains(&row.id.pid) || groups.contains(&row.pgrp))
            .map(kin)
            .collect();
        Ok(Family { kin })
    }
}

fn kin(row: &Row) -> Kin {
    // the table is a moment old: a pid that was handed out again is another process
    let argv = process::facts(row.id.pid).filter(|facts| facts.id == row.id).map(|facts| facts.argv);
    let argv = argv.unwrap_or_default();
    let name = argv.first().filter(|first| !first.is_empty()).map_or(row.comm.as_slice(), Vec::as_slice);
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    Kin {
        id: row.id.clone(),
        ppid: row.ppid,
        pgrp: row.pgrp,
        name: name.to_str_lossy().into_owned(),
        shared: is_shared(&argv),
    }
}

/// The daemon of Codex that serves every Codex of the user: `codex app-server …`. One that speaks over its own standard
/// input and output (`stdio://`) is a tool of its parent alone.
pub(super) fn is_shared(argv: &[Vec<u8>]) -> bool {
    let is_codex = |word: &[u8]| {
        let last = word.rsplit(|byte| *byte == b'/').next().unwrap_or(word);
        last == b"codex" || last.starts_with(b"codex-") || last == b"codex.js"
    };
    // itself, or a script below its interpreter
    let at = argv.iter().take(3).position(|word| is_codex(word));
    at.and_then(|at| argv.get(at + 1)).is_some_and(|word| word == b"app-server")
        && !argv.iter().any(|word| word.starts_with(b"stdio://"))
}

/// Whether the shared daemon of Codex runs.
pub(super) fn shared_daemon_runs() -> bool {
    let Ok(table) = Table::read() else { return false };
    table.rows().iter().any(|row| {
        (row.comm.starts_with(b"codex") || row.comm.starts_with(b"node") || row.comm.starts_with(b"sh"))
            && process::facts(row.id.pid).is_some_and(|facts| is_shared(&facts.argv))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(line: &str) -> bool {
        let argv: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        is_shared(&argv)
    }

    #[test]
    fn the_shared_daemon_is_known_by_how_it_listens() {
        assert!(shared("/opt/codex/bin/codex app-server --listen unix:///home/u/.codex/app.sock"));
        assert!(shared("node /usr/bin/codex app-server --listen unix://"));
        assert!(shared("codex app-server daemon start"));
        assert!(!shared("codex app-server --listen stdio://"));
        assert!(shared("codex app-server"));
        assert!(!shared("codex resume app-server unix://x"));
        assert!(!shared("vim app-server unix://x"));
    }
}
