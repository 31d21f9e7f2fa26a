//! Real coding agents, from their registries, in private tmux servers, against the project's own mock model server.
//!
//! ```sh
//! AIT_REAL_AGENTS=1 cargo test --test real      # Claude Code and Codex; `all` or a list of names for the others too
//! ```
//!
//! Without `AIT_REAL_AGENTS` every story says that it did not run. With it, what cannot run has failed. The agents are
//! installed once into `AIT_REAL_CACHE` (default: `ait-real-agents` in the user's cache folder), each story runs in a network
//! namespace that has nothing but its own loopback, with a home of its own and dummy keys: nothing leaves the machine. That
//! needs root; `AIT_REAL_NETWORK=open` runs without it and says so.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "stories touch the world and fail loudly"
)]

#[path = "../stories/support/mod.rs"]
mod support;

mod agent;
mod crash;
mod cycle;
mod daemon;
mod install;
mod known;
mod mock;
mod others;
mod seed;
mod start;
mod states;
mod stored;
mod turns;
mod world;
