//! What a record is, its five states, and the one function that changes them: [`apply`].
//!
//! Pure: time, liveness and random bits come in as [`Facts`]. It refuses to look anything up, and it never guesses: a
//! verb is legal or [`Refused`], and a refused verb changes nothing.
//!
//! The set of all records is [`Records`]; [`Records::step`] finds the record a verb means ([`resolve`] for an upsert),
//! applies it and keeps the set whole. [`read`](read::read) and [`Records::print`] are the file's text both ways.
//!
//! Which verb leads where (`· 5` is refused with that exit code; nonce right, lease free or own, evidence at hand):
//!
#![doc = include_str!("states.md")]

mod apply;
mod guard;
mod ident;
mod json;
mod ours;
pub mod read;
mod records;
pub mod report;
mod resolve;
mod session;
mod shape;
mod verb;

pub use apply::{UNNAMED, apply, legal};
pub use guard::{agent_liveness, is_epoch_over, is_lease_free, outlived};
pub use ident::{Liveness, Nonce, NotOne, PaneId, ProcessId, RecordId, Stamp, WindowId, launch_id};
pub use json::{Unknown, canonical};
pub use ours::{BootTime, Desired, Host, LossCause, Lost, Origin, Ours, Policy, Recovered, ServerEpoch};
pub use records::{Done, Records, Step, VERSION};
pub use resolve::{Meant, Place, resolve};
pub use session::{Mode, Session};
pub use shape::{Capture, Lease, Location, Record, RestoreMode, Restores, State, StateName};
pub use verb::{
    Ack, Bind, Captures, Change, Facts, Farewell, Follow, Outcome, Refused, RetireReason, Upsert, Verb,
    VerbName, kind_of,
};

#[cfg(test)]
mod laws;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
