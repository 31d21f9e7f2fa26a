//! The thread that does nothing but drain a control client, write what its pipe did not take at once, and reap it.
//!
//! It is a thread of its own, so that no work of ours, however long, keeps it from reading: a control client that is not read
//! harms the server (R5). Between events it sleeps in the kernel.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bstr::BString;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tmux_control::{Decoder, Limits};
use tokio::sync::oneshot;

use super::queue::{EndCause, Shared, Then};
use crate::process::{Signal, await_death_within, signal};

/// How much is read at once, in bytes.
const PIECE: usize = 64 << 10;
/// How much of standard error is kept, in bytes.
const STDERR_LIMIT: usize = 16 << 10;
/// How long the client may take to end after it was told to, before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// The stack of the thread, in bytes.
const STACK: usize = 256 << 10;

/// A started control client without its standard input.
pub(super) struct Stream {
    child: Child,
    stdout: ChildStdout,
    stderr: ChildStderr,
    wake: PipeReader,
    shared: Arc<Shared>,
}

/// The ends this thread holds.
enum Pipe {
    Stdout,
    Stderr,
    Wake,
    Stdin,
}

/// What a look at the pipes found ready.
#[derive(Default)]
struct Ready {
    stdout: bool,
    stderr: bool,
    wake: bool,
    stdin: bool,
}

impl Stream {
    /// Starts the client on a thread of its own, which ends by itself once the client has. The client is tied to the thread
    /// that starts it, so it must be this one; and a client without a thread to drain it must not be.
    pub(super) fn start(
        command: Command,
        wake: PipeReader,
        attached: oneshot::Sender<Result<(), BString>>,
    ) -> io::Result<Arc<Shared>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("tmux-control".to_owned()).stack_size(STACK).spawn(move || {
            match Stream::open(command, wake, attached) {
                Ok(stream) => {
                    // the one who waits for this never leaves before
                    let _ = sender.send(Ok(Arc::clone(&stream.shared)));
                    stream.run();
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        })?;
        receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the thread is gone")))
    }

    fn open(
        mut command: Command,
        wake: PipeReader,
        attached: oneshot::Sender<Result<(), BString>>,
    ) -> io::Result<Stream> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other("a pipe is missing"));
        };
        // writing must never wait for a server that reads nothing; should this fail, it only waits
        let _ = fcntl_getfl(&stdin).and_then(|flags| fcntl_setfl(&stdin, flags | OFlags::NONBLOCK));
        Ok(Stream { child, stdout, stderr, wake, shared: Shared::new(stdin, attached) })
    }

    fn run(mut self) {
        let mut decoder = Decoder::new(Limits::default());
        let mut errors = Vec::new();
        let mut errors_open = true;
        let mut piece = vec![0; PIECE];
        let mut ended_itself = false;
        // who ended it, and when patience ends
        let mut ending: Option<(EndCause, Instant)> = None;
        loop {
            let ready = self.wait(errors_open, ending.map(|(_, until)| until));
            if ready.wake && ending.is_none() && self.woken_for_the_end() {
                self.leave();
                // the server closes our pipe when it has seen the death, which the loop waits for
                let _ = self.child.kill();
                ending = Some((EndCause::Closed, Instant::now() + GRACE));
            }
            if ready.stdin {
                self.shared.lock().flush();
            }
            if ready.stderr {
                errors_open = self.take_errors(&mut errors);
            }
            if ready.stdout {
                let count = match self.stdout.read(&mut piece) {
                    Ok(0) => {
                        ended_itself = true;
                        break;
                    }
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                match self.hear(&mut decoder, &piece[..count]) {
                    None => {}
                    // with `detach-on-destroy off` the end of our session moves us to one of the user's
                    Some(_) if ending.is_some() => break,
                    Some(cause) => {
                        ending = Some((cause, Instant::now()));
                        break;
                    }
                }
            }
            if ending.is_some_and(|(_, until)| Instant::now() >= until) {
                break;
            }
        }
        let exit = decoder.finish().exit.map(BString::from);
        let cause = ending.map_or(EndCause::Stream, |(cause, _)| cause);
        self.reap(&mut errors, errors_open, ended_itself);
        if cause == EndCause::Closed {
            self.let_go();
        }
        self.shared.lock().end(cause, exit, errors.into());
        self.shared.wake();
    }

    /// Sleeps until a pipe has something, or until patience ends. A pipe whose end has been seen is not looked at again: it
    /// would be ready for ever.
    fn wait(&self, errors_open: bool, until: Option<Instant>) -> Ready {
        // a copy, so that the lock need not be held while sleeping; only made when the pipe was full
        let stdin = self.shared.lock().to_write().and_then(|stdin| stdin.as_fd().try_clone_to_owned().ok());
        let mut pipes = vec![Pipe::Stdout];
        let mut fds = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        if until.is_none() {
            pipes.push(Pipe::Wake);
            fds.push(PollFd::new(&self.wake, PollFlags::IN));
        }
        if errors_open {
            pipes.push(Pipe::Stderr);
            fds.push(PollFd::new(&self.stderr, PollFlags::IN));
        }
        if let Some(stdin) = &stdin {
            pipes.push(Pipe::Stdin);
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        let patience = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        let mut ready = Ready::default();
        match poll(&mut fds, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return ready,
            // out of memory: a blocking read of the stream is the best that is left
            Err(_) => return Ready { stdout: true, ..ready },
        }
        for (pipe, fd) in pipes.iter().zip(&fds) {
            let told = !fd.revents().is_empty();
            match pipe {
                Pipe::Stdout => ready.stdout = told,
                Pipe::Stderr => ready.stderr = told,
                Pipe::Wake => ready.wake = told,
                Pipe::Stdin => ready.stdin = told,
            }
        }
        ready
    }

    /// Reads the wake-up; true when it was the end.
    fn woken_for_the_end(&mut self) -> bool {
        let mut bytes = [0; 64];
        matches!(self.wake.read(&mut bytes), Ok(0) | Err(_))
    }

    /// Takes no more requests.
    fn leave(&self) {
        self.shared.lock().leave();
    }

    /// Ends the process that holds the hidden session, and the session with it, once the client is gone. Before it is known
    /// whose session it is, nothing is ended but the client.
    fn let_go(&self) {
        let holder = self.shared.lock().holder();
        if let Some(holder) = holder {
            // it heeds the signal at once, unless its server is stopped together with it; gone already is as good
            let _ = signal(&holder, Signal::TERM).and_then(|_| await_death_within(&holder, GRACE));
        }
    }

    fn hear(&self, decoder: &mut Decoder, bytes: &[u8]) -> Option<EndCause> {
        let at = Instant::now();
        let mut end = None;
        decoder.push(bytes);
        let mut state = self.shared.lock();
        while let Some(event) = decoder.next_event() {
            match state.hear(event, at) {
                Then::Go => {}
                Then::End(cause) => end = Some(cause),
            }
        }
        drop(state);
        self.shared.wake();
        end
    }

    /// Takes what standard error has; false at its end.
    fn take_errors(&mut self, errors: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 1024];
        match self.stderr.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                let room = STDERR_LIMIT.saturating_sub(errors.len());
                errors.extend_from_slice(&bytes[..count.min(room)]);
                true
            }
        }
    }

    /// Waits for the process to end by itself when its stream has ended, which the end of its standard error tells; then makes
    /// sure. It is killed with its standard input still open: the server must see it die, not detach.
    fn reap(&mut self, errors: &mut Vec<u8>, mut errors_open: bool, ends_by_itself: bool) {
        let until = Instant::now() + if ends_by_itself { GRACE } else { Duration::ZERO };
        while errors_open && Instant::now() < until {
            let mut fds = [PollFd::new(&self.stderr, PollFlags::IN)];
            let patience = timespec(until.saturating_duration_since(Instant::now()));
            if poll(&mut fds, Some(&patience)) == Ok(1) {
                errors_open = self.take_errors(errors);
            }
        }
        // gone already, mostly; a client detached with `-E` never goes by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}
