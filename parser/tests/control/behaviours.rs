//! What control mode does and the parser must bear, one test for each. Recorded streams are in
//! `fixtures/control-mode`; `streams.rs` cuts them everywhere, `real.rs` asks a real tmux.

use crate::transcript::{Seen, Stream, of, replay};
use tmux_control::{
    BadEscapes, BadLayout, BadLine, Block, Command, Decoder, Event, Fault, Guard, Layout, Limits,
    Notification, PaneId, Refused, Replies, SessionId, WindowId, chunks, escape, unescape,
};

const VERSIONS: [&str; 3] = ["3.3a", "3.7c", "HEAD"];

fn guard(number: u32, flags: u8) -> Guard {
    Guard { time: 1_700_000_000, number, flags }
}

fn block(number: u32, flags: u8, ok: bool, body: &[u8]) -> Seen {
    Seen::Block { guard: guard(number, flags), ok, body: body.to_vec() }
}

fn line(text: &str) -> Seen {
    Seen::Notification(text.as_bytes().to_vec())
}

fn stray(text: &str) -> Seen {
    Seen::Stray(text.as_bytes().to_vec())
}

fn parse(line: &str) -> Notification<'_> {
    let notification = Notification::parse(line.as_bytes()).unwrap();
    assert_eq!(notification.to_line(), line.as_bytes());
    notification
}

fn malformed(line: &str) -> &'static str {
    Notification::parse(line.as_bytes()).unwrap_err().name
}

// 1

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

// 2

#[test]
fn output_of_all_256_byte_values_comes_through() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("13-output-escapes.{version}")).bytes);
        let mut written = Vec::new();
        for seen in &seen {
            if let Event::Notification(Notification::Output { pane: PaneId(1), value }) = seen.event() {
                assert_eq!(unescape(value, &mut written), Ok(()));
            }
        }
        let all: Vec<u8> = (0..=255).collect();
        assert!(written.starts_with(&all), "{version}");
        assert!(written[256..].starts_with("\né漢😀".as_bytes()), "{version}");
        assert!(written.ends_with(b"\xc3\xa9\x1b]2;title\x07\x1b]0;t2\x1b\\033[?1049h"), "{version}");
    }
}

#[test]
fn escaping_and_unescaping_undo_each_other() {
    let all: Vec<u8> = (0..=255).collect();
    let (mut escaped, mut back) = (Vec::new(), Vec::new());
    escape(&all, &mut escaped);
    assert!(escaped.starts_with(b"\\000\\001"));
    assert_eq!(escaped.len(), 256 + 3 * 33);
    assert_eq!(unescape(&escaped, &mut back), Ok(()));
    assert_eq!(back, all);
}

#[test]
fn an_output_value_is_anything_to_the_end_of_the_line() {
    assert_eq!(parse("%output %1 "), Notification::Output { pane: PaneId(1), value: b"" });
    assert_eq!(parse("%output %1  a : b "), Notification::Output { pane: PaneId(1), value: b" a : b " });
    let mut out = Vec::new();
    unescape(b"\\134\\000\x7f\xc3", &mut out).unwrap();
    unescape(b"\xa9", &mut out).unwrap();
    assert_eq!(out, b"\\\0\x7f\xc3\xa9");
    assert_eq!(malformed("%output %1"), "%output");
    assert_eq!(malformed("%output 1 x"), "%output");
}

// 3

#[test]
fn a_backslash_that_escapes_nothing_is_kept_and_reported() {
    for (value, first, count) in [
        (&b"a\\b"[..], 1, 1),
        (b"\\", 0, 1),
        (b"x\\1", 1, 1),
        (b"\\12", 0, 1),
        (b"\\128", 0, 1),
        (b"\\400", 0, 1),
        (b"\\777\\\\", 0, 3),
        (b"\\101\\x", 4, 1),
    ] {
        let mut out = Vec::new();
        assert_eq!(unescape(value, &mut out), Err(BadEscapes { first, count }), "{}", value.escape_ascii());
        let kept: Vec<u8> = if value.starts_with(b"\\101") { b"A\\x".to_vec() } else { value.to_vec() };
        assert_eq!(out, kept);
    }
    let parts: Vec<_> = chunks(b"ab\\012\\9").collect();
    use tmux_control::Chunk::{Bad, Byte, Text};
    assert_eq!(parts, [Text(b"ab"), Byte(b'\n'), Bad, Text(b"9")]);
}

// 4

#[test]
fn extended_output_is_split_at_its_first_lone_colon() {
    let pane = PaneId(1);
    assert_eq!(
        parse("%extended-output %1 0 : a : b"),
        Notification::ExtendedOutput { pane, age: 0, future: b"", value: b"a : b" }
    );
    assert_eq!(
        parse("%extended-output %1 1500 : "),
        Notification::ExtendedOutput { pane, age: 1500, future: b"", value: b"" }
    );
    assert_eq!(
        parse("%extended-output %1 0 later x:y : v"),
        Notification::ExtendedOutput { pane, age: 0, future: b" later x:y", value: b"v" }
    );
    assert_eq!(malformed("%extended-output %1 0 :a"), "%extended-output");
    assert_eq!(malformed("%extended-output %1 0x : a"), "%extended-output");
}

// 5

#[test]
fn a_layout_change_may_lack_flags_or_layouts() {
    let window = WindowId(5);
    assert_eq!(
        parse("%layout-change @5 b25d,80x24,0,0,0 b25d,80x24,0,0,0 "),
        Notification::LayoutChange {
            window,
            layout: b"b25d,80x24,0,0,0",
            visible: b"b25d,80x24,0,0,0",
            flags: b""
        }
    );
    assert_eq!(
        parse("%layout-change @5   "),
        Notification::LayoutChange { window, layout: b"", visible: b"", flags: b"" }
    );
    for flags in ["*Z", "-", "*", "#!~*-MZO"] {
        let line = format!("%layout-change @5 a b {flags}");
        assert!(
            matches!(parse(&line), Notification::LayoutChange { flags: found, .. } if found == flags.as_bytes())
        );
    }
    assert_eq!(malformed("%layout-change @5 a b"), "%layout-change");
    assert_eq!(malformed("%layout-change @5 a b * c"), "%layout-change");
}

#[test]
fn a_layout_may_float_and_stick_out_to_the_left() {
    let floating = "20e4,100x30,0,0[100x30,0,0,6,50x7,4,2,7]<50x7,4,2,7>";
    let layout: Layout = floating.parse().unwrap();
    assert_eq!(layout.floating.len(), 1);
    assert_eq!(layout.panes(), [PaneId(6), PaneId(7)]);
    assert_eq!(layout.to_string(), floating);
    let cells = "80x24,0,0[80x24,0,0,1,10x5,-3,-2,2]<10x5,-3,-2,2>";
    let text = format!("{:04x},{cells}", Layout::checksum(cells.as_bytes()));
    let layout: Layout = text.parse().unwrap();
    assert_eq!((layout.floating[0].x, layout.floating[0].y), (-3, -2));
    assert_eq!(layout.to_string(), text);
}

#[test]
fn a_layout_that_is_none_says_where_it_stops() {
    assert_eq!(Layout::parse(b""), Err(BadLayout::Empty));
    assert_eq!(
        Layout::parse(b"b25e,80x24,0,0,0"),
        Err(BadLayout::Checksum { written: 0xb25e, counted: 0xb25d })
    );
    for (text, at) in [
        ("b25d", 0),
        ("B25D,80x24,0,0,0", 0),
        ("b25d,80x24,0,0,0 ", 16),
        ("b25d,80x24,0,0{", 15),
        ("b25d,80x24,0,0{1x1,0,0]", 22),
        ("b25d,80x24,0,-0", 5),
        ("b25d,80x24,0,0,0<>", 17),
    ] {
        assert_eq!(Layout::parse(text.as_bytes()), Err(BadLayout::Malformed { at }), "{text}");
    }
}

#[test]
fn a_layout_nested_without_end_is_refused_and_harmless() {
    let deep = format!("0000,{}", "1x1,0,0{".repeat(100_000));
    assert_eq!(Layout::parse(deep.as_bytes()), Err(BadLayout::TooDeep));
    let cells = format!("{}1x1,0,0,1{}", "1x1,0,0[".repeat(1000), "]".repeat(1000));
    let text = format!("{:04x},{cells}", Layout::checksum(cells.as_bytes()));
    assert_eq!(Layout::parse(text.as_bytes()).unwrap().to_string(), text);
}

// 6

#[test]
fn a_window_may_have_any_name() {
    let long = "n".repeat(3000);
    for name in
        ["", " ", "  two  ", "%end 1 2 1", "w😀é", "a\\nb", "@3 %1 $0", "\\033[31m", "\u{202e}rtl", &long]
    {
        for word in ["%window-renamed", "%unlinked-window-renamed"] {
            let text = format!("{word} @3 {name}");
            match parse(&text) {
                Notification::WindowRenamed { window, name: found }
                | Notification::UnlinkedWindowRenamed { window, name: found } => {
                    assert_eq!((window, found), (WindowId(3), name.as_bytes()));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(of(format!("{text}\n").as_bytes()).0, [line(&text)]);
        }
    }
    assert_eq!(malformed("%window-renamed @3"), "%window-renamed");
}

// 7

#[test]
fn session_and_client_names_run_to_where_they_end() {
    let session = SessionId(0);
    assert_eq!(
        parse("%session-renamed $0 s.e:s s%n"),
        Notification::SessionRenamed { session, name: b"s.e:s s%n" }
    );
    assert_eq!(
        parse("%client-session-changed client-1 $2 a b"),
        Notification::ClientSessionChanged { client: b"client-1", session: SessionId(2), name: b"a b" }
    );
    assert_eq!(
        parse("%client-session-changed /dev/pts/3 $2 $3 x"),
        Notification::ClientSessionChanged { client: b"/dev/pts/3", session: SessionId(2), name: b"$3 x" }
    );
    assert_eq!(parse("%client-detached /dev/pts/3"), Notification::ClientDetached { client: b"/dev/pts/3" });
    assert_eq!(parse("%session-changed $0 "), Notification::SessionChanged { session, name: b"" });
}

// 8

#[test]
fn a_subscription_may_have_any_name_and_any_value() {
    let session = SessionId(0);
    let about = |name, value| Notification::SubscriptionChanged {
        name,
        session,
        window: None,
        index: None,
        pane: None,
        value,
    };
    assert_eq!(parse("%subscription-changed my name %x $0 - - - : v"), about(b"my name %x", b"v"));
    assert_eq!(parse("%subscription-changed $1 @2 $0 - - - : a:b : c"), about(b"$1 @2", b"a:b : c"));
    assert_eq!(parse("%subscription-changed n $0 - - - : "), about(b"n", b""));
    assert_eq!(
        parse("%subscription-changed n $1 @2 30 %4 :  x "),
        Notification::SubscriptionChanged {
            name: b"n",
            session: SessionId(1),
            window: Some(WindowId(2)),
            index: Some(30),
            pane: Some(PaneId(4)),
            value: b" x ",
        }
    );
    for line in [
        "%subscription-changed n $0 - - : v",
        "%subscription-changed n $0 - - -: v",
        "%subscription-changed x",
    ] {
        assert_eq!(malformed(line), "%subscription-changed");
    }
}

#[test]
fn a_line_feed_in_a_value_leaves_a_stray_line() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("09-subscriptions.{version}")).bytes);
        let at = seen.iter().position(|seen| *seen == stray("lines %end 1 2 1")).unwrap();
        assert_eq!(seen[at - 1], line("%subscription-changed my name %x $0 - - - : two"));
    }
}

// 9

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

// 10

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

// 11

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

// 12

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

// 13

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

// 14

#[test]
fn the_end_is_known_with_exit_without_it_and_glued() {
    let exit = |stream: &[u8]| {
        let (seen, end) = of(stream);
        (seen, end.exit.map(|reason| String::from_utf8(reason).unwrap()), end.rest)
    };
    assert_eq!(exit(b"%exit\n"), (vec![line("%exit")], Some(String::new()), vec![]));
    assert_eq!(
        exit(b"%exit too far behind\n"),
        (vec![line("%exit too far behind")], Some("too far behind".into()), vec![])
    );
    assert_eq!(
        exit(b"%exit\n%client-detached client-7\n"),
        (vec![line("%exit"), line("%client-detached client-7")], None, vec![])
    );
    assert_eq!(exit(b"%sessions-changed\n"), (vec![line("%sessions-changed")], None, vec![]));
    assert_eq!(exit(b""), (vec![], None, vec![]));
    let glued = "%outpu%exit server exited unexpectedly";
    let reason = Some("server exited unexpectedly".to_owned());
    assert_eq!(exit(format!("{glued}\n").as_bytes()), (vec![stray(glued)], reason.clone(), vec![]));
    assert_eq!(exit(glued.as_bytes()), (vec![], reason.clone(), glued.as_bytes().to_vec()));
    let within = "%output %1 abc%exit server exited unexpectedly";
    assert_eq!(exit(format!("{within}\n").as_bytes()), (vec![line(within)], reason, vec![]));
    assert_eq!(exit(b"%window-add @"), (vec![], None, b"%window-add @".to_vec()));
    assert_eq!(exit(b"%output %1 see %exitcode\n").1, None);
}

#[test]
fn a_glued_exit_is_found_in_the_recorded_streams() {
    for (version, exit) in [
        ("3.3a", Some(&b"server exited unexpectedly"[..])),
        ("3.7c", Some(b"server exited unexpectedly")),
        ("HEAD", None),
    ] {
        let stream = Stream::named(&format!("17-sigkill-full-pipe.{version}"));
        let (_, end) = of(&stream.bytes);
        assert_eq!(end.exit.as_deref(), exit, "{version}");
        assert_eq!(end.rest.is_empty(), exit.is_some(), "{version}");
    }
}

#[test]
fn a_stream_that_ends_inside_a_block_says_which() {
    let (seen, end) = of(b"%begin 1700000000 7 1\nhalf\nan ans");
    assert_eq!(seen, []);
    assert_eq!((end.open, &end.rest[..]), (Some(guard(7, 1)), &b"half\nan ans"[..]));
    let (_, end) = of(b"%begin 1700000000 7 1\nhal%exit server exited unexpectedly\n");
    assert_eq!(end.exit.as_deref(), Some(&b"server exited unexpectedly"[..]));
}

#[test]
fn a_decoder_that_has_finished_takes_another_stream() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"%begin 1700000000 7 1\nhalf");
    assert_eq!(decoder.next_event(), None);
    decoder.finish();
    decoder.push(b"%sessions-changed\n");
    assert_eq!(decoder.next_event(), Some(Event::Notification(Notification::SessionsChanged)));
    assert_eq!(decoder.finish().rest, b"");
}

// 15

#[test]
fn unknown_notifications_and_plain_text_pass_through() {
    assert_eq!(parse("%foo bar baz"), Notification::Unknown { name: b"foo", rest: b" bar baz" });
    assert_eq!(parse("%new-thing2"), Notification::Unknown { name: b"new-thing2", rest: b"" });
    assert_eq!(parse("%foo "), Notification::Unknown { name: b"foo", rest: b" " });
    for text in ["hello", "", " %window-add @1", "% x", "%%", "%5", "100%", "%Foo", "%outpu%exit"] {
        assert_eq!(of(format!("{text}\n").as_bytes()).0, [stray(text)]);
    }
}

#[test]
fn a_known_notification_with_wrong_fields_is_a_fault_that_keeps_the_line() {
    let (seen, _) = of(b"%window-add 7\n%sessions-changed\n");
    let bad = BadLine { name: "%window-add", line: b"%window-add 7".to_vec() };
    assert_eq!(bad.to_string(), "malformed %window-add: %window-add 7");
    assert_eq!(seen, [Seen::Fault(Fault::BadLine(bad)), line("%sessions-changed")]);
}

// 16

#[test]
fn a_terminal_client_is_unwrapped() {
    for version in VERSIONS {
        let stream = Stream::named(&format!("16-cc-pty.{version}"));
        let (seen, end) = replay(stream.decoder(), [&stream.bytes[..]]);
        assert!(matches!(&seen[0], Seen::Block { guard: Guard { flags: 0, .. }, ok: true, .. }), "{version}");
        assert!(
            seen.iter().any(|seen| matches!(seen, Seen::Block { body, .. } if body == b"hi\n")),
            "{version}"
        );
        assert_eq!((seen.last(), &end.rest[..]), (Some(&line("%exit")), &b""[..]), "{version}");
        assert_eq!(end.exit.as_deref(), Some(&b""[..]), "{version}");
    }
}

#[test]
fn only_the_terminals_own_carriage_return_is_taken_away() {
    let stream = b"\x1bP1000p%begin 1700000000 7 1\r\na\rb\r\r\n\r\n%end 1700000000 7 1\r\n%exit\r\n\x1b\\";
    let expected = [block(7, 1, true, b"a\rb\r\n\n"), line("%exit")];
    for length in 1..=stream.len() {
        let (seen, end) = replay(Decoder::terminal(Limits::default()), stream.chunks(length));
        assert_eq!((&seen[..], &end.rest[..]), (&expected[..], &b""[..]), "pieces of {length}");
    }
}

#[test]
fn a_pipe_keeps_carriage_returns() {
    let (seen, _) = of(b"%window-renamed @1 a\r\n%begin 1700000000 7 1\nb\r\n%end 1700000000 7 1\n");
    assert_eq!(seen, [line("%window-renamed @1 a\r"), block(7, 1, true, b"b\r\n")]);
}

// 17

#[test]
fn text_that_is_not_utf8_is_kept_everywhere() {
    let stream = b"%window-renamed @1 \xff\xfe\n\x80stray\n%foo \xc3\n%begin 1700000000 7 1\n\xf0\x9f\n%end 1700000000 7 1\n";
    let (seen, _) = of(stream);
    assert_eq!(seen.iter().flat_map(Seen::bytes).collect::<Vec<u8>>(), stream);
    assert_eq!(seen[3], block(7, 1, true, b"\xf0\x9f\n"));
}

#[test]
fn a_line_over_the_limit_is_a_fault_and_framing_goes_on() {
    let limits = Limits { line: 64 << 10, block: 1 << 20 };
    let at_limit = format!("%message {}\n", "x".repeat((64 << 10) - 9));
    let over = format!("%message {}\n", "x".repeat((64 << 10) - 8));
    let stream = format!("{at_limit}{over}%sessions-changed\n");
    let fault = Fault::LineTooLong { length: (64 << 10) + 1, limit: 64 << 10 };
    assert_eq!(fault.to_string(), "line of 65537 bytes is over the limit of 65536");
    for length in [1000, 65_536, stream.len()] {
        let (seen, end) = replay(Decoder::new(limits), stream.as_bytes().chunks(length));
        let expected = [line(at_limit.trim_end()), Seen::Fault(fault.clone()), line("%sessions-changed")];
        assert!(seen == expected, "pieces of {length}");
        assert_eq!(end.dropped, 0);
    }
}

#[test]
fn a_block_over_the_limit_is_a_fault_that_still_answers() {
    let limits = Limits { line: 100, block: 1000 };
    let body = "0123456789abcde\n".repeat(70);
    let stream = format!("%begin 1700000000 7 1\n{body}%error 1700000000 7 1\n%sessions-changed\n");
    let fault = Fault::BlockTooLong { guard: guard(7, 1), ok: false, size: 1120, limit: 1000 };
    for length in [1, 7, 16, 500, stream.len()] {
        let (seen, _) = replay(Decoder::new(limits), stream.as_bytes().chunks(length));
        assert_eq!(seen, [Seen::Fault(fault.clone()), line("%sessions-changed")], "pieces of {length}");
    }
    let mut replies = Replies::new(4);
    replies.push("long").unwrap();
    replies.push("next").unwrap();
    assert_eq!(replies.take_lost(&fault), Some("long"));
    assert_eq!(replies.len(), 1);
}

#[test]
fn an_answer_of_five_megabytes_on_one_line_is_kept_when_allowed() {
    let body = [&vec![b'x'; 5_000_000][..], b"\n"].concat();
    let stream = [b"%begin 1700000000 7 1\n", &body[..], b"%end 1700000000 7 1\n"].concat();
    let (seen, _) = replay(Decoder::new(Limits::default()), stream.chunks(65_536));
    assert!(seen == [block(7, 1, true, &body)]);
    let small = Limits { block: 4 << 20, ..Limits::default() };
    let (seen, _) = replay(Decoder::new(small), stream.chunks(65_536));
    let fault = Fault::BlockTooLong { guard: guard(7, 1), ok: true, size: 5_000_001, limit: 4 << 20 };
    assert_eq!(seen, [Seen::Fault(fault)]);
}

#[test]
fn an_endless_line_is_counted_not_kept() {
    for open in ["", "%begin 1700000000 7 1\n"] {
        let mut decoder = Decoder::new(Limits { line: 1000, block: 1000 });
        decoder.push(open.as_bytes());
        for _ in 0..10_000 {
            decoder.push(&[b'x'; 997]);
            assert_eq!(decoder.next_event(), None);
            assert!(decoder.held() <= 2000, "{} bytes held", decoder.held());
        }
        let end = decoder.finish();
        assert_eq!(end.dropped + end.rest.len() as u64, 9_970_000);
    }
}

// 19

#[test]
fn blocks_of_hooks_do_not_shift_the_replies() {
    for version in VERSIONS {
        let stream = Stream::named(&format!("15-hooks.{version}"));
        let (seen, _) = of(&stream.bytes);
        let mut replies = Replies::new(64);
        let blocks: Vec<(Guard, bool, &[u8])> = seen
            .iter()
            .filter_map(|seen| {
                if let Seen::Block { guard, ok, body } = seen { Some((*guard, *ok, &body[..])) } else { None }
            })
            .collect();
        let asked = blocks.iter().filter(|(guard, ..)| guard.flags == 1).count();
        assert!(blocks.len() > asked + 1, "hooks wrote blocks of their own");
        assert_eq!(replies.attached(), None);
        for request in 0..asked {
            replies.push(request).unwrap();
        }
        let answered: Vec<usize> =
            blocks.iter().filter_map(|&(guard, ok, body)| replies.take(&Block { guard, ok, body })).collect();
        assert_eq!(answered, (0..asked).collect::<Vec<_>>(), "{version}");
        assert_eq!(replies.attached(), Some(true), "{version}");
    }
}

#[test]
fn the_first_block_that_nobody_asked_for_tells_how_attaching_went() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("19-attach-fails.{version}")).bytes);
        let mut replies = Replies::<()>::new(1);
        for seen in &seen {
            if let Event::Block(block) = seen.event() {
                assert_eq!(replies.take(&block), None);
            }
        }
        assert_eq!(replies.attached(), Some(false), "{version}");
    }
}

#[test]
fn a_marker_ends_a_request_of_many_blocks() {
    let mut replies = Replies::new(4);
    replies.push_until("guarded", b"M1").unwrap();
    replies.push("next").unwrap();
    let mut take =
        |number, ok, body: &'static [u8]| replies.take(&Block { guard: guard(number, 1), ok, body });
    assert_eq!(take(1, true, b""), None);
    assert_eq!(take(2, false, b"can't find pane: %7\n"), None);
    assert_eq!(take(3, true, b"M1\nmore\n"), None);
    assert_eq!(take(4, true, b"M1\n"), Some("guarded"));
    assert_eq!(take(5, true, b"M1\n"), Some("next"));
    assert_eq!(take(6, true, b""), None);
}

#[test]
fn only_so_many_requests_wait() {
    let mut replies = Replies::new(2);
    replies.push(1).unwrap();
    *replies.front_mut().unwrap() += 10;
    replies.push(2).unwrap();
    let full = replies.push(3).unwrap_err();
    assert_eq!((full.request, full.to_string()), (3, "2 requests wait already".into()));
    assert_eq!(replies.drain().collect::<Vec<_>>(), [11, 2]);
    assert!(replies.is_empty());
}

// 20

#[test]
fn what_a_line_cannot_carry_is_refused() {
    for name in
        ["", " ", "# comment", "#", "FOO=bar", "a=b", "%if", "list panes", "x;y", "{", "-t", "'a'", "é"]
    {
        let name = name.to_owned();
        assert_eq!(Command::new(name.clone()).to_line(), Err(Refused::Name { name }));
    }
    for byte in [b'\n', 0, 0xff] {
        let refused = Command::new("set-buffer").arg("-b").arg([b'a', byte]).to_line();
        assert_eq!(refused, Err(Refused::Byte { name: "set-buffer".into(), argument: 2, byte }));
    }
    let nothing: [Command; 0] = [];
    assert!(matches!(
        Command::new("if-shell").commands(nothing).to_line(),
        Err(Refused::Empty { argument: 1, .. })
    ));
}

#[test]
fn words_are_quoted_where_tmux_would_read_more_into_them() {
    for (word, quoted) in [
        ("plain-Word_1.2/3:4,5@6", "plain-Word_1.2/3:4,5@6"),
        ("%0", "%0"),
        ("%0:on", "'%0:on'"),
        ("%", "'%'"),
        ("%x", "'%x'"),
        ("$1", "'$1'"),
        (";", "';'"),
        ("a;", "'a;'"),
        ("#{pane_id}", "'#{pane_id}'"),
        ("~/x", "'~/x'"),
        ("{", "'{'"),
        ("}", "'}'"),
        ("", "''"),
        (" ", "' '"),
        ("a\tb", "'a\tb'"),
        ("\"q\"", "'\"q\"'"),
        ("it's", "'it'\\''s'"),
        ("'", "''\\'''"),
        ("\\", "'\\'"),
        ("a=b", "'a=b'"),
        ("é", "'é'"),
        ("cr\r", "'cr\r'"),
    ] {
        let line = Command::new("display-message").arg(word).to_line().unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), format!("display-message {quoted}\n"));
    }
}

#[test]
fn commands_within_a_command_are_one_word() {
    let inner =
        [Command::new("kill-pane").args(["-t", "%1"]), Command::new("display-message").args(["-p", "it's"])];
    let line = Command::new("if-shell").args(["-F", "-t", "%1", "#{x}"]).commands(inner).to_line().unwrap();
    let expected =
        r"if-shell -F -t %1 '#{x}' 'kill-pane -t %1 ; display-message -p '\''it'\''\'\'''\''s'\'''";
    assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
}

// 21 and 22

#[test]
fn a_line_that_does_not_parse_answers_its_own_request() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("10-error-replies.{version}")).bytes);
        // The first eight lines written; the sixth has two commands and does not parse, the seventh brings two blocks.
        let mut replies = Replies::new(16);
        for line in ["bogus", "list", "list-windows -Q", "kill-pane", "kill-pane ; never", "one ; bogus"] {
            replies.push(line).unwrap();
        }
        let mut answers = Vec::new();
        for seen in &seen {
            if let Event::Block(block) = seen.event()
                && let Some(request) = replies.take(&block)
            {
                answers.push((request, block.ok, block.body.starts_with(b"parse error: ")));
            }
        }
        let expected = [
            ("bogus", false, true),
            ("list", false, true),
            ("list-windows -Q", false, true),
            ("kill-pane", false, false),
            ("kill-pane ; never", false, false),
            ("one ; bogus", false, true),
        ];
        assert_eq!(answers, expected, "{version}");
    }
}

// 24

#[test]
fn commands_that_wait_for_a_key_are_refused() {
    for name in [
        "command-prompt",
        "confirm-before",
        "confirm",
        "display-menu",
        "menu",
        "display-popup",
        "popup",
        "display-panes",
        "displayp",
        "command-p",
        "confirm-b",
        "display-me",
        "display-pop",
    ] {
        let refused = Command::new(name).arg("-b").to_line();
        assert_eq!(refused, Err(Refused::Interactive { name: name.into() }));
        let within = Command::new("if-shell").args(["-F", "1"]).commands([Command::new(name)]).to_line();
        assert_eq!(within, Err(Refused::Interactive { name: name.into() }));
    }
    for name in ["display-message", "display", "list-panes", "copy-mode", "choose-tree", "confirmed", "menus"]
    {
        assert!(Command::new(name).to_line().is_ok(), "{name}");
    }
}
