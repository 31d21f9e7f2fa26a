//! `ait` keeps every coding agent on a machine alive across everything that happens to tmux.
//!
//! The map, in the order of the dependencies: show → do → decide, never back (a test reads the `use` lines).
//!
//! **decide** is pure: no IO, no clock, no randomness, no async. Time and facts come in as arguments.
//!
//! **do** has the effects. **show** has the faces.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests touch the world"))]

// decide
pub mod api;
pub mod coordinator;
pub mod provider;
pub mod reconcile;
pub mod record;
pub mod supervisor;
pub mod task;
pub mod turn;
pub mod world;

// do
pub mod client;
#[expect(clippy::disallowed_methods, reason = "reads the user's settings and where they lie")]
pub mod config;
#[expect(clippy::disallowed_methods, reason = "the one loop: clock, tasks, folders and signals")]
pub mod driver;
#[expect(
    clippy::disallowed_methods,
    reason = "reads the providers' stores and the environment it is told to"
)]
pub mod history;
#[expect(
    clippy::disallowed_methods,
    reason = "reads what providers tell and the user's settings, and the clock"
)]
pub mod hooks;
#[expect(clippy::disallowed_methods, reason = "acts on panes, processes and the store")]
pub mod lifecycle;
#[expect(clippy::disallowed_methods, reason = "asks the kernel about processes and boots")]
pub mod process;
#[expect(
    clippy::disallowed_methods,
    reason = "reads and writes the user's settings and asks the service manager"
)]
pub mod service;
#[expect(clippy::disallowed_methods, reason = "runs tmux and keeps time with it")]
pub mod tmux;

#[expect(
    clippy::disallowed_methods,
    reason = "reads and replaces the record file and asks for the time, the boot and random bits"
)]
pub mod store;
pub mod watch;

// show
#[expect(clippy::disallowed_methods, reason = "a face reads arguments, the environment and the terminal")]
pub mod cli;
#[expect(clippy::disallowed_methods, reason = "a face reads the environment, captures and the terminal")]
pub mod tui;
