//! What live agents are at: what is written of their turns, with what their titles and their providers' lists show now.
//!
//! A change is noted on disk ([`Action::NoteTurn`]), so that it is known with its age after a restart too; what is only seen
//! again is kept here. A title counts while its server is watched and tells no other, a provider's list while its agent lives:
//! both would be heard of if they changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use tmux_control::PaneId;

use super::{Action, Ask, Now, Record, RecordId, StateName, Supervisor};
use crate::api::{EXPLAINED, TurnStatus};
use crate::provider::Catalog;
use crate::turn::{Observation, Source, State, Turns, View};

/// How long an agent waits for a tool until its title is looked at: one that asks first says so there, after 0.9 s (Codex:
/// measured), and tmux tells of titles only once a second.
const ASKS: Duration = Duration::from_secs(1);
/// How long after that it is looked at once more. What came and went between two of tmux's looks it never tells: a request that was
/// answered at once would stay. One that still stands by then tmux has seen.
const TICK: Duration = Duration::from_millis(1_100);

/// A look at titles that is to come.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Duration,
    /// None follows.
    last: bool,
}

/// What is known of whom.
#[derive(Debug, Default)]
pub(super) struct Turning {
    of: BTreeMap<RecordId, Turns>,
    /// The titles as they were last read, with the launch they are of.
    read: BTreeMap<RecordId, (String, BString)>,
    /// Those that wait for a tool, and when their title is looked at.
    calls: BTreeMap<RecordId, Look>,
    catalog: Catalog,
}

impl Turning {
    /// What is known of an agent's turn.
    pub(super) fn of(&self, id: RecordId) -> Option<&Turns> {
        self.of.get(&id)
    }
}

impl Supervisor {
    /// Something was written of an agent's turn. What was seen since stays.
    pub(super) fn turned(&mut self, now: Now, id: RecordId, mut turns: Turns) {
        let Some(record) = self.record(id).filter(|record| record.state.name() == StateName::Live) else {
            return;
        };
        if turns.runtime != record.runtime() {
            return;
        }
        let before = self.turning.of.remove(&id).filter(|before| before.runtime == turns.runtime);
        for (source, claim) in before.iter().flat_map(|before| &before.claims) {
            if let Some(written) = turns.claims.get_mut(source)
                && (written.state, written.since) == (claim.state, claim.since)
                && claim.seen > written.seen
            {
                written.seen = claim.seen;
                written.moves = claim.moves;
            }
        }
        let told = before.as_ref().is_none_or(|before| before.latest != turns.latest);
        self.turning.of.insert(id, turns);
        self.came(now, id, before.map(|before| before.phase), told);
    }

    /// A source shows this of an agent's turn now.
    pub(super) fn observed(&mut self, now: Now, id: RecordId, seen: Observation) {
        let Some(record) = self.record(id).filter(|record| record.state.name() == StateName::Live) else {
            return;
        };
        let (runtime, provider) = (record.runtime(), record.agent_kind.clone());
        let turns = self.turning.of.entry(id).or_default();
        if turns.runtime != runtime {
            *turns = Turns::new(&runtime);
        }
        let before = turns.phase;
        if turns.observe(&seen) {
            self.actions.push_back(Action::NoteTurn { record: id, runtime, provider, seen: Box::new(seen) });
            self.came(now, id, Some(before), false);
        }
    }

    /// What follows from an agent's being at something else than before, or from an event.
    fn came(&mut self, now: Now, id: RecordId, before: Option<State>, told: bool) {
        let Some(phase) = self.turning.of.get(&id).map(|turns| turns.phase) else { return };
        let changed = before != Some(phase);
        self.news |= changed;
        self.turn_news(now, id);
        if (changed || told) && matches!(phase, State::Waiting | State::NeedsInput) {
            self.rests(now, id);
        }
    }

    /// An agent waits for a tool, or does no longer.
    pub(super) fn called(&mut self, now: Now, id: RecordId, waits: bool) {
        if waits {
            self.turning.calls.insert(id, Look { at: now.mono + ASKS, last: false });
        } else {
            self.turning.calls.remove(&id);
        }
    }

    /// When the titles are looked at.
    pub(super) fn titles_due(&self) -> Option<Duration> {
        self.turning.calls.values().map(|look| look.at).min()
    }

    /// Looks at the titles of those that have waited for a tool for so long: twice for each.
    pub(super) fn ask_titles(&mut self, now: Now) {
        let due: Vec<(RecordId, Look)> = self
            .turning
            .calls
            .iter()
            .filter(|(_, look)| now.mono >= look.at)
            .map(|(id, look)| (*id, *look))
            .collect();
        let mut sockets = BTreeSet::new();
        for (id, look) in due {
            if look.last {
                self.turning.calls.remove(&id);
            } else {
                self.turning.calls.insert(id, Look { at: now.mono + TICK, last: true });
            }
            let record = self.record(id).filter(|record| record.state.name() == StateName::Live);
            sockets
                .extend(record.and_then(|record| Some(PathBuf::from(&record.ait.server.as_ref()?.socket))));
        }
        for socket in sockets {
            self.ask(now, &socket, Ask::Titles);
        }
    }

    /// Reads the titles that changed.
    pub(super) fn read_titles(&mut self, now: Now) {
        let mut changed = Vec::new();
        for record in self.live_records() {
            let Some(title) = self.title(record) else { continue };
            let runtime = record.runtime();
            let read = self.turning.read.get(&record.id);
            if read.is_none_or(|(of, before)| *of != runtime || before != title) {
                changed.push((record.id, record.agent_kind.clone(), runtime, title.clone()));
            }
        }
        for (id, kind, runtime, title) in changed {
            let known = self.turning.of.get(&id).filter(|turns| turns.runtime == runtime);
            let marked = known.is_some_and(|turns| turns.claims.contains_key(&Source::Title));
            let titled = self.turning.catalog.titled(&kind, &title.to_str_lossy());
            self.turning.read.insert(id, (runtime, title));
            self.observed(now, id, titled.observation(marked, now.moment));
        }
        // those that ended
        let live: BTreeSet<RecordId> = self.live().collect();
        if self.turning.of.len().max(self.turning.read.len()) > live.len() {
            self.turning.of.retain(|id, _| live.contains(id));
            self.turning.read.retain(|id, _| live.contains(id));
        }
    }

    /// The title of a live agent's pane, where its server is watched.
    fn title(&self, record: &Record) -> Option<&BString> {
        let epoch = record.ait.server.as_ref()?;
        let up = self.servers.get(Path::new(&epoch.socket))?.up()?;
        let ours = up.identity.process == epoch.process() && !up.silent;
        up.titles.get(&PaneId(record.location.pane_id()?.0)).filter(|_| ours)
    }

    /// What a live agent is at.
    #[must_use]
    pub fn turn(&self, record: &Record, now: Now) -> View {
        let known = self.turning.of.get(&record.id);
        let Some(turns) = known.filter(|turns| turns.runtime == record.runtime()) else {
            return View::unknown();
        };
        let titled = self.title(record).is_some();
        turns.view_while(now.moment, |source| match source {
            Source::Title => titled,
            Source::Registry => true,
            Source::Osc7501
            | Source::Hook
            | Source::Rollout
            | Source::Osc94
            | Source::Osc133
            | Source::Screen
            | Source::Timing
            | Source::Runtime => false,
        })
    }

    /// What each live agent is at.
    #[must_use]
    pub fn turns(&self, now: Now) -> Vec<TurnStatus> {
        let one = |record: &Record| TurnStatus {
            record: record.id.to_string(),
            provider: record.agent_kind.clone(),
            turn: self.turn(record, now),
        };
        let mut all: Vec<TurnStatus> = self.live_records().map(one).collect();
        if all.len() > EXPLAINED {
            all.iter_mut().for_each(|one| one.turn.why.clear());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SOCKET, Stage, answer, attached, attaching, listing, record, view};
    use super::super::{Answer, Input, LinkEvent, LinkId, Tag};
    use super::*;

    /// A Codex on a server that is watched.
    fn watching() -> (Stage, LinkId) {
        let mut stage = Stage::telling(Vec::new(), BTreeSet::new());
        let codex = Record { agent_kind: "codex".into(), ..record("now") };
        let link = attaching(&stage.tell(Input::Store(Ok(view(vec![codex])))));
        let asked = listing(&attached(&mut stage, link)).expect("a listing");
        answer(&mut stage, asked, "w", true);
        (stage, link)
    }

    fn called(stage: &mut Stage, waits: bool) {
        stage.tell(Input::Called { record: record("now").id, waits });
    }

    /// The question for the titles, once so much time has passed.
    fn asked_after(stage: &mut Stage, time: Duration) -> Option<Tag> {
        stage.mono += time;
        stage.tell(Input::Tick).iter().find_map(|action| match action {
            Action::Ask { tag, ask: Ask::Titles, .. } => Some(*tag),
            _ => None,
        })
    }

    #[test]
    fn the_title_of_one_that_waits_for_a_tool_is_looked_at_twice() {
        let (mut stage, link) = watching();
        called(&mut stage, true);
        assert_eq!(stage.supervisor.titles_due(), Some(stage.mono + ASKS));
        assert_eq!(asked_after(&mut stage, ASKS / 2), None);
        let pane = PaneId(record("now").location.pane_id().unwrap().0);
        let answered = |stage: &mut Stage, time: Duration, title: &str| {
            let tag = asked_after(stage, time).expect("the titles");
            let titles = Answer::Titles(vec![(pane, title.into())]);
            let event = LinkEvent::Answer { tag, answer: titles };
            stage.tell(Input::Link { socket: SOCKET.into(), link, event });
            stage.supervisor.turning.of.get(&record("now").id).expect("its turn").phase
        };
        assert_eq!(answered(&mut stage, ASKS / 2, "[ ! ] Action Required | x"), State::NeedsInput);
        // tmux may never have seen that: whoever answers at once is asked by nobody any more
        assert_ne!(answered(&mut stage, TICK, "x"), State::NeedsInput);
        assert_eq!((stage.supervisor.titles_due(), asked_after(&mut stage, ASKS * 2)), (None, None));
        // one that has answered by then asks for nothing
        called(&mut stage, true);
        called(&mut stage, false);
        assert_eq!((stage.supervisor.titles_due(), asked_after(&mut stage, ASKS * 2)), (None, None));
    }
}
