//! What the agent is doing, by every source there is: its hook, its provider's own list of processes, its title and screen.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Performer;
use super::family::shared_daemon_runs;
use crate::coordinator::{Composer, Mood, Sight};
use crate::history::Status;
use crate::lifecycle::identity;
use crate::process;
use crate::provider;
use crate::record::Record;
use crate::store::turns::{self, TurnState};

/// Arguments with which Codex has a server of its own.
const OWN_SERVER: [&[u8]; 3] = [b"--no-daemon", b"-c", b"--dangerously-bypass-hook-trust"];

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
        sight.shares_server = shares_server(record);
        sight
    }

    /// What the agent's hook told last, or the provider's own list of its processes, whichever is of later: no hook tells of a
    /// turn that was interrupted.
    fn told(&self, record: &Record) -> Option<Sight> {
        match (self.hooked(), self.listed(record)) {
            (Some(hooked), Some(listed)) => {
                let later = match (hooked.since, listed.since) {
                    (Some(hooked), Some(listed)) => listed < hooked,
                    (None, _) | (Some(_), None) => hooked.mood == Mood::Starting,
                };
                let background = hooked.background || listed.background;
                Some(Sight { background, ..if later { listed } else { hooked } })
            }
            (one, other) => one.or(other),
        }
    }

    fn hooked(&self) -> Option<Sight> {
        let turn = turns::read(self.world.store.paths(), self.id).ok()??;
        let mood = match turn.state {
            TurnState::Starting => Mood::Starting,
            TurnState::Working => Mood::Working,
            TurnState::Waiting => Mood::Ready,
            TurnState::NeedsInput => Mood::Asking,
        };
        let seconds = jiff::Timestamp::now().as_second().saturating_sub(turn.at.unix());
        let since = u64::try_from(seconds).ok().map(Duration::from_secs);
        let queued = turn.is_queued();
        Some(Sight {
            mood,
            since,
            background: turn.background,
            queued,
            source: turn.source,
            ..Sight::unknown()
        })
    }

    /// What the provider's own list of its processes says.
    fn listed(&self, record: &Record) -> Option<Sight> {
        let nothing = BTreeMap::new();
        let environment = record.ait.env.as_ref().unwrap_or(&nothing);
        let entry = identity::listed(&record.agent_process()?, environment)?;
        let (mood, background) = match entry.status? {
            Status::Busy => (Mood::Working, false),
            Status::Shell => (Mood::Ready, true),
            Status::Waiting => (Mood::Asking, false),
            Status::Idle => (Mood::Ready, false),
        };
        let since =
            entry.status_at.and_then(|at| Duration::try_from(jiff::Timestamp::now().duration_since(at)).ok());
        Some(Sight { mood, background, since, source: "registry".to_owned(), ..Sight::unknown() })
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

/// Whether a Codex has its turns run by the daemon that others share.
fn shares_server(record: &Record) -> bool {
    if record.agent_kind != "codex" {
        return false;
    }
    let argv = record.agent_process().and_then(|agent| process::facts(agent.pid)).map(|facts| facts.argv);
    let own = argv.is_some_and(|argv| argv.iter().any(|word| OWN_SERVER.contains(&word.as_slice())));
    !own && shared_daemon_runs()
}
