//! parse ∘ print ∘ parse = parse, for notifications, layouts and versions; and printing gives back the very text. What
//! `%output` values stand for is the same whether taken whole or in chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tmux_control::{Chunk, Layout, Notification, Version, chunks, unescape};

fuzz_target!(|data: &[u8]| {
    if let Ok(notification) = Notification::parse(data) {
        let printed = notification.to_line();
        assert_eq!(printed, data);
        assert_eq!(Notification::parse(&printed), Ok(notification));
    }
    // With the right checksum, which no one finds by trying.
    let text = [format!("{:04x},", Layout::checksum(data)).as_bytes(), data].concat();
    if let Ok(layout) = Layout::parse(&text) {
        assert_eq!(layout.to_string().as_bytes(), text);
    }
    if let Some(version) = Version::parse(data) {
        assert_eq!(Version::parse(version.to_string().as_bytes()), Some(version));
    }
    let (mut whole, mut parts, mut bad) = (Vec::new(), Vec::new(), 0);
    for chunk in chunks(data) {
        match chunk {
            Chunk::Text(text) => parts.extend_from_slice(text),
            Chunk::Byte(byte) => parts.push(byte),
            Chunk::Bad => {
                bad += 1;
                parts.push(b'\\');
            }
        }
    }
    let counted = unescape(data, &mut whole).map_or_else(|bad| bad.count, |()| 0);
    assert_eq!((whole, counted), (parts, bad));
});
