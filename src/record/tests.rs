//! What the file's text must stand, and the State × Verb table.

use super::read::read;
use super::testing::{World, epoch, sample};
use super::*;

/// A file as the earlier scripts write it: every field, keys sorted, non-ASCII escaped.
pub(super) const EARLIER: &str = r#"{
  "sessions": [
    {
      "ack": "liveness",
      "agent_kind": "claudecode",
      "agent_string": "claudecode/opus5",
      "capture_ansi": "/home/u/.config/aitasks/frozen/7f3a2c1d/capture.ansi",
      "capture_lines": 12,
      "capture_txt": "/home/u/.config/aitasks/frozen/7f3a2c1d/capture.txt",
      "codeagent_session_id": "3f0c",
      "frozen_at": "2026-09-04T10:12:03Z",
      "id": "7f3a2c1d",
      "last_error": "0badf00d:agent_exited",
      "last_phase": "waiting",
      "launch_pid": 4711,
      "op_nonce": "deadbeef",
      "op_owner_pid": 99,
      "op_started_at": "2026-09-04T10:12:03Z",
      "operation": "pick",
      "pane_id": "%104",
      "pane_pid": 41233,
      "restore_attempts": 2,
      "restore_mode": "resume",
      "root": "/no/such/pr\u00f6ject",
      "session": "aitasks",
      "standin_pid": 12,
      "started_at": "2026-09-04T09:12:03Z",
      "state": "live",
      "state_at": "2026-09-04T09:12:03Z",
      "task_id": "1705",
      "transcript_path": "/t.jsonl",
      "window": "agent|pick\t\ud83d\ude00 \"1705\"\n\u007f",
      "window_slot": 3
    },
    {
      "ack": "",
      "agent_kind": "",
      "agent_string": "",
      "capture_ansi": "",
      "capture_lines": 0,
      "capture_txt": "",
      "codeagent_session_id": "",
      "frozen_at": "",
      "id": "00000001",
      "last_error": "",
      "last_phase": "",
      "launch_pid": 0,
      "op_nonce": "",
      "op_owner_pid": 0,
      "op_started_at": "",
      "operation": "",
      "pane_id": "",
      "pane_pid": 0,
      "restore_attempts": 0,
      "restore_mode": "",
      "root": "/r",
      "session": "",
      "standin_pid": 0,
      "started_at": "",
      "state": "frozen",
      "state_at": "",
      "task_id": "",
      "transcript_path": "",
      "window": "w",
      "window_slot": 0
    }
  ],
  "version": 1
}
"#;

fn round_trip(text: &str) -> String {
    let parsed = read(text.as_bytes()).unwrap();
    assert!(parsed.bad.is_empty(), "{:?}", parsed.bad);
    String::from_utf8(parsed.records.print().unwrap()).unwrap()
}

#[test]
fn a_file_of_the_earlier_scripts_comes_back_byte_for_byte() {
    for state in ["live", "freezing", "frozen", "restoring", "aborting"] {
        let text = EARLIER.replacen("\"live\"", &format!("{state:?}"), 1);
        assert_eq!(round_trip(&text), text, "{state}");
    }
}

#[test]
fn unknown_fields_survive_at_every_level() {
    let text = EARLIER
        .replacen("\"ack\"", "\"aardvark\": {\n        \"n\": 123456789012345678901234567890\n      },\n      \"ack\"", 1)
        .replacen("\"window_slot\": 3", "\"window_slot\": 3,\n      \"zebra\": [\n        1.50\n      ]", 1)
        .replacen("\"version\": 1", "\"version\": 1,\n  \"written_by\": \"x\"", 1)
        .replacen(
            "\"capture_ansi\"",
            "\"ait\": {\n        \"future\": true,\n        \"server\": {\n          \"boot_id\": \"b\",\n          \"colour\": null,\n          \
             \"pid\": 7,\n          \"socket\": \"/s\",\n          \"started\": \"9\"\n        }\n      },\n      \"capture_ansi\"",
            1,
        );
    assert_eq!(round_trip(&text), text);
}

#[test]
fn everything_of_ours_goes_both_ways() {
    let mut record = sample(StateName::Frozen);
    record.state = State::Frozen {
        lost: Some(Box::new(Lost {
            at: Stamp::from_unix(5),
            cause: LossCause::AgentCrashed,
            exit_status: Some(1),
            signal: Some(11),
            evidence: "killed".into(),
            agent: Some(ProcessId::new(6, "60")),
            lived: Some(5),
            unknown: Unknown::default(),
        })),
    };
    record.lease = Some(Lease {
        nonce: Nonce::from_bits(1),
        owner: ProcessId::new(5, "50"),
        since: Stamp::from_unix(1),
        since_boot: Some(BootTime { boot_id: "b".into(), seconds: 9 }),
    });
    record.ait = Ours {
        agent: Some(ProcessId::new(6, "60")),
        agent_bin: Some("/bin/claude".into()),
        argv: Some(vec!["claude".into(), "--resume".into()]),
        came_instead: Some("other".into()),
        capture_before: Some(Capture { ansi: "a".into(), lines: 1, txt: "t".into() }),
        checkpoint_at: Some(Stamp::from_unix(3)),
        cwd: Some("/r".into()),
        desired: Some(Desired::Stopped),
        earlier: Some(vec!["before".into()]),
        env: Some([("PATH".to_owned(), "/bin".to_owned())].into()),
        generation: Some(4),
        host: Some(Host::Shell { argv: vec!["bash".into()], cwd: "/r".into() }),
        memory: Some(1 << 20),
        origin: Some(Origin::Hook),
        recover: Some(Policy::Offer),
        recovered: Some(Recovered { at: Stamp::from_unix(4), cause: LossCause::Reboot }),
        runtime_id: Some("u".into()),
        server: Some(epoch()),
        session: Some(super::Session { name: Some("review".into()), prompt: true, ..Default::default() }),
        task_file: Some("/t.org".into()),
        title: Some("t".into()),
        window_id: Some(WindowId(4)),
        window_index: Some(2),
        window_layout: Some("abcd,80x24,0,0,1".into()),
        unknown: Unknown::default(),
    };
    let text = canonical(&record, 0).unwrap();
    assert_eq!(serde_json::from_slice::<Record>(&text).unwrap(), record);
    record.ait.host = Some(Host::Pane);
    let text = canonical(&record, 0).unwrap();
    assert_eq!(serde_json::from_slice::<Record>(&text).unwrap(), record);
}

#[test]
fn keys_are_printed_sorted() {
    fn check(value: &serde_json::value::RawValue) {
        struct Keys;
        impl<'de> serde::de::Visitor<'de> for Keys {
            type Value = Vec<String>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<serde_json::value::RawValue>>()? {
                    if value.get().starts_with('{') {
                        check(&value);
                    }
                    keys.push(key);
                }
                Ok(keys)
            }
        }
        let keys =
            serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(value.get()), Keys)
                .unwrap();
        assert!(keys.is_sorted(), "{keys:?}");
    }
    let mut record = sample(StateName::Restoring);
    record.ait.server = Some(ServerEpoch { started_at: Some(4), ..epoch() });
    record.ait.window_id = Some(WindowId(1));
    record.ait.title = Some("x".into());
    check(&serde_json::value::to_raw_value(&record).unwrap());
}

#[test]
fn what_is_not_a_store_is_named_with_its_place() {
    let fault = read(format!("{EARLIER}garbage").as_bytes()).unwrap_err();
    assert_eq!((fault.line, fault.column, fault.offset), (70, 1, EARLIER.len()), "{fault}");
    assert!(fault.to_string().contains("trailing characters at line 70 column 1"), "{fault}");
    let fault = read(&EARLIER.as_bytes()[..700]).unwrap_err();
    assert!(fault.line > 10 && fault.offset >= 699, "{fault}");
    for (text, reason) in [
        ("[]", "expected an object"),
        ("{}", "version is missing"),
        ("{\"version\": 1}", "sessions is not a list"),
        ("{\"version\": 0, \"sessions\": []}", "version 0 was never written"),
        ("{\"version\": true, \"sessions\": []}", "invalid type"),
        ("{\"version\": 1, \"sessions\": {}}", "invalid type"),
        ("\u{0}", "expected value"),
    ] {
        let fault = read(text.as_bytes()).unwrap_err();
        assert!(fault.to_string().contains(reason), "{text}: {fault}");
    }
    for empty in ["", "\n", " \t\r\n"] {
        assert!(read(empty.as_bytes()).unwrap().records.is_empty());
    }
}

#[test]
fn bytes_that_are_no_text_are_named_with_their_place() {
    let at = EARLIER.find("/no/such").unwrap();
    let mut text = EARLIER.as_bytes().to_vec();
    text[at] = 0xff;
    let fault = read(&text).unwrap_err();
    assert!(fault.reason.contains("unicode") && fault.line > 1, "{fault}");
}

#[test]
fn one_bad_record_is_set_aside_by_name_and_the_others_are_read() {
    for (good, bad, reason) in [
        ("\"pane_pid\": 41233", "\"pane_pid\": 0", "pane_id and pane_pid"),
        ("\"pane_id\": \"%104\"", "\"pane_id\": \"\"", "pane_id and pane_pid"),
        ("\"pane_id\": \"%104\"", "\"pane_id\": \"main:0.0\"", "is not a pane id"),
        ("\"op_owner_pid\": 99", "\"op_owner_pid\": 0", "must be all set or all empty"),
        ("\"op_nonce\": \"deadbeef\"", "\"op_nonce\": \"\"", "must be all set or all empty"),
        ("\"op_nonce\": \"deadbeef\"", "\"op_nonce\": \"DEADBEEF\"", "is not a nonce"),
        ("\"frozen_at\": \"2026-09-04T10:12:03Z\"", "\"frozen_at\": \"yesterday\"", "is not a time"),
        ("\"state\": \"live\"", "\"state\": \"zombie\"", "unknown variant"),
        ("\"state\": \"live\"", "\"state\": \"\"", "unknown variant"),
        ("\"restore_mode\": \"resume\"", "\"restore_mode\": \"latest\"", "restore_mode"),
        ("\"window_slot\": 3", "\"window_slot\": -1", "invalid value"),
        ("\"task_id\": \"1705\"", "\"task_id\": 1705", "invalid type"),
        ("\"session\": \"aitasks\"", "\"session\": null", "invalid type"),
        ("\"root\": \"/no/such/pr\\u00f6ject\"", "\"root\": \"\"", "root is empty"),
        ("\"id\": \"7f3a2c1d\"", "\"id\": \"../../x\"", "is not a record id"),
        ("\"id\": \"7f3a2c1d\"", "\"id\": \"00000001\"", "used twice"),
    ] {
        let text = EARLIER.replacen(good, bad, 1);
        assert_ne!(text, EARLIER, "{good}");
        let parsed = read(text.as_bytes()).unwrap();
        let named: Vec<&str> = parsed.bad.iter().map(|bad| bad.reason.as_str()).collect();
        assert_eq!(parsed.records.len(), 1, "{bad}: {named:?}");
        assert!(named.len() == 1 && named[0].contains(reason), "{bad}: {named:?}");
        let second = 1 + EARLIER[..EARLIER.rfind("    {\n").unwrap()].matches('\n').count();
        assert_eq!(parsed.bad[0].line, if parsed.bad[0].index == 0 { 3 } else { second }, "{bad}");
    }
}

#[test]
fn a_newer_file_is_read_as_far_as_it_goes() {
    let parsed = read(EARLIER.replace("\"version\": 1", "\"version\": 2").as_bytes()).unwrap();
    assert_eq!((parsed.version, parsed.records.len()), (2, 2));
}

/// One of each verb, with the nonce and the pane that fit [`sample`].
fn verbs() -> Vec<(&'static str, Verb)> {
    let nonce = Nonce::from_bits(0xaaaa);
    let at = Location::pane(PaneId(1), ProcessId::new(41, "410"));
    let owner = ProcessId::new(5, "50");
    let upsert = Upsert { id: Some(RecordId::from_bits(0x1111_1111)), ..Upsert::new("/r", "w", at.clone()) };
    let restored = Upsert {
        restore_of: Some((RecordId::from_bits(0x1111_1111), nonce)),
        session_id: "sid".into(),
        ..Upsert::new("/r", "w", at.clone())
    };
    vec![
        (
            "upsert (new)",
            Verb::Upsert(Box::new(Upsert::new(
                "/other",
                "w",
                Location::pane(PaneId(9), ProcessId::new(9, "90")),
            ))),
        ),
        ("upsert --id", Verb::Upsert(Box::new(upsert))),
        ("upsert --restore-of", Verb::Upsert(Box::new(restored))),
        (
            "freeze-begin",
            Verb::FreezeBegin {
                owner: owner.clone(),
                capture: Capture::default(),
                phase: String::new(),
                memory: None,
            },
        ),
        ("freeze-commit", Verb::FreezeCommit { nonce, at: at.clone() }),
        ("freeze-abort", Verb::FreezeAbort { nonce }),
        ("restore-begin", Verb::RestoreBegin { owner: owner.clone(), mode: RestoreMode::Resume }),
        ("restore-launched", Verb::RestoreLaunched { nonce, at: at.clone(), server: None, runtime_id: None }),
        (
            "restore-confirm",
            Verb::RestoreConfirm { nonce, at: at.clone(), ack: Ack::Liveness, agent: None, session_id: None },
        ),
        ("restore-abort", Verb::RestoreAbort { nonce, error: String::new() }),
        ("standin-respawned", Verb::StandinRespawned { nonce, at: at.clone() }),
        ("lease-take", Verb::LeaseTake { owner }),
        ("lease-release", Verb::LeaseRelease { nonce }),
        (
            "lose (server gone)",
            Verb::Lose {
                cause: LossCause::ServerGone,
                evidence: String::new(),
                exit_status: None,
                signal: None,
                checkpoint: None,
            },
        ),
        (
            "end (agent gone)",
            Verb::End { reason: "exited".into(), evidence: String::new(), provisional: false },
        ),
        ("reboot (stopped, earlier boot)", Verb::Reboot { evidence: String::new() }),
        ("purge dead_pane", Verb::Retire { reason: RetireReason::DeadPane, evidence: String::new() }),
        (
            "purge capture_missing",
            Verb::Retire { reason: RetireReason::CaptureMissing, evidence: String::new() },
        ),
        ("revive", Verb::Revive { archived: Box::new(sample(StateName::Live)), lost: None, capture: None }),
        ("drop", Verb::Drop { nonce: None }),
        ("fill-task", Verb::FillTask { operation: String::new(), task_id: "1".into() }),
        (
            "follow",
            Verb::Follow(Box::new(Follow { window: Some("x".into()), ..Follow::new(PaneId(1), epoch()) })),
        ),
        ("enrich", Verb::Enrich { at, ours: Box::default(), lost: None, replace: false }),
        (
            "bind",
            Verb::Bind(Box::new(Bind {
                line: vec![ProcessId::new(41, "410")],
                agent: ProcessId::new(41, "410"),
                generation: None,
                session_id: "sid2".into(),
                transcript: String::new(),
                instead_of: None,
            })),
        ),
    ]
}

/// The same records, of a server of an earlier boot; the frozen ones as stopped with it.
/// A restore that was launched in %1 as process 41, and its token.
fn launched(mode: RestoreMode) -> (Record, Nonce) {
    let mut record = sample(StateName::Restoring);
    record.codeagent_session_id = "s1".into();
    record.capture = Capture { ansi: "a".into(), lines: 1, txt: "t".into() };
    if let State::Restoring { mode: stored, launch, .. } = &mut record.state {
        (*stored, *launch) = (mode, Some(41));
    }
    let nonce = record.lease.as_ref().unwrap().nonce;
    (record, nonce)
}

#[test]
fn a_restore_is_verified_by_the_id_the_provider_names_and_only_then_lets_the_capture_go() {
    let at = Location::pane(PaneId(1), ProcessId::new(41, "410"));
    let confirm = |mode, ack, id: Option<&str>| {
        let (record, nonce) = launched(mode);
        let verb = Verb::RestoreConfirm {
            nonce,
            at: at.clone(),
            ack,
            agent: Some(ProcessId::new(42, "420")),
            session_id: id.map(str::to_owned),
        };
        let place = Place { id: record.id, slot: 0, alone: true, ambiguous: false };
        World::new(&[]).with(|facts| apply(Some(record.clone()), &verb, facts, &place)).unwrap()
    };
    let change = confirm(RestoreMode::Resume, Ack::Registry, Some("s1"));
    let record = change.record.unwrap();
    assert_eq!((change.captures, record.restore.ack.as_str()), (Captures::Remove, "registry"));
    assert!(record.capture.is_empty() && record.state == State::Live && record.lease.is_none());
    assert_eq!(record.agent_process(), Some(ProcessId::new(42, "420")));

    let change = confirm(RestoreMode::Resume, Ack::Rollout, Some("s2"));
    let record = change.record.unwrap();
    assert_eq!((change.captures, change.outcome), (Captures::Keep, Outcome::SessionMismatch));
    assert!(record.state.name() == StateName::Restoring && !record.capture.is_empty());
    assert!(record.restore.last_error.ends_with(":session_mismatch"));
    assert_eq!(record.ait.came_instead.as_deref(), Some("s2"));

    let change = confirm(RestoreMode::Resume, Ack::Liveness, None);
    assert_eq!((change.captures, change.record.unwrap().capture.is_empty()), (Captures::Keep, false));

    let change = confirm(RestoreMode::Repick, Ack::Registry, Some("s9"));
    let record = change.record.unwrap();
    assert_eq!((change.captures, record.codeagent_session_id.as_str()), (Captures::Keep, "s9"));
    assert!(!record.capture.is_empty(), "a new conversation proves nothing of the old one");
}

fn as_stopped_before_this_boot(records: &Records) -> Records {
    let aged = records.iter().map(|record| {
        let mut record = record.clone();
        record.ait.server = Some(ServerEpoch { boot_id: "earlier".into(), ..epoch() });
        if let State::Frozen { lost } = &mut record.state {
            *lost = Some(Box::new(Lost {
                at: Stamp::from_unix(1),
                cause: LossCause::ServerStopped,
                exit_status: None,
                signal: None,
                evidence: String::new(),
                agent: None,
                lived: None,
                unknown: Unknown::default(),
            }));
        }
        std::sync::Arc::new(record)
    });
    Records::from_list(aged.collect(), Unknown::default())
}

#[test]
fn the_table_of_states_and_verbs() {
    let mut table = String::from(
        "| verb | none | live | freezing | frozen | restoring | aborting |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, verb) in verbs() {
        // What each verb needs for its evidence.
        let gone: &[i32] = match name {
            "lose (server gone)" => &[7, 41],
            "end (agent gone)" | "purge dead_pane" => &[41],
            _ => &[],
        };
        let world = World::new(gone);
        table += &format!("| {name} |");
        for state in [None].into_iter().chain(StateName::ALL.map(Some)) {
            let mut records = Records::from_list(
                state.map(|s| std::sync::Arc::new(sample(s))).into_iter().collect(),
                Unknown::default(),
            );
            if name.starts_with("reboot") {
                records = as_stopped_before_this_boot(&records);
            }
            let before = records.clone();
            let id = RecordId::from_bits(0x1111_1111);
            let cell = match world.with(|facts| records.step(Some(id), &verb, facts)) {
                Ok(done) => match records.get(done.id) {
                    Some(record) => record.state.name().to_string(),
                    None => "archived".to_owned(),
                },
                Err(refused) => {
                    assert_eq!(records, before, "a refused verb changes nothing");
                    format!("· {}", refused.exit_code())
                }
            };
            table += &format!(" {cell} |");
        }
        table.push('\n');
    }
    assert_eq!(
        table,
        include_str!("states.md"),
        "write this to src/record/states.md if it is meant:\n{table}"
    );
    insta::assert_snapshot!("states", table);
}

#[test]
fn one_that_is_lost_comes_back_only_as_an_agent_that_may_run() {
    let mut lost = sample(StateName::Live);
    let lose = Verb::Lose {
        cause: LossCause::AgentCrashed,
        evidence: "killed".into(),
        exit_status: None,
        signal: Some(9),
        checkpoint: None,
    };
    let place = Place { id: lost.id, slot: 0, alone: true, ambiguous: false };
    let gone = World::new(&[41]);
    lost = gone.with(|facts| apply(Some(lost), &lose, facts, &place)).unwrap().record.unwrap();
    let told = |pid| {
        let at = Location::pane(PaneId(1), ProcessId::new(pid, format!("{pid}0")));
        Verb::Upsert(Box::new(Upsert { id: Some(lost.id), ..Upsert::new("/r", "w", at) }))
    };
    let of_before = gone.with(|facts| apply(Some(lost.clone()), &told(41), facts, &place));
    assert!(of_before.is_err(), "who tells of it looked before it was lost: {of_before:?}");
    let again = gone.with(|facts| apply(Some(lost.clone()), &told(42), facts, &place)).unwrap();
    assert_eq!(again.outcome, Outcome::Rejoined);
}

#[test]
fn a_drop_that_is_given_up_leaves_no_trace() {
    let mut record = sample(StateName::Frozen);
    record.lease = sample(StateName::Freezing).lease;
    let nonce = record.lease.as_ref().unwrap().nonce;
    let place = Place { id: record.id, slot: 0, alone: true, ambiguous: false };
    for (before, after) in [(Desired::Stopped, Desired::Frozen), (Desired::Live, Desired::Live)] {
        record.ait.desired = Some(before);
        let release = Verb::LeaseRelease { nonce };
        let change =
            World::new(&[]).with(|facts| apply(Some(record.clone()), &release, facts, &place)).unwrap();
        let released = change.record.unwrap();
        assert_eq!((released.lease, released.ait.desired), (None, Some(after)));
    }
}

#[test]
fn an_agent_that_went_on_elsewhere_is_not_moved_back_by_one_who_looked_before() {
    let record = sample(StateName::Live);
    let place = Place { id: record.id, slot: 0, alone: true, ambiguous: false };
    let mut old = Upsert::new("/r", "w", Location::pane(PaneId(9), ProcessId::new(40, "400")));
    old.id = Some(record.id);
    let told = |gone: &[i32]| {
        World::new(gone)
            .with(|facts| apply(Some(record.clone()), &Verb::Upsert(Box::new(old.clone())), facts, &place))
    };
    assert_eq!(told(&[40]).unwrap_err(), Refused::Upsert { id: record.id, why: "process_gone" });
    assert!(told(&[]).is_ok(), "it may be there");
    assert!(told(&[40, 41]).is_ok(), "neither lives: the word counts");
}

#[test]
fn what_was_found_out_about_a_conversation_holds_only_while_that_is_the_one() {
    let record = sample(StateName::Live);
    let place = Place { id: record.id, slot: 0, alone: true, ambiguous: false };
    let found = |instead_of: &str| {
        let bind = Bind {
            line: vec![ProcessId::new(41, "410")],
            agent: ProcessId::new(41, "410"),
            generation: None,
            session_id: "sid2".into(),
            transcript: String::new(),
            instead_of: Some(instead_of.into()),
        };
        World::new(&[])
            .with(|facts| apply(Some(record.clone()), &Verb::Bind(Box::new(bind)), facts, &place))
            .map(|change| change.record.unwrap().codeagent_session_id)
    };
    assert_eq!(found("sid").unwrap(), "sid2");
    let refused = found("before").unwrap_err();
    assert!(matches!(refused, Refused::NoEvidence { why: "other_conversation", .. }), "{refused:?}");
}
