//! The record file seen from outside: read as JSON, waited on by inotify, its generations counted.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use serde_json::Value;

use super::{DEADLINE, Home};

impl Home {
    /// The store's records; none while the file is missing.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        let bytes = match fs::read(self.store()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => panic!("cannot read the store: {error}"),
        };
        let store: Value = serde_json::from_slice(&bytes).expect("the store is JSON at every instant");
        store["sessions"].as_array().cloned().unwrap_or_default()
    }

    /// The record with this id, if the store has it.
    #[track_caller]
    pub(crate) fn record(&self, id: &str) -> Option<Value> {
        self.records().into_iter().find(|record| record["id"] == id)
    }

    /// The archive's lines, oldest first.
    pub(crate) fn archived(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.archive()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("an archive line is JSON")).collect()
    }

    /// The archive's last line for this id, if there is one.
    pub(crate) fn archived_record(&self, id: &str) -> Option<Value> {
        self.archived().into_iter().rev().find(|line| line["record"]["id"] == id)
    }

    /// Waits, woken by the folder's events, until `found` gives something; fails with the store's text.
    #[track_caller]
    pub(crate) fn store_until<T>(&self, what: &str, mut found: impl FnMut(&Home) -> Option<T>) -> T {
        let mut watch = Generations::of(self);
        let start = Instant::now();
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            if start.elapsed() > DEADLINE {
                let store = fs::read_to_string(self.store()).unwrap_or_default();
                let archive = fs::read_to_string(self.archive()).unwrap_or_default();
                panic!("waited {DEADLINE:?} for {what}\n--- store\n{store}\n--- archive\n{archive}");
            }
            // Bounded, so that a condition on another file than the store is asked again as well.
            watch.wait(Duration::from_millis(100));
        }
    }
}

/// Counts the generations of the store: every rename over the file.
#[derive(Debug)]
pub(crate) struct Generations {
    fd: OwnedFd,
    seen: usize,
}

impl Generations {
    /// Counts from now on.
    #[track_caller]
    pub(crate) fn of(home: &Home) -> Generations {
        let store = home.store();
        let folder = store.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&fd, folder, inotify::WatchFlags::MOVED_TO).unwrap();
        Generations { fd, seen: 0 }
    }

    /// Generations written since the start of the count.
    pub(crate) fn count(&mut self) -> usize {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        while let Ok(event) = reader.next() {
            let store = event.file_name().is_some_and(|name| name.to_bytes() == b"agent_sessions.json");
            self.seen += usize::from(store);
        }
        self.seen
    }

    /// Waits for the next event in the folder, at most `span`.
    pub(crate) fn wait(&mut self, span: Duration) {
        let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos() as i64 };
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&span));
        self.count();
    }
}
