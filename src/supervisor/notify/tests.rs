use super::super::tests::{SOCKET, Stage, answer, attached, attaching, listing, record, view};
use super::super::{Answer, Input, LinkEvent, LinkId};
use super::*;
use crate::record::{Location, LossCause, Lost, Recovered, Stamp, State as RecordState};
use crate::turn::{Event, Need, Source, Turns, What as Said};

/// When the stage's supervisor began, in milliseconds.
const BEGAN: i64 = 2_000_000;

fn on(reasons: &[Reason]) -> BTreeSet<Reason> {
    reasons.iter().copied().collect()
}

/// A supervisor whose server answers, with one live agent.
fn watching() -> (Stage, LinkId) {
    let mut stage = Stage::telling(Vec::new(), on(&Reason::ALL));
    let link = attaching(&stage.tell(Input::Store(Ok(view(vec![record("now")])))));
    let asked = listing(&attached(&mut stage, link)).expect("a listing");
    answer(&mut stage, asked, "w", true);
    (stage, link)
}

/// The same, and nobody is there to ask.
fn alone(records: Vec<Record>) -> Stage {
    let mut stage = Stage::telling(Vec::new(), on(&Reason::ALL));
    stage.tell(Input::Store(Ok(view(records))));
    stage
}

/// A turn in which all this happened, an event each millisecond from then on.
fn turns(from: i64, said: &[Said]) -> Turns {
    let mut turns = Turns::new(&record("now").runtime());
    for (ms, what) in (from..).zip(said) {
        let at = Moment::from_millis(BEGAN + ms);
        let event = Event {
            id: ms.to_string(),
            at,
            source: Source::Hook,
            name: "X".into(),
            what: what.clone(),
            prompt: None,
        };
        turns.hear(&event);
    }
    turns
}

fn asks(request: &str) -> Said {
    let request = Some(request.to_owned());
    Said::AttentionRequested { attention: Need::Approval, request, tool: Some("Bash".into()) }
}

fn over(request: &str) -> Said {
    Said::AttentionCleared { request: Some(request.to_owned()), tool: None }
}

const DONE: Said = Said::TurnCompleted { background: false };

/// Tells it of a turn, and lets that settle.
fn turned(stage: &mut Stage, from: i64, said: &[Said]) -> Vec<Action> {
    let record = record("now").id;
    let mut actions = stage.tell(Input::Turned { record, turns: Box::new(turns(from, said)) });
    actions.extend(settled(stage));
    actions
}

fn settled(stage: &mut Stage) -> Vec<Action> {
    stage.mono += SETTLE;
    stage.tell(Input::Tick)
}

/// Tells it of a store, and lets that settle.
fn stored(stage: &mut Stage, records: Vec<Record>) -> Vec<Action> {
    let mut actions = stage.tell(Input::Store(Ok(view(records))));
    actions.extend(settled(stage));
    actions
}

fn lookers(actions: &[Action]) -> Option<Tag> {
    actions.iter().find_map(|action| match action {
        Action::Ask { tag, ask: Ask::Lookers, .. } => Some(*tag),
        _ => None,
    })
}

fn told(actions: &[Action]) -> Vec<Note> {
    let one = |action: &Action| match action {
        Action::Notify { note, .. } => Some((**note).clone()),
        _ => None,
    };
    actions.iter().filter_map(one).collect()
}

fn reason(note: &Note) -> Reason {
    match &note.what {
        What::One { item, .. } => item.reason,
        What::Several { .. } => panic!("one: {note:?}"),
    }
}

fn looker(window: u32, pane: u32) -> Looker {
    Looker {
        window: WindowId(window),
        pane: PaneId(pane),
        zoomed: false,
        focused: true,
        tty: "/dev/pts/1".into(),
    }
}

fn shown(stage: &mut Stage, link: LinkId, tag: Tag, answer: Answer) -> Vec<Action> {
    let event = LinkEvent::Answer { tag, answer };
    stage.tell(Input::Link { socket: SOCKET.into(), link, event })
}

#[test]
fn the_server_is_asked_who_looks_and_only_a_window_that_nobody_sees_is_told_of() {
    let elsewhere = Looker { pane: PaneId(6), zoomed: true, ..looker(0, 5) };
    let away = Looker { focused: false, ..looker(0, 5) };
    for (lookers_are, is_told) in [
        (vec![looker(0, 5)], false),
        (vec![looker(1, 8), looker(0, 6)], false),
        (vec![Looker { zoomed: true, ..looker(0, 5) }], false),
        (vec![elsewhere], true),
        (vec![away], true),
        (vec![looker(1, 8)], true),
        (Vec::new(), true),
    ] {
        let (mut stage, link) = watching();
        let actions = turned(&mut stage, 1, &[Said::TurnStarted, asks("a")]);
        assert!(told(&actions).is_empty(), "not before it is known");
        let tag = lookers(&actions).expect("who looks");
        let notes = told(&shown(&mut stage, link, tag, Answer::Lookers(lookers_are.clone())));
        assert_eq!(notes.len(), usize::from(is_told), "{lookers_are:?}");
        let counts = stage.supervisor.notify_status().unwrap();
        assert_eq!((counts.seen, counts.waiting), (u64::from(!is_told), 0));
        if let [note] = &notes[..] {
            assert_eq!((reason(note), note.at), (Reason::NeedsInput, Moment::from_millis(BEGAN + 2)));
        }
        assert_eq!(stage.supervisor.notify_due(), None);
    }
}

#[test]
fn a_server_that_does_not_answer_shows_nothing() {
    let (mut stage, link) = watching();
    let tag = lookers(&turned(&mut stage, 1, &[Said::TurnStarted, DONE])).expect("who looks");
    let notes = told(&shown(&mut stage, link, tag, Answer::Failed("no".into())));
    assert_eq!(notes.iter().map(reason).collect::<Vec<_>>(), [Reason::Waiting]);
    let (mut stage, _) = watching();
    turned(&mut stage, 1, &[Said::TurnStarted, DONE]);
    let asked = stage.mono;
    let mut notes = Vec::new();
    while notes.is_empty() {
        notes = told(&stage.wait());
    }
    assert!(stage.mono >= asked + ANSWER);
    assert_eq!(reason(&notes[0]), Reason::Waiting);
}

#[test]
fn what_was_before_and_what_was_told_is_no_news() {
    let mut stage = alone(vec![record("now")]);
    assert!(told(&turned(&mut stage, -9, &[Said::TurnStarted, asks("a")])).is_empty(), "an old story");
    let mut stage = alone(vec![record("now")]);
    assert!(told(&turned(&mut stage, -9, &[Said::TurnStarted, DONE])).is_empty(), "an old story");
    assert!(told(&turned(&mut stage, -9, &[Said::TurnStarted, DONE, Said::Idle])).is_empty(), "a reminder");
    let mut stage = alone(vec![record("now")]);
    assert!(told(&turned(&mut stage, 1, &[Said::Started, Said::Idle])).is_empty(), "it has done nothing");
    let all = [Said::TurnStarted, asks("a"), asks("a"), over("a"), asks("b"), DONE, Said::TurnStarted, DONE];
    let mut told_of = Vec::new();
    for end in 1..=all.len() {
        let notes = told(&turned(&mut stage, 3, &all[..end]));
        told_of.extend(notes.iter().map(|note| (end, reason(note))));
        stage.mono += SESSION;
    }
    let (asks, is_done) = (Reason::NeedsInput, Reason::Waiting);
    assert_eq!(told_of, [(2, asks), (5, asks), (6, is_done), (8, is_done)]);
}

#[test]
fn what_happens_between_two_looks_is_told() {
    let mut stage = alone(vec![record("now")]);
    turned(&mut stage, 1, &[Said::Started]);
    let notes = told(&turned(&mut stage, 1, &[Said::Started, Said::TurnStarted, DONE]));
    assert_eq!(notes.iter().map(reason).collect::<Vec<_>>(), [Reason::Waiting]);
    stage.mono += SESSION;
    let first = [Said::Started, Said::TurnStarted, DONE, Said::TurnStarted, asks("a")];
    assert_eq!(told(&turned(&mut stage, 1, &first)).len(), 1);
    stage.mono += SESSION;
    let second = [&first[..], &[over("a"), asks("b")]].concat();
    assert_eq!(told(&turned(&mut stage, 1, &second)).len(), 1, "the first was answered, and another stands");
}

#[test]
fn a_session_is_told_of_once_in_a_while_and_what_is_over_by_then_is_counted() {
    let mut stage = alone(vec![record("now")]);
    let mut said = vec![Said::TurnStarted, DONE];
    assert_eq!(told(&turned(&mut stage, 1, &said)).len(), 1);
    let first = stage.mono;
    said.extend([Said::TurnStarted, asks("a")]);
    assert!(told(&turned(&mut stage, 1, &said)).is_empty(), "too soon");
    said.extend([over("a"), DONE]);
    assert!(told(&turned(&mut stage, 1, &said)).is_empty(), "and that is over");
    let notes = told(&stage.wait());
    assert!(stage.mono >= first + SESSION);
    assert_eq!((reason(&notes[0]), notes[0].held), (Reason::Waiting, 1));
    said.extend([Said::TurnStarted, asks("b")]);
    assert!(told(&turned(&mut stage, 1, &said)).is_empty(), "too soon");
    said.push(over("b"));
    assert!(told(&turned(&mut stage, 1, &said)).is_empty(), "and nothing is left of it");
    let counts = stage.supervisor.notify_status().unwrap();
    assert_eq!((counts.held, counts.waiting), (2, 0));
    stage.mono += SESSION;
    said.push(DONE);
    assert_eq!(told(&turned(&mut stage, 1, &said))[0].held, 1);
}

#[test]
fn what_does_not_stay_for_a_moment_was_nothing() {
    let mut stage = alone(vec![record("now")]);
    let record = record("now").id;
    let mut said = vec![Said::TurnStarted, DONE];
    for what in [Said::TurnStarted, asks("a"), over("a"), asks("b")] {
        let actions = stage.tell(Input::Turned { record, turns: Box::new(turns(1, &said)) });
        assert!(told(&actions).is_empty(), "not yet");
        said.push(what);
    }
    let notes = told(&turned(&mut stage, 1, &said));
    assert_eq!(notes.iter().map(reason).collect::<Vec<_>>(), [Reason::NeedsInput]);
    assert_eq!(notes[0].held, 0);
}

#[test]
fn a_question_comes_with_the_request_it_belongs_to() {
    let question = |note: &Note| match &note.what {
        What::One { question, .. } => question.as_ref().map(|words| words.0.clone()),
        What::Several { .. } => None,
    };
    let id = record("now").id;
    let mut stage = alone(vec![record("now")]);
    let input = Input::Question { record: id, text: Words("May I?".into()) };
    assert!(!format!("{input:?}").contains("May"), "what is logged says nothing of it");
    stage.tell(input);
    let mut said = vec![Said::TurnStarted, asks("a")];
    let note = &told(&turned(&mut stage, 1, &said))[0];
    assert_eq!(question(note).as_deref(), Some("May I?"));
    let object = serde_json::to_value(note).unwrap();
    assert_eq!(object["attention"], serde_json::json!({"kind": "approval", "tool": "Bash", "pending": 1}));
    assert_eq!((&object["source"], &object["session"]["pane"]), (&"hook".into(), &"%5".into()));
    said.extend([over("a"), asks("b")]);
    stage.mono += SESSION;
    assert_eq!(question(&told(&turned(&mut stage, 1, &said))[0]), None, "said once");
    // nobody wants to know
    let mut stage = Stage::telling(Vec::new(), on(&[Reason::Lost]));
    stage.tell(Input::Store(Ok(view(vec![record("now")]))));
    stage.tell(Input::Question { record: id, text: Words("May I?".into()) });
    assert!(stage.supervisor.notifying.questions.is_empty());
    assert!(told(&turned(&mut stage, 1, &said)).is_empty());
}

/// So many records: live, lost, or back.
fn fleet(count: usize, change: impl Fn(&mut Record)) -> Vec<Record> {
    let one = |number: usize| {
        let mut record = record("now");
        record.id = format!("{:08x}", 10 + number).parse().unwrap();
        record.window = format!("w{number}");
        change(&mut record);
        record
    };
    (0..count).map(one).collect()
}

fn lose(record: &mut Record) {
    record.state = RecordState::Frozen {
        lost: Some(Box::new(Lost {
            at: Stamp::from_unix(BEGAN / 1000),
            cause: LossCause::ServerCrashed,
            exit_status: None,
            signal: None,
            evidence: String::new(),
            agent: None,
            lived: None,
            unknown: Default::default(),
        })),
    };
    record.location = Location::Gone;
}

fn come_back(record: &mut Record) {
    record.ait.recovered =
        Some(Recovered { at: Stamp::from_unix(BEGAN / 1000), cause: LossCause::ServerCrashed });
}

#[test]
fn losses_are_told_with_their_cause_and_many_of_them_in_one() {
    for count in [1, ONE_BY_ONE, 200] {
        let mut stage = alone(fleet(count, |_| {}));
        let notes = told(&stored(&mut stage, fleet(count, lose)));
        if count > ONE_BY_ONE {
            let object = serde_json::to_value(&notes).unwrap();
            assert_eq!(notes.len(), 1);
            assert_eq!((&object[0]["counts"]["lost"], &object[0]["more"]), (&200.into(), &180.into()));
        } else {
            assert_eq!(notes.iter().map(reason).collect::<Vec<_>>(), vec![Reason::Lost; count]);
            let object = serde_json::to_value(&notes[0]).unwrap();
            assert_eq!(
                (&object["source"], &object["session"]["pane"]),
                (&"server_crashed".into(), &"%5".into())
            );
        }
        assert!(told(&stored(&mut stage, fleet(count, lose))).is_empty(), "once");
        // they are back at once: told when they may be, and in one
        assert!(told(&stored(&mut stage, fleet(count, come_back))).is_empty());
        let notes = told(&stage.wait());
        assert_eq!(notes.len(), if count > ONE_BY_ONE { 1 } else { count });
    }
}

#[test]
fn all_together_are_told_of_so_often_and_no_more() {
    let count = limit::BURST as usize + 4;
    let mut stage = alone(fleet(count, |_| {}));
    let mut notes = Vec::new();
    let first = stage.mono;
    for lost in 1..=count {
        let mut records = fleet(count, |_| {});
        records[..lost].iter_mut().for_each(lose);
        notes.extend(told(&stored(&mut stage, records)));
    }
    assert_eq!(notes.len(), limit::BURST as usize);
    let notes = told(&stage.wait());
    assert!(stage.mono >= first + limit::EACH, "{:?}", stage.mono - first);
    let object = serde_json::to_value(&notes).unwrap();
    assert_eq!((object.as_array().unwrap().len(), &object[0]["counts"]["lost"]), (1, &4.into()));
    assert_eq!(stage.supervisor.notify_due(), None);
}

#[test]
fn nobody_who_wants_nothing_is_told_or_asked_anything() {
    let mut stage = Stage::telling(Vec::new(), BTreeSet::new());
    stage.tell(Input::Store(Ok(view(vec![record("now")]))));
    assert!(told(&turned(&mut stage, 1, &[Said::TurnStarted, asks("a")])).is_empty());
    assert!(told(&stored(&mut stage, fleet(1, lose))).is_empty());
    assert_eq!(stage.supervisor.notify_status(), None);
    assert!(stage.supervisor.notifying.heard.is_empty());
}
