//! What the claims of all sources come to, and why.
//!
//! 1. A claim that nobody renewed within its time is no evidence: [`expiry`].
//! 2. The strongest counts. One of whoever started the agent, or that it is starting, gives way to any other.
//! 3. A weaker one that came to say otherwise after it was last heard corrects what was told once: hooks miss interrupts, a
//!    conversation's record has no requests.
//! 4. A weaker one that is still seen to say otherwise, longer after it than signals take ([`LAG`]), contradicts it: unknown.
//! 5. Work behind a turn is work: it is not waiting.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::machine::{Attention, Claim, Current, Last, Turns};
use super::{Confidence, Moment, Source, State};

/// How much later than the strongest signal a weaker one may still show what was before: titles are told once a second.
pub const LAG: Duration = Duration::from_secs(3);

/// How much later than what a conversation's record says a title may come to show what was before.
const DRAWN: Duration = Duration::from_millis(1500);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// How long a claim counts after it was last heard.
#[must_use]
pub fn expiry(source: Source, state: State, moves: bool) -> Duration {
    let seconds = match (source, state) {
        (Source::Osc7501 | Source::Hook | Source::Rollout, State::Working) => HOUR,
        (Source::Osc7501 | Source::Hook | Source::Rollout, State::Starting) => 15 * MINUTE,
        (
            Source::Osc7501 | Source::Hook | Source::Rollout,
            State::Waiting | State::NeedsInput | State::Unknown,
        ) => 24 * HOUR,
        (Source::Registry, _) => 10 * MINUTE,
        (Source::Osc94 | Source::Osc133, _) => 10 * MINUTE,
        (Source::Title, _) if moves => 30,
        (Source::Title | Source::Screen | Source::Runtime, _) => 2 * MINUTE,
        (Source::Timing, _) => MINUTE,
    };
    Duration::from_secs(seconds)
}

fn is_expired(source: Source, claim: &Claim, now: Moment) -> bool {
    claim.seen.age(now) > expiry(source, claim.state, claim.moves)
}

/// What an agent is at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The state.
    pub state: State,
    /// Who says so; `None` if it is unknown.
    pub source: Option<Source>,
    /// Since when, as far as that is known.
    pub since: Option<Moment>,
    /// When that source was last heard.
    pub seen: Option<Moment>,
    /// How sure it is; `None` if it is unknown.
    pub confidence: Option<Confidence>,
    /// Work goes on behind a turn that is over.
    pub background: bool,
    /// Prompts wait behind the one that is worked on.
    pub queued: bool,
    /// What it asks for, the oldest request; only while it needs input.
    pub attention: Option<Attention>,
    /// How many requests stand.
    pub pending: u64,
    /// The turn that runs.
    pub current: Option<Current>,
    /// The last turn that ended.
    pub last: Option<Last>,
    /// Grows with every change.
    pub revision: u64,
    /// Each source, the strongest first, and what became of what it says.
    pub why: Vec<Evidence>,
}

/// What one source says, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The source.
    pub source: Source,
    /// What it says.
    pub says: State,
    /// The event or what was seen.
    pub event: String,
    /// Since when it says so.
    pub since: Moment,
    /// When it was last heard.
    pub seen: Moment,
    /// Whether work goes on behind the turn.
    #[serde(default)]
    pub background: bool,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", content = "by", rename_all = "snake_case")]
pub enum Verdict {
    /// It counts.
    Won,
    /// It says the same as the one that counts.
    Agrees,
    /// A stronger source says otherwise, of later or of the same time.
    Outweighed(Source),
    /// That source showed later that it is over.
    Corrected(Source),
    /// Nobody renewed it in time.
    Expired,
    /// It and that source contradict each other; neither counts.
    Contradicts(Source),
}

impl View {
    /// Nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Turns::default().view(Moment::default())
    }

    /// Whether it is no more than a guess: it is shown with a `?`, and nothing is done because of it.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        self.source == Some(Source::Timing)
    }

    /// The source in a person's words: `hook`, `timing?`, `-`.
    #[must_use]
    pub fn shown_source(&self) -> String {
        match self.source {
            None => "-".to_owned(),
            Some(source) if self.is_guess() => format!("{}?", source.word()),
            Some(source) => source.word().to_owned(),
        }
    }

    /// The state in a person's words: `working`, `waiting?` where it is no more than a guess, `-`.
    #[must_use]
    pub fn shown_state(&self) -> String {
        match self.state {
            State::Unknown => "-".to_owned(),
            state if self.is_guess() => format!("{}?", state.word()),
            state => state.word().to_owned(),
        }
    }
}

impl Turns {
    /// Whether nobody renewed one of the claims in time, by what is known here.
    #[must_use]
    pub fn is_old(&self, now: Moment) -> bool {
        self.claims.iter().any(|(source, claim)| is_expired(*source, claim, now))
    }

    /// Takes over when each source was last heard from somebody who hears more than what changes: what a title or a list of
    /// running agents shows is written once, and stands for as long as it stands.
    pub fn renew(&mut self, told: &View) {
        for evidence in &told.why {
            if let Some(claim) = self.claims.get_mut(&evidence.source)
                && claim.state == evidence.says
            {
                claim.seen = claim.seen.max(evidence.seen);
            }
        }
    }

    /// What all claims come to now.
    #[must_use]
    pub fn view(&self, now: Moment) -> View {
        self.view_while(now, |_| false)
    }

    /// The same, where `stands` says of which sources somebody would have heard a change: what they last said holds now. What
    /// would move if it were true is not held by that.
    #[must_use]
    pub fn view_while(&self, now: Moment, stands: impl Fn(Source) -> bool) -> View {
        let held: Vec<(Source, Claim)> = self
            .claims
            .iter()
            .map(|(source, claim)| {
                let mut claim = claim.clone();
                if stands(*source) && !claim.moves {
                    claim.seen = claim.seen.max(now);
                }
                (*source, claim)
            })
            .collect();
        let mut verdicts = vec![Verdict::Expired; held.len()];
        let mut winner: Option<usize> = None;
        let mut contradiction = None;
        for (at, (source, claim)) in held.iter().enumerate() {
            if is_expired(*source, claim, now) {
                continue;
            }
            if let Some(by) = claim.corrected {
                verdicts[at] = Verdict::Corrected(by);
                continue;
            }
            let Some(won) = winner else {
                winner = Some(at);
                verdicts[at] = Verdict::Won;
                continue;
            };
            let (by, best) = &held[won];
            if claim.state == best.state {
                verdicts[at] = Verdict::Agrees;
            } else if best.state == State::Starting || corrects(*source, claim, *by, best) {
                verdicts[won] = Verdict::Corrected(*source);
                verdicts[at] = Verdict::Won;
                winner = Some(at);
            } else if claim.state != State::Starting && source.is_seen() && claim.seen > best.seen.after(LAG)
            {
                verdicts[at] = Verdict::Contradicts(*by);
                contradiction.get_or_insert((won, *source));
            } else {
                verdicts[at] = Verdict::Outweighed(*by);
            }
        }
        if let Some((_, by)) = contradiction
            && let Some(won) = winner.take()
        {
            verdicts[won] = Verdict::Contradicts(by);
        }
        let behind = held.iter().zip(&verdicts).find(|((_, claim), verdict)| {
            claim.background && matches!(verdict, Verdict::Won | Verdict::Agrees)
        });
        let (mut state, best) = match winner {
            Some(won) => (held[won].1.state, Some(&held[won])),
            None => (State::Unknown, None),
        };
        let background = state == State::Waiting && behind.is_some();
        let best = if background { behind.map(|(held, _)| held).or(best) } else { best };
        if background {
            state = State::Working;
        }
        let attention = self.attention.first().filter(|_| state == State::NeedsInput).cloned();
        let claimed = best.and_then(|(_, claim)| Some((claim.need?, claim.since)));
        let attention = attention.or_else(|| {
            let (kind, requested_at) = claimed.filter(|_| state == State::NeedsInput)?;
            Some(Attention { kind, requested_at, id: None, tool: None })
        });
        let pending = if state == State::NeedsInput { self.pending().max(1) } else { 0 };
        View {
            state,
            source: best.map(|(source, _)| *source),
            since: best.map(|(_, claim)| claim.since),
            seen: best.map(|(_, claim)| claim.seen),
            confidence: best.map(|(source, _)| source.confidence()),
            background,
            queued: self.is_queued(),
            attention,
            pending,
            current: self.current.clone(),
            last: self.last.clone(),
            revision: self.revision,
            why: held
                .into_iter()
                .zip(verdicts)
                .map(|((source, claim), verdict)| Evidence {
                    source,
                    says: claim.state,
                    event: claim.event,
                    since: claim.since,
                    seen: claim.seen,
                    background: claim.background,
                    verdict,
                })
                .collect(),
        }
    }
}

/// Whether a weaker source came to say otherwise after one that tells of changes only was last heard.
fn corrects(source: Source, claim: &Claim, by: Source, best: &Claim) -> bool {
    let later = match (by, claim.state) {
        (Source::Hook, _) => claim.since > best.seen,
        // it goes on to be written while somebody is asked
        (Source::Rollout, State::NeedsInput) => claim.since > best.since,
        // a picture of a moment may be drawn after the moment is over
        (Source::Rollout, _) => claim.since > best.seen.after(DRAWN),
        (
            Source::Osc7501
            | Source::Registry
            | Source::Osc94
            | Source::Osc133
            | Source::Title
            | Source::Screen
            | Source::Timing
            | Source::Runtime,
            _,
        ) => false,
    };
    (source.is_whole() || source == Source::Screen) && later
}

impl Source {
    /// Whether it shows what is there, so that it can contradict.
    fn is_seen(self) -> bool {
        match self {
            Self::Osc7501 | Self::Hook | Self::Registry | Self::Title | Self::Screen => true,
            Self::Rollout | Self::Osc94 | Self::Osc133 | Self::Timing | Self::Runtime => false,
        }
    }

    fn confidence(self) -> Confidence {
        match self {
            Self::Runtime => Confidence::Authoritative,
            Self::Osc7501
            | Self::Hook
            | Self::Registry
            | Self::Rollout
            | Self::Osc94
            | Self::Osc133
            | Self::Title => Confidence::Observed,
            Self::Screen | Self::Timing => Confidence::Inferred,
        }
    }
}

#[cfg(test)]
mod tests;
