//! The one line in tmux.conf: how it reads, and putting it in and taking it out without moving another byte.
//!
//! Ours is a line that starts with `run-shell`, holds `supervise --detach` and ends with the mark `# ait`, whatever the
//! path of the program in it. A line that was commented out is no longer ours.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{ServiceError, Start};

/// The end of our line in a file that was there before.
const MARK: &[u8] = b" # ait";
/// The end of our line in a file that we made: it goes when nothing else is left in it.
const MARK_MADE: &[u8] = b" # ait (made this file)";
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The line, without a mark and without a line end.
pub(super) fn line(start: &Start, file: &Path) -> Result<Vec<u8>, ServiceError> {
    let mut shell = b"exec env".to_vec();
    if start.environment.is_empty() {
        shell.truncate(b"exec".len());
    }
    for (name, value) in &start.environment {
        shell.push(b' ');
        shell.extend_from_slice(name.as_bytes());
        shell.push(b'=');
        shell.extend(shell_word(value.as_bytes()));
    }
    shell.push(b' ');
    shell.extend(shell_word(start.program.as_os_str().as_bytes()));
    shell.extend_from_slice(b" supervise --detach >/dev/null 2>&1");
    if shell.contains(&b'\n') || shell.contains(&b'\r') {
        return Err(ServiceError::LineEnd {
            what: "the path of ait or a variable".into(),
            path: file.into(),
        });
    }
    let mut line = b"run-shell -b \"".to_vec();
    for byte in shell {
        match byte {
            // run-shell expands formats
            b'#' => line.extend_from_slice(b"##"),
            b'\\' | b'"' | b'$' => line.extend_from_slice(&[b'\\', byte]),
            other => line.push(other),
        }
    }
    line.push(b'"');
    Ok(line)
}

/// A word of the shell: as it is where nothing in it means anything to a shell, else in single quotes.
fn shell_word(word: &[u8]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._+-@:,%".contains(b);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for &byte in word {
        if byte == b'\'' {
            out.extend_from_slice(b"'\\''");
        } else {
            out.push(byte);
        }
    }
    out.push(b'\'');
    out
}

/// Our lines in a file: the number of each, from 0, and its bytes without the line end.
pub(super) fn find(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes.split(|b| *b == b'\n').enumerate().filter(|(_, line)| is_ours(line))
}

/// The program a line of ours starts.
pub(super) fn program(line: &[u8]) -> Option<PathBuf> {
    let line = std::str::from_utf8(line.trim_ascii()).ok()?;
    let inside = line.split_once('"')?.1.rsplit_once('"')?.0;
    let mut shell = String::new();
    let mut letters = inside.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => shell.extend(letters.next()),
            '#' => {
                shell.push('#');
                letters.next_if_eq(&'#');
            }
            other => shell.push(other),
        }
    }
    let words = shlex::split(&shell)?;
    let at = words.iter().position(|word| word == "supervise")?;
    let program = words.get(at.checked_sub(1)?)?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(program.clone().into_bytes())))
}

/// A file that holds our line alone.
pub(super) fn alone(line: &[u8]) -> Vec<u8> {
    [line, MARK_MADE, b"\n"].concat()
}

/// `bytes` with our line in it, once. One that is there is put right where it stands; a new one goes to the end, or to the
/// beginning where the end would swallow it.
pub(super) fn with(bytes: &[u8], line: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut kept = false;
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len() + line.len() + MARK_MADE.len());
    if find(bytes).next().is_some() {
        let doubled = without_all_but_first(bytes);
        for piece in doubled.split_inclusive(|b| *b == b'\n') {
            let (text, end) = split_end(piece);
            if !kept && is_ours(text) {
                let mark = if text.trim_ascii().ends_with(MARK_MADE) { MARK_MADE } else { MARK };
                out.extend_from_slice(line);
                out.extend_from_slice(mark);
                out.extend_from_slice(end);
                kept = true;
            } else {
                out.extend_from_slice(piece);
            }
        }
        return Ok(out);
    }
    if continues(bytes) {
        if bytes.starts_with(BOM) {
            return Err("its last line ends with a backslash, and it starts with a byte order mark");
        }
        return Ok([line, MARK, b"\n", bytes].concat());
    }
    out.extend_from_slice(bytes);
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        out.extend_from_slice(&[line, MARK, b"\n"].concat());
    } else {
        // the last line end stays missing, so that taking the line out gives back the same bytes
        out.extend_from_slice(&[b"\n", line, MARK].concat());
    }
    Ok(out)
}

/// `bytes` without our lines; `None` when the file was made by us and nothing else is in it.
pub(super) fn without(bytes: &[u8]) -> Option<Vec<u8>> {
    let made = find(bytes).any(|(_, line)| line.trim_ascii().ends_with(MARK_MADE));
    let out = strip(bytes, 0);
    (!(made && out.is_empty())).then_some(out)
}

fn without_all_but_first(bytes: &[u8]) -> Vec<u8> {
    strip(bytes, 1)
}

/// `bytes` without our lines after the first `spare` of them.
fn strip(bytes: &[u8], spare: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut met = 0;
    for piece in bytes.split_inclusive(|b| *b == b'\n') {
        let (text, end) = split_end(piece);
        if !is_ours(text) {
            out.extend_from_slice(piece);
            continue;
        }
        met += 1;
        if met <= spare {
            out.extend_from_slice(piece);
        } else if end.is_empty() && out.ends_with(b"\n") {
            // we put that line end there when the file had none
            out.pop();
        }
    }
    out
}

fn split_end(piece: &[u8]) -> (&[u8], &[u8]) {
    piece.strip_suffix(b"\n").map_or((piece, &[][..]), |text| (text, b"\n"))
}

fn is_ours(line: &[u8]) -> bool {
    let line = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
    let holds = |part: &[u8]| line.windows(part.len()).any(|piece| piece == part);
    line.starts_with(b"run-shell ")
        && holds(b" supervise --detach")
        && (line.ends_with(MARK) || line.ends_with(MARK_MADE))
}

/// Whether a line put behind these bytes would belong to their last one.
fn continues(bytes: &[u8]) -> bool {
    let last = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let last = last.strip_suffix(b"\r").unwrap_or(last);
    last.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start(program: &str) -> Start {
        Start { program: program.into(), environment: vec![("TMUX_TMPDIR", "/run/u 1".into())], path: None }
    }

    fn made(program: &str) -> Vec<u8> {
        line(&start(program), Path::new("f")).unwrap()
    }

    #[test]
    fn the_line_quotes_for_shell_and_tmux() {
        assert_eq!(
            String::from_utf8(made("/opt/a$b \"c\" #d/ait")).unwrap(),
            r##"run-shell -b "exec env TMUX_TMPDIR='/run/u 1' '/opt/a\$b \"c\" ##d/ait' supervise --detach >/dev/null 2>&1""##
        );
        assert_eq!(
            program(&[made("/opt/a$b \"c\" #d/ait"), MARK.to_vec()].concat()),
            Some("/opt/a$b \"c\" #d/ait".into())
        );
        assert!(line(&start("/a\nb"), Path::new("f")).is_err());
    }

    #[test]
    fn an_older_path_and_doubles_become_one_line() {
        let old = with(b"set -g mouse on", &made("/old/ait")).unwrap();
        let twice = [&old[..], b"\n", &made("/older/ait"), MARK, b"\nset -g x 1\n"].concat();
        let one = with(&twice, &made("/new/ait")).unwrap();
        assert_eq!(find(&one).count(), 1);
        assert_eq!(program(find(&one).next().unwrap().1), Some("/new/ait".into()));
        assert_eq!(without(&one).unwrap(), b"set -g mouse on\nset -g x 1\n");
    }

    #[test]
    fn a_line_the_user_switched_off_is_theirs() {
        let off = [b"# ", &made("/a/ait")[..], MARK, b"\n"].concat();
        assert_eq!(find(&off).count(), 0);
        assert_eq!(without(&off).unwrap(), off);
    }

    #[test]
    fn a_continued_last_line_does_not_swallow_ours() {
        let bytes = b"set -g status-left \\\n";
        let out = with(bytes, &made("/a/ait")).unwrap();
        assert!(out.ends_with(bytes));
        assert_eq!(without(&out).unwrap(), bytes);
        assert!(with(&[BOM, bytes].concat(), &made("/a/ait")).is_err());
    }

    #[test]
    fn a_file_we_made_goes_with_its_line() {
        let file = alone(&made("/a/ait"));
        assert_eq!(without(&file), None);
        assert_eq!(with(&file, &made("/a/ait")).unwrap(), file);
        let more = [&file[..], b"set -g mouse on\n"].concat();
        assert_eq!(without(&more).unwrap(), b"set -g mouse on\n");
    }

    proptest! {
        #[test]
        fn in_and_out_gives_back_every_byte(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    &b"set -g mouse on"[..], b"\n", b"\r\n", b"\\", b"\\\n", b"\xef\xbb\xbf", b"\xff\x00", b" # ait",
                    b"run-shell 'x' # ait", b"%if 1", b"#", b"\"", b"\n\n",
                ]),
                0..12,
            )
        ) {
            let bytes: Vec<u8> = pieces.concat();
            if let Ok(once) = with(&bytes, &made("/a/ait")) {
                prop_assert_eq!(find(&once).count(), 1);
                let mut again = once.clone();
                for _ in 0..4 {
                    again = with(&again, &made("/a/ait")).unwrap();
                }
                prop_assert_eq!(&again, &once);
                prop_assert_eq!(without(&once).unwrap(), bytes.clone());
                let moved = with(&once, &made("/b/ait")).unwrap();
                prop_assert_eq!(find(&moved).count(), 1);
                prop_assert_eq!(without(&moved).unwrap(), bytes);
            }
        }
    }
}
