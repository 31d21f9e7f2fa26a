//! How streams end, and what a terminal puts around them.

use tmux_control::{Decoder, End, Event, Guard, Limits, Notification};

use super::{VERSIONS, block, guard, line, stray};
use crate::transcript::{Seen, Stream, of, replay};

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
fn a_glued_exit_is_looked_for_near_the_end_only_however_the_stream_was_cut() {
    let reason = |length| format!("%output %1 a%exit {}\n", "r".repeat(length));
    for (length, found) in [(100, true), (200, false)] {
        let stream = reason(length);
        for piece in [1, 7, 127, stream.len()] {
            let (_, end) = replay(Decoder::new(Limits::default()), stream.as_bytes().chunks(piece));
            assert_eq!(end.exit.is_some(), found, "{length} in pieces of {piece}");
        }
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
    decoder.push(b"%begin 1700000000 7 1\nhalf%exit");
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.finish().exit, Some(&b""[..]));
    decoder.push(b" too far behind");
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.finish(), End { open: None, rest: b" too far behind", dropped: 0, exit: None });
    decoder.push(b"%sessions-changed\n");
    assert_eq!(decoder.next_event(), Some(Event::Notification(Notification::SessionsChanged)));
    assert_eq!(decoder.finish().rest, b"");
}

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
