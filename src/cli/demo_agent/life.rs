//! The life of a stand-in: one loop over keys, signals and what falls due, from its start to its end.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::asked::{self, Asked};
use super::claude::Claude;
use super::codex::Codex;
use super::face::{Below, Face};
use super::gemini::Gemini;
use super::hooks::Hooks;
use super::keys::{Key, Keys};
use super::manners::{self, Dialog, Manners};
use super::plain::{self, block, die, show};
use super::ways::{Answer, Doing, Event, Reason, Ways};
use super::{Exit, Failure, Kind, daemon, wrapper};
use crate::process;

/// Happenings that may wait to be looked at.
const WAITING: usize = 64;

/// How long a second Ctrl-C or Ctrl-D counts with the first.
const AGAIN: Duration = Duration::from_secs(1);

/// Signals that are looked at.
const HEARD: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGWINCH];

/// The process the user starts: the agent, or the script in front of it.
pub(super) fn front(kind: Kind, words: &[String]) -> Result<Exit, Failure> {
    let asked = asked::read(kind, words);
    if asked.version {
        show(&format!("{}\n", kind.version()))?;
        return Ok(Exit::OK);
    }
    let (home, cwd) = surroundings()?;
    match (kind, words) {
        (Kind::Codex, [first, ..]) if first == "app-server" => return daemon::serve(&home),
        _ => {}
    }
    let wrapped = kind == Kind::Gemini || manners::of(kind, &home, &cwd)?.node;
    if wrapped && !asked.print { wrapper::become_one(kind, words) } else { live(kind, words) }
}

/// Lives as `kind`, asked by `words`, to its end.
pub(super) fn live(kind: Kind, words: &[String]) -> Result<Exit, Failure> {
    let asked = asked::read(kind, words);
    let (home, cwd) = surroundings()?;
    let manners = manners::of(kind, &home, &cwd)?;
    if let (Some(status), false) = (manners.exit, asked.print) {
        return Ok(Exit::code(status));
    }
    let ways: Box<dyn Ways> = match kind {
        Kind::Claude => Box::new(Claude::new(&asked, &manners, &home, &cwd)?),
        Kind::Codex => Box::new(Codex::new(&asked, &manners, &home, &cwd)?),
        Kind::Gemini => Box::new(Gemini::new(&asked, &manners, &home, &cwd)?),
    };
    if asked.print { once(ways, &asked) } else { Life::begin(kind, ways, manners)?.run(asked.prompt) }
}

/// HOME and the working directory.
fn surroundings() -> io::Result<(PathBuf, PathBuf)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    Ok((home, std::env::current_dir()?))
}

/// One turn without a face; then, as a tool that is still running would, it stays until its input ends.
fn once(mut ways: Box<dyn Ways>, asked: &Asked) -> Result<Exit, Failure> {
    let hooks = Hooks::start(ways.commands(), Duration::ZERO);
    let fire = |ways: &dyn Ways, events: Vec<Event>| {
        for event in events {
            let environment = ways.hook_environment(event.name);
            hooks.fire(event, environment);
        }
    };
    let started = ways.started();
    fire(&*ways, started);
    let prompt = ways.submitted(asked.prompt.as_deref().unwrap_or("print"), "printed", Duration::ZERO);
    fire(&*ways, prompt.events);
    let answer = ways.answered("printed", None);
    ways.append(&(prompt.text + &answer.text))?;
    fire(&*ways, answer.events);
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let ended = ways.ended(Reason::Told);
    fire(&*ways, ended);
    hooks.finish();
    Ok(Exit::OK)
}

/// What the loop hears.
#[derive(Debug)]
enum Heard {
    Bytes(Vec<u8>),
    /// The terminal is gone.
    Closed,
    Signal(Signal),
    /// Where tmux shows us.
    Placed(String),
}

/// What falls due.
#[derive(Debug)]
enum Due {
    /// It is up.
    Up,
    /// The running turn asks for a permission.
    Ask,
    /// The running turn has its answer.
    Answer,
    /// This arrives in the conversation's file.
    Write(String),
}

/// Where it stands.
#[derive(Debug, PartialEq, Eq)]
enum Stand {
    Starting,
    /// At a dialog; whether another choice than the first is marked.
    Dialog(Dialog, bool),
    Up,
    Asking,
}

/// A prompt that was taken and is not answered yet.
#[derive(Debug)]
struct Turn {
    prompt: String,
    number: usize,
    length: Duration,
    asks: bool,
    background: Option<String>,
}

struct Life {
    kind: Kind,
    ways: Box<dyn Ways>,
    manners: Manners,
    face: Face,
    hooks: Hooks,
    heard: Receiver<Heard>,
    due: Vec<(Instant, Due)>,
    stand: Stand,
    composer: String,
    turns: VecDeque<Turn>,
    /// When Ctrl-C or Ctrl-D was last pressed.
    pressed: Option<Instant>,
    before: Option<Termios>,
    nested: Option<Child>,
}

impl Life {
    /// Takes the terminal and the signals.
    fn begin(kind: Kind, ways: Box<dyn Ways>, manners: Manners) -> Result<Life, Failure> {
        // for every thread that is started from here on
        let set = block(&HEARD)?;
        let (told, heard) = mpsc::sync_channel(WAITING);
        let signals = told.clone();
        std::thread::spawn(move || {
            while let Ok(signal) = set.wait() {
                if signals.send(Heard::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        let stdin = io::stdin();
        let before = if stdin.is_terminal() { tcgetattr(&stdin).ok() } else { None };
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            // a terminal that went away meanwhile is told of by a signal
            let _ = tcsetattr(&stdin, OptionalActions::Now, &raw);
        }
        let keys = told.clone();
        std::thread::spawn(move || read_keys(&keys));
        std::thread::spawn(move || {
            if let Some(place) = place() {
                let _ = told.send(Heard::Placed(place));
            }
        });
        let face = Face::new(ways.words(), manners.full_screen || ways.full_screen());
        face.open()?;
        let commands = if manners.no_hooks { Vec::new() } else { ways.commands() };
        let hooks = Hooks::start(commands, Duration::from_millis(manners.late_hook_ms));
        let composer = manners.draft.clone().unwrap_or_default();
        let mut life = Life {
            kind,
            ways,
            manners,
            face,
            hooks,
            heard,
            due: Vec::new(),
            stand: Stand::Starting,
            composer,
            turns: VecDeque::new(),
            pressed: None,
            before,
            nested: None,
        };
        life.after(life.manners.start_ms, Due::Up);
        Ok(life)
    }

    fn run(mut self, mut prompt: Option<String>) -> Result<Exit, Failure> {
        let mut keys = Keys::default();
        let mut early = Vec::new();
        loop {
            if self.stand == Stand::Up {
                if let Some(prompt) = prompt.take() {
                    self.submit(&prompt)?;
                }
                if !early.is_empty() {
                    let typed = std::mem::take(&mut early);
                    if let Some(exit) = self.press(&mut keys, &typed)? {
                        return Ok(exit);
                    }
                }
            }
            let next =
                self.due.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(n, (at, _))| (n, *at));
            let heard = match next {
                Some((_, at)) => self.heard.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let exit = match heard {
                Ok(Heard::Bytes(bytes)) if self.stand == Stand::Starting => {
                    early.extend(bytes);
                    None
                }
                Ok(Heard::Bytes(bytes)) => self.press(&mut keys, &bytes)?,
                Ok(Heard::Closed) => self.closed()?,
                Ok(Heard::Signal(Signal::SIGWINCH)) => {
                    self.face.draw()?;
                    None
                }
                Ok(Heard::Signal(signal)) => self.signalled(signal)?,
                Ok(Heard::Placed(place)) => {
                    self.ways.placed(place);
                    None
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((n, _)) = next {
                        let (_, due) = self.due.swap_remove(n);
                        self.fall_due(due)?;
                    }
                    None
                }
                Err(RecvTimeoutError::Disconnected) => return plain::sleep_for_ever(),
            };
            if let Some(exit) = exit {
                return Ok(exit);
            }
        }
    }

    fn after(&mut self, milliseconds: u64, due: Due) {
        self.due.push((Instant::now() + Duration::from_millis(milliseconds), due));
    }

    fn fall_due(&mut self, due: Due) -> Result<(), Failure> {
        match due {
            Due::Up => match self.manners.dialog.or_else(|| self.elsewhere()) {
                Some(dialog) => {
                    self.stand = Stand::Dialog(dialog, false);
                    let lines = self.ways.dialog(dialog);
                    self.face.put(Below::Question(lines))
                }
                None => self.up(),
            },
            Due::Ask => self.ask(),
            Due::Answer => self.answer(),
            Due::Write(text) => Ok(self.ways.append(&text)?),
        }
    }

    fn elsewhere(&self) -> Option<Dialog> {
        self.ways.open_elsewhere().then_some(Dialog::Elsewhere)
    }

    /// It is up: what it is, what it remembers, its first hook.
    fn up(&mut self) -> Result<(), Failure> {
        self.stand = Stand::Up;
        let words = self.ways.words();
        let mut lines = words.banner.clone();
        let earlier = self.ways.earlier();
        for (at, prompt) in earlier.iter().enumerate() {
            lines.push(format!("{} {}", words.mark, prompt.replace('\n', " ")));
            lines.push(format!("{} {}", words.bullet, told(at + 1, prompt)));
        }
        if !earlier.is_empty() {
            lines.push(format!("  ⎿  {} earlier turns", earlier.len()));
        }
        lines.push(String::new());
        self.face.say(&lines)?;
        self.show(Doing::Idle)?;
        self.composer_drawn()?;
        self.start_below()?;
        let events = self.ways.started();
        self.fire(events);
        Ok(())
    }

    /// The processes its manners want below it.
    fn start_below(&mut self) -> Result<(), Failure> {
        if self.manners.nested {
            let mut nested = Command::new(std::env::current_exe()?);
            nested.arg0(self.kind.name()).args(["-p", "nested"]).envs(self.ways.hook_environment(""));
            nested.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            self.nested = Some(nested.spawn()?);
        }
        if let Some(path) = &self.manners.leaves {
            let mut left = Command::new("setsid");
            left.args(["sleep", "1000000"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            fs::write(path, left.spawn()?.id().to_string())?;
        }
        Ok(())
    }

    fn fire(&self, events: Vec<Event>) {
        for event in events {
            let environment = self.ways.hook_environment(event.name);
            self.hooks.fire(event, environment);
        }
    }

    fn show(&mut self, doing: Doing) -> Result<(), Failure> {
        let text = self.ways.shows(doing);
        show(&text)
    }

    fn composer_drawn(&mut self) -> Result<(), Failure> {
        let text = self.composer.clone();
        match self.turns.len() {
            0 => self.face.put(Below::Composer(text)),
            taken => self.face.put(Below::Working(text, taken - 1)),
        }
    }

    fn write(&mut self, text: String) -> Result<(), Failure> {
        if self.manners.late_flush_ms == 0 {
            return Ok(self.ways.append(&text)?);
        }
        self.after(self.manners.late_flush_ms, Due::Write(text));
        Ok(())
    }

    fn press(&mut self, keys: &mut Keys, bytes: &[u8]) -> Result<Option<Exit>, Failure> {
        for key in keys.read(bytes) {
            if let Some(exit) = self.key(key)? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    fn key(&mut self, key: Key) -> Result<Option<Exit>, Failure> {
        match self.stand {
            Stand::Starting => Ok(None),
            Stand::Dialog(dialog, moved) => self.key_at_dialog(dialog, moved, &key),
            Stand::Asking => self.key_at_question(&key),
            Stand::Up => self.key_at_composer(key),
        }
    }

    fn key_at_dialog(&mut self, dialog: Dialog, moved: bool, key: &Key) -> Result<Option<Exit>, Failure> {
        match (key, dialog) {
            (Key::Other, _) => self.stand = Stand::Dialog(dialog, true),
            (Key::Enter, Dialog::Login) => {}
            // its first choice is to leave
            (Key::Enter, Dialog::Trust | Dialog::Hooks) if self.kind == Kind::Claude && !moved => {
                return self.leave(1).map(Some);
            }
            (Key::Enter, Dialog::Trust | Dialog::Hooks | Dialog::Directory) => self.up()?,
            (Key::Text(text), Dialog::Elsewhere) if text == "r" && self.elsewhere().is_none() => self.up()?,
            (Key::Interrupt | Key::Escape | Key::EndOfInput, _) => return self.leave(1).map(Some),
            _ => {}
        }
        Ok(None)
    }

    fn key_at_question(&mut self, key: &Key) -> Result<Option<Exit>, Failure> {
        match key {
            Key::Enter => {
                self.stand = Stand::Up;
                self.show(Doing::Working)?;
                self.composer_drawn()?;
                self.after(self.manners.turn_ms, Due::Answer);
            }
            Key::Text(text) if matches!(text.as_str(), "1" | "y") => {
                return self.key_at_question(&Key::Enter);
            }
            Key::Escape | Key::Interrupt => {
                self.stand = Stand::Up;
                self.interrupt()?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn key_at_composer(&mut self, key: Key) -> Result<Option<Exit>, Failure> {
        match key {
            Key::Text(text) | Key::Paste(text) => self.composer += &text,
            Key::Backspace => drop(self.composer.pop()),
            Key::Clear => self.composer.clear(),
            Key::Other => return Ok(None),
            Key::Enter if self.manners.missed_enters > 0 && !self.composer.is_empty() => {
                self.manners.missed_enters -= 1;
                return Ok(None);
            }
            Key::Enter => {
                let prompt = std::mem::take(&mut self.composer);
                if let Some(exit) = self.take(&prompt)? {
                    return Ok(Some(exit));
                }
                return Ok(None);
            }
            Key::Escape | Key::Interrupt if !self.turns.is_empty() => return self.interrupt().map(|()| None),
            Key::Escape => return Ok(None),
            Key::Interrupt | Key::EndOfInput => {
                let again = self.pressed.is_some_and(|at| at.elapsed() < AGAIN);
                if again || (self.ways.leaves_at_once() && self.composer.is_empty()) {
                    return self.leave(0).map(Some);
                }
                self.pressed = Some(Instant::now());
                self.composer.clear();
                self.composer_drawn()?;
                let name = if key == Key::Interrupt { "C" } else { "D" };
                self.face.hint(&format!("  Press Ctrl-{name} again to exit"))?;
                return Ok(None);
            }
        }
        self.composer_drawn()?;
        Ok(None)
    }

    /// A line was sent: a word for the stand-in itself, or a prompt.
    fn take(&mut self, line: &str) -> Result<Option<Exit>, Failure> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "/exit" | "/quit" => return self.leave(0).map(Some),
            "exit" if rest.parse::<u8>().is_ok() => return self.leave(rest.parse().unwrap_or(0)).map(Some),
            "die" => {
                die(rest)?;
                let signal = format!("SIG{rest}").parse().unwrap_or(Signal::SIGTERM);
                return fall_by(signal);
            }
            "/clear" | "/new" => {
                let events = self.ways.cleared();
                self.fire(events);
                self.show(Doing::Idle)?;
            }
            "title" => show(&plain::escape("2;", rest))?,
            "window" => show(&format!("\x1bk{}\x1b\\", plain::plain(rest)))?,
            "print" => self.face.say(&[rest.to_owned()])?,
            "" => {}
            _ => self.submit(line)?,
        }
        self.composer_drawn()?;
        Ok(None)
    }

    /// A prompt: its turn begins, or it waits for the turn that runs.
    fn submit(&mut self, line: &str) -> Result<(), Failure> {
        let milliseconds = directive(line, "ms").and_then(|text| text.parse().ok());
        let number = self.ways.earlier().len() + 1;
        let length = Duration::from_millis(milliseconds.unwrap_or(self.manners.turn_ms));
        let taken = self.ways.submitted(line, &told(number, line), length);
        self.write(taken.text)?;
        self.fire(taken.events);
        let turn = Turn {
            prompt: line.to_owned(),
            number,
            length,
            asks: directive(line, "ask").is_some(),
            background: directive(line, "background").map(str::to_owned).or(self.manners.background.clone()),
        };
        let words = self.ways.words();
        self.face.say(&[format!("{} {}", words.mark, line.replace('\n', " "))])?;
        self.turns.push_back(turn);
        if self.turns.len() == 1 { self.begin_turn() } else { self.composer_drawn() }
    }

    /// The first of the open turns runs from now on.
    fn begin_turn(&mut self) -> Result<(), Failure> {
        let Some(turn) = self.turns.front() else {
            self.show(Doing::Idle)?;
            return self.composer_drawn();
        };
        let at = Instant::now() + turn.length;
        self.due.push((at, if turn.asks { Due::Ask } else { Due::Answer }));
        self.show(Doing::Working)?;
        self.composer_drawn()
    }

    fn ask(&mut self) -> Result<(), Failure> {
        self.stand = Stand::Asking;
        let events = self.ways.asked();
        self.fire(events);
        self.show(Doing::Asking)?;
        let lines = self.ways.words().asking.iter().map(|line| (*line).to_owned()).collect();
        self.face.put(Below::Question(lines))
    }

    fn answer(&mut self) -> Result<(), Failure> {
        let Some(turn) = self.turns.pop_front() else { return Ok(()) };
        let words = self.ways.words();
        let answer = told(turn.number, &turn.prompt);
        let taken = self.ways.answered(&answer, turn.background.as_deref());
        self.write(taken.text)?;
        let mut lines = vec![format!("{} {answer}", words.bullet)];
        if let Some(task) = &turn.background {
            lines.push(format!("  ⎿  Running in the background: {task}"));
        }
        lines.push(words.finished.to_owned());
        self.face.say(&lines)?;
        self.fire(taken.events);
        self.begin_turn()
    }

    /// The running turn ends without an answer and without a hook.
    fn interrupt(&mut self) -> Result<(), Failure> {
        self.due.retain(|(_, due)| !matches!(due, Due::Answer | Due::Ask));
        if self.turns.pop_front().is_some() {
            self.ways.interrupted();
        }
        self.face.say(&["  ⎿  Interrupted".to_owned()])?;
        self.begin_turn()
    }

    fn is_deaf(&self, signal: Signal) -> bool {
        self.manners.deaf.iter().any(|name| signal.as_str() == format!("SIG{name}"))
    }

    /// The terminal is gone. Who does not hear of it stays all the same.
    fn closed(&mut self) -> Result<Option<Exit>, Failure> {
        if self.is_deaf(Signal::SIGHUP) {
            return Ok(None);
        }
        let answer = self.ways.meets_the_end_of_its_terminal();
        self.meet(answer)
    }

    fn signalled(&mut self, signal: Signal) -> Result<Option<Exit>, Failure> {
        if self.is_deaf(signal) {
            return Ok(None);
        }
        if signal == Signal::SIGTERM
            && let Some(path) = &self.manners.kill_on_term
        {
            kill_named_in(path);
        }
        let answer = self.ways.meets(signal);
        self.meet(answer)
    }

    fn meet(&mut self, answer: Answer) -> Result<Option<Exit>, Failure> {
        match answer {
            Answer::Ignore => Ok(None),
            Answer::Die(signal) => {
                self.ways.gone();
                fall_by(signal)
            }
            Answer::Exit(status) => self.end(Reason::Told, status).map(Some),
        }
    }

    /// The user leaves.
    fn leave(&mut self, status: u8) -> Result<Exit, Failure> {
        // what is still on its way to the file arrives
        for (_, due) in std::mem::take(&mut self.due) {
            if let Due::Write(text) = due {
                self.ways.append(&text)?;
            }
        }
        self.end(Reason::Left, status)
    }

    fn end(&mut self, reason: Reason, status: u8) -> Result<Exit, Failure> {
        if matches!(self.stand, Stand::Up | Stand::Asking) {
            let events = self.ways.ended(reason);
            self.fire(events);
        }
        let none = Hooks::start(Vec::new(), Duration::ZERO);
        std::mem::replace(&mut self.hooks, none).finish();
        let farewell = if reason == Reason::Left { self.ways.farewell() } else { Vec::new() };
        self.face.close(&farewell)?;
        self.ways.gone();
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        Ok(Exit::code(status))
    }
}

/// What is answered: its number and how many turns before it are remembered.
fn told(number: usize, prompt: &str) -> String {
    let prompt = prompt.replace('\n', " ");
    format!("turn {number}, {} earlier: {prompt}", number.saturating_sub(1))
}

/// `[[name=value]]` or `[[name]]` in a prompt.
fn directive<'a>(prompt: &'a str, name: &str) -> Option<&'a str> {
    let rest = prompt.split("[[").skip(1).find_map(|part| part.strip_prefix(name))?;
    let (inside, _) = rest.split_once("]]")?;
    Some(inside.strip_prefix('=').unwrap_or(inside))
}

/// Dies of `signal`, which was blocked.
pub(super) fn fall_by<T>(signal: Signal) -> Result<T, Failure> {
    let set: nix::sys::signal::SigSet = [signal].into_iter().collect();
    set.thread_unblock().map_err(|errno| Failure::of(Exit::FAILED, &errno))?;
    die(signal.as_str().trim_start_matches("SIG"))?;
    Err(Failure::new(Exit::FAILED, format!("{signal} did not end it")))
}

/// Kills the process whose pid stands in the file.
fn kill_named_in(path: &Path) {
    let pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    if let Some(process) = pid.and_then(process::identify) {
        let _ = process::signal(&process, process::Signal::KILL);
    }
}

fn read_keys(told: &SyncSender<Heard>) {
    let mut bytes = [0; 4096];
    loop {
        let heard = match io::stdin().lock().read(&mut bytes) {
            Ok(0) => Heard::Closed,
            Ok(read) => Heard::Bytes(bytes[..read].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => Heard::Closed,
        };
        let last = matches!(heard, Heard::Closed);
        if told.send(heard).is_err() || last {
            return;
        }
    }
}

/// Where tmux shows this pane, as tmux itself says.
fn place() -> Option<String> {
    let pane = std::env::var("TMUX_PANE").ok()?;
    std::env::var_os("TMUX")?;
    let mut tmux = Command::new("tmux");
    tmux.args(["display-message", "-p", "-t", &pane, "#{session_name}:#{window_id}.#{pane_id}"]);
    let told = tmux.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let place = String::from_utf8(told.stdout).ok()?.trim_end().to_owned();
    (told.status.success() && !place.is_empty()).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_may_carry_directives() {
        assert_eq!(directive("do it [[ms=40]] [[ask]]", "ms"), Some("40"));
        assert_eq!(directive("do it [[ms=40]] [[ask]]", "ask"), Some(""));
        assert_eq!(directive("do it", "ask"), None);
    }
}
