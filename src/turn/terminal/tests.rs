//! The signs in bytes: as tables, and cut anywhere.

use proptest::prelude::*;

use super::*;
use crate::turn::status::{Doing, Want};

fn signs(bytes: &[u8]) -> Vec<Sign> {
    Scanner::default().signs(bytes)
}

fn status(doing: Doing) -> Sign {
    Sign::Status(Status { doing, id: String::new(), progress: None, app: None, title: None, message: None })
}

fn title(text: &str) -> Sign {
    Sign::Title(text.into())
}

#[test]
fn each_sequence_becomes_its_sign() {
    use Progress::{Busy, Failed, Paused, Removed, Running};
    let progress = Sign::Progress;
    let prompt = Sign::Prompt;
    for (bytes, sign) in [
        (&b"\x1b]0;a title\x07"[..], title("a title")),
        (b"\x1b]2;\xe2\x9c\xb3 x\x1b\\", title("✳ x")),
        (b"\x1b]0;\x07", title("")),
        (b"\x1b]2;a\nb\xff\x07", title("ab\u{fffd}")),
        (b"\x1b]9;4;0\x07", progress(Removed)),
        (b"\x1b]9;4;1;50\x07", progress(Running(Some(50)))),
        (b"\x1b]9;4;1;-1\x07", progress(Running(None))),
        (b"\x1b]9;4;1;101\x07", progress(Running(None))),
        (b"\x1b]9;4;2\x07", progress(Failed(None))),
        (b"\x1b]9;4;3;\x07", progress(Busy)),
        (b"\x1b]9;4;4;7\x07", progress(Paused(Some(7)))),
        (b"\x1b]133;A\x07", prompt(Mark::Prompt { redraws: true })),
        (b"\x1b]133;A;cl=m;redraw=0\x07", prompt(Mark::Prompt { redraws: false })),
        (b"\x1b]133;B\x1b\\", prompt(Mark::Input)),
        (b"\x1b]133;C;cmdline=x\x07", prompt(Mark::Output)),
        (b"\x1b]133;D\x07", prompt(Mark::Finished { status: None })),
        (b"\x1b]133;D;130;err=x\x07", prompt(Mark::Finished { status: Some(130) })),
        (b"\x1b]7501;?\x1b\\", Sign::Query),
        (b"\x1b]7501;state=working\x07", status(Doing::Working)),
        (b"\x1b]7501;kind=question:state=blocked\x07", status(Doing::Blocked(Some(Want::Question)))),
        (b"\x1bc", Sign::Reset),
        (b"\x1bPtmux;\x1b\x1b]9;4;3\x07\x1b\\", progress(Busy)),
        (b"\x1bPtmux;\x1b\x1b]9;4;3\x1b\x1b\\\x1b\\", progress(Busy)),
        (b"\x1bPtmux;\x1b\x1bPtmux;\x1b\x1b\x1b\x1b]9;4;3\x07\x1b\x1b\\\x1b\\", progress(Busy)),
    ] {
        assert_eq!(signs(bytes), [sign], "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_none_is_passed_over_and_the_next_one_counts() {
    for bytes in [
        &b"plain text"[..],
        b"\x1b[1;31mred\x1b[0m",
        b"\x1b]9;a notification\x07",
        b"\x1b]9;4\x07",
        b"\x1b]9;4;9\x07",
        b"\x1b]133;P;k=s\x07",
        b"\x1b]133\x07",
        b"\x1b]7501;state=sleeping\x07",
        b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07",
        b"\x1b]52;c;aGVsbG8=\x07",
        b"\x1b]\x07",
        // cut short: CAN, SUB, another sequence
        b"\x1b]0;no\x18",
        b"\x1b]0;no\x1a",
        b"\x1b]0;no\x1b[m",
        b"\x1bPtmux;\x1b\x1b]0;no\x1b\\",
        // strings of others, with what looks like one of ours in them
        b"\x1bkname\x1b\\",
        b"\x1bP+q\x1b\\",
        b"\x1b_Gi=1\x1b\\",
        b"\x1b^\x1b\\",
    ] {
        assert_eq!(signs(bytes), [], "{}", bytes.escape_ascii());
        let mut after = bytes.to_vec();
        after.extend_from_slice(b"\x1b]0;yes\x07");
        assert_eq!(signs(&after), [title("yes")], "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_sequence_without_end_is_dropped_within_bounds() {
    let mut scanner = Scanner::default();
    assert_eq!(scanner.signs(b"\x1b]0;"), []);
    for _ in 0..1000 {
        assert_eq!(scanner.signs(&[b'x'; 1000]), []);
        assert!(
            scanner.reading.gathered.capacity() <= 4 * LONGEST,
            "{}",
            scanner.reading.gathered.capacity()
        );
    }
    assert_eq!(scanner.signs(b"\x07\x1b]0;yes\x07"), [title("yes")]);
    let whole = [b"\x1b]7501;state=idle:msg=", "YWFh".repeat(600).as_bytes(), b"\x07"].concat();
    assert_eq!(signs(&whole).len(), 1);
    let long = [b"\x1b]7501;state=idle:x=", "YWFh".repeat(1200).as_bytes(), b"\x07"].concat();
    assert_eq!(signs(&long), []);
    // wrapped deeper than anybody wraps: the scanner neither grows nor loses its place
    let mut deep = b"\x1b]0;yes\x07".to_vec();
    for _ in 0..8 {
        let doubled = deep.iter().flat_map(|byte| std::iter::repeat_n(*byte, 1 + usize::from(*byte == ESC)));
        deep = [b"\x1bPtmux;".to_vec(), doubled.collect(), b"\x1b\\".to_vec()].concat();
    }
    deep.extend_from_slice(b"\x1b]0;after\x07");
    assert_eq!(signs(&deep), [title("after")]);
}

#[test]
fn a_wrapped_and_a_bare_copy_are_one() {
    let bare = b"\x1b]7501;state=working\x07";
    let wrapped = b"\x1bPtmux;\x1b\x1b]7501;state=working\x07\x1b\\";
    let both = [&bare[..], wrapped, bare, bare].concat();
    assert_eq!(signs(&both), vec![status(Doing::Working); 3]);
    let idle = b"\x1b]7501;state=idle\x07";
    assert_eq!(signs(&[&bare[..], idle, wrapped].concat()).len(), 3);
}

/// Pieces of which streams are made: whole sequences, torn ones and text.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static [u8]> = vec![
        b"\x1b]0;\xe2\xa0\x8b title\x07",
        b"\x1b]2;x\x1b\\",
        b"\x1b]9;4;3\x07",
        b"\x1b]133;D;1\x1b\\",
        b"\x1b]7501;state=blocked:kind=auth:id=a/b\x07",
        b"\x1b]7501;?\x07",
        b"\x1bPtmux;\x1b\x1b]7501;state=done\x1b\x1b\\\x1b\\",
        b"\x1bPtmux;\x1b\x1b]0;open",
        b"\x1bPq\x1b\\",
        b"\x1b]0;open",
        b"\x1bc",
        b"\x1b",
        b"\x1b\\",
        b"\x07",
        b"\x18",
        b"\x1a",
        b"\x1b[2J",
        b"\xe2\x9c",
        b"words",
    ];
    prop_oneof![
        8 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
        1 => (0..5000usize).prop_map(|n| vec![b'x'; n]),
    ]
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_signs(
        pieces in proptest::collection::vec(piece(), 0..24),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = pieces.concat();
        let expected = signs(&whole);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
        at.sort_unstable();
        let mut scanner = Scanner::default();
        let (mut found, mut from) = (Vec::new(), 0);
        for to in at.into_iter().chain([whole.len()]) {
            found.extend(scanner.signs(&whole[from..to]));
            from = to;
        }
        prop_assert_eq!(&found, &expected);
        let mut scanner = Scanner::default();
        let single: Vec<Sign> = whole.iter().flat_map(|byte| scanner.signs(&[*byte])).collect();
        prop_assert_eq!(single, expected);
    }
}
