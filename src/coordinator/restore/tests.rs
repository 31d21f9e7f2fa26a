use super::*;
use crate::coordinator::{Conversation, Task};
use crate::record::StateName;
use crate::record::testing::sample;
use crate::world::rows::Snapshot;

fn ready() -> Heard {
    Heard::Ready(Box::new(Ready {
        argv: Ok(["claude", "--resume", "sid"].map(str::to_owned).to_vec()),
        session_id: Some("sid".to_owned()),
        binary: true,
        folder: ("/r".to_owned(), true),
        conversation: Conversation::Present { path: String::new() },
        filed: None,
        twin: None,
        survivors: Vec::new(),
        elsewhere: None,
        unknown: None,
    }))
}

fn listed(attempt: &str) -> Heard {
    let sessions = "S\t$1\t0\t\tmain\n";
    let windows = "W\t$1\t@1\t1\t1\tl\tw\n";
    let panes = format!("P\t$1\t@1\t%9\t99\t0\t\t\t1\toff\t\t\t\t\t{attempt}\tt\n");
    let snapshot = Snapshot::parse(sessions.as_bytes(), windows.as_bytes(), panes.as_bytes()).unwrap();
    Heard::Server(ServerSight::Listed(Box::new(snapshot)))
}

/// The first act that is more than a word.
fn act(restore: &mut Restore) -> Option<Act> {
    loop {
        match restore.next_act() {
            Some(Act::Tell(_)) => {}
            act => return act,
        }
    }
}

fn order(record: &Record) -> RestoreOrder {
    let task = Task { record: record.id, me: ProcessId::new(5, "50") };
    let grace = Duration::from_secs(20);
    RestoreOrder { task, mode: RestoreMode::Resume, session: None, dry_run: false, grace }
}

/// Up to the answer of preflight under the lease; the record is frozen at `before` when it is read first.
fn claimed(before: Location, now: Duration, last: Heard) -> (Restore, Record) {
    let record = Record { location: before, ..sample(StateName::Frozen) };
    let held = sample(StateName::Restoring);
    let nonce = held.lease.as_ref().unwrap().nonce;
    let mut restore = Restore::new(order(&record));
    let heard = [
        Heard::Record(Some(Box::new(record))),
        ready(),
        Heard::Applied(Applied::Done(record::Outcome::Restoring(nonce))),
        Heard::Record(Some(Box::new(held.clone()))),
        last,
    ];
    for heard in heard {
        assert!(act(&mut restore).is_some());
        restore.handle(now, heard);
    }
    (restore, held)
}

#[test]
fn what_is_put_back_is_the_record_as_it_was_under_the_lease() {
    let Heard::Ready(found) = ready() else { panic!() };
    let missing = Ready { conversation: Conversation::Missing("no_turn".to_owned()), ..*found };
    let (mut restore, held) = claimed(Location::Gone, Duration::ZERO, Heard::Ready(Box::new(missing)));
    assert!(
        matches!(act(&mut restore), Some(Act::Apply(verb)) if matches!(*verb, Verb::RestoreAbort { .. }))
    );
    restore.handle(Duration::ZERO, Heard::Applied(Applied::Done(record::Outcome::Aborting)));
    let Some(Act::Apply(verb)) = act(&mut restore) else { panic!("its stand-in is told") };
    assert!(matches!(*verb, Verb::StandinRespawned { at, .. } if at == held.location));
}

#[test]
fn a_launch_nobody_answered_for_is_looked_for_again_before_it_is_taken_back() {
    for marked in [true, false] {
        let mut now = Duration::from_secs(100);
        let (mut restore, held) = claimed(sample(StateName::Frozen).location, now, ready());
        assert!(matches!(act(&mut restore), Some(Act::Launch(_))));
        restore.handle(now, Heard::Launched(Launched::Unknown("tmux did not say".to_owned())));
        let mark = format!("{}:{}", held.id, held.lease.as_ref().unwrap().nonce);
        for pause in SERVER {
            assert_eq!(act(&mut restore), Some(Act::Look));
            restore.handle(now, listed(""));
            assert_eq!(act(&mut restore), None, "a split marks itself a moment later");
            assert_eq!(restore.deadline(), Some(now + pause));
            now += pause;
            restore.handle(now, Heard::Time);
        }
        assert_eq!(act(&mut restore), Some(Act::Look));
        restore.handle(now, listed(if marked { &mark } else { "" }));
        let Some(Act::Apply(verb)) = act(&mut restore) else { panic!("it comes to an end") };
        match *verb {
            Verb::RestoreLaunched { at, .. } if marked => assert_eq!(at.pane_id(), Some(PaneId(9))),
            Verb::RestoreAbort { error, .. } if !marked => assert_eq!(error, "not_launched"),
            other => panic!("{other:?}"),
        }
    }
}

/// What is done after the folder of the conversation was noted, with these words heard on the way.
fn after_filing(words: impl IntoIterator<Item = Heard>) -> Vec<Act> {
    let Heard::Ready(found) = ready() else { panic!() };
    let filed = Ready { filed: Some("/other".into()), ..*found };
    let (mut restore, _) =
        claimed(sample(StateName::Frozen).location, Duration::ZERO, Heard::Ready(Box::new(filed)));
    for heard in words {
        restore.handle(Duration::ZERO, heard);
    }
    while restore.next_act().is_some() {}
    restore.handle(Duration::ZERO, Heard::Applied(Applied::Done(record::Outcome::Enriched)));
    std::iter::from_fn(|| restore.next_act()).collect()
}

#[test]
fn who_is_told_to_stop_before_the_launch_launches_nothing() {
    let launches = |acts: &[Act]| acts.iter().any(|act| matches!(act, Act::Launch(_)));
    assert!(launches(&after_filing([])));
    assert!(!launches(&after_filing([Heard::Stop])));
}

#[test]
fn a_stand_in_that_was_put_back_is_where_it_was_put_and_not_where_else_its_stamp_is() {
    let id = sample(StateName::Frozen).id;
    let row = |pane: u32, pid: u32| format!("P\t$1\t@1\t%{pane}\t{pid}\t0\t\t\t1\toff\t\t{id}\t1\t\t\tt\n");
    let panes = [row(3, 30), row(9, 90)].concat();
    let sessions = "S\t$1\t0\t\tmain\n";
    let windows = "W\t$1\t@1\t1\t1\tl\tw\n";
    let rows = Snapshot::parse(sessions.as_bytes(), windows.as_bytes(), panes.as_bytes()).unwrap().panes;
    let at = |put: Option<u32>| stand_in(&rows, id, put.map(PaneId)).pane_id();
    assert_eq!(at(Some(9)), Some(PaneId(9)));
    assert_eq!(at(Some(5)), Some(PaneId(3)), "where it is then");
    assert_eq!(at(None), Some(PaneId(3)));
    assert_eq!(stand_in(&[], id, Some(PaneId(9))), Location::Gone);
}
