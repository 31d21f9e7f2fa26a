//! The plain stand-in: it shows a line, sleeps in the kernel until it is told something, and ends as it is told: by a line
//! typed into its pane, by a signal, or when its terminal goes. It talks to nobody, writes no file and starts no process.
//!
//! Lines it obeys: `exit N` · `die SIGNAL` · `print TEXT` · `title TEXT` · `window TEXT`; every other line is repeated.

use std::io::{self, BufRead, Write};

use nix::sys::signal::{SigSet, Signal};

use super::{Args, Exit, Failure};

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let Args { title, say, on_term, deaf, provider: _, words: _ } = args;
    if deaf {
        block(&[Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM])?;
    }
    if let Some(status) = on_term {
        exit_on_term(status)?;
    }
    if let Some(title) = title {
        show(&escape("2;", &title))?;
    }
    show(&format!("{}\n", say.as_deref().unwrap_or("stand-in agent, waiting")))?;
    for line in io::stdin().lock().lines() {
        // not text, or the terminal is gone: the loop below or the end of input decides
        let Ok(line) = line else { break };
        if let Some(exit) = obey(line.trim_end_matches('\r'))? {
            return Ok(exit);
        }
    }
    if deaf {
        // the terminal is gone, and this agent stays all the same
        return sleep_for_ever();
    }
    Ok(Exit::OK)
}

/// Does what one line says; an exit code when the line ends the agent.
fn obey(line: &str) -> Result<Option<Exit>, Failure> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "exit" => return Ok(Some(Exit::code(rest.parse().unwrap_or(0)))),
        "die" => die(rest)?,
        "print" => show(&format!("{rest}\n"))?,
        "title" => show(&escape("2;", rest))?,
        // the sequence shells use to name tmux's window
        "window" => show(&format!("\x1bk{}\x1b\\", plain(rest)))?,
        _ => show(&format!("> {line}\n"))?,
    }
    Ok(None)
}

pub(super) fn die(name: &str) -> Result<(), Failure> {
    let signal: Signal = format!("SIG{name}")
        .parse()
        .map_err(|_| Failure::new(Exit::USAGE, format!("no signal is called `{name}`")))?;
    // the runtime's own SIGSEGV and SIGBUS guard lets the first one pass and puts the default back
    for _ in 0..2 {
        nix::sys::signal::raise(signal).map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    }
    Ok(())
}

fn exit_on_term(status: u8) -> Result<(), Failure> {
    let term = block(&[Signal::SIGTERM])?;
    std::thread::spawn(move || {
        if term.wait().is_ok() {
            std::process::exit(i32::from(status));
        }
    });
    Ok(())
}

/// Blocks `signals` for this thread and the ones it starts.
pub(super) fn block(signals: &[Signal]) -> Result<SigSet, Failure> {
    let set: SigSet = signals.iter().copied().collect();
    set.thread_block().map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    Ok(set)
}

pub(super) fn sleep_for_ever() -> Result<Exit, Failure> {
    loop {
        std::thread::park();
    }
}

pub(super) fn escape(code: &str, text: &str) -> String {
    format!("\x1b]{code}{}\x07", plain(text))
}

/// Text that cannot end the sequence it stands in.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A terminal that went away is no failure: the end of input follows.
pub(super) fn show(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(wrong) if wrong.kind() != io::ErrorKind::BrokenPipe && wrong.raw_os_error() != Some(5) => {
            Err(wrong.into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
