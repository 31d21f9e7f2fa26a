//! Samples, their percentiles, and one printed row a figure.

use std::time::Duration;

/// Durations of one thing.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that `percent` of all are not above.
    fn at(&mut self, percent: usize) -> Duration {
        self.0.sort_unstable();
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

/// One figure beside its floor.
#[derive(Debug)]
pub(crate) struct Row(String);

impl Row {
    pub(crate) fn new(what: &str, mut samples: Samples, mut floor: Samples, goal: &str) -> Row {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let (p50, p99) = (ms(samples.at(50)), ms(samples.at(99)));
        let (floor50, floor99) = (ms(floor.at(50)), ms(floor.at(99)));
        let row = format!(
            "| {what} | {p50:.2} | {p99:.2} | {floor50:.2} | {floor99:.2} | {:.1} | {} | {goal} |",
            p50 / floor50.max(f64::MIN_POSITIVE),
            samples.len(),
        );
        eprintln!("{row}");
        Row(row)
    }
}

/// The whole table, as the README shows it.
pub(crate) fn print(rows: &[Row]) {
    println!("| what | p50 ms | p99 ms | floor p50 | floor p99 | p50 / floor | n | goal |");
    println!("|---|---|---|---|---|---|---|---|");
    for Row(row) in rows {
        println!("{row}");
    }
}
