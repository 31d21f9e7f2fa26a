//! Stories on a real tmux: one test binary, one module per topic.
//!
//! Every story has a home of its own (`support::Home`), private tmux servers below it and nothing else. The
//! suite never touches a server, a socket or a file it did not make, waits for states with deadlines, and
//! fails when a process outlives its story. `AIT_TEST_TMUX` names the tmux binary (default `tmux`).

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "stories touch the world and fail loudly"
)]

mod adopt;
mod checkpoints;
mod cli_help;
mod crashes;
mod deaths;
mod demo;
mod doctor;
mod drop;
mod exec;
mod fake;
mod freeze;
mod full_disk;
mod history;
mod hook;
mod hook_restores;
mod house;
mod idle;
mod interrupted;
mod kills;
mod losses;
mod lost_races;
mod names;
mod notify;
mod plans;
mod reboot;
mod recover;
mod refused_respawns;
mod restore;
mod secrets;
mod sessions;
mod settings;
mod setup;
mod shared_daemon;
mod stand_in;
mod status;
mod store;
mod suite;
mod support;
mod tap;
mod tmux;
mod together;
mod turns;
mod typed;
mod unknown;
mod untouched;
mod viewer;
