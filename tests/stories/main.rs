//! stories
fn main() {}
