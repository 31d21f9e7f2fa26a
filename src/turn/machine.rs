//! The turn of one agent: what was heard of it so far, and the two functions that change it.
//!
//! [`Turns::hear`] takes an event: prompts open a turn, an end closes it, a request stands until what it asked for is over.
//! [`Turns::observe`] takes what a source shows now. Each source has one [`Claim`] at a time; what they come to together is
//! worked out when somebody asks ([`Turns::view`]), so that a state grows old by itself.
//!
//! Three rules keep a lost or late event from sticking:
//! - what comes after a turn's end and is not a beginning (a tool's late result) opens none;
//! - a source that shows the whole agent (its own status, its registry, its title) and was seen to go from working to waiting
//!   closes the open turn, since no hook tells of an interrupt;
//! - the same from asking to anything else settles what was asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, Moment, Need, Observation, Source, State, What};

/// Prompts that are remembered.
const PROMPTS: usize = 32;
/// Requests that are remembered; more are counted.
pub const ATTENTIONS: usize = 64;
/// Uses of tools that are remembered until their end.
const TOOLS: usize = 64;
/// The longest name, in bytes.
const NAME: usize = 64;

/// All that is known of one agent's turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// The launch of the agent all this is of.
    pub runtime: String,
    /// Grows with every change.
    pub revision: u64,
    /// Events taken in this runtime.
    pub accepted: u64,
    /// When anything was last heard.
    pub heard_at: Moment,
    /// Prompts that were submitted and whose turn has not ended, the oldest first: the first is worked on, the others wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// The turn that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
    /// The last turn that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// What the agent asks for, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// Requests beyond those.
    #[serde(default, skip_serializing_if = "is_none")]
    pub overflow: u64,
    /// Uses of tools that have begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// What each source says.
    #[serde(default)]
    pub claims: BTreeMap<Source, Claim>,
    /// The state at the last change; unknown where that is no more than a guess.
    pub phase: State,
    /// When [`Turns::phase`] last changed.
    pub phase_at: Moment,
    /// The last event that was taken, until the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Event>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The turn that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    /// Its id, where the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it began.
    pub started_at: Moment,
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Its id, where the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it began, where that was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
    /// When it ended.
    pub completed_at: Moment,
    /// How.
    pub outcome: Ending,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done.
    Completed,
    /// It failed.
    Failed,
    /// Something else began.
    Interrupted,
    /// It was seen to be over; nobody said how.
    Unknown,
}

/// Something the agent asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// For what.
    pub kind: Need,
    /// When it was asked.
    pub requested_at: Moment,
    /// The request's own id, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A use of a tool that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool.
    pub tool: String,
    /// This use of it.
    pub id: String,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What the agent is at.
    pub state: State,
    /// Since when it says so.
    pub since: Moment,
    /// When it was last heard.
    pub seen: Moment,
    /// The provider's own name of the event, or what was seen.
    pub event: String,
    /// It would be seen to move if it were still true.
    #[serde(default, skip_serializing_if = "is_false")]
    pub moves: bool,
    /// Work goes on behind the turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub background: bool,
    /// What it asks for, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<Need>,
    /// Another source showed since then that it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Source>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Source {
    /// Whether it shows the whole agent as it is, so that a change in it ends what an event began.
    pub(super) fn is_whole(self) -> bool {
        match self {
            Self::Osc7501 | Self::Registry | Self::Rollout | Self::Title => true,
            Self::Hook | Self::Osc94 | Self::Osc133 | Self::Screen | Self::Timing | Self::Runtime => false,
        }
    }
}

impl Turns {
    /// Nothing is known of this runtime yet.
    #[must_use]
    pub fn new(runtime: &str) -> Self {
        Self { runtime: runtime.to_owned(), ..Self::default() }
    }

    /// The agent was launched anew: what is open was interrupted, and whatever any source said was of the one before.
    pub fn begin(&mut self, runtime: &str, at: Moment) {
        self.close(at, Ending::Interrupted);
        runtime.clone_into(&mut self.runtime);
        self.accepted = 0;
        self.latest = None;
        self.claims.clear();
        self.claim(Source::Runtime, State::Starting, at, "launched");
        self.changed(at);
    }

    /// Whether prompts wait behind the one that is worked on.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.open.len() > 1
    }

    /// Requests that stand.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.attention.len() as u64 + self.overflow
    }

    /// Takes an event that was not taken before.
    pub fn hear(&mut self, event: &Event) {
        let at = event.at;
        let prompt = event.prompt.as_deref();
        let state = match &event.what {
            What::Started => {
                self.close(at, Ending::Interrupted);
                Some(State::Starting)
            }
            What::Cleared => {
                self.close(at, Ending::Interrupted);
                Some(State::Waiting)
            }
            What::TurnStarted => {
                self.submitted(prompt, at);
                Some(State::Working)
            }
            What::Progress { tool, tool_use } => {
                self.goes_on(prompt, at);
                if let (Some(tool), Some(id)) = (tool, tool_use) {
                    self.begun(tool, id);
                }
                Some(self.under_way())
            }
            What::AttentionRequested { attention, request, tool } => {
                self.goes_on(prompt, at);
                self.asks(*attention, request.as_deref(), tool.as_deref(), at);
                Some(State::NeedsInput)
            }
            What::AttentionCleared { request, tool } => {
                self.settled(request.as_deref(), tool.as_deref());
                self.over_before(prompt);
                self.current.is_some().then(|| self.under_way())
            }
            What::AttentionsCleared => {
                self.attention.clear();
                self.overflow = 0;
                self.over_before(prompt);
                self.current.is_some().then_some(State::Working)
            }
            What::StopObserved => None,
            What::TurnCompleted { background } => self.ends(prompt, at, Ending::Completed, Some(*background)),
            What::TurnFailed => self.ends(prompt, at, Ending::Failed, Some(false)),
            What::TurnInterrupted => self.ends(prompt, at, Ending::Interrupted, Some(false)),
            What::Idle => self.ends(None, at, Ending::Unknown, None),
        };
        if let Some(state) = state {
            let background = match (&event.what, self.claims.get(&event.source)) {
                (What::TurnCompleted { background }, _) => *background,
                (What::Idle, Some(claim)) => claim.background,
                _ => false,
            };
            self.claim(event.source, state, at, &event.name).background = background;
        }
        self.accepted += 1;
        self.latest = Some(event.clone());
        self.changed(at);
    }

    /// Takes what a source shows now. Whether that is another thing than before: what is only seen again is not worth writing.
    pub fn observe(&mut self, seen: &Observation) -> bool {
        let before = self.claims.get(&seen.source).cloned();
        let Some(state) = seen.state.filter(|state| *state != State::Unknown) else {
            self.claims.remove(&seen.source);
            if before.is_some() {
                self.changed(seen.at);
            }
            return before.is_some();
        };
        if let Some(claim) = self.claims.get_mut(&seen.source) {
            let same = (claim.state, claim.background, claim.need, claim.corrected)
                == (state, seen.background, seen.need, None);
            // a source that says since when tells of a change that ended as it began
            if same && seen.since.is_none_or(|since| since <= claim.since) {
                claim.seen = claim.seen.max(seen.at);
                claim.moves = seen.moves;
                return false;
            }
        }
        let since = seen.since.unwrap_or(seen.at);
        if let Some(before) = &before {
            self.correct(seen, before, state, since);
        }
        let claim = Claim {
            state,
            since,
            seen: seen.at,
            event: short(&seen.detail),
            moves: seen.moves,
            background: seen.background,
            need: seen.need,
            corrected: None,
        };
        self.claims.insert(seen.source, claim);
        self.changed(seen.at);
        true
    }

    /// What a change in a whole source says of what events began.
    fn correct(&mut self, seen: &Observation, before: &Claim, state: State, since: Moment) {
        if !seen.source.is_whole() {
            return;
        }
        let hook = self.claims.get(&Source::Hook).filter(|hook| hook.since <= since).cloned();
        if let Some(hook) = &hook
            && before.background
            && !seen.background
            && let Some(claim) = self.claims.get_mut(&Source::Hook)
        {
            claim.background &= hook.seen > since;
        }
        let asked = self.attention.iter().all(|one| one.requested_at <= since);
        if before.state == State::NeedsInput && state != State::NeedsInput && asked {
            self.attention.clear();
            self.overflow = 0;
            self.corrected(State::NeedsInput, seen.source);
        }
        let began = self.current.as_ref().is_some_and(|current| current.started_at <= since);
        let worked = matches!(before.state, State::Working | State::NeedsInput);
        // it says itself that it changed in between, too fast to be seen
        let passed = seen.since.is_some_and(|since| since > before.since);
        if (worked || passed) && state == State::Waiting && began {
            self.close(since, Ending::Unknown);
            self.corrected(State::Working, seen.source);
            self.corrected(State::NeedsInput, seen.source);
        }
    }

    /// What the hooks said of this is over.
    fn corrected(&mut self, state: State, by: Source) {
        if let Some(claim) = self.claims.get_mut(&Source::Hook).filter(|claim| claim.state == state) {
            claim.corrected = Some(by);
        }
    }

    /// A source says this now.
    fn claim(&mut self, source: Source, state: State, at: Moment, event: &str) -> &mut Claim {
        let claim = self.claims.entry(source).or_insert_with(|| Claim {
            state,
            since: at,
            seen: at,
            event: String::new(),
            moves: false,
            background: false,
            need: None,
            corrected: None,
        });
        if claim.state != state || claim.corrected.is_some() {
            claim.since = at;
        }
        claim.state = state;
        claim.seen = claim.seen.max(at);
        claim.corrected = None;
        claim.event = short(event);
        claim
    }

    /// What a turn that runs comes to.
    fn under_way(&self) -> State {
        if self.pending() > 0 { State::NeedsInput } else { State::Working }
    }

    /// A prompt was handed in. One that is typed while a turn runs is submitted at once, and its own turn follows.
    fn submitted(&mut self, prompt: Option<&str>, at: Moment) {
        // whoever takes a prompt stands at no question
        self.attention.clear();
        self.overflow = 0;
        self.tools.clear();
        match prompt {
            None => self.close(at, Ending::Interrupted),
            Some(prompt) => {
                if !self.open.iter().any(|one| one == prompt) {
                    self.open.push(prompt.to_owned());
                }
                let surplus = self.open.len().saturating_sub(PROMPTS);
                self.open.drain(..surplus);
            }
        }
        self.open_turn(prompt, at);
    }

    /// A turn runs.
    fn goes_on(&mut self, prompt: Option<&str>, at: Moment) {
        self.over_before(prompt);
        self.open_turn(prompt, at);
    }

    fn open_turn(&mut self, prompt: Option<&str>, at: Moment) {
        self.current.get_or_insert_with(|| Current { id: prompt.map(str::to_owned), started_at: at });
    }

    /// Prompts before this one are over: they were interrupted, which nobody tells.
    fn over_before(&mut self, prompt: Option<&str>) {
        if let Some(at) = prompt.and_then(|prompt| self.open.iter().position(|one| one == prompt)) {
            self.open.drain(..at);
            if let Some(current) = self.current.as_mut().filter(|_| at > 0) {
                current.id = prompt.map(str::to_owned);
            }
        }
    }

    /// A use of a tool begins.
    fn begun(&mut self, tool: &str, id: &str) {
        self.tools.retain(|one| one.id != id);
        if self.tools.len() == TOOLS {
            self.tools.remove(0);
        }
        self.tools.push(ToolUse { tool: short(tool), id: id.to_owned() });
    }

    /// Something is asked for. A request that does not say for which use of its tool is for the last one that began and is not
    /// asked for yet; if there are such uses and all are asked for, it is one of those told once more.
    fn asks(&mut self, kind: Need, request: Option<&str>, tool: Option<&str>, at: Moment) {
        let tool = tool.map(short);
        let asked = |id: &str| self.attention.iter().any(|one| one.id.as_deref() == Some(id));
        let mut uses = self.tools.iter().rev().filter(|one| Some(&one.tool) == tool.as_ref()).peekable();
        let known = uses.peek().is_some();
        let id = match request {
            Some(id) => Some(id.to_owned()),
            None => uses.find(|one| !asked(&one.id)).map(|one| one.id.clone()),
        };
        let again = match (&id, &tool) {
            (Some(id), _) => asked(id),
            (None, Some(_)) => known,
            // a reminder that names nothing
            (None, None) => self.pending() > 0,
        };
        if again {
            return;
        }
        if self.attention.len() == ATTENTIONS {
            self.overflow += 1;
        } else {
            self.attention.push(Attention { kind, requested_at: at, id, tool });
        }
    }

    /// What was asked for is over: this one, else the oldest of this tool, else the oldest of none.
    fn settled(&mut self, request: Option<&str>, tool: Option<&str>) {
        let tool = tool.map(short);
        let by_id =
            request.and_then(|id| self.attention.iter().position(|one| one.id.as_deref() == Some(id)));
        let by_tool = || {
            let nameless = |one: &Attention| one.id.is_none() || request.is_none();
            self.attention.iter().position(|one| one.tool == tool && nameless(one))
        };
        if let Some(at) = by_id.or_else(by_tool) {
            self.attention.remove(at);
        }
        if let Some(id) = request {
            self.tools.retain(|one| one.id != id);
        }
    }

    /// A turn ends: this one and those before it; one that names none ends all. What ends and is not known is an earlier one.
    fn ends(
        &mut self,
        prompt: Option<&str>,
        at: Moment,
        how: Ending,
        background: Option<bool>,
    ) -> Option<State> {
        match prompt.map(|prompt| self.open.iter().position(|one| one == prompt)) {
            None => self.open.clear(),
            Some(Some(_)) => {
                self.over_before(prompt);
                self.open.remove(0);
            }
            Some(None) => {
                let current = self.current.as_ref().and_then(|current| current.id.as_deref());
                let last = self.last.as_ref().and_then(|last| last.id.as_deref());
                let other = |id: Option<&str>| id.is_some() && id != prompt;
                if !self.open.is_empty() || other(current) || (self.current.is_none() && other(last)) {
                    return None;
                }
            }
        }
        if self.open.is_empty() {
            // a reminder says nothing of how the last turn ended
            if self.current.is_some() || background.is_some() {
                let id = prompt.map(str::to_owned);
                let current = self.current.get_or_insert(Current { id, started_at: at });
                if current.id.is_none() {
                    current.id = prompt.map(str::to_owned);
                }
                self.close(at, how);
            }
            return Some(State::Waiting);
        }
        // the next prompt is worked on
        let next = self.open.first().cloned();
        self.finish(at, how);
        self.current = Some(Current { id: next, started_at: at });
        Some(State::Working)
    }

    /// Nothing is open any more.
    fn close(&mut self, at: Moment, how: Ending) {
        self.open.clear();
        self.finish(at, how);
    }

    /// The turn that runs is over.
    fn finish(&mut self, at: Moment, how: Ending) {
        self.attention.clear();
        self.overflow = 0;
        self.tools.clear();
        if let Some(Current { id, started_at }) = self.current.take() {
            self.last = Some(Last { id, started_at: Some(started_at), completed_at: at, outcome: how });
        }
    }

    /// Something changed.
    fn changed(&mut self, at: Moment) {
        self.revision += 1;
        self.heard_at = self.heard_at.max(at);
        let view = self.view(self.heard_at);
        let phase = if view.is_guess() { State::Unknown } else { view.state };
        if phase != self.phase {
            self.phase = phase;
            self.phase_at = at;
        }
    }
}

fn short(name: &str) -> String {
    let end = (0..=NAME.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    name[..end].chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
