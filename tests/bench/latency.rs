//! From an event on a real tmux server to its being visible in the store file, seen from outside; and the wall time of
//! the commands people wait for. Stores and sockets lie on tmpfs.
//!
//! Each figure stands beside a floor of the same run: for events, the same bytes written to a temporary file, synced,
//! renamed and seen; for commands, an empty process. Repetitions by `AIT_BENCH_N` (1,000).

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use inotify::{Inotify, WatchMask};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::figures::{Row, Samples};
use crate::support::{Home, Supervisor, Tmux};

/// Panes of one fleet.
const FLEET: usize = 50;
/// Live records of the server that is killed.
const BIG: usize = 200;
/// Nothing may take longer than this; it would be a hang, not a figure.
const DEADLINE: Duration = Duration::from_secs(20);

/// All figures of this file.
pub(crate) fn run() -> Vec<Row> {
    let n = std::env::var("AIT_BENCH_N").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let mut rows = vec![renames(n)];
    for kind in [Kind::Sessions, Kind::Splits, Kind::Kept, Kind::Shell] {
        rows.push(kills(kind, n));
    }
    rows.push(server_killed((n / 50).max(3)));
    rows.extend(commands((n / 5).max(20)));
    rows
}

/// Who looks at the store from outside: woken by its folder, reading the file whole.
struct Outside {
    inotify: Inotify,
    store: PathBuf,
    buffer: Vec<u8>,
}

impl Outside {
    fn of(store: &Path) -> Outside {
        let inotify = Inotify::init().unwrap();
        inotify.watches().add(store.parent().unwrap(), WatchMask::MOVED_TO).unwrap();
        Outside { inotify, store: store.to_owned(), buffer: vec![0; 64 * 1024] }
    }

    /// The moment the store's bytes are as wanted.
    fn until(&mut self, mut seen: impl FnMut(&[u8]) -> bool) -> Instant {
        let begun = Instant::now();
        loop {
            if let Ok(bytes) = std::fs::read(&self.store)
                && seen(&bytes)
            {
                return Instant::now();
            }
            assert!(begun.elapsed() < DEADLINE, "not seen in the store");
            // events that came since the last read are queued: none is missed
            self.inotify.read_events_blocking(&mut self.buffer).unwrap();
        }
    }
}

/// The state of a record in the store's text: keys are sorted, so `state` follows `id`.
fn is_live(store: &[u8], id: &str) -> bool {
    let Some(at) = find(store, format!("\"id\": \"{id}\"").as_bytes()) else { return false };
    let rest = &store[at..];
    find(rest, b"\"state\": \"").is_some_and(|state| rest[state + 10..].starts_with(b"live"))
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    bstr::ByteSlice::find(hay, needle)
}

/// The floor of an event: another thread is told, writes the same bytes as a store is written, and they are seen.
fn floor(bytes: &[u8], n: usize) -> Samples {
    let home = Home::on_tmpfs();
    let folder = home.home().join("floor");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("store");
    let (tell, told) = mpsc::channel::<usize>();
    let (target, mut text) = (path.clone(), bytes.to_vec());
    let writer = std::thread::spawn(move || {
        for turn in told {
            let mark = format!("{turn:08}");
            text.truncate(text.len().saturating_sub(8));
            text.extend_from_slice(mark.as_bytes());
            let temporary = target.with_extension("new");
            let mut file = File::create(&temporary).unwrap();
            file.write_all(&text).unwrap();
            file.sync_all().unwrap();
            std::fs::rename(&temporary, &target).unwrap();
            File::open(target.parent().unwrap()).unwrap().sync_all().unwrap();
        }
    });
    let mut outside = Outside::of(&path);
    let mut samples = Samples::default();
    for turn in 0..n {
        let mark = format!("{turn:08}");
        let begun = Instant::now();
        tell.send(turn).unwrap();
        let seen = outside.until(|bytes| bytes.ends_with(mark.as_bytes()));
        samples.push(seen - begun);
    }
    drop(tell);
    writer.join().unwrap();
    samples
}

fn start_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned()
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// How the agents of a fleet sit.
#[derive(Clone, Copy)]
enum Kind {
    Sessions,
    Splits,
    Kept,
    Shell,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Sessions => "agent killed, any session",
            Kind::Splits => "agent killed, in a split",
            Kind::Kept => "agent killed, under remain-on-exit",
            Kind::Shell => "agent killed, below a shell",
        }
    }
}

/// An agent of a fleet: its record's id and its own process.
struct Agent {
    id: String,
    pid: u32,
}

/// Starts `count` agents on a server and writes their records whole, as if they had been known for long.
fn fleet(tmux: &Tmux, kind: Kind, count: usize) -> Vec<Agent> {
    let home = tmux.home();
    let server = tmux.server();
    let command = match kind {
        Kind::Sessions | Kind::Splits | Kind::Kept => "exec sleep 100000",
        Kind::Shell => "sleep 100000; exec sleep 100000",
    };
    if let Kind::Kept = kind {
        tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    }
    for at in 0..count {
        match kind {
            Kind::Sessions | Kind::Kept | Kind::Shell => {
                let session = format!("s{}", at % 4);
                if at < 4 {
                    tmux.ok(["new-session", "-d", "-s", &session, "-x", "80", "-y", "24", command]);
                } else {
                    tmux.ok(["new-window", "-d", "-t", &format!("{session}:"), command]);
                }
            }
            Kind::Splits if at % 4 == 0 => {
                tmux.ok(["new-session", "-d", "-s", &format!("s{at}"), "-x", "80", "-y", "60", command]);
            }
            Kind::Splits => {
                tmux.ok(["split-window", "-d", "-t", &format!("s{}:", at - at % 4), command]);
            }
        }
    }
    let started_at: i64 = tmux.ok(["display-message", "-p", "#{start_time}"]).trim().parse().unwrap();
    let mut agents = Vec::new();
    let mut records = Vec::new();
    let format = "#{pane_id} #{pane_pid} #{session_name} #{window_id} #{window_index} #{window_name}";
    let listing = tmux.ok(["list-panes", "-a", "-F", format]);
    for line in listing.lines().filter(|line| line.split(' ').nth(2).unwrap().starts_with('s')) {
        let [pane, pid, session, window_id, index, name] =
            line.splitn(6, ' ').collect::<Vec<_>>().try_into().unwrap();
        let pid: u32 = pid.parse().unwrap();
        let agent = match kind {
            Kind::Shell => child_of(pid),
            Kind::Sessions | Kind::Splits | Kind::Kept => pid,
        };
        let host = match kind {
            Kind::Shell => json!({"kind": "shell", "argv": ["sh"], "cwd": "/"}),
            Kind::Sessions | Kind::Splits | Kind::Kept => json!({"kind": "pane"}),
        };
        let id = format!("{:08x}", agents.len() + 1);
        records.push(json!({
            "id": id, "root": "/srv/bench", "window": name, "window_slot": agents.len(), "pane_id": pane,
            "pane_pid": pid, "session": session, "state": "live", "agent_string": "claude/opus", "agent_kind": "claude",
            "codeagent_session_id": format!("00000000-0000-4000-8000-0000{id}"),
            "started_at": "2026-01-01T00:00:00Z", "state_at": "2026-01-01T00:00:00Z",
            "ait": {
                "agent": {"pid": agent, "started": start_of(agent)}, "host": host, "argv": ["claude"], "cwd": "/",
                "pane_started": start_of(pid), "window_id": window_id, "window_index": index.parse::<i64>().unwrap(),
                "server": {
                    "socket": tmux.socket_text(), "pid": server.pid, "started": start_of(server.pid),
                    "started_at": started_at, "boot_id": boot_id(),
                },
            },
        }));
        agents.push(Agent { id, pid: agent });
    }
    assert_eq!(agents.len(), count);
    write_store(home, &records);
    agents
}

fn child_of(pid: u32) -> u32 {
    let begun = Instant::now();
    loop {
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        if let Some(child) = children.split_whitespace().next() {
            return child.parse().unwrap();
        }
        assert!(begun.elapsed() < DEADLINE, "the shell starts its child");
        std::thread::yield_now();
    }
}

fn write_store(home: &Home, records: &[Value]) {
    let store = home.store();
    std::fs::create_dir_all(store.parent().unwrap()).unwrap();
    std::fs::write(&store, serde_json::to_vec_pretty(&json!({"version": 1, "sessions": records})).unwrap())
        .unwrap();
}

/// Waits until every pane is stamped and nothing is written any more, so that an event meets a quiet supervisor.
fn settled(tmux: &Tmux, supervisor: &Supervisor, agents: usize) {
    supervisor.attached(tmux);
    let begun = Instant::now();
    let stamps = || {
        let listing = tmux.ok(["list-panes", "-a", "-F", "#{@aitask_record}"]);
        listing.lines().filter(|stamp| !stamp.is_empty()).count()
    };
    while stamps() < agents {
        assert!(begun.elapsed() < DEADLINE, "every pane is stamped");
    }
    let inode = || std::fs::metadata(tmux.home().store()).unwrap().ino();
    // layouts are written half a second late
    let mut last = (inode(), Instant::now());
    while last.1.elapsed() < Duration::from_millis(800) {
        if inode() != last.0 {
            last = (inode(), Instant::now());
        }
        assert!(begun.elapsed() < DEADLINE, "the store comes to rest");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A control client of the bench's own, so that an event costs no process.
struct Hand {
    child: Child,
    stdin: ChildStdin,
}

impl Hand {
    fn on(tmux: &Tmux, session: &str) -> Hand {
        let mut command =
            tmux.command(["-C", "attach-session", "-f", "no-output,ignore-size", "-t", session]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().starts_with("%end") {}
        std::thread::spawn(move || lines.for_each(drop));
        let stdin = child.stdin.take().unwrap();
        Hand { child, stdin }
    }

    fn order(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn renames(n: usize) -> Row {
    let home = Home::on_tmpfs();
    let tmux = Tmux::start(&home);
    let agents = fleet(&tmux, Kind::Sessions, FLEET);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    settled(&tmux, &supervisor, agents.len());
    let window = tmux.ok(["display-message", "-p", "-t", "s1:", "#{window_id}"]).trim().to_owned();
    let mut hand = Hand::on(&tmux, "s2");
    let mut outside = Outside::of(&home.store());
    let mut samples = Samples::default();
    for turn in 0..n {
        let name = format!("name-{turn}-");
        let wanted = format!("\"window\": \"{name}\"");
        let begun = Instant::now();
        hand.order(&format!("rename-window -t {window} {name}"));
        let seen = outside.until(|bytes| find(bytes, wanted.as_bytes()).is_some());
        samples.push(seen - begun);
    }
    let floor = floor(&std::fs::read(home.store()).unwrap(), n);
    Row::new("rename to store", samples, floor, "p99 ≤ 3 ms")
}

fn kills(kind: Kind, n: usize) -> Row {
    let mut samples = Samples::default();
    let mut bytes = Vec::new();
    while samples.len() < n {
        let home = Home::on_tmpfs();
        let tmux = Tmux::start(&home);
        let agents = fleet(&tmux, kind, FLEET);
        let supervisor = Supervisor::start(&home, &[&tmux]);
        settled(&tmux, &supervisor, agents.len());
        bytes = std::fs::read(home.store()).unwrap();
        let mut outside = Outside::of(&home.store());
        for agent in &agents {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(agent.pid).unwrap());
            let begun = Instant::now();
            nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
            let seen = outside.until(|bytes| !is_live(bytes, &agent.id));
            samples.push(seen - begun);
        }
    }
    Row::new(kind.name(), samples, floor(&bytes, n), "p99 ≤ 5 ms")
}

fn server_killed(rounds: usize) -> Row {
    let mut samples = Samples::default();
    let mut bytes = Vec::new();
    for _ in 0..rounds {
        let home = Home::on_tmpfs();
        let tmux = Tmux::start(&home);
        let agents = fleet(&tmux, Kind::Sessions, BIG);
        let supervisor = Supervisor::start(&home, &[&tmux]);
        settled(&tmux, &supervisor, agents.len());
        bytes = std::fs::read(home.store()).unwrap();
        let mut outside = Outside::of(&home.store());
        let server = tmux.server();
        let begun = Instant::now();
        server.signal(rustix::process::Signal::KILL);
        let seen = outside.until(|bytes| find(bytes, b"\"state\": \"live\"").is_none());
        samples.push(seen - begun);
    }
    let floor = floor(&bytes, samples.len());
    Row::new("server with 200 live records killed, all lost", samples, floor, "≤ 20 ms")
}

fn commands(n: usize) -> Vec<Row> {
    let home = Home::on_tmpfs();
    let records: Vec<Value> = (0..1_000)
        .map(|at| {
            json!({
                "id": format!("{at:08x}"), "root": format!("/srv/project-{}", at % 40), "window": format!("agent-{at}"),
                "window_slot": 0, "pane_id": "", "pane_pid": 0, "session": "main", "state": "frozen",
                "agent_string": "claude/opus", "agent_kind": "claude", "frozen_at": "2026-01-01T00:00:00Z",
                "codeagent_session_id": format!("00000000-0000-4000-8000-0000{at:08x}"),
                "started_at": "2026-01-01T00:00:00Z", "state_at": "2026-01-01T00:00:00Z",
                "ait": {"cwd": "/srv", "argv": ["claude", "--model", "opus"], "host": {"kind": "pane"}},
            })
        })
        .collect();
    write_store(&home, &records);
    let timed = |command: &mut Command| {
        let begun = Instant::now();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        (begun.elapsed(), status)
    };
    let mut rows = Vec::new();
    for (name, words) in [
        ("ait status --json, 1,000 records", vec!["status", "--json"]),
        ("ait record show, 1,000 records", vec!["record", "show", "000001f4"]),
    ] {
        let (mut samples, mut floor) = (Samples::default(), Samples::default());
        for _ in 0..n {
            floor.push(timed(&mut Command::new("/bin/true")).0);
            samples.push(timed(&mut home.ait_command(&words)).0);
        }
        rows.push(Row::new(name, samples, floor, "≤ 10 ms"));
    }
    rows
}
