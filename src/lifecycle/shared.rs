//! Codex's shared server: `codex app-server`, which runs the turns of every Codex of one `CODEX_HOME` that does not ask for a
//! server of its own.
//!
//! Its hooks have the environment of whoever started it, which is its parent as long as that lives: neither tells whose turn it
//! is. A conversation it has had it keeps open and locked (`thread-writer-locks/<id>.lock`) long after its terminal went away,
//! and a Codex with a server of its own cannot go on with it until then; one on the shared server can at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::behind::recognised;
use crate::history;
use crate::process::{self, Facts, ProcessId, Table};
use crate::provider::Catalog;

/// The provider this is about.
pub(crate) const KIND: &str = "codex";
/// The word without which a Codex would use the shared server.
pub(crate) const OWN: &str = "--no-daemon";
/// Arguments with which Codex has a server of its own; `--config=…` too.
const OWN_SERVER: [&str; 5] = [OWN, "-c", "--config", "--dangerously-bypass-hook-trust", "--remote"];

/// Whether these are the arguments of the shared server. One that speaks over its own standard input and output (`stdio://`) is
/// a tool of its parent alone.
pub(crate) fn is_server(argv: &[Vec<u8>]) -> bool {
    let is_codex = |word: &[u8]| {
        let last = word.rsplit(|byte| *byte == b'/').next().unwrap_or(word);
        last == b"codex" || last.starts_with(b"codex-") || last == b"codex.js"
    };
    // itself, or a script below its interpreter
    let at = argv.iter().take(3).position(|word| is_codex(word));
    at.and_then(|at| argv.get(at + 1)).is_some_and(|word| word == b"app-server")
        && !argv.iter().any(|word| word.starts_with(b"stdio://"))
}

/// Whether a Codex with these arguments has a server of its own.
pub(crate) fn has_own_server<W: AsRef<[u8]>>(argv: &[W]) -> bool {
    argv.iter().map(AsRef::as_ref).any(|word| {
        OWN_SERVER.iter().any(|own| {
            word.strip_prefix(own.as_bytes())
                .is_some_and(|rest| rest.is_empty() || (own.starts_with("--") && rest.starts_with(b"=")))
        })
    })
}

/// Where a Codex with this environment keeps its files; `None` when it does not say.
pub(crate) fn home(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let named = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("CODEX_HOME").or_else(|| Some(named("HOME")?.join(".codex")))
}

/// Where the Codex of this process keeps its files.
pub(crate) fn home_of(pid: i32) -> Option<PathBuf> {
    let environment = process::environment(pid, &["CODEX_HOME", "HOME"]).ok()?;
    let text = |(name, value): (String, Vec<u8>)| Some((name, String::from_utf8(value).ok()?));
    home(&environment.into_iter().filter_map(text).collect())
}

/// The shared servers of this home.
pub(crate) fn servers(home: &Path, table: &Table) -> Vec<ProcessId> {
    let is_its = |row: &&process::Row| {
        let facts = may_be_codex(row).then(|| process::facts(row.id.pid)).flatten();
        facts.is_some_and(|facts| is_server(&facts.argv)) && home_of(row.id.pid).as_deref() == Some(home)
    };
    table.rows().iter().filter(is_its).map(|row| row.id.clone()).collect()
}

/// The shared server of this home that has the conversation open.
pub(crate) fn holder(home: &Path, session_id: &str) -> Option<ProcessId> {
    let table = Table::read().ok()?;
    servers(home, &table).into_iter().find(|server| history::has_open(server.pid, session_id))
}

/// Every Codex whose turns the shared server of this home runs; of a script and the Codex below it, the script.
pub(crate) fn terminals(home: &Path, catalog: &Catalog) -> Vec<Facts> {
    let table = Table::read().unwrap_or_default();
    let all: Vec<Facts> = table
        .rows()
        .iter()
        .filter(|row| may_be_codex(row))
        .filter_map(|row| process::facts(row.id.pid).filter(|facts| facts.id == row.id))
        .filter(|facts| recognised(facts, catalog) == Some(KIND) && !has_own_server(&facts.argv))
        .filter(|facts| home_of(facts.id.pid).as_deref() == Some(home))
        .collect();
    let below = |one: &Facts| all.iter().any(|other| other.id.pid == one.ppid && other.pgrp == one.pgrp);
    all.iter().filter(|one| !below(one)).cloned().collect()
}

/// Programs under other names are not looked at one by one.
fn may_be_codex(row: &process::Row) -> bool {
    let names: [&[u8]; 5] = [b"codex", b"node", b"sh", b"bun", b"npm"];
    !row.zombie && (names.iter().any(|name| row.comm.starts_with(name)) || row.comm == b"MainThread")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_shared_server_is_known_by_how_it_listens() {
        let shared = |line: &str| is_server(&words(line));
        assert!(shared("/opt/codex/bin/codex app-server --listen unix:///home/u/.codex/app.sock"));
        assert!(shared("node /usr/bin/codex app-server --listen unix://"));
        assert!(shared("codex app-server daemon start"));
        assert!(!shared("codex app-server --listen stdio://"));
        assert!(shared("codex app-server"));
        assert!(!shared("codex resume app-server unix://x"));
        assert!(!shared("vim app-server unix://x"));
    }

    #[test]
    fn some_arguments_mean_a_server_of_its_own() {
        for line in ["codex --no-daemon", "codex -c a=b", "codex --config a=b", "codex --config=a=b resume x"]
        {
            assert!(has_own_server(&words(line)), "{line}");
        }
        for line in ["codex", "codex resume x", "codex -C /x", "codex --no-daemons", "codex -p work"] {
            assert!(!has_own_server(&words(line)), "{line}");
        }
    }

    #[test]
    fn the_home_is_the_one_that_is_named() {
        let of = |pairs: &[(&str, &str)]| {
            home(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.codex".into()));
        assert_eq!(of(&[("HOME", "/h"), ("CODEX_HOME", "/c")]), Some("/c".into()));
        assert_eq!(of(&[]), None);
    }
}
