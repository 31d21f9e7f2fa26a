//! Blocks, and what only looks like one.

use tmux_control::{Decoder, Event, Guard, Limits};

use super::{VERSIONS, block, line, stray};
use crate::transcript::{Seen, Stream, of, replay};

#[test]
fn any_cut_of_a_stream_gives_the_same_events() {
    let stream = b"%output %1 a\\012\n%begin 1700000000 5 1\nx\n%end 1700000000 4 1\n%end 1700000000 5 1\nstray\n%exit\n";
    let whole = of(stream);
    assert_eq!(whole.0.len(), 4);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(replay(Decoder::new(Limits::default()), pieces), whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn a_block_closes_on_its_exact_triple_only() {
    let bodies = [
        "%end 1 2 1",
        "%begin 1700000000 7 1",
        "%exit",
        "%output %0 x",
        "%end 1700000000 7 0",
        "%end 1700000000 8 1",
        "%end 1700000001 7 1",
        "%error 1700000000 6 1",
        "%end 1700000000 7 1 ",
        "%end  1700000000 7 1",
        "%end 01700000000 7 1",
        "%end 1700000000 7",
        " %end 1700000000 7 1",
        "%end 1700000000 7 1\r",
    ];
    let body: String = bodies.iter().map(|line| format!("{line}\n")).collect();
    for (word, ok) in [("end", true), ("error", false)] {
        let stream = format!("%begin 1700000000 7 1\n{body}%{word} 1700000000 7 1\n%sessions-changed\n");
        let (seen, _) = of(stream.as_bytes());
        assert_eq!(seen, [block(7, 1, ok, body.as_bytes()), line("%sessions-changed")]);
    }
}

#[test]
fn an_answer_that_looks_like_protocol_stays_an_answer() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("11-nested-quoting.{version}")).bytes);
        let has = seen.iter().any(|seen| match seen {
            Seen::Block { body, .. } => body.ends_with(b"%output %0 x\n"),
            _ => false,
        });
        assert!(has, "{version}");
        assert!(!seen.contains(&line("%output %0 x")), "{version}");
    }
}

#[test]
fn a_guard_without_its_partner_is_stray() {
    for text in [
        "%end 1 2 1",
        "%error 1 2 1",
        "%end",
        "%begin",
        "%begin x",
        "%begin 1 2",
        "%begin 1 2 1 4",
        "%begin 1 -2 1",
    ] {
        assert_eq!(of(format!("{text}\n").as_bytes()).0, [stray(text)]);
    }
    for version in ["3.7c", "HEAD"] {
        let (seen, _) = of(&Stream::named(&format!("11-nested-quoting.{version}")).bytes);
        assert!(seen.contains(&stray("%end 1 2 1")), "{version}");
    }
}

#[test]
fn a_notification_inside_a_block_is_body_and_can_be_asked_for() {
    let notices = "%message m\n%pause %1\n%continue %1\n%config-error f:1: bad\n";
    let body = format!("%window-add @1\n{notices}answer\n");
    let stream = format!("%begin 1700000000 7 1\n{body}%end 1700000000 7 1\n");
    let (seen, _) = of(stream.as_bytes());
    assert_eq!(seen, [block(7, 1, true, body.as_bytes())]);
    let Event::Block(block) = seen[0].event() else { panic!("a block") };
    let found: String =
        block.notices().map(|notice| format!("{}\n", notice.to_line().escape_ascii())).collect();
    assert_eq!(found, notices);
}

#[test]
fn guards_reach_to_the_ends_of_their_fields() {
    let stream = "%begin 4294967296000 4294967295 0\n%end 4294967296000 4294967295 0\n";
    let (seen, _) = of(stream.as_bytes());
    let guard = Guard { time: 4_294_967_296_000, number: u32::MAX, flags: 0 };
    assert_eq!(seen, [Seen::Block { guard, ok: true, body: Vec::new() }]);
    assert!(!guard.from_client());
    assert!(Guard { flags: 1, ..guard }.from_client());
    let over = "%begin 1 4294967296 0";
    assert_eq!(of(format!("{over}\n").as_bytes()).0, [stray(over)]);
}

#[test]
fn an_empty_body_and_empty_lines_are_told_apart() {
    for (body, lines) in [("", 0), ("\n", 1), (&"\n".repeat(24)[..], 24), ("a\n\n", 2)] {
        let stream = format!("%begin 1700000000 7 1\n{body}%end 1700000000 7 1\n");
        let (seen, _) = of(stream.as_bytes());
        assert_eq!(seen, [block(7, 1, true, body.as_bytes())]);
        let Event::Block(block) = seen[0].event() else { panic!("a block") };
        assert_eq!(block.lines().count(), lines);
    }
}
