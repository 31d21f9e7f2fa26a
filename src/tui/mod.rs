//! Faces that stay on a terminal: what they know (model), what becomes of it at each event (update) and how it looks (view),
//! each apart from the others. Model and update are plain functions of what they are given; only a face's loop touches the
//! terminal, the store and tmux.
//!
//! | part | for |
//! |---|---|
//! | [`frozenagent`] | the stand-in of a frozen agent, and the list of all of them |
//! | [`lines`] | terminal output as lines that are styled when they are looked at |
//! | [`pager`] | moving, searching and choosing in such lines |
//! | [`screen`] | the terminal, taken and always given back |
//!
//! Refuses to: poll, keep a timer while idle, and let a byte of what is shown reach the terminal as a command.

pub mod frozenagent;
pub mod lines;
pub mod pager;
pub mod screen;

mod ink;
mod transcript;
