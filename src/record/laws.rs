//! What holds after any sequence of verbs: slots unique in a window, a lease whole or absent, order and bytes stable, a
//! refused verb without effect.

use std::collections::HashSet;

use proptest::prelude::*;

use super::read::read;
use super::testing::{World, epoch};
use super::*;

/// A verb on the record that comes at this place in the list, with its own lease's token or a wrong one.
#[derive(Debug, Clone)]
struct Act {
    which: usize,
    verb: usize,
    n: u32,
    right_nonce: bool,
    gone: Vec<i32>,
    step: i64,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (
        0..6usize,
        0..20usize,
        0..6u32,
        prop::bool::weighted(0.9),
        prop::collection::vec(1..12i32, 0..5),
        0..90i64,
    )
        .prop_map(|(which, verb, n, right_nonce, gone, step)| Act {
            which,
            verb,
            n,
            right_nonce,
            gone,
            step,
        });
    prop::collection::vec(act, 1..60)
}

/// The verb an act comes to, on the records as they are.
fn verb_of(act: &Act, record: Option<&Record>) -> Verb {
    let n = i32::try_from(act.n).unwrap();
    let at = if act.n == 0 {
        Location::Gone
    } else {
        Location::pane(PaneId(act.n), ProcessId::new(n, format!("{n}0")))
    };
    let window = ["", "w", "x|y"][act.n as usize % 3].to_owned();
    let lease = record.and_then(|record| record.lease.as_ref()).map(|lease| lease.nonce);
    let nonce = lease.filter(|_| act.right_nonce).unwrap_or(Nonce::from_bits(act.n));
    let owner = ProcessId::new(11, "110");
    let upsert = Upsert {
        session_id: ["", "s1", "s2"][act.which % 3].to_owned(),
        ours: Ours { server: act.right_nonce.then(epoch), ..Ours::default() },
        ..Upsert::new(["/r", "/q"][act.which % 2], window.clone(), at.clone())
    };
    match act.verb {
        0..=2 => Verb::Upsert(Box::new(upsert)),
        3 => Verb::Upsert(Box::new(Upsert { id: record.map(|record| record.id), ..upsert })),
        4 => Verb::Upsert(Box::new(Upsert { restore_of: record.map(|record| (record.id, nonce)), ..upsert })),
        5 => Verb::FreezeBegin {
            owner,
            capture: Capture { ansi: "a".into(), lines: 1, txt: String::new() },
            phase: String::new(),
            memory: None,
        },
        6 => Verb::FreezeCommit { nonce, at },
        7 => Verb::FreezeAbort { nonce },
        8 => Verb::RestoreBegin {
            owner,
            mode: if act.right_nonce { RestoreMode::Resume } else { RestoreMode::Repick },
        },
        9 => Verb::RestoreLaunched { nonce, at, server: None, runtime_id: None },
        10 => Verb::RestoreConfirm {
            nonce,
            at,
            ack: [Ack::Liveness, Ack::Registry, Ack::Rollout][act.which % 3],
            agent: None,
            session_id: Some(["", "s1", "s2"][act.n as usize % 3].to_owned()),
        },
        11 => Verb::RestoreAbort { nonce, error: "x".into() },
        12 => Verb::StandinRespawned { nonce, at },
        13 => Verb::LeaseTake { owner },
        14 => Verb::LeaseRelease { nonce },
        15 => Verb::Lose {
            cause: LossCause::ServerGone,
            evidence: String::new(),
            exit_status: None,
            signal: None,
            checkpoint: None,
        },
        16 => Verb::End { reason: "exited".into(), evidence: String::new(), provisional: false },
        17 => Verb::Drop { nonce: Some(nonce) },
        18 => Verb::Follow(Box::new(Follow { window: Some(window), ..Follow::new(PaneId(act.n), epoch()) })),
        _ => Verb::Enrich {
            at,
            ours: Box::new(Ours { title: Some("t".into()), ..Ours::default() }),
            lost: None,
            replace: true,
        },
    }
}

fn hold(records: &Records) {
    let places: HashSet<_> = records.iter().map(Record::key).collect();
    assert_eq!(places.len(), records.len(), "slots are unique in a window");
    assert!(records.iter().map(Record::key).is_sorted(), "records are sorted");
    let text = records.print().unwrap();
    let again = read(&text).unwrap();
    assert!(again.bad.is_empty(), "what is written is read: {:?}", again.bad);
    assert_eq!(&again.records, records, "and is the same");
    assert_eq!(again.records.print().unwrap(), text, "byte for byte");
    for record in records.iter() {
        let on_its_way =
            matches!(record.state, State::Freezing | State::Restoring { .. } | State::Aborting { .. });
        assert!(!matches!(record.state, State::Live) || record.state.lost().is_none());
        assert!(on_its_way || record.state.name() == StateName::Live || record.frozen_at.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn any_sequence_of_verbs_keeps_the_set_whole(acts in acts()) {
        let mut records = Records::default();
        let mut world = World::new(&[]);
        let mut ids = HashSet::new();
        for act in acts {
            world.now += act.step;
            world.gone.clone_from(&act.gone);
            let record = records.iter().nth(act.which).cloned();
            let verb = verb_of(&act, record.as_ref());
            let before = records.clone();
            let answer = world.with(|facts| records.step(record.as_ref().map(|r| r.id), &verb, facts));
            records.sort();
            match answer {
                Err(_) => prop_assert_eq!(&records, &before, "a refused verb has no effect"),
                Ok(done) => {
                    prop_assert_eq!(done.changed, records != before);
                    if matches!(done.outcome, Outcome::Created { .. }) {
                        prop_assert!(ids.insert(done.id), "an id is used once");
                    }
                    let left = before.len() + usize::from(matches!(done.outcome, Outcome::Created { .. }));
                    let right = records.len() + usize::from(done.archive.is_some());
                    prop_assert_eq!(left, right, "a record goes only to the archive");
                }
            }
            hold(&records);
        }
    }
}
