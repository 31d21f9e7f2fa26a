//! Bytes that are not text, and more of them than are kept.

use tmux_control::{Decoder, Fault, Limits, Replies};

use super::{block, guard, line};
use crate::transcript::{Seen, of, replay};

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
