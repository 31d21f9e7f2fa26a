//! tmux control mode (`tmux -C`): bytes in at any cut, notifications and reply blocks out.
