//! What `ps` tells of a process on macOS, where the system's own calls need unsafe code. Untested.
//!
//! The start has whole seconds there. Working directories and other processes' environments are not told.

use std::io;
use std::process::{Command, Output};

use super::{Facts, Liveness, ProcessError, ProcessId, Row};

const PS: &str = "/bin/ps";
/// The columns of a [`Row`]: the start is five words (`Mon Jan  1 00:00:00 2026`), the name is the rest of the line.
const COLUMNS: &str = "pid=,ppid=,pgid=,stat=,lstart=,comm=";

pub(super) fn start_of(pid: i32) -> Option<String> {
    row(pid).ok().flatten().map(|row| row.id.started)
}

pub(super) fn liveness(id: &ProcessId) -> Liveness {
    match row(id.pid) {
        Ok(Some(row)) if row.zombie => Liveness::Gone,
        Ok(Some(_)) if id.started.is_empty() => Liveness::Unknown,
        Ok(Some(row)) if row.id.started == id.started => Liveness::Alive,
        Ok(_) => Liveness::Gone,
        Err(_) => Liveness::Unknown,
    }
}

pub(super) fn rows() -> Result<Vec<Row>, ProcessError> {
    let answer = ps(&["-axo", COLUMNS])?;
    Ok(answer.stdout.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

pub(super) fn facts(pid: i32) -> Option<Facts> {
    let row = row(pid).ok().flatten()?;
    let line = ps(&["-wwo", "command=", "-p", &pid.to_string()]).ok()?.stdout;
    // `ps` joins the arguments with spaces; where one ends is lost
    let argv = line.trim_ascii().split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    Some(Facts { id: row.id, ppid: row.ppid, pgrp: row.pgrp, comm: row.comm, argv, exe: None, cwd: None })
}

pub(super) fn own_memory(_pid: i32) -> Option<u64> {
    None
}

pub(super) fn environment(pid: i32, _names: &[&str]) -> Result<Vec<(String, Vec<u8>)>, ProcessError> {
    Err(ProcessError::Read {
        what: format!("the environment of process {pid}"),
        source: io::Error::from(io::ErrorKind::Unsupported),
    })
}

fn row(pid: i32) -> Result<Option<Row>, ProcessError> {
    let answer = ps(&["-o", COLUMNS, "-p", &pid.to_string()])?;
    Ok(parse(&answer.stdout))
}

fn ps(arguments: &[&str]) -> Result<Output, ProcessError> {
    Command::new(PS)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| ProcessError::Read { what: PS.to_owned(), source })
}

fn parse(line: &[u8]) -> Option<Row> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<i32>().ok();
    let (pid, ppid, pgrp) = (number()?, number()?, number()?);
    let state = words.next()?;
    let started: Vec<&str> = words.by_ref().take(5).collect();
    let comm: Vec<&str> = words.collect();
    Some(Row {
        id: ProcessId { pid, started: started.join(" ") },
        ppid,
        pgrp,
        zombie: state.starts_with('Z'),
        comm: comm.join(" ").into_bytes(),
    })
}
