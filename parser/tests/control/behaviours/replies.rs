//! Which block answers which request, on recorded streams.

use tmux_control::{Block, Event, Guard, Replies};

use super::{VERSIONS, guard};
use crate::transcript::{Seen, Stream, of};

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
        // A later one is a hook's.
        assert_eq!(replies.take(&Block { guard: guard(9, 0), ok: true, body: b"" }), None);
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
