//! A moment of the wall clock, to the millisecond: two events of one second are in order.

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z; printed as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// This many milliseconds after 1970 began, held within what can be printed.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        let at = |time: jiff::Timestamp| time.as_second() * 1000;
        Self(millis.clamp(at(jiff::Timestamp::MIN), at(jiff::Timestamp::MAX)))
    }

    /// Milliseconds since 1970 began.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970 began.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How long before `now` it was; nothing if it is later.
    #[must_use]
    pub fn age(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(now.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// That much later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl From<jiff::Timestamp> for Moment {
    fn from(time: jiff::Timestamp) -> Self {
        Self::from_millis(time.as_millisecond())
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // within the range by construction
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        write!(f, "{time:.3}")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_goes_both_ways() {
        for (millis, text) in
            [(0, "1970-01-01T00:00:00.000Z"), (1_800_000_000_042, "2027-01-15T08:00:00.042Z")]
        {
            let moment = Moment::from_millis(millis);
            assert_eq!(moment.to_string(), text);
            let json = serde_json::to_string(&moment).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        }
        for millis in [i64::MIN, i64::MAX] {
            let moment = Moment::from_millis(millis);
            let json = serde_json::to_string(&moment).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment, "{json}");
        }
        let (one, other) = (Moment::from_millis(-1), Moment::from_millis(1500));
        assert_eq!((one.age(other), other.age(one)), (Duration::from_millis(1501), Duration::ZERO));
        assert_eq!((one.unix(), other.unix()), (-1, 1));
    }
}
