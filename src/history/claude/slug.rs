//! The name of the folder that Claude Code keeps a project's conversations in.
//!
//! The path is normalised (NFC), then every UTF-16 code unit that is no ASCII letter or digit becomes `-`. A result longer than
//! 200 is cut there and gets `-` and a hash of the path. The rule loses information: a folder proves nothing, only the `cwd`
//! inside a conversation does.

use unicode_normalization::UnicodeNormalization;

/// Length at which a name is cut.
pub(super) const CUT: usize = 200;

/// The folder of a real path.
pub(super) fn slug(path: &str) -> String {
    let path: String = path.nfc().collect();
    let mut name = plain(&path);
    if name.len() > CUT {
        name.truncate(CUT);
        name.push('-');
        name.push_str(&base36(hash(&path)));
    }
    name
}

/// What every folder of a long path begins with, whatever hash the version had; `None` for a path whose name is not cut.
pub(super) fn long_prefix(path: &str) -> Option<String> {
    let path: String = path.nfc().collect();
    let name = plain(&path);
    (name.len() > CUT).then(|| format!("{}-", &name[..CUT]))
}

fn plain(path: &str) -> String {
    let letter =
        |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    path.encode_utf16().map(letter).collect()
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
    fn the_folders_of_known_paths() {
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
            assert_eq!(slug(path), name, "{path}");
            assert_eq!(long_prefix(path), None);
        }
        assert_eq!(slug(&long(197)), format!("-w-{}", "a".repeat(197)));
        assert_eq!(slug(&long(198)), format!("-w-{}-ipsd09", "a".repeat(197)));
        assert_eq!(long_prefix(&long(197)), None);
        assert_eq!(long_prefix(&long(198)), Some(format!("-w-{}-", "a".repeat(197))));
    }

    #[test]
    fn numbers_in_base_36() {
        for (number, text) in [(0, "0"), (35, "z"), (36, "10"), (u32::MAX, "1z141z3")] {
            assert_eq!(base36(number), text);
        }
    }
}
