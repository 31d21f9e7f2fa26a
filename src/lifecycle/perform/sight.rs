//! What the agent is doing, by every source there is: its hook, its provider's own list of processes, its title and screen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Performer;
use super::ready::environment;
use crate::client;
use crate::coordinator::{Composer, Mood, Sight};
use crate::history::{self, Located, Miss};
use crate::lifecycle::{exec, identity, shared};
use crate::process::{self, Facts, ProcessId, Table};
use crate::provider;
use crate::record::Record;
use crate::store::turns;
use crate::turn::{Moment, State};

impl Performer<'_> {
    /// Every source is asked; of what the agent is at, the one that knows best is believed, and what any of them sees behind
    /// its turn or in its prompt line counts.
    pub(super) async fn examine(&self) -> Sight {
        let Some(record) = &self.record else { return Sight::unknown() };
        let shown = self.shown(record).await;
        let mut sight = self.told(record).unwrap_or_else(Sight::unknown);
        if let Some(shown) = shown {
            let seen = from_screen(shown);
            sight.background |= seen.background;
            sight.composer = seen.composer;
            // a hook tells of the start and of turns: what stands before the first prompt only the screen shows
            let better = match (&sight.mood, &seen.mood) {
                (Mood::Unknown | Mood::Starting, mood) => *mood != Mood::Unknown,
                (Mood::Ready, mood) => matches!(mood, Mood::Working | Mood::Asking | Mood::Dialog(_)),
                (Mood::Working | Mood::Asking | Mood::Dialog(_), _) => false,
            };
            if better {
                // since when it is so, the source before did not say of this
                sight.since = None;
                sight.mood = seen.mood;
                sight.source = seen.source;
            }
        }
        if let Some((agent, home)) = on_shared_server(record) {
            sight.shares_server = true;
            sight.other = self.other(record, &agent, &home);
        }
        sight
    }

    /// What is known of its turn from its hooks and what was seen of it, with the provider's own list of its processes as it is
    /// now: no hook tells of a turn that was interrupted.
    fn told(&self, record: &Record) -> Option<Sight> {
        let now = Moment::from(jiff::Timestamp::now());
        let mut turns = turns::of(self.world.store.paths(), &turns::Whose::of(record));
        let nothing = BTreeMap::new();
        let environment = record.ait.env.as_ref().unwrap_or(&nothing);
        if let Some(entry) = record.agent_process().and_then(|agent| identity::listed(&agent, environment)) {
            turns.observe(&entry.observation(now));
        }
        let view = Some(client::view(&self.world.store.paths().files(), record.id, turns, now))
            .filter(|view| !view.is_guess())?;
        let mood = match view.state {
            State::Starting => Mood::Starting,
            // what goes on behind a turn is told apart
            State::Working if view.background => Mood::Ready,
            State::Working => Mood::Working,
            State::Waiting => Mood::Ready,
            State::NeedsInput => Mood::Asking,
            State::Unknown => return None,
        };
        Some(Sight {
            mood,
            since: view.since.map(|since| since.age(now)),
            background: view.background,
            queued: view.queued,
            source: view.shown_source(),
            ..Sight::unknown()
        })
    }

    /// A conversation that this agent may show, and no other terminal is known to.
    fn other(&self, record: &Record, agent: &ProcessId, home: &Path) -> Option<String> {
        let catalog = &self.world.catalog;
        // without the records nobody is known to show anything but what its arguments say
        let known = self.world.store.read().ok();
        let records = || known.iter().flat_map(|known| known.records.iter());
        let shown_by = |terminal: &Facts| {
            let of = records().find(|one| one.agent_process().is_some_and(|agent| is_of(&agent, terminal)));
            let recorded = of.map(|one| one.codeagent_session_id.clone()).filter(|id| !id.is_empty());
            recorded.or_else(|| catalog.session_id(shared::KIND, &terminal.argv))
        };
        let mut strangers = 0;
        let mut shown = BTreeSet::from([record.codeagent_session_id.clone()]);
        for terminal in shared::terminals(home, catalog).iter().filter(|one| !is_of(agent, one)) {
            match shown_by(terminal) {
                Some(id) => _ = shown.insert(id),
                None => strangers += 1,
            }
        }
        let folder = exec::folder_of(record);
        let table = Table::read().ok()?;
        let open = shared::servers(home, &table).into_iter().flat_map(|server| history::open_in(server.pid));
        let mut fresh = Vec::new();
        for id in open.filter(|id| !shown.contains(id)) {
            match history::locate(shared::KIND, &id, &folder, &environment(record)) {
                Located::Present { cwd, .. } if cwd.as_deref().is_none_or(|cwd| cwd == folder) => {
                    return Some(id);
                }
                // nothing was said in it yet, or it cannot be read: nothing tells whose it is
                Located::Missing { why: Miss::NoConversation | Miss::NoTurn | Miss::NoStore }
                | Located::Ambiguous { .. }
                | Located::Unknown { .. } => fresh.push(id),
                Located::Present { .. } | Located::Missing { .. } => {}
            }
        }
        fresh.into_iter().nth(strangers)
    }

    /// What title and screen show.
    async fn shown(&self, record: &Record) -> Option<provider::Sight> {
        let pane = record.location.pane_id()?.to_string();
        let (_, server) = self.server()?;
        let words = [
            "display-message",
            "-p",
            "-t",
            pane.as_str(),
            "#{=4096:pane_title}",
            ";",
            "capture-pane",
            "-p",
            "-e",
            "-t",
            pane.as_str(),
        ];
        let answer = server.ok()?.run(words).await.ok()?;
        let answer = String::from_utf8_lossy(&answer);
        let (title, screen) = answer.split_once('\n')?;
        Some(self.world.catalog.look(&record.agent_kind, title, screen))
    }
}

fn from_screen(shown: provider::Sight) -> Sight {
    let mood = match shown.phase {
        provider::Phase::Working => Mood::Working,
        provider::Phase::Asking => Mood::Asking,
        provider::Phase::Ready => Mood::Ready,
        provider::Phase::Dialog(what) => Mood::Dialog(what.word().to_owned()),
        provider::Phase::Unknown => Mood::Unknown,
    };
    let composer = match shown.composer {
        provider::Composer::Empty => Composer::Empty,
        provider::Composer::Text => Composer::Text,
        provider::Composer::Unknown => Composer::Unknown,
    };
    Sight { mood, composer, background: shown.background, source: "screen".to_owned(), ..Sight::unknown() }
}

/// A Codex whose turns are run by the server that others share, and the home of both.
fn on_shared_server(record: &Record) -> Option<(ProcessId, PathBuf)> {
    let agent = record.agent_process().filter(|_| record.agent_kind == shared::KIND)?;
    let facts = process::facts(agent.pid).filter(|facts| !shared::has_own_server(&facts.argv))?;
    let home = shared::home_of(facts.id.pid)?;
    // where nobody can say whether there is such a server, it may be there
    let runs = Table::read().map_or(true, |table| !shared::servers(&home, &table).is_empty());
    runs.then_some((facts.id, home))
}

/// Whether a process is this terminal, or the program below this script.
fn is_of(process: &ProcessId, terminal: &Facts) -> bool {
    *process == terminal.id
        || process::facts(process.pid)
            .is_some_and(|facts| facts.id == *process && facts.ppid == terminal.id.pid)
}
