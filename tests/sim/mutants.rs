//! Deliberate bugs: each makes the supervisor, its disk or its servers misbehave in one way, and the oracle must see it.

use ait::record::{LossCause, Record, RecordId, State, Verb};
use ait::supervisor::{Action, Answer, Ask, Tag, Ticket};
use tmux_control::PaneId;

use crate::Cast;
use crate::disk::Batch;
use crate::world::Sim;

/// One way to misbehave, and the rules of which one must be seen broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Half a listing is taken for the whole, and the store believes every end.
    PartialView,
    /// A server that is only stopped is taken for dead, and the store believes it.
    UnknownIsGone,
    /// Ends an agent that lives, and the store believes it.
    EndsTheLiving,
    /// A removed record gets no line in the archive.
    ForgetsArchive,
    /// Each record is there twice.
    Doubles,
    /// A killed agent counts as ended.
    CallsCrashesEnds,
    /// A crash of the server counts as a stop and a stop as a crash.
    SwapsCauses,
    /// The losses of one server go one by one.
    LosesOneByOne,
    /// The guard of a kill does not look whether the pane is dead or ours.
    KillsUnguarded,
    /// A kill of a pane whose record is live.
    KillsTheKept,
    /// A stamp is written over another's.
    ForgetsStampGuard,
    /// Orders to a server that is over go to the next one on its socket.
    RecycledPanes,
    /// A second client.
    TwoClients,
    /// A client is never let go.
    KeepsClient,
    /// `_ait` stays when the client goes.
    LeavesAit,
    /// Renames are not followed.
    FollowsNothing,
    /// Deaths of agents are not heard of.
    HearsNoDeath,
    /// A deadline every second, for ever.
    Polls,
    /// A tick alone makes it ask.
    AsksOnTick,
    /// A kill and a move in one go.
    KillsAndMoves,
    /// After a reboot the ends just before it are not looked at.
    ForgetsEnds,
    /// After a reboot every end there ever was counts as part of it.
    ClaimsAll,
    /// Stamps are left when it ends.
    LeavesStamps,
    /// An agent is ended while its record is still live.
    EndsUnbegun,
    /// An agent is ended without a capture.
    EndsUncaptured,
    /// What is watched counts as dead.
    BuriesTheLiving,
    /// Another agent is signalled as well.
    EndsAnother,
    /// A deed goes to the same id in another life of the server.
    ForgetsEpoch,
    /// A deed does not look which process is in the pane.
    ForgetsProcess,
    /// A deed does not look whether the stand-in's stamp is on the pane.
    ForgetsStamp,
    /// A stand-in is said to be there and is not.
    ForgetsStandin,
    /// A launch starts two.
    LaunchesTwice,
    /// Preflight sees no agent that runs already.
    SeesNoSurvivor,
    /// The hook of whoever inherited the surroundings counts as the launched one's.
    TrustsAnyHook,
    /// Captures go as soon as something was launched.
    DeletesUnverified,
    /// A lease protects nobody.
    StealsLeases,
    /// A lease is never free again.
    KeepsLeases,
    /// What is to come back by itself does not.
    NeverRecovers,
    /// Everything that is lost is brought back unasked.
    RecoversAll,
    /// What was tried before is forgotten.
    ForgetsBook,
    /// An agent that outlived its server is not seen.
    ForgetsOutlived,
    /// Stand-ins that are there already are not seen.
    PlacesTwice,
    /// All restores of a fleet begin at once.
    BeginsAll,
    /// A row of failures does not stop a fleet.
    NeverBreaks,
}

impl Mutant {
    pub(crate) const ALL: [Self; 44] = [
        Self::PartialView,
        Self::UnknownIsGone,
        Self::EndsTheLiving,
        Self::ForgetsArchive,
        Self::Doubles,
        Self::CallsCrashesEnds,
        Self::SwapsCauses,
        Self::LosesOneByOne,
        Self::KillsUnguarded,
        Self::KillsTheKept,
        Self::ForgetsStampGuard,
        Self::RecycledPanes,
        Self::TwoClients,
        Self::KeepsClient,
        Self::LeavesAit,
        Self::FollowsNothing,
        Self::HearsNoDeath,
        Self::Polls,
        Self::AsksOnTick,
        Self::KillsAndMoves,
        Self::ForgetsEnds,
        Self::ClaimsAll,
        Self::LeavesStamps,
        Self::EndsUnbegun,
        Self::EndsUncaptured,
        Self::BuriesTheLiving,
        Self::EndsAnother,
        Self::ForgetsEpoch,
        Self::ForgetsProcess,
        Self::ForgetsStamp,
        Self::ForgetsStandin,
        Self::LaunchesTwice,
        Self::SeesNoSurvivor,
        Self::TrustsAnyHook,
        Self::DeletesUnverified,
        Self::StealsLeases,
        Self::KeepsLeases,
        Self::NeverRecovers,
        Self::RecoversAll,
        Self::ForgetsBook,
        Self::ForgetsOutlived,
        Self::PlacesTwice,
        Self::BeginsAll,
        Self::NeverBreaks,
    ];

    /// The world that can show it.
    pub(crate) fn cast(self) -> Cast {
        let at = |of: Self| Self::ALL.iter().position(|one| *one == of);
        if at(self) >= at(Self::NeverRecovers) {
            Cast::Fleet
        } else if at(self) >= at(Self::EndsUnbegun) {
            Cast::Cycle
        } else {
            Cast::Watch
        }
    }

    /// The rules it breaks; one of them is to be named.
    pub(crate) fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::PartialView => &["ends are true", "ended agents are dead"],
            Self::UnknownIsGone => &["unknown is not gone"],
            Self::EndsTheLiving => &["ended agents are dead"],
            Self::ForgetsArchive => &["none lost"],
            Self::Doubles => &["none doubled"],
            Self::CallsCrashesEnds => &["ends are true"],
            Self::SwapsCauses => &["causes are true"],
            Self::LosesOneByOne => &["one write"],
            Self::KillsUnguarded => &["kills only what is over", "kills only ours"],
            Self::KillsTheKept => &["kills only what is over"],
            Self::ForgetsStampGuard => &["stamps stay"],
            Self::RecycledPanes => &["strangers are left alone"],
            Self::TwoClients => &["one client"],
            Self::KeepsClient => &["no client without a record"],
            Self::LeavesAit => &["`_ait` goes with us", "empty servers end"],
            Self::FollowsNothing => &["names are right in the end"],
            Self::HearsNoDeath => &["ended in the end", "lost in the end"],
            Self::Polls | Self::AsksOnTick => &["sleeps", "a tick is only the time"],
            Self::KillsAndMoves => &["one at a time"],
            Self::ForgetsEnds => &["a shutdown is not a stop"],
            Self::ClaimsAll => &["reboot claims its own"],
            Self::LeavesStamps => &["takes all back"],
            Self::EndsUnbegun => &["agents end only when begun"],
            Self::EndsUncaptured => &["agents end only when captured"],
            Self::BuriesTheLiving => &["never both", "the frozen are dead"],
            Self::EndsAnother | Self::ForgetsEpoch | Self::ForgetsProcess | Self::ForgetsStamp => {
                &["strangers are left alone"]
            }
            Self::ForgetsStandin => &["the frozen have stand-ins", "all is settled"],
            Self::LaunchesTwice | Self::SeesNoSurvivor => &["one agent a conversation"],
            Self::TrustsAnyHook | Self::DeletesUnverified => &["captures stay until verified"],
            Self::StealsLeases => &["leases are kept"],
            Self::KeepsLeases => &["no lease for ever", "all is settled", "sleeps"],
            Self::NeverRecovers => &["back or offered"],
            Self::RecoversAll => &["only what is wanted comes back"],
            Self::ForgetsBook => &["nothing is tried for ever"],
            Self::ForgetsOutlived => &["one agent a conversation"],
            Self::PlacesTwice => &["stand-ins stand for somebody"],
            Self::BeginsAll => &["few at once"],
            Self::NeverBreaks => &["a row of failures stops it"],
        }
    }
}

impl Sim {
    /// What the supervisor does instead of what it should.
    pub(crate) fn misbehave(&mut self, action: Action) -> Vec<Action> {
        let Some(mutant) = self.mutant else { return vec![action] };
        match (mutant, action) {
            (Mutant::EndsTheLiving, Action::Write { ticket, mut changes }) => {
                for (_, verb) in &mut changes {
                    if let Verb::Follow(_) = verb {
                        *verb = end("dead_window");
                    }
                }
                vec![Action::Write { ticket, changes }]
            }
            (Mutant::CallsCrashesEnds, Action::Write { ticket, mut changes }) => {
                for (_, verb) in &mut changes {
                    if let Verb::Lose { cause: LossCause::AgentCrashed, .. } = verb {
                        *verb = end("dead_pane");
                    }
                }
                vec![Action::Write { ticket, changes }]
            }
            (Mutant::SwapsCauses, Action::Write { ticket, mut changes }) => {
                for (_, verb) in &mut changes {
                    if let Verb::Lose { cause, .. } = verb {
                        *cause = match *cause {
                            LossCause::ServerStopped => LossCause::ServerCrashed,
                            LossCause::ServerCrashed => LossCause::ServerStopped,
                            other => other,
                        };
                    }
                }
                vec![Action::Write { ticket, changes }]
            }
            (Mutant::LosesOneByOne, Action::Write { ticket, changes }) => split(ticket, changes),
            (Mutant::ForgetsStampGuard | Mutant::RecycledPanes, Action::Ask { socket, link, tag, ask }) => {
                let other = match &ask {
                    Ask::Stamp { pane, pid, record } => self.wrong_stamp(mutant, *pane, *pid, *record),
                    _ => None,
                };
                let first = Action::Ask { socket: socket.clone(), link, tag, ask };
                let second = other.map(|ask| Action::Ask { socket, link, tag: Tag(u64::MAX), ask });
                second.into_iter().chain(std::iter::once(first)).collect()
            }
            (Mutant::KillsTheKept | Mutant::KillsUnguarded, Action::Ask { socket, link, tag, ask }) => {
                let ask = match ask {
                    Ask::KeepDead { pane, record } if mutant == Mutant::KillsUnguarded => {
                        Ask::KillDead { pane, record }
                    }
                    nudge @ Ask::Nudge { .. } => self.some_live_pane().unwrap_or(nudge),
                    other => other,
                };
                vec![Action::Ask { socket, link, tag, ask }]
            }
            (Mutant::TwoClients, Action::Attach { socket, link }) => {
                vec![Action::Attach { socket: socket.clone(), link }, Action::Attach { socket, link }]
            }
            (_, Action::Recover { records }) => self.misrecover(records),
            (Mutant::KeepsClient, Action::Detach { .. }) => Vec::new(),
            (Mutant::HearsNoDeath, Action::Watch(_)) => Vec::new(),
            (Mutant::KillsAndMoves, Action::Ask { socket, link, tag, ask: ask @ Ask::KillDead { .. } }) => {
                let to = tmux_control::SessionId(0);
                let client = "somebody".into();
                let first = Action::Ask { socket: socket.clone(), link, tag, ask };
                let ask = Ask::ExpelClient { client, to };
                vec![first, Action::Ask { socket, link, tag: Tag(u64::MAX), ask }]
            }
            (Mutant::LeavesStamps, Action::Ask { ask: Ask::Unstamp { .. }, .. }) => Vec::new(),
            (_, action) => vec![action],
        }
    }

    /// The record's stamp for another record's pane, or a stamp of another life of the server for this one.
    fn wrong_stamp(&self, mutant: Mutant, pane: PaneId, pid: i32, record: RecordId) -> Option<Ask> {
        let own = self.disk.records.get(record)?.ait.server.clone()?;
        self.disk.records.iter().filter(|other| other.id != record).find_map(|other| {
            let same = other.ait.server.as_ref()?.process() == own.process();
            if mutant == Mutant::RecycledPanes {
                return (!same).then_some(Ask::Stamp { pane, pid, record: other.id });
            }
            let there = PaneId(other.location.pane_id()?.0);
            let pid = other.location.process()?.pid;
            same.then_some(Ask::Stamp { pane: there, pid, record })
        })
    }

    fn some_live_pane(&self) -> Option<Ask> {
        self.disk.records.iter().find_map(|record| {
            let pane = PaneId(record.location.pane_id()?.0);
            Some(Ask::KillDead { pane, record: record.id })
        })
    }

    pub(crate) fn misbehave_on_tick(&mut self, action: Action) -> Vec<Action> {
        vec![action]
    }

    pub(crate) fn misbehave_on_nothing(&mut self) -> Vec<Action> {
        if self.is(Mutant::AsksOnTick) { vec![Action::Recall { since: 0 }] } else { Vec::new() }
    }

    /// What a server does instead of what it was asked.
    pub(crate) fn obey(&mut self, server: usize, ask: &Ask) -> Answer {
        if let (Some(Mutant::KillsUnguarded), Ask::KillDead { pane, .. }) = (self.mutant, ask) {
            let there = self.servers[server].panes.get(&pane.0).is_some_and(|pane| !pane.dead);
            if there {
                self.fail("kills only what is over", format!("%{} is alive", pane.0));
            }
        }
        self.obey_deed(server, ask).unwrap_or_else(|| self.servers[server].obey(ask))
    }

    /// What a client hears instead of what was answered.
    pub(crate) fn spoil_answer(&mut self, _conn: usize, answer: &mut Answer) {
        if let (Some(Mutant::PartialView), Answer::Listing(snapshot)) = (self.mutant, answer)
            && self.dice.percent(30)
        {
            let half = snapshot.panes.len() / 2;
            snapshot.panes.drain(..half);
        }
    }

    /// What the disk does instead of what it was told.
    pub(crate) fn spoil_batch(&mut self, batch: &mut Batch) {
        match self.mutant {
            Some(Mutant::ForgetsArchive) => batch.lines.clear(),
            Some(Mutant::DeletesUnverified) => {
                let launched =
                    |record: &&Record| matches!(record.state, State::Restoring { launch: Some(_), .. });
                batch.removed.extend(batch.records.iter().filter(launched).map(|record| record.id));
            }
            Some(Mutant::Doubles) => {
                let list: Vec<_> = batch.records.shared().cloned().collect();
                let twins = list.iter().map(|record| {
                    let mut twin = (**record).clone();
                    let bits = u32::try_from(self.dice.roll() >> 32).unwrap_or_default();
                    twin.id = RecordId::from_bits(bits);
                    std::sync::Arc::new(twin)
                });
                let all = list.iter().cloned().chain(twins).collect();
                batch.records = ait::record::Records::from_list(all, Default::default());
                batch.changed = true;
            }
            _ => {}
        }
    }
}

fn end(reason: &str) -> Verb {
    Verb::End { reason: reason.into(), evidence: "none".into(), provisional: false }
}

/// One write a change.
fn split(ticket: Ticket, changes: Vec<(RecordId, Verb)>) -> Vec<Action> {
    changes.into_iter().map(|change| Action::Write { ticket, changes: vec![change] }).collect()
}
