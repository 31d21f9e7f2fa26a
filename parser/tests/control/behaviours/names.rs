//! Names, values and words that run to where they end.

use tmux_control::{BadLine, Fault, Notification, PaneId, SessionId, WindowId};

use super::{VERSIONS, line, malformed, parse, stray};
use crate::transcript::{Seen, Stream, of};

#[test]
fn a_window_may_have_any_name() {
    let long = "n".repeat(3000);
    for name in
        ["", " ", "  two  ", "%end 1 2 1", "w😀é", "a\\nb", "@3 %1 $0", "\\033[31m", "\u{202e}rtl", &long]
    {
        for word in ["%window-renamed", "%unlinked-window-renamed"] {
            let text = format!("{word} @3 {name}");
            match parse(&text) {
                Notification::WindowRenamed { window, name: found }
                | Notification::UnlinkedWindowRenamed { window, name: found } => {
                    assert_eq!((window, found), (WindowId(3), name.as_bytes()));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(of(format!("{text}\n").as_bytes()).0, [line(&text)]);
        }
    }
    assert_eq!(malformed("%window-renamed @3"), "%window-renamed");
}

#[test]
fn session_and_client_names_run_to_where_they_end() {
    let session = SessionId(0);
    assert_eq!(
        parse("%session-renamed $0 s.e:s s%n"),
        Notification::SessionRenamed { session, name: b"s.e:s s%n" }
    );
    assert_eq!(
        parse("%client-session-changed client-1 $2 a b"),
        Notification::ClientSessionChanged { client: b"client-1", session: SessionId(2), name: b"a b" }
    );
    assert_eq!(
        parse("%client-session-changed /dev/pts/3 $2 $3 x"),
        Notification::ClientSessionChanged { client: b"/dev/pts/3", session: SessionId(2), name: b"$3 x" }
    );
    assert_eq!(parse("%client-detached /dev/pts/3"), Notification::ClientDetached { client: b"/dev/pts/3" });
    assert_eq!(parse("%session-changed $0 "), Notification::SessionChanged { session, name: b"" });
}

#[test]
fn a_subscription_may_have_any_name_and_any_value() {
    let session = SessionId(0);
    let about = |name, value| Notification::SubscriptionChanged {
        name,
        session,
        window: None,
        index: None,
        pane: None,
        value,
    };
    assert_eq!(parse("%subscription-changed my name %x $0 - - - : v"), about(b"my name %x", b"v"));
    assert_eq!(parse("%subscription-changed $1 @2 $0 - - - : a:b : c"), about(b"$1 @2", b"a:b : c"));
    assert_eq!(parse("%subscription-changed n $0 - - - : "), about(b"n", b""));
    assert_eq!(
        parse("%subscription-changed n $1 @2 30 %4 :  x "),
        Notification::SubscriptionChanged {
            name: b"n",
            session: SessionId(1),
            window: Some(WindowId(2)),
            index: Some(30),
            pane: Some(PaneId(4)),
            value: b" x ",
        }
    );
    for line in [
        "%subscription-changed n $0 - - : v",
        "%subscription-changed n $0 - - -: v",
        "%subscription-changed x",
    ] {
        assert_eq!(malformed(line), "%subscription-changed");
    }
}

#[test]
fn a_line_feed_in_a_value_leaves_a_stray_line() {
    for version in VERSIONS {
        let (seen, _) = of(&Stream::named(&format!("09-subscriptions.{version}")).bytes);
        let at = seen.iter().position(|seen| *seen == stray("lines %end 1 2 1")).unwrap();
        assert_eq!(seen[at - 1], line("%subscription-changed my name %x $0 - - - : two"));
    }
}

#[test]
fn unknown_notifications_and_plain_text_pass_through() {
    assert_eq!(parse("%foo bar baz"), Notification::Unknown { name: b"foo", rest: b" bar baz" });
    assert_eq!(parse("%new-thing2"), Notification::Unknown { name: b"new-thing2", rest: b"" });
    assert_eq!(parse("%foo "), Notification::Unknown { name: b"foo", rest: b" " });
    for text in ["hello", "", " %window-add @1", "% x", "%%", "%5", "100%", "%Foo", "%outpu%exit"] {
        assert_eq!(of(format!("{text}\n").as_bytes()).0, [stray(text)]);
    }
}

#[test]
fn a_known_notification_with_wrong_fields_is_a_fault_that_keeps_the_line() {
    let (seen, _) = of(b"%window-add 7\n%sessions-changed\n");
    let bad = BadLine { name: "%window-add", line: b"%window-add 7".to_vec() };
    assert_eq!(bad.to_string(), "malformed %window-add: %window-add 7");
    assert_eq!(seen, [Seen::Fault(Fault::BadLine(bad)), line("%sessions-changed")]);
}
