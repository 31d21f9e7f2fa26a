//! What the facts prove: whether a lease is free, an epoch over, an agent gone. Unknown is not gone.

use super::ours::{BootTime, Host, ServerEpoch};
use super::{Facts, Lease, Liveness, Location, Nonce, ProcessId, Record};

/// Whether a record may be claimed: no lease, or one of another boot, or one older than the grace whose owner is
/// provably gone.
#[must_use]
pub fn is_lease_free(record: &Record, facts: &Facts<'_>) -> bool {
    let Some(lease) = &record.lease else { return true };
    let age = match &lease.since_boot {
        Some(taken) if taken.boot_id != facts.boot_id && !facts.boot_id.is_empty() => return true,
        Some(taken) => facts.since_boot.saturating_sub(taken.seconds),
        // An earlier script's lease knows only the wall clock.
        None => u64::try_from(facts.now.unix() - lease.since.unix()).unwrap_or(0),
    };
    age > facts.grace && (facts.alive)(&lease.owner) == Liveness::Gone
}

/// Whether that life of the server is provably over: another boot, or its process is gone.
#[must_use]
pub fn is_epoch_over(server: &ServerEpoch, facts: &Facts<'_>) -> bool {
    is_other_boot(server, facts) || (facts.alive)(&server.process()) == Liveness::Gone
}

/// Whether the record's agent lives. Gone without a place; of another boot: gone.
#[must_use]
pub fn agent_liveness(record: &Record, facts: &Facts<'_>) -> Liveness {
    if record.location == Location::Gone
        || record.ait.server.as_ref().is_some_and(|s| is_other_boot(s, facts))
    {
        return Liveness::Gone;
    }
    if let Some(agent) = record.agent_process() {
        return (facts.alive)(&agent);
    }
    // Below a shell without a known process: only the shell's own end proves anything.
    match (&record.ait.host, record.location.process().map(facts.alive)) {
        (Some(Host::Shell { .. }), Some(Liveness::Gone)) => Liveness::Gone,
        (Some(Host::Shell { .. } | Host::Pane) | None, _) => Liveness::Unknown,
    }
}

/// Takes the lease for `owner` and gives its token.
pub(super) fn claim(record: &mut Record, owner: &ProcessId, facts: &Facts<'_>) -> Nonce {
    let nonce = Nonce::from_bits((facts.draw)());
    let mut owner = owner.clone();
    if owner.started.is_empty() {
        owner.started = (facts.started)(owner.pid).unwrap_or_default();
    }
    let since_boot = (!facts.boot_id.is_empty())
        .then(|| BootTime { boot_id: facts.boot_id.to_owned(), seconds: facts.since_boot });
    record.lease = Some(Lease { nonce, owner, since: facts.now, since_boot });
    nonce
}

/// The location with its process's start, looked up where the caller did not say.
pub(super) fn with_start(at: &Location, facts: &Facts<'_>) -> Location {
    let mut at = at.clone();
    if let Location::Pane { process, .. } = &mut at
        && process.started.is_empty()
    {
        process.started = (facts.started)(process.pid).unwrap_or_default();
    }
    at
}

/// The process of a lost agent, which may have outlived its server. One of another boot is gone: pids and starts come again.
#[must_use]
pub fn outlived<'r>(record: &'r Record, facts: &Facts<'_>) -> Option<&'r ProcessId> {
    let past = record.ait.server.as_ref().is_some_and(|server| is_other_boot(server, facts));
    record.state.lost()?.agent.as_ref().filter(|_| !past)
}

/// Whether that life of a server belongs to an earlier boot.
pub(super) fn is_other_boot(server: &ServerEpoch, facts: &Facts<'_>) -> bool {
    !server.boot_id.is_empty() && !facts.boot_id.is_empty() && server.boot_id != facts.boot_id
}
