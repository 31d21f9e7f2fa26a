//! What the stories stand on: a home, private tmux servers, the built `ait`, a supervisor, bounded waits.
//!
//! ```text
//! let home = Home::new();                        // HOME, store, TMUX_TMPDIR, XDG_* below one temporary folder
//! let tmux = Tmux::start(&home);                 // a private server on <TMUX_TMPDIR>/tmux-<uid>/default
//! let supervisor = Supervisor::start(&home, &[&tmux]);
//! tmux.ok(["rename-window", "-t", "@0", "x"]);
//! home.store_until("the rename", |store| …);     // woken by inotify, with a deadline
//! home.ait(["status", "--json"]).code(0).json();
//! ```

#![allow(dead_code, unused_imports, reason = "not every story uses every part")]

pub(crate) mod agents;
pub(crate) mod calls;
pub(crate) mod desktop;
pub(crate) mod fake;
pub(crate) mod home;
pub(crate) mod proc;
pub(crate) mod run;
pub(crate) mod store;
pub(crate) mod supervisor;
pub(crate) mod terminal;
pub(crate) mod tmux;
pub(crate) mod wait;
pub(crate) mod wrapper;

pub(crate) use agents::Agent;
pub(crate) use desktop::Desktop;
pub(crate) use fake::Fake;
pub(crate) use home::Home;
pub(crate) use run::Ran;
pub(crate) use supervisor::Supervisor;
pub(crate) use tmux::Tmux;
pub(crate) use wait::{DEADLINE, wait_for, wait_until};

/// The built binary under test.
pub(crate) const AIT: &str = env!("CARGO_BIN_EXE_ait");

/// Says that a story could not run here, and why; the story then returns.
pub(crate) fn not_run(why: &str) {
    eprintln!("not run: {why}");
    println!("not run: {why}");
}
