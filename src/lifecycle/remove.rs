//! Removing a session for good: its agent is ended and its pane verified gone, and only then record, archive line and folder go.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::perform::{self, Stops, World};
use super::{adopt, apart, paste};
use crate::coordinator::{Drop, End, Task};
use crate::process::{self, Delivery, ProcessError, ProcessId, Signal};
use crate::record::{
    Host, Liveness, PaneId, Record, RecordId, Refused, ServerEpoch, State, StateName, Verb, is_lease_free,
};
use crate::store::{Archive, LONG_PATIENCE, StoreError, turns};
use crate::tmux::guarded::{self, BadValue, Epoch, Guard, Outcome, Token};
use crate::tmux::listing::{self, ListError};
use crate::tmux::{OneShot, Unanswered};

/// How long an agent has to end after its pane was closed, before it is killed.
const PATIENT: Duration = Duration::from_secs(5);
/// How long the kernel has to end what was killed.
const KILLED: Duration = Duration::from_secs(2);
/// How often a record that changes meanwhile is looked at anew.
const TRIES: usize = 4;

/// A session that is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// A pane of it was closed, or a process ended.
    pub killed: bool,
}

/// Why a session is still there; its record is kept.
#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    /// Another operation is at it.
    #[error("another operation is at it ({0})")]
    Busy(StateName),
    /// tmux did not answer or refused.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// A process cannot be watched or signalled.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It was told to end and did not.
    #[error("{0} is still there")]
    StillThere(String),
    /// It is not known what runs.
    #[error("{0}")]
    Unknown(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its folder cannot be removed.
    #[error("cannot remove its folder: {0}")]
    Folder(#[from] std::io::Error),
}

impl From<BadValue> for NotRemoved {
    fn from(value: BadValue) -> Self {
        Self::Unknown(value.to_string())
    }
}

/// Removes a session, whatever state it is in.
///
/// # Errors
/// [`NotRemoved`].
pub async fn remove(
    world: &World,
    me: &ProcessId,
    stops: &mut Stops,
    id: RecordId,
) -> Result<Removed, NotRemoved> {
    let known = world.store.read()?.records.get(id).map(|record| Record::clone(record));
    // what a deletion that was killed has left
    world.store.sweep_turns();
    // no agent is ended for a store that does not take it
    world.store.update(&world.system.facts(), LONG_PATIENCE, |_| ())?;
    let mut killed = false;
    let mut tries = 0;
    while let Some(record) = world.store.read()?.records.get(id).cloned() {
        tries += 1;
        if tries > TRIES {
            return Err(NotRemoved::Busy(record.state.name()));
        }
        let facts = world.system.facts();
        match &record.state {
            State::Live if record.lease.is_none() || is_lease_free(&record, &facts) => {
                killed |= end(&record).await?;
                forget(world, &record)?;
            }
            // whoever was at it is gone, and nobody has settled it yet
            State::Freezing | State::Restoring { .. } | State::Aborting { .. }
                if is_lease_free(&record, &facts) =>
            {
                killed |= end(&record).await?;
                killed |= end_attempts(&record).await?;
                forget(world, &record)?;
            }
            State::Frozen { .. } => {
                let stood = record.location.pane_id().is_some();
                let task = Task { record: id, me: me.clone() };
                let outcome = perform::run(world, id, &mut Drop::new(task), stops, &mut |_| {}).await;
                match outcome.end {
                    End::Done => killed |= stood,
                    End::Planned | End::Refused | End::Failed | End::Left => {
                        return Err(NotRemoved::Unknown(format!("{}: {}", outcome.word, outcome.detail)));
                    }
                }
            }
            State::Live | State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                return Err(NotRemoved::Busy(record.state.name()));
            }
        }
    }
    let archived = Archive::new(&world.store.paths().files()).get(id).ok().flatten();
    if let Some(archived) = &archived {
        killed |= clear(&archived.record).await?;
    }
    if let Some(record) = known.or_else(|| archived.map(|archived| archived.record)) {
        killed |= clear_marked(&record).await;
        apart::remove(world.store.paths(), &record);
    }
    let folder = turns::folder(world.store.paths(), id);
    match folder.symlink_metadata() {
        Ok(meta) if meta.is_dir() => remove_folder(&folder)?,
        // a link is taken away, never followed
        Ok(_) => std::fs::remove_file(&folder)?,
        Err(_) => {}
    }
    world.store.remove_captures(id);
    world.store.delete_archived(id, world.system.facts().now, LONG_PATIENCE)?;
    Ok(Removed { killed })
}

/// Drops a record whose agent was ended, if it is still as it was. One that a supervisor saw end first is in the archive; one that
/// was lost and is on its way back by now is looked at anew.
fn forget(world: &World, record: &Record) -> Result<(), NotRemoved> {
    let facts = world.system.facts();
    let dropped = world.store.update(&facts, LONG_PATIENCE, |batch| {
        let same = batch.records().get(record.id).is_some_and(|now| {
            let idle = now.lease.is_none() || is_lease_free(now, &facts);
            now.state == record.state && idle && now.location == record.location
        });
        same.then(|| batch.step(Some(record.id), &Verb::Drop { nonce: None }))
    })?;
    match dropped {
        Some(Ok(_) | Err(Refused::NoSuchRecord(_))) | None => Ok(()),
        Some(Err(refused)) => Err(NotRemoved::Unknown(refused.to_string())),
    }
}

/// How often a folder is removed again into which something was written meanwhile.
const REMOVALS: usize = 100;

/// Removes a folder with all that is in it. The agent's last words may be on their way into it: what comes is removed as well.
fn remove_folder(folder: &Path) -> io::Result<()> {
    for _ in 1..REMOVALS {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
    std::fs::remove_dir_all(folder)
}

/// Ends a live record's agent; whether anything had to be ended. A shell it was typed into is the user's, and so is its pane.
pub(super) async fn end(record: &Record) -> Result<bool, NotRemoved> {
    if let Some(Host::Shell { .. }) = record.ait.host {
        let Some(agent) = record.agent_process().filter(|agent| !agent.started.is_empty()) else {
            return Err(NotRemoved::Unknown(
                "which process below its shell is the agent is not known".to_owned(),
            ));
        };
        let told = process::signal(&agent, Signal::TERM)?;
        return Ok(gone(&agent)? || told == Delivery::Delivered);
    }
    let mut killed = false;
    if let (Some(pane), Some(process), Some(epoch)) =
        (record.location.pane_id(), record.location.process(), record.ait.server.as_ref())
    {
        killed |= close(pane, process, epoch).await?;
        // the prompt of a start that was killed may stand in one
        paste::sweep(&OneShot::new(&epoch.socket)?, &paste::buffers_of(record.id)).await;
    }
    let agents = [record.agent_process(), record.location.process().cloned()];
    for agent in agents.into_iter().flatten().filter(|agent| !agent.started.is_empty()) {
        killed |= gone(&agent)?;
    }
    Ok(killed)
}

/// Closes the dead pane of an agent that ended, where its server was told to keep such; whether there was one. A shell it was
/// typed into is the user's, and so is its pane.
pub(super) async fn clear(ended: &Record) -> Result<bool, NotRemoved> {
    let is_own = !matches!(ended.ait.host, Some(Host::Shell { .. }));
    let (Some(pane), Some(process), Some(epoch)) =
        (ended.location.pane_id(), ended.location.process(), ended.ait.server.as_ref())
    else {
        return Ok(false);
    };
    if !is_own || process::liveness(&epoch.process()) == Liveness::Gone {
        return Ok(false);
    }
    let server = OneShot::new(&epoch.socket)?;
    let Some(life) = holds(&server, pane, process, epoch).await? else { return Ok(false) };
    let guard = Guard::new(tmux_control::PaneId(pane.0), life).process(process.pid).dead();
    match guarded::kill_pane(guard, Token::random()?).run(&server).await {
        Ok(Outcome::Done) => Ok(true),
        Ok(Outcome::NotMet | Outcome::Unknown) => Ok(false),
        Ok(Outcome::Refused(words)) => Err(Unanswered::Refused { words }.into()),
        // the last pane may take its server along
        Err(_) if process::liveness(&epoch.process()) == Liveness::Gone => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Where a launch of it goes: to its own server, or to the default one.
fn socket_of(record: &Record) -> Option<PathBuf> {
    perform::sockets(record).into_iter().next()
}

/// Ends what a launch started that was cut short before its record could say where: it is known by its mark.
async fn end_attempts(record: &Record) -> Result<bool, NotRemoved> {
    let Some(socket) = socket_of(record) else { return Ok(false) };
    let server = OneShot::new(socket)?;
    let seen = match listing::snapshot(&server).await {
        Ok(seen) => seen,
        Err(ListError::Unanswered(Unanswered::NoServer { .. })) => return Ok(false),
        Err(ListError::Unanswered(error)) => return Err(error.into()),
        Err(error) => return Err(NotRemoved::Unknown(error.to_string())),
    };
    let mark = format!("{}:", record.id);
    let started = seen.panes.iter().filter(|row| !row.dead && row.attempt.starts_with(mark.as_bytes()));
    let mut killed = false;
    for (pane, pid) in started.filter_map(|row| Some((PaneId(row.id.0), row.pid?))) {
        let epoch = adopt::epoch(&server).await.map_err(|why| NotRemoved::Unknown(why.to_string()))?;
        let Some(process) = process::identify(pid) else { continue };
        killed |= close(pane, &process, &epoch).await?;
        killed |= gone(&process)?;
    }
    Ok(killed)
}

/// Closes what stands in its name where its record does not say: the dead panes and the stand-ins of launches that were cut short.
/// A server that does not answer keeps them; `ait doctor` tells of them.
async fn clear_marked(record: &Record) -> bool {
    let Some(socket) = socket_of(record) else { return false };
    let Ok(server) = OneShot::new(socket) else { return false };
    let Ok(seen) = listing::snapshot(&server).await else { return false };
    let id = record.id.to_string();
    let marked: Vec<_> =
        seen.panes.iter().filter(|row| row.frozen == id.as_str()).map(|row| row.id).collect();
    let mut closed = false;
    if marked.is_empty() {
        return closed;
    }
    let Ok(life) = adopt::epoch(&server).await else { return closed };
    let Some(life) = life.started_at.map(|started_at| Epoch { pid: life.pid, started_at }) else {
        return closed;
    };
    for pane in marked {
        let Ok(token) = Token::random() else { return closed };
        let done = guarded::kill_standin(Guard::new(pane, life), record.id, token).run(&server).await;
        closed |= matches!(done, Ok(Outcome::Done));
    }
    closed
}

/// Closes the pane, if it is the record's still, and sees that it is gone.
async fn close(pane: PaneId, process: &ProcessId, epoch: &ServerEpoch) -> Result<bool, NotRemoved> {
    let server = OneShot::new(&epoch.socket)?;
    let Some(life) = holds(&server, pane, process, epoch).await? else { return Ok(false) };
    let guard = Guard::new(tmux_control::PaneId(pane.0), life).process(process.pid);
    let mut refused = None;
    match guarded::kill_pane(guard, Token::random()?).run(&server).await {
        Ok(Outcome::Done | Outcome::NotMet | Outcome::Unknown) => {}
        Ok(Outcome::Refused(words)) => refused = Some(Unanswered::Refused { words }),
        // the last pane may take its server along
        Err(_) if process::liveness(&epoch.process()) == Liveness::Gone => return Ok(true),
        // a server that is about to go, all its sessions closed at once, refuses all there is
        Err(error @ Unanswered::Refused { .. }) => refused = Some(error),
        Err(error) => return Err(error.into()),
    }
    match holds(&server, pane, process, epoch).await? {
        None => Ok(true),
        Some(_) => Err(refused.map_or_else(|| NotRemoved::StillThere(format!("pane {pane}")), Into::into)),
    }
}

/// The server's life, if that pane holds that process there.
async fn holds(
    server: &OneShot,
    pane: PaneId,
    process: &ProcessId,
    epoch: &ServerEpoch,
) -> Result<Option<Epoch>, NotRemoved> {
    let format = "#{pid} #{start_time} #{pane_id} #{pane_pid}";
    let answer = match server.run(["list-panes", "-a", "-F", format]).await {
        Ok(answer) => answer,
        Err(_) if process::liveness(&epoch.process()) == Liveness::Gone => return Ok(None),
        // all its sessions are closed, and it is about to go
        Err(Unanswered::Refused { words }) if words.starts_with(b"no current target") => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let answer = String::from_utf8_lossy(&answer);
    let is_it = |line: &&str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let own = [epoch.pid.to_string(), pane.to_string(), process.pid.to_string()];
        matches!(&fields[..], [server, _, pane, pid] if [server, pane, pid].iter().zip(&own).all(|(a, b)| *a == b))
    };
    let started = answer.lines().find(is_it).and_then(|line| line.split(' ').nth(1)?.parse().ok());
    // an earlier life's pid that came again is another server
    let started = started.filter(|started| epoch.started_at.is_none_or(|own| own == *started));
    Ok(started.map(|started_at| Epoch { pid: epoch.pid, started_at }))
}

/// Sees a process end, by its own handle, and kills it if it will not; whether it had to be.
fn gone(process: &ProcessId) -> Result<bool, NotRemoved> {
    if process::await_death_within(process, PATIENT)? {
        return Ok(false);
    }
    match process::signal(process, Signal::KILL)? {
        Delivery::Gone => Ok(false),
        Delivery::Delivered => match process::await_death_within(process, KILLED)? {
            true => Ok(true),
            false => Err(NotRemoved::StillThere(format!("process {}", process.pid))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_written_to_is_removed_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let folder = home.path().join(round.to_string());
            std::fs::create_dir(&folder).unwrap();
            let (to, (begun, begins)) = (folder.clone(), std::sync::mpsc::channel());
            let writer = std::thread::spawn(move || {
                let write = |n: u32| std::fs::write(to.join(n.to_string()), "");
                for _ in (0..500).take_while(|n| write(*n).is_ok()) {
                    let _ = begun.send(());
                }
            });
            begins.recv().unwrap();
            remove_folder(&folder).unwrap();
            writer.join().unwrap();
            assert!(!folder.exists());
        }
    }
}
