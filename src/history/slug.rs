//! The names of the folders that providers keep a project's conversations in.
//!
//! All of them lose information: a folder proves nothing, only the `cwd` inside a conversation does.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// Length at which Claude Code cuts a name.
const CUT: usize = 200;

/// Every UTF-16 code unit that is no ASCII letter or digit as `-`: Qwen Code's rule.
pub(super) fn dashed(path: &str) -> String {
    let letter =
        |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    path.encode_utf16().map(letter).collect()
}

/// Claude Code's rule: normalised (NFC), then dashed. A result longer than 200 is cut there and gets `-` and a hash of the
/// path.
pub(super) fn claude(path: &str) -> String {
    let path: String = path.nfc().collect();
    let mut name = dashed(&path);
    if name.len() > CUT {
        name.truncate(CUT);
        name.push('-');
        name.push_str(&base36(hash(&path)));
    }
    name
}

/// What Claude Code's folder of a long path begins with, whatever hash the version had; `None` for a name that is not cut.
pub(super) fn claude_long(path: &str) -> Option<String> {
    let path: String = path.nfc().collect();
    let name = dashed(&path);
    (name.len() > CUT).then(|| format!("{}-", &name[..CUT]))
}

/// pi's rule: the first separator dropped, the others and colons as `-`, between two pairs of dashes.
pub(super) fn pi(path: &str) -> String {
    let path = path.strip_prefix(['/', '\\']).unwrap_or(path);
    format!("--{}--", path.replace(['/', '\\', ':'], "-"))
}

/// The SHA-256 of the path, in hexadecimal: the earlier rule of Gemini CLI and Qwen Code.
pub(super) fn sha256(path: &str) -> String {
    Sha256::digest(path.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        // writing to a string never fails
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// `h = h * 31 + unit` in 32 bits, without its sign.
fn hash(path: &str) -> u32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    path.encode_utf16().fold(0, step).unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claudes_folders() {
        let long = |count| format!("/w/{}", "a".repeat(count));
        for (path, name) in [
            ("/home/u/my.app", "-home-u-my-app"),
            ("/home/u/my_app", "-home-u-my-app"),
            ("/home/u/my app", "-home-u-my-app"),
            ("/home/u/.claude/worktrees/x", "-home-u--claude-worktrees-x"),
            ("/srv/caf\u{e9}", "-srv-caf-"),
            ("/srv/cafe\u{301}", "-srv-caf-"),
            ("/srv/\u{1f680}x", "-srv---x"),
            ("/srv/\u{65e5}\u{672c}", "-srv---"),
            ("/", "-"),
            ("/Home/U", "-Home-U"),
        ] {
            assert_eq!(claude(path), name, "{path}");
            assert_eq!(claude_long(path), None);
        }
        assert_eq!(claude(&long(197)), format!("-w-{}", "a".repeat(197)));
        assert_eq!(claude(&long(198)), format!("-w-{}-ipsd09", "a".repeat(197)));
        assert_eq!(claude_long(&long(197)), None);
        assert_eq!(claude_long(&long(198)), Some(format!("-w-{}-", "a".repeat(197))));
    }

    #[test]
    fn the_folders_of_others() {
        assert_eq!(dashed("/srv/cafe\u{301}"), "-srv-cafe-", "not normalised");
        assert_eq!(pi("/home/u/my.app"), "--home-u-my.app--");
        assert_eq!(pi("C:\\x\\y"), "--C--x-y--");
        assert_eq!(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn numbers_in_base_36() {
        for (number, text) in [(0, "0"), (35, "z"), (36, "10"), (u32::MAX, "1z141z3")] {
            assert_eq!(base36(number), text);
        }
    }
}
