//! Laws, on made-up input: any cut gives the same, memory is bounded, and reading and printing undo each other. The
//! fuzz targets in `parser/fuzz` hold the first and the last to account without end.

use proptest::collection::vec;
use proptest::prelude::*;
use tmux_control::{
    Cell, Chunk, Command, Content, Decoder, Event, Layout, Limits, Notification, PaneId, SessionId, WindowId,
    chunks, escape, unescape,
};

use crate::transcript::{Seen, ended, replay};

/// Pieces of protocol, well and badly put together.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"%begin 1 2 1\n".to_vec()),
        2 => Just(b"%end 1 2 1\n".to_vec()),
        1 => Just(b"%error 1 2 1\n".to_vec()),
        1 => Just(b"%end 1 3 1\n".to_vec()),
        1 => Just(b"%begin 1 2 1\r\n".to_vec()),
        1 => Just(b"%end 1 2 1\r\n".to_vec()),
        1 => Just(b"%end 1 2 1".to_vec()),
        1 => Just(b"%exit".to_vec()),
        1 => Just(b"%exit server exited unexpectedly\n".to_vec()),
        1 => Just(b"%output %1 a\\012b\n".to_vec()),
        1 => Just(b"%window-add @x\n".to_vec()),
        1 => Just(b"%sessions-changed\n".to_vec()),
        1 => Just(b"\x1bP1000p".to_vec()),
        1 => Just(b"\x1b\\".to_vec()),
        1 => vec(any::<u8>(), 0..60),
        1 => (0usize..120).prop_map(|length| vec![b'x'; length]),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop_oneof![0usize..80, Just(1 << 20)], prop_oneof![0usize..200, Just(1 << 20)])
        .prop_map(|(line, block)| Limits { line, block })
}

fn decoder(terminal: bool, limits: Limits) -> Decoder {
    if terminal { Decoder::terminal(limits) } else { Decoder::new(limits) }
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>().prop_filter("a line feed ends the line", |byte| *byte != b'\n'), 0..20)
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    name().prop_map(|name| name.into_iter().filter(|byte| *byte != b' ').collect())
}

fn cell() -> impl Strategy<Value = Cell> {
    let size = || (any::<u32>(), any::<u32>(), any::<i32>(), any::<i32>());
    let make = |(width, height, x, y), content| Cell { width, height, x, y, content };
    let leaf = (size(), proptest::option::of(any::<u32>()))
        .prop_map(move |(size, pane)| make(size, Content::Pane(pane.map(PaneId))));
    leaf.prop_recursive(5, 30, 5, move |inner| {
        (size(), vec(inner, 1..5), any::<bool>()).prop_map(move |(size, cells, columns)| {
            make(size, if columns { Content::Columns(cells) } else { Content::Rows(cells) })
        })
    })
}

/// What tmux's parser makes of one line's words, as far as the encoder may need it.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<Vec<u8>>, false);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            _ if quoted => word.get_or_insert_default().push(byte),
            b'\\' => word.get_or_insert_default().push(match bytes.next().expect("an escaped byte") {
                b'n' => b'\n',
                byte => byte,
            }),
            b' ' | b'\n' => words.extend(word.take()),
            b';' | b'#' | b'$' | b'~' | b'{' | b'}' | b'"' | b'\t' => panic!("{byte} outside quotes"),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    assert!(!quoted && word.is_none());
    words
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_gives_the_same_result(
        stream in stream(), cuts in vec(any::<prop::sample::Index>(), 0..8), limits in limits(), terminal: bool,
    ) {
        let whole = replay(decoder(terminal, limits), [&stream[..]]);
        let bytes = replay(decoder(terminal, limits), stream.chunks(1));
        prop_assert_eq!(&bytes, &whole);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        prop_assert_eq!(&replay(decoder(terminal, limits), pieces), &whole);
    }

    #[test]
    fn nothing_is_lost_within_the_limits(stream in stream()) {
        let (seen, end) = replay(Decoder::new(Limits::default()), [&stream[..]]);
        let mut back: Vec<u8> = seen.iter().flat_map(Seen::bytes).collect();
        if let Some(open) = end.open {
            back.extend_from_slice(format!("%begin {open}\n").as_bytes());
        }
        back.extend_from_slice(&end.rest);
        prop_assert_eq!(back, stream);
    }

    #[test]
    fn what_is_held_is_bounded(stream in stream(), limits in limits(), length in 1usize..40, terminal: bool) {
        // A closing guard may still come after a full body, and has at most 42 bytes.
        let bound = limits.line.max(limits.block) + 42;
        let mut decoder = decoder(terminal, limits);
        for piece in stream.chunks(length) {
            decoder.push(piece);
            while decoder.next_event().is_some() {}
            prop_assert!(decoder.held() <= bound, "{} of {bound}", decoder.held());
        }
        ended(&mut decoder);
    }

    #[test]
    fn a_line_that_is_read_prints_as_it_was(line in name(), known in 0usize..24) {
        const NAMES: [&str; 24] = [
            "output", "extended-output", "pause", "continue", "layout-change", "window-add", "window-close",
            "unlinked-window-add", "unlinked-window-close", "window-renamed", "unlinked-window-renamed",
            "window-pane-changed", "session-window-changed", "session-changed", "client-session-changed",
            "client-detached", "session-renamed", "sessions-changed", "pane-mode-changed", "paste-buffer-changed",
            "subscription-changed", "message", "exit", "later",
        ];
        for head in ["", " ", " %1", " %1 ", " @2 ", " $3 ", " %1 7 : ", " @2 %1", " $3 @2", " c $3 ", " n $3 - - - : "] {
            let line = [b"%", NAMES[known].as_bytes(), head.as_bytes(), &line].concat();
            if let Ok(notification) = Notification::parse(&line) {
                prop_assert_eq!(notification.to_line(), &line[..]);
            }
        }
        if let Ok(notification) = Notification::parse(&line) {
            prop_assert_eq!(notification.to_line(), line);
        }
    }

    #[test]
    fn a_notification_that_is_printed_reads_as_it_was(
        name in name(), layout in word(), (session, window, pane) in any::<(u32, u32, u32)>(), age in any::<u64>(),
        index in proptest::option::of(any::<u32>()),
    ) {
        let (session, window, pane) = (SessionId(session), WindowId(window), PaneId(pane));
        let (name, layout) = (&name[..], &layout[..]);
        let subscription: Vec<u8> = name.iter().copied().filter(|byte| *byte != b':').collect();
        for notification in [
            Notification::Output { pane, value: name },
            Notification::ExtendedOutput { pane, age, future: b"", value: name },
            Notification::ExtendedOutput { pane, age, future: b" more", value: name },
            Notification::Pause { pane },
            Notification::Continue { pane },
            Notification::LayoutChange { window, layout, visible: layout, flags: layout },
            Notification::WindowAdd { window },
            Notification::WindowClose { window },
            Notification::UnlinkedWindowAdd { window },
            Notification::UnlinkedWindowClose { window },
            Notification::WindowRenamed { window, name },
            Notification::UnlinkedWindowRenamed { window, name },
            Notification::WindowPaneChanged { window, pane },
            Notification::SessionWindowChanged { session, window },
            Notification::SessionChanged { session, name },
            Notification::ClientSessionChanged { client: b"client-7", session, name },
            Notification::ClientDetached { client: name },
            Notification::SessionRenamed { session, name },
            Notification::SessionsChanged,
            Notification::PaneModeChanged { pane },
            Notification::PasteBufferChanged { name },
            Notification::PasteBufferDeleted { name },
            Notification::SubscriptionChanged {
                name: &subscription, session, window: index.map(|_| window), index, pane: index.map(|_| pane), value: name,
            },
            Notification::Message { text: name },
            Notification::ConfigError { text: name },
            Notification::Exit { reason: None },
            Notification::Exit { reason: Some(name) },
            Notification::Unknown { name: b"later", rest: b" words" },
        ] {
            let line = notification.to_line();
            prop_assert_eq!(Notification::parse(&line), Ok(notification));
            // And through the decoder, after anything that a line feed ended.
            let mut decoder = Decoder::new(Limits::default());
            decoder.push(&line);
            decoder.push(b"\n");
            prop_assert_eq!(decoder.next_event(), Some(Event::Notification(notification)));
        }
    }

    #[test]
    fn escaping_is_undone_by_unescaping(bytes in vec(any::<u8>(), 0..100), before in vec(any::<u8>(), 0..4)) {
        let (mut escaped, mut back) = (Vec::new(), before.clone());
        escape(&bytes, &mut escaped);
        prop_assert!(escaped.iter().all(|byte| *byte >= 0x20));
        prop_assert_eq!(unescape(&escaped, &mut back), Ok(()));
        prop_assert_eq!(back, [before, bytes].concat());
    }

    #[test]
    fn chunks_and_unescaping_agree_on_anything(
        value in vec(prop_oneof![Just(b'\\'), b'0'..=b'9', any::<u8>()], 0..100),
    ) {
        let (mut whole, mut parts, mut bad) = (Vec::new(), Vec::new(), 0);
        for chunk in chunks(&value) {
            match chunk {
                Chunk::Text(text) => parts.extend_from_slice(text),
                Chunk::Byte(byte) => parts.push(byte),
                Chunk::Bad => {
                    bad += 1;
                    parts.push(b'\\');
                }
            }
        }
        let counted = unescape(&value, &mut whole).map_or_else(|bad| bad.count, |()| 0);
        prop_assert_eq!((whole, counted), (parts, bad));
    }

    #[test]
    fn a_layout_that_is_printed_reads_as_it_was(root in cell(), floating in vec(cell(), 0..3)) {
        let layout = Layout { root, floating };
        prop_assert_eq!(Layout::parse(layout.to_string().as_bytes()), Ok(layout));
    }

    #[test]
    fn a_layout_that_is_read_prints_as_it_was(
        root in cell(), floating in vec(cell(), 0..3), place in any::<prop::sample::Index>(), byte in "[0-9x,{}<>-]|",
    ) {
        // A layout with one byte replaced or taken out, under a checksum that fits.
        let mut cells = Layout { root, floating }.to_string().split_off(5);
        let place = place.index(cells.len());
        cells.replace_range(place..=place, &byte);
        let text = format!("{:04x},{cells}", Layout::checksum(cells.as_bytes()));
        if let Ok(layout) = text.parse::<Layout>() {
            prop_assert_eq!(layout.to_string(), text);
        }
    }

    #[test]
    fn the_words_of_a_command_come_back_from_its_line(given in vec(vec(1u8..=0xfe, 0..12), 0..6)) {
        let line = Command::new("display-message").args(&given).to_line();
        let line = line.map_err(|refused| TestCaseError::fail(refused.to_string()))?;
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(&words(&line)[1..], &given[..]);
    }
}
