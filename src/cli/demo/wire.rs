//! The supervisor's own word: its report, asked for again each time it says that something changed.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::Wrong;
use crate::api::{Hello, Request, Response, StatusReport};

/// Two connections to one supervisor: one asks, one is told of changes.
#[derive(Debug)]
pub(super) struct Wire {
    ask: Connection,
    watch: Connection,
}

#[derive(Debug)]
struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    out: OwnedWriteHalf,
}

impl Wire {
    /// Connects to the supervisor whose socket lies in `runtime`; `None` while it has none.
    pub(super) async fn connect(runtime: &Path) -> Result<Option<Wire>, Wrong> {
        let Some(socket) = socket_in(&runtime.join("ait")) else { return Ok(None) };
        let (Some(ask), Some(mut watch)) =
            (Connection::open(&socket).await?, Connection::open(&socket).await?)
        else {
            return Ok(None);
        };
        watch.say(Request::Watch).await?;
        Ok(Some(Wire { ask, watch }))
    }

    /// The report as of now.
    pub(super) async fn report(&mut self) -> Result<StatusReport, Wrong> {
        self.ask.say(Request::Status).await?;
        match self.ask.hear().await? {
            Response::Status(report) => Ok(*report),
            other @ (Response::Turns { .. }
            | Response::Changed
            | Response::Done
            | Response::Refused { .. }) => {
                Err(Wrong::Api(format!("asked for its status, it said {other:?}")))
            }
        }
    }

    /// Waits until something a report shows has changed. Cancel safe.
    pub(super) async fn changed(&mut self) -> Result<(), Wrong> {
        match self.watch.hear().await? {
            Response::Changed => Ok(()),
            other @ (Response::Status(_)
            | Response::Turns { .. }
            | Response::Done
            | Response::Refused { .. }) => Err(Wrong::Api(format!("watched, it said {other:?}"))),
        }
    }
}

impl Connection {
    /// `None` when nobody listens there yet.
    async fn open(socket: &Path) -> Result<Option<Connection>, Wrong> {
        let stream = match UnixStream::connect(socket).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Wrong::Api(error.to_string())),
        };
        let (read, out) = stream.into_split();
        let mut connection = Connection { lines: BufReader::new(read).lines(), out };
        let hello = connection.line().await?;
        serde_json::from_str::<Hello>(&hello).map_err(|error| Wrong::Api(format!("{error} in {hello}")))?;
        Ok(Some(connection))
    }

    async fn say(&mut self, request: Request) -> Result<(), Wrong> {
        let mut line = serde_json::to_vec(&request).map_err(|error| Wrong::Api(error.to_string()))?;
        line.push(b'\n');
        self.out.write_all(&line).await.map_err(|error| Wrong::Api(error.to_string()))
    }

    async fn hear(&mut self) -> Result<Response, Wrong> {
        let line = self.line().await?;
        serde_json::from_str(&line).map_err(|error| Wrong::Api(format!("{error} in {line}")))
    }

    async fn line(&mut self) -> Result<String, Wrong> {
        match self.lines.next_line().await {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(Wrong::Api("it closed the connection".to_owned())),
            Err(error) => Err(Wrong::Api(error.to_string())),
        }
    }
}

fn socket_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.next().map(|entry| entry.path())
}
