//! Bytes per second on every recorded stream, beside two others on the same bytes in the same run:
//!
//! - `floor`: splitting into lines with memchr, which any parser must do;
//! - `events`: this crate, events taken out and looked at;
//! - `decoded`: this crate, `%output` values unescaped too, which is what the peer does;
//! - `peer`: lines split with memchr and parsed with libtmux 0.1.2, without framing and blocks.
//!
//! At the end a table gives the best rate of each and how many times the peer's rate `decoded` has.
//!
//!     cargo bench --manifest-path parser/benches/Cargo.toml [-- NAME]

use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use tmux_control::{Decoder, Event, Limits, Notification, unescape};

/// What a pipe gives at once.
const PIECE: usize = 64 * 1024;

struct Stream {
    name: String,
    bytes: Vec<u8>,
}

const CONTENDERS: [(&str, fn(&mut Bench, &[u8])); 4] =
    [("floor", Bench::floor), ("events", Bench::events), ("decoded", Bench::decoded), ("peer", Bench::peer)];

/// What a long-lived client keeps from line to line.
struct Bench {
    decoder: Decoder,
    written: Vec<u8>,
}

impl Bench {
    fn floor(&mut self, stream: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', stream) {
            black_box(&stream[start..end]);
            start = end + 1;
        }
    }

    fn events(&mut self, stream: &[u8]) {
        for piece in stream.chunks(PIECE) {
            self.decoder.push(piece);
            while let Some(event) = self.decoder.next_event() {
                black_box(&event);
            }
        }
        black_box(self.decoder.finish());
    }

    fn decoded(&mut self, stream: &[u8]) {
        for piece in stream.chunks(PIECE) {
            self.decoder.push(piece);
            while let Some(event) = self.decoder.next_event() {
                if let Event::Notification(
                    Notification::Output { value, .. } | Notification::ExtendedOutput { value, .. },
                ) = &event
                {
                    self.written.clear();
                    black_box(unescape(value, &mut self.written)).ok();
                    black_box(&self.written);
                }
                black_box(&event);
            }
        }
        black_box(self.decoder.finish());
    }

    fn peer(&mut self, stream: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', stream) {
            libtmux::control::__fuzz_parse_control_line(black_box(&stream[start..end]));
            start = end + 1;
        }
    }
}

/// The recorded streams, and three longer ones made of them.
fn streams() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/control-mode");
    let mut streams: Vec<Stream> = std::fs::read_dir(&folder)
        .expect("the recorded streams")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ctl"))
        .map(|path| Stream {
            name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
            bytes: std::fs::read(&path).expect("a stream"),
        })
        .collect();
    streams.sort_by(|one, other| one.name.cmp(&other.name));
    let long = |name: &str, of: &str| {
        let bytes: Vec<u8> = streams
            .iter()
            .filter(|stream| stream.name.starts_with(of) && !stream.name.ends_with("HEAD"))
            .flat_map(|stream| &stream.bytes)
            .copied()
            .collect();
        Stream { name: name.to_owned(), bytes: bytes.repeat((4 << 20) / bytes.len()) }
    };
    let made = [long("4M-flood", "07-"), long("4M-busy", "12-"), long("4M-quiet", "04-")];
    streams.extend(made);
    streams
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(300))
        .sample_size(10)
        .configure_from_args();
    let best: RefCell<Vec<(String, usize, [f64; 4])>> = RefCell::new(Vec::new());
    for stream in streams() {
        best.borrow_mut().push((stream.name.clone(), stream.bytes.len(), [f64::INFINITY; 4]));
        let mut group = criterion.benchmark_group(&stream.name);
        group.throughput(Throughput::Bytes(stream.bytes.len() as u64));
        for (place, (name, run)) in CONTENDERS.into_iter().enumerate() {
            let mut bench = Bench { decoder: Decoder::new(Limits::default()), written: Vec::new() };
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|rounds| {
                    let started = Instant::now();
                    for _ in 0..rounds {
                        run(&mut bench, black_box(&stream.bytes));
                    }
                    let took = started.elapsed();
                    let each = took.as_secs_f64() / rounds as f64;
                    if let Some((.., best)) = best.borrow_mut().last_mut() {
                        best[place] = best[place].min(each);
                    }
                    took
                });
            });
        }
        group.finish();
    }
    print_table(&best.into_inner());
    criterion.final_summary();
}

fn print_table(best: &[(String, usize, [f64; 4])]) {
    println!("\nbest rates in MB/s; ratio: decoded against peer");
    println!("{:<34} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}", "stream", "bytes", "floor", "events", "decoded", "peer", "ratio");
    let mut least: Option<(f64, &str)> = None;
    for (name, bytes, [floor, events, decoded, peer]) in best {
        if !peer.is_finite() || !decoded.is_finite() {
            continue;
        }
        let rate = |seconds: &f64| *bytes as f64 / seconds / 1e6;
        let ratio = peer / decoded;
        println!(
            "{name:<34} {bytes:>8} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {ratio:>6.2}x",
            rate(floor), rate(events), rate(decoded), rate(peer)
        );
        if least.is_none_or(|(least, _)| ratio < least) {
            least = Some((ratio, name));
        }
    }
    if let Some((ratio, name)) = least {
        println!("least ratio: {ratio:.2}x on {name}");
    }
}
