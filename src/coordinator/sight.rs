//! Look before you cut: what is seen of an agent, and whether it may be ended.

use std::time::Duration;

use super::Outcome;
use super::told::End;

/// What the agent is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mood {
    /// It has just been started.
    Starting,
    /// A turn is open.
    Working,
    /// It asks for a permission or an answer.
    Asking,
    /// It waits for the next prompt.
    Ready,
    /// It stands at a dialog of its own: trust, login …
    Dialog(String),
    /// No source says.
    Unknown,
}

/// What stands in its prompt line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composer {
    /// Nothing, or only a hint.
    Empty,
    /// Text that was not sent.
    Text,
    /// There is no rule for this provider.
    Unknown,
}

/// What is seen of an agent, by all sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What it is doing.
    pub mood: Mood,
    /// Who says so: `hook`, `registry`, `screen` …; empty if nobody does.
    pub source: String,
    /// How long it has been so, where the source tells.
    pub since: Option<Duration>,
    /// Work goes on behind its turn.
    pub background: bool,
    /// Prompts wait to be worked on.
    pub queued: bool,
    /// Its prompt line.
    pub composer: Composer,
    /// Its turns run in a server that others share: ending it would leave a turn running.
    pub shares_server: bool,
    /// Another conversation that such a server has open, of its folder or of none yet, and that no other terminal is known to
    /// show: it may have gone over to that.
    pub other: Option<String>,
}

impl Sight {
    /// Nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            mood: Mood::Unknown,
            source: String::new(),
            since: None,
            background: false,
            queued: false,
            composer: Composer::Unknown,
            shares_server: false,
            other: None,
        }
    }

    /// The turn state in a record's words.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match self.mood {
            Mood::Starting => "starting",
            Mood::Working => "working",
            Mood::Asking | Mood::Dialog(_) => "needs_input",
            Mood::Ready => "waiting",
            Mood::Unknown => "",
        }
    }
}

/// How much must be known before an agent is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One agent, named: what is unknown is asked about.
    Named,
    /// One agent, named, and the user accepts that its state is unknown.
    Accepted,
    /// One of all: what is unknown is refused.
    Sweep,
    /// Only one that has waited this long.
    Idle(Duration),
    /// Whatever it is doing.
    Force,
}

/// Why an agent is not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word.
    pub word: &'static str,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl Refusal {
    /// As the end of a freeze.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        Outcome::new(End::Refused, self.word, self.seen).hint(self.hint)
    }
}

const FORCE: &str = "--force ends it all the same";
const UNKNOWN: &str = "name it alone to be asked, or --force";

/// Whether an agent that is seen so may be ended; `None` if it may.
#[must_use]
pub fn judge(sight: &Sight, policy: Policy) -> Option<Refusal> {
    if sight.shares_server && matches!(sight.mood, Mood::Working | Mood::Asking) {
        let seen = "a turn is open, and it runs in a server that others share: it would go on".to_owned();
        return Some(Refusal { word: "shared_turn", seen, hint: "wait for its end, or interrupt it" });
    }
    let sweeping = match policy {
        Policy::Force => return None,
        Policy::Named | Policy::Accepted => false,
        Policy::Sweep | Policy::Idle(_) => true,
    };
    let by = if sight.source.is_empty() { String::new() } else { format!(" (seen by {})", sight.source) };
    let refuse = |word, seen: String, hint| Some(Refusal { word, seen: format!("{seen}{by}"), hint });
    match &sight.mood {
        Mood::Working => return refuse("working", "it is working".to_owned(), FORCE),
        Mood::Starting => return refuse("starting", "it is just starting".to_owned(), FORCE),
        Mood::Asking => return refuse("needs_input", "it asks for an answer".to_owned(), FORCE),
        Mood::Dialog(what) => {
            return refuse("dialog", format!("it stands at a dialog: {what}"), FORCE);
        }
        Mood::Ready | Mood::Unknown => {}
    }
    if sight.background {
        return refuse("background", "it has background work".to_owned(), FORCE);
    }
    if sight.queued {
        return refuse("queued", "prompts wait in its queue".to_owned(), FORCE);
    }
    if sight.composer == Composer::Text {
        return refuse("composer", "its prompt line holds text that was not sent".to_owned(), FORCE);
    }
    if let Some(other) = &sight.other {
        let seen = format!(
            "the server it shares with others has conversation {other} open: it may show that by now"
        );
        let hint = "one whose terminal has ended is let go after a minute; --force takes the recorded one";
        return Some(Refusal { word: "another_conversation", seen, hint });
    }
    let accepted = policy == Policy::Accepted;
    if sight.mood == Mood::Unknown && !accepted {
        let hint = if sweeping { UNKNOWN } else { FORCE };
        return refuse("unknown", "nobody says what it is doing".to_owned(), hint);
    }
    if sight.composer == Composer::Unknown && !accepted {
        let hint = if sweeping { UNKNOWN } else { FORCE };
        return refuse("composer_unknown", "its prompt line cannot be read".to_owned(), hint);
    }
    if let Policy::Idle(span) = policy {
        let timed = sight.source == "timing";
        match sight.since {
            Some(since) if since >= span && !timed => {}
            Some(since) if !timed => {
                let seen = format!("it has waited for {} s", since.as_secs());
                return refuse("not_idle", seen, "a shorter --idle=TIME takes it too");
            }
            Some(_) | None => {
                return refuse("idle_unknown", "nobody says how long it has waited".to_owned(), UNKNOWN);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEPS: [Policy; 2] = [Policy::Sweep, Policy::Idle(Duration::from_secs(60))];

    fn ready() -> Sight {
        Sight {
            mood: Mood::Ready,
            source: "hook".into(),
            since: Some(Duration::from_secs(90)),
            background: false,
            queued: false,
            composer: Composer::Empty,
            shares_server: false,
            other: None,
        }
    }

    fn word(sight: &Sight, policy: Policy) -> &'static str {
        judge(sight, policy).map_or("", |refusal| refusal.word)
    }

    #[test]
    fn an_agent_that_waits_with_nothing_pending_may_be_ended() {
        for policy in [Policy::Named, Policy::Accepted, Policy::Force].into_iter().chain(SWEEPS) {
            assert_eq!(word(&ready(), policy), "", "{policy:?}");
        }
    }

    #[test]
    fn what_would_be_lost_is_refused_by_all_but_force() {
        let cases = [
            ("working", Sight { mood: Mood::Working, ..ready() }),
            ("starting", Sight { mood: Mood::Starting, ..ready() }),
            ("needs_input", Sight { mood: Mood::Asking, ..ready() }),
            ("dialog", Sight { mood: Mood::Dialog("trust".into()), ..ready() }),
            ("background", Sight { background: true, ..ready() }),
            ("queued", Sight { queued: true, ..ready() }),
            ("composer", Sight { composer: Composer::Text, ..ready() }),
            ("another_conversation", Sight { shares_server: true, other: Some("x".into()), ..ready() }),
        ];
        for (expected, sight) in cases {
            for policy in [Policy::Named, Policy::Accepted].into_iter().chain(SWEEPS) {
                assert_eq!(word(&sight, policy), expected, "{policy:?}");
            }
            assert_eq!(word(&sight, Policy::Force), "");
        }
    }

    #[test]
    fn what_nobody_knows_is_asked_about_and_never_swept() {
        for (expected, sight) in [
            ("unknown", Sight::unknown()),
            ("composer_unknown", Sight { composer: Composer::Unknown, ..ready() }),
        ] {
            for policy in [Policy::Named].into_iter().chain(SWEEPS) {
                assert_eq!(word(&sight, policy), expected, "{policy:?}");
            }
            assert_eq!(word(&sight, Policy::Accepted), "");
            assert_eq!(word(&sight, Policy::Force), "");
        }
    }

    #[test]
    fn a_turn_in_a_shared_server_is_not_cut_even_by_force() {
        for policy in [Policy::Named, Policy::Accepted, Policy::Force].into_iter().chain(SWEEPS) {
            let shared = Sight { shares_server: true, ..ready() };
            assert_eq!(word(&shared, policy), "", "between turns nothing is lost");
            assert_eq!(word(&Sight { mood: Mood::Working, ..shared }, policy), "shared_turn");
        }
    }

    #[test]
    fn idle_means_waiting_that_long_by_a_source_that_knows() {
        let idle = Policy::Idle(Duration::from_secs(60));
        assert_eq!(word(&Sight { since: Some(Duration::from_secs(59)), ..ready() }, idle), "not_idle");
        assert_eq!(word(&Sight { since: None, ..ready() }, idle), "idle_unknown");
        assert_eq!(word(&Sight { source: "timing".into(), ..ready() }, idle), "idle_unknown");
    }
}
