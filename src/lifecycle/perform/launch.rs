//! Starts a restored agent: in its stand-in's pane, or in a new one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use super::{Performer, ready};
use crate::coordinator::place::{self, Known, Place, Stamped};
use crate::coordinator::{Around, Launch, Launched, Started};
use crate::lifecycle::root::marked_root;
use crate::lifecycle::server::{NotStarted, new_session};
use crate::lifecycle::{adopt, exec, tap};
use crate::process::{self, ProcessId};
use crate::record::{Liveness, PaneId, Record, Records, ServerEpoch, WindowId, launch_id};
use crate::tmux;
use crate::tmux::guarded::{self, Epoch, Guard, Outcome, Token};
use crate::tmux::listing::{self, ListError};
use crate::tmux::places::{self, Made, NotMade, Tenant, Where};
use crate::tmux::{OneShot, Unanswered};
use crate::world::rows::Snapshot;

/// The word for a stand-in's pane that is no longer its.
const PANE_CHANGED: &str = "pane_changed";
/// How often a place is looked for again that could not be had.
const TRIES: usize = 4;
/// How often one that another was quicker to take: of many that start at once, one goes on at each try.
const TRIES_OF_MANY: usize = 100;

/// Nothing was started, in a word and what was seen.
fn not(word: &str, seen: impl Into<String>) -> Launched {
    Launched::Not { word: word.to_owned(), seen: seen.into() }
}

/// Whether another was quicker: tmux refuses a window's index and a session's name that are there by now.
fn is_taken(refused: &Launched) -> bool {
    match refused {
        Launched::Not { seen, .. } => seen.contains("in use") || seen.contains("duplicate session"),
        _ => false,
    }
}

impl Performer<'_> {
    /// Starts the agent. One command of tmux does it; what goes before only looks.
    pub(super) async fn launch(&mut self, launch: &Launch) -> Launched {
        // the folder may have been put right a moment ago
        let _ = self.read();
        let Some(record) = self.record.clone() else { return not("no_record", "its record is gone") };
        let mut last = not("no_place", "no place was found");
        for tried in 0..TRIES_OF_MANY {
            if tried >= TRIES && !is_taken(&last) {
                break;
            }
            last = match self.launch_once(&record, launch).await {
                Ok(launched) => {
                    if let Launched::Started(at) = &launched {
                        tap::open(self.world, &record, at).await;
                    }
                    return launched;
                }
                Err(again) => again,
            };
        }
        last
    }

    /// One try; `Err` when the place was taken meanwhile and nothing was started.
    async fn launch_once(&self, record: &Record, launch: &Launch) -> Result<Launched, Launched> {
        let socket = ready::sockets(record).into_iter().next().unwrap_or_default();
        let server = match OneShot::new(&socket) {
            Ok(server) => server,
            Err(error) => return Ok(not("no_tmux", error.to_string())),
        };
        let snapshot = match listing::snapshot(&server).await {
            Ok(snapshot) => snapshot,
            Err(ListError::Unanswered(Unanswered::NoServer { .. })) => {
                let launched = self.start_server(&server, record, launch).await;
                // another one has started it meanwhile, and its session
                return if is_taken(&launched) { Err(launched) } else { Ok(launched) };
            }
            Err(error) => return Ok(not("server_unknown", error.to_string())),
        };
        let epoch = match adopt::epoch(&server).await {
            Ok(epoch) => epoch,
            Err(error) => return Ok(not("server_unknown", error.to_string())),
        };
        let same = record.ait.server.as_ref().is_some_and(|own| own.is_same_life(&epoch));
        let own_lives = record.ait.server.as_ref().is_some_and(|own| {
            !own.started.is_empty() && process::liveness(&own.process()) == Liveness::Alive
        });
        if !same && own_lives {
            return Ok(not("server_unknown", "its server lives, and another one answers on its socket"));
        }
        let known = self.sessions(&server, &snapshot, &epoch).await;
        match place::choose(record, &snapshot, &known, same, launch.session.as_deref()) {
            Place::StandIn(pane) => {
                match self.respawn(&server, &epoch, pane, record, launch).await {
                    // somebody else lives in its pane by now: a window of its own
                    Launched::Not { word, .. } if word == PANE_CHANGED => {
                        let mut others = snapshot.clone();
                        others.panes.retain(|row| row.id != pane);
                        let mut elsewhere = record.clone();
                        elsewhere.ait.window_id = None;
                        let place = place::choose(&elsewhere, &others, &known, same, None);
                        self.in_new(&server, &epoch, &place, record, launch).await
                    }
                    launched => Ok(launched),
                }
            }
            Place::Beside { pane, before, window } => {
                match self.make(&server, &epoch, &Where::Beside { pane, before }, record, launch).await {
                    // no room beside it: a window of its own
                    Launched::Not { .. } => {
                        let mut elsewhere = record.clone();
                        elsewhere.ait.window_id = None;
                        let place = place::choose(&elsewhere, &snapshot, &known, same, None);
                        self.in_new(&server, &epoch, &place, record, launch).await
                    }
                    launched => {
                        lay_out(&server, window, record).await;
                        Ok(launched)
                    }
                }
            }
            place @ (Place::Window { .. } | Place::Session { .. }) => {
                self.in_new(&server, &epoch, &place, record, launch).await
            }
        }
    }

    async fn in_new(
        &self,
        server: &OneShot,
        epoch: &ServerEpoch,
        place: &Place,
        record: &Record,
        launch: &Launch,
    ) -> Result<Launched, Launched> {
        let at = match place {
            Place::Window { session, index } => Where::Window(*session, *index),
            Place::Session { name, index } => Where::Session { name, index: *index, size: size(record) },
            Place::StandIn(_) | Place::Beside { .. } => return Ok(not("no_place", "no place was found")),
        };
        match self.make(server, epoch, &at, record, launch).await {
            // taken meanwhile, as a rule
            refused @ Launched::Not { .. } => Err(refused),
            launched => Ok(launched),
        }
    }

    async fn respawn(
        &self,
        server: &OneShot,
        epoch: &ServerEpoch,
        pane: tmux_control::PaneId,
        record: &Record,
        launch: &Launch,
    ) -> Launched {
        let Some(started_at) = epoch.started_at else {
            return not("server_unknown", "it does not say when it started");
        };
        let guard = Guard::new(pane, Epoch { pid: epoch.pid, started_at });
        let words = self.words(record, launch, false);
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let folder = exec::folder_of(record);
        let act = Token::random().and_then(|token| {
            guarded::respawn_agent(guard, record.id, &mark(record, launch), &words, Some(&folder), token)
        });
        let act = match act {
            Ok(act) => act.printed(),
            Err(wrong) => return not("not_launched", wrong.to_string()),
        };
        match act.run_told(server).await {
            Ok((Outcome::Done, answer)) => match guarded::process_told(&answer) {
                Some(pid) => Launched::Started(Box::new(Started {
                    pane: PaneId(pane.0),
                    process: identified(pid),
                    server: epoch.clone(),
                    around: None,
                })),
                None => Launched::Unknown("tmux did not say which process it started".to_owned()),
            },
            Ok((Outcome::NotMet, _)) => not(PANE_CHANGED, "its pane is no longer its stand-in's"),
            Ok((Outcome::Refused(words), _)) => not("refused", words.to_str_lossy().into_owned()),
            Ok((Outcome::Unknown, _)) => Launched::Unknown("no proof that it was done".to_owned()),
            Err(error) => Launched::Unknown(error.to_string()),
        }
    }

    async fn make(
        &self,
        server: &OneShot,
        epoch: &ServerEpoch,
        at: &Where<'_>,
        record: &Record,
        launch: &Launch,
    ) -> Launched {
        let Some(started_at) = epoch.started_at else {
            return not("server_unknown", "it does not say when it started");
        };
        let words = self.words(record, launch, true);
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let (mark, folder, variables) = surroundings(record, launch);
        let tenant = tenant(record, &mark, &words, &folder, &variables);
        let made = places::make(server, Epoch { pid: epoch.pid, started_at }, at, &tenant).await;
        let plain = tenant.is_plain(at);
        self.started(server, made, Some(epoch).filter(|_| !plain), record).await
    }

    /// Nobody serves the socket: a server is started, unless the record's own still lives without its socket.
    async fn start_server(&self, server: &OneShot, record: &Record, launch: &Launch) -> Launched {
        let lives = |own: &ServerEpoch| process::liveness(&own.process()) != Liveness::Gone;
        let this_boot = process::boot_id().unwrap_or_default();
        if record.ait.server.as_ref().is_some_and(|own| own.boot_id == this_boot && lives(own)) {
            return not("server_unreachable", "its server lives and its socket is gone");
        }
        let words = self.words(record, launch, true);
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let (mark, folder, variables) = surroundings(record, launch);
        let tenant = tenant(record, &mark, &words, &folder, &variables);
        let name = launch.session.as_deref().unwrap_or(&record.session);
        let name = if name.is_empty() { "agents" } else { name };
        let at = Where::Session { name, index: record.ait.window_index, size: size(record) };
        let words = match places::starting(&at, &tenant) {
            Ok(words) => words,
            Err(error) => return not("not_launched", error.to_string()),
        };
        let made = match new_session(server.socket(), &words).await {
            Ok((answer, _)) => places::told(&answer),
            Err(NotStarted::Unanswered(error)) => Err(error.into()),
            Err(NotStarted::Unknown { why, .. }) => return not("server_unknown", why),
            // it may have started and not said so: whoever lists it finds the mark
            Err(error @ NotStarted::Refused { .. }) => return Launched::Unknown(error.to_string()),
        };
        self.started(server, made, None, record).await
    }

    async fn started(
        &self,
        server: &OneShot,
        made: Result<Made, NotMade>,
        epoch: Option<&ServerEpoch>,
        record: &Record,
    ) -> Launched {
        let made = match made {
            Ok(made) => made,
            Err(NotMade::Value(wrong)) => return not("not_launched", wrong.to_string()),
            Err(NotMade::OtherLife) => return not("server_changed", "the server was started anew meanwhile"),
            Err(NotMade::Unanswered(Unanswered::Refused { words })) => {
                return not("refused", words.to_str_lossy().into_owned());
            }
            Err(error @ (NotMade::Unanswered(_) | NotMade::Untold)) => {
                return Launched::Unknown(error.to_string());
            }
        };
        let epoch = match epoch {
            Some(epoch) => epoch.clone(),
            None => match adopt::epoch(server).await {
                Ok(epoch) => epoch,
                Err(error) => return Launched::Unknown(error.to_string()),
            },
        };
        if !record.session_variables("").is_empty() {
            // a session that was made by one plain command has its window's name from tmux
            also(server, &places::rename(&made.window.to_string(), &record.window)).await;
        }
        let target = made.session.to_string();
        let session = server.run(["display-message", "-p", "-t", target.as_str(), "#{session_name}"]).await;
        let session = session.map(|name| name.trim_end().to_str_lossy().into_owned()).unwrap_or_default();
        Launched::Started(Box::new(Started {
            pane: PaneId(made.pane.0),
            process: identified(made.pid),
            server: epoch,
            around: Some(Around {
                session,
                window_id: WindowId(made.window.0),
                index: made.index,
                window: record.window.clone(),
            }),
        }))
    }

    /// `ait exec …` with the agent's own words.
    fn words(&self, record: &Record, launch: &Launch, new: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.world.program.clone().into(), "exec".into()];
        words.extend(["--record".into(), record.id.to_string().into()]);
        words.extend(["--nonce".into(), launch.nonce.to_string().into()]);
        if new {
            words.push("--mark".into());
        }
        if let Some(program) = tmux::chosen() {
            words.extend(["--tmux-bin".into(), program]);
        }
        if launch.below_shell {
            words.push("--below-shell".into());
        }
        words.push("--".into());
        words.extend(launch.argv.iter().map(OsString::from));
        words
    }

    /// What tells whose the sessions of the server are.
    async fn sessions(&self, server: &OneShot, snapshot: &Snapshot, epoch: &ServerEpoch) -> Vec<Known> {
        const FORMAT: &str = "#{session_id}\t#{session_created}\t#{session_path}";
        let Ok(answer) = server.run(["list-sessions", "-F", FORMAT]).await else { return Vec::new() };
        let store = self.world.store.read().ok();
        let records = store.as_ref().map(|store| &store.records);
        answer
            .lines()
            .filter_map(|line| {
                let mut fields = line.splitn(3, |byte| *byte == b'\t');
                let id = tmux_control::SessionId::parse(fields.next()?)?;
                let created = fields.next()?.to_str().ok()?.parse().ok()?;
                let path = PathBuf::from(fields.next()?.to_os_str().ok()?);
                let project = marked_root(&path).map(|root| root.to_string_lossy().into_owned());
                Some(Known { id, created, project, stamped: stamped(id, snapshot, epoch, records?) })
            })
            .collect()
    }
}

/// The records whose panes stand in a session.
fn stamped(
    session: tmux_control::SessionId,
    snapshot: &Snapshot,
    epoch: &ServerEpoch,
    records: &Records,
) -> Vec<Stamped> {
    let panes = snapshot.panes.iter().filter(|row| row.session == session);
    panes
        .filter_map(|row| {
            let stamp = if row.frozen.is_empty() { &row.stamp } else { &row.frozen };
            let record = records.get(stamp.to_str().ok()?.parse().ok()?)?;
            let here = record.ait.server.as_ref().is_some_and(|server| server.is_same_life(epoch));
            here.then(|| Stamped { root: record.root.clone(), came_back: record.restore.attempts > 0 })
        })
        .collect()
}

/// Puts the window into the layout it had with the agent, where as many panes are there again.
async fn lay_out(server: &OneShot, window: tmux_control::WindowId, record: &Record) {
    let layout = record.ait.window_layout.as_deref().unwrap_or_default();
    if let Some(command) = places::lay_out(window, layout) {
        also(server, &command).await;
    }
}

/// A command without which the agent runs as well.
async fn also(server: &OneShot, command: &tmux_control::Command) {
    let Ok(line) = command.to_line() else { return };
    let words = ["if-shell".into(), "-F".into(), "1".into(), OsString::from_vec(line.trim().to_vec())];
    if let Err(error) = server.run(words).await {
        tracing::info!(%error, "a window's name or layout is not set");
    }
}

fn mark(record: &Record, launch: &Launch) -> String {
    format!("{}:{}", record.id, launch.nonce)
}

/// The mark, the folder and the variables of a launch.
fn surroundings(record: &Record, launch: &Launch) -> (String, PathBuf, Vec<(&'static str, String)>) {
    let variables = record.session_variables(&launch_id(record.id, launch.nonce));
    (mark(record, launch), exec::folder_of(record), variables)
}

fn tenant<'a>(
    record: &'a Record,
    mark: &'a str,
    program: &'a [&'a OsStr],
    folder: &'a Path,
    variables: &'a [(&'static str, String)],
) -> Tenant<'a> {
    Tenant { record: record.id, mark, program, folder, name: &record.window, variables }
}

fn size(record: &Record) -> Option<(u32, u32)> {
    record.ait.window_layout.as_deref().and_then(places::size_of)
}

fn identified(pid: i32) -> ProcessId {
    process::identify(pid).unwrap_or_else(|| ProcessId::bare(pid))
}
