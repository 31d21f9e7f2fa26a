//! What panes write: `%output`, `%extended-output` and their escapes.

use tmux_control::{BadEscapes, Chunk, Event, Notification, PaneId, chunks, escape, unescape};

use super::{VERSIONS, malformed, parse};
use crate::transcript::{Stream, of};

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
    use Chunk::{Bad, Byte, Text};
    assert_eq!(parts, [Text(b"ab"), Byte(b'\n'), Bad, Text(b"9")]);
}

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
