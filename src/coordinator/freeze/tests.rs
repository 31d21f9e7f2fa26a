//! A freeze, told what it hears.

use super::*;
use crate::record::StateName;
use crate::record::testing::sample;

/// An agent that is to be frozen, and by whom.
fn target() -> (Task, Target) {
    let record = Box::new(sample(StateName::Live));
    let task = Task { record: record.id, me: ProcessId::new(5, "50") };
    let (pane, agent) = (PaneId(1), ProcessId::new(41, "410"));
    (task, Target { record, pane, process: agent.clone(), agent, closes: true })
}

#[test]
fn one_that_nobody_tells_of_is_looked_at_once_more_from_its_record() {
    let (task, target) = target();
    for ended in [true, false] {
        let mut freeze = Freeze::new(Order { task: task.clone(), policy: Policy::Named, dry_run: false });
        while freeze.next_act().is_some() {}
        freeze.stage = Stage::Examining(target.clone());
        freeze.handle(Duration::ZERO, Heard::Sight(Sight::unknown()));
        assert_eq!(freeze.next_act(), Some(Act::Read));
        let word = if ended {
            let freezing = Record { state: State::Freezing, ..(*target.record).clone() };
            freeze.handle(Duration::ZERO, Heard::Record(Some(Box::new(freezing))));
            "lease_held"
        } else {
            freeze.stage = Stage::Examining(target.clone());
            freeze.handle(Duration::ZERO, Heard::Sight(Sight::unknown()));
            "unknown"
        };
        let Some(Act::Finish(outcome)) = freeze.next_act() else { panic!("it is over") };
        assert_eq!((outcome.end, outcome.word.as_str()), (End::Refused, word), "{outcome:?}");
    }
}

#[test]
fn a_store_that_is_busy_as_the_conversations_file_is_noted_is_asked_again() {
    let (task, target) = target();
    for last in [true, false] {
        let mut freeze = Freeze::new(Order { task: task.clone(), policy: Policy::Force, dry_run: false });
        while freeze.next_act().is_some() {}
        freeze.stage = Stage::Locating(target.clone());
        let path = "/c/file.jsonl".to_owned();
        freeze.handle(Duration::ZERO, Heard::Conversation(Conversation::Present { path }));
        for pause in STORE {
            let bound = |act: &Act| matches!(act, Act::Apply(verb) if matches!(**verb, Verb::Bind(_)));
            assert!(freeze.next_act().is_some_and(|act| bound(&act)));
            freeze.handle(Duration::ZERO, Heard::Applied(Applied::Failed("the store is busy".into())));
            assert_eq!((freeze.next_act(), freeze.deadline()), (None, Some(pause)));
            freeze.handle(pause, Heard::Time);
        }
        assert!(matches!(freeze.next_act(), Some(Act::Apply(_))));
        let applied = if last {
            Applied::Done(record::Outcome::Enriched)
        } else {
            Applied::Failed("the store is busy".into())
        };
        freeze.handle(Duration::ZERO, Heard::Applied(applied));
        assert_eq!(freeze.next_act(), Some(Act::Capture), "the file is a convenience");
        freeze.handle(Duration::ZERO, Heard::Captured(Err("no".into())));
        let Some(Act::Finish(outcome)) = freeze.next_act() else { panic!("it is over") };
        assert_eq!(outcome.warnings.is_empty(), last, "{outcome:?}");
    }
}
