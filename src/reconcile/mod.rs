//! Records against what was seen: what an operation that was cut short comes to ([`settle`]), what retires ([`purge`]).
//!
//! Both only answer; the verbs they name go through [`crate::record::apply`] and its guards like any other.

pub mod purge;
pub mod settle;
