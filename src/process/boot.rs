//! Which boot this is, when it began and how old it is.

use std::time::Duration;

use super::ProcessError;

/// The identity of this boot. Linux: `/proc/sys/kernel/random/boot_id`; macOS: `kern.bootsessionuuid`.
pub fn boot_id() -> Result<String, ProcessError> {
    imp::boot_id()
}

/// When this boot began, in unix seconds. It moves when the clock is set; compare boots by [`boot_id`].
pub fn boot_time() -> Result<i64, ProcessError> {
    imp::boot_time()
}

/// How long this boot has lasted, on a clock that neither a suspend nor a clock step shortens (`CLOCK_BOOTTIME`).
pub fn boot_age() -> Duration {
    imp::boot_age()
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use crate::process::ProcessError;

    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    const STAT: &str = "/proc/stat";

    pub(super) fn boot_id() -> Result<String, ProcessError> {
        let text = std::fs::read_to_string(BOOT_ID)
            .map_err(|source| ProcessError::Read { what: BOOT_ID.to_owned(), source })?;
        Ok(text.trim().to_owned())
    }

    pub(super) fn boot_time() -> Result<i64, ProcessError> {
        let failed = |source| ProcessError::Read { what: STAT.to_owned(), source };
        let text = std::fs::read_to_string(STAT).map_err(failed)?;
        text.lines()
            .find_map(|line| line.strip_prefix("btime "))
            .and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| failed(io::Error::new(io::ErrorKind::InvalidData, "no btime line")))
    }

    pub(super) fn boot_age() -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    }
}

#[cfg(target_os = "macos")]
mod imp {
    use std::io;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use crate::process::ProcessError;

    fn sysctl(name: &str) -> Result<String, ProcessError> {
        let failed = |source| ProcessError::Read { what: name.to_owned(), source };
        let answer =
            std::process::Command::new("/usr/sbin/sysctl").args(["-n", name]).output().map_err(failed)?;
        Ok(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    }

    pub(super) fn boot_id() -> Result<String, ProcessError> {
        sysctl("kern.bootsessionuuid")
    }

    /// `kern.boottime` prints `{ sec = N, usec = N } date`.
    pub(super) fn boot_time() -> Result<i64, ProcessError> {
        let text = sysctl("kern.boottime")?;
        text.split("sec = ")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .and_then(|seconds| seconds.trim().parse().ok())
            .ok_or_else(|| ProcessError::Read {
                what: "kern.boottime".to_owned(),
                source: io::Error::new(io::ErrorKind::InvalidData, "no seconds in the answer"),
            })
    }

    /// `CLOCK_MONOTONIC` goes on while the machine sleeps on macOS.
    pub(super) fn boot_age() -> Duration {
        let now = clock_gettime(ClockId::Monotonic);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_boot_has_an_identity_a_beginning_and_an_age() {
        let id = boot_id().unwrap();
        assert_eq!(id, boot_id().unwrap());
        assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
        assert!(boot_time().unwrap() > 1_000_000_000);
        let before = boot_age();
        assert!(before > Duration::ZERO && boot_age() >= before);
    }
}
