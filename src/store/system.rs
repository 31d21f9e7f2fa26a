//! What the records' decide side must be told: the time, the boot, who lives, random bits. The one place that asks.

use crate::process;
use crate::record::{Facts, Liveness, ProcessId, Stamp};

/// Shortens the lease grace, in seconds, for tests; never frees a live owner's lease.
const GRACE_VARIABLE: &str = "AITASKS_STALE_OP_GRACE";
/// How long a lease is safe from being taken over.
const GRACE: u64 = 60;

/// This machine, as far as records are concerned.
#[derive(Debug, Clone)]
pub struct System {
    boot_id: String,
    grace: u64,
}

impl System {
    /// Asks once what does not change while this process lives.
    #[must_use]
    pub fn here() -> Self {
        let grace = std::env::var(GRACE_VARIABLE).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let grace = match grace {
            Some(seconds) if seconds > 0.0 => (seconds as u64).min(GRACE),
            Some(_) | None => GRACE,
        };
        Self { boot_id: process::boot_id().unwrap_or_default(), grace }
    }

    /// This boot; empty if it has no id.
    #[must_use]
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// The facts as they are now.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            now: Stamp::from_unix(jiff::Timestamp::now().as_second()),
            since_boot: process::boot_age().as_secs(),
            boot_id: &self.boot_id,
            grace: self.grace,
            alive: &liveness,
            started: &process::start_of,
            draw: &draw,
        }
    }
}

/// Whether a process lives; a bare pid does as long as any process has that number.
pub fn liveness(id: &ProcessId) -> Liveness {
    if !id.started.is_empty() {
        return process::liveness(id);
    }
    match process::identify(id.pid) {
        Some(now) => process::liveness(&now),
        None => process::liveness(id),
    }
}

/// 32 random bits.
#[must_use]
pub fn draw() -> u32 {
    // Without the kernel's source an id is still unlikely to repeat, and the set is asked before it is used.
    getrandom::u32().unwrap_or_else(|_| {
        let age = process::boot_age();
        (age.subsec_nanos() ^ (age.as_secs() as u32).rotate_left(16)).wrapping_mul(0x9e37_79b9)
            ^ std::process::id()
    })
}
