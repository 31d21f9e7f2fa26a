//! Bounded waits: a state and a deadline, never a bare sleep in a story.

use std::time::{Duration, Instant};

/// How long a story waits for a state before it fails; generous, since it decides nothing but when to give up.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Asks `found` until it gives something; fails with `what` after `deadline`.
///
/// For states that no file event tells of (a tmux answer, a process table). Store changes have
/// `Home::store_until`, deaths `proc::dies`, which wake by event.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, deadline: Duration, found: impl FnMut() -> Option<T>) -> T {
    within(deadline, found).unwrap_or_else(|| panic!("waited {deadline:?} for {what}"))
}

/// Asks `found` until it gives something; `None` after `deadline`.
pub(crate) fn within<T>(deadline: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match found() {
            Some(value) => return Some(value),
            None if start.elapsed() > deadline => return None,
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// [`within`] for a look that costs much: one at a time, with a pause in between.
pub(crate) fn within_seldom<T>(deadline: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    within(deadline, || {
        let value = found();
        if value.is_none() {
            std::thread::sleep(Duration::from_millis(150));
        }
        value
    })
}

/// [`wait_until`] for a story on a runtime, whose other tasks go on meanwhile.
pub(crate) async fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Watches for `span` that `holds` stays true: for "nothing happens" stories, where no event can be waited for.
#[track_caller]
pub(crate) fn stays(what: &str, span: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while start.elapsed() < span {
        assert!(holds(), "no longer true after {:?}: {what}", start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lets `span` go by: for crash stories, where the moment itself is what is varied, and for nothing else.
pub(crate) fn moment(span: Duration) {
    std::thread::sleep(span);
}

/// Small reproducible dice (xorshift), so that a crash story prints the seed it ran with.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice from a seed.
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.max(1))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// How often a long story repeats: `few` by default, `all` with `AIT_TEST_FULL=1`.
pub(crate) fn trials(few: usize, all: usize) -> usize {
    if std::env::var_os("AIT_TEST_FULL").is_some_and(|value| value == "1") { all } else { few }
}
