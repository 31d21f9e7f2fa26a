//! What a rollout says of its turns as it grows: `event_msg` records `task_started`, `task_complete` and `turn_aborted`, each
//! written within some 10 ms. Requests for a permission are not among its records: it never says that one stands, only that a
//! tool was called (`response_item` records whose payload is a `function_call` or the like) and has not answered yet.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::fs::OFlags;
use serde::Deserialize;

use crate::turn::{Moment, Observation, Source, State};

/// How much of a rollout's end is read at first, in bytes; a line that began before it is left out.
const END: u64 = 1 << 20;
/// How much is read at once, in bytes. Of what grew by more, only the end is read.
const PIECE: u64 = 4 << 20;

/// A rollout that is followed. It is opened for each look and never held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    path: PathBuf,
    /// Records before this are of an earlier launch.
    since: Moment,
    /// How far it was read; `None` before the first look.
    read: Option<u64>,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
    said: Option<Said>,
    /// How many tools were called so far, and whether the last has not answered.
    calls: (u64, bool),
}

/// What it said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    state: State,
    word: &'static str,
    since: Moment,
    /// When anything was last written.
    grown: Moment,
}

#[derive(Deserialize)]
struct Line {
    timestamp: String,
    #[serde(rename = "type")]
    kind: String,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "type")]
    kind: Option<String>,
    turn_id: Option<String>,
    root_turn_id: Option<String>,
}

impl Rollout {
    /// The rollout at this path, for an agent that was launched then.
    #[must_use]
    pub fn new(path: &Path, since: Moment) -> Self {
        Self { path: path.to_owned(), since, read: None, rest: Vec::new(), said: None, calls: (0, false) }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tool's call that it waits for, as of the last look, by its number; it may be asking for it.
    #[must_use]
    pub fn call(&self) -> Option<u64> {
        let (number, waits) = self.calls;
        waits.then_some(number)
    }

    /// Reads what was written since, and gives what it says now; `None` where it says nothing of this launch.
    ///
    /// # Errors
    /// It cannot be read, or is no regular file.
    pub fn look(&mut self, now: Moment) -> io::Result<Option<Observation>> {
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        self.take(&mut file, data.len(), now)?;
        Ok(self.said.map(|said| {
            let seen = Observation::of(Source::Rollout, Some(said.state), said.grown, said.word);
            Observation { since: Some(said.since), ..seen }
        }))
    }

    fn take(&mut self, file: &mut File, size: u64, now: Moment) -> io::Result<()> {
        // one that is shorter than it was is another one
        let known = self.read.filter(|read| *read <= size);
        let from = match known {
            Some(read) if size - read <= PIECE => read,
            Some(_) | None => {
                self.rest.clear();
                size.saturating_sub(END)
            }
        };
        let whole = known == Some(from) || from == 0;
        file.seek(SeekFrom::Start(from))?;
        let mut text = std::mem::take(&mut self.rest);
        let before = text.len();
        file.take(PIECE).read_to_end(&mut text)?;
        self.read = Some(from + (text.len() - before) as u64);
        let begin = if whole { 0 } else { text.find_byte(b'\n').map_or(text.len(), |at| at + 1) };
        let end = text.rfind_byte(b'\n').map_or(begin, |at| at + 1).max(begin);
        for line in text[begin..end].lines() {
            self.line(line, now);
        }
        self.rest = text.split_off(end);
        // a line longer than that is no event
        if self.rest.len() as u64 > PIECE {
            self.rest = Vec::new();
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], now: Moment) {
        let head = &line[..line.len().min(200)];
        let is_event = head.contains_str("\"event_msg\"");
        // of other records only the time counts
        let Some(Line { timestamp, kind, payload }) = parse(line, is_event) else { return };
        let Ok(at) = timestamp.parse::<jiff::Timestamp>() else { return };
        // a clock that runs ahead of ours says nothing of what comes
        let at = Moment::from(at).min(now);
        if at < self.since {
            return;
        }
        if let Some(said) = &mut self.said {
            said.grown = said.grown.max(at);
        }
        if let Some(begins) = call(head) {
            self.calls = (self.calls.0 + u64::from(begins), begins);
        }
        let Some(payload) = payload.filter(|_| kind == "event_msg") else { return };
        // a part of a turn does not speak for it
        let is_part = payload.root_turn_id.is_some() && payload.root_turn_id != payload.turn_id;
        let (state, word) = match payload.kind.as_deref() {
            _ if is_part => return,
            Some("task_started" | "turn_started") => (State::Working, "task_started"),
            Some("task_complete" | "turn_complete") => (State::Waiting, "task_complete"),
            Some("turn_aborted") => (State::Waiting, "turn_aborted"),
            Some(_) | None => return,
        };
        self.said = Some(Said { state, word, since: at, grown: at });
        self.calls.1 = false;
    }
}

/// Whether a record begins a tool's call, or is its answer.
fn call(head: &[u8]) -> Option<bool> {
    const PAYLOAD: &str = "\"type\":\"response_item\",\"payload\":{\"type\":\"";
    let rest = &head[head.find(PAYLOAD)? + PAYLOAD.len()..];
    match &rest[..rest.find_byte(b'"')?] {
        b"function_call" | b"custom_tool_call" | b"local_shell_call" => Some(true),
        b"function_call_output" | b"custom_tool_call_output" | b"local_shell_call_output" => Some(false),
        _ => None,
    }
}

/// A line as JSON; of one that is no event, its beginning has all that is wanted.
fn parse(line: &[u8], is_event: bool) -> Option<Line> {
    if is_event {
        return serde_json::from_slice(line).ok();
    }
    let rest = &line[line.find("\"timestamp\":\"")? + 13..];
    let time = rest[..rest.len().min(64)].to_str_lossy();
    let timestamp = time.split('"').next()?.to_owned();
    Some(Line { timestamp, kind: String::new(), payload: None })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn event(second: u32, kind: &str, more: &str) -> String {
        format!(
            "{{\"timestamp\":\"2026-11-30T13:06:{second:02}.500Z\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"{kind}\"{more}}}}}\n"
        )
    }

    fn at(second: u32) -> Moment {
        let time: jiff::Timestamp = format!("2026-11-30T13:06:{second:02}.500Z").parse().unwrap();
        time.into()
    }

    struct Here {
        _folder: tempfile::TempDir,
        path: PathBuf,
        rollout: Rollout,
    }

    fn here(since: u32) -> Here {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        File::create(&path).unwrap();
        Here { rollout: Rollout::new(&path, at(since)), path, _folder: folder }
    }

    impl Here {
        fn add(&mut self, text: &str) -> &mut Self {
            OpenOptions::new().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
            self
        }

        fn says(&mut self) -> Option<(State, Moment, Moment)> {
            let seen = self.rollout.look(at(59)).unwrap()?;
            assert_eq!(seen.source, Source::Rollout);
            Some((seen.state.unwrap(), seen.since.unwrap(), seen.at))
        }
    }

    #[test]
    fn turns_begin_and_end_as_they_are_written() {
        let mut here = here(0);
        assert_eq!(here.says(), None, "nothing was said");
        let meta = "{\"timestamp\":\"2026-11-30T13:06:01.500Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n";
        assert_eq!(here.add(meta).says(), None);
        assert_eq!(here.add(&event(2, "task_started", "")).says(), Some((State::Working, at(2), at(2))));
        let other = event(4, "token_count", ",\"info\":{\"type\":\"task_complete\"}");
        assert_eq!(here.add(&other).says(), Some((State::Working, at(2), at(4))), "it goes on");
        assert_eq!(here.add(&event(5, "task_complete", "")).says(), Some((State::Waiting, at(5), at(5))));
        here.add(&event(6, "task_started", ""));
        assert_eq!(here.add(&event(7, "turn_aborted", "")).says(), Some((State::Waiting, at(7), at(7))));
        // a part of a turn, and words of the conversation, do not speak for it
        let part = event(8, "task_started", ",\"turn_id\":\"b\",\"root_turn_id\":\"a\"");
        let text = "{\"timestamp\":\"2026-11-30T13:06:08.500Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"task_started\",\"text\":\"event_msg\"}}\n";
        assert_eq!(here.add(&part).add(text).says().unwrap().0, State::Waiting);
        let whole = event(9, "task_started", ",\"turn_id\":\"a\",\"root_turn_id\":\"a\"");
        assert_eq!(here.add(&whole).says().unwrap().0, State::Working);
    }

    #[test]
    fn a_call_is_waited_for_until_it_answers_or_the_turn_is_over() {
        let item = |second: u32, kind: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-30T13:06:{second:02}.500Z\",\"ordinal\":{second},\"type\":\"response_item\",\"payload\":{{\"type\":\"{kind}\",\"status\":\"completed\"}}}}\n"
            )
        };
        let mut here = here(0);
        let mut call = |text: String| {
            here.add(&text).says();
            here.rollout.call()
        };
        assert_eq!(call(event(1, "task_started", "") + &item(1, "message")), None);
        assert_eq!(call(item(2, "function_call")), Some(1));
        assert_eq!(call(event(3, "token_count", "")), Some(1), "it goes on");
        assert_eq!(call(item(4, "function_call_output")), None);
        assert_eq!(call(item(5, "custom_tool_call")), Some(2));
        assert_eq!(
            call(item(6, "custom_tool_call_output") + &item(6, "local_shell_call")),
            Some(3),
            "another one"
        );
        assert_eq!(call(event(7, "turn_aborted", "")), None);
    }

    #[test]
    fn cut_anywhere_it_says_the_same() {
        let text =
            event(1, "task_started", "") + &event(2, "task_complete", "") + &event(3, "task_started", "");
        for cut in 0..text.len() {
            let mut here = here(0);
            here.add(&text[..cut]).says();
            assert_eq!(here.add(&text[cut..]).says(), Some((State::Working, at(3), at(3))), "cut at {cut}");
        }
    }

    #[test]
    fn a_turn_of_an_earlier_launch_is_not_of_this_one() {
        let mut here = here(10);
        assert_eq!(here.add(&event(9, "task_started", "")).says(), None, "it was killed in it");
        assert_eq!(here.add(&event(12, "task_started", "")).says().unwrap().0, State::Working);
    }

    #[test]
    fn of_a_long_one_the_end_is_read_and_one_that_was_replaced_is_read_anew() {
        let mut here = here(0);
        let long = event(1, "agent_message", &format!(",\"message\":\"{}\"", "x".repeat(3 << 20)));
        assert_eq!(
            here.add(&event(1, "task_started", "")).add(&long).says(),
            None,
            "too far back to be known"
        );
        assert_eq!(here.add(&event(2, "task_complete", "")).says().unwrap().0, State::Waiting);
        std::fs::write(&here.path, event(3, "task_started", "")).unwrap();
        assert_eq!(here.says().unwrap().0, State::Working);
        std::fs::remove_file(&here.path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &here.path).unwrap();
        assert!(here.rollout.look(at(59)).is_err(), "a link is not followed");
    }
}
