//! Records control-mode streams from a real tmux, in the form of `fixtures/control-mode`.
//!
//! ```text
//! AIT_TEST_TMUX=/path/to/tmux cargo run -p tmux-control --example record -- OUTDIR [SCENARIO]…
//! ```
//!
//! Each scenario gets a server of its own: a private socket in a temporary folder, `-f /dev/null`, a cleared
//! environment. The base is session `main` (window `w0` running `cat`, 80x24, `automatic-rename off`) and a detached
//! session `oth` of two windows; the client attaches with `no-output` unless the scenario says otherwise. Written are
//! `SCENARIO.VERSION.ctl`, all bytes of the client's standard output up to its end, and `SCENARIO.VERSION.in`, what was
//! done. A step is over when the stream has been quiet for a quarter of a second, so that steps and lines keep their
//! order from run to run; times, process ids and guard numbers differ.
//!
//! Nothing here touches a server that it did not start.
#![expect(clippy::disallowed_methods, reason = "a recorder starts processes and writes files")]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use tmux_control::{Decoder, Event, Limits, Version};

/// How long the stream must say nothing before the next step.
const QUIET: Duration = Duration::from_millis(250);
/// How long a client may take to end after its last step.
const PATIENCE: Duration = Duration::from_secs(20);

enum Step {
    /// A line for the client's standard input.
    In(&'static str),
    /// A one-shot tmux command from outside.
    Ext(&'static [&'static str]),
    /// SIGKILL for the server.
    KillServer,
}

use Step::{Ext, In, KillServer};

struct Scenario {
    name: &'static str,
    attach: &'static [&'static str],
    steps: &'static [Step],
}

const ATTACH: &[&str] = &["attach-session", "-f", "no-output", "-t", "main"];

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "session-lifecycle",
        attach: ATTACH,
        steps: &[
            In("new-session -d -s a cat"),
            In("rename-session -t a 'a b'"),
            In("new-session -d -s grp -t main"),
            In("kill-session -t grp"),
            In("switch-client -t oth"),
            In("switch-client -t main"),
            In("kill-session -t 'a b'"),
            In("detach-client"),
        ],
    },
    Scenario {
        name: "window-names",
        attach: ATTACH,
        steps: &[
            Ext(&["rename-window", "-t", "main:0", ""]),
            Ext(&["rename-window", "-t", "main:0", "  two  spaces  "]),
            Ext(&["rename-window", "-t", "main:0", "%end 1 2 1"]),
            Ext(&["rename-window", "-t", "main:0", "back\\slash $HOME 😀"]),
            Ext(&["rename-window", "-t", "oth:0", "elsewhere"]),
            Ext(&["rename-session", "-t", "oth", "x.y:z %n"]),
            In("detach-client"),
        ],
    },
    Scenario {
        name: "layout-changes",
        attach: ATTACH,
        steps: &[
            In("split-window -d -t main:0 cat"),
            In("split-window -h -d -t main:0 cat"),
            In("resize-pane -Z -t main:0"),
            In("resize-pane -Z -t main:0"),
            In("select-layout -t main:0 tiled"),
            In("new-window -d -t main: -n second cat"),
            In("swap-window -d -s main:0 -t main:1"),
            In("detach-client"),
        ],
    },
    Scenario {
        name: "error-replies",
        attach: ATTACH,
        steps: &[
            In("bogus"),
            In("kill-pane -t %999 ; display-message -p never"),
            In("display-message -p one ; display-message -p two"),
            In("has-session -t nosuch"),
            In("# comment"),
            In("FOO=bar"),
            In("refresh-client -A %0:on"),
            In("display-message -p last"),
            In("detach-client"),
        ],
    },
    Scenario {
        name: "output-escapes",
        attach: &["attach-session", "-t", "main"],
        steps: &[
            Ext(&["send-keys", "-t", "main:0", "-l", "a\\b"]),
            Ext(&["send-keys", "-t", "main:0", "Enter"]),
            Ext(&["send-keys", "-t", "main:0", "-l", "é😀"]),
            Ext(&["send-keys", "-t", "main:0", "Enter"]),
            In("detach-client"),
        ],
    },
    Scenario {
        name: "hooks",
        attach: ATTACH,
        steps: &[
            In("set-hook -g after-new-window 'rename-window afterhook'"),
            In("new-window -d -t main:5 cat"),
            In("set-hook -gu after-new-window"),
            In("display-message -p last"),
            In("detach-client"),
        ],
    },
    Scenario { name: "attach-fails", attach: &["attach-session", "-t", "nosuch"], steps: &[] },
    Scenario { name: "kill-server", attach: ATTACH, steps: &[Ext(&["kill-server"])] },
    Scenario { name: "server-sigkill", attach: ATTACH, steps: &[KillServer] },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let out = PathBuf::from(arguments.next().ok_or("usage: record OUTDIR [SCENARIO]…")?);
    let wanted: Vec<OsString> = arguments.collect();
    fs::create_dir_all(&out)?;
    for scenario in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|name| name == scenario.name) {
            let summary = record(scenario, &out)?;
            println!("{summary}");
        }
    }
    Ok(())
}

/// Runs one scenario on a server of its own and writes its two files.
fn record(scenario: &Scenario, out: &Path) -> Result<String, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let tmux = Tmux {
        program: std::env::var_os("AIT_TEST_TMUX").unwrap_or_else(|| "tmux".into()),
        path: std::env::var_os("PATH").unwrap_or_default(),
        folder: folder.path().to_owned(),
    };
    let version = String::from_utf8_lossy(&tmux.run(&["-V"])?.stdout).trim().to_owned();
    let version = Version::parse(version.as_bytes()).ok_or(format!("no version: {version}"))?;
    tmux.start_base()?;
    let taken = tmux.take(scenario);
    tmux.run(&["kill-server"])?;
    let (stream, done) = taken?;
    fs::write(out.join(format!("{}.{version}.ctl", scenario.name)), &stream)?;
    fs::write(out.join(format!("{}.{version}.in", scenario.name)), &done)?;

    let mut decoder = Decoder::new(Limits::default());
    decoder.push(&stream);
    let (mut notifications, mut blocks, mut others) = (0, 0, 0);
    while let Some(event) = decoder.next_event() {
        match event {
            Event::Notification(_) => notifications += 1,
            Event::Block(_) => blocks += 1,
            Event::Stray(_) | Event::Fault(_) => others += 1,
        }
    }
    Ok(format!(
        "{}.{version}: {} bytes, {notifications} notifications, {blocks} blocks, {others} others",
        scenario.name,
        stream.len()
    ))
}

/// A tmux on a private socket.
struct Tmux {
    program: OsString,
    path: OsString,
    folder: PathBuf,
}

impl Tmux {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.folder)
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.folder.join("socket"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
        Ok(self.command().args(arguments).stdin(Stdio::null()).output()?)
    }

    fn must(&self, arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
        let output = self.run(arguments)?;
        if output.status.success() {
            return Ok(output);
        }
        Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
    }

    fn start_base(&self) -> Result<(), Box<dyn Error>> {
        self.must(&["new-session", "-d", "-x", "80", "-y", "24", "-s", "main", "-n", "w0", "cat"])?;
        self.must(&["set-option", "-g", "automatic-rename", "off"])?;
        self.must(&["new-session", "-d", "-x", "80", "-y", "24", "-s", "oth", "-n", "o0", "cat"])?;
        self.must(&["new-window", "-d", "-t", "oth:1", "-n", "o1", "cat"])?;
        Ok(())
    }

    /// The stream of one control client, and what was done to it.
    fn take(&self, scenario: &Scenario) -> Result<(Vec<u8>, String), Box<dyn Error>> {
        let mut client = self
            .command()
            .arg("-C")
            .args(scenario.attach)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut input = client.stdin.take().ok_or("no standard input")?;
        let mut output = client.stdout.take().ok_or("no standard output")?;
        let (sender, pieces) = sync_channel::<Vec<u8>>(1024);
        // Reads to the end whatever happens: a control client that is not read can keep its server from exiting.
        let reader = thread::spawn(move || {
            let mut piece = [0; 65_536];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (mut stream, mut done) = (Vec::new(), String::new());
        read_until_quiet(&pieces, &mut stream, QUIET);
        for step in scenario.steps {
            match step {
                In(line) => {
                    done += &format!("IN {line}\n");
                    writeln!(input, "{line}")?;
                }
                Ext(arguments) => {
                    done += &format!("EXT {arguments:?}\n");
                    self.run(arguments)?;
                }
                KillServer => {
                    done += "ACT SIGKILL server\n";
                    let pid = self.must(&["display-message", "-p", "#{pid}"])?.stdout;
                    Command::new("kill").args(["-9", String::from_utf8(pid)?.trim()]).status()?;
                }
            }
            read_until_quiet(&pieces, &mut stream, QUIET);
        }
        let ended = read_until_quiet(&pieces, &mut stream, PATIENCE);
        drop(input);
        if !ended {
            client.kill()?;
        }
        client.wait()?;
        reader.join().map_err(|_| "the reader failed")?;
        if !ended {
            return Err(format!("{}: the client did not end", scenario.name).into());
        }
        Ok((stream, done))
    }
}

/// Whether the stream ended, rather than falling quiet.
fn read_until_quiet(pieces: &Receiver<Vec<u8>>, stream: &mut Vec<u8>, quiet: Duration) -> bool {
    loop {
        match pieces.recv_timeout(quiet) {
            Ok(piece) => stream.extend_from_slice(&piece),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}
