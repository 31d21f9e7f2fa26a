//! Which conversation a running agent has, by its provider's own account: Claude Code's list of its processes, the rollout
//! that a Codex has open. It knows what no argument says (an agent started without an id) and what arguments no longer say
//! (a conversation that was cleared for another). Never a guess: without an account there is no answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::history::{self, Environment, Located, Registry};
use crate::process::{self, ProcessId};
use crate::provider::{Catalog, Provider};
use crate::record::{Bind, Liveness, Record, RecordId, Refused, State, Verb};
use crate::store::{PATIENCE, Store, StoreError, System};
use crate::watch::Watcher;

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
pub fn correction(record: &Record) -> Option<Verb> {
    let State::Live = record.state else { return None };
    let agent = record.agent_process()?;
    let nothing = BTreeMap::new();
    let told = conversation(&record.agent_kind, &agent, record.ait.env.as_ref().unwrap_or(&nothing))?;
    // looked up by a pid: the answer is of this agent only if it still runs
    if told == record.codeagent_session_id || process::liveness(&agent) != Liveness::Alive {
        return None;
    }
    Some(corrected(record, agent, told))
}

/// What became of noting an agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noted {
    /// The record says the right one, or nobody says another.
    AsItWas,
    /// It is on the record now.
    Now,
    /// The store did not take it: the record changed meanwhile.
    Refused(Refused),
}

/// Puts on a live record which conversation its agent has now, where its provider says another than the record.
///
/// # Errors
/// The store cannot be read or written.
pub fn note(store: &Store, system: &System, id: RecordId) -> Result<Noted, StoreError> {
    let snapshot = store.read()?;
    let Some(verb) = snapshot.records.get(id).and_then(|record| correction(record)) else {
        return Ok(Noted::AsItWas);
    };
    let answer = store.apply(&[(Some(id), verb)], &system.facts(), PATIENCE)?.pop();
    Ok(match answer {
        Some(Ok(_)) => Noted::Now,
        Some(Err(refused)) => Noted::Refused(refused),
        None => Noted::AsItWas,
    })
}

/// Waits, for so long at most, until a live record's agent tells which conversation it has, and notes that: told of by the
/// provider's folders, never by the clock. An agent of a kind that tells of none is not waited for.
pub async fn hear(store: &Store, system: &System, id: RecordId, span: Duration) -> Result<Noted, StoreError> {
    let folders = match store.read()?.records.get(id) {
        Some(record) if record.codeagent_session_id.is_empty() => openings(record),
        Some(_) | None => Vec::new(),
    };
    let watcher = Watcher::new().and_then(|mut watcher| {
        folders.iter().try_for_each(|folder| watcher.add(folder))?;
        Ok(watcher)
    });
    let (false, Ok(mut watcher)) = (folders.is_empty(), watcher) else { return Ok(Noted::AsItWas) };
    let heard = async {
        loop {
            let noted = note(store, system, id)?;
            if noted != Noted::AsItWas {
                return Ok(noted);
            }
            watcher.next().await;
        }
    };
    tokio::time::timeout(span, heard).await.unwrap_or(Ok(Noted::AsItWas))
}

/// The folders in which a conversation that an agent begins now appears, where it holds it open.
#[must_use]
pub fn openings(record: &Record) -> Vec<PathBuf> {
    let Some(Provider::Codex) = Provider::named(&record.agent_kind) else { return Vec::new() };
    let nothing = BTreeMap::new();
    let environment = surroundings(record.ait.env.as_ref().unwrap_or(&nothing));
    let Some(folder) = history::rollouts(&environment) else { return Vec::new() };
    // by the day of here; a machine elsewhere may have another
    let here = jiff::ZonedDateTime::now().strftime("%Y/%m/%d").to_string();
    let there = jiff::Timestamp::now().strftime("%Y/%m/%d").to_string();
    vec![folder.join(here), folder.join(there), folder]
}

/// Of that agent and instead of that conversation only: by the time it is written the record may be of another launch, or the
/// agent's own hook may have told of a later one.
fn corrected(record: &Record, agent: ProcessId, session_id: String) -> Verb {
    Verb::Bind(Box::new(Bind {
        line: vec![agent.clone()],
        agent,
        generation: record.ait.generation,
        session_id,
        transcript: String::new(),
        instead_of: Some(record.codeagent_session_id.clone()),
    }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{World, sample};
    use crate::record::{Location, PaneId, Place, Refused, StateName, apply};

    #[test]
    fn a_correction_changes_the_conversation_of_that_launch_and_nothing_else() {
        let record = sample(StateName::Live);
        let verb = corrected(&record, record.agent_process().unwrap(), "other".into());
        let applied = |now: &Record| {
            let place = Place { id: now.id, slot: 0, alone: true, ambiguous: false };
            World::new(&[]).with(|facts| apply(Some(now.clone()), &verb, facts, &place))
        };
        let renamed = Record { window: "renamed".into(), ..record.clone() };
        let changed = applied(&renamed).unwrap().record.unwrap();
        assert_eq!((changed.window.as_str(), changed.codeagent_session_id.as_str()), ("renamed", "other"));
        let again = ProcessId::new(60, "600");
        let elsewhere = Record { location: Location::pane(PaneId(2), again), ..record.clone() };
        assert!(matches!(applied(&elsewhere), Err(Refused::NoEvidence { .. })), "it was launched anew");
        let told = Record { codeagent_session_id: "later".into(), ..record };
        assert!(matches!(applied(&told), Err(Refused::NoEvidence { .. })), "its hook told of another");
    }
}
