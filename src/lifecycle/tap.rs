//! The tap of a pane: a process of ours behind tmux's `pipe-pane` that reads what an agent writes and keeps what it tells its
//! terminal of its turn (OSC 7501, 9;4 and 133). Off unless `[signals] tap` says so, and only on panes started here. With `tracking` it
//! guesses as well: one that writes nothing for a while waits, as far as anybody can tell.
//!
//! tmux keeps in memory what a pipe's reader does not take: so one thread only drains, and what it finds it leaves for another,
//! which writes. Where that one lags, what it has not taken yet is replaced by what came later. A pipe that is the user's own is
//! left alone, and one that the user closed is not opened again.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::termios::{LocalModes, tcgetattr};

use super::perform::World;
use crate::coordinator::Started;
use crate::provider::{Catalog, Pane};
use crate::record::{Origin, Record, RecordId};
use crate::store::{Store, turns};
use crate::tmux::guarded::{self, Epoch, Guard, Outcome, Token};
use crate::tmux::{OneShot, Unanswered};
use crate::turn::terminal::{Scanner, Sign};
use crate::turn::{Moment, Observation, Source, State};

/// How much is read at once, in bytes.
const PIECE: usize = 64 * 1024;
/// How long an agent writes nothing before that is taken for a sign. Chosen, not measured.
const QUIET: Duration = Duration::from_secs(10);
/// What a terminal that understands OSC 7501 answers: `ESC ] 7501 ; ? ESC \`, as tmux takes bytes.
const ANSWER: &str = "1b 5d 37 35 30 31 3b 3f 1b 5c";
/// How long an answer is offered to a program that starts, and how often: it takes it only while it asks.
const OFFERED: (Duration, Duration) = (Duration::from_secs(3), Duration::from_millis(50));

/// What the user wants of taps (`[signals]`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Panes that are started here have one.
    pub tap: bool,
    /// Providers that nothing else tells of are answered that OSC 7501 is understood.
    pub answer: bool,
    /// When there was output is told too.
    pub timing: bool,
}

/// Opens the tap of an agent of this record that was just launched there, if the user wants one and the pane has no pipe. Where that
/// fails the agent goes on without.
pub async fn open(world: &World, record: &Record, at: &Started) {
    if !world.signals.tap || record.ait.origin != Some(Origin::Started) {
        return;
    }
    match opened(world, record, at).await {
        Ok(Outcome::Done | Outcome::NotMet) => {}
        Ok(outcome) => tracing::info!(?outcome, "what an agent tells its terminal is not read"),
        Err(why) => tracing::info!(%why, "what an agent tells its terminal is not read"),
    }
}

async fn opened(world: &World, record: &Record, at: &Started) -> Result<Outcome, Unanswered> {
    let server = OneShot::new(&at.server.socket)?;
    let pane = at.pane.to_string();
    let mut words = vec![world.program.to_string_lossy().into_owned(), "tap".into(), record.id.to_string()];
    if world.signals.timing {
        words.push("--timing".into());
    }
    if world.signals.answer && world.catalog.only_answers(&record.agent_kind) {
        let tty = server.run(["display-message", "-p", "-t", &pane, "#{pane_tty}"]).await?;
        let tty = String::from_utf8_lossy(&tty).trim().to_owned();
        let process = at.process.pid.to_string();
        let place = [
            ("--socket", at.server.socket.clone()),
            ("--pane", pane),
            ("--process", process),
            ("--tty", tty),
        ];
        words.extend(place.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
    }
    let refused = |words: &str| Unanswered::Refused { words: words.into() };
    let line = line(&words).ok_or_else(|| refused("a path cannot stand in it"))?;
    let life = Epoch { pid: at.server.pid, started_at: at.server.started_at.unwrap_or_default() };
    let guard = Guard::new(tmux_control::PaneId(at.pane.0), life).process(at.process.pid).unpiped();
    let token = Token::random().map_err(|error| refused(&error.to_string()))?;
    guarded::pipe_pane(guard, &line, token).printed().run(&server).await
}

/// The line of a shell that starts it, with the places of this process: the server may have others.
fn line(words: &[String]) -> Option<String> {
    let mut all = vec!["exec".to_owned(), "env".to_owned()];
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        if let Ok(value) = std::env::var(name) {
            all.push(format!("{name}={value}"));
        }
    }
    all.extend(words.iter().cloned());
    let line = shlex::try_join(all.iter().map(String::as_str)).ok()?;
    // what tmux would put other words and the time for
    let line = line.replace('#', "##").replace('%', "%%");
    (!line.contains('\n')).then_some(line)
}

/// What was found and is not written yet, the latest of each source.
struct Found {
    all: Mutex<Left>,
    more: Condvar,
}

struct Left {
    found: BTreeMap<Source, Observation>,
    /// The pane is gone.
    over: bool,
    /// The program spoke OSC 7501.
    spoke: bool,
    /// When it last wrote anything, or since when that is seen: what it wrote before it had a tap nobody knows.
    wrote: Instant,
    /// It has written nothing for [`QUIET`] since.
    quiet: bool,
}

impl Found {
    fn new() -> Self {
        let left =
            Left { found: BTreeMap::new(), over: false, spoke: false, wrote: Instant::now(), quiet: false };
        Self { all: Mutex::new(left), more: Condvar::new() }
    }

    fn held(&self) -> MutexGuard<'_, Left> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a program that starts is answered through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answering {
    /// The server.
    pub socket: String,
    /// The pane.
    pub pane: String,
    /// What tmux started in it: nobody else is typed to.
    pub process: i32,
    /// Its terminal.
    pub tty: String,
}

/// Reads what a pane writes until it is gone, and tells what it finds of the record's turn.
///
/// # Errors
/// What a pane writes cannot be read.
pub fn run(
    store: &Store,
    id: RecordId,
    catalog: &Catalog,
    answering: Option<&Answering>,
    timing: bool,
    mut from: impl Read,
) -> io::Result<()> {
    let found = Found::new();
    std::thread::scope(|threads| {
        threads.spawn(|| write(store, id, &found));
        if let Some(answering) = answering {
            threads.spawn(|| answer(answering, &found));
        }
        if timing {
            threads.spawn(|| time(&found));
        }
        let drained = drain(store, id, catalog, &found, &mut from);
        found.held().over = true;
        found.more.notify_all();
        drained
    })
}

fn drain(
    store: &Store,
    id: RecordId,
    catalog: &Catalog,
    found: &Found,
    from: &mut impl Read,
) -> io::Result<()> {
    let snapshot = store.read().ok();
    let kind = snapshot.as_ref().and_then(|all| Some(all.records.get(id)?.agent_kind.clone()));
    let kind = kind.unwrap_or_default();
    let mut scanner = Scanner::default();
    let mut pane = Pane::default();
    let mut piece = vec![0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = Moment::from(jiff::Timestamp::now());
        let mut seen = Vec::new();
        scanner.feed(&piece[..read], |sign| {
            // titles are told by tmux itself
            if !matches!(sign, Sign::Title(_)) {
                seen.extend(pane.sign(catalog, &kind, sign, now));
            }
        });
        let mut held = found.held();
        held.wrote = Instant::now();
        if std::mem::take(&mut held.quiet) {
            seen.push(Observation::of(Source::Timing, None, now, "output"));
        }
        let news = !seen.is_empty();
        for one in seen {
            held.spoke |= one.source == Source::Osc7501 && one.state.is_some();
            held.found.insert(one.source, one);
        }
        drop(held);
        if news {
            found.more.notify_all();
        }
    }
}

/// Says when nothing has been written for [`QUIET`], and goes on saying it while it is so: what nobody renews is no evidence.
fn time(found: &Found) {
    let mut held = found.held();
    let mut said = None;
    while !held.over {
        let due = match said.filter(|_| held.quiet) {
            Some(said) => said + turns::RENEWED,
            None => held.wrote + QUIET,
        };
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            held = found.more.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        held.quiet = true;
        said = Some(Instant::now());
        let now = Moment::from(jiff::Timestamp::now());
        let quiet = Observation::of(Source::Timing, Some(State::Waiting), now, "quiet");
        held.found.insert(Source::Timing, quiet);
        found.more.notify_all();
    }
}

/// Writes what is found, until the pane is gone.
fn write(store: &Store, id: RecordId, found: &Found) {
    let mut written: BTreeMap<Source, Observation> = BTreeMap::new();
    loop {
        let mut held = found.held();
        while held.found.is_empty() && !held.over {
            held = found.more.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        let (all, over) = (std::mem::take(&mut held.found), held.over);
        drop(held);
        for (source, seen) in all {
            let before = written.get(&source);
            let same = before.is_some_and(|before| {
                (before.state, before.need) == (seen.state, seen.need)
                    && before.at.age(seen.at) < turns::RENEWED
            });
            if !same && tell(store, id, &seen) {
                written.insert(source, seen);
            }
        }
        if over {
            return;
        }
    }
}

/// Whether it is written.
fn tell(store: &Store, id: RecordId, seen: &Observation) -> bool {
    let Ok(snapshot) = store.read() else { return false };
    // the launch it is of: the pane may have been given another since
    let Some(record) = snapshot.records.get(id) else { return false };
    turns::observe(store.paths(), &turns::Whose::of(record), seen).is_ok()
}

/// Answers a program that asks, while it starts: until it speaks, or the time is up. An answer is only given where the terminal has
/// echo off, else it would be seen.
fn answer(answering: &Answering, found: &Found) {
    let begun = std::time::Instant::now();
    let Ok(binary) = crate::tmux::binary() else { return };
    while begun.elapsed() < OFFERED.0 {
        let held = found.held();
        let (held, _) = found.more.wait_timeout(held, OFFERED.1).unwrap_or_else(PoisonError::into_inner);
        if held.over || held.spoke {
            return;
        }
        drop(held);
        if !echoes(Path::new(&answering.tty)) {
            let Answering { socket, pane, process, .. } = answering;
            let is_it = format!("#{{==:#{{pane_id}} #{{pane_pid}},{pane} {process}}}");
            let keys = format!("send-keys -t {pane} -H {ANSWER}");
            let mut send = std::process::Command::new(&binary);
            send.args(["-S", socket, "if-shell", "-F", "-t", pane, &is_it, &keys]);
            let null = std::process::Stdio::null;
            // an answer that does not come is one that is not understood
            let _ = send.stdin(null()).stdout(null()).stderr(null()).status();
        }
    }
}

/// Whether a terminal shows what is typed; one that cannot be looked at counts so.
fn echoes(tty: &Path) -> bool {
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(tty) = OpenOptions::new().read(true).custom_flags(flags).open(tty) else { return true };
    tcgetattr(&tty).map_or(true, |modes| modes.local_modes.contains(LocalModes::ECHO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tmux_and_a_shell_would_read_otherwise() {
        let words = ["/opt/my apps/ait".to_owned(), "tap".to_owned(), "a#b%1".to_owned()];
        let line = line(&words).unwrap();
        assert!(
            line.starts_with("exec env ") && line.ends_with("'/opt/my apps/ait' tap 'a##b%%1'"),
            "{line}"
        );
    }
}
