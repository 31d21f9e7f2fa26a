//! How often something is told, by all sessions together.

use std::time::Duration;

/// What may be told at once after a rest.
pub(super) const BURST: u32 = 6;
/// How long until one more may be told.
pub(super) const EACH: Duration = Duration::from_secs(10);

/// What may be told now: it fills up over time, to [`BURST`] at the most.
#[derive(Debug)]
pub(super) struct Bucket {
    left: u32,
    /// When it last held a whole number.
    at: Duration,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { left: BURST, at: Duration::ZERO }
    }
}

impl Bucket {
    /// How many may be told now.
    pub(super) fn left(&mut self, now: Duration) -> u32 {
        while self.left < BURST && now >= self.at + EACH {
            self.left += 1;
            self.at += EACH;
        }
        if self.left == BURST {
            self.at = now;
        }
        self.left
    }

    /// One is told.
    pub(super) fn take(&mut self, now: Duration) {
        self.left = self.left(now).saturating_sub(1);
    }

    /// When one may be told: at once, or then.
    pub(super) fn next(&self) -> Duration {
        if self.left > 0 { Duration::ZERO } else { self.at + EACH }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_at_a_time() {
        let mut bucket = Bucket::default();
        let mut now = Duration::from_secs(1_000_000);
        for left in (0..BURST).rev() {
            assert_eq!(bucket.next(), Duration::ZERO);
            bucket.take(now);
            assert_eq!(bucket.left(now), left);
        }
        for _ in 0..3 {
            let next = bucket.next();
            assert!(next > now && next <= now + EACH);
            assert_eq!(bucket.left(next - Duration::from_millis(1)), 0);
            now = next;
            assert_eq!(bucket.left(now), 1);
            bucket.take(now);
        }
        assert_eq!(bucket.left(now + EACH * 2), 2);
        assert_eq!(bucket.left(now + Duration::from_secs(86_400)), BURST);
    }
}
