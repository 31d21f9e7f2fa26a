//! What reports come to, as tables.

use super::*;
use crate::record::StateName;
use crate::record::testing::{World, epoch, sample};

const NONCE: u32 = 0xaaaa;

fn id() -> RecordId {
    RecordId::from_bits(0x1111_1111)
}

fn process(pid: i32) -> ProcessId {
    ProcessId::new(pid, format!("{pid}0"))
}

/// The hook of the agent with process 41 (`line`: it and what is above it) names the conversation `session`.
fn report(session: &str, line: &[i32]) -> Report {
    let line: Vec<ProcessId> = line.iter().copied().map(process).collect();
    Report {
        provider: "claude".into(),
        event: "SessionStart".into(),
        at: Stamp::from_unix(1000),
        boot_id: "boot".into(),
        agent: line.last().cloned().unwrap(),
        line,
        session_id: session.into(),
        transcript: String::new(),
        names: Names::Now,
        known: None,
        restore: None,
        turn: None,
        newborn: None,
    }
}

fn of_restore(nonce: u32, pane: Option<i32>) -> Option<OfRestore> {
    let pane = pane.map(|pid| Seen { pane: PaneId(9), process: process(pid), server: epoch() });
    Some(OfRestore { record: id(), nonce: Nonce::from_bits(nonce), pane })
}

fn settled(record: Record, report: &Report, gone: &[i32]) -> String {
    let records = Records::from_list(vec![std::sync::Arc::new(record)], super::super::Unknown::default());
    match World::new(gone).with(|facts| report.settle(&records, facts)) {
        Settled::Step(step) => match *step {
            (Some(_), Verb::Bind(bind)) => format!("bind {}", bind.session_id),
            (Some(_), Verb::Upsert(upsert)) => {
                let agent = upsert.ours.agent.as_ref().map_or(0, |agent| agent.pid);
                let pid = upsert.at.process().map_or(0, |own| own.pid);
                format!("back {} in {pid}, agent {agent}", upsert.session_id)
            }
            (None, Verb::Upsert(upsert)) => format!("born {}", upsert.session_id),
            (to, verb) => format!("{to:?} {verb:?}"),
        },
        Settled::Known(_) => "known".into(),
        Settled::Unknown => "unknown".into(),
        Settled::Unproven(_) => "unproven".into(),
        Settled::Late(why) => format!("late: {why}"),
    }
}

#[test]
fn a_report_of_an_agent_with_and_without_a_record() {
    let live = || sample(StateName::Live);
    for (session, line, names, gone, expected) in [
        ("new", &[41][..], Names::Now, &[][..], "bind new"),
        ("new", &[60, 41], Names::Now, &[], "bind new"),
        ("sid", &[41], Names::Now, &[], "known"),
        ("new", &[41], Names::IfBlank, &[], "known"),
        ("new", &[41], Names::Nothing, &[], "known"),
        ("", &[41], Names::Now, &[], "known"),
        ("new", &[60], Names::Now, &[], "unknown"),
        ("new", &[60], Names::Now, &[60], "late: its agent is gone"),
    ] {
        let report = Report { names, ..report(session, line) };
        assert_eq!(settled(live(), &report, gone), expected, "{session} {line:?} {names:?}");
    }
    let mut blank = live();
    blank.codeagent_session_id = String::new();
    let if_blank = Report { names: Names::IfBlank, ..report("new", &[41]) };
    assert_eq!(settled(blank, &if_blank, &[]), "bind new");
    // another life of the machine has other processes under the same numbers
    let other_boot = Report { boot_id: "earlier".into(), ..report("new", &[41]) };
    assert_eq!(settled(live(), &other_boot, &[]), "late: its agent is gone");
    // it was told before the freeze, and written after it
    let known = Some(Known { record: id(), generation: None });
    let frozen = || sample(StateName::Frozen);
    assert_eq!(settled(frozen(), &Report { known, ..report("new", &[41]) }, &[41]), "bind new");
    let known = Some(Known { record: id(), generation: Some(7) });
    assert_eq!(
        settled(frozen(), &Report { known, ..report("new", &[41]) }, &[41]),
        "late: its agent is gone"
    );
}

#[test]
fn a_restore_is_acknowledged_by_what_it_launched_and_by_nobody_else() {
    let other = "late: it is not from the process that was launched";
    let attempt = "late: it belongs to another attempt of a restore";
    for (launched, session, line, nonce, pane, expected) in [
        // the process that was launched is on record
        (true, "sid", &[41][..], NONCE, None, "back sid in 41, agent 41"),
        (true, "sid", &[60, 41], NONCE, None, "back sid in 41, agent 41"),
        (true, "other", &[41], NONCE, None, "back other in 41, agent 41"),
        (true, "sid", &[60], NONCE, None, other),
        (true, "sid", &[60], NONCE, Some(60), other),
        (true, "sid", &[41], 0xbbbb, None, attempt),
        (true, "sid", &[60], 0xbbbb, None, attempt),
        // one that only has the environment, and a conversation of its own
        (true, "own", &[60], NONCE, None, "unknown"),
        (true, "own", &[60], 0xbbbb, None, "unknown"),
        (false, "own", &[60], 0xbbbb, None, "unknown"),
        (false, "own", &[60], NONCE, None, "unproven"),
        (true, "", &[41], NONCE, None, "late: it does not say which conversation came back"),
        // the hook was faster than that
        (false, "sid", &[41], NONCE, None, "unproven"),
        (false, "sid", &[61], NONCE, Some(61), "back sid in 61, agent 61"),
        (false, "sid", &[61], 0xbbbb, Some(61), attempt),
    ] {
        let mut record = sample(StateName::Restoring);
        if let State::Restoring { launch, .. } = &mut record.state
            && !launched
        {
            *launch = None;
        }
        let report = Report { restore: of_restore(nonce, pane), ..report(session, line) };
        assert_eq!(settled(record, &report, &[]), expected, "{launched} {session} {line:?} {pane:?}");
    }
    // a process that has the launched one's number is another one by its start
    let mut twin = report("sid", &[41]);
    twin.line = vec![ProcessId::new(41, "999")];
    twin.restore = of_restore(NONCE, None);
    assert_eq!(settled(sample(StateName::Restoring), &twin, &[]), other);
}

#[test]
fn after_its_restore_an_agent_is_as_any_other_and_a_left_over_one_is_nobody() {
    let restore = of_restore(NONCE, None);
    let back = Report { restore: restore.clone(), ..report("new", &[41]) };
    assert_eq!(settled(sample(StateName::Live), &back, &[]), "bind new");
    // the attempt was given up, its agent lives on: it must not get a second record of the same conversation
    let given_up = "late: its restore was given up";
    let mut left = Report { restore, ..report("sid", &[60]) };
    assert_eq!(settled(sample(StateName::Frozen), &left, &[]), given_up);
    left.newborn = Some(Box::new(sample(StateName::Live)));
    assert_eq!(settled(sample(StateName::Frozen), &left, &[]), given_up);
    // its record is another agent's by now, which runs that conversation: it gets no second record of it
    let over = "late: its restore is over, and another process has its conversation";
    assert_eq!(settled(sample(StateName::Live), &left, &[]), over);
    assert_eq!(settled(sample(StateName::Live), &left, &[41]), "born sid");
    // the environment alone makes it nobody's: with a conversation of its own it is one of its own
    let own = Report { session_id: "own".into(), ..left.clone() };
    for state in [StateName::Live, StateName::Frozen, StateName::Restoring] {
        assert_eq!(settled(sample(state), &own, &[]), "born own", "{state}");
    }
}
