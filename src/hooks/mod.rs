//! What providers tell through their hooks: the command their settings name, and those settings.
//!
//! | part | for |
//! |---|---|
//! | [`hear`] | one event: to the record, to the spool, or to the log; silent and bounded whatever happens |
//! | `payload` | the event's payload, read within a bound and a time |
//! | `line` | which agent ran the hook: the processes above it |
//! | `shared` | whose turn it is, when a server that several agents share runs the hook |
//! | `birth` | what only tmux can tell: a record for an agent without one, the pane of a restore |
//! | [`settings`] | our entries in the providers' settings |
//! | `log` | what was let go, one line each |

mod birth;
mod hear;
mod line;
mod log;
mod payload;
mod question;
pub mod settings;
mod shared;

pub use hear::hear;
