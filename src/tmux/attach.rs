//! Attaching: the hidden session, the first words, and what can go wrong.
//!
//! The client lives in a session of its own, never in one of the user's, and changes nothing of theirs. What a plain process
//! must ask comes before; then one command line makes or joins the session; nothing is written before tmux has closed the first
//! block (R10).
//!
//! What ties the session to our life is its only pane: `ait hold` ends once its owner is dead, and the session with it.
//! `destroy-unattached` would do the same and crashes tmux 3.3a: while a control client is on its way out it no longer counts
//! as attached, any other client that leaves in that moment makes the server destroy the session under it, and the server then
//! looks at the destroyed session's current window (30 of 40 trials with six plain clients coming and going). It would also
//! kill whatever of the user's had come into the session.
//!
//! The client dies with us too, and before the session: the page kills it, since `ait tether` told it which one it is. A client
//! that outlives its session, since nobody drains it, crashes the server at its next heartbeat (3.3a: once in ten kills of the
//! owner), and one that dies while it introduces itself crashes it at once: only the page, which comes after that, may kill it.
//! For the same reason leaving means: the client is killed, then the session is let go.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bstr::BString;
use tmux_control::{Command, PaneId, SessionId, Version};
use tokio::sync::oneshot;

use super::client::{Client, ReplyError, SendError};
use super::identity::{
    BEFORE, Identity, Who, close_when_done, default_session, hold_pane, is_taken, own_panes, who,
};
use super::queue::{Events, Shared};
use super::stream::Stream;
use super::{HOLD_SESSION, OneShot, Unanswered};
use crate::process::{Liveness, ProcessId, identify, liveness, me};
use crate::world::mark::{FLOW, FLOW_SPAN, TITLES, TITLES_FORMAT};

/// How long each step may take before the attempt is given up and its process ended.
const STEP: Duration = Duration::from_secs(5);

/// The safety net for what no notification tells (respawns, panes and layouts of other sessions), once a second; and it wakes
/// the server, which up to 3.7c holds late renames back until something does. A layout begins with its checksum.
const HEARTBEAT: (&str, &str) =
    ("hb", "#{S:#{W:#{=4:window_layout} #{P:#{pane_id}=#{pane_dead}#,#{pane_pid} }}}");

/// Why there is no control client. Only [`Unanswered::NoServer`] says anything about the server.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The question before the attach, or the attach itself, got no answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// tmux refused to make or join the hidden session.
    #[error("cannot attach to {socket}: {words}")]
    Refused {
        /// The socket.
        socket: PathBuf,
        /// tmux's words.
        words: BString,
    },
    /// There is a session of that name, and it is not ours: none of its panes was started with `ait hold`. It is left alone.
    #[error("the session {HOLD_SESSION} on {socket} is not ours")]
    NotOurs {
        /// The socket.
        socket: PathBuf,
    },
    /// The client ended while it said who it is, or said what nobody understands.
    #[error("lost the control client on {socket} while attaching: {why}")]
    Lost {
        /// The socket.
        socket: PathBuf,
        /// What was missing.
        why: String,
    },
    /// The program of the hold pane is no absolute path, or tmux would read its end as its own.
    #[error("{0} cannot be the program of the hidden pane")]
    HoldProgram(PathBuf),
    /// The client could not be started.
    #[error("cannot start {binary}: {source}")]
    Start {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Client {
    /// Attaches a control client to the server on a socket, with the `tmux` of `PATH`; see [`Client::attach_with`].
    ///
    /// # Errors
    /// There is no client; see [`AttachError`].
    pub async fn attach(socket: &Path, hold: &Path) -> Result<(Client, Events), AttachError> {
        Client::attach_with(&OneShot::new(socket)?, hold).await
    }

    /// Attaches a control client to a server, with the program and on the socket of `server`. `hold` is the absolute path of the `ait` that runs in the hidden
    /// session. Must be called within a tokio runtime; takes milliseconds, and no longer than a few times 5 s on a server
    /// that does not answer. Giving up half-way leaves nothing behind.
    ///
    /// # Errors
    /// There is no client; see [`AttachError`].
    pub async fn attach_with(server: &OneShot, hold: &Path) -> Result<(Client, Events), AttachError> {
        let socket = server.socket();
        if !hold.is_absolute() || hold.as_os_str().as_bytes().ends_with(b";") {
            return Err(AttachError::HoldProgram(hold.to_owned()));
        }
        let before = tokio::time::timeout(STEP, settled(&server.clone().deadline(STEP)))
            .await
            .unwrap_or_else(|_| Err(lost(socket, "the hidden session of an earlier life does not go")))?;
        let default_session =
            default_session(&before).ok_or_else(|| lost(socket, "no answer before the attach"))?;
        // a session of the user's is none of ours to be in, whatever its name
        if is_taken(&before) && hold_pane(&before).is_none() {
            return Err(AttachError::NotOurs { socket: socket.to_owned() });
        }

        let (attached, first_block) = oneshot::channel();
        let owner = me().map_err(|error| lost(socket, &error.to_string()))?;
        let client = start(server, hold, &owner, attached)?;
        match tokio::time::timeout(STEP, first_block).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(words))) => return Err(AttachError::Refused { socket: socket.to_owned(), words }),
            // ended without a block: standard error says why
            Ok(Err(_)) => return Err(client.failure(socket)),
            Err(_) => return Err(timeout(socket)),
        }
        tokio::time::timeout(STEP, client.introduce(socket, default_session))
            .await
            .unwrap_or_else(|_| Err(timeout(socket)))
    }
}

/// What is to be known before the attach, once no hidden session is on its way out: one that is joined then takes the new
/// client along, and on 3.3a now and then the server.
async fn settled(server: &OneShot) -> Result<Vec<u8>, AttachError> {
    loop {
        let answer = server.run(BEFORE).await?;
        match hold_pane(&answer) {
            Some((pane, pid)) if identify(pid).is_none_or(|id| liveness(&id) == Liveness::Gone) => {
                // the user keeps dead panes, and its owner had no time to except this one
                let pane = pane.to_string();
                match server
                    .run(["if-shell", "-F", "-t", &pane, "#{pane_dead}", &format!("kill-pane -t {pane}")])
                    .await
                {
                    // gone meanwhile is what is waited for
                    Ok(_) | Err(Unanswered::Refused { .. }) => {}
                    Err(other) => return Err(other.into()),
                }
            }
            _ => return Ok(answer),
        }
    }
}

/// A client that is started and not yet known.
struct Started {
    shared: Arc<Shared>,
    waker: io::PipeWriter,
}

impl Started {
    /// Asks who the server is and who we are, and starts the heartbeat.
    async fn introduce(
        self,
        socket: &Path,
        default_session: Option<SessionId>,
    ) -> Result<(Client, Events), AttachError> {
        let answer = self.ask(socket, &who()).await?;
        let who = Who::parse(&answer).ok_or_else(|| lost(socket, "no identity"))?;
        // its start is read now; that it answers afterwards proves that the pid was its own
        let server = identify(who.pid);
        let panes = self.ask(socket, &own_panes(who.session)).await?;
        let (hold, pid) =
            hold_pane(&panes).ok_or_else(|| AttachError::NotOurs { socket: socket.to_owned() })?;
        let holder = identify(pid).ok_or_else(|| lost(socket, "the hidden pane is not to be seen"))?;
        // whatever the user has set for theirs, this pane must go when its process does
        self.ask(socket, &close_when_done(hold)).await?;
        let flow = format!("#{{S:#{{W:#{{window_id}}:#{{e|/:#{{window_activity}},{FLOW_SPAN}}} }}}}");
        for (name, format) in [HEARTBEAT, (FLOW, &flow), (TITLES, TITLES_FORMAT)] {
            self.ask(socket, &subscribe(name, hold, format)).await?;
        }
        let identity = Identity {
            server,
            pid: who.pid,
            started_at: who.started_at,
            version: Version::parse(&who.version),
            version_text: who.version,
            socket: who.socket,
            session: who.session,
            hold,
            client: who.client,
            default_session,
        };
        self.shared.lock().open(identity.clone(), holder);
        let events = Events::new(Arc::clone(&self.shared));
        Ok((Client { shared: self.shared, identity, waker: Mutex::new(self.waker) }, events))
    }

    async fn ask(&self, socket: &Path, command: &Command) -> Result<Vec<u8>, AttachError> {
        match super::client::ask(&self.shared, command).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(ReplyError::Refused(words))) => {
                Err(AttachError::Refused { socket: socket.to_owned(), words })
            }
            Ok(Err(ReplyError::TooLong)) => Err(lost(socket, "an answer without end")),
            Ok(Err(ReplyError::Unanswered)) | Err(SendError::Ended | SendError::Full) => {
                Err(self.failure(socket))
            }
            Err(SendError::Unsendable(refused)) => Err(lost(socket, &refused.to_string())),
        }
    }

    /// What the end of the client says.
    fn failure(&self, socket: &Path) -> AttachError {
        match self.shared.lock().ended() {
            Some(ended) => Unanswered::from_words(socket, &ended.stderr).into(),
            None => lost(socket, "it does not take requests"),
        }
    }
}

/// Starts `tmux -C` on a thread of its own that drains it. Every word is an argument of its own; no shell reads any of them.
fn start(
    server: &OneShot,
    hold: &Path,
    owner: &ProcessId,
    attached: oneshot::Sender<Result<(), BString>>,
) -> Result<Started, AttachError> {
    let failed = |source| AttachError::Start { binary: server.binary().to_owned(), source };
    let owner = format!("{}:{}", owner.pid, owner.started);
    let mut command = Process::new(hold);
    command
        .args(["tether", "--owner", &owner, "--"])
        .arg(server.binary())
        .args(["-u", "-N", "-S"])
        .arg(server.socket())
        .args(["-C", "new-session", "-A", "-E", "-s", HOLD_SESSION, "-x", "80", "-y", "24"])
        .args(["-f", "no-output,ignore-size"])
        .arg(hold)
        .args(["hold", "--owner", &owner, "--client", "{client}"])
        .env_remove("TMUX")
        .env_remove("TMUX_PANE")
        // the session's working directory must not hold a mount of the user's
        .current_dir("/")
        // a key pressed at the terminal of `ait supervise` is for us to act upon, not for this process
        .process_group(0);
    let (wake, waker) = io::pipe().map_err(failed)?;
    let shared = Stream::start(command, wake, attached).map_err(failed)?;
    Ok(Started { shared, waker })
}

/// Has the value of a format told when it changes. It is that of our own pane, although it is about all there is: a subscription
/// of the session crashes a server that was told to end (3.3a), when its second comes round while the client, which has no
/// session any more, is still on its way out. On a busy machine that takes long enough to happen.
fn subscribe(name: &str, hold: PaneId, format: &str) -> Command {
    Command::new("refresh-client").args(["-B", &format!("{name}:{hold}:{format}")])
}

fn lost(socket: &Path, why: &str) -> AttachError {
    AttachError::Lost { socket: socket.to_owned(), why: why.to_owned() }
}

fn timeout(socket: &Path) -> AttachError {
    Unanswered::Timeout { socket: socket.to_owned(), deadline: STEP }.into()
}
