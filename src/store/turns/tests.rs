//! Events on disk: many, twice, cut short between any two writes.

use std::collections::BTreeMap;

use super::*;
use crate::turn::{Need, Source, State, What};

struct Here {
    _base: tempfile::TempDir,
    paths: Paths,
    whose: Whose,
}

fn here() -> Here {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().join(name);
    let paths = Paths { store: at("s.json"), frozen: at("frozen"), state: at("state"), runtime: at("run") };
    let whose = Whose { record: RecordId::from_bits(7), runtime: "one".into(), provider: "claude".into() };
    Here { _base: base, paths, whose }
}

impl Here {
    fn tell(&self, event: &Event) -> Told {
        tell(&self.paths, &self.whose, event).unwrap()
    }

    fn code(&self, event: &Event) -> &'static str {
        tell(&self.paths, &self.whose, event).unwrap_err().code()
    }

    fn at(&self, name: &str) -> PathBuf {
        folder(&self.paths, self.whose.record).join(name)
    }

    fn state(&self) -> State {
        view(&self.paths, &self.whose, moment(0)).state
    }

    fn lines(&self) -> usize {
        journal(&self.paths, self.whose.record).unwrap().len()
    }

    /// Every file, as bytes.
    fn files(&self) -> BTreeMap<&'static str, Option<Vec<u8>>> {
        FILES.iter().map(|name| (*name, fs::read(self.at(name)).ok())).collect()
    }

    fn put(&self, name: &str, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => fs::write(self.at(name), bytes).unwrap(),
            None => fs::remove_file(self.at(name)).unwrap_or_default(),
        }
    }
}

const FILES: [&str; 3] = ["activity.json", "activity.replay.bin", "activity.journal.jsonl"];

fn moment(ms: i64) -> Moment {
    Moment::from_millis(1_800_000_000_000 + ms)
}

fn event(id: &str, what: What) -> Event {
    let (source, name) = (Source::Hook, "Event".to_owned());
    Event { id: id.to_owned(), at: moment(0), source, name, what, prompt: Some("a raw id".into()) }
}

fn asks(id: &str) -> Event {
    event(
        id,
        What::AttentionRequested { attention: Need::Approval, request: None, tool: Some("Bash".into()) },
    )
}

#[test]
fn an_event_goes_both_ways_and_leaves_nothing_of_the_providers_own() {
    let here = here();
    assert_eq!(read(&here.paths, here.whose.record).unwrap(), None);
    assert_eq!(here.state(), State::Unknown);
    let told = here.tell(&asks("1"));
    assert!(!told.duplicate);
    assert_eq!(of(&here.paths, &here.whose), told.turns);
    assert_eq!(here.state(), State::NeedsInput);
    let mut left: Vec<_> = fs::read_dir(folder(&here.paths, here.whose.record))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["activity.journal.jsonl", "activity.json", "activity.replay.bin"]);
    for (name, bytes) in here.files() {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(here.at(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        assert!(!String::from_utf8_lossy(&bytes.unwrap()).contains("raw id"), "{name}");
    }
}

#[test]
fn ten_thousand_events_of_one_launch_and_each_counts_once() {
    let here = here();
    let id = |n: u64| format!("event {n}");
    for n in 1..=10_000u64 {
        // all within one second, all alike but for their ids
        let told = here.tell(&event(&id(n), What::TurnStarted));
        assert!(!told.duplicate && told.turns.accepted == n, "{n}");
        if n % 1000 == 0 {
            let last = told.turns;
            for back in [0, 1, 500, KEPT as u64 - 1] {
                let told = here.tell(&event(&id(n.saturating_sub(back).max(1)), What::TurnStarted));
                assert!(told.duplicate && told.turns == last, "{n} - {back}");
            }
        }
    }
    let size = fs::metadata(here.at("activity.replay.bin")).unwrap().len();
    assert!(size <= 64 + 8192 * 16, "{size}");
    assert!(here.lines() <= 256);
    assert!(fs::metadata(here.at("activity.journal.jsonl")).unwrap().len() <= 64 * 1024);
    assert_eq!(here.state(), State::Working);
}

use super::replay::KEPT;

#[test]
fn two_alike_in_one_second_are_two_and_one_told_twice_is_one() {
    let here = here();
    here.tell(&asks("1"));
    here.tell(&asks("2"));
    assert_eq!(here.tell(&asks("2")).turns.pending(), 2);
    assert!(here.tell(&asks("1")).duplicate);
    assert_eq!(here.lines(), 2);
}

/// The next event is told, and once more; the files are as if nothing had happened in between.
#[test]
fn a_crash_between_any_two_writes_is_made_good() {
    let clean = here();
    let first = event("1", What::TurnStarted);
    let (second, third) = (asks("2"), event("3", What::TurnCompleted { background: false }));
    let write_out = |here: &Here| (here.files(), here.tell(&second).turns, here.files());
    clean.tell(&first);
    let (before, _, after) = write_out(&clean);
    clean.tell(&third);
    let end = clean.files();
    // how far the writer of the second event came: the state, half a slot, the slot, half a line
    let torn = |name: &str, part: usize| {
        let (old, new) = (before[name].as_ref().unwrap(), after[name].as_ref().unwrap());
        new[..old.len() + (new.len() - old.len()) * part / 2].to_vec()
    };
    for (replay, journal) in [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)] {
        for again in [true, false] {
            let here = here();
            make_private(&folder(&here.paths, here.whose.record)).unwrap();
            here.put("activity.json", after["activity.json"].as_deref());
            here.put("activity.replay.bin", Some(&torn("activity.replay.bin", replay)));
            here.put("activity.journal.jsonl", Some(&torn("activity.journal.jsonl", journal)));
            assert_eq!(here.state(), State::NeedsInput, "what was written counts");
            if again {
                assert!(here.tell(&second).duplicate, "{replay} {journal}");
                assert_eq!(here.files(), after, "{replay} {journal}");
            }
            here.tell(&third);
            assert_eq!(here.files(), end, "{replay} {journal} {again}");
        }
    }
    // before the first of them: it was never taken
    let here = here();
    make_private(&folder(&here.paths, here.whose.record)).unwrap();
    FILES.iter().for_each(|name| here.put(name, before[name].as_deref()));
    assert!(!here.tell(&second).duplicate);
    here.tell(&third);
    assert_eq!(here.files(), end);
}

#[test]
fn a_crash_within_the_very_first_event_or_a_new_launch_is_made_good() {
    let mut here = here();
    here.tell(&asks("1"));
    let first = here.files();
    here.put("activity.replay.bin", None);
    here.put("activity.journal.jsonl", None);
    assert!(here.tell(&asks("1")).duplicate);
    assert_eq!(here.files(), first);
    // the next launch: its state is written, the events are still those of the one before
    let old = here.files();
    here.whose.runtime = "two".into();
    assert!(!here.tell(&asks("1")).duplicate, "another launch, another event");
    let new = here.files();
    here.put("activity.replay.bin", old["activity.replay.bin"].as_deref());
    here.put("activity.journal.jsonl", old["activity.journal.jsonl"].as_deref());
    assert_eq!(here.state(), State::NeedsInput);
    assert!(here.tell(&asks("1")).duplicate);
    assert_eq!(here.files(), new);
    assert_eq!(here.lines(), 2);
}

#[test]
fn a_journal_that_cannot_be_written_is_caught_up() {
    let here = here();
    let path = here.at("activity.journal.jsonl");
    fs::create_dir_all(&path).unwrap();
    assert_eq!(here.code(&asks("1")), "activity-write-failed");
    assert_eq!(here.state(), State::NeedsInput, "it was taken");
    fs::remove_dir(&path).unwrap();
    assert!(here.tell(&asks("1")).duplicate);
    assert_eq!(here.lines(), 1);
    // where it cannot be known whether the one before is in it, the next one is not taken
    fs::rename(&path, path.with_extension("away")).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(here.code(&asks("2")), "activity-write-failed");
    fs::remove_dir(&path).unwrap();
    fs::rename(path.with_extension("away"), &path).unwrap();
    assert!(!here.tell(&asks("2")).duplicate);
    assert_eq!(here.lines(), 2);
}

#[test]
fn what_was_taken_is_never_guessed() {
    for swap in [None, Some(&b"short"[..]), Some(&[0; 64])] {
        let mut here = here();
        here.tell(&asks("1"));
        here.tell(&asks("2"));
        here.put("activity.replay.bin", swap);
        assert_eq!(here.state(), State::Unknown);
        assert!(here.code(&asks("3")).starts_with("activity-replay-"));
        assert!(here.code(&asks("3")).starts_with("activity-replay-"), "never again");
        here.whose.runtime = "two".into();
        here.tell(&asks("3"));
        assert_eq!(here.state(), State::NeedsInput);
    }
    // that of another launch
    let (mut here, mut other) = (here(), here());
    for n in ["1", "2", "3"] {
        here.tell(&asks(n));
    }
    other.whose.runtime = "other".into();
    other.tell(&asks("1"));
    here.put("activity.replay.bin", other.files()["activity.replay.bin"].as_deref());
    assert_eq!(here.code(&asks("4")), "activity-replay-runtime-mismatch");
    assert_eq!(here.state(), State::Unknown);
    here.whose.runtime = "two".into();
    here.tell(&asks("4"));
}

#[test]
fn what_cannot_be_read_is_unknown_and_put_aside_by_the_next_launch() {
    for broken in ["{", "[]", r#"{"schema_version":"ait.activity.v9"}"#, ""] {
        let mut here = here();
        here.tell(&asks("1"));
        here.put("activity.json", Some(broken.as_bytes()));
        assert_eq!(read(&here.paths, here.whose.record).unwrap(), None);
        assert_eq!(here.state(), State::Unknown);
        assert_eq!(here.code(&asks("2")), "activity-unreadable");
        here.whose.runtime = "two".into();
        here.tell(&asks("2"));
        assert_eq!(here.state(), State::NeedsInput);
        assert_eq!(
            fs::read_to_string(here.at(&format!("activity.quarantine.{}.json", moment(0).millis()))).unwrap(),
            broken
        );
    }
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    let here = here();
    here.tell(&asks("1"));
    for name in FILES {
        let away = here.at("away");
        fs::rename(here.at(name), &away).unwrap();
        std::os::unix::fs::symlink(&away, here.at(name)).unwrap();
        assert!(tell(&here.paths, &here.whose, &asks("2")).is_err(), "{name}");
        fs::rename(&away, here.at(name)).unwrap();
    }
    assert!(!here.tell(&asks("2")).duplicate);
}

#[test]
fn what_this_version_does_not_know_stays() {
    let here = here();
    here.tell(&asks("1"));
    let path = path(&here.paths, here.whose.record);
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    value["later"] = serde_json::json!({"x": 1});
    fs::write(&path, value.to_string()).unwrap();
    here.tell(&asks("2"));
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&value["later"]["x"], &value["accepted"]), (&serde_json::json!(1), &serde_json::json!(2)));
}

#[test]
fn an_observation_is_written_once_and_a_launch_begins_anew() {
    let mut here = here();
    let spins = |ms| Observation {
        moves: true,
        ..Observation::of(Source::Title, Some(State::Working), moment(ms), "spinner")
    };
    assert!(observe(&here.paths, &here.whose, &spins(0)).unwrap().is_some());
    let files = here.files();
    assert_eq!(observe(&here.paths, &here.whose, &spins(10)).unwrap(), None);
    assert_eq!(here.files(), files);
    assert_eq!(here.state(), State::Working);
    // one that goes on is kept from growing old
    assert_eq!(observe(&here.paths, &here.whose, &spins(60_000)).unwrap(), None);
    assert_eq!(view(&here.paths, &here.whose, moment(80_000)).state, State::Working);
    here.whose.runtime = "two".into();
    assert_eq!(here.state(), State::Unknown, "what was seen was of the launch before");
    begin(&here.paths, &here.whose, moment(0)).unwrap();
    assert_eq!(here.state(), State::Starting);
    here.tell(&asks("1"));
    assert_eq!(here.state(), State::NeedsInput);
}

#[test]
fn hooks_side_by_side_lose_nothing() {
    let here = here();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let here = &here;
            scope.spawn(move || (0..5).for_each(|n| drop(here.tell(&asks(&format!("{thread} {n}"))))));
        }
    });
    assert_eq!(of(&here.paths, &here.whose).accepted, 20);
    assert_eq!(here.lines(), 20);
}
