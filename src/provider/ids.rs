//! The shapes of conversation ids. An id that does not fit is refused before it comes near an argument list.

/// The longest id there is, in bytes.
pub const MAX_ID: usize = 128;

/// Words that some program takes for "the newest one" where an id is expected.
const NEWEST: &[&str] = &["latest", "last", "continue", "newest", "recent", "current", "resume", "new"];

/// The shape of a provider's conversation ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 8-4-4-4-12 hex digits.
    Uuid,
    /// [`Shape::Uuid`] after this beginning, or alone when `bare`.
    Prefixed {
        /// What stands before the digits: `T-`.
        prefix: &'static str,
        /// Whether it may be missing.
        bare: bool,
    },
    /// `ses_` and letters and digits.
    Ses,
    /// `YYYYMMDD_HHMMSS_` and six hex digits.
    Stamp,
    /// `YYYYMMDD_` and a number.
    Day,
    /// One word of letters, digits, `_`, `-`, `.` and `:`, a letter or digit first: all that is known of a user's own provider.
    Word,
}

impl Shape {
    /// Whether this is a whole id of that shape: no prefix of one, no name, no index, never a word for "the newest".
    #[must_use]
    pub fn fits(self, id: &str) -> bool {
        if id.is_empty() || id.len() > MAX_ID {
            return false;
        }
        match self {
            Self::Uuid => is_hex_groups(id),
            Self::Prefixed { prefix, bare } => match id.strip_prefix(prefix) {
                Some(rest) => is_hex_groups(rest),
                None => bare && is_hex_groups(id),
            },
            Self::Ses => id.strip_prefix("ses_").is_some_and(|rest| {
                (8..=64).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric())
            }),
            Self::Stamp => {
                id.len() == 22
                    && id.bytes().enumerate().all(|(at, b)| match at {
                        8 | 15 => b == b'_',
                        16.. => b.is_ascii_hexdigit(),
                        _ => b.is_ascii_digit(),
                    })
            }
            Self::Day => id.split_once('_').is_some_and(|(day, number)| {
                let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
                day.len() == 8 && digits(day) && (1..=6).contains(&number.len()) && digits(number)
            }),
            Self::Word => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:".contains(&b);
                id.bytes().all(plain)
                    && id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
                    && !id.contains("..")
                    && !NEWEST.iter().any(|word| word.eq_ignore_ascii_case(id))
            }
        }
    }
}

fn is_hex_groups(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}
