//! The coordinators: what takes several steps on a pane and its record, each step safe to be cut short.
//!
//! | part | for |
//! |---|---|
//! | [`adopt`] | a record for an agent that already runs |
//! | [`apart`] | sessions that are kept apart by a folder of their own |
//! | [`below_shell`] | the agent in front of a shell that waits for its turn |
//! | [`exec`] | becoming an agent, as it was recorded |
//! | [`host`] | where coordinators run |
//! | [`identity`] | which conversation a running agent has |
//! | [`launch`] | where an agent is put: its own pane, or a new one |
//! | [`outlive`] | ending an agent that outlived its server |
//! | [`paste`] | writing into a pane, tested and done in one command |
//! | [`perform`] | what a coordinator decides, done |
//! | [`place`] | a fleet back where it stood: sessions, windows, splits, companions |
//! | [`prompt`] | a session's first prompt into its pane |
//! | [`recover`] | a fleet that was lost, back in its places and conversations |
//! | [`remove`] | a session and its agent gone for good |
//! | [`revive`] | a stopped session's record, ready for its restore |
//! | [`root`] | which project a folder belongs to |
//! | [`runner`] | one prompt to its end, in its pane |
//! | [`send`] | text and keys to a running agent, and what is known of them afterwards |
//! | [`server`] | a server in place of one that a crash took |
//! | `shared` | the server that several Codex share |
//! | [`start`] | a new agent, its record first |
//! | [`tap`] | what an agent tells its terminal of its turn, read behind a pipe of its pane |
//! | [`touched`] | what is set on a server, and the taking back of it |
//! | [`until`] | waiting for what an agent is at |

pub mod adopt;
pub mod apart;
pub(crate) mod behind;
pub mod below_shell;
pub mod exec;
pub mod host;
pub mod identity;
pub mod launch;
pub mod outlive;
pub mod paste;
pub mod perform;
pub mod place;
pub mod prompt;
pub mod recover;
pub mod remove;
pub mod revive;
pub mod root;
pub mod runner;
pub mod send;
pub mod server;
pub(crate) mod shared;
pub mod start;
pub mod tap;
pub mod task_file;
pub mod touched;
pub mod until;
