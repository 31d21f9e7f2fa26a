//! What a provider's title, its screen and its terminal's sequences say of the turn.

use super::signs::{Phase, Sight, is_braille};
use super::{Catalog, Provider};
use crate::turn::status::{Doing, Statuses, Want};
use crate::turn::terminal::{Mark, Progress, Sign};
use crate::turn::{Moment, Need, Observation, Source, State};

/// What a title says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Titled {
    /// This, and whether it would be seen to move.
    Says(State, bool),
    /// Nothing now, where it says so when the agent works or asks; which the user may have switched off.
    Unmarked,
    /// Nothing ever.
    Nothing,
}

impl Titled {
    /// What is seen by it. That a mark is gone says something only where there was one before (`marked`).
    #[must_use]
    pub fn observation(self, marked: bool, at: Moment) -> Observation {
        match self {
            Self::Says(state, moves) => {
                Observation { moves, ..Observation::of(Source::Title, Some(state), at, "marked") }
            }
            Self::Unmarked if marked => Observation::of(Source::Title, Some(State::Waiting), at, "unmarked"),
            Self::Unmarked | Self::Nothing => Observation::of(Source::Title, None, at, ""),
        }
    }
}

/// Providers whose titles carry a mark whenever the agent works or asks, and none else.
const MARKING: &[Provider] = &[Provider::Codex];

/// Providers that write prompt marks of their own, around messages.
const MARKS_MESSAGES: &[&str] = &["pi", "claude"];

/// Providers of which neither a list nor hooks tell, and that speak OSC 7501 to a terminal that says it understands.
const ONLY_ANSWERS: &[Provider] = &[Provider::Pi];

impl Catalog {
    /// Whether nothing tells of an agent of this kind but what it writes once it was answered.
    #[must_use]
    pub fn only_answers(&self, kind: &str) -> bool {
        Provider::named(kind).is_some_and(|known| ONLY_ANSWERS.contains(&known))
    }

    /// What a title of this provider's says, from how it begins.
    #[must_use]
    pub fn titled(&self, kind: &str, title: &str) -> Titled {
        match self.look(kind, title, "").phase {
            Phase::Working => Titled::Says(State::Working, is_braille(title)),
            Phase::Asking => Titled::Says(State::NeedsInput, false),
            Phase::Ready => Titled::Says(State::Waiting, false),
            Phase::Dialog(_) | Phase::Unknown => {
                let marking = Provider::named(kind).is_some_and(|known| MARKING.contains(&known));
                if marking && !title.is_empty() { Titled::Unmarked } else { Titled::Nothing }
            }
        }
    }
}

impl Sight {
    /// What is seen of the turn by it.
    #[must_use]
    pub fn observation(&self, at: Moment) -> Observation {
        let (state, detail) = match self.phase {
            Phase::Working => (Some(State::Working), "working"),
            Phase::Asking => (Some(State::NeedsInput), "asking"),
            Phase::Ready => (Some(State::Waiting), "ready"),
            Phase::Dialog(dialog) => (Some(State::NeedsInput), dialog.word()),
            Phase::Unknown => (None, ""),
        };
        Observation { background: self.background, ..Observation::of(Source::Screen, state, at, detail) }
    }
}

/// One agent's pane, by the signs that come out of its bytes.
#[derive(Debug, Default)]
pub struct Pane {
    statuses: Statuses,
    marked: bool,
}

impl Pane {
    /// What a sign says of the turn of an agent of this provider; `None` if nothing.
    ///
    /// A prompt mark never says that the agent works: a shell's `C` is that a command runs, and that is the agent.
    pub fn sign(&mut self, catalog: &Catalog, kind: &str, sign: Sign, at: Moment) -> Option<Observation> {
        match sign {
            Sign::Title(title) => {
                let titled = catalog.titled(kind, &title);
                let seen = titled.observation(self.marked, at);
                self.marked = seen.state.is_some();
                Some(seen)
            }
            Sign::Progress(progress) => {
                let state = match progress {
                    Progress::Removed | Progress::Failed(_) => Some(State::Waiting),
                    Progress::Running(_) | Progress::Busy => Some(State::Working),
                    Progress::Paused(_) => None,
                };
                Some(Observation::of(Source::Osc94, state, at, "progress"))
            }
            Sign::Prompt(Mark::Prompt { .. }) if !MARKS_MESSAGES.contains(&kind) => {
                self.statuses.settle();
                Some(self.status(kind, at))
            }
            Sign::Prompt(_) | Sign::Query => None,
            Sign::Status(status) => {
                let whole = status.id.is_empty() || status.doing == Doing::Clear;
                self.statuses.take(status);
                whole.then(|| self.status(kind, at))
            }
            Sign::Reset => {
                self.statuses.reset();
                Some(self.status(kind, at))
            }
        }
    }

    /// What the agent itself reported; another program in its pane does not speak for it.
    fn status(&self, kind: &str, at: Moment) -> Observation {
        let is_agent = |app: &String| app == kind || app.strip_suffix("-code") == Some(kind);
        let root = self.statuses.root().filter(|root| root.app.as_ref().is_none_or(is_agent));
        let (state, need, detail) = match root.map(|root| root.doing) {
            Some(Doing::Idle) => (Some(State::Waiting), None, "idle"),
            Some(Doing::Done) => (Some(State::Waiting), None, "done"),
            Some(Doing::Error) => (Some(State::Waiting), None, "error"),
            Some(Doing::Working) => (Some(State::Working), None, "working"),
            Some(Doing::Blocked(want)) => {
                let need = match want {
                    Some(Want::Permission) => Need::Approval,
                    Some(Want::Question) => Need::Clarification,
                    Some(Want::Login) => Need::Authentication,
                    None => Need::Other,
                };
                (Some(State::NeedsInput), Some(need), "blocked")
            }
            Some(Doing::Clear) | None => (None, None, ""),
        };
        Observation { need, ..Observation::of(Source::Osc7501, state, at, detail) }
    }
}

#[cfg(test)]
mod tests;
