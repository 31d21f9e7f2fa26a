//! Each act, once.

use std::path::Path;

use bstr::ByteSlice;

use super::Performer;
use crate::coordinator::{Act, Acted, Applied, Conversation, Deed, Heard, PaneAct, ServerSight, Sign};
use crate::history::{Environment, Located};
use crate::lifecycle::adopt::{self, LookError};
use crate::lifecycle::identity;
use crate::process::{self, ProcessId, Signal};
use crate::record::{Liveness, PaneId, ServerEpoch, Verb};
use crate::store::turns::{self, Whose};
use crate::store::{PATIENCE, Seen, SupervisorLock};
use crate::tmux::guarded::{self, BadValue, Dispatch, Epoch, Guard, Outcome, Token};
use crate::tmux::listing::{self, ListError};
use crate::tmux::{OneShot, Unanswered};
use crate::turn::Moment;

impl Performer<'_> {
    /// Performs one act and says what came of it.
    pub(super) async fn perform(&mut self, act: Act) -> Heard {
        match act {
            Act::Read => self.known(),
            Act::Follow => self.follow(),
            Act::Apply(verb) => Heard::Applied(self.apply(*verb)),
            Act::Look => Heard::Server(self.look().await),
            Act::Family => Heard::Family(self.family()),
            Act::Examine => Heard::Sight(self.examine().await),
            Act::Locate => Heard::Conversation(self.locate()),
            Act::Capture => Heard::Captured(self.capture().await),
            Act::Pane(act) => Heard::Acted(self.on_pane(&act).await),
            Act::Clear => Heard::Acted(self.clear().await),
            Act::Watch(process) => self.watch(process),
            Act::Signal { to, signal } => Heard::Signalled(send(&to, signal)),
            Act::Ready { mode } => Heard::Ready(self.ready(mode).await),
            Act::Launch(launch) => Heard::Launched(self.launch(&launch).await),
            Act::Attend => self.attend(),
            Act::Prove => Heard::Proof(self.prove().await),
            // the loop takes these itself
            Act::Tell(_) | Act::Finish(_) => Heard::Time,
        }
    }

    /// The record, with the conversation its agent has now.
    fn known(&mut self) -> Heard {
        let read = self.read();
        let Some(correction) = self.record.as_deref().and_then(identity::correction) else { return read };
        match self.apply(correction) {
            Applied::Done(_) => self.read(),
            // the machine's own next verb meets the same store
            Applied::Refused(_) | Applied::Failed(_) => read,
        }
    }

    fn apply(&mut self, verb: Verb) -> Applied {
        let launched = matches!(verb, Verb::RestoreLaunched { .. });
        let steps = [(Some(self.id), verb)];
        match self.world.store.apply(&steps, &self.world.system.facts(), PATIENCE) {
            Ok(mut answers) => match answers.pop() {
                Some(Ok(done)) => {
                    if launched {
                        self.begins();
                    }
                    Applied::Done(done.outcome)
                }
                Some(Err(refused)) => Applied::Refused(refused),
                None => Applied::Failed("the store gave no answer".to_owned()),
            },
            Err(error) => Applied::Failed(error.to_string()),
        }
    }

    /// A launch begins: what was told of the one before is not told of it.
    fn begins(&self) {
        let Ok(snapshot) = self.world.store.read() else { return };
        let Some(record) = snapshot.records.get(self.id) else { return };
        let now = Moment::from(jiff::Timestamp::now());
        if let Err(error) = turns::begin(self.world.store.paths(), &Whose::of(record), now) {
            tracing::info!(record = %self.id, %error, "the beginning of its launch is not noted");
        }
    }

    /// The record's server and its life.
    pub(super) fn server(&self) -> Option<(ServerEpoch, Result<OneShot, Unanswered>)> {
        let epoch = self.record.as_ref()?.ait.server.clone()?;
        let server = OneShot::new(Path::new(&epoch.socket));
        Some((epoch, server))
    }

    async fn look(&mut self) -> ServerSight {
        let Some((epoch, server)) = self.server() else { return ServerSight::Unnamed };
        let system = &self.world.system;
        let is_over = || crate::record::is_epoch_over(&epoch, &system.facts());
        let unknown = |why: String| if is_over() { ServerSight::Over } else { ServerSight::Unknown(why) };
        let server = match server {
            Ok(server) => server,
            Err(error) => return unknown(error.to_string()),
        };
        let snapshot = match listing::snapshot(&server).await {
            Ok(snapshot) => snapshot,
            Err(ListError::Unanswered(error)) => return unknown(error.to_string()),
            Err(ListError::Bad(error)) => return ServerSight::Unknown(error.to_string()),
        };
        match adopt::epoch(&server).await {
            Ok(now) if now.is_same_life(&epoch) => {
                self.started_at = now.started_at;
                ServerSight::Listed(Box::new(snapshot))
            }
            // its own life may go on without its socket
            Ok(_) => unknown("another server has its socket".to_owned()),
            Err(LookError::Unanswered(error)) => unknown(error.to_string()),
            Err(error) => ServerSight::Unknown(error.to_string()),
        }
    }

    async fn on_pane(&self, act: &PaneAct) -> Acted {
        let Some((epoch, server)) = self.server() else {
            return Acted::Refused("its record names no server".to_owned());
        };
        let Some(started_at) = epoch.started_at.or(self.started_at) else {
            return Acted::Refused("its record does not say when its server started".to_owned());
        };
        let server = match server {
            Ok(server) => server,
            Err(error) => return Acted::Unknown(error.to_string()),
        };
        self.order(act, &epoch, started_at, &server).await
    }

    async fn order(&self, act: &PaneAct, epoch: &ServerEpoch, started_at: i64, server: &OneShot) -> Acted {
        let dispatch = match self.dispatch(act, Epoch { pid: epoch.pid, started_at }) {
            Ok(dispatch) => dispatch.printed(),
            Err(wrong) => return Acted::Refused(wrong.to_string()),
        };
        match dispatch.run(server).await {
            Ok(Outcome::Done) => Acted::Done,
            Ok(Outcome::NotMet) => Acted::NotMet,
            Ok(Outcome::Refused(words)) => Acted::Refused(words.to_str_lossy().into_owned()),
            Ok(Outcome::Unknown) => Acted::Unknown("no proof that it was done".to_owned()),
            Err(_) if process::liveness(&epoch.process()) == Liveness::Gone => Acted::NoServer,
            Err(error) => Acted::Unknown(error.to_string()),
        }
    }

    /// What stands in for the record on whatever server has its socket now is closed. A pane with the stamp in which something
    /// else lives is left alone.
    async fn clear(&self) -> Acted {
        let server = match self.server() {
            None => return Acted::NoServer,
            Some((_, Ok(server))) => server,
            Some((_, Err(error))) => return Acted::Unknown(error.to_string()),
        };
        let epoch = match adopt::epoch(&server).await {
            Ok(epoch) => epoch,
            Err(LookError::Unanswered(Unanswered::NoServer { .. })) => return Acted::NoServer,
            Err(error) => return Acted::Unknown(error.to_string()),
        };
        let Some(started_at) = epoch.started_at else {
            return Acted::Unknown("it does not say when it started".to_owned());
        };
        let panes = match listing::snapshot(&server).await {
            Ok(snapshot) => snapshot.panes,
            Err(error) => return Acted::Unknown(error.to_string()),
        };
        let id = self.id.to_string();
        for row in panes.iter().filter(|row| row.frozen == id.as_str()) {
            let act = PaneAct { pane: PaneId(row.id.0), pid: row.pid, deed: Deed::KillStandin };
            match self.order(&act, &epoch, started_at, &server).await {
                Acted::Done | Acted::NotMet => {}
                // with its last pane the server ends
                other @ (Acted::NoServer | Acted::Refused(_) | Acted::Unknown(_)) => return other,
            }
        }
        Acted::Done
    }

    fn dispatch(&self, act: &PaneAct, epoch: Epoch) -> Result<Dispatch, BadValue> {
        let guard = Guard::new(tmux_control::PaneId(act.pane.0), epoch);
        let guard = match (act.pid, &act.deed) {
            // it may be the process, and need not
            (Some(_), Deed::RespawnStandin) | (None, _) => guard,
            (Some(pid), _) => guard.process(pid),
        };
        let token = Token::random()?;
        Ok(match act.deed {
            Deed::StampFrozen => guarded::stamp_frozen(guard, self.id, token),
            Deed::UnstampFrozen { release } => guarded::unstamp_frozen(guard, self.id, release, token),
            Deed::RespawnStandin => {
                guarded::respawn_standin(guard, self.id, act.pid, &self.world.program, token)
            }
            // a pane that is kept when its agent ends is closed by a supervisor; where none runs, tmux closes it
            Deed::StampRestored { release } => {
                guarded::stamp_restored(guard, self.id, release || !self.is_supervised(), token)
            }
            Deed::KillStandin => guarded::kill_standin(guard, self.id, token),
            Deed::KillDead => guarded::kill_dead_pane(guard, self.id, token),
        })
    }

    /// Whether a supervisor runs, as far as its lock says.
    fn is_supervised(&self) -> bool {
        let lock = self.world.store.paths().files().supervisor_lock;
        !matches!(SupervisorLock::look(&lock), Ok(Seen::Free(_)))
    }

    /// Whether the conversation can be resumed from disk, where its provider looks for it.
    fn locate(&self) -> Conversation {
        let Some(record) = &self.record else {
            return Conversation::Unknown("there is no record".to_owned());
        };
        let cwd = record.ait.cwd.as_deref().unwrap_or(&record.root);
        let located = identity::locate(&self.world.catalog, record, Path::new(cwd), &self.environment());
        match located {
            Located::Present { path, files_under_cwd: true, .. } => {
                Conversation::Present { path: path.to_string_lossy().into_owned() }
            }
            Located::Present { path, files_under_cwd: false, .. } => {
                Conversation::Missing(format!("{} is not filed under {cwd}", path.display()))
            }
            Located::Ambiguous { candidates } => {
                Conversation::Unknown(format!("{} files say that they are it", candidates.len()))
            }
            Located::Missing { why } => {
                Conversation::Missing(format!("its conversation is not on disk: {}", why.word()))
            }
            Located::Unknown { why } => Conversation::Unknown(why.to_string()),
        }
    }

    /// The agent's own environment, as far as it was recorded.
    pub(super) fn environment(&self) -> Environment {
        let recorded = self.record.as_ref().and_then(|record| record.ait.env.clone()).unwrap_or_default();
        let environment = Environment::recorded(&recorded);
        match std::env::var_os("HOME") {
            Some(home) => environment.with_home(Path::new(&home)),
            None => environment,
        }
    }
}

/// Signals each through a handle of its own; the failures.
fn send(to: &[ProcessId], sign: Sign) -> Vec<(ProcessId, String)> {
    let signal = match sign {
        Sign::Term => Signal::TERM,
        Sign::Kill => Signal::KILL,
    };
    to.iter()
        .filter_map(|process| match process::signal(process, signal) {
            // one that is gone needs no signal
            Ok(_) => None,
            Err(error) => Some((process.clone(), error.to_string())),
        })
        .collect()
}
