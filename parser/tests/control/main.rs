//! Tests of the whole crate from outside: recorded streams, behaviours, laws, and a real tmux.
#![expect(clippy::disallowed_methods, reason = "streams are files, and a real tmux is a process")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where something is not as it should be")]

mod behaviours;
mod laws;
mod mistakes;
mod real;
mod streams;
mod transcript;
