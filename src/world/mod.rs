//! One tmux server as last heard of: its sessions, windows and panes.

pub mod mark;
pub mod rows;
