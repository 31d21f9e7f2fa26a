//! The user's own command, told of what happened: one object on its standard input, and never waited for by the loop. Terminals and
//! the desktop are told in the same way, by a command of ours.
//!
//! At most [`CHILDREN`] run at once and [`QUEUE`] wait; each has its span to end, is then asked to and at last killed, with its
//! whole process group, and always collected. Its end is seen before it is collected, and its group is signalled only until then:
//! as long as its leader is not collected, no other process can have the number. It is given no terminal, no descriptor of ours, no variable that marks an agent or
//! holds a secret, and nothing but its own words as arguments.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bstr::BString;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::Driver;
use crate::config::{self, Terminal};
use crate::process::{self, Opened, Watch};
use crate::provider;
use crate::supervisor::Input;
use crate::supervisor::notify::note::Note;

/// Commands that run at once.
const CHILDREN: usize = 4;
/// Notes that wait for their command.
const QUEUE: usize = 32;
/// How long a command of ours may take.
const OURS: Duration = Duration::from_secs(5);
/// As much as is read of what a command of ours says went wrong, in bytes.
const SAID: u64 = 1024;
/// How long it has once it was asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long the end of all of them is waited for when we end.
const FAREWELL: Duration = Duration::from_secs(1);

/// One run: the words of the command and what it reads.
#[derive(Debug, Clone)]
pub(super) struct Run {
    way: Way,
    words: Vec<OsString>,
    text: Vec<u8>,
    span: Duration,
}

/// In which way the user is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By their own command.
    Command,
    /// By their terminals.
    Terminal,
    /// By their desktop.
    Desktop,
}

impl Way {
    /// The same failure, with the way it is one of.
    fn failed(self, why: &str) -> String {
        match self {
            Self::Command => why.to_owned(),
            Self::Terminal => format!("terminal: {why}"),
            Self::Desktop => format!("desktop: {why}"),
        }
    }
}

/// Runs commands, one after another where many are wanted at once.
pub(super) struct Notifier {
    runs: mpsc::Sender<Run>,
    task: JoinHandle<()>,
    groups: Groups,
    room: Arc<Semaphore>,
}

/// The process groups that run.
type Groups = Arc<Mutex<BTreeSet<i32>>>;

impl Driver {
    /// Tells the user in the ways they want.
    pub(super) fn tell_user(&self, note: &Note, ttys: &[BString]) {
        let config::Notify { command, terminal, desktop, timeout, on: _ } = &self.notify;
        if !command.is_empty() {
            let words = command.iter().map(OsString::from).collect();
            match serde_json::to_vec(note) {
                Ok(text) => self.run(Run { way: Way::Command, words, text, span: *timeout }),
                Err(error) => self.later(Input::Notified(Err(error.to_string()))),
            }
        }
        if *terminal != Terminal::Off && !ttys.is_empty() {
            let words = ["--terminal", terminal.word(), "--"].map(OsString::from).into_iter();
            self.tell(
                Way::Terminal,
                note,
                words.chain(ttys.iter().map(|tty| OsStr::from_bytes(tty).to_owned())),
            );
        }
        if *desktop {
            self.tell(Way::Desktop, note, ["--desktop".into()]);
        }
    }

    /// By a command of ours, which gets a line.
    fn tell(&self, way: Way, note: &Note, options: impl IntoIterator<Item = OsString>) {
        let words = [self.program.clone().into(), "tell".into()].into_iter().chain(options).collect();
        self.run(Run { way, words, text: note.line().into(), span: OURS });
    }

    fn run(&self, mut run: Run) {
        run.text.push(b'\n');
        let way = run.way;
        if let Err(why) = self.notifier.run(run) {
            self.later(Input::Notified(Err(way.failed(&why))));
        }
    }
}

impl Notifier {
    /// Nothing runs yet; what comes of each run goes to `inbox`.
    pub(super) fn start(inbox: mpsc::Sender<Input>) -> Self {
        let (runs, todo) = mpsc::channel(QUEUE);
        let (groups, room) = (Groups::default(), Arc::new(Semaphore::new(CHILDREN)));
        let task = tokio::spawn(work(todo, inbox, Arc::clone(&groups), Arc::clone(&room)));
        Self { runs, task, groups, room }
    }

    /// Runs it when it is its turn.
    ///
    /// # Errors
    /// Too many wait; it is not run.
    fn run(&self, run: Run) -> Result<(), String> {
        self.runs.try_send(run).map_err(|_| format!("{QUEUE} others wait for the command"))
    }

    /// Ends all that runs.
    pub(super) async fn end(self) {
        self.task.abort();
        for group in lock(&self.groups).iter() {
            end(*group, Signal::KILL);
        }
        // a process that cannot be killed is not waited for
        let _ = tokio::time::timeout(FAREWELL, self.room.acquire_many(CHILDREN as u32)).await;
    }
}

async fn work(
    mut todo: mpsc::Receiver<Run>,
    inbox: mpsc::Sender<Input>,
    groups: Groups,
    room: Arc<Semaphore>,
) {
    while let Some(run) = todo.recv().await {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let (inbox, groups) = (inbox.clone(), Arc::clone(&groups));
        tokio::spawn(async move {
            let way = run.way;
            let result = perform(run, &groups).await.map_err(|why| way.failed(&why));
            if let Err(why) = &result {
                tracing::warn!(%why, "the user is not told");
            }
            drop(place);
            // the loop may have ended
            let _ = inbox.send(Input::Notified(result)).await;
        });
    }
}

/// Runs it to its end.
async fn perform(run: Run, groups: &Groups) -> Result<(), String> {
    let mut child = spawn(&run).map_err(|error| format!("it cannot be started: {error}"))?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    let watch = process::identify(pid).map(|process| Watch::open(&process));
    lock(groups).insert(pid);
    let died = async {
        match &watch {
            Some(Ok(Opened::Watching(watch))) => watch.died().await.map_err(|error| error.to_string()),
            Some(Ok(Opened::Gone)) => Ok(()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("its process cannot be seen".to_owned()),
        }
    };
    let (fed, complaint) = (feed(&mut child, run.text), complaint(&mut child));
    let in_time = tokio::time::timeout(run.span, async {
        let ((), died, said) = tokio::join!(fed, died, complaint);
        died.map(|()| said)
    });
    let in_time = in_time.await;
    if !matches!(in_time, Ok(Ok(_))) {
        end(pid, Signal::TERM);
        if let Some(Ok(Opened::Watching(watch))) = &watch {
            let _ = tokio::time::timeout(GRACE, watch.died()).await;
        }
        // its own children may not have obeyed
        end(pid, Signal::KILL);
    }
    lock(groups).remove(&pid);
    let status = child.wait().await;
    match (in_time, status) {
        (Err(_), _) => Err(format!("it took longer than {} s and was ended", run.span.as_secs())),
        (Ok(Err(why)), _) => Err(format!("its end is not told: {why}")),
        (Ok(Ok(_)), Ok(status)) if status.success() => Ok(()),
        (Ok(Ok(said)), Ok(_)) if !said.is_empty() => Err(said),
        (Ok(Ok(_)), Ok(status)) => Err(format!("it ended with {status}")),
        (Ok(Ok(_)), Err(error)) => Err(format!("its end is not told: {error}")),
    }
}

fn spawn(run: &Run) -> std::io::Result<Child> {
    let (program, arguments) =
        run.words.split_first().ok_or_else(|| std::io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(match run.way {
            Way::Command => Stdio::null(),
            Way::Terminal | Way::Desktop => Stdio::piped(),
        })
        .process_group(0)
        .kill_on_drop(true)
        .env_remove("TMUX")
        .env_remove("TMUX_PANE");
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(provider::may_be_kept);
        if !told {
            command.env_remove(name);
        }
    }
    command.spawn()
}

/// Gives it its object; one that does not read it all is no failure of ours.
fn feed(child: &mut Child, text: Vec<u8>) -> impl Future<Output = ()> + use<> {
    let stdin = child.stdin.take();
    async move {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&text).await;
        }
    }
}

/// What it says went wrong, in one line; nothing of the user's own command, whose words are the user's.
fn complaint(child: &mut Child) -> impl Future<Output = String> + use<> {
    let stderr = child.stderr.take();
    async move {
        let mut said = Vec::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(SAID).read_to_end(&mut said).await;
        }
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().next().unwrap_or_default();
        line.strip_prefix("ait: ").unwrap_or(line).to_owned()
    }
}

fn end(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        // it may be gone
        let _ = kill_process_group(group, signal);
    }
}

fn lock(groups: &Groups) -> std::sync::MutexGuard<'_, BTreeSet<i32>> {
    groups.lock().unwrap_or_else(PoisonError::into_inner)
}
