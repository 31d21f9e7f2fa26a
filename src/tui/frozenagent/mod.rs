//! The viewer: the stand-in of a frozen agent in its pane, or the list of all frozen records.
//!
//! `model` what it knows, `update` what becomes of it, `view` how it looks. Here is the loop, which alone touches the world: it
//! waits for keys, the store's folder, signals and what it started itself, sleeps in the kernel otherwise, and draws after
//! each. It has a coordinator restore what it is told to, and writes to the store only to drop a record that was confirmed.
//!
//! A stand-in is what is left of an agent on the screen, so nothing it can show ends it: a store that cannot be read, a record
//! or a capture that is gone and a tmux that does not answer are each said on the page.

pub mod model;
pub mod update;
pub mod view;

mod files;
mod pane;

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};

use crossterm::event::{Event as Input, EventStream, MouseEventKind};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use crate::coordinator::{End, Told};
use crate::lifecycle::host;
use crate::record::{PaneId, RecordId, RestoreMode, Verb};
use crate::store::{Origin, PATIENCE, Paths, Store, System};
use crate::tui::screen::Screen;
use crate::watch::{Touched, Watcher};
use model::{Model, Own};
use pane::OwnPane;
use update::{Act, Event, Heard, update};

/// What the loop started itself and not heard of yet, at most.
const INBOX: usize = 16;

/// Why the viewer cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ViewerError {
    /// There is no terminal to draw on.
    #[error("standard output is not a terminal")]
    NoTerminal,
    /// The terminal, or the system's signals, failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// How the viewer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By its key.
    Quit,
    /// By this signal, or because its terminal went (as by SIGHUP).
    Signal(i32),
}

/// What the loop started itself and is told of.
enum Word {
    Event(Event),
    /// Whether the pane is the record's stand-in and is marked so; unknown if tmux did not say.
    Ready(Option<bool>),
}

/// Shows a record, or the list, until it is told to end. The terminal is given back before this returns.
///
/// # Errors
/// [`ViewerError`]: there is no terminal, or it failed.
pub async fn run(paths: Paths, record: Option<RecordId>) -> Result<Ended, ViewerError> {
    let io = |what| move |source| ViewerError::Io { what, source };
    let mut signals = Signals::listen().map_err(io("listen for signals"))?;
    let pane = OwnPane::find();
    let store = Store::open(paths);
    // listening before looking: nothing falls in between
    let mut watch = StoreWatch::new(store.paths());
    let mut screen = Screen::take().map_err(|source| match source.kind() {
        io::ErrorKind::NotConnected => ViewerError::NoTerminal,
        _ => ViewerError::Io { what: "take the terminal", source },
    })?;
    let mut keys = EventStream::new();
    let size = crossterm::terminal::size().unwrap_or((80, 24));
    let coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let own = pane.as_ref().map(|pane| PaneId(pane.id.0));
    let mut model = Model::new(size, coloured, own);
    let (tell, mut inbox) = mpsc::channel(INBOX);
    let mut viewer = Viewer { store, pane, record, tell, ready: Ready::Unsaid };

    if let Some(id) = record {
        let heard = viewer.hear();
        let now = heard.records.iter().flatten().find(|record| record.id == id).cloned();
        let acts = update::open(&mut model, id, now);
        viewer.act_all(&mut model, &mut screen, acts);
        viewer.take(&mut model, &mut screen, Event::Records(heard));
    } else {
        let heard = viewer.hear();
        viewer.take(&mut model, &mut screen, Event::Records(heard));
    }
    if let Some(why) = &watch.deaf {
        model.message = format!("changes are not seen: {why}");
    }
    let ended = loop {
        draw(&mut screen, &model).map_err(io("draw"))?;
        viewer.say_ready();
        let goes_on = tokio::select! {
            signal = signals.next() => break Ended::Signal(signal),
            () = watch.touched() => {
                // a server that did not answer before is asked again when something happens
                viewer.ready.retry();
                let heard = viewer.hear();
                viewer.take(&mut model, &mut screen, Event::Records(heard))
            }
            word = inbox.recv() => match word {
                Some(Word::Event(event)) => viewer.take(&mut model, &mut screen, event),
                Some(Word::Ready(told)) => {
                    viewer.ready = if told.is_some() { Ready::Said } else { Ready::Unanswered };
                    if told == Some(true) { viewer.take(&mut model, &mut screen, Event::StandsIn) } else { true }
                }
                None => true,
            },
            key = keys.next() => match key {
                Some(Ok(input)) => {
                    viewer.ready.retry();
                    event(input).is_none_or(|event| viewer.take(&mut model, &mut screen, event))
                }
                // no terminal is left to draw on
                Some(Err(_)) | None => break Ended::Signal(SignalKind::hangup().as_raw_value()),
            },
        };
        if !goes_on {
            break Ended::Quit;
        }
    };
    drop(keys);
    drop(screen);
    if let (Ended::Quit, Some(pane), Some(id)) = (ended, &viewer.pane, record) {
        pane.close(id).await;
    }
    Ok(ended)
}

fn draw(screen: &mut Screen, model: &Model) -> io::Result<()> {
    screen.terminal().draw(|frame| {
        let area = frame.area();
        if let Some(place) = view::draw(model, area, frame.buffer_mut()) {
            frame.set_cursor_position(place);
        }
    })?;
    Ok(())
}

/// What an input of the terminal is to the model.
fn event(input: Input) -> Option<Event> {
    match input {
        Input::Key(key) => Some(Event::Key(key)),
        Input::Paste(text) => Some(Event::Paste(text)),
        Input::Resize(columns, rows) => Some(Event::Resize(columns, rows)),
        Input::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollDown => Some(Event::Wheel(1)),
            MouseEventKind::ScrollUp => Some(Event::Wheel(-1)),
            _ => None,
        },
        Input::FocusGained | Input::FocusLost => None,
    }
}

/// Whether the pane was marked as a stand-in that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// To be said after the next frame.
    Unsaid,
    /// Being said.
    Saying,
    /// tmux did not answer; said again when something happens.
    Unanswered,
    /// tmux said whether it is one, and marked it if so.
    Said,
}

impl Ready {
    fn retry(&mut self) {
        if *self == Ready::Unanswered {
            *self = Ready::Unsaid;
        }
    }
}

/// The hands of the loop.
struct Viewer {
    store: Store,
    pane: Option<OwnPane>,
    /// The record it was started for.
    record: Option<RecordId>,
    tell: mpsc::Sender<Word>,
    ready: Ready,
}

impl Viewer {
    /// Takes an event into the model and does what follows; false if that is the end.
    fn take(&mut self, model: &mut Model, screen: &mut Screen, event: Event) -> bool {
        let acts = update(model, event);
        self.act_all(model, screen, acts)
    }

    fn act_all(&mut self, model: &mut Model, screen: &mut Screen, acts: Vec<Act>) -> bool {
        acts.into_iter().all(|act| self.act(model, screen, act))
    }

    fn act(&mut self, model: &mut Model, screen: &mut Screen, act: Act) -> bool {
        let event = match act {
            Act::Quit => return false,
            Act::Capture(id) => {
                let record = model.open.as_ref().and_then(|open| open.record.clone());
                let (kept, text) = files::capture(self.store.paths(), id, record.as_deref());
                Event::Capture { id, kept, text }
            }
            Act::Transcript(id, path) => Event::Transcript(id, files::conversation(&path)),
            Act::Copy(text) => {
                let told = screen.copy(&text).map_err(|error| error.to_string());
                let Some(pane) = self.pane.clone() else {
                    return self.take(model, screen, Event::Copied(told.map(|()| "the terminal".into())));
                };
                let tell = self.tell.clone();
                tokio::spawn(async move {
                    let done = match pane.copy(&text).await {
                        Ok(()) => Ok("the tmux buffer".to_owned()),
                        Err(error) => told.map(|()| "the terminal".into()).map_err(|_| error.to_string()),
                    };
                    // the loop has ended: nobody is left to tell
                    let _ = tell.send(Word::Event(Event::Copied(done))).await;
                });
                return true;
            }
            Act::Drop(id) => Event::Dropped(id, self.drop_record(id, model.own)),
            Act::Restore(id, mode) => {
                let tell = self.tell.clone();
                tokio::spawn(async move {
                    let done = restore(id, mode).await;
                    // the loop has ended, or was replaced: nobody is left to tell
                    let _ = tell.send(Word::Event(Event::Restored(id, done))).await;
                });
                return true;
            }
        };
        self.take(model, screen, event)
    }

    /// Drops a record if, under the locks, it still may be dropped from here.
    fn drop_record(&self, id: RecordId, own: Own) -> Result<(), String> {
        let system = System::here();
        let done = self.store.update(&system.facts(), PATIENCE, |batch| {
            let record = batch.records().get(id).ok_or("the store has no such record")?;
            if let Some(why) = model::no_drop(record, own) {
                return Err(why);
            }
            batch.step(Some(id), &Verb::Drop { nonce: None }).map(drop).map_err(|refused| refused.to_string())
        });
        done.map_err(|error| error.to_string())?
    }

    fn hear(&self) -> Heard {
        match self.store.read() {
            Ok(snapshot) => {
                let records = Some(snapshot.records.shared().cloned().collect());
                match (&snapshot.origin, snapshot.bad.first()) {
                    // a store that is not there is no proof that a record is gone
                    (Origin::Missing, _) if self.record.is_some() => {
                        let path = self.store.paths().store.display();
                        Heard { records: None, trouble: Some(format!("{path} is not there")) }
                    }
                    (Origin::Previous(fault), _) => Heard { records, trouble: Some(fault.to_string()) },
                    (Origin::Store | Origin::Missing, Some(bad)) => {
                        let trouble = format!("broken record on line {}: {}", bad.line, bad.reason);
                        Heard { records, trouble: Some(trouble) }
                    }
                    (Origin::Store | Origin::Missing, None) => Heard { records, trouble: None },
                }
            }
            Err(error) => Heard { records: None, trouble: Some(error.to_string()) },
        }
    }

    /// After a frame: marks the pane, once it is known to be the record's stand-in.
    fn say_ready(&mut self) {
        let (Some(pane), Some(id), Ready::Unsaid) = (self.pane.clone(), self.record, self.ready) else {
            return;
        };
        self.ready = Ready::Saying;
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let told = pane.say_ready(id).await;
            // the loop has ended: nobody is left to tell
            let _ = tell.send(Word::Ready(told)).await;
        });
    }
}

/// Has a coordinator bring an agent back, in a process of its own; what it says at its end.
async fn restore(id: RecordId, mode: RestoreMode) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let arguments = ["restore", "--mode", mode.word(), &id.to_string()].map(OsString::from);
    let mut hosted = host::spawn(&program, arguments).map_err(|error| error.to_string())?;
    while let Some(told) = hosted.next().await {
        if let Told::Outcome { outcome, .. } = told {
            let words = [outcome.word.as_str(), outcome.detail.as_str()];
            let said = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ");
            return if outcome.end == End::Done { Ok(said) } else { Err(said) };
        }
    }
    Err("its coordinator ended without a word".to_owned())
}

/// Hears of changes of the store.
struct StoreWatch {
    watcher: Option<Watcher>,
    stores: [PathBuf; 2],
    /// Why nothing is heard.
    deaf: Option<String>,
}

impl StoreWatch {
    /// Of the store and, where its path is a link, of that.
    fn new(paths: &Paths) -> StoreWatch {
        let stores = [paths.files().store, paths.store.clone()];
        let watcher = Watcher::new().and_then(|mut watcher| {
            for folder in stores.iter().filter_map(|store| store.parent()) {
                watcher.add(folder)?;
            }
            Ok(watcher)
        });
        match watcher {
            Ok(watcher) => StoreWatch { watcher: Some(watcher), stores, deaf: None },
            Err(error) => StoreWatch { watcher: None, stores, deaf: Some(error.to_string()) },
        }
    }

    /// Returns when the store may have changed. Cancel safe.
    async fn touched(&mut self) {
        let Some(watcher) = &mut self.watcher else { return pending().await };
        loop {
            match watcher.next().await {
                Touched::All => return,
                Touched::Path(path) if self.stores.iter().any(|store| Path::new(store) == path) => return,
                Touched::Path(_) => {}
            }
        }
    }
}

/// The signals that end it.
struct Signals([Signal; 4]);

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals([
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::quit())?,
        ]))
    }

    /// The number of the next one. Cancel safe.
    async fn next(&mut self) -> i32 {
        let Signals([terminate, hangup, interrupt, quit]) = self;
        let kind = tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = hangup.recv() => SignalKind::hangup(),
            _ = interrupt.recv() => SignalKind::interrupt(),
            _ = quit.recv() => SignalKind::quit(),
        };
        kind.as_raw_value()
    }
}
