//! No event allocates, and an endless stream takes no more memory than the limits allow. In a test binary of its own,
//! for the allocator that counts.
#![expect(clippy::disallowed_methods, reason = "the streams are files")]

use std::path::Path;

use allocation_counter::measure;
use tmux_control::{Decoder, Event, Limits, Notification, unescape};

/// How many allocations of this thread the call makes.
fn allocations(call: impl FnOnce()) -> u64 {
    measure(call).count_total
}

fn recorded(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/control-mode");
    std::fs::read(folder.join(name)).expect("a recorded stream")
}

#[test]
fn events_of_a_warm_decoder_allocate_nothing() {
    for name in [
        "01-session-lifecycle",
        "07-flood-pause",
        "09-subscriptions",
        "12-layout-changes",
        "11-nested-quoting",
    ] {
        for version in ["3.3a", "3.7c", "HEAD"] {
            let stream = recorded(&format!("{name}.{version}.ctl"));
            let (mut decoder, mut written) = (Decoder::new(Limits::default()), Vec::new());
            let mut events = 0;
            let mut read = || {
                for piece in stream.chunks(4096) {
                    decoder.push(piece);
                    while let Some(event) = decoder.next_event() {
                        events += 1;
                        if let Event::Notification(
                            Notification::Output { value, .. } | Notification::ExtendedOutput { value, .. },
                        ) = event
                        {
                            written.clear();
                            unescape(value, &mut written).expect("tmux escapes well");
                        }
                    }
                }
            };
            // The first round makes the buffers as large as they need to be.
            read();
            assert_eq!(allocations(|| (0..10).for_each(|_| read())), 0, "{name}.{version}");
            assert!(events > 50, "{name}.{version}");
        }
    }
}

#[test]
fn printing_into_a_warm_buffer_allocates_nothing() {
    let notification =
        Notification::parse(b"%layout-change @5 b25d,80x24,0,0,0 b25d,80x24,0,0,0 *").expect("a line");
    let mut line = Vec::with_capacity(100);
    assert_eq!(allocations(|| notification.write_to(&mut line)), 0);
    assert!(!line.is_empty());
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn endless_lines_and_blocks_stay_within_the_limits() {
    const LIMIT: usize = 1 << 20;
    let large = vec![b'x'; 64 * 1024];
    for (open, length) in [(&b""[..], 64 * 1024), (b"%begin 1 2 1\n", 64 * 1024), (b"", 64)] {
        let used = measure(|| {
            let mut decoder = Decoder::new(Limits { line: LIMIT, block: LIMIT });
            decoder.push(open);
            for _ in 0..(64 << 20) / length {
                decoder.push(&large[..length]);
                while decoder.next_event().is_some() {}
            }
            assert_eq!(decoder.finish().dropped, 64 << 20);
        });
        // A buffer doubles as it grows, and the old one lives until the new one is filled.
        assert!(used.bytes_max < 4 * LIMIT as u64, "{} bytes for 64 MiB", used.bytes_max);
    }
}

#[test]
fn a_large_answer_leaves_no_large_buffer_behind() {
    let (mut decoder, body) = (Decoder::new(Limits::default()), vec![b'x'; 8 << 20]);
    let used = measure(|| {
        decoder.push(b"%begin 1 2 1\n");
        decoder.push(&body);
        decoder.push(b"\n%end 1 2 1\n");
        assert!(
            matches!(decoder.next_event(), Some(Event::Block(block)) if block.body.len() == (8 << 20) + 1)
        );
        assert_eq!(decoder.next_event(), None);
        decoder.push(b"%sessions-changed\n");
        assert!(decoder.next_event().is_some());
    });
    assert!(used.bytes_max > 8 << 20);
    assert!(used.bytes_current < 512 * 1024, "{} bytes kept", used.bytes_current);
}
