//! What an agent is at, and who says so.
//!
//! | part | for |
//! |---|---|
//! | [`Event`], [`Observation`] | what is heard: events count once each, observations hold until the next |
//! | [`Turns`] | all that is known of one agent's turn; changed by `hear` and `observe`, nothing else |
//! | [`View`] | what it comes to now: state, source, age, confidence and the evidence |
//! | [`terminal`], [`status`] | the sequences by which a program tells its terminal what it does |
//!
//! No source is believed for longer than its time ([`expiry`]), none is idle by being silent, and what contradicts itself is
//! unknown. Refuses to: know a provider (what its events, titles and screens mean is told by `provider`), keep time, touch a
//! file.

mod event;
mod machine;
mod moment;
pub mod status;
pub mod terminal;
mod view;

pub use event::{Confidence, Event, Need, Observation, Source, State, What, is_local, local};
pub use machine::{ATTENTIONS, Attention, Claim, Current, Ending, Last, ToolUse, Turns};
pub use moment::Moment;
pub use view::{Evidence, LAG, Verdict, View, expiry};
