//! Every recorded stream, replayed whole, byte by byte and cut at every place.

use std::fmt::Write as _;
use std::thread;

use crate::transcript::{Seen, ended, replay, streams};
use tmux_control::{Event, Fault, Layout, Notification};

#[test]
fn every_stream_is_given_back_byte_for_byte_by_its_events() {
    for stream in streams() {
        let (seen, end) = replay(stream.decoder(), [&stream.bytes[..]]);
        assert_eq!((end.open, end.dropped), (None, 0), "{}", stream.name);
        let mut back: Vec<u8> = seen.iter().flat_map(Seen::bytes).collect();
        back.extend_from_slice(&end.rest);
        let mut expected = stream.bytes.clone();
        if stream.terminal() {
            let text = String::from_utf8(expected).unwrap().replace("\r\n", "\n");
            let text = text.strip_prefix("\x1bP1000p").unwrap();
            expected = text.strip_suffix("\x1b\\").unwrap().as_bytes().to_vec();
        }
        assert!(back == expected, "{}", stream.name);
    }
}

#[test]
fn every_notification_prints_its_line() {
    let mut printed = 0;
    for stream in streams() {
        let mut decoder = stream.decoder();
        decoder.push(&stream.bytes);
        let lines: Vec<&[u8]> = stream
            .bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .collect();
        while let Some(event) = decoder.next_event() {
            if let Event::Notification(notification) = event {
                let line = notification.to_line();
                assert!(lines.contains(&&line[..]), "{}: {}", stream.name, line.escape_ascii());
                assert_eq!(Notification::parse(&line).unwrap(), notification);
                assert!(!matches!(notification, Notification::Unknown { .. }), "{}", line.escape_ascii());
                printed += 1;
            }
        }
    }
    assert!(printed > 800, "only {printed} notifications in all streams");
}

#[test]
fn every_stream_fed_byte_by_byte_says_the_same() {
    for stream in streams() {
        let whole = replay(stream.decoder(), [&stream.bytes[..]]);
        let bytes = replay(stream.decoder(), stream.bytes.chunks(1));
        assert!(whole == bytes, "{}", stream.name);
    }
}

#[test]
fn every_stream_cut_at_every_place_says_the_same() {
    let streams = streams();
    // The long streams take nearly all the time.
    let (even, odd): (Vec<_>, Vec<_>) = streams.iter().enumerate().partition(|(place, _)| place % 2 == 0);
    thread::scope(|scope| {
        for half in [even, odd] {
            scope.spawn(move || {
                for (_, stream) in half {
                    let (whole, end) = replay(stream.decoder(), [&stream.bytes[..]]);
                    for place in 0..=stream.bytes.len() {
                        let mut decoder = stream.decoder();
                        let mut expected = whole.iter();
                        for piece in [&stream.bytes[..place], &stream.bytes[place..]] {
                            decoder.push(piece);
                            while let Some(event) = decoder.next_event() {
                                let expected = expected.next().map(Seen::event);
                                assert_eq!(expected, Some(event), "{} cut at {place}", stream.name);
                            }
                        }
                        assert_eq!(expected.next(), None, "{} cut at {place}", stream.name);
                        assert_eq!(ended(&mut decoder), end, "{} cut at {place}", stream.name);
                    }
                }
            });
        }
    });
}

#[test]
fn every_recorded_layout_is_read_with_its_checksum_and_printed_alike() {
    let mut read = 0;
    for stream in streams() {
        let (seen, _) = replay(stream.decoder(), [&stream.bytes[..]]);
        for seen in &seen {
            if let Event::Notification(Notification::LayoutChange { layout, visible, .. }) = seen.event() {
                for text in [layout, visible] {
                    let layout = Layout::parse(text).unwrap();
                    assert_eq!(layout.to_string().as_bytes(), text);
                    read += 1;
                }
            }
        }
    }
    assert!(read >= 150, "only {read} layouts in all streams");
}

#[test]
fn no_recorded_line_is_malformed() {
    for stream in streams() {
        let (seen, _) = replay(stream.decoder(), [&stream.bytes[..]]);
        let faults: Vec<&Fault> = seen
            .iter()
            .filter_map(|seen| if let Seen::Fault(fault) = seen { Some(fault) } else { None })
            .collect();
        assert!(faults.is_empty(), "{}: {faults:?}", stream.name);
    }
}

#[test]
fn every_stream_yields_what_it_yielded() {
    for stream in streams() {
        let (seen, end) = replay(stream.decoder(), [&stream.bytes[..]]);
        let mut text = String::new();
        for seen in &seen {
            writeln!(text, "{}", seen.summary()).unwrap();
        }
        let rest = Seen::Stray(end.rest).summary();
        let exit = end.exit.map(|reason| reason.escape_ascii().to_string());
        writeln!(text, "end          exit {exit:?}, rest {}", &rest["stray        ".len()..]).unwrap();
        insta::assert_snapshot!(stream.name, text);
    }
}
