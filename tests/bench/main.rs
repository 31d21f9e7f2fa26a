//! The benches: what the product costs, each figure beside a floor measured in the same run. Goals are printed, not
//! asserted.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "benches touch the world and read the clock")]

mod store;
mod viewer;

fn main() {
    let mut criterion = criterion::Criterion::default().configure_from_args();
    store::benches(&mut criterion);
    viewer::benches(&mut criterion);
    criterion.final_summary();
}
