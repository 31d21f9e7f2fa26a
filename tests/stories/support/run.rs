//! Running a program to its end, with a deadline, and what it left: status, output, JSON.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::proc::Process;

/// How long one command may take before the story fails.
const COMMAND_DEADLINE: Duration = Duration::from_secs(60);

/// A program that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The command line, for messages.
    pub(crate) line: String,
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// What it wrote to standard output.
    pub(crate) stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub(crate) stderr: Vec<u8>,
    /// From start to the end of its output.
    pub(crate) took: Duration,
}

impl Ran {
    /// Runs `command` without standard input.
    #[track_caller]
    pub(crate) fn run(command: &mut Command) -> Ran {
        Ran::feed(command, None)
    }

    /// Runs `command` with `input` on its standard input.
    #[track_caller]
    pub(crate) fn feed(command: &mut Command, input: Option<&[u8]>) -> Ran {
        let line = format!("{command:?}");
        let start = Instant::now();
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        let process = Process::of(child.id());
        let feeder = input.map(|input| {
            let (mut pipe, input) = (child.stdin.take().unwrap(), input.to_vec());
            // A program that ends without reading closes the pipe: that is its right.
            std::thread::spawn(move || drop(std::io::Write::write_all(&mut pipe, &input)))
        });
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        if let Some(process) = process
            && !process.dies(COMMAND_DEADLINE)
        {
            process.signal(rustix::process::Signal::KILL);
            let _ = child.wait();
            panic!("still running after {COMMAND_DEADLINE:?}: {line}");
        }
        let status = child.wait().unwrap();
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        if let Some(feeder) = feeder {
            feeder.join().unwrap();
        }
        Ran { line, status, stdout, stderr, took: start.elapsed() }
    }

    /// Fails unless it exited with 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        self.code(0)
    }

    /// Fails unless it exited with `code`.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Ran {
        assert!(self.status.code() == Some(code), "expected exit {code}: {self}");
        self
    }

    /// Standard output as text, without the last line end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// Standard error as text, without the last line end.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end_matches('\n').to_owned()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("not JSON ({error}): {self}"))
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ended with {}\n--- stdout\n{}", self.line, self.status, self.text())?;
        write!(f, "\n--- stderr\n{}", self.errors())
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// A child that is ended and waited for when the story lets go of it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    process: Process,
}

impl Running {
    /// Starts `command` and keeps it.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Running {
        let line = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        match Process::of(child.id()) {
            Some(process) => Running { child, process },
            None => panic!("{line} has no process: {:?}", child.wait()),
        }
    }

    /// Who it is.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// The child's own handle, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its status once it ended; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn join(&mut self, deadline: Duration) -> ExitStatus {
        assert!(self.process.dies(deadline), "pid {} still runs after {deadline:?}", self.process.pid);
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.process.end(Duration::from_secs(5));
            let _ = self.child.wait();
        }
    }
}
