//! The one loop: waits for tmux, store, clock, signals and requests; feeds [`Supervisor`]; does what it says, in order.
//!
//! It decides nothing. Everything that can wait for the world is a task or a thread that sends an [`Input`] when it is done:
//! a control client each, a watch for each process, the scribe for the disk, the door for requests. The loop itself never
//! waits for any of them, and with nothing pending it sleeps in the kernel without a timer.

mod ask;
mod checkpoint;
mod examine;
mod link;
mod notify;
mod recover;
mod registry;
mod rollouts;
mod scribe;
mod spooled;
mod talk;
mod tracking;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot, watch as counter};
use tokio::task::JoinHandle;

use crate::api::{self, Hello, StatusReport};
use crate::config::{self, Config};
use crate::process::{self, Opened, ProcessError};
use crate::provider::Catalog;
use crate::record::{ProcessId, Record, RecordId, Stamp};
use crate::store::{
    Files, Paths, Store, StoreError, Supervising, SupervisorLock, System, Taken, make_private, spool, turns,
};
use crate::supervisor::notify::note::Words;
use crate::supervisor::recovery::Policies;
use crate::supervisor::{Action, Answer, Input, LastStop, LinkEvent, LinkId, Now, Start, Supervisor};
use crate::tmux::{OneShot, Probe, probe};
use crate::turn::Moment;
use crate::watch::{Touched, Watcher};
use link::{Linked, Said, Word};
use notify::Notifier;
use scribe::Job;
use talk::{Door, Wish};

/// Inputs that may wait for the loop; whoever sends more waits.
const INBOX: usize = 1024;
/// How long a report waits for a sign of life from the servers.
const REPORT: Duration = Duration::from_millis(250);
/// Inputs told to the supervisor in one turn.
const TURN: usize = 512;
/// The longest last screen that is kept, in bytes.
const SCREEN: usize = 1024 * 1024;

/// What a supervisor is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where everything lies.
    pub paths: Paths,
    /// Sockets to supervise besides those in the socket folder and in records.
    pub sockets: Vec<PathBuf>,
    /// The user's default server.
    pub default_socket: PathBuf,
    /// The absolute path of this program, for the pane of `_ait`.
    pub program: PathBuf,
    /// The user's settings.
    pub config: Config,
    /// The kinds of agents there are.
    pub catalog: Catalog,
    /// Why the user's settings are not these, if they could not be taken.
    pub settings: Option<String>,
}

/// Why a supervisor could not run.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The store's places.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Who we are or which boot this is.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Something the loop stands on.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// How a supervisor ended.
#[derive(Debug)]
pub enum Ended {
    /// Another one has this store.
    AlreadyRuns(Option<Supervising>),
    /// It was told to end and did.
    Cleanly,
}

/// Runs a supervisor until it is told to end. `ready` is called once it listens and has read the store.
///
/// # Errors
/// It could not start; nothing was changed.
pub fn run(options: Options, ready: impl FnOnce(&Supervising)) -> Result<Ended, DriverError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(1))
        .build()
        .map_err(|source| DriverError::Io { what: "start the runtime", source })?;
    let ended = runtime.block_on(supervise(options, ready));
    // a look at a process or a capture still under way is nothing to wait for
    runtime.shutdown_background();
    ended
}

async fn supervise(options: Options, ready: impl FnOnce(&Supervising)) -> Result<Ended, DriverError> {
    let failed = |what| move |source| DriverError::Io { what, source };
    let files = options.paths.files();
    let boot_id = process::boot_id()?;
    let me = process::me()?;
    let socket = options.paths.runtime.join(door_name(&files));
    let said = Supervising {
        pid: me.pid,
        started: me.started.clone(),
        boot_id: boot_id.clone(),
        socket: socket.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        since: Stamp::from_unix(unix_now()),
        stopped_at: None,
    };
    let (lock, last) = match SupervisorLock::take(&files.supervisor_lock, said.clone())? {
        Taken::Ours(lock, last) => (lock, last),
        Taken::Held(by) => return Ok(Ended::AlreadyRuns(by)),
    };
    let signals = Signals::listen().map_err(failed("listen for signals"))?;
    options.paths.make_runtime()?;
    let door = Door::open(&socket).map_err(failed("listen on the supervisor's socket"))?;
    let start = Start {
        boot_id,
        boot_began: process::boot_time()?,
        pid: me.pid,
        version: said.version.clone(),
        store: files.store.clone(),
        sockets: options.sockets.iter().map(|socket| resolved(socket)).collect(),
        default_socket: resolved(&options.default_socket),
        grace: System::here().facts().grace,
        ack_grace: options.config.frozen.restore_ack_grace.as_secs(),
        last_stop: last
            .and_then(|last| last.stopped_at.map(|at| LastStop { boot_id: last.boot_id, at: at.unix() })),
        policies: Policies { servers: options.config.recover, agents: options.config.recover_agents },
    };
    let (inbox, arrivals) = mpsc::channel(INBOX);
    let (speaker, words) = mpsc::channel(INBOX);
    let store = Arc::new(Store::open(options.paths.clone()).keeping(options.config.archive.keep));
    let jobs = scribe::start(store, inbox.clone()).map_err(failed("start the writing thread"))?;
    let spooled = spooled::start(jobs.clone());
    let (news, heard) = counter::channel(0);
    let (wish, wishes) = mpsc::channel(64);
    let catalog = Arc::new(options.catalog);
    let rollouts = rollouts::start(Arc::clone(&catalog), inbox.clone(), jobs.clone());
    let mut driver = Driver {
        supervisor: Supervisor::new(start.clone()).telling(options.config.notify.reasons()),
        notifier: Notifier::start(inbox.clone()),
        notify: options.config.notify,
        settings: options.settings,
        latest: Duration::ZERO,
        program: options.program,
        catalog,
        sessions: options.paths.state.join("sessions"),
        turns: BTreeSet::new(),
        registries: BTreeMap::new(),
        rollouts,
        tracked: options.config.tracking.then(BTreeMap::new),
        paths: options.paths,
        files,
        folders: BTreeSet::new(),
        watcher: Watcher::new().map_err(failed("watch folders"))?,
        inbox,
        speaker,
        jobs,
        spooled,
        spool: BTreeSet::new(),
        news,
        links: BTreeMap::new(),
        watches: BTreeMap::new(),
        lock: Some(lock),
        reports: Vec::new(),
        ended: false,
    };
    driver.watch_folders(&start.sockets).map_err(failed("watch folders"))?;
    let hello = Hello { ait: said.version.clone(), api: api::VERSION, pid: me.pid };
    let serve = async move { door.serve(hello, wish, heard).await };
    let conversation = tokio::spawn(serve);
    driver.do_job(Job::Read);
    driver.do_job(Job::Book { ended: false });
    driver.do_job(Job::Said);
    ready(&said);
    driver.turn(Ears { arrivals, words, wishes, signals }).await;
    driver.notifier.end().await;
    conversation.abort();
    // the door closes with its task: its file is gone before the lock is free
    let _ = conversation.await;
    spool::unwatch(&driver.paths);
    if let Some(lock) = driver.lock.take() {
        lock.stop(Stamp::from_unix(unix_now()))?;
    }
    Ok(Ended::Cleanly)
}

/// The loop's own state: both ends, and nothing of what it means.
struct Driver {
    supervisor: Supervisor,
    /// The latest time told, since boot, so that it never runs back.
    latest: Duration,
    program: PathBuf,
    /// Runs what tells the user.
    notifier: Notifier,
    /// How the user wants to be told.
    notify: config::Notify,
    /// Why the user's settings could not be taken, if they could not.
    settings: Option<String>,
    /// The kinds of agents there are.
    catalog: Arc<Catalog>,
    paths: Paths,
    files: Files,
    /// Folders in which sockets appear.
    folders: BTreeSet<PathBuf>,
    /// The folder of the records' own folders, in which turns are told.
    sessions: PathBuf,
    /// Those of them that are watched.
    turns: BTreeSet<PathBuf>,
    /// The folders in which providers list their processes, and who is listed there.
    registries: BTreeMap<PathBuf, BTreeSet<RecordId>>,
    /// Told which agents are Codex's: their conversations are followed.
    rollouts: counter::Sender<BTreeMap<RecordId, Arc<Record>>>,
    /// What was written into task files; `None` where that is not wanted.
    tracked: Option<tracking::Tracked>,
    watcher: Watcher,
    inbox: mpsc::Sender<Input>,
    speaker: mpsc::Sender<Word>,
    jobs: mpsc::Sender<Job>,
    /// Told when hooks left something to write.
    spooled: Arc<Notify>,
    /// The folders they leave it in.
    spool: BTreeSet<PathBuf>,
    news: counter::Sender<u64>,
    links: BTreeMap<PathBuf, Linked>,
    watches: BTreeMap<ProcessId, JoinHandle<()>>,
    lock: Option<SupervisorLock>,
    /// Who waits for a report, and until when.
    reports: Vec<(Instant, oneshot::Sender<StatusReport>)>,
    ended: bool,
}

/// Everything the loop listens to, besides the folders.
struct Ears {
    arrivals: mpsc::Receiver<Input>,
    words: mpsc::Receiver<Word>,
    wishes: mpsc::Receiver<Wish>,
    signals: Signals,
}

/// The signals that matter.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel safe.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            _ = self.hup.recv() => {}
        }
    }
}

impl Driver {
    /// Waits, hears, decides nothing, acts; until the supervisor has ended.
    async fn turn(&mut self, mut ears: Ears) {
        while !self.ended {
            let pause = self.supervisor.deadline().map(|due| due.saturating_sub(process::boot_age()));
            let owed =
                self.reports.iter().map(|(due, _)| due.saturating_duration_since(Instant::now())).min();
            let pause = [pause, owed].into_iter().flatten().min();
            let clock = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = ears.signals.next() => self.hear(Instant::now(), Input::Stop),
                Some(word) = ears.words.recv() => self.hear_all(Some(word), None, &mut ears),
                Some(input) = ears.arrivals.recv() => self.hear_all(None, Some(input), &mut ears),
                touched = self.watcher.next() => self.touched(touched),
                Some(wish) = ears.wishes.recv() => match wish {
                    Wish::Report(answer) => {
                        let mut heard = self.who_listens(self.sockets());
                        heard.push(Input::Check);
                        self.hear_at_once(heard);
                        self.reports.push((Instant::now() + REPORT, answer));
                    }
                    Wish::Turns(answer) => {
                        let now = self.now(Instant::now());
                        // one who no longer waits for it is no error
                        let _ = answer.send(self.supervisor.turns(now));
                    }
                    Wish::Question(record, text) => {
                        self.hear(Instant::now(), Input::Question { record, text: Words(text) });
                    }
                    Wish::Stop => self.hear(Instant::now(), Input::Stop),
                },
                () = clock => self.hear(Instant::now(), Input::Tick),
            }
            self.answer_reports();
        }
        for (_, watch) in std::mem::take(&mut self.watches) {
            watch.abort();
        }
    }

    /// Tells the supervisor all that has come by now, the first of it first, and does what it says.
    fn hear_all(&mut self, word: Option<Word>, input: Option<Input>, ears: &mut Ears) {
        let mut heard: Vec<(Instant, Input)> = Vec::new();
        heard.extend(word.and_then(|word| self.word(word)));
        heard.extend(input.map(|input| (Instant::now(), input)));
        while heard.len() < TURN {
            if let Ok(word) = ears.words.try_recv() {
                heard.extend(self.word(word));
            } else if let Ok(input) = ears.arrivals.try_recv() {
                heard.push((Instant::now(), input));
            } else {
                break;
            }
        }
        for (_, input) in &heard {
            if let Input::Died(process) = input {
                self.watches.remove(process);
            }
        }
        let read =
            heard.iter().any(|(_, input)| matches!(input, Input::Store(Ok(_)) | Input::Written { .. }));
        let heard: Vec<_> = heard.into_iter().map(|(at, input)| (self.now(at), input)).collect();
        tracing::trace!(?heard);
        self.supervisor.handle_all(heard);
        self.act_all();
        if read {
            self.listen_for_turns();
            self.listen_to_registries();
            self.listen_to_rollouts();
            self.track();
        }
    }

    /// Tells the supervisor several things that were found at once, and does what it says.
    fn hear_at_once(&mut self, inputs: Vec<Input>) {
        let now = self.now(Instant::now());
        tracing::trace!(?inputs);
        self.supervisor.handle_all(inputs.into_iter().map(|input| (now, input)));
        self.act_all();
    }

    /// Tells the supervisor one thing, and does what it says.
    fn hear(&mut self, at: Instant, input: Input) {
        let now = self.now(at);
        tracing::trace!(?input);
        self.supervisor.handle(now, input);
        self.act_all();
    }

    /// That moment, on a clock that runs through a suspend, so that a lease ages while the lid is closed.
    fn now(&mut self, at: Instant) -> Now {
        self.latest = self.latest.max(process::boot_age().saturating_sub(at.elapsed()));
        let moment = Moment::from(jiff::Timestamp::now());
        let moment =
            Moment::from_millis(moment.millis() - i64::try_from(at.elapsed().as_millis()).unwrap_or(0));
        Now { mono: self.latest, utc: unix_now(), moment }
    }

    fn act_all(&mut self) {
        while let Some(action) = self.supervisor.next_action() {
            tracing::trace!(?action);
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Attach { socket, link } => self.attach(socket, link),
            Action::Detach { socket, link } => self.detach(&socket, link),
            Action::Ask { socket, link, tag, ask } => {
                let Some(linked) = self.links.get_mut(&socket).filter(|linked| linked.link == link) else {
                    return;
                };
                if let Err(error) = linked.put(&self.program, tag, &ask) {
                    let event = LinkEvent::Answer { tag, answer: Answer::Failed(error.to_string()) };
                    self.later(Input::Link { socket, link, event });
                }
            }
            Action::Watch(process) => self.watch_process(process),
            Action::Unwatch(process) => {
                if let Some(watch) = self.watches.remove(&process) {
                    watch.abort();
                }
            }
            Action::Examine { record, pane, pid } => {
                let (inbox, catalog) = (self.inbox.clone(), Arc::clone(&self.catalog));
                tokio::task::spawn_blocking(move || {
                    let found = examine::examine(pane, pid, &catalog);
                    // the loop may have ended
                    let _ = inbox.blocking_send(Input::Examined { record, pid, found });
                });
            }
            Action::Write { ticket, changes } => {
                let steps = changes.into_iter().map(|(id, verb)| (Some(id), verb)).collect();
                self.do_job(Job::Write(ticket, steps));
            }
            Action::KeepScreen { socket, pane, record } => self.keep_screen(socket, pane, record),
            Action::Checkpoint { socket, server, pane, record } => {
                checkpoint::keep(self.jobs.clone(), socket, server, pane, record);
            }
            Action::NoteTurn { record, runtime, provider, seen } => {
                self.do_job(Job::Observe(turns::Whose { record, runtime, provider }, seen));
            }
            Action::Recover { records } => self.recover(&records),
            Action::KeepSaid(said) => self.do_job(Job::KeepSaid(said)),
            Action::Notify { note, ttys } => self.tell_user(&note, &ttys),
            Action::KeepPlan(plan) => self.do_job(Job::Plan(plan)),
            Action::Recall { since } => self.do_job(Job::Recall(since)),
            Action::RemakeSocket(process) => match process::signal(&process, process::Signal::USR1) {
                Ok(delivery) => {
                    tracing::info!(pid = process.pid, ?delivery, "a server is told to make its socket again")
                }
                Err(error) => tracing::warn!(%error, "a server is not told to make its socket again"),
            },
            Action::Publish => self.news.send_modify(|count| *count = count.wrapping_add(1)),
            Action::Ended => self.ended = true,
        }
    }

    /// Answers those who asked for a report, once every server gave a sign of life or had its time.
    fn answer_reports(&mut self) {
        if self.reports.is_empty() {
            return;
        }
        let checked = self.supervisor.is_checked();
        let now = self.now(Instant::now());
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.reports)
            .into_iter()
            .partition(|(due, _)| checked || *due <= Instant::now());
        self.reports = waiting;
        for (_, answer) in due {
            // one who no longer waits for it is no error
            let settings = self.settings.clone();
            let _ = answer.send(StatusReport { settings, ..self.supervisor.report(now) });
        }
    }

    /// Hands an input to the loop's own next turn: an action's failure is an input, never a call back.
    fn later(&self, input: Input) {
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            // the loop may have ended
            let _ = inbox.send(input).await;
        });
    }

    fn do_job(&self, job: Job) {
        let jobs = self.jobs.clone();
        if let Err(mpsc::error::TrySendError::Full(job)) = jobs.try_send(job) {
            tokio::spawn(async move {
                // the thread lives as long as we do
                let _ = jobs.send(job).await;
            });
        }
    }

    fn attach(&mut self, socket: PathBuf, link: LinkId) {
        let linked = Linked::start(link, socket.clone(), self.program.clone(), self.speaker.clone());
        self.links.insert(socket, linked);
    }

    fn detach(&mut self, socket: &Path, link: LinkId) {
        let Some(linked) = self.links.get_mut(socket).filter(|linked| linked.link == link) else { return };
        if linked.leave() {
            // it had not attached yet: nobody else tells of its end
            self.links.remove(socket);
            self.later(Input::Link {
                socket: socket.to_owned(),
                link,
                event: LinkEvent::Ended { exit: None },
            });
        }
    }

    /// A word of a control client's task, as the supervisor hears it; a part of an answer is not heard alone.
    fn word(&mut self, word: Word) -> Option<(Instant, Input)> {
        let Word { socket, link, said } = word;
        let linked = self.links.get_mut(&socket).filter(|linked| linked.link == link)?;
        let now = Instant::now();
        let (at, event) = match said {
            Said::Attached(client, identity) => {
                linked.attached(client);
                (now, LinkEvent::Attached(identity))
            }
            Said::Failed(failure) => {
                self.links.remove(&socket);
                (now, LinkEvent::Failed(failure))
            }
            Said::Mark(at, mark) => (at, LinkEvent::Mark(mark)),
            Said::Reply(number, reply) => {
                let (tag, answer) = linked.take(number, reply)?;
                (now, LinkEvent::Answer { tag, answer })
            }
            Said::Overflow => (now, LinkEvent::Overflow),
            Said::Ended(exit) => {
                self.links.remove(&socket);
                (now, LinkEvent::Ended { exit })
            }
        };
        Some((at, Input::Link { socket, link, event }))
    }

    fn watch_process(&mut self, process: ProcessId) {
        let watch = match process::Watch::open(&process) {
            Ok(Opened::Watching(watch)) => watch,
            Ok(Opened::Gone) => return self.later(Input::Died(process)),
            Err(error) => return self.later(Input::Unwatchable(process, error.to_string())),
        };
        let inbox = self.inbox.clone();
        let of = process.clone();
        let task = tokio::spawn(async move {
            // the loop may have ended
            let _ = inbox.send(Input::Watching(of.clone())).await;
            let input = match watch.died().await {
                Ok(()) => Input::Died(of),
                Err(error) => Input::Unwatchable(of, error.to_string()),
            };
            let _ = inbox.send(input).await;
        });
        self.watches.insert(process, task);
    }

    /// Keeps what a dead pane shows; whatever comes of it, the pane may close then.
    fn keep_screen(&self, socket: PathBuf, pane: tmux_control::PaneId, record: RecordId) {
        let jobs = self.jobs.clone();
        tokio::spawn(async move {
            let then = Box::new(Input::ScreenKept { socket: socket.clone(), pane });
            let target = pane.to_string();
            let screen = match OneShot::new(socket) {
                Ok(server) => {
                    server.limit(SCREEN).run(["capture-pane", "-p", "-e", "-J", "-t", &target]).await
                }
                Err(error) => Err(error),
            };
            let screen = screen.unwrap_or_else(|error| {
                tracing::info!(%pane, %error, "a last screen could not be had");
                Vec::new()
            });
            // the thread lives as long as we do
            let _ = jobs.send(Job::Screen(record, screen, then)).await;
        });
    }

    /// Watches the store's folder and every folder sockets appear in, and tells which sockets are there.
    fn watch_folders(&mut self, named: &[PathBuf]) -> io::Result<()> {
        for path in [&self.files.store, &self.paths.store] {
            if let Some(folder) = path.parent() {
                self.watcher.add(folder)?;
            }
        }
        for folder in spool::watched(&self.paths) {
            self.watcher.add(&folder)?;
            self.spool.insert(folder);
        }
        // what cannot be made is not heard of
        if make_private(&self.sessions).is_ok() {
            self.watcher.add(&self.sessions)?;
        }
        let mut folders = BTreeSet::from([resolved(&examine::socket_folder())]);
        folders.extend(named.iter().filter_map(|socket| socket.parent()).map(Path::to_owned));
        for folder in folders {
            self.watcher.add(&folder)?;
            self.folders.insert(folder);
        }
        self.look_at_sockets();
        Ok(())
    }

    /// Tells which sockets are there, and who listens on them.
    fn look_at_sockets(&mut self) {
        let sockets = self.sockets();
        let told = |socket: &PathBuf| Input::Socket { socket: socket.clone(), present: is_socket(socket) };
        let mut heard: Vec<Input> = sockets.iter().map(told).collect();
        heard.extend(self.who_listens(sockets));
        self.hear_at_once(heard);
    }

    /// The sockets that are known of, and those in the folders in which they appear.
    fn sockets(&self) -> BTreeSet<PathBuf> {
        let entries = self.folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
        let there = entries.flatten().flatten().map(|entry| entry.path()).filter(|path| is_socket(path));
        there.chain(self.supervisor.sockets().map(Path::to_owned)).collect()
    }

    /// Looks who listens on those of the sockets that no client of ours is on.
    fn who_listens(&self, sockets: impl IntoIterator<Item = PathBuf>) -> Vec<Input> {
        let free = sockets.into_iter().filter(|socket| !self.links.contains_key(socket));
        let look = |socket: PathBuf| match probe(&socket) {
            Probe::Listening(peer) => Some(Input::Listener { socket, pid: Some(peer.pid?) }),
            Probe::NoSocket | Probe::Refused => Some(Input::Listener { socket, pid: None }),
            // nothing follows from it
            Probe::Unknown(_) => None,
        };
        free.filter_map(look).collect()
    }

    fn touched(&mut self, touched: Touched) {
        match touched {
            Touched::Path(path) if path == self.files.store || path == self.paths.store => {
                self.do_job(Job::Read)
            }
            Touched::Path(path) if path.parent().is_some_and(|folder| self.spool.contains(folder)) => {
                self.spooled.notify_one();
            }
            Touched::Path(path) if path.starts_with(&self.sessions) => self.session_touched(&path),
            Touched::Path(path)
                if path.parent().is_some_and(|folder| self.registries.contains_key(folder)) =>
            {
                self.registry_touched(&path);
            }
            Touched::Path(path) => {
                let in_folder = path.parent().is_some_and(|folder| self.folders.contains(folder));
                if in_folder && path.extension().is_none_or(|ending| ending != "lock") {
                    let present = is_socket(&path);
                    let mut sockets: BTreeSet<PathBuf> =
                        self.supervisor.sockets().map(Path::to_owned).collect();
                    sockets.insert(path.clone());
                    let mut heard = vec![Input::Socket { socket: path, present }];
                    heard.extend(self.who_listens(sockets));
                    self.hear_at_once(heard);
                }
            }
            Touched::All => {
                self.do_job(Job::Read);
                self.spooled.notify_one();
                self.look_at_registries();
                self.look_at_sockets();
            }
        }
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// A socket's path as records name it: its folder resolved, so that two spellings are one server.
fn resolved(path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    folder.canonicalize().map_or_else(|_| path.to_owned(), |folder| folder.join(name))
}

/// The name of the supervisor's socket: one per store, short enough for a socket's path.
fn door_name(files: &Files) -> String {
    use std::os::unix::ffi::OsStrExt;
    // FNV-1a: stable over versions, which the standard hasher is not
    let bytes = files.store.as_os_str().as_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("supervisor-{hash:016x}.sock")
}

fn unix_now() -> i64 {
    jiff::Timestamp::now().as_second()
}
