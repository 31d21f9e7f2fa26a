//! Nothing: the package holds benches only.
