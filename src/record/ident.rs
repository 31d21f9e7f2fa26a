//! The small values a record is made of: ids, panes, processes and times. Each is parsed once, at the edge, and can
//! then be relied upon; none of them looks anything up.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// Why a text is not the value it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct NotOne {
    /// The text as given, cut to 80 characters.
    pub text: String,
    /// What was expected, with its article.
    pub expected: &'static str,
}

impl NotOne {
    fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.chars().take(80).collect(), expected }
    }
}

/// Reads a value from a JSON string by its [`FromStr`].
macro_rules! serde_by_text {
    ($name:ident, $expected:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(de::Error::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

macro_rules! eight_hex {
    ($(#[$meta:meta])* $name:ident, $expected:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// The value made of these random bits.
            #[must_use]
            pub fn from_bits(bits: u32) -> Self {
                Self(bits)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:08x}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = NotOne;

            fn from_str(text: &str) -> Result<Self, NotOne> {
                let canonical = text.len() == 8
                    && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                if !canonical {
                    return Err(NotOne::new(text, $expected));
                }
                u32::from_str_radix(text, 16).map(Self).map_err(|_| NotOne::new(text, $expected))
            }
        }

        serde_by_text!($name, $expected);
    };
}

eight_hex!(
    /// A record's primary key: 8 lowercase hex digits. Only this form ever reaches a path, a command or a tmux option.
    RecordId,
    "a record id of 8 lowercase hex digits"
);
eight_hex!(
    /// The token of one lease: 8 lowercase hex digits, fresh for every claim.
    Nonce,
    "a nonce of 8 lowercase hex digits"
);

/// The id of the launch that was claimed under this token: one per launch, in the form of a random UUID. Whoever launches and
/// whoever writes it down come to the same one.
#[must_use]
pub fn launch_id(record: RecordId, nonce: Nonce) -> String {
    let digest = Sha256::digest(format!("ait:launch:{record}:{nonce}"));
    let mut bits = digest[..16].iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    // version 4, and the variant that has versions
    bits = bits & !(0xf << 76) | 4 << 76;
    bits = bits & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A tmux pane id, `%N`. Never reused within one epoch of a server; says nothing across epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaneId(pub u32);

impl fmt::Display for PaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl FromStr for PaneId {
    type Err = NotOne;

    fn from_str(text: &str) -> Result<Self, NotOne> {
        numbered(text, '%').map(Self).ok_or_else(|| NotOne::new(text, "a pane id such as %3"))
    }
}

serde_by_text!(PaneId, "a pane id such as %3");

/// A tmux window id, `@N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowId(pub u32);

impl fmt::Display for WindowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl FromStr for WindowId {
    type Err = NotOne;

    fn from_str(text: &str) -> Result<Self, NotOne> {
        numbered(text, '@').map(Self).ok_or_else(|| NotOne::new(text, "a window id such as @3"))
    }
}

serde_by_text!(WindowId, "a window id such as @3");

/// The number after `sigil`, if the text is exactly that and the number is written without leading zeros.
fn numbered(text: &str, sigil: char) -> Option<u32> {
    let digits = text.strip_prefix(sigil)?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let padded = digits.len() > 1 && digits.starts_with('0');
    if plain && !padded { digits.parse().ok() } else { None }
}

/// A process: its pid and when it started. An empty `started` is a bare pid, as the earlier scripts wrote it, which
/// proves only its own absence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process id, positive.
    pub pid: i32,
    /// Start of the process, opaque, comparable only for equality and only within one boot. Linux: field 22 of
    /// `/proc/PID/stat` (ticks since boot); macOS: the start time `ps` prints.
    #[serde(default)]
    pub started: String,
}

impl ProcessId {
    /// A process known by pid and start.
    #[must_use]
    pub fn new(pid: i32, started: impl Into<String>) -> Self {
        Self { pid, started: started.into() }
    }

    /// A pid without a start.
    #[must_use]
    pub fn bare(pid: i32) -> Self {
        Self { pid, started: String::new() }
    }
}

/// The answer to "does this process still live". Unknown is not gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// It runs, sleeps or is stopped. Not being allowed to signal it changes nothing.
    Alive,
    /// No such pid, another start under that pid, or a zombie nobody has collected yet.
    Gone,
    /// The system does not let us see (a hidden `/proc`, an unreadable entry). Never read as gone.
    Unknown,
}

/// A moment in UTC seconds, written `YYYY-MM-DDTHH:MM:SSZ`; years 0001 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp(i64);

impl Stamp {
    /// The first and last second that can be written.
    const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

    /// The moment this many seconds after 1970-01-01T00:00:00Z, held within what can be written.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Self {
        Self(seconds.clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(86_400));
        let second = self.0.rem_euclid(86_400);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
    }
}

impl FromStr for Stamp {
    type Err = NotOne;

    fn from_str(text: &str) -> Result<Self, NotOne> {
        parse_stamp(text.as_bytes()).ok_or_else(|| NotOne::new(text, "a time such as 2026-09-04T09:12:03Z"))
    }
}

serde_by_text!(Stamp, "a time such as 2026-09-04T09:12:03Z");

fn parse_stamp(text: &[u8]) -> Option<Stamp> {
    if text.len() != 20 {
        return None;
    }
    for (at, mark) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')] {
        if text[at] != mark {
            return None;
        }
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = year >= 1 && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
    if !in_range || day < 1 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    // A day past the month's end lands on another date: the way back tells.
    (civil_from_days(days) == (year, month, day))
        .then(|| Stamp(days * 86_400 + hour * 3600 + minute * 60 + second))
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar (years start in March, so that the leap day is last).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date this many days after 1970-01-01; the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_eight_lowercase_hex_digits_and_nothing_else() {
        assert_eq!("0a1b2c3d".parse::<RecordId>().unwrap().to_string(), "0a1b2c3d");
        for wrong in ["", "0A1B2C3D", "0a1b2c3", "0a1b2c3d4", "+a1b2c3d", "0a1b/c3d", "..", "0a1b2c3\n"] {
            assert!(wrong.parse::<RecordId>().is_err(), "{wrong:?}");
            assert!(wrong.parse::<Nonce>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn pane_ids_are_a_sigil_and_a_plain_number() {
        assert_eq!("%104".parse::<PaneId>().unwrap(), PaneId(104));
        for wrong in ["", "%", "104", "%-1", "%01", "%+1", "@1", "%1 ", "%99999999999"] {
            assert!(wrong.parse::<PaneId>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn stamps_go_both_ways_and_agree_with_a_calendar() {
        for seconds in [0, 1, 951_782_400, 951_868_799, 1_788_000_000, 253_402_207_200, -62_135_596_800, -1] {
            let text = Stamp::from_unix(seconds).to_string();
            let other = jiff::Timestamp::from_second(seconds).unwrap();
            assert_eq!(text, other.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
            assert_eq!(text.parse::<Stamp>().unwrap().unix(), seconds);
        }
        let wrong = [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-1-1T00:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+00:00",
            "yesterday",
            " 2026-01-01T00:00:0Z",
            "0000-01-01T00:00:00Z",
        ];
        for text in wrong {
            assert!(text.parse::<Stamp>().is_err(), "{text}");
        }
    }
}
