//! The supervisor's socket: who may speak, and the words of `api` both ways.
//!
//! Every connection is a task of its own; it asks the loop through a channel and is told of changes through a counter, so a
//! client that does not read holds up nobody and is dropped. Only this user's processes are heard.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::api::{self, Hello, Request, Response, StatusReport, TurnStatus};
use crate::record::RecordId;

/// Connections at once; one more waits in the kernel's queue.
const CONNECTIONS: usize = 64;
/// The longest line a client may send, in bytes.
const MAX_REQUEST: u64 = 4096;
/// How long a client may take to read what it asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a connection wants of the loop.
pub(super) enum Wish {
    /// A report.
    Report(oneshot::Sender<StatusReport>),
    /// What live agents are at.
    Turns(oneshot::Sender<Vec<TurnStatus>>),
    /// What an agent is about to ask.
    Question(RecordId, String),
    /// The end.
    Stop,
}

/// The listening socket; its file goes with it.
pub(super) struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Listens at `path`; whatever an earlier supervisor left there is replaced, which the store's supervisor lock makes
    /// safe.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Serves connections until it is dropped.
    pub(super) async fn serve(&self, hello: Hello, wishes: mpsc::Sender<Wish>, news: watch::Receiver<u64>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // out of descriptors: a little later there may be one
                    tracing::warn!(%error, "cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (hello, wishes, news) = (hello.clone(), wishes.clone(), news.clone());
            tokio::spawn(async move {
                if is_ours(&stream) {
                    // a client that went away is no error
                    let _ = converse(stream, hello, wishes, news).await;
                }
                drop(place);
            });
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // the runtime folder may be gone already
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    let ours = rustix::process::getuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours)
}

async fn converse(
    stream: UnixStream,
    hello: Hello,
    wishes: mpsc::Sender<Wish>,
    mut news: watch::Receiver<u64>,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    say(&mut write, &hello).await?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = (&mut read).take(MAX_REQUEST).read_until(b'\n', &mut line).await?;
        if got == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(Request::Status) => {
                let (answer, report) = oneshot::channel();
                let asked = wishes.send(Wish::Report(answer)).await.is_ok();
                match report.await {
                    Ok(report) if asked => say(&mut write, &Response::Status(Box::new(report))).await?,
                    Ok(_) | Err(_) => return Ok(()),
                }
            }
            Ok(Request::Turns) => {
                let (answer, turns) = oneshot::channel();
                let asked = wishes.send(Wish::Turns(answer)).await.is_ok();
                match turns.await {
                    Ok(turns) if asked => say(&mut write, &Response::Turns { turns }).await?,
                    Ok(_) | Err(_) => return Ok(()),
                }
            }
            Ok(Request::Watch) => return tell_changes(&mut read, &mut write, &mut news).await,
            Ok(Request::Question { record, text }) => {
                let answer = match record.parse() {
                    Ok(record) if wishes.send(Wish::Question(record, text)).await.is_ok() => Response::Done,
                    Ok(_) => Response::Refused { why: "the supervisor is ending".to_owned() },
                    Err(_) => Response::Refused { why: "there is no such record".to_owned() },
                };
                say(&mut write, &answer).await?;
            }
            Ok(Request::Stop) => {
                let taken = wishes.send(Wish::Stop).await.is_ok();
                let why = || "the supervisor is ending already".to_owned();
                let answer = if taken { Response::Done } else { Response::Refused { why: why() } };
                say(&mut write, &answer).await?;
            }
            Err(error) => {
                say(&mut write, &Response::Refused { why: format!("not a request: {error}") }).await?
            }
        }
    }
}

/// Says "changed" now and at every change, until the client goes.
async fn tell_changes<R: tokio::io::AsyncRead + Unpin>(
    read: &mut R,
    write: &mut OwnedWriteHalf,
    news: &mut watch::Receiver<u64>,
) -> io::Result<()> {
    let mut rest = [0; 256];
    loop {
        news.mark_unchanged();
        say(write, &Response::Changed).await?;
        loop {
            tokio::select! {
                changed = news.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    break;
                }
                got = read.read(&mut rest) => {
                    if got? == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }
}

async fn say<T: serde::Serialize>(write: &mut OwnedWriteHalf, value: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    debug_assert!(line.len() <= api::MAX_LINE);
    tokio::time::timeout(PATIENCE, write.write_all(&line))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
