//! tmux control mode (`tmux -C`): bytes in at any cut, notifications and reply blocks out.
//!
//! The crate decides and does nothing: no IO, no clock, no async, no unsafe. It never starts tmux, never reads a
//! pipe and never interprets what a notification means for a program.
//!
//! | layer | module | takes | gives |
//! |---|---|---|---|
//! | framing | [`Decoder`]'s framer | bytes, cut anywhere | lines, blocks, stray text, faults |
//! | meaning | [`Notification`] | one line | its fields, borrowed |
//! | values | [`unescape`], [`Layout`], [`Version`] | one field | what it stands for |
//! | asking | [`Command`], [`Replies`] | words; requests | one line; which block answers which request |
//!
//! Framing knows nothing of what notifications mean, so a line nobody understands never costs the position in the
//! stream, and an answer that looks like a notification stays an answer.
//!
//! ```
//! use tmux_control::{Decoder, Event, Limits, Notification, Replies, WindowId};
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut replies = Replies::new(16);
//! replies.push("list-windows").expect("sixteen may wait");
//!
//! let mut renamed = Vec::new();
//! let mut answers = Vec::new();
//! // What the pipe gives, in the pieces in which it gives it.
//! for piece in [&b"%window-ren"[..], b"amed @3 editor\n%begin 1700000000 7 1\nW\t@3\n%end 17", b"00000000 7 1\n"] {
//!     decoder.push(piece);
//!     while let Some(event) = decoder.next_event() {
//!         match event {
//!             Event::Notification(Notification::WindowRenamed { window, name }) => {
//!                 renamed.push((window, name.to_vec()));
//!             }
//!             Event::Notification(_) => {}
//!             Event::Block(block) => {
//!                 if let Some(request) = replies.take(&block) {
//!                     answers.push((request, block.ok, block.lines().count()));
//!                 }
//!             }
//!             Event::Stray(text) => eprintln!("text outside any block: {}", text.escape_ascii()),
//!             Event::Fault(fault) => eprintln!("{fault}"),
//!         }
//!     }
//! }
//! let end = decoder.finish();
//! assert_eq!((end.open, end.rest, end.exit), (None, &b""[..], None));
//! assert_eq!(renamed, [(WindowId(3), b"editor".to_vec())]);
//! assert_eq!(answers, [("list-windows", true, 1)]);
//! ```
//!
//! Facts about tmux were measured on 3.2a, 3.3a, 3.4, 3.5a, 3.6b, 3.7c and the unreleased 3.8 of August 2026;
//! streams of three of these lie in `fixtures/control-mode`.

mod block;
mod command;
mod decoder;
mod escape;
mod framer;
mod id;
mod layout;
mod notification;
mod reply;
mod version;

pub use block::{Block, Guard, Lines};
pub use command::{Command, Refused};
pub use decoder::{Decoder, End, Event, Fault, Limits};
pub use escape::{BadEscapes, Chunk, Chunks, chunks, escape, unescape};
pub use id::{BadId, PaneId, SessionId, WindowId};
pub use layout::{BadLayout, Cell, Content, Layout};
pub use notification::{BadLine, Notification};
pub use reply::{Full, Replies};
pub use version::{BadVersion, Version};
