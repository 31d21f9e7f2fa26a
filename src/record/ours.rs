//! What this project adds to a record, kept under the one key `ait`: which epoch the location belongs to, how the agent
//! was launched and sits in its pane, how it was lost. Everything is optional; a file of the earlier scripts has none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::json::{Unknown, print_object, read_object};
use super::{Capture, ProcessId, Session, Stamp, WindowId};

/// One life of a tmux server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerEpoch {
    /// Path of the server's socket, resolved.
    pub socket: String,
    /// The server's own process.
    pub pid: i32,
    /// Start of that process, opaque; empty if it could not be read.
    pub started: String,
    /// tmux's `#{start_time}`, Unix seconds, where it was asked for.
    pub started_at: Option<i64>,
    /// The boot this life belongs to; empty if unknown.
    pub boot_id: String,
    /// Fields this version does not know.
    pub unknown: Unknown,
}

impl ServerEpoch {
    /// The server's process.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        ProcessId::new(self.pid, self.started.as_str())
    }

    /// Whether both are the same life: same socket, pid and boot, and no start that contradicts.
    #[must_use]
    pub fn is_same_life(&self, other: &Self) -> bool {
        let agree = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        let times = match (self.started_at, other.started_at) {
            (Some(a), Some(b)) => a == b,
            (None, _) | (_, None) => true,
        };
        self.socket == other.socket
            && self.pid == other.pid
            && agree(&self.boot_id, &other.boot_id)
            && agree(&self.started, &other.started)
            && times
    }
}

read_object! {
    #[derive(Default)]
    struct ServerFields {
        boot_id: String,
        pid: i32,
        socket: String,
        started: String,
        started_at: Option<i64>,
    }
}

impl<'de> Deserialize<'de> for ServerEpoch {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ServerFields { boot_id, pid, socket, started, started_at, unknown } =
            Deserialize::deserialize(deserializer)?;
        if socket.is_empty() || pid <= 0 {
            return Err(serde::de::Error::custom("a server epoch needs a socket and a positive pid"));
        }
        Ok(Self { socket, pid, started, started_at, boot_id, unknown })
    }
}

impl Serialize for ServerEpoch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        print_object!(serializer, self.unknown, {
            boot_id: self.boot_id.as_str(),
            pid: self.pid,
            socket: self.socket.as_str(),
            started: self.started.as_str(),
            started_at: self.started_at,
        })
    }
}

/// How the agent sits in its pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Host {
    /// The agent is the pane's own process.
    Pane,
    /// The user typed the agent into a shell, which is the pane's process.
    Shell {
        /// The shell's arguments.
        #[serde(default)]
        argv: Vec<String>,
        /// The shell's working directory.
        #[serde(default)]
        cwd: String,
    },
}

/// Who made the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `ait` started the agent.
    Started,
    /// A running agent was taken under care.
    Adopted,
    /// The provider's own hook reported it.
    Hook,
}

/// What the user wants of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// It shall run; a loss is made good.
    Live,
    /// It shall stay frozen.
    Frozen,
    /// It shall stay ended.
    Stopped,
}

/// What is done about lost agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// They are brought back without being asked.
    #[default]
    Auto,
    /// They are shown, and brought back on demand.
    Offer,
    /// They are kept, and nothing is said of bringing them back.
    Off,
}

impl Policy {
    /// The word in files and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Offer => "offer",
            Self::Off => "off",
        }
    }
}

/// What took an agent away (store contract, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// The server ended cleanly: `kill-server` or SIGTERM, which cannot be told apart.
    ServerStopped,
    /// The server said that it exited unexpectedly: killed or crashed.
    ServerCrashed,
    /// The server went without a word; treated as crashed.
    ServerGone,
    /// The boot id changed.
    Reboot,
    /// The agent itself died by a signal or for want of memory.
    AgentCrashed,
}

impl LossCause {
    /// The word in the file and in result lines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ServerStopped => "server_stopped",
            Self::ServerCrashed => "server_crashed",
            Self::ServerGone => "server_gone",
            Self::Reboot => "reboot",
            Self::AgentCrashed => "agent_crashed",
        }
    }
}

/// How and when an agent was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// When the loss was written.
    pub at: Stamp,
    /// What took it.
    pub cause: LossCause,
    /// The agent's exit status, where there is one.
    pub exit_status: Option<i32>,
    /// The signal that ended it, where known.
    pub signal: Option<i32>,
    /// What was seen, in words.
    pub evidence: String,
    /// The agent's process as it was: one that outlived its server may still run.
    pub agent: Option<ProcessId>,
    /// How long it had been back from the loss before, in seconds, if there was one.
    pub lived: Option<u64>,
    /// Fields this version does not know.
    pub unknown: Unknown,
}

read_object! {
    #[derive(Default)]
    struct LostFields {
        agent: Option<ProcessId>,
        at: Option<Stamp>,
        cause: Option<LossCause>,
        evidence: String,
        exit_status: Option<i32>,
        lived: Option<u64>,
        signal: Option<i32>,
    }
}

impl<'de> Deserialize<'de> for Lost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let LostFields { agent, at, cause, evidence, exit_status, lived, signal, unknown } =
            Deserialize::deserialize(deserializer)?;
        let (Some(at), Some(cause)) = (at, cause) else {
            return Err(serde::de::Error::custom("a loss needs its time and its cause"));
        };
        Ok(Self { at, cause, exit_status, signal, evidence, agent, lived, unknown })
    }
}

impl Serialize for Lost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        print_object!(serializer, self.unknown, {
            agent: self.agent.as_ref(),
            at: self.at,
            cause: self.cause,
            evidence: self.evidence.as_str(),
            exit_status: self.exit_status,
            lived: self.lived,
            signal: self.signal,
        })
    }
}

/// That an agent came back from a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// When.
    pub at: Stamp,
    /// What had taken it.
    pub cause: LossCause,
}

/// A moment on the clock that runs through suspend and that nobody can set, within one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTime {
    /// The boot it counts from.
    pub boot_id: String,
    /// Seconds since that boot.
    pub seconds: u64,
}

/// What this project knows of a record beyond the shared fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ours {
    /// The provider's own process: the pane's process, or a child of the user's shell.
    pub agent: Option<ProcessId>,
    /// The provider's binary, absolute.
    pub agent_bin: Option<String>,
    /// How the agent was launched; no prompt text, no secrets.
    pub argv: Option<Vec<String>>,
    /// The session id that the last restore met in place of the one asked for.
    pub came_instead: Option<String>,
    /// The capture that a freeze in flight would put back if it is aborted.
    pub capture_before: Option<Capture>,
    /// When the checkpoint was last written.
    pub checkpoint_at: Option<Stamp>,
    /// The agent's working directory; the one its conversation is filed under.
    pub cwd: Option<String>,
    /// What the user wants of it.
    pub desired: Option<Desired>,
    /// Session ids of conversations it had before, the oldest first; at most 16.
    pub earlier: Option<Vec<String>>,
    /// The environment to launch it with again; never a secret.
    pub env: Option<BTreeMap<String, String>>,
    /// Launches so far.
    pub generation: Option<u64>,
    /// How it sits in its pane.
    pub host: Option<Host>,
    /// What its processes had of memory to themselves when they were ended for its freeze, in bytes.
    pub memory: Option<u64>,
    /// Who made the record.
    pub origin: Option<Origin>,
    /// What is done about its loss, where the user wants it otherwise than for the others.
    pub recover: Option<Policy>,
    /// Its return from its last loss, while it lives since then.
    pub recovered: Option<Recovered>,
    /// A UUID per launch.
    pub runtime_id: Option<String>,
    /// The epoch the location belongs to, or last belonged to.
    pub server: Option<ServerEpoch>,
    /// The session it was started as, if `ait` started it.
    pub session: Option<Session>,
    /// The task file it was linked into last, absolute.
    pub task_file: Option<String>,
    /// The pane's title, stripped of control bytes.
    pub title: Option<String>,
    /// The tmux window, by id.
    pub window_id: Option<WindowId>,
    /// The window's index in its session.
    pub window_index: Option<i64>,
    /// tmux's layout string of the window.
    pub window_layout: Option<String>,
    /// Fields this version does not know.
    pub unknown: Unknown,
}

impl Ours {
    /// Takes over what `other` knows: everything it has if `replace`, else only what is blank here.
    pub fn merge(&mut self, other: &Self, replace: bool) {
        fn fill<T: Clone>(into: &mut Option<T>, from: &Option<T>, replace: bool) {
            if from.is_some() && (replace || into.is_none()) {
                into.clone_from(from);
            }
        }
        let Self {
            agent,
            agent_bin,
            argv,
            came_instead,
            capture_before,
            checkpoint_at,
            cwd,
            desired,
            earlier,
            env,
            generation,
            host,
            memory,
            origin,
            recover,
            recovered,
            runtime_id,
            server,
            session,
            task_file,
            title,
            window_id,
            window_index,
            window_layout,
            unknown,
        } = other;
        fill(&mut self.agent, agent, replace);
        fill(&mut self.agent_bin, agent_bin, replace);
        fill(&mut self.argv, argv, replace);
        fill(&mut self.came_instead, came_instead, replace);
        fill(&mut self.capture_before, capture_before, replace);
        fill(&mut self.checkpoint_at, checkpoint_at, replace);
        fill(&mut self.cwd, cwd, replace);
        fill(&mut self.desired, desired, replace);
        fill(&mut self.earlier, earlier, replace);
        fill(&mut self.env, env, replace);
        fill(&mut self.generation, generation, replace);
        fill(&mut self.host, host, replace);
        fill(&mut self.memory, memory, replace);
        fill(&mut self.origin, origin, replace);
        fill(&mut self.recover, recover, replace);
        fill(&mut self.recovered, recovered, replace);
        fill(&mut self.runtime_id, runtime_id, replace);
        fill(&mut self.server, server, replace);
        fill(&mut self.session, session, replace);
        fill(&mut self.task_file, task_file, replace);
        fill(&mut self.title, title, replace);
        fill(&mut self.window_id, window_id, replace);
        fill(&mut self.window_index, window_index, replace);
        fill(&mut self.window_layout, window_layout, replace);
        for (key, raw) in &unknown.0 {
            if replace || !self.unknown.0.contains_key(key) {
                self.unknown.0.insert(key.clone(), raw.clone());
            }
        }
    }
}
