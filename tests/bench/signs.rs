//! What it costs to find the signs in what an agent writes, beside the floor: looking for the byte every sequence begins with.

use std::hint::black_box;
use std::path::Path;

use ait::turn::terminal::Scanner;
use criterion::{Criterion, Throughput};

/// Bytes of each stream.
const SIZE: usize = 4 << 20;
/// As a pipe hands them out.
const CHUNK: usize = 16 * 1024;

pub(crate) fn benches(criterion: &mut Criterion) {
    for (name, stream) in streams() {
        let mut group = criterion.benchmark_group(format!("signs, {name}"));
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function("scanner", |bench| {
            bench.iter(|| {
                let mut scanner = Scanner::default();
                let mut found = 0usize;
                for chunk in stream.chunks(CHUNK) {
                    scanner.feed(black_box(chunk), |_| found += 1);
                }
                found
            });
        });
        group.bench_function("floor: memchr of ESC", |bench| {
            bench.iter(|| {
                let chunks = stream.chunks(CHUNK);
                chunks.map(|chunk| memchr::memchr_iter(0x1b, black_box(chunk)).count()).sum::<usize>()
            });
        });
        group.finish();
    }
}

fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let text =
        b"a line of ninety columns as a build prints it, without any colour in it, and so on and on\r\n";
    let coloured = b"\x1b[32m+\x1b[0m \x1b[1msrc/main.rs\x1b[0m \x1b[38;5;244m12\x1b[0m\r\n";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/providers");
    let recorded = |provider: &str| {
        let mut names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        let wanted = |path: &&std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(provider) && name.ends_with(".raw")
        };
        names.iter().filter(wanted).flat_map(|path| std::fs::read(path).unwrap()).collect::<Vec<u8>>()
    };
    let (claude, codex) = (recorded("claude"), recorded("codex"));
    [("plain text", &text[..]), ("colours", coloured), ("claude", &claude), ("codex", &codex)]
        .map(|(name, piece)| (name, piece.iter().copied().cycle().take(SIZE).collect()))
        .into()
}
