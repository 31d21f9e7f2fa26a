//! The terminal, taken for a face and given back whatever ends it: a key, a signal, an error or a panic.
//!
//! Taken are: the alternate screen, raw mode, the wheel (and no other motion of the mouse), bracketed paste, the cursor.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute, style};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};

/// Buttons and wheel, told in the form that knows no limit of columns (xterm modes 1000 and 1006).
const WHEEL_ON: &str = "\x1b[?1000h\x1b[?1006h";
/// The same taken back.
const WHEEL_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// How long a face has to leave by itself once its terminal is gone.
const FAREWELL: Duration = Duration::from_millis(200);

/// Whether the terminal is ours now; there is one terminal to a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal of ours until this goes.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is none on standard output, or it refuses; it is given back as it was.
    pub fn take() -> io::Result<Screen> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "standard output is not a terminal"));
        }
        restore_on_panic();
        end_with_terminal()?;
        // whether colours are wanted is the model's to say, and a key's to change
        style::force_color_output(true);
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let screen = || {
            execute!(
                io::stdout(),
                EnterAlternateScreen,
                EnableBracketedPaste,
                style::Print(WHEEL_ON),
                cursor::Hide
            )?;
            Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))
        };
        screen().map(|terminal| Screen { terminal }).inspect_err(|_| give_back())
    }

    /// What is drawn on.
    pub fn terminal(&mut self) -> &mut Terminal<CrosstermBackend<BufWriter<Stdout>>> {
        &mut self.terminal
    }

    /// Gives text to the terminal's clipboard (OSC 52); whether it takes it is not told.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Ends the process, as SIGHUP would, once the terminal on standard input is gone.
///
/// The reader of keys never returns from a terminal that has hung up (it reads end of file for ever), and nothing else of this
/// thread is heard then, signals included: so a thread of its own waits in the kernel for that alone.
fn end_with_terminal() -> io::Result<()> {
    let wait = || {
        let stdin = io::stdin();
        let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
        loop {
            match poll(&mut terminal, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
                Ok(_) if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => break,
                Ok(_) => {}
            }
        }
        // the way of SIGHUP has its moment to give things back
        std::thread::park_timeout(FAREWELL);
        std::process::exit(129);
    };
    std::thread::Builder::new().name("terminal".into()).spawn(wait).map(drop)
}

/// Once, and as far as the terminal lets us: what cannot be written to a terminal that is gone need not be.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            style::Print(WHEEL_OFF),
            DisableBracketedPaste,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// The words of a panic are for the user's own screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}
