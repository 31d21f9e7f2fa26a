//! The family of the record's pane, from one look at all processes.

use std::collections::BTreeSet;

use bstr::ByteSlice;

use super::Performer;
use crate::coordinator::{Family, Kin};
use crate::lifecycle::shared;
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
        shared: shared::is_server(&argv),
        memory: process::own_memory(row.id.pid).unwrap_or(0),
    }
}
