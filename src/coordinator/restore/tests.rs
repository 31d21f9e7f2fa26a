use super::*;
use crate::coordinator::{Conversation, Task};
use crate::record::testing::sample;
use crate::record::{Nonce, StateName};

/// What is done after the folder of the conversation was noted, with these words heard on the way.
fn after_filing(words: impl IntoIterator<Item = Heard>) -> Vec<Act> {
    let record = Box::new(sample(StateName::Frozen));
    let task = Task { record: record.id, me: ProcessId::new(1, "1") };
    let mode = RestoreMode::Resume;
    let grace = Duration::from_secs(20);
    let mut restore = Restore::new(RestoreOrder { task, mode, session: None, dry_run: false, grace });
    let ready = || {
        Box::new(Ready {
            argv: Ok(vec!["claude".into()]),
            session_id: Some("s1".into()),
            binary: true,
            folder: ("/r".into(), true),
            conversation: Conversation::Present { path: "/c".into() },
            filed: Some("/other".into()),
            twin: None,
            survivors: Vec::new(),
            elsewhere: None,
            unknown: None,
        })
    };
    let nonce = Nonce::from_bits(1);
    let done = |outcome| Heard::Applied(Applied::Done(outcome));
    let before = [
        Heard::Record(Some(record)),
        Heard::Ready(ready()),
        done(record::Outcome::Restoring(nonce)),
        Heard::Ready(ready()),
    ];
    for heard in before.into_iter().chain(words) {
        while restore.next_act().is_some() {}
        restore.handle(Duration::ZERO, heard);
    }
    while restore.next_act().is_some() {}
    restore.handle(Duration::ZERO, done(record::Outcome::Enriched));
    std::iter::from_fn(|| restore.next_act()).collect()
}

#[test]
fn who_is_told_to_stop_before_the_launch_launches_nothing() {
    let launches = |acts: &[Act]| acts.iter().any(|act| matches!(act, Act::Launch(_)));
    assert!(launches(&after_filing([])));
    assert!(!launches(&after_filing([Heard::Stop])));
}
