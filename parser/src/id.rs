//! The three ids tmux gives: `$session`, `@window`, `%pane`. Never reused during one life of a server.
//!
//! Reading is strict: the sign, then a decimal number without leading zeros that fits 32 bits, and nothing else.
//! That makes printing the exact inverse of reading.

use std::fmt;
use std::str::FromStr;

use nom::{IResult, Parser, bytes::complete::tag, combinator::all_consuming, sequence::preceded};

use crate::notification::grammar::decimal32;

/// Text that is not an id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind} id: {text:?}")]
pub struct BadId {
    /// `session`, `window` or `pane`.
    pub kind: &'static str,
    /// What was read.
    pub text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $sign:literal, $kind:literal, $rule:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Reads exactly one id, sign included; anything before or after it makes the answer `None`.
            pub fn parse(text: &[u8]) -> Option<Self> {
                all_consuming($rule).parse(text).ok().map(|(_, id)| id)
            }
        }

        #[doc = concat!("`", $kind, "-id = \"", $sign, "\" 1*DIGIT`")]
        pub(crate) fn $rule(input: &[u8]) -> IResult<&[u8], $name> {
            preceded(tag($sign), decimal32).map($name).parse(input)
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sign, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::parse(text.as_bytes()).ok_or_else(|| BadId { kind: $kind, text: text.to_owned() })
            }
        }
    };
}

id!(
    /// A session, printed `$1`.
    SessionId, "$", "session", session_id
);
id!(
    /// A window, printed `@1`. One window may be linked into several sessions.
    WindowId, "@", "window", window_id
);
id!(
    /// A pane, printed `%1`.
    PaneId, "%", "pane", pane_id
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_prints_as_it_is_read() {
        for text in ["%0", "%7", "%4294967295"] {
            assert_eq!(text.parse::<PaneId>().unwrap().to_string(), text);
        }
        assert_eq!(WindowId::parse(b"@12"), Some(WindowId(12)));
        assert_eq!(SessionId::parse(b"$0"), Some(SessionId(0)));
    }

    #[test]
    fn an_id_is_strictly_decimal() {
        for text in
            ["", "%", "7", "%07", "%00", "%4294967296", "%1 ", " %1", "%+1", "%-1", "%1a", "@1", "%1\n"]
        {
            assert_eq!(PaneId::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!("@x".parse::<WindowId>().unwrap_err().to_string(), "not a window id: \"@x\"");
    }
}
