//! Checkpoints: the screen of each live agent is kept, so that a crash of its server loses nothing of it.
//!
//! Taken by event, never by looking again and again: when the provider's hook says that a turn ended or that the agent needs an
//! answer, and while output flows, at most once in [`APART`]. tmux tells of output by windows and spans of time
//! ([`crate::world::mark::FLOW`]): the first output of a span is told and the later ones are not, so there is one more capture
//! once the span is over; then nothing is due. One capture is under way at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tmux_control::{PaneId, WindowId};

use super::{Action, Now, Record, RecordId, StateName, Supervisor};
use crate::world::mark::FLOW_SPAN;

/// The time between two captures of one agent while its output flows.
const APART: Duration = Duration::from_secs(FLOW_SPAN);

/// What is kept of whom, and when again.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    of: BTreeMap<RecordId, Schedule>,
    /// The capture under way.
    under_way: Option<RecordId>,
}

/// When an agent's screen was and will be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Schedule {
    /// When it was last kept.
    last: Option<Duration>,
    /// When it is to be kept next.
    due: Option<Duration>,
    /// When the output that was last told of is surely over.
    tail: Option<Duration>,
}

impl Schedule {
    /// There was output in a span of time that is over then, if it is not over yet.
    fn flows(&mut self, now: Duration, over: Option<Duration>) {
        let soonest = self.last.map_or(now, |last| now.max(last + APART));
        self.due = Some(self.due.map_or(soonest, |due| due.min(soonest)));
        self.tail = over;
    }

    /// The agent came to rest: what it shows now is what matters.
    fn rests(&mut self, now: Duration) {
        self.due = Some(now);
    }

    /// It is being kept.
    fn taken(&mut self, now: Duration) {
        self.last = Some(now);
        self.tail = self.tail.filter(|tail| *tail > now);
        self.due = self.tail.map(|tail| tail.max(now + APART));
    }
}

impl Supervisor {
    /// tmux told in which windows there was output.
    pub(super) fn flowed(&mut self, now: Now, socket: &Path, windows: &[(WindowId, u64)]) {
        let Some(up) = self.servers.get_mut(socket).and_then(super::Server::up_mut) else { return };
        let changed: BTreeMap<WindowId, u64> = windows
            .iter()
            .filter(|(window, span)| up.flow.insert(*window, *span) != Some(*span))
            .copied()
            .collect();
        self.plan_may_move(socket);
        let Some(up) = self.servers.get(socket).and_then(super::Server::up) else { return };
        let here: Vec<(RecordId, u64)> = self
            .records()
            .filter(|record| record.state.name() == StateName::Live)
            .filter(|record| {
                record.ait.server.as_ref().is_some_and(|epoch| epoch.process() == up.identity.process)
            })
            .filter_map(|record| Some((record.id, up.world.pane(PaneId(record.location.pane_id()?.0))?)))
            .filter_map(|(id, row)| Some((id, *changed.get(&row.window)?)))
            .collect();
        for (id, span) in here {
            self.checkpoints.of.entry(id).or_default().flows(now.mono, over(now, span));
        }
    }

    /// An agent came to rest: its turn ended, or it needs an answer.
    pub(super) fn rests(&mut self, now: Now, record: RecordId) {
        self.checkpoints.of.entry(record).or_default().rests(now.mono);
    }

    /// A capture is over, whatever came of it.
    pub(super) fn checkpointed(&mut self, record: RecordId) {
        if self.checkpoints.under_way == Some(record) {
            self.checkpoints.under_way = None;
        }
    }

    /// When the next capture is due; nothing waits for the time while one is under way.
    pub(super) fn checkpoint_due(&self) -> Option<Duration> {
        if self.checkpoints.under_way.is_some() {
            return None;
        }
        self.checkpoints.of.values().filter_map(|schedule| schedule.due).min()
    }

    /// Has the next screen kept that is due, that of an agent not seen before first. One that cannot be seen now is a new one
    /// once it can.
    pub(super) fn checkpoint(&mut self, now: Now) {
        let known = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let live =
            |id: &RecordId| known.get(*id).is_some_and(|record| record.state.name() == StateName::Live);
        self.checkpoints.of.retain(|id, _| live(id));
        if self.checkpoints.under_way.is_some() {
            return;
        }
        let new = known.iter().find(|record| {
            record.state.name() == StateName::Live
                && !self.checkpoints.of.contains_key(&record.id)
                && self.seen(record).is_some()
        });
        if let Some(record) = new {
            // the output that was told of before it was known
            let over = self.span_of(record).and_then(|span| over(now, span));
            self.checkpoints.of.entry(record.id).or_default().flows(now.mono, over);
        }
        let due = self.checkpoints.of.iter().filter_map(|(id, schedule)| Some((schedule.due?, *id)));
        let mut due: Vec<_> = due.filter(|(due, _)| *due <= now.mono).collect();
        due.sort();
        for (_, id) in due {
            let seen = known.get(id).and_then(|record| self.seen(record));
            let Some(action) = seen else {
                self.checkpoints.of.remove(&id);
                continue;
            };
            self.checkpoints.of.entry(id).or_default().taken(now.mono);
            self.checkpoints.under_way = Some(id);
            self.actions.push_back(action);
            return;
        }
    }

    /// In which span of time there was output in its window last.
    fn span_of(&self, record: &Record) -> Option<u64> {
        let up = self.servers.get(Path::new(&record.ait.server.as_ref()?.socket))?.up()?;
        let row = up.world.pane(PaneId(record.location.pane_id()?.0))?;
        up.flow.get(&row.window).copied()
    }

    /// The capture of a live agent in its stamped pane.
    fn seen(&self, record: &Record) -> Option<Action> {
        let epoch = record.ait.server.as_ref()?;
        let up = self.servers.get(Path::new(&epoch.socket))?.up()?;
        let pane = PaneId(record.location.pane_id()?.0);
        let row = up.world.pane(pane)?;
        let good = up.identity.process == epoch.process()
            && !up.silent
            && !row.dead
            && !self.dying.contains_key(&record.id)
            && row.stamp == record.id.to_string();
        good.then(|| Action::Checkpoint {
            socket: epoch.socket.clone().into(),
            server: (up.identity.process.pid, up.identity.started_at),
            pane,
            record: record.id,
        })
    }
}

/// When that span of time is over, if it is not yet; tmux counts by the wall clock, in whole seconds.
fn over(now: Now, span: u64) -> Option<Duration> {
    let end = span.saturating_add(1).checked_mul(FLOW_SPAN)? + 1;
    let left =
        end.checked_sub(u64::try_from(now.utc).ok()?).filter(|left| (1..=FLOW_SPAN + 1).contains(left))?;
    Some(now.mono + Duration::from_secs(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The moments, in seconds, at which a screen is kept when these things happen: `o` first output of a span of thirty
    /// seconds told, `r` at rest.
    fn kept(story: &[(u32, char)], until: u32) -> Vec<u32> {
        let mut schedule = Schedule::default();
        let mut kept = Vec::new();
        for second in 0..until {
            let now = SECOND * second;
            for (_, what) in story.iter().filter(|(at, _)| *at == second) {
                match what {
                    'o' => schedule.flows(now, Some(SECOND * (second / 30 * 30 + 31))),
                    _ => schedule.rests(now),
                }
            }
            if schedule.due.is_some_and(|due| due <= now) {
                schedule.taken(now);
                kept.push(second);
            }
        }
        kept
    }

    #[test]
    fn one_burst_is_kept_at_its_begin_and_once_its_span_is_over() {
        assert_eq!(kept(&[(5, 'o')], 200), [5, 35]);
        assert_eq!(kept(&[(29, 'o')], 200), [29, 59]);
    }

    #[test]
    fn steady_output_is_kept_every_thirty_seconds_and_once_more() {
        assert_eq!(kept(&[(0, 'o'), (30, 'o'), (60, 'o')], 300), [0, 30, 60, 91]);
    }

    #[test]
    fn an_agent_that_comes_to_rest_is_kept_at_once() {
        assert_eq!(kept(&[(0, 'o'), (3, 'r'), (4, 'r')], 300), [0, 3, 4, 34]);
        assert_eq!(kept(&[(9, 'r')], 300), [9]);
    }

    #[test]
    fn a_span_is_over_by_the_wall_clock() {
        let now = Now::at(SECOND * 7, 3_001);
        assert_eq!(over(now, 100), Some(SECOND * (7 + 30)));
        assert_eq!(over(now, 99), None, "long over");
        assert_eq!(over(now, 1000), None, "a clock that was set back");
        assert_eq!(over(now, u64::MAX), None);
    }
}
