//! What recovery must keep, worked out from the world's own truth: only what is wanted comes back unasked, nothing is tried
//! for ever, and at rest each lost agent is back once or there with a reason.

use ait::record::{Desired, LossCause, Policy, ProcessId, Record, RecordId, Records, Stamp, State};
use ait::supervisor::recovery::{AttemptEnd, Choice, Policies, choose};

use crate::recovery::Tries;
use crate::world::Sim;

/// What is to become of a loss that nothing was tried of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Back,
    Offered,
    Kept,
}

impl Sim {
    pub(crate) fn choose_policies(&mut self) {
        let servers = match self.dice.below(20) {
            0..15 => Policy::Auto,
            15..18 => Policy::Offer,
            _ => Policy::Off,
        };
        let agents = self.dice.pick(&[Policy::Auto, Policy::Offer, Policy::Offer, Policy::Off]);
        self.no_program = self.dice.percent(4);
        self.policies = Some(Policies { servers, agents: agents.unwrap_or(Policy::Offer) });
    }

    /// The contract's table: the cause, the user's policy and wish, and how long it had lived.
    fn wanted(&self, record: &Record) -> Option<Wanted> {
        let lost = record.state.lost()?;
        let policies = self.policies?;
        let crashed = lost.cause == LossCause::AgentCrashed;
        let general = if crashed { policies.agents } else { policies.servers };
        let killed = crashed && lost.signal == Some(9);
        let meant = matches!(record.ait.desired, Some(Desired::Frozen | Desired::Stopped));
        let again = lost.lived.is_some_and(|lived| lived < 60);
        Some(match record.ait.recover.unwrap_or(general) {
            Policy::Off => Wanted::Kept,
            Policy::Auto if lost.cause != LossCause::ServerStopped && !killed && !meant && !again => {
                Wanted::Back
            }
            Policy::Auto | Policy::Offer => Wanted::Offered,
        })
    }

    /// A process is about to be started for these; `life`: by that supervisor.
    pub(crate) fn check_wanted(&mut self, life: Option<u32>, records: &[RecordId]) {
        let Some(host) = self.host.as_ref().filter(|host| Some(host.life) == life) else { return };
        let told = std::sync::Arc::clone(&host.told);
        for id in records {
            let wanted = told.get(*id).and_then(|record| self.wanted(record));
            if wanted != Some(Wanted::Back) {
                return self.fail("only what is wanted comes back", format!("{id} is {wanted:?}"));
            }
        }
    }

    /// A recovery of one loss begins.
    pub(crate) fn check_tries(&mut self, id: RecordId, lost_at: Stamp, by_supervisor: bool) {
        let before = self.oracle.tries.get(&(id, lost_at)).copied().unwrap_or_default();
        if by_supervisor {
            // what a full disk did not keep is not known
            let kept = self.disk.book.get(&id).filter(|attempt| attempt.lost_at == lost_at);
            let over = kept.is_some_and(|attempt| attempt.tries >= 3 || attempt.end == AttemptEnd::Failed);
            if over {
                return self.fail("nothing is tried for ever", format!("{id}: {before:?}"));
            }
        }
        let unasked = before.unasked + u32::from(by_supervisor);
        let after = Tries { begun: before.begun + 1, unasked, ..before };
        self.oracle.tries.insert((id, lost_at), after);
    }

    /// An agent is about to be told to end because its server is gone.
    pub(crate) fn check_outlived(&mut self, id: RecordId, agent: &ProcessId) {
        let record = self.disk.records.get(id).cloned();
        let own = record.as_ref().and_then(|record| record.state.lost()?.agent.clone());
        let at = self.kernel.process(agent).and_then(|process| process.terminal);
        let seated = at.is_some_and(|(server, pane)| {
            let tmux = &self.servers[server];
            tmux.alive && tmux.panes.get(&pane).is_some_and(|there| there.process == *agent)
        });
        if own.as_ref() != Some(agent) || seated {
            self.fail("strangers are left alone", format!("{agent:?} of {id}, {own:?}, seated {seated}"));
        }
    }

    // --- at rest

    pub(crate) fn check_recovered(&mut self, records: &Records) {
        if let Some(at) = self.recoveries.iter().position(|recovery| recovery.alive) {
            return self.fail("coordinators end", format!("recovery {at}"));
        }
        self.check_doubles();
        for record in records.iter() {
            self.check_loss_at_rest(record);
        }
    }

    /// Each lost agent is there with a reason.
    fn check_loss_at_rest(&mut self, record: &Record) {
        let State::Frozen { lost: Some(lost) } = &record.state else { return };
        let Some(policies) = self.policies else { return };
        let tries = self.oracle.tries.get(&(record.id, lost.at)).copied().unwrap_or_default();
        let wanted = self.wanted(record);
        let said = choose(record, policies, self.disk.book.get(&record.id));
        let good = match (wanted, &said) {
            (Some(Wanted::Kept), Some(Choice::Keep)) | (Some(Wanted::Offered), Some(Choice::Offer(_))) => {
                true
            }
            // it was tried, and that did not work
            (Some(Wanted::Back), Some(Choice::Offer(_))) => tries.failed || tries.begun >= 3,
            _ => false,
        };
        if !good {
            let text = format!("{}: {lost:?} is {wanted:?}, {tries:?}, said: {said:?}", record.id);
            self.fail("back or offered", text);
        }
    }

    /// No conversation has a second agent that a restore started.
    fn check_doubles(&mut self) {
        let living = self.living_agents();
        for at in &living {
            let (known, restored) = (&self.agents[*at], self.agents[*at].manner.is_some());
            let earlier = living.iter().find(|other| {
                let first = &self.agents[**other];
                *other < at
                    && first.conversation == known.conversation
                    && !self.oracle.excused.contains(*other)
            });
            if let Some(other) = earlier.filter(|_| restored) {
                let text = format!("agents {other} and {at} have {}", known.conversation);
                return self.fail("never doubled", text);
            }
        }
    }
}
