//! Bringing a stopped session's conversation back under its own id, from wherever its record is.

use super::perform::World;
use super::remove::{self, NotRemoved};
use crate::record::{Host, LossCause, Record, RecordId, Refused, State, StateName, Verb};
use crate::store::{Archive, LONG_PATIENCE, StoreError};

/// Why a record cannot be made ready for its restore.
#[derive(Debug, thiserror::Error)]
pub enum NotRevived {
    /// Another operation is at it.
    #[error("another operation is at it ({0})")]
    Busy(StateName),
    /// There is no such record, archived or not.
    #[error("there is no record {0}")]
    Nowhere(RecordId),
    /// The store refused.
    #[error("the store refused: {0}")]
    Refused(Refused),
    /// What is left of it cannot be cleared away.
    #[error(transparent)]
    Left(#[from] NotRemoved),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a stopped session's record frozen, as a restore wants it: one that nobody saw end is ended first, one from the archive
/// comes back with its last screen.
///
/// # Errors
/// [`NotRevived`].
pub async fn revive(world: &World, id: RecordId) -> Result<(), NotRevived> {
    let store = &world.store;
    if let Some(record) = store.read()?.records.get(id).cloned() {
        match &record.state {
            State::Frozen { .. } => return Ok(()),
            State::Live => settle(world, &record).await?,
            State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                return Err(NotRevived::Busy(record.state.name()));
            }
        }
        if store.read()?.records.get(id).is_some() {
            // it was lost with its server: frozen already
            return Ok(());
        }
    }
    let mut archived = Archive::new(&store.paths().files()).get(id)?.ok_or(NotRevived::Nowhere(id))?;
    remove::clear(&archived.record).await?;
    archived.record.ait.session.iter_mut().for_each(|session| session.stopped_at = Some(archived.at));
    let capture = store.revive_screen(id)?;
    let verb = Verb::Revive { archived: Box::new(archived.record), lost: None, capture };
    match apply(world, id, verb) {
        // another one was quicker to make it ready
        Err(NotRevived::Refused(Refused::State { .. })) if store.read()?.records.get(id).is_some() => Ok(()),
        done => done,
    }
}

/// Nobody watched when its agent ended: its dead pane is closed, and the end is written.
async fn settle(world: &World, record: &Record) -> Result<(), NotRevived> {
    if !matches!(record.ait.host, Some(Host::Shell { .. })) {
        remove::end(record).await?;
    }
    let evidence = "nobody watched its end".to_owned();
    let end = Verb::End { reason: "exited".to_owned(), evidence: evidence.clone(), provisional: false };
    match apply(world, record.id, end) {
        Err(NotRevived::Refused(Refused::NoEvidence { .. })) => {
            let cause = LossCause::ServerGone;
            let lose = Verb::Lose { cause, evidence, exit_status: None, signal: None, checkpoint: None };
            apply(world, record.id, lose)
        }
        // a supervisor saw it first
        Err(NotRevived::Refused(Refused::NoSuchRecord(_))) => Ok(()),
        other => other,
    }
}

fn apply(world: &World, id: RecordId, verb: Verb) -> Result<(), NotRevived> {
    match world.store.apply(&[(Some(id), verb)], &world.system.facts(), LONG_PATIENCE)?.pop() {
        Some(Ok(_)) | None => Ok(()),
        Some(Err(refused)) => Err(NotRevived::Refused(refused)),
    }
}
