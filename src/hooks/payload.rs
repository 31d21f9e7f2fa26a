//! The payload of an event: JSON on standard input, read within a bound and a time, and as far as it is whole.
//!
//! A writer that never closes its end is not waited for, one that sends too much is read to its end (a hook that stops
//! reading breaks its provider's pipe) and only the beginning counts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How much of a payload counts, in bytes.
const LIMIT: usize = 1 << 20;
/// How much is read and thrown away beyond that.
const SURPLUS: usize = 64 << 20;
/// How long the payload may take to come.
const PATIENCE: Duration = Duration::from_millis(500);

/// The longest value that is looked at, in bytes: ids, words and lists are shorter, prompts and outputs are not asked for.
const VALUE: usize = 64 * 1024;

/// Reads standard input; what is wrong with it, as a code, besides.
pub(super) fn read() -> (Value, Option<&'static str>) {
    let (text, surplus) = gather();
    let fault = match serde_json::from_slice::<HashMap<Cow<'_, str>, IgnoredAny>>(&text) {
        _ if surplus > 0 => Some("provider-hook-too-large"),
        Ok(_) => None,
        Err(_) => Some("provider-hook-invalid"),
    };
    (parse(&text), fault)
}

/// What came, and how much more than counts.
fn gather() -> (Vec<u8>, usize) {
    let input = std::io::stdin();
    let input = input.as_fd();
    let deadline = Instant::now() + PATIENCE;
    let mut text: Vec<u8> = Vec::new();
    let mut surplus = 0;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        // whole already: a writer that keeps its end open is not waited for
        let whole = text.last().is_some_and(|b| *b == b'}' || b.is_ascii_whitespace())
            && serde_json::from_slice::<IgnoredAny>(&text).is_ok();
        let left = if whole { Duration::ZERO } else { deadline.saturating_duration_since(Instant::now()) };
        let span = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&span)) {
            Ok(0) => return (text, surplus),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return (text, surplus),
        }
        match rustix::io::read(input, chunk.as_mut_slice()) {
            Ok(0) => return (text, surplus),
            Ok(read) => {
                let kept = read.min(LIMIT - text.len());
                text.extend_from_slice(&chunk[..kept]);
                surplus += read - kept;
                if surplus > SURPLUS {
                    return (text, surplus);
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return (text, surplus),
        }
    }
}

/// What is said by a payload; of one that is cut or broken, what came before that.
pub(super) fn parse(text: &[u8]) -> Value {
    let mut fields = Map::new();
    let mut reader = serde_json::Deserializer::from_slice(text);
    // a torn end is expected: what came before it counts
    let _ = reader.deserialize_map(Fields(&mut fields));
    Value::Object(fields)
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let value: &RawValue = map.next_value()?;
            if value.get().len() <= VALUE
                && let Ok(value) = serde_json::from_str(value.get())
            {
                self.0.insert(key, value);
            }
        }
        Ok(())
    }
}

/// Whether a text may be the id of a conversation: it goes into arguments and paths later.
pub(super) fn is_id(text: &str) -> bool {
    (1..=512).contains(&text.len())
        && !text.starts_with(['-', '.'])
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_payload_says_what_came_before_the_cut() {
        let text = br#"{"session_id":"a","tool_response":"xxxxxxxxxxxxxxxxxxxxxxx"#;
        for end in 17..text.len() {
            assert_eq!(parse(&text[..end])["session_id"], "a", "{end}");
        }
        for text in [&b""[..], b"x", b"[1]", b"{", br#"{"session_id":"#] {
            assert_eq!(parse(text), Value::Object(Map::new()));
        }
    }

    #[test]
    fn what_is_too_long_to_matter_is_left_out() {
        let text = format!(r#"{{"prompt":"{}","session_id":"a"}}"#, "x".repeat(VALUE));
        assert_eq!(parse(text.as_bytes()), serde_json::json!({"session_id": "a"}));
    }

    #[test]
    fn ids_that_would_be_something_else_in_an_argument() {
        for good in ["7c9e6679-7425-40de-944b-e07fc1f90ae7", "ses_abc", "20261101_101010_abcdef", "a"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", "-c", "--continue", "a b", "a\n", "../x", "a/b", "é"] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
