//! The framer's laws: any cut of a stream gives the same events and the same end, and what is held between two pieces
//! is within the limits.
//!
//! The first four bytes choose the limits, the kind of client and how the rest is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tmux_control::{Decoder, Limits};

/// The longest closing guard, which may still come after a full body.
const GUARD: usize = 42;

fuzz_target!(|data: &[u8]| {
    let Some((&[line, block, kind, seed], stream)) = data.split_first_chunk::<4>() else { return };
    let limits = Limits { line: usize::from(line), block: 2 * usize::from(block) };
    let terminal = kind & 1 == 1;
    let whole = replay(decoder(terminal, limits), [stream], usize::MAX);
    let bound = limits.line.max(limits.block) + GUARD;
    assert_eq!(replay(decoder(terminal, limits), stream.chunks(1), bound), whole);
    assert_eq!(replay(decoder(terminal, limits), pieces(stream, seed), bound), whole);
});

fn decoder(terminal: bool, limits: Limits) -> Decoder {
    if terminal { Decoder::terminal(limits) } else { Decoder::new(limits) }
}

/// Pieces of lengths that vary with the seed.
fn pieces(stream: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut state) = (stream, u32::from(seed) + 1);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at((state >> 24) as usize % 48 % (rest.len() + 1));
        rest = after;
        Some(piece)
    })
}

/// All that a decoder says, as text.
fn replay<'a>(mut decoder: Decoder, pieces: impl IntoIterator<Item = &'a [u8]>, bound: usize) -> Vec<String> {
    let mut said = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event() {
            said.push(format!("{event:?}"));
        }
        assert!(decoder.held() <= bound, "{} bytes held of {bound}", decoder.held());
    }
    said.push(format!("{:?}", decoder.finish()));
    said
}
