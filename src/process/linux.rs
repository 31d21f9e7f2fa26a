//! What `/proc` tells of a process.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::process::test_kill_process;

use super::{Facts, Liveness, ProcessError, ProcessId, Row, raw};

/// What is read of a process's arguments or environment, in bytes.
const READ_LIMIT: u64 = 1 << 20;

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    comm: Vec<u8>,
    state: u8,
    ppid: i32,
    pgrp: i32,
    started: String,
}

pub(super) fn start_of(pid: i32) -> Option<String> {
    stat(pid).ok().map(|stat| stat.started)
}

pub(super) fn liveness(id: &ProcessId) -> Liveness {
    match stat(id.pid) {
        Ok(stat) if is_dead(stat.state) => Liveness::Gone,
        Ok(_) if id.started.is_empty() => Liveness::Unknown,
        Ok(stat) if stat.started != id.started => Liveness::Gone,
        Ok(_) => Liveness::Alive,
        Err(_) => match raw(id.pid).map(test_kill_process) {
            // no such number: nothing can be running under it
            None | Some(Err(rustix::io::Errno::SRCH)) => Liveness::Gone,
            // there is a process, but who it is stays hidden (hidepid)
            Some(Ok(()) | Err(_)) => Liveness::Unknown,
        },
    }
}

pub(super) fn rows() -> Result<Vec<Row>, ProcessError> {
    let failed = |source| ProcessError::Read { what: "/proc".to_owned(), source };
    let mut rows = Vec::new();
    for entry in std::fs::read_dir("/proc").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // an error here is a process that ended meanwhile, or one the system hides
        let Ok(stat) = stat(pid) else { continue };
        rows.push(Row {
            zombie: is_dead(stat.state),
            id: ProcessId { pid, started: stat.started },
            ppid: stat.ppid,
            pgrp: stat.pgrp,
            comm: stat.comm,
        });
    }
    Ok(rows)
}

pub(super) fn facts(pid: i32) -> Option<Facts> {
    let before = stat(pid).ok()?;
    let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
    let argv = read_bounded(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let facts = Facts {
        ppid: before.ppid,
        pgrp: before.pgrp,
        comm: before.comm,
        argv: nul_separated(&argv),
        exe: link("exe").map(without_deleted),
        cwd: link("cwd"),
        id: ProcessId { pid, started: before.started },
    };
    // the pid may have changed hands while its files were read
    (start_of(pid).as_deref() == Some(&facts.id.started)).then_some(facts)
}

pub(super) fn environment(pid: i32, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>, ProcessError> {
    let path = format!("/proc/{pid}/environ");
    let bytes = read_bounded(&path).map_err(|source| ProcessError::Read { what: path, source })?;
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in bytes.split(|byte| *byte == 0) {
        let Some(equals) = entry.iter().position(|byte| *byte == b'=') else { continue };
        let Some(name) = names.iter().find(|name| name.as_bytes() == &entry[..equals]) else { continue };
        // the first of two counts, as getenv has it
        if !found.iter().any(|(known, _)| known == name) {
            found.push(((*name).to_owned(), entry[equals + 1..].to_vec()));
        }
    }
    Ok(found)
}

/// `size resident shared …` in pages (proc(5), statm).
pub(super) fn own_memory(pid: i32) -> Option<u64> {
    let bytes = read_bounded(&format!("/proc/{pid}/statm")).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let mut pages = text.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

fn stat(pid: i32) -> io::Result<Stat> {
    let bytes = read_bounded(&format!("/proc/{pid}/stat"))?;
    parse_stat(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a stat line"))
}

/// `pid (comm) state ppid pgrp … starttime …`: the name may hold spaces and parentheses, so the fields begin behind the
/// last `)`. State is field 3, the start is field 22 (proc(5)).
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|byte| *byte == b'(')?;
    let close = bytes.iter().rposition(|byte| *byte == b')')?;
    let comm = bytes.get(open + 1..close)?.to_vec();
    let mut fields = std::str::from_utf8(bytes.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?.bytes().next()?;
    let ppid = fields.next()?.parse().ok()?;
    let pgrp = fields.next()?.parse().ok()?;
    let started = fields.nth(16)?;
    started.bytes().all(|byte| byte.is_ascii_digit()).then(|| Stat {
        comm,
        state,
        ppid,
        pgrp,
        started: started.to_owned(),
    })
}

fn is_dead(state: u8) -> bool {
    matches!(state, b'Z' | b'X' | b'x')
}

fn read_bounded(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(READ_LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn nul_separated(bytes: &[u8]) -> Vec<Vec<u8>> {
    match bytes.strip_suffix(b"\0").unwrap_or(bytes) {
        [] => Vec::new(),
        list => list.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
    }
}

fn without_deleted(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(kept) => PathBuf::from(std::ffi::OsString::from_vec(kept.to_vec())),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) b (c) Z 9 9 9) S 7 6 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!(stat.comm, b"a) b (c) Z 9 9 9");
        assert_eq!((stat.state, stat.ppid, stat.pgrp, stat.started.as_str()), (b'S', 7, 6, "987654"));
    }

    #[test]
    fn a_cut_line_is_no_stat() {
        let line = b"42 (x) S 7 6 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n";
        let whole = line.windows(6).position(|part| part == b"987654").unwrap();
        for cut in 0..whole {
            assert_eq!(parse_stat(&line[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn arguments_keep_empty_ones() {
        assert_eq!(nul_separated(b"a\0\0b\0"), [b"a".to_vec(), b"".to_vec(), b"b".to_vec()]);
        assert_eq!(nul_separated(b""), Vec::<Vec<u8>>::new());
    }
}
