//! Precedence, age and contradiction, as tables.

use super::*;
use crate::turn::{Event, Observation, What};

fn at(seconds: i64) -> Moment {
    Moment::from_millis(1_000_000_000 + seconds * 1000)
}

fn seen(turns: &mut Turns, source: Source, state: State, seconds: i64) {
    turns.observe(&Observation::of(source, Some(state), at(seconds), "seen"));
}

fn hook(turns: &mut Turns, what: What, seconds: i64) {
    let id = format!("{seconds}");
    turns.hear(&Event { id, at: at(seconds), source: Source::Hook, name: "hook".into(), what, prompt: None });
}

#[test]
fn the_strongest_that_was_heard_lately_counts() {
    for (at_least, source) in Source::ALL.into_iter().enumerate() {
        let mut turns = Turns::new("r");
        for weaker in &Source::ALL[at_least..] {
            seen(&mut turns, *weaker, State::Working, 0);
        }
        let view = turns.view(at(1));
        assert_eq!((view.state, view.source), (State::Working, Some(source)));
        assert!(view.why[1..].iter().all(|one| one.verdict == Verdict::Agrees));
    }
    // it grows old, and the next one counts, until none is left
    let mut turns = Turns::new("r");
    hook(&mut turns, What::TurnStarted, 0);
    seen(&mut turns, Source::Screen, State::Working, 3590);
    assert_eq!(turns.view(at(3600)).source, Some(Source::Hook));
    assert_eq!(turns.view(at(3601)).source, Some(Source::Screen));
    assert_eq!(turns.view(at(3601)).why[0].verdict, Verdict::Expired);
    let view = turns.view(at(3711));
    assert_eq!((view.state, view.source, view.since, view.confidence), (State::Unknown, None, None, None));
    assert_eq!((view.shown_state().as_str(), view.shown_source().as_str()), ("-", "-"));
}

#[test]
fn nothing_heard_is_unknown_and_a_guess_is_shown_as_one() {
    let view = View::unknown();
    assert_eq!((view.state, view.source, view.why.len()), (State::Unknown, None, 0));
    assert_eq!((view.shown_state().as_str(), view.shown_source().as_str()), ("-", "-"));
    let mut turns = Turns::new("r");
    seen(&mut turns, Source::Timing, State::Waiting, 0);
    let view = turns.view(at(1));
    assert_eq!((view.shown_state().as_str(), view.shown_source().as_str()), ("waiting?", "timing?"));
    assert_eq!(view.confidence, Some(Confidence::Inferred));
    assert_eq!(turns.phase, State::Unknown, "nothing follows from a guess");
    assert_eq!(turns.view(at(61)).state, State::Unknown, "a guess does not grow into idle");
}

#[test]
fn what_still_says_otherwise_after_the_lag_contradicts() {
    // the registry shows idle from before the prompt on, and is known to show it still
    let mut turns = Turns::new("r");
    seen(&mut turns, Source::Registry, State::Waiting, 0);
    hook(&mut turns, What::TurnStarted, 10);
    let stands = |source| source == Source::Registry;
    assert_eq!(turns.view_while(at(12), stands).state, State::Working, "it may be late");
    let view = turns.view_while(at(14), stands);
    assert_eq!((view.state, view.source), (State::Unknown, None));
    assert_eq!(view.why[0].verdict, Verdict::Contradicts(Source::Registry));
    assert_eq!(view.why[1].verdict, Verdict::Contradicts(Source::Hook));
    // nobody looks at it: it is only older
    let view = turns.view(at(14));
    assert_eq!((view.state, view.why[1].verdict), (State::Working, Verdict::Outweighed(Source::Hook)));
    // a spinner that goes on after the end that a hook told
    let mut turns = Turns::new("r");
    let spins = |seconds| Observation {
        moves: true,
        ..Observation::of(Source::Title, Some(State::Working), at(seconds), "⠋")
    };
    turns.observe(&spins(0));
    hook(&mut turns, What::TurnCompleted { background: false }, 1);
    turns.observe(&spins(2));
    assert_eq!(turns.view(at(2)).state, State::Waiting);
    turns.observe(&spins(5));
    assert_eq!(turns.view(at(5)).state, State::Unknown, "never a false waiting");
    turns.observe(&Observation::of(Source::Title, Some(State::Waiting), at(6), "plain"));
    assert_eq!(turns.view(at(6)).state, State::Waiting);
}

#[test]
fn a_stronger_account_is_corrected_by_none_but_contradicted_by_any() {
    let mut turns = Turns::new("r");
    seen(&mut turns, Source::Osc7501, State::Working, 0);
    seen(&mut turns, Source::Title, State::Waiting, 1);
    assert_eq!(turns.view(at(1)).source, Some(Source::Osc7501));
    assert_eq!(turns.view_while(at(9), |source| source == Source::Title).state, State::Unknown);
    assert_eq!(turns.view_while(at(9), |_| true).source, Some(Source::Osc7501), "both are watched");
}

#[test]
fn starting_gives_way_to_whoever_shows_more() {
    for source in [Source::Registry, Source::Title, Source::Screen] {
        let mut turns = Turns::new("r");
        // the agent showed its prompt line before its hook was heard
        seen(&mut turns, source, State::Waiting, 0);
        hook(&mut turns, What::Started, 1);
        let view = turns.view(at(2));
        assert_eq!((view.state, view.source), (State::Waiting, Some(source)));
    }
}

/// A conversation's record tells at once of a turn's beginning and end, and of no request.
#[test]
fn a_conversations_record_gives_way_to_a_request_and_not_to_a_late_picture() {
    let written = |turns: &mut Turns, state, since: i64, grown: i64| {
        let seen = Observation::of(Source::Rollout, Some(state), at(grown), "written");
        turns.observe(&Observation { since: Some(at(since)), ..seen });
    };
    let is = |turns: &Turns, seconds| {
        let view = turns.view(at(seconds));
        (view.state, view.source)
    };
    let by = |state, source| (state, Some(source));
    let mut turns = Turns::new("r");
    seen(&mut turns, Source::Title, State::Waiting, 0);
    written(&mut turns, State::Working, 10, 10);
    assert_eq!(is(&turns, 10), by(State::Working, Source::Rollout), "the title is a moment old");
    seen(&mut turns, Source::Title, State::Working, 11);
    seen(&mut turns, Source::Title, State::NeedsInput, 20);
    written(&mut turns, State::Working, 10, 25);
    assert_eq!(is(&turns, 25), by(State::NeedsInput, Source::Title), "another tool went on meanwhile");
    written(&mut turns, State::Waiting, 26, 26);
    assert_eq!(is(&turns, 26), by(State::Waiting, Source::Rollout), "it was denied");
    seen(&mut turns, Source::Title, State::Working, 27);
    assert_eq!(is(&turns, 27), by(State::Waiting, Source::Rollout), "drawn before it ended");
    seen(&mut turns, Source::Title, State::Waiting, 28);
    seen(&mut turns, Source::Title, State::Working, 40);
    assert_eq!(is(&turns, 40), by(State::Working, Source::Title), "of another conversation");
    // an interrupt that no hook tells of, while work of an earlier request goes on to be written
    let mut turns = Turns::new("r");
    hook(&mut turns, What::TurnStarted, 0);
    written(&mut turns, State::Working, 0, 5);
    assert_eq!(is(&turns, 5), by(State::Working, Source::Hook));
    let asks = What::AttentionRequested { attention: crate::turn::Need::Approval, request: None, tool: None };
    hook(&mut turns, asks, 6);
    written(&mut turns, State::Working, 0, 30);
    assert_eq!(is(&turns, 30), by(State::NeedsInput, Source::Hook));
    written(&mut turns, State::Waiting, 31, 31);
    assert_eq!(is(&turns, 31), by(State::Waiting, Source::Rollout));
    assert!(turns.view(at(31)).attention.is_none() && turns.current.is_none(), "its turn is over");
}
