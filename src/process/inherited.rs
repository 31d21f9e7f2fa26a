//! Descriptors that came with us from whoever started us.

/// Where a process finds its own descriptors, by number.
const DESCRIPTORS: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };

/// Closes every descriptor but the standard ones, so that nothing a long life holds, or hands to what it starts, was left open by
/// accident. Only for the very start of a process, before it has opened anything.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir(DESCRIPTORS) else { return };
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    // all of them before the first is closed: the folder itself is one of them
    let open: Vec<std::os::fd::RawFd> = entries.filter_map(name).filter(|fd| *fd > 2).collect();
    for fd in open {
        // the folder's own is closed by now
        let _ = nix::unistd::close(fd);
    }
}
