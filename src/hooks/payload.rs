//! The payload of an event: JSON on standard input, read within a bound and a time, and as far as it is whole.
//!
//! A writer that never closes its end is not waited for, one that sends too much is read to its end (a hook that stops
//! reading breaks its provider's pipe) and only the beginning counts.

use std::fmt;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How much of a payload counts, in bytes.
const LIMIT: usize = 1 << 20;
/// How much is read and thrown away beyond that.
const SURPLUS: usize = 64 << 20;
/// How long the payload may take to come.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is looked at of a payload; blank is not supplied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) session_id: String,
    pub(super) transcript: String,
    pub(super) cwd: String,
    /// How a session started, or what a prompt comes from.
    pub(super) source: String,
    /// Which notification it is.
    pub(super) notification: String,
    /// The sub-agent it is about.
    pub(super) agent_id: String,
    /// Whether work goes on behind the turn.
    pub(super) background: bool,
}

/// Reads standard input.
pub(super) fn read() -> Payload {
    parse(&gather())
}

fn gather() -> Vec<u8> {
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
            Ok(0) => return text,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return text,
        }
        match rustix::io::read(input, chunk.as_mut_slice()) {
            Ok(0) => return text,
            Ok(read) => {
                let kept = read.min(LIMIT - text.len());
                text.extend_from_slice(&chunk[..kept]);
                surplus += read - kept;
                if surplus > SURPLUS {
                    return text;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return text,
        }
    }
}

/// What is said by a payload; of one that is cut or broken, what came before that.
pub(super) fn parse(text: &[u8]) -> Payload {
    let mut payload = Payload::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    // a torn end is expected: what came before it counts
    let _ = reader.deserialize_map(Fields(&mut payload));
    payload
}

struct Fields<'a>(&'a mut Payload);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let field = match key.as_str() {
                "session_id" | "sessionId" => &mut self.0.session_id,
                "transcript_path" | "transcriptPath" => &mut self.0.transcript,
                "cwd" => &mut self.0.cwd,
                "source" => &mut self.0.source,
                "notification_type" | "notificationType" => &mut self.0.notification,
                "agent_id" => &mut self.0.agent_id,
                "background_tasks" | "session_crons" => {
                    let list: &RawValue = map.next_value()?;
                    self.0.background |= serde_json::from_str::<Vec<IgnoredAny>>(list.get())
                        .is_ok_and(|list| !list.is_empty());
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value: &RawValue = map.next_value()?;
            // null, or another shape than expected, is not supplied
            *field = serde_json::from_str(value.get()).unwrap_or_default();
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
    fn both_spellings_and_what_is_not_asked_for() {
        let claude = parse(br#"{"session_id":"a","transcript_path":"/t","cwd":"/w","hook_event_name":"Stop","x":{"y":[1]},"background_tasks":[{}],"agent_id":null}"#);
        let wanted = Payload {
            session_id: "a".into(),
            transcript: "/t".into(),
            cwd: "/w".into(),
            background: true,
            ..Payload::default()
        };
        assert_eq!(claude, wanted);
        assert_eq!(parse(br#"{"sessionId":"b","timestamp":1,"background_tasks":[]}"#).session_id, "b");
    }

    #[test]
    fn a_cut_payload_says_what_came_before_the_cut() {
        let text = br#"{"session_id":"a","tool_response":"xxxxxxxxxxxxxxxxxxxxxxx"#;
        for end in 17..text.len() {
            assert_eq!(parse(&text[..end]).session_id, "a", "{end}");
        }
        for text in [&b""[..], b"x", b"[1]", b"{", br#"{"session_id":"#, br#"{"session_id":7}"#] {
            assert_eq!(parse(text), Payload::default());
        }
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
