//! Finding a running supervisor and speaking [`api`](crate::api) to it.
//!
//! The supervisor is found through the lock beside the store, which names its process and its socket; whether it runs is
//! asked of the kernel. Every answer has a deadline and a bound. Nothing here starts a supervisor.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::api::{Hello, MAX_LINE, Request, Response, StatusReport, TurnStatus, VERSION};
use crate::process::{self, Delivery, ProcessError, Signal};
use crate::record::RecordId;
use crate::store::{Files, Seen, StoreError, Supervising, SupervisorLock};
use crate::turn::{Moment, Turns, View};

/// How long one answer may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why a supervisor could not be asked. That it does not answer says nothing about its agents.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The lock cannot be looked at.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The socket cannot be reached or went away.
    #[error("the supervisor's socket {socket} does not answer: {source}")]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else than an answer came.
    #[error("the supervisor on {socket} gave no answer: {why}")]
    NoAnswer {
        /// The socket.
        socket: PathBuf,
        /// What came.
        why: String,
    },
    /// The request was refused.
    #[error("the supervisor refused: {0}")]
    Refused(String),
    /// The supervisor's process cannot be signalled.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// What a look for a supervisor found.
#[derive(Debug)]
#[must_use]
pub enum Found {
    /// None runs on this store; with what the last one left.
    Nobody(Option<Supervising>),
    /// One runs. It may still be starting, so its word may be missing.
    Running(Option<Supervising>),
}

/// Looks for the supervisor of a store.
///
/// # Errors
/// The lock cannot be looked at: then it is unknown whether one runs.
pub fn find(files: &Files) -> Result<Found, ClientError> {
    Ok(match SupervisorLock::look(&files.supervisor_lock)? {
        Seen::Held(said) => Found::Running(said),
        Seen::Free(last) => Found::Nobody(last),
    })
}

/// What a record's turn, as it is written, comes to now. Where a claim is too old to count, a supervisor that watches the agent is
/// asked whether its source still shows it.
#[must_use]
pub fn view(files: &Files, record: RecordId, mut turns: Turns, now: Moment) -> View {
    if turns.is_old(now)
        && let Some(told) = told(files, record)
    {
        turns.renew(&told);
    }
    turns.view(now)
}

/// What the supervisor says a record's agent is at, if one answers and knows it.
fn told(files: &Files, record: RecordId) -> Option<View> {
    let Ok(Found::Running(Some(said))) = find(files) else { return None };
    let all = Client::connect(&said).and_then(|mut client| client.turns()).ok()?;
    let record = record.to_string();
    all.into_iter().find(|one| one.record == record).map(|one| one.turn)
}

/// A connection to a supervisor.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
    hello: Hello,
}

impl Client {
    /// Connects and reads the greeting.
    ///
    /// # Errors
    /// Nobody listens, or what answers is no supervisor.
    pub fn connect(said: &Supervising) -> Result<Client, ClientError> {
        let socket = said.socket.clone();
        let failed = |source| ClientError::Socket { socket: said.socket.clone(), source };
        let stream = UnixStream::connect(&socket).map_err(failed)?;
        stream.set_read_timeout(Some(DEADLINE)).map_err(failed)?;
        stream.set_write_timeout(Some(DEADLINE)).map_err(failed)?;
        let hello = Hello { ait: String::new(), api: VERSION, pid: 0 };
        let mut client = Client { socket, stream: BufReader::new(stream), hello };
        client.hello = client.read()?;
        Ok(client)
    }

    /// Who answers.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// One report.
    ///
    /// # Errors
    /// No answer in time, or another one.
    pub fn status(&mut self) -> Result<StatusReport, ClientError> {
        match self.ask(Request::Status)? {
            Response::Status(report) => Ok(*report),
            other => Err(self.odd(&other)),
        }
    }

    /// What each live agent is at now.
    ///
    /// # Errors
    /// No answer in time, or another one.
    pub fn turns(&mut self) -> Result<Vec<TurnStatus>, ClientError> {
        match self.ask(Request::Turns)? {
            Response::Turns { turns } => Ok(turns),
            other => Err(self.odd(&other)),
        }
    }

    /// Says what the agent of a record is about to ask, in its provider's words.
    ///
    /// # Errors
    /// No answer in time, or another one.
    pub fn question(&mut self, record: RecordId, text: &str) -> Result<(), ClientError> {
        match self.ask(Request::Question { record: record.to_string(), text: text.to_owned() })? {
            Response::Done => Ok(()),
            other => Err(self.odd(&other)),
        }
    }

    /// Asks the supervisor to end cleanly. It has ended when its process has.
    ///
    /// # Errors
    /// No answer in time, or another one.
    pub fn stop(&mut self) -> Result<(), ClientError> {
        match self.ask(Request::Stop)? {
            Response::Done => Ok(()),
            other => Err(self.odd(&other)),
        }
    }

    /// Asks to be told of changes. The first telling comes at once.
    ///
    /// # Errors
    /// The request cannot be sent.
    pub fn watch(mut self) -> Result<Changes, ClientError> {
        self.send(Request::Watch)?;
        // changes come when they come
        let unbounded = self.stream.get_ref().set_read_timeout(None);
        unbounded.map_err(|source| ClientError::Socket { socket: self.socket.clone(), source })?;
        Ok(Changes(self))
    }

    fn ask(&mut self, request: Request) -> Result<Response, ClientError> {
        self.send(request)?;
        match self.read()? {
            Response::Refused { why } => Err(ClientError::Refused(why)),
            other => Ok(other),
        }
    }

    fn odd(&self, response: &Response) -> ClientError {
        let why = match response {
            Response::Status(_) | Response::Turns { .. } => "a report that was not asked for",
            Response::Changed => "a change that was not asked for",
            Response::Done => "no report",
            Response::Refused { .. } => "a refusal",
        };
        ClientError::NoAnswer { socket: self.socket.clone(), why: why.to_owned() }
    }

    fn send(&mut self, request: Request) -> Result<(), ClientError> {
        let mut line = serde_json::to_vec(&request)
            .map_err(|wrong| ClientError::NoAnswer { socket: self.socket.clone(), why: wrong.to_string() })?;
        line.push(b'\n');
        let sent = self.stream.get_mut().write_all(&line);
        sent.map_err(|source| ClientError::Socket { socket: self.socket.clone(), source })
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ClientError> {
        let mut line = Vec::new();
        let bound = MAX_LINE as u64;
        let read = self.stream.by_ref().take(bound).read_until(b'\n', &mut line);
        read.map_err(|source| ClientError::Socket { socket: self.socket.clone(), source })?;
        let no_answer = |why: String| ClientError::NoAnswer { socket: self.socket.clone(), why };
        if line.is_empty() {
            return Err(no_answer("it hung up".to_owned()));
        }
        serde_json::from_slice(&line).map_err(|wrong| no_answer(wrong.to_string()))
    }
}

/// The changes of what a report shows, as they happen.
#[derive(Debug)]
pub struct Changes(Client);

impl Changes {
    /// Waits for the next change; however many happened meanwhile, it is one.
    ///
    /// # Errors
    /// The supervisor hung up.
    pub fn wait(&mut self) -> Result<(), ClientError> {
        self.0.read::<Response>().map(drop)
    }
}

/// Ends the supervisor that says this of itself by SIGTERM, proven by its start: a clean end, as [`Client::stop`].
///
/// # Errors
/// It cannot be signalled.
pub fn terminate(said: &Supervising) -> Result<(), ClientError> {
    let id = process::ProcessId { pid: said.pid, started: said.started.clone() };
    match process::signal(&id, Signal::TERM)? {
        Delivery::Delivered | Delivery::Gone => Ok(()),
    }
}
