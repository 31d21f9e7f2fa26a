//! The coordinators: what takes several steps on a pane and its record, each step safe to be cut short.
//!
//! | part | for |
//! |---|---|
//! | [`adopt`] | a record for an agent that already runs |
//! | [`root`] | which project a folder belongs to |
//! | [`touched`] | what is set on a server, and the taking back of it |

pub mod adopt;
pub(crate) mod behind;
pub mod root;
pub mod touched;
