//! Which record an upsert means. Pure, over the whole set: the stamp's record, else the conversation's whose agent is
//! gone, else the pane's in this epoch, else the one record of that window whose agent is gone, else a new one.

use super::apply::name_of;
use super::guard::agent_liveness;
use super::{Facts, Liveness, Location, Record, RecordId, State, Upsert};

/// Where a record that is made or moved would stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The record meant, or the id a new one gets.
    pub id: RecordId,
    /// Lowest slot unused in the window it comes to.
    pub slot: u32,
    /// Whether that window has no other record.
    pub alone: bool,
    /// Whether several records could have been meant and none was taken.
    pub ambiguous: bool,
}

/// What an upsert without a restore means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    /// This record.
    Known(RecordId),
    /// A new one; `ambiguous` if several old ones could have been meant.
    New {
        /// Several records could have been meant.
        ambiguous: bool,
    },
}

/// Resolves an upsert over all records.
#[must_use]
pub fn resolve<'a>(
    records: impl Iterator<Item = &'a Record> + Clone,
    upsert: &Upsert,
    facts: &Facts<'_>,
) -> Meant {
    if let Some((id, _)) = upsert.restore_of {
        return Meant::Known(id);
    }
    if let Some(id) = upsert.id {
        return Meant::Known(id);
    }
    if let Some(id) = by_conversation(records.clone(), upsert, facts) {
        return Meant::Known(id);
    }
    if let Some(id) = by_pane(records.clone(), upsert, facts) {
        return Meant::Known(id);
    }
    let window = name_of(&upsert.window);
    let mut gone = records.filter(|r| {
        r.root == upsert.root
            && r.window == window
            && matches!(r.state, State::Live)
            && agent_liveness(r, facts) == Liveness::Gone
    });
    match (gone.next(), gone.next()) {
        (Some(only), None) => Meant::Known(only.id),
        (Some(_), Some(_)) => Meant::New { ambiguous: true },
        (None, _) => Meant::New { ambiguous: false },
    }
}

/// A record of the same conversation whose agent is gone. One that can be taken comes before one that is refused by its
/// state, the latest before the older.
fn by_conversation<'a>(
    records: impl Iterator<Item = &'a Record>,
    upsert: &Upsert,
    facts: &Facts<'_>,
) -> Option<RecordId> {
    if upsert.session_id.is_empty() {
        return None;
    }
    records
        .filter(|r| {
            r.codeagent_session_id == upsert.session_id
                && r.root == upsert.root
                && (r.agent_kind == upsert.agent_kind() || upsert.agent_kind().is_empty())
        })
        .filter_map(|r| {
            let can_be_taken = match &r.state {
                State::Live if agent_liveness(r, facts) == Liveness::Gone => true,
                State::Live => return None,
                State::Frozen { lost: Some(_) } => r.location == Location::Gone,
                State::Frozen { lost: None }
                | State::Freezing
                | State::Restoring { .. }
                | State::Aborting { .. } => false,
            };
            Some((can_be_taken, r.state_at, std::cmp::Reverse(r.id)))
        })
        .max()
        .map(|(_, _, std::cmp::Reverse(id))| id)
}

/// The record of that pane in this epoch; a live one first.
fn by_pane<'a>(
    records: impl Iterator<Item = &'a Record>,
    upsert: &Upsert,
    facts: &Facts<'_>,
) -> Option<RecordId> {
    let Location::Pane { pane, process } = &upsert.at else { return None };
    records
        .filter(|r| {
            let Location::Pane { pane: own, process: own_process } = &r.location else { return false };
            if own != pane {
                return false;
            }
            let same_process = own_process.pid == process.pid
                && (own_process.started.is_empty()
                    || process.started.is_empty()
                    || own_process.started == process.started);
            match (&r.ait.server, &upsert.ours.server) {
                (Some(own), Some(seen)) => own.is_same_life(seen),
                (Some(_), None) => same_process,
                // Without an epoch a pane id means little: the same process, or the same window with its agent gone.
                (None, _) => {
                    same_process
                        || (r.root == upsert.root
                            && r.window == name_of(&upsert.window)
                            && agent_liveness(r, facts) == Liveness::Gone)
                }
            }
        })
        .min_by_key(|r| (!matches!(r.state, State::Live), r.id))
        .map(|r| r.id)
}
