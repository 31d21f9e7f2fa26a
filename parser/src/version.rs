//! tmux's version text and which release came before which.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use nom::{
    IResult, Parser,
    branch::alt,
    bytes::complete::tag,
    character::complete::{anychar, char},
    combinator::{all_consuming, map, opt, value, verify},
    sequence::{preceded, separated_pair},
};

use crate::notification::grammar::decimal32;

/// What `#{version}` or `tmux -V` says.
///
/// Ordered as far as the text tells: `3.2a < 3.3 < 3.3a < next-3.8 < 3.8-rc < 3.8 < master`. OpenBSD numbers its tmux
/// like itself, so those compare only with each other; against a release every comparison is false, which reads as
/// "not known to be that new".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// `3.3a`: `letter` is 0 for none, 1 for `a`.
    Release {
        /// Before the point.
        major: u32,
        /// After the point.
        minor: u32,
        /// 0 for none, 1 for `a`, 2 for `b` …
        letter: u8,
    },
    /// `3.6-rc2`: a candidate for a release; 0 for a bare `-rc`.
    Candidate {
        /// Before the point.
        major: u32,
        /// After the point.
        minor: u32,
        /// Which one.
        number: u32,
    },
    /// `next-3.8`: built from the development tree that will be 3.8.
    Next {
        /// Before the point.
        major: u32,
        /// After the point.
        minor: u32,
    },
    /// `openbsd-7.4`: the tmux of that OpenBSD.
    OpenBsd {
        /// Before the point.
        major: u32,
        /// After the point.
        minor: u32,
    },
    /// `master`: the development tree of tmux before it carried a number.
    Master,
}

/// Text that is no version of tmux.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a tmux version: {text:?}")]
pub struct BadVersion {
    /// What was read.
    pub text: String,
}

impl Version {
    /// A release, such as `Version::release(3, 7, Some('c'))`. Any letter but `a` to `z` counts as none.
    pub const fn release(major: u32, minor: u32, letter: Option<char>) -> Self {
        let letter = match letter {
            Some(letter @ 'a'..='z') => letter as u8 - b'a' + 1,
            Some(_) | None => 0,
        };
        Self::Release { major, minor, letter }
    }

    /// Reads `3.3a`, `next-3.8`, `3.6-rc2`, `openbsd-7.4`, `master`, each also after `tmux `.
    pub fn parse(text: &[u8]) -> Option<Self> {
        all_consuming(preceded(opt(tag("tmux ")), version)).parse(text).ok().map(|(_, version)| version)
    }

    /// Where it stands among releases: number, then how far along.
    fn place(&self) -> Option<(u32, u32, u8, u32)> {
        match *self {
            Self::Next { major, minor } => Some((major, minor, 0, 0)),
            Self::Candidate { major, minor, number } => Some((major, minor, 1, number)),
            Self::Release { major, minor, letter } => Some((major, minor, 2, u32::from(letter))),
            Self::Master => Some((u32::MAX, u32::MAX, u8::MAX, u32::MAX)),
            Self::OpenBsd { .. } => None,
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::OpenBsd { major, minor }, Self::OpenBsd { major: other_major, minor: other_minor }) => {
                Some((major, minor).cmp(&(other_major, other_minor)))
            }
            _ => Some(self.place()?.cmp(&other.place()?)),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Release { major, minor, letter: 0 } => write!(f, "{major}.{minor}"),
            Self::Release { major, minor, letter } => {
                write!(f, "{major}.{minor}{}", char::from(b'a' + (letter - 1) % 26))
            }
            Self::Candidate { major, minor, number: 0 } => write!(f, "{major}.{minor}-rc"),
            Self::Candidate { major, minor, number } => write!(f, "{major}.{minor}-rc{number}"),
            Self::Next { major, minor } => write!(f, "next-{major}.{minor}"),
            Self::OpenBsd { major, minor } => write!(f, "openbsd-{major}.{minor}"),
            Self::Master => f.write_str("master"),
        }
    }
}

impl FromStr for Version {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        Self::parse(text.as_bytes()).ok_or_else(|| BadVersion { text: text.to_owned() })
    }
}

/// `version = "master" / "next-" pair / "openbsd-" pair / pair "-rc" [number] / pair [letter]`
fn version(input: &[u8]) -> IResult<&[u8], Version> {
    alt((
        value(Version::Master, tag("master")),
        map(preceded(tag("next-"), pair), |(major, minor)| Version::Next { major, minor }),
        map(preceded(tag("openbsd-"), pair), |(major, minor)| Version::OpenBsd { major, minor }),
        map(
            (pair, preceded(tag("-rc"), opt(verify(decimal32, |number| *number > 0)))),
            |((major, minor), number)| Version::Candidate { major, minor, number: number.unwrap_or(0) },
        ),
        map((pair, opt(verify(anychar, char::is_ascii_lowercase))), |((major, minor), letter)| {
            Version::release(major, minor, letter)
        }),
    ))
    .parse(input)
}

/// `pair = number "." number`
fn pair(input: &[u8]) -> IResult<&[u8], (u32, u32)> {
    separated_pair(decimal32, char('.'), decimal32).parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_print_as_they_are_read() {
        for text in
            ["2.4", "3.2a", "3.3", "3.3a", "3.7c", "3.6-rc", "3.6-rc2", "next-3.8", "openbsd-7.4", "master"]
        {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        assert_eq!(Version::parse(b"tmux 3.3a"), Some(Version::release(3, 3, Some('a'))));
        for text in ["", "3", "3.", "3.3A", "3.3ab", "03.3", "next-", "tmux", "3.3a ", "3.6-rc0"] {
            assert_eq!(Version::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn versions_are_ordered_as_they_were_released() {
        let order = [
            "2.4", "3.1c", "3.2", "3.2a", "3.3", "3.3a", "3.7c", "next-3.8", "3.8-rc", "3.8-rc2", "3.8",
            "3.8a", "3.10", "master",
        ];
        let order: Vec<Version> = order.iter().map(|text| text.parse().unwrap()).collect();
        for (place, version) in order.iter().enumerate() {
            for (other_place, other) in order.iter().enumerate() {
                assert_eq!(version.partial_cmp(other), Some(place.cmp(&other_place)), "{version} {other}");
            }
        }
    }

    #[test]
    fn the_tmux_of_openbsd_is_never_known_to_be_new_enough() {
        let openbsd: Version = "openbsd-7.4".parse().unwrap();
        assert_eq!(openbsd.partial_cmp(&Version::release(3, 2, None)), None);
        assert!(openbsd < "openbsd-7.10".parse().unwrap());
    }
}
