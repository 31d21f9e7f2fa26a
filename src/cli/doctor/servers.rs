//! Each tmux server: whether it answers, who is attached in `_ait`, and which panes carry our stamps.

use std::path::Path;

use serde::Serialize;

use super::finding::Finding;
use crate::cli::print::shown;
use crate::cli::setup::diff::shown_path;
use crate::lifecycle::touched;
use crate::record::Records;
use crate::tmux::{HOLD_SESSION, OneShot, Probe, Unanswered, probe};

/// What `ait` has set on one server, as it is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Touched {
    /// The socket.
    pub(super) socket: String,
    /// Whether the hidden session is there; `remain-on-exit off` is set on its pane.
    pub(super) hidden_session: bool,
    /// Options on panes, one line each: pane, option, value.
    pub(super) panes: Vec<[String; 3]>,
}

/// What was seen of a server.
pub(super) struct Seen {
    pub(super) findings: Vec<Finding>,
    pub(super) touched: Option<Touched>,
}

/// A server as its socket shows it. `supervisor` is the pid of the one that runs.
pub(super) async fn check(socket: &Path, supervisor: Option<i32>, records: Option<&Records>) -> Seen {
    let name = shown_path(socket);
    let about = "server";
    let only = |finding: Finding| Seen { findings: vec![finding], touched: None };
    match probe(socket) {
        Probe::NoSocket => return only(no_socket(socket, records)),
        // a socket file that a dead server left: tmux itself clears it at its next start
        Probe::Refused => return Seen { findings: Vec::new(), touched: None },
        Probe::Unknown(why) => return only(Finding::bad(about, format!("{name} cannot be asked: {why}"))),
        Probe::Listening(_) => {}
    }
    let looked = async {
        let server = OneShot::new(socket)?;
        let facts = facts(&server).await?;
        let touched = touched::read(&server).await?;
        Ok::<_, Unanswered>((facts, shown_of(socket, &touched)))
    };
    match looked.await {
        Ok((facts, touched)) => {
            let mut findings = vec![Finding::good(about, format!("{name}: tmux {}, pid {}", facts.version, facts.pid))];
            findings.extend(holders(&name, &facts, supervisor));
            findings.extend(stamps(&name, &touched, records));
            if facts.exit_unattached == "on" {
                findings.push(Finding::note(
                    about,
                    format!("{name}: exit-unattached is on: the server ends when its last client leaves, agents with it"),
                ));
            }
            findings.extend(ends_with(&name, facts.pid));
            Seen { findings, touched: Some(touched) }
        }
        Err(Unanswered::NoServer { .. }) => Seen { findings: Vec::new(), touched: None },
        Err(wrong @ Unanswered::ProtocolMismatch { .. }) => only(
            Finding::bad(about, wrong.to_string())
                .hint("tmux was upgraded under a running server; the server lives, and its sessions with it, until it ends"),
        ),
        Err(wrong @ Unanswered::Timeout { .. }) => only(
            Finding::bad(about, wrong.to_string())
                .hint("it is stopped or overloaded; a control client that does not read (a stopped program) does that too"),
        ),
        Err(wrong) => only(Finding::bad(about, wrong.to_string())),
    }
}

fn shown_of(socket: &Path, touched: &touched::Touched) -> Touched {
    Touched {
        socket: shown_path(socket),
        hidden_session: touched.hidden_session,
        panes: touched
            .panes
            .iter()
            .map(|set| [set.pane.to_string(), set.option.to_owned(), shown(&set.value)])
            .collect(),
    }
}

/// A record names a server whose socket is not there: gone, or alive without it.
fn no_socket(socket: &Path, records: Option<&Records>) -> Finding {
    let name = shown_path(socket);
    let alive = records.into_iter().flat_map(Records::iter).find_map(|record| {
        let server = record.ait.server.as_ref().filter(|server| Path::new(&server.socket) == socket)?;
        crate::process::start_of(server.pid).filter(|started| *started == server.started).map(|_| server.pid)
    });
    match alive {
        Some(pid) => {
            Finding::bad("server", format!("the socket {name} was deleted; its server lives (pid {pid})"))
                .hint(format!("kill -USR1 {pid} makes it anew"))
        }
        None => Finding::note("server", format!("{name} is not there; no server runs on it")),
    }
}

/// What one server says of itself.
struct Facts {
    pid: i32,
    version: String,
    exit_unattached: String,
    /// Whether the hidden session is there.
    hidden: bool,
    /// Control clients: pid and session.
    control: Vec<(i32, String)>,
}

async fn facts(server: &OneShot) -> Result<Facts, Unanswered> {
    let answer = server
        .run([
            "display-message",
            "-p",
            "I #{pid} #{version}",
            ";",
            "show-options",
            "-sv",
            "exit-unattached",
            ";",
            "list-sessions",
            "-F",
            "S #{=64:session_name}",
            ";",
            "list-clients",
            "-F",
            "C #{client_control_mode} #{client_pid} #{=64:session_name}",
        ])
        .await?;
    let mut facts = Facts {
        pid: 0,
        version: String::new(),
        exit_unattached: String::new(),
        hidden: false,
        control: Vec::new(),
    };
    for line in String::from_utf8_lossy(&answer).lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("I"), Some(pid), Some(version), _) => {
                facts.pid = pid.parse().unwrap_or_default();
                facts.version = shown(version.as_bytes());
            }
            (Some("S"), Some(session), None, _) => facts.hidden |= session == HOLD_SESSION,
            (Some("C"), Some("1"), Some(pid), Some(session)) => {
                facts.control.push((pid.parse().unwrap_or_default(), shown(session.as_bytes())));
            }
            (Some("on" | "off"), None, ..) => facts.exit_unattached = line.to_owned(),
            _ => {}
        }
    }
    Ok(facts)
}

/// Who holds the hidden session.
fn holders(name: &str, facts: &Facts, supervisor: Option<i32>) -> Vec<Finding> {
    let mut all = Vec::new();
    let ours: Vec<i32> =
        facts.control.iter().filter(|(_, session)| session == HOLD_SESSION).map(|(pid, _)| *pid).collect();
    let of_supervisor = |pid: &i32| {
        supervisor.is_some_and(|up| crate::process::facts(*pid).is_some_and(|facts| facts.ppid == up))
    };
    for pid in ours.iter().filter(|pid| !of_supervisor(pid)) {
        let stopped = is_stopped(*pid);
        let state = if stopped { ", which is stopped and keeps the server from ending" } else { "" };
        all.push(
            Finding::bad("server", format!("{name}: a stale control client of ait (process {pid}{state})"))
                .hint(format!("kill {pid}")),
        );
    }
    if facts.hidden && ours.is_empty() {
        all.push(
            Finding::bad("server", format!("{name}: a session {HOLD_SESSION} that nobody holds"))
                .hint("a supervisor that starts takes it over; without one: tmux kill-session -t =_ait"),
        );
    }
    let others: Vec<String> = facts
        .control
        .iter()
        .filter(|(_, session)| session != HOLD_SESSION)
        .map(|(pid, session)| format!("process {pid} in {session}"))
        .collect();
    if !others.is_empty() {
        all.push(Finding::note("server", format!("{name}: other control clients: {}", others.join(", "))));
    }
    all
}

/// Linux: state `T` in the process's own status.
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.iter().rposition(|b| *b == b')').unwrap_or_default();
    stat.get(after + 2).is_some_and(|state| matches!(state, b'T' | b't'))
}

/// Panes whose stamp names no record.
fn stamps(name: &str, touched: &Touched, records: Option<&Records>) -> Vec<Finding> {
    let Some(records) = records else { return Vec::new() };
    let is_stamp = |option: &str| matches!(option, "@aitask_record" | "@aitask_frozen");
    touched
        .panes
        .iter()
        .filter(|[_, option, _]| is_stamp(option))
        .filter(|[_, _, value]| value.parse().ok().and_then(|id| records.get(id)).is_none())
        .map(|[pane, option, value]| {
            Finding::bad(
                "server",
                format!(
                    "{name}: pane {pane} carries {option} {}, which is no record",
                    shown(value.as_bytes())
                ),
            )
            .hint(format!("tmux set-option -pu -t {pane} {option}"))
        })
        .collect()
}

/// What a server's life hangs on besides itself, if it is anything.
fn ends_with(name: &str, pid: i32) -> Option<Finding> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let kept = || Path::new("/var/lib/systemd/linger").join(lingering(own).unwrap_or_default()).is_file();
    let what = match unit(own)? {
        Unit::Service(service) => {
            format!("the server lives in {service}, and ends when that service is stopped")
        }
        Unit::Session(session) => {
            format!(
                "the server lives in the login session {session}; where logind ends what a user leaves behind (KillUserProcesses=yes), it ends with that session"
            )
        }
        Unit::User if !kept() => {
            "the server lives under your user's systemd, and ends with your last login".to_owned()
        }
        Unit::User => return None,
    };
    let hint = "`loginctl enable-linger`, and `systemd-run --user --scope tmux` in place of `tmux`";
    Some(Finding::note("server", format!("{name}: {what}")).hint(hint))
}

/// The unit of systemd a process belongs to, where that unit's end is the process's.
#[derive(Debug, PartialEq, Eq)]
enum Unit<'a> {
    /// A service, of the system's or of the user's.
    Service(&'a str),
    /// One login.
    Session(&'a str),
    /// A scope of its own below the user's systemd, which ends with the last login of a user who does not linger.
    User,
}

fn unit(group: &str) -> Option<Unit<'_>> {
    let parts = || group.split('/').filter(|part| !part.is_empty());
    let user = parts().position(|part| part.starts_with("user@") && part.ends_with(".service"));
    let below = parts().skip(user.map_or(0, |at| at + 1));
    // a service may have groups of its own below it
    if let Some(service) = below.clone().find(|part| part.ends_with(".service")) {
        return Some(Unit::Service(service));
    }
    let session = below.clone().find(|part| part.starts_with("session-") && part.ends_with(".scope"));
    session.map(Unit::Session).or_else(|| user.map(|_| Unit::User))
}

/// The number of the user whose systemd a group is below, as the folder of those who linger does not have it: by name.
fn lingering(group: &str) -> Option<String> {
    let part = group.split('/').find_map(|part| part.strip_prefix("user@")?.strip_suffix(".service"))?;
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(part.parse().ok()?)).ok()??;
    Some(user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_servers_life_hangs_on() {
        let user = "/user.slice/user-1000.slice/user@1000.service";
        for (group, found) in [
            (
                "/user.slice/user-1000.slice/session-3.scope".to_owned(),
                Some(Unit::Session("session-3.scope")),
            ),
            ("/system.slice/sshd.service".to_owned(), Some(Unit::Service("sshd.service"))),
            ("/system.slice/ttyd.service/panes".to_owned(), Some(Unit::Service("ttyd.service"))),
            (format!("{user}/app.slice/ait.service"), Some(Unit::Service("ait.service"))),
            (format!("{user}/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope"), Some(Unit::User)),
            (format!("{user}/tmux.slice/tmux-spawn-1.scope"), Some(Unit::User)),
            (format!("{user}/init.scope"), Some(Unit::User)),
            ("/user.slice".to_owned(), None),
            ("/".to_owned(), None),
            ("/docker/0a1b".to_owned(), None),
        ] {
            assert_eq!(unit(&group), found, "{group}");
        }
    }
}
