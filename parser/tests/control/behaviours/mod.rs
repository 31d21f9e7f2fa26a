//! What control mode does and the parser must bear, one test for each. Recorded streams are in
//! `fixtures/control-mode`; `streams.rs` cuts them everywhere, `real.rs` asks a real tmux.

mod blocks;
mod commands;
mod ends;
mod layouts;
mod limits;
mod names;
mod output;
mod replies;

use tmux_control::{Guard, Notification};

use crate::transcript::Seen;

const VERSIONS: [&str; 3] = ["3.3a", "3.7c", "HEAD"];

fn guard(number: u32, flags: u8) -> Guard {
    Guard { time: 1_700_000_000, number, flags }
}

fn block(number: u32, flags: u8, ok: bool, body: &[u8]) -> Seen {
    Seen::Block { guard: guard(number, flags), ok, body: body.to_vec() }
}

fn line(text: &str) -> Seen {
    Seen::Notification(text.as_bytes().to_vec())
}

fn stray(text: &str) -> Seen {
    Seen::Stray(text.as_bytes().to_vec())
}

fn parse(line: &str) -> Notification<'_> {
    let notification = Notification::parse(line.as_bytes()).unwrap();
    assert_eq!(notification.to_line(), line.as_bytes());
    notification
}

fn malformed(line: &str) -> &'static str {
    Notification::parse(line.as_bytes()).unwrap_err().name
}
