//! Which conversation a running agent has, by its provider's own account: Claude Code's list of its processes, the rollout
//! that a Codex has open. It knows what no argument says (an agent started without an id) and what arguments no longer say
//! (a conversation that was cleared for another). Never a guess: without an account there is no answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::history::{self, Environment, Located, Registry};
use crate::process::{self, ProcessId};
use crate::provider::{Catalog, Provider};
use crate::record::{Liveness, Record, State, Upsert};

/// What Claude Code's own list says of this agent: of the process itself, or, where that is a wrapper, of the nearest below.
#[must_use]
pub fn listed(process: &ProcessId, environment: &BTreeMap<String, String>) -> Option<Registry> {
    let environment = surroundings(environment);
    history::registry(process, &environment).or_else(|| {
        // a family that cannot be seen has no say
        let below = process::descendants(process.pid).unwrap_or_default();
        below.iter().find_map(|process| history::registry(process, &environment))
    })
}

/// The folder in which the agent's provider lists its running processes, where it does.
#[must_use]
pub fn listing(record: &Record) -> Option<PathBuf> {
    if Provider::named(&record.agent_kind)? != Provider::Claude {
        return None;
    }
    let nothing = BTreeMap::new();
    history::registry_folder(&surroundings(record.ait.env.as_ref().unwrap_or(&nothing)))
}

/// What is recorded of an agent's environment, and our own home.
fn surroundings(environment: &BTreeMap<String, String>) -> Environment {
    let environment = Environment::recorded(environment);
    match std::env::var_os("HOME") {
        Some(home) => environment.with_home(Path::new(&home)),
        None => environment,
    }
}

/// Where the record's conversation is on disk, for an agent that works in `cwd` with the environment `env`: by its provider's
/// rules, or anywhere in the folder that the user says it keeps them in.
pub fn locate(catalog: &Catalog, record: &Record, cwd: &Path, env: &Environment) -> Located {
    let (kind, id) = (record.agent_kind.as_str(), record.codeagent_session_id.as_str());
    match catalog.folder(kind) {
        Some(folder) => history::locate_below(folder, id, env),
        None => history::locate(kind, id, cwd, env),
    }
}

/// The session id of the conversation that this agent of the provider `kind` has now; `environment` is what is recorded of its own.
#[must_use]
pub fn conversation(
    kind: &str,
    process: &ProcessId,
    environment: &BTreeMap<String, String>,
) -> Option<String> {
    match Provider::named(kind)? {
        Provider::Claude => listed(process, environment).map(|entry| entry.session_id),
        Provider::Codex => history::opened_by(process.pid),
        _ => None,
    }
}

/// What to write when the agent of a live record has another conversation than the record says, or the record says none.
#[must_use]
pub fn correction(record: &Record) -> Option<Upsert> {
    let State::Live = record.state else { return None };
    let agent = record.agent_process()?;
    let nothing = BTreeMap::new();
    let told = conversation(&record.agent_kind, &agent, record.ait.env.as_ref().unwrap_or(&nothing))?;
    // looked up by a pid: the answer is of this agent only if it still runs
    if told == record.codeagent_session_id || process::liveness(&agent) != Liveness::Alive {
        return None;
    }
    let mut upsert = Upsert::new(&record.root, &record.window, record.location.clone());
    upsert.id = Some(record.id);
    upsert.session_id = told;
    Some(upsert)
}

/// The file of the record's conversation, where there is one and its place is known.
#[must_use]
pub fn transcript(catalog: &Catalog, record: &Record) -> Option<PathBuf> {
    if record.codeagent_session_id.is_empty() {
        return None;
    }
    let nothing = BTreeMap::new();
    let environment = surroundings(record.ait.env.as_ref().unwrap_or(&nothing));
    let cwd = Path::new(record.ait.cwd.as_deref().unwrap_or_default());
    match locate(catalog, record, cwd, &environment) {
        Located::Present { path, .. } => Some(path),
        Located::Ambiguous { .. } | Located::Missing { .. } | Located::Unknown { .. } => None,
    }
}
