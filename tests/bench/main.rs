//! The benches: what the product costs, each figure beside a floor measured in the same run. Goals are printed, not
//! asserted.
//!
//! `cargo bench --bench bench` runs all; `-- store`, `-- hook`, `-- sessions`, `-- recovered` or `-- latency` one part. The parser's benches are in `parser/benches`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "benches touch the world and end where it fails them"
)]

mod figures;
mod hook;
mod latency;
mod recovered;
mod sessions;
mod signs;
mod store;
#[path = "../stories/support/mod.rs"]
mod support;
mod turn;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs = |part: &str| named.is_empty() || named.iter().any(|name| name.contains(part));
    if runs("latency") {
        figures::print(&latency::run());
    }
    if runs("sessions") {
        figures::print(&sessions::run());
    }
    if runs("hook") {
        hook::run();
    }
    if runs("recovered") {
        recovered::run();
    }
    let alone = ["latency", "hook", "recovered", "sessions"];
    if named.is_empty() || named.iter().any(|name| !alone.iter().any(|part| name.contains(part))) {
        let mut criterion = criterion::Criterion::default().configure_from_args();
        turn::benches(&mut criterion);
        signs::benches(&mut criterion);
        store::benches(&mut criterion);
        criterion.final_summary();
    }
}
