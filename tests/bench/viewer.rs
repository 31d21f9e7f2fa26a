//! The viewer on 50,000 coloured lines: opening them and drawing the first frame, and a frame after a page up, each beside a
//! floor: reading the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ait::record::RecordId;
use ait::tui::frozenagent::model::{Kept, Model};
use ait::tui::frozenagent::update::{Event, open, update};
use ait::tui::frozenagent::view;
use criterion::Criterion;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Lines of a capture at its cap (`frozen.capture_max_lines`).
const LINES: usize = 50_000;
/// A wide pane.
const SIZE: (u16, u16) = (200, 50);
const ROUNDS: usize = 50;

pub(crate) fn benches(criterion: &mut Criterion) {
    let base = tempfile::tempdir_in("/dev/shm").expect("a tmpfs at /dev/shm");
    let path = base.path().join("capture.ansi");
    fs::write(&path, capture()).expect("a capture");
    let mut opened = first_frame(&path);
    let mut group = criterion.benchmark_group("viewer/50000");
    group.sample_size(10);
    group.bench_function("floor", |b| b.iter(|| fs::read(&path).expect("the capture")));
    group.bench_function("first_frame", |b| b.iter(|| first_frame(&path)));
    group.bench_function("page_up", |b| b.iter(|| frame_after(&mut opened, KeyCode::PageUp)));
    group.bench_function("search_to_the_other_end", |b| {
        b.iter(|| {
            for key in "g/line 49999".chars() {
                update(&mut opened, Event::Key(KeyEvent::from(KeyCode::Char(key))));
            }
            frame_after(&mut opened, KeyCode::Enter);
        });
    });
    group.finish();

    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(timed(|| drop(fs::read(&path).expect("the capture"))));
        times[1].push(timed(|| drop(first_frame(&path))));
        times[2].push(timed(|| frame_after(&mut opened, KeyCode::PageUp)));
    }
    let [floor, first, page] = times.map(median);
    println!(
        "viewer, {LINES} coloured lines, {} bytes, n = {ROUNDS}: floor {floor:?}, opened and drawn {first:?}, \
         a page up {page:?}; goals 100 ms and 16 ms",
        fs::metadata(&path).expect("the capture").len(),
    );
}

/// What a full-screen agent leaves: prompts, diffs and paths in colours that carry over from line to line.
fn capture() -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let colour = line % 256;
        let _ = writeln!(
            text,
            "\x1b[38;5;{colour}mline {line}\x1b[39m \x1b[1m●\x1b[22m \x1b[48;2;40;44;52m src/lib.rs:{line} \x1b[49m \
             \x1b[31m- let old = parse(input)?;\x1b[39m \x1b[32m+ let new = parse(&input)?;\x1b[m 日本語 └─ done"
        );
    }
    text
}

fn first_frame(path: &Path) -> Model {
    let mut model = Model::new(SIZE, true, None);
    let id = RecordId::from_bits(1);
    open(&mut model, id, None);
    update(&mut model, Event::Capture { id, kept: Kept::Ansi, text: fs::read(path).expect("the capture") });
    frame(&model);
    model
}

fn frame_after(model: &mut Model, key: KeyCode) {
    update(model, Event::Key(KeyEvent::from(key)));
    frame(model);
}

fn frame(model: &Model) {
    let area = Rect::new(0, 0, SIZE.0, SIZE.1);
    let mut buffer = Buffer::empty(area);
    view::draw(model, area, &mut buffer);
    std::hint::black_box(&buffer);
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
