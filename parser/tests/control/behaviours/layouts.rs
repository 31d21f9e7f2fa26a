//! `%layout-change` and the layouts in it.

use tmux_control::{BadLayout, Layout, Notification, PaneId, WindowId};

use super::{malformed, parse};

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
