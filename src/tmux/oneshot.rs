//! Questions and acts through short-lived plain `tmux` processes: no control client, no session, nothing left behind.
//!
//! Each has a deadline and a bound on what it may say; at either it is killed, and always reaped. What went wrong is told
//! apart, since unknown is not gone: only [`Unanswered::NoServer`] says that nobody serves a socket.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{Probe, binary, probe};

/// How long a question may take before its process is killed.
const DEADLINE: Duration = Duration::from_secs(5);
/// How much an answer may hold, in bytes.
const ANSWER_LIMIT: usize = 16 << 20;
/// How much of an error is kept, in bytes.
const WORDS_LIMIT: usize = 4096;

/// In how many parts a deadline is waited for.
const PARTS: u32 = 10;

/// A way to ask one server through plain `tmux` processes.
#[derive(Debug, Clone)]
pub struct OneShot {
    binary: PathBuf,
    socket: PathBuf,
    deadline: Duration,
    limit: usize,
}

/// Why there is no answer. All but [`NoServer`](Unanswered::NoServer) leave open whether the server lives.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Nobody serves this socket: tmux says so, and so does a connection of our own. Whether a server that was known
    /// before has died is a question for its process: a deleted socket looks the same.
    #[error("no server on {socket}: {words}")]
    NoServer {
        /// The socket.
        socket: PathBuf,
        /// tmux's words.
        words: BString,
    },
    /// tmux ran and said no: a missing target, an unknown command, a refused name.
    #[error("tmux refused: {words}")]
    Refused {
        /// tmux's words.
        words: BString,
    },
    /// The server could not be reached or went away while it was asked.
    #[error("cannot reach the server on {socket}: {words}")]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// tmux's words, or the signal that ended it.
        words: BString,
    },
    /// A server of another tmux version runs: an upgrade on disk under a living server.
    #[error("the server on {socket} speaks another protocol: {words}")]
    ProtocolMismatch {
        /// The socket.
        socket: PathBuf,
        /// tmux's words.
        words: BString,
    },
    /// No answer within the deadline: stopped or overloaded. The asking process was killed.
    #[error("the server on {socket} did not answer within {deadline:?}")]
    Timeout {
        /// The socket.
        socket: PathBuf,
        /// How long it had.
        deadline: Duration,
    },
    /// The answer passed its bound. The asking process was killed.
    #[error("the answer of the server on {socket} passes {limit} bytes")]
    TooLong {
        /// The socket.
        socket: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// There is no `tmux` on `PATH`.
    #[error("no tmux on PATH")]
    NoBinary,
    /// The process could not be started or read.
    #[error("cannot run {binary}: {source}")]
    Io {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl OneShot {
    /// A way to ask the server on a socket, with the `tmux` of `PATH`.
    ///
    /// # Errors
    /// [`Unanswered::NoBinary`].
    pub fn new(socket: impl Into<PathBuf>) -> Result<OneShot, Unanswered> {
        Ok(OneShot::with_binary(binary()?, socket))
    }

    /// The same with a given `tmux`.
    pub fn with_binary(binary: impl Into<PathBuf>, socket: impl Into<PathBuf>) -> OneShot {
        OneShot { binary: binary.into(), socket: socket.into(), deadline: DEADLINE, limit: ANSWER_LIMIT }
    }

    /// The same with another deadline (5 s unless given).
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> OneShot {
        OneShot { deadline, ..self }
    }

    /// The same with another bound on answers, in bytes (16 MiB unless given).
    #[must_use]
    pub fn limit(self, limit: usize) -> OneShot {
        OneShot { limit, ..self }
    }

    /// The program that asks.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The socket asked.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs one tmux command, word by word, and gives what it prints. No word is ever read by a shell, and none may come from
    /// the user except where tmux takes it as it is; a word that ends in `;` ends a command for tmux.
    ///
    /// # Errors
    /// Whatever kept the answer away; see [`Unanswered`].
    pub async fn run<W: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<Vec<u8>, Unanswered> {
        self.feed(words, None).await
    }

    /// The same for a command that reads its standard input (`load-buffer -`).
    ///
    /// # Errors
    /// As [`OneShot::run`].
    pub async fn feed<W: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = W>,
        input: Option<&[u8]>,
    ) -> Result<Vec<u8>, Unanswered> {
        let mut child = self.spawn(words, input.is_some()).map_err(|source| self.failed(source))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(self.failed(io::Error::other("a pipe is missing")));
        };
        let stdin = child.stdin.take();
        let heard = within(self.deadline, async {
            // one byte more than the bound tells that there is more
            let (answer, words, ()) = tokio::try_join!(
                take(stdout, self.limit + 1),
                take(stderr, WORDS_LIMIT),
                give(stdin, input.unwrap_or_default())
            )?;
            let status = if answer.len() > self.limit { None } else { Some(child.wait().await?) };
            Ok::<_, io::Error>((answer, words, status))
        })
        .await;
        match heard {
            Some(Ok((answer, words, Some(status)))) => self.judge(answer, &words, status),
            Some(Ok((_, _, None))) => {
                end(child).await;
                Err(Unanswered::TooLong { socket: self.socket.clone(), limit: self.limit })
            }
            Some(Err(source)) => {
                end(child).await;
                Err(self.failed(source))
            }
            None => {
                end(child).await;
                Err(Unanswered::Timeout { socket: self.socket.clone(), deadline: self.deadline })
            }
        }
    }

    fn spawn<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>, fed: bool) -> io::Result<Child> {
        Command::new(&self.binary)
            .args(["-u", "-N", "-S"])
            .arg(&self.socket)
            .args(words)
            // a command without a target must not choose the pane we happen to run in
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(if fed { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    fn failed(&self, source: io::Error) -> Unanswered {
        match source.kind() {
            io::ErrorKind::NotFound => Unanswered::NoBinary,
            _ => Unanswered::Io { binary: self.binary.clone(), source },
        }
    }

    fn judge(
        &self,
        answer: Vec<u8>,
        words: &[u8],
        status: std::process::ExitStatus,
    ) -> Result<Vec<u8>, Unanswered> {
        match status.code() {
            Some(0) => Ok(answer),
            Some(_) => Err(Unanswered::from_words(&self.socket, words)),
            None => Err(Unanswered::Unreachable {
                socket: self.socket.clone(),
                words: format!("tmux was ended: {status}").into(),
            }),
        }
    }
}

impl Unanswered {
    /// Sorts a failure by what tmux wrote to standard error. "No server" is believed only when a connection of our own meets
    /// the same: anybody can print it, and a full backlog makes some systems refuse.
    pub(super) fn from_words(socket: &Path, words: &[u8]) -> Unanswered {
        let kind = sort(words);
        let words = match words.trim() {
            b"" => BString::from("the tmux client ended without a word"),
            words => BString::from(words),
        };
        let socket = socket.to_owned();
        match kind {
            Kind::Absent => match probe(&socket) {
                Probe::NoSocket => Unanswered::NoServer { socket, words },
                Probe::Refused if cfg!(target_os = "linux") => Unanswered::NoServer { socket, words },
                Probe::Refused | Probe::Listening(_) | Probe::Unknown(_) => {
                    Unanswered::Unreachable { socket, words }
                }
            },
            Kind::Mismatch => Unanswered::ProtocolMismatch { socket, words },
            Kind::Connection => Unanswered::Unreachable { socket, words },
            Kind::Command => Unanswered::Refused { words },
        }
    }
}

/// What a line of standard error is about.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Nobody there, tmux says.
    Absent,
    /// Client and server of different versions.
    Mismatch,
    /// The way to the server, or its end.
    Connection,
    /// The command itself.
    Command,
}

/// The client writes these (tmux's `client.c`, 3.2 to 3.8); everything else comes from the server or about the command. No
/// words at all say nothing, so they are about the connection.
fn sort(words: &[u8]) -> Kind {
    const CONNECTION: [&[u8]; 8] = [
        b"error connecting to ",
        b"lost server",
        b"lost tty",
        b"server exited",
        b"server not found",
        b"couldn't create directory ",
        b"directory ",
        b"failed to connect",
    ];
    let line = words.trim();
    let says = |start: &[u8]| line.starts_with(start);
    if says(b"no server running on ")
        || (says(b"error connecting to ") && line.ends_with(b"(No such file or directory)"))
    {
        Kind::Absent
    } else if line.find(b"protocol version mismatch").is_some() {
        Kind::Mismatch
    } else if line.is_empty() || CONNECTION.iter().any(|start| says(start)) {
        Kind::Connection
    } else {
        Kind::Command
    }
}

/// Reads to the end, and keeps at most `limit` bytes. What is over it stays unread when it is an answer; a process that
/// writes endless errors is stopped by the deadline.
async fn take(from: impl AsyncRead + Unpin, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit as u64).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Writes it all and closes. A reader that ends early says why in its own words.
async fn give(to: Option<impl AsyncWrite + Unpin>, input: &[u8]) -> io::Result<()> {
    let Some(mut to) = to else { return Ok(()) };
    match to.write_all(input).await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What `future` gives within `span`; `None` after it. A part of `span` at a time: a process that was stopped wakes up to a
/// timer that has run out beside an answer it has not read yet, and has lost one part by it.
pub(crate) async fn within<T>(span: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    for _ in 0..PARTS {
        if let Ok(done) = tokio::time::timeout(span / PARTS, future.as_mut()).await {
            return Some(done);
        }
    }
    None
}

/// Kills and reaps. A process that cannot be killed (in the kernel on a dead disk) is left to the runtime's reaper.
async fn end(mut child: Child) {
    let _ = child.start_kill();
    let _ = tokio::time::timeout(Duration::from_secs(1), child.wait()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_by_what_they_prove() {
        for (words, kind) in [
            ("no server running on /tmp/x\n", Kind::Absent),
            ("error connecting to /tmp/x (No such file or directory)\n", Kind::Absent),
            ("error connecting to /tmp/x (Connection refused)", Kind::Connection),
            ("error connecting to /tmp/x (Permission denied)", Kind::Connection),
            ("error connecting to /tmp/x (Resource temporarily unavailable)", Kind::Connection),
            ("lost server\n", Kind::Connection),
            ("server exited unexpectedly", Kind::Connection),
            ("server exited", Kind::Connection),
            ("", Kind::Connection),
            ("protocol version mismatch (client 8, server 7)", Kind::Mismatch),
            ("can't find pane: %77", Kind::Command),
            ("unknown command: bogus", Kind::Command),
        ] {
            assert_eq!(sort(words.as_bytes()), kind, "{words}");
        }
    }

    #[test]
    fn a_deadline_that_ran_out_while_nobody_ran_leaves_time_for_the_answer() {
        let span = Duration::from_millis(100);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let stopped = async {
                std::thread::sleep(span * 2);
                // what lay ready is read a little later
                tokio::time::sleep(span / 5).await;
                7
            };
            assert_eq!(within(span, stopped).await, Some(7));
            assert_eq!(within(span, std::future::pending::<()>()).await, None);
        });
    }

    #[test]
    fn nobody_listens_is_believed_only_when_it_is_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let said = |words: &str| Unanswered::from_words(&path, words.as_bytes());
        assert!(matches!(said("no server running on x"), Unanswered::NoServer { .. }));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(said("no server running on x"), Unanswered::Unreachable { .. }));
        drop(listener);
        assert!(matches!(said("no server running on x"), Unanswered::NoServer { .. }));
    }
}
