//! Mistakes that other control-mode parsers make, one test each, so that this one does not.

use tmux_control::{Block, Decoder, Event, Guard, Layout, Limits, Notification, Replies, SessionId};

fn first<'a>(decoder: &'a mut Decoder, stream: &[u8]) -> Event<'a> {
    decoder.push(stream);
    decoder.next_event().expect("a whole event")
}

fn decoder() -> Decoder {
    Decoder::new(Limits::default())
}

/// wezterm's rule for client names wants a path.
#[test]
fn a_client_without_a_terminal_has_a_name_too() {
    let line = b"%client-session-changed client-123 $2 main";
    let expected =
        Notification::ClientSessionChanged { client: b"client-123", session: SessionId(2), name: b"main" };
    assert_eq!(Notification::parse(line), Ok(expected));
}

/// wezterm's character set for layouts has neither `<>` nor `-`.
#[test]
fn a_layout_may_hold_angle_brackets_and_minus_signs() {
    let cells = b"80x24,0,0[80x24,0,0,1,9x5,-2,-1,2]<9x5,-2,-1,2>";
    let text = [format!("{:04x},", Layout::checksum(cells)).as_bytes(), cells].concat();
    let line = [b"%layout-change @4 ", &text[..], b" ", &text, b" *"].concat();
    let Ok(Notification::LayoutChange { layout, .. }) = Notification::parse(&line) else {
        panic!("a layout")
    };
    assert_eq!(Layout::parse(layout).map(|layout| layout.panes().len()), Ok(2));
}

/// tmuxy reads `&str`.
#[test]
fn a_line_need_not_be_utf8() {
    let mut decoder = decoder();
    let event = first(&mut decoder, b"%output %1 \xff\xc3\n");
    assert!(matches!(event, Event::Notification(Notification::Output { value: b"\xff\xc3", .. })));
}

/// tmuxy closes a block on any line that begins with `%end`.
#[test]
fn a_line_that_begins_like_a_guard_does_not_close_a_block() {
    let mut decoder = decoder();
    let event = first(&mut decoder, b"%begin 5 6 1\n%end of the story\n%ending\n%end 5 6 1\n");
    assert!(matches!(event, Event::Block(Block { ok: true, body: b"%end of the story\n%ending\n", .. })));
}

/// tmux-interface-rs unwraps fields that need not be there.
#[test]
fn exit_without_a_reason_is_no_panic() {
    assert_eq!(Notification::parse(b"%exit"), Ok(Notification::Exit { reason: None }));
    for line in streams_of_names() {
        let _ = Notification::parse(line.as_bytes());
    }
}

/// Every known name, bare and with one blank: nothing to unwrap.
fn streams_of_names() -> Vec<String> {
    let names = "output extended-output pause continue layout-change window-add window-close unlinked-window-add \
        unlinked-window-close window-renamed unlinked-window-renamed window-pane-changed session-window-changed \
        session-changed client-session-changed client-detached session-renamed sessions-changed pane-mode-changed \
        paste-buffer-changed paste-buffer-deleted subscription-changed message config-error exit";
    names
        .split_whitespace()
        .flat_map(|name| [format!("%{name}"), format!("%{name} "), format!("%{name}  ")])
        .collect()
}

/// tmux-interface-rs splits names at spaces.
#[test]
fn a_name_with_spaces_is_one_name() {
    let line = b"%session-renamed $1 two words ";
    let expected = Notification::SessionRenamed { session: SessionId(1), name: b"two words " };
    assert_eq!(Notification::parse(line), Ok(expected));
}

/// tmux-control-mode-js cuts the names of clients and buffers at the first space.
#[test]
fn names_of_clients_and_buffers_keep_their_spaces() {
    let changed = Notification::PasteBufferChanged { name: b"odd name %1" };
    assert_eq!(Notification::parse(b"%paste-buffer-changed odd name %1"), Ok(changed));
    let detached = Notification::ClientDetached { client: b"a client" };
    assert_eq!(Notification::parse(b"%client-detached a client"), Ok(detached));
    let line = b"%client-session-changed a $x client $2 my $3 name";
    let expected = Notification::ClientSessionChanged {
        client: b"a $x client",
        session: SessionId(2),
        name: b"my $3 name",
    };
    assert_eq!(Notification::parse(line), Ok(expected));
}

/// libtmux-rs answers a request with whatever block comes next.
#[test]
fn a_block_of_a_hook_answers_no_request() {
    let mut replies = Replies::new(1);
    replies.push("mine").expect("one may wait");
    let block = |flags| Block { guard: Guard { time: 1, number: 2, flags }, ok: true, body: b"" };
    assert_eq!(replies.take(&block(0)), None);
    assert_eq!(replies.take(&block(1)), Some("mine"));
}

/// libtmux-rs takes all of a block for its answer, so that `%message` and `%pause` in it are lost.
#[test]
fn a_notification_that_tmux_wrote_into_a_block_can_be_found() {
    let mut decoder = decoder();
    let Event::Block(block) = first(&mut decoder, b"%begin 5 6 1\n%pause %3\n%end 5 6 1\n") else {
        panic!("a block")
    };
    let notices: Vec<_> = block.notices().collect();
    assert!(matches!(notices[..], [Notification::Pause { .. }]));
}

/// libtmux-rs takes the first word of a subscription for its name.
#[test]
fn a_subscription_may_have_a_name_of_several_words() {
    let line = b"%subscription-changed my name %x $0 - - - : v";
    assert!(matches!(
        Notification::parse(line),
        Ok(Notification::SubscriptionChanged { name: b"my name %x", value: b"v", .. })
    ));
}

/// Old iTerm2 gives up on text outside blocks.
#[test]
fn stray_text_ends_nothing() {
    let mut decoder = decoder();
    decoder.push(b"out of run-shell\n%sessions-changed\n");
    assert_eq!(decoder.next_event(), Some(Event::Stray(b"out of run-shell")));
    assert_eq!(decoder.next_event(), Some(Event::Notification(Notification::SessionsChanged)));
}
