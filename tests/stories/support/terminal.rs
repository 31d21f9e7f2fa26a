//! A user's terminal on a private server, as an interactive client sees it.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::run::Running;
use super::tmux::real_binary;
use super::{DEADLINE, Tmux, proc, wait_until};

/// A user's terminal: a tmux client on a pseudo-terminal of `script`, outside every tmux.
#[derive(Debug)]
pub(crate) struct Terminal {
    client: Running,
}

impl Terminal {
    /// Attaches to `target`, or to what tmux chooses, and waits until it is there.
    #[track_caller]
    pub(crate) fn attach(tmux: &Tmux, target: Option<&str>) -> Terminal {
        Terminal::recorded(tmux, target, Path::new("/dev/null"))
    }

    /// The same, all that it is sent written to `record`.
    #[track_caller]
    pub(crate) fn recorded(tmux: &Tmux, target: Option<&str>, record: &Path) -> Terminal {
        let target = target.map(|target| format!(" -t '{target}'")).unwrap_or_default();
        let line = format!("'{}' -u -S '{}' attach{target}", real_binary().display(), tmux.socket_text());
        let mut command = tmux.home().command("script");
        command.args(["-q", "-f", "-e", "-c", &line]).arg(record);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let terminal = Terminal { client: Running::start(&mut command) };
        wait_until("the terminal to be attached", DEADLINE, || terminal.find(tmux).map(drop));
        terminal
    }

    /// The session it shows.
    #[track_caller]
    pub(crate) fn session(&self, tmux: &Tmux) -> String {
        self.find(tmux).unwrap_or_default()
    }

    /// What the terminal sends: keys, or what it says of itself.
    #[track_caller]
    pub(crate) fn sends(&mut self, bytes: &[u8]) {
        let pipe = self.client.child().stdin.as_mut().unwrap();
        pipe.write_all(bytes).and_then(|()| pipe.flush()).unwrap();
    }

    fn find(&self, tmux: &Tmux) -> Option<String> {
        let answer =
            tmux.run(["list-clients", "-F", "#{client_control_mode} #{client_pid} #{session_name}"]).text();
        let below: Vec<u32> =
            proc::children(self.client.process().pid).iter().map(|child| child.pid).collect();
        answer.lines().find_map(|line| {
            let (pid, session) = line.strip_prefix("0 ")?.split_once(' ')?;
            let pid: u32 = pid.parse().ok()?;
            let shell = proc::parent(pid);
            (below.contains(&pid) || shell.is_some_and(|shell| below.contains(&shell)))
                .then(|| session.to_owned())
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut below = proc::children(self.client.process().pid);
        below.extend(below.clone().iter().flat_map(|child| proc::children(child.pid)));
        // the end of its input ends `script`, which hangs up on the client
        if let Some(mut pipe) = self.client.child().stdin.take() {
            let _ = pipe.flush();
        }
        self.client.process().end(Duration::from_secs(5));
        // nobody asks the server before the client is gone: a command beside a client that is leaving can crash tmux 3.3a
        // and 3.5a (met here, without a control client)
        for process in below {
            process.dies(Duration::from_secs(5));
        }
    }
}
