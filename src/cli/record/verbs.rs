//! The verbs as arguments, and what each asks of the store.

use std::path::PathBuf;

use clap::Subcommand;

use super::super::{Exit, Failure};
use super::{epoch, failed, parse_state};
use crate::record::{
    Ack, Capture, Location, LossCause, Nonce, Origin, Ours, PaneId, ProcessId, RecordId, RestoreMode,
    StateName, Step, Upsert, Verb,
};
use crate::store::{Archive, Store, real_path};

/// A pane and its process: a real one, or `''` and 0 for none.
#[derive(Debug, clap::Args)]
pub(super) struct At {
    /// The pane's id, %N, or '' for none
    #[arg(long)]
    pane: String,
    /// The pane's process, or 0 for none
    #[arg(long)]
    pane_pid: i32,
}

impl At {
    fn location(&self) -> Result<Location, Failure> {
        match (self.pane.as_str(), self.pane_pid) {
            ("", 0) => Ok(Location::Gone),
            (pane, pid) if pid > 0 => {
                let pane: PaneId = pane.parse().map_err(|wrong| usage(format!("--pane: {wrong}")))?;
                Ok(Location::pane(pane, ProcessId::bare(pid)))
            }
            _ => Err(usage("--pane and --pane-pid are a pane and a positive pid, or '' and 0")),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum VerbArgs {
    /// Make a record of an agent, or bring it up to date
    Upsert(Box<UpsertArgs>),
    /// Claim a live record: its agent is being ended
    FreezeBegin {
        id: RecordId,
        /// The coordinator
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        owner_pid: i32,
        #[arg(long)]
        capture_ansi: String,
        #[arg(long)]
        capture_txt: String,
        #[arg(long)]
        lines: u64,
        #[arg(long, default_value = "")]
        phase: String,
    },
    /// The stand-in runs there: frozen
    FreezeCommit {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
        #[command(flatten)]
        at: At,
    },
    /// The agent was left running: live again
    FreezeAbort {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
    },
    /// Claim a frozen record: its agent is being brought back
    RestoreBegin {
        id: RecordId,
        /// The coordinator
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        owner_pid: i32,
        /// resume or repick
        #[arg(long, value_parser = parse_mode)]
        mode: RestoreMode,
    },
    /// A replacement was started there
    RestoreLaunched {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
        #[command(flatten)]
        at: At,
    },
    /// The replacement runs: live; unverified unless the provider's own files name its conversation
    RestoreConfirm {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
        #[command(flatten)]
        at: At,
        /// liveness, registry or rollout
        #[arg(long, value_parser = parse_ack, default_value = "liveness")]
        ack: Ack,
        /// The session id those files name
        #[arg(long)]
        session_id: Option<String>,
    },
    /// The restore failed
    RestoreAbort {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
        #[arg(long, default_value = "")]
        error: String,
    },
    /// A stand-in is there again
    StandinRespawned {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
        #[command(flatten)]
        at: At,
    },
    /// Claim a record
    LeaseTake {
        id: RecordId,
        /// The coordinator
        #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
        owner_pid: i32,
    },
    /// Give a claim back
    LeaseRelease {
        id: RecordId,
        #[arg(long)]
        nonce: Nonce,
    },
    /// Agents were lost in a crash: frozen, in one write
    Lose {
        #[arg(required = true)]
        ids: Vec<RecordId>,
        /// server_stopped, server_crashed, server_gone, reboot or agent_crashed
        #[arg(long, value_parser = parse_cause)]
        cause: LossCause,
        #[arg(long, default_value = "")]
        evidence: String,
        #[arg(long)]
        exit_status: Option<i32>,
        #[arg(long)]
        signal: Option<i32>,
    },
    /// An agent ended: to the archive
    End {
        id: RecordId,
        #[arg(long)]
        reason: String,
        #[arg(long, default_value = "")]
        evidence: String,
    },
    /// Bring an archived record back as frozen
    Revive { id: RecordId },
    /// Forget a record and its captures
    Drop {
        id: RecordId,
        #[arg(long)]
        nonce: Option<Nonce>,
    },
    /// Say what it works on, where that is blank
    FillTask {
        id: RecordId,
        #[arg(long, default_value = "")]
        operation: String,
        #[arg(long, default_value = "")]
        task_id: String,
    },
    /// List the records; takes no lock
    List {
        #[arg(long, value_parser = parse_state)]
        state: Option<StateName>,
        #[arg(long)]
        root: Option<PathBuf>,
    },
    /// Show one record; takes no lock
    Show { id: RecordId },
    /// Settle operations that were cut short
    Reconcile {
        /// Only say what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Retire records whose agents are provably gone
    Purge {
        /// What was seen, in the earlier scripts' format
        #[arg(long)]
        observed: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct UpsertArgs {
    /// The project's root
    #[arg(long, allow_hyphen_values = true)]
    root: PathBuf,
    /// The window's name
    #[arg(long, allow_hyphen_values = true)]
    window: String,
    #[command(flatten)]
    at: At,
    /// The record that the pane's stamp names
    #[arg(long)]
    id: Option<RecordId>,
    /// The session's name
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    session: String,
    /// The provider's session id
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    session_id: String,
    /// Clear a stored session id and transcript
    #[arg(long)]
    clear_session_id: bool,
    /// The conversation's file
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    transcript: String,
    /// agent/model
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    agent_string: String,
    /// What it works on
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    operation: String,
    /// The task
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    task_id: String,
    /// The restore this acknowledges
    #[arg(long, requires = "nonce")]
    restore_of: Option<RecordId>,
    /// The lease's token
    #[arg(long, requires = "restore_of")]
    nonce: Option<Nonce>,
    /// The tmux server's socket; found by the pane's process unless given
    #[arg(long)]
    socket: Option<PathBuf>,
}

impl UpsertArgs {
    fn upsert(self) -> Result<Upsert, Failure> {
        let at = self.at.location()?;
        let root = real_path(&self.root).into_os_string();
        let root =
            root.into_string().map_err(|_| usage("--root is not text, and the store holds only text"))?;
        let server = at.process().and_then(|process| epoch::of(process.pid, self.socket.as_deref()));
        Ok(Upsert {
            root,
            window: self.window,
            at,
            id: self.id,
            session: self.session,
            session_id: self.session_id,
            clear_session_id: self.clear_session_id,
            transcript: self.transcript,
            agent_string: self.agent_string,
            operation: self.operation,
            task_id: self.task_id,
            restore_of: self.restore_of.zip(self.nonce),
            ours: Ours { origin: server.is_some().then_some(Origin::Hook), server, ..Ours::default() },
        })
    }
}

impl VerbArgs {
    /// The steps of a verb that writes.
    pub(super) fn steps(self, store: &Store) -> Result<Vec<Step>, Failure> {
        let owner = ProcessId::bare;
        let one = |id: RecordId, verb: Verb| Ok(vec![(Some(id), verb)]);
        match self {
            Self::Upsert(args) => Ok(vec![(None, Verb::Upsert(Box::new(args.upsert()?)))]),
            Self::FreezeBegin { id, owner_pid, capture_ansi, capture_txt, lines, phase } => {
                let capture = Capture { ansi: capture_ansi, lines, txt: capture_txt };
                one(id, Verb::FreezeBegin { owner: owner(owner_pid), capture, phase, memory: None })
            }
            Self::FreezeCommit { id, nonce, at } => one(id, Verb::FreezeCommit { nonce, at: at.location()? }),
            Self::FreezeAbort { id, nonce } => one(id, Verb::FreezeAbort { nonce }),
            Self::RestoreBegin { id, owner_pid, mode } => {
                one(id, Verb::RestoreBegin { owner: owner(owner_pid), mode })
            }
            Self::RestoreLaunched { id, nonce, at } => {
                let at = at.location()?;
                let server = at.process().and_then(|process| epoch::of(process.pid, None));
                one(id, Verb::RestoreLaunched { nonce, at, server, runtime_id: None })
            }
            Self::RestoreConfirm { id, nonce, at, ack, session_id } => {
                let at = at.location()?;
                one(id, Verb::RestoreConfirm { nonce, at, ack, agent: None, session_id })
            }
            Self::RestoreAbort { id, nonce, error } => one(id, Verb::RestoreAbort { nonce, error }),
            Self::StandinRespawned { id, nonce, at } => {
                one(id, Verb::StandinRespawned { nonce, at: at.location()? })
            }
            Self::LeaseTake { id, owner_pid } => one(id, Verb::LeaseTake { owner: owner(owner_pid) }),
            Self::LeaseRelease { id, nonce } => one(id, Verb::LeaseRelease { nonce }),
            Self::Lose { ids, cause, evidence, exit_status, signal } => {
                let lose = |id| {
                    let checkpoint = store.take_checkpoint(id);
                    (
                        Some(id),
                        Verb::Lose { cause, evidence: evidence.clone(), exit_status, signal, checkpoint },
                    )
                };
                Ok(ids.into_iter().map(lose).collect())
            }
            Self::End { id, reason, evidence } => one(id, Verb::End { reason, evidence, provisional: false }),
            Self::Revive { id } => {
                let files = store.paths().files();
                let archive = Archive::new(&files);
                match archive.get(id).map_err(failed)? {
                    Some(archived) => {
                        let capture = store.revive_screen(id).map_err(failed)?;
                        one(id, Verb::Revive { archived: Box::new(archived.record), lost: None, capture })
                    }
                    None => {
                        let missing = Failure::new(Exit::code(4), format!("NO_SUCH_RECORD:{id}"));
                        Err(missing.hint("the archive does not hold it either"))
                    }
                }
            }
            Self::Drop { id, nonce } => one(id, Verb::Drop { nonce }),
            Self::FillTask { id, operation, task_id } => one(id, Verb::FillTask { operation, task_id }),
            Self::List { .. } | Self::Show { .. } | Self::Reconcile { .. } | Self::Purge { .. } => {
                Ok(Vec::new())
            }
        }
    }
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::new(Exit::RECORD_USAGE, message)
}

fn parse_ack(text: &str) -> Result<Ack, String> {
    [Ack::Liveness, Ack::Registry, Ack::Rollout]
        .into_iter()
        .find(|ack| ack.word() == text)
        .ok_or_else(|| "must be liveness, registry or rollout".to_owned())
}

fn parse_mode(text: &str) -> Result<RestoreMode, String> {
    [RestoreMode::Resume, RestoreMode::Repick]
        .into_iter()
        .find(|mode| mode.word() == text)
        .ok_or_else(|| "resume or repick".to_owned())
}

fn parse_cause(text: &str) -> Result<LossCause, String> {
    [
        LossCause::ServerStopped,
        LossCause::ServerCrashed,
        LossCause::ServerGone,
        LossCause::Reboot,
        LossCause::AgentCrashed,
    ]
    .into_iter()
    .find(|cause| cause.word() == text)
    .ok_or_else(|| "one of server_stopped, server_crashed, server_gone, reboot, agent_crashed".to_owned())
}
