//! What events and observations come to, as tables and stories.

use proptest::prelude::*;

use super::*;
use crate::turn::view::Verdict;

fn at(ms: i64) -> Moment {
    Moment::from_millis(1_000_000 + ms)
}

fn event(ms: i64, name: &str, what: What, prompt: Option<&str>) -> Event {
    Event {
        id: format!("{name}-{ms}"),
        at: at(ms),
        source: Source::Hook,
        name: name.to_owned(),
        what,
        prompt: prompt.map(str::to_owned),
    }
}

fn submit(prompt: Option<&str>) -> (What, Option<&str>) {
    (What::TurnStarted, prompt)
}

fn works(prompt: Option<&str>) -> (What, Option<&str>) {
    (What::Progress { tool: None, tool_use: None }, prompt)
}

fn stop(prompt: Option<&str>) -> (What, Option<&str>) {
    (What::TurnCompleted { background: false }, prompt)
}

fn use_of(tool: &str, id: &str) -> What {
    What::Progress { tool: Some(tool.into()), tool_use: Some(id.into()) }
}

fn asks(request: Option<&str>, tool: Option<&str>) -> What {
    let (request, tool) = (request.map(str::to_owned), tool.map(str::to_owned));
    What::AttentionRequested { attention: Need::Approval, request, tool }
}

fn cleared(request: Option<&str>, tool: Option<&str>) -> What {
    What::AttentionCleared { request: request.map(str::to_owned), tool: tool.map(str::to_owned) }
}

/// What is seen of a turn a second after the last event.
fn heard(events: &[(What, Option<&str>)]) -> Turns {
    let mut turns = Turns::new("r");
    for (ms, (what, prompt)) in (0..).step_by(10).zip(events) {
        turns.hear(&event(ms, "e", what.clone(), *prompt));
    }
    turns
}

fn state(turns: &Turns) -> State {
    turns.view(turns.heard_at.after(std::time::Duration::from_secs(1))).state
}

#[test]
fn a_turn_ends_with_its_last_prompt() {
    use State::{NeedsInput, Starting, Waiting, Working};
    let (a, b) = (Some("a"), Some("b"));
    for (events, expected, open) in [
        (vec![submit(a), stop(a)], Waiting, vec![]),
        (vec![submit(a), submit(b)], Working, vec!["a", "b"]),
        (vec![submit(a), submit(b), works(a)], Working, vec!["a", "b"]),
        (vec![submit(a), submit(b), stop(a)], Working, vec!["b"]),
        (vec![submit(a), submit(b), stop(a), stop(b)], Waiting, vec![]),
        // both were answered at once
        (vec![submit(a), submit(b), stop(b)], Waiting, vec![]),
        // the first one was interrupted, which nobody tells
        (vec![submit(a), submit(b), works(b)], Working, vec!["b"]),
        (vec![submit(a), submit(b), (asks(None, None), b)], NeedsInput, vec!["b"]),
        // an end that names none, and a new start
        (vec![submit(a), submit(b), stop(None)], Waiting, vec![]),
        (vec![submit(a), submit(b), (What::Started, None)], Starting, vec![]),
        (vec![submit(a), (What::Cleared, None)], Waiting, vec![]),
        // ends that belong to no prompt known
        (vec![stop(Some("x"))], Waiting, vec![]),
        (vec![submit(b), stop(a)], Working, vec!["b"]),
        (vec![submit(a), submit(a), stop(a)], Waiting, vec![]),
        // a provider that names no prompts
        (vec![works(None), stop(None)], Waiting, vec![]),
    ] {
        let turns = heard(&events);
        assert_eq!((state(&turns), &turns.open), (expected, &open.iter().map(|s| (*s).into()).collect()));
        assert_eq!(turns.is_queued(), open.len() > 1);
    }
    let prompts: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    let turns = heard(&prompts.iter().map(|prompt| submit(Some(prompt))).collect::<Vec<_>>());
    assert_eq!((turns.open.len(), turns.open.last().map(String::as_str)), (PROMPTS, Some("99")));
}

#[test]
fn an_end_that_is_late_or_of_another_turn_changes_nothing() {
    let (a, b) = (Some("a"), Some("b"));
    // A is interrupted by B, B is done, then A's failure is heard
    let turns = heard(&[submit(a), submit(b), stop(b), (What::TurnFailed, a)]);
    let last = turns.last.clone().unwrap();
    assert_eq!((state(&turns), last.outcome), (State::Waiting, Ending::Completed));
    // the same failure of the last turn itself says how it ended
    let turns = heard(&[submit(b), stop(b), (What::TurnFailed, b)]);
    assert_eq!((state(&turns), turns.last.unwrap().outcome), (State::Waiting, Ending::Failed));
    // a tool's result after the end opens no turn; a tool that begins does
    let post = (cleared(Some("t"), Some("Bash")), a);
    let turns = heard(&[submit(a), stop(a), post.clone()]);
    assert_eq!((state(&turns), &turns.current), (State::Waiting, &None));
    let turns = heard(&[submit(a), stop(a), (use_of("Bash", "u"), a)]);
    assert_eq!(state(&turns), State::Working);
    // before any turn: nothing is known
    assert_eq!(state(&heard(&[post])), State::Unknown);
    // what may be an end is none
    assert_eq!(state(&heard(&[submit(a), (What::StopObserved, a)])), State::Working);
}

#[test]
fn a_request_stands_until_what_it_asked_for_is_over() {
    use State::{NeedsInput, Waiting, Working};
    let a = Some("a");
    let bash = Some("Bash");
    for (events, expected, pending) in [
        // by the use of the tool that came before the request
        (vec![use_of("Bash", "1"), asks(None, bash), cleared(Some("1"), bash)], Working, 0),
        // the result of another use is not it
        (
            vec![use_of("Bash", "1"), use_of("Bash", "2"), asks(None, bash), cleared(Some("1"), bash)],
            NeedsInput,
            1,
        ),
        (vec![use_of("Bash", "1"), asks(None, bash), cleared(Some("9"), bash)], NeedsInput, 1),
        // by the tool, where no use was named
        (vec![asks(None, bash), cleared(Some("1"), bash)], Working, 0),
        (vec![asks(None, bash), cleared(None, Some("Edit"))], NeedsInput, 1),
        // two uses of one tool are two requests
        (vec![use_of("Bash", "1"), asks(None, bash), use_of("Bash", "2"), asks(None, bash)], NeedsInput, 2),
        // a question is told twice, and a reminder names nothing
        (vec![asks(Some("1"), Some("Ask")), asks(Some("1"), Some("Ask"))], NeedsInput, 1),
        (vec![use_of("Bash", "1"), asks(None, bash), asks(None, bash)], NeedsInput, 1),
        (vec![asks(None, bash), asks(None, None)], NeedsInput, 1),
        // two without any id are two
        (vec![asks(None, bash), asks(None, bash)], NeedsInput, 2),
        // progress of something else clears nothing
        (vec![asks(None, bash), use_of("Read", "7")], NeedsInput, 1),
        (vec![asks(None, None), cleared(None, None)], Working, 0),
        (vec![asks(None, bash), asks(None, Some("Edit")), What::AttentionsCleared], Working, 0),
        // a prompt is taken by one who stands at no question
        (vec![asks(None, bash), What::TurnStarted], Working, 0),
        (vec![asks(None, bash), What::TurnCompleted { background: false }], Waiting, 0),
        (vec![asks(None, bash), What::TurnFailed], Waiting, 0),
    ] {
        let events: Vec<_> =
            [submit(a)].into_iter().chain(events.into_iter().map(|what| (what, a))).collect();
        let turns = heard(&events);
        assert_eq!((state(&turns), turns.pending()), (expected, pending), "{events:?}");
    }
    let many: Vec<_> = (0..84).map(|n| (asks(Some(&n.to_string()), None), a)).collect();
    let turns = heard(&many);
    assert_eq!((turns.attention.len(), turns.pending()), (ATTENTIONS, 84));
    assert_eq!(turns.view(turns.heard_at).attention.unwrap().id.as_deref(), Some("0"), "the oldest");
}

#[test]
fn work_behind_a_turn_is_not_waiting() {
    let a = Some("a");
    let behind = (What::TurnCompleted { background: true }, a);
    let turns = heard(&[submit(a), behind.clone()]);
    let view = turns.view(turns.heard_at);
    assert_eq!((view.state, view.background, view.source), (State::Working, true, Some(Source::Hook)));
    // a reminder says nothing of what runs behind
    assert_eq!(state(&heard(&[submit(a), behind.clone(), (What::Idle, None)])), State::Working);
    assert_eq!(state(&heard(&[submit(a), behind.clone(), submit(None), stop(None)])), State::Waiting);
    // the registry tells of it, and of its end
    let mut turns = heard(&[submit(a), behind]);
    let seen = |ms, background, detail| Observation {
        background,
        since: Some(at(ms)),
        ..Observation::of(Source::Registry, Some(State::Waiting), at(ms), detail)
    };
    assert!(turns.observe(&seen(30, true, "shell")));
    assert_eq!(state(&turns), State::Working);
    assert!(turns.observe(&seen(40, false, "idle")));
    assert_eq!(state(&turns), State::Waiting);
}

/// An agent's hooks with what its registry or title shows in between.
struct Story(Turns);

impl Story {
    fn hook(&mut self, ms: i64, what: What) -> &mut Self {
        self.0.hear(&event(ms, "hook", what, None));
        self
    }

    fn sees(&mut self, ms: i64, source: Source, state: State) -> &mut Self {
        let since = (source == Source::Registry).then(|| at(ms));
        self.0.observe(&Observation { since, ..Observation::of(source, Some(state), at(ms), "seen") });
        self
    }

    fn is(&mut self, ms: i64, state: State, source: Option<Source>) -> &mut Self {
        let view = self.0.view(at(ms));
        assert_eq!((view.state, view.source), (state, source), "at {ms}: {:#?}", view.why);
        self
    }
}

fn story() -> Story {
    Story(Turns::new("r"))
}

#[test]
fn an_interrupt_that_no_hook_tells_is_corrected() {
    use Source::{Hook, Registry, Title};
    use State::{NeedsInput, Starting, Waiting, Working};
    for whole in [Registry, Title] {
        story()
            .hook(0, What::Started)
            .is(1, Starting, Some(Hook))
            .sees(5, whole, Waiting)
            .is(6, Waiting, Some(whole))
            .hook(10, What::TurnStarted)
            .sees(12, whole, Working)
            .is(13, Working, Some(Hook))
            .sees(20, whole, Waiting)
            .is(21, Waiting, Some(whole))
            // the result of the tool that was cut short comes after it
            .hook(25, cleared(Some("t"), Some("Bash")))
            .is(26, Waiting, Some(whole))
            .hook(30, What::TurnStarted)
            .is(31, Working, Some(Hook))
            .sees(32, whole, Working)
            .hook(40, asks(None, Some("Bash")))
            .sees(41, whole, NeedsInput)
            .is(42, NeedsInput, Some(Hook))
            // allowed: the hook tells only once the tool is done
            .sees(50, whole, Working)
            .is(51, Working, Some(whole))
            .hook(55, use_of("Read", "r"))
            .is(56, Working, Some(Hook))
            // denied by Esc
            .hook(60, asks(None, Some("Bash")))
            .sees(61, whole, NeedsInput)
            .sees(70, whole, Waiting)
            .is(71, Waiting, Some(whole));
    }
    // the registry went to work and back before anybody looked
    story()
        .sees(0, Registry, Waiting)
        .hook(10, What::TurnStarted)
        .sees(20, Registry, Waiting)
        .hook(25, cleared(None, Some("Bash")))
        .is(26, Waiting, Some(Registry));
}

#[test]
fn a_parts_signal_never_ends_a_turn() {
    use State::{Waiting, Working};
    // a progress bar and a screen do not speak for the whole agent
    let mut told = story();
    told.hook(0, What::TurnStarted).sees(1, Source::Osc94, Working).sees(5, Source::Osc94, Waiting);
    told.is(6, Working, Some(Source::Hook));
    assert!(told.0.current.is_some());
}

#[test]
fn a_new_launch_begins_with_nothing_said() {
    let mut turns = heard(&[submit(Some("a")), (asks(None, None), Some("a"))]);
    let revision = turns.revision;
    turns.begin("s", at(500));
    let view = turns.view(at(500));
    assert_eq!((view.state, view.source, view.pending), (State::Starting, Some(Source::Runtime), 0));
    assert_eq!(turns.last.as_ref().unwrap().outcome, Ending::Interrupted);
    assert_eq!((turns.revision, turns.accepted), (revision + 1, 0));
    // whoever started it says nothing for long
    assert_eq!(turns.view(at(500 + 121_000)).state, State::Unknown);
}

#[test]
fn what_is_only_seen_again_is_no_change() {
    let mut turns = Turns::new("r");
    let spins = |ms| Observation {
        moves: true,
        ..Observation::of(Source::Title, Some(State::Working), at(ms), "⠋")
    };
    assert!(turns.observe(&spins(0)));
    assert!(!turns.observe(&spins(20_000)));
    let view = turns.view(at(45_000));
    assert_eq!((view.state, view.since, view.seen), (State::Working, Some(at(0)), Some(at(20_000))));
    // it stopped moving: nobody says anything
    let view = turns.view_while(at(51_000), |_| true);
    assert_eq!((view.state, view.source, view.why[0].verdict), (State::Unknown, None, Verdict::Expired));
    assert!(turns.observe(&Observation::of(Source::Title, None, at(52_000), "")));
    assert!(!turns.observe(&Observation::of(Source::Title, None, at(53_000), "")));
    assert!(turns.view(at(53_000)).why.is_empty());
}

fn any_event() -> impl Strategy<Value = Event> {
    let id = || proptest::option::of(proptest::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned));
    let what = prop_oneof![
        1 => Just(What::Started),
        1 => Just(What::Cleared),
        4 => Just(What::TurnStarted),
        1 => (id(), id()).prop_map(|(tool, tool_use)| What::Progress { tool, tool_use }),
        4 => (id(), id()).prop_map(|(request, tool)| What::AttentionRequested {
            attention: Need::Approval,
            request,
            tool
        }),
        1 => (id(), id()).prop_map(|(request, tool)| What::AttentionCleared { request, tool }),
        1 => Just(What::AttentionsCleared),
        1 => Just(What::StopObserved),
        1 => any::<bool>().prop_map(|background| What::TurnCompleted { background }),
        1 => Just(What::TurnFailed),
        1 => Just(What::Idle),
    ];
    (what, id(), 0..100_000i64).prop_map(|(what, prompt, ms)| Event {
        id: String::new(),
        at: at(ms),
        source: Source::Hook,
        name: "e".into(),
        what,
        prompt,
    })
}

fn any_observation() -> impl Strategy<Value = Observation> {
    use State::{NeedsInput, Unknown, Waiting, Working};
    let states =
        proptest::sample::select(vec![None, Some(Working), Some(Waiting), Some(NeedsInput), Some(Unknown)]);
    (proptest::sample::select(Source::ALL.to_vec()), states, 0..100_000i64, any::<bool>(), any::<bool>())
        .prop_map(|(source, state, ms, moves, background)| Observation {
            moves,
            background,
            ..Observation::of(source, state, at(ms), "seen")
        })
}

proptest! {
    #[test]
    fn whatever_comes_the_laws_hold(
        told in proptest::collection::vec(prop_oneof![any_event().prop_map(Ok), any_observation().prop_map(Err)], 0..60)
    ) {
        let mut turns = Turns::new("r");
        for one in told {
            let before = turns.clone();
            match &one {
                Ok(event) => turns.hear(event),
                Err(seen) => {
                    let changed = turns.observe(seen);
                    prop_assert!(changed == (turns.revision > before.revision));
                }
            }
            prop_assert!(turns.revision >= before.revision);
            prop_assert!(turns.open.len() <= PROMPTS && turns.attention.len() <= ATTENTIONS);
            prop_assert!(turns.tools.len() <= TOOLS);
            // what asks or is queued belongs to a turn
            prop_assert!(turns.current.is_some() || (turns.pending() == 0 && turns.open.is_empty()));
            let now = turns.heard_at;
            let view = turns.view(now);
            prop_assert_eq!(view.source.is_none(), view.state == State::Unknown);
            prop_assert_eq!(view.why.len(), turns.claims.len());
            if let Some(source) = view.source {
                let won = view.why.iter().find(|one| one.source == source).unwrap();
                prop_assert!(view.background || (won.verdict == Verdict::Won && won.says == view.state));
            }
            // a day later nobody has said anything
            let late = turns.view(now.after(std::time::Duration::from_secs(2 * 86_400)));
            prop_assert_eq!(late.state, State::Unknown);
            let text = serde_json::to_vec(&turns).unwrap();
            prop_assert_eq!(&serde_json::from_slice::<Turns>(&text).unwrap(), &turns);
        }
    }
}
