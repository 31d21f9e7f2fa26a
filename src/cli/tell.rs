//! `ait tell`: one line to terminals of the user's, as a notification of their own, or to the desktop; what the supervisor runs
//! for `[notify] terminal` and `[notify] desktop`.
//!
//! The line comes on standard input. A terminal that takes nothing now is passed over, never waited for. A desktop that does not
//! answer is waited for until the supervisor ends us.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use notify_rust::Notification;
use rustix::fs::OFlags;

#[cfg(not(target_os = "macos"))]
use super::block_on_any;
use super::{Exit, Failure};

/// The longest line, in bytes.
const LONGEST: u64 = 1024;

/// Write a line to terminals, or tell it to the desktop.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// To terminals, by which sequence
    #[arg(long, value_enum, required_unless_present = "desktop", requires = "ttys")]
    terminal: Option<Sequence>,
    /// To the desktop
    #[arg(long, conflicts_with_all = ["terminal", "ttys"])]
    desktop: bool,
    /// The terminals
    #[arg(value_name = "TTY")]
    ttys: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sequence {
    /// `ESC ] 9 ; text BEL`.
    Osc9,
    /// `ESC ] 777 ; notify ; title ; text BEL`.
    Osc777,
}

impl Sequence {
    /// The sequence of a line. It begins with a word, so that no terminal takes it for a number of its own (OSC 9;4 is progress).
    fn of(self, line: &str) -> Vec<u8> {
        let line: String = line.chars().filter(|c| !c.is_control() && *c != ';').collect();
        match self {
            Self::Osc9 => format!("\x1b]9;ait: {line}\x07"),
            Self::Osc777 => format!("\x1b]777;notify;ait;{line}\x07"),
        }
        .into_bytes()
    }
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let mut line = String::new();
    std::io::stdin().take(LONGEST).read_to_string(&mut line)?;
    let Some(terminal) = args.terminal else { return desktop(line.trim()).map(|()| Exit::OK) };
    let sequence = terminal.of(line.trim());
    let told = args.ttys.iter().filter(|tty| tell(tty, &sequence).is_ok()).count();
    Ok(if told > 0 { Exit::OK } else { Exit::FAILED })
}

/// Shows it on the desktop. The line is the notification's summary: of a body some desktops obey markup.
fn desktop(line: &str) -> Result<(), Failure> {
    let mut note = Notification::new();
    note.appname("ait").summary(line);
    #[cfg(target_os = "macos")]
    let shown = note.show().map(drop);
    #[cfg(not(target_os = "macos"))]
    let shown = block_on_any(async { note.show_async().await.map(drop) })?;
    shown.map_err(|why| Failure::new(Exit::UNAVAILABLE, format!("the desktop does not take it: {why}")))
}

/// Writes it in one go to a terminal of this user's, and to nothing else.
fn tell(tty: &Path, sequence: &[u8]) -> std::io::Result<()> {
    let refused = |why: &str| Err(std::io::Error::other(why.to_owned()));
    if !tty.as_os_str().as_bytes().starts_with(b"/dev/") {
        return refused("it is no device");
    }
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let mut file = OpenOptions::new().write(true).custom_flags(flags).open(tty)?;
    let meta = file.metadata()?;
    let ours = meta.file_type().is_char_device() && meta.uid() == rustix::process::getuid().as_raw();
    if !ours || !rustix::termios::isatty(&file) {
        return refused("it is no terminal of this user's");
    }
    if file.write(sequence)? == sequence.len() { Ok(()) } else { refused("it did not take it whole") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_sequence_whatever_is_in_it() {
        let line = "cart\u{1b}]0;x\u{7} (claude)\u{9c} needs input";
        assert_eq!(Sequence::Osc9.of(line), b"\x1b]9;ait: cart]0x (claude) needs input\x07");
        assert_eq!(Sequence::Osc777.of("a;b"), b"\x1b]777;notify;ait;ab\x07");
    }

    #[test]
    fn only_a_terminal_is_written_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(tell(file.path(), b"x").is_err());
        assert!(tell(Path::new("/dev/null"), b"x").is_err());
        assert_eq!(std::fs::read(file.path()).unwrap(), b"");
    }
}
