//! What the tests of the decide modules stand on: a record in each state, and facts in which some processes are gone.

use std::cell::Cell;

use super::*;

/// A server whose life goes on.
pub(crate) fn epoch() -> ServerEpoch {
    ServerEpoch {
        socket: "/s".into(),
        pid: 7,
        started: "70".into(),
        started_at: None,
        boot_id: "boot".into(),
        unknown: Unknown::default(),
    }
}

/// A record in a state, under a lease where the state comes with one, in pane %1 with process 41.
pub(crate) fn sample(state: StateName) -> Record {
    let nonce = Nonce::from_bits(0xaaaa);
    let lease =
        Lease { nonce, owner: ProcessId::new(5, "50"), since: Stamp::from_unix(100), since_boot: None };
    let (state, lease) = match state {
        StateName::Live => (State::Live, None),
        StateName::Freezing => (State::Freezing, Some(lease)),
        StateName::Frozen => (State::Frozen { lost: None }, None),
        StateName::Restoring => {
            (State::Restoring { mode: RestoreMode::Resume, launch: Some(41), lost: None }, Some(lease))
        }
        StateName::Aborting => (State::Aborting { lost: None }, Some(lease)),
    };
    Record {
        id: RecordId::from_bits(0x1111_1111),
        root: "/r".into(),
        window: "w".into(),
        window_slot: 0,
        location: Location::pane(PaneId(1), ProcessId::new(41, "410")),
        session: "s".into(),
        operation: String::new(),
        task_id: String::new(),
        agent_string: "claudecode/opus5".into(),
        agent_kind: "claudecode".into(),
        codeagent_session_id: "sid".into(),
        transcript_path: String::new(),
        started_at: Some(Stamp::from_unix(0)),
        state_at: Some(Stamp::from_unix(0)),
        frozen_at: None,
        state,
        lease,
        capture: Capture::default(),
        last_phase: String::new(),
        standin_pid: 0,
        restore: Restores::default(),
        ait: Ours { server: Some(epoch()), ..Ours::default() },
        unknown: Unknown::default(),
    }
}

/// Facts under which the processes in `gone` are gone and all others live.
pub(crate) struct World {
    pub(crate) gone: Vec<i32>,
    pub(crate) now: i64,
    pub(crate) boot: &'static str,
    pub(crate) drawn: Cell<u32>,
}

impl World {
    pub(crate) fn new(gone: &[i32]) -> Self {
        Self { gone: gone.to_vec(), now: 1000, boot: "boot", drawn: Cell::new(0x2222_0000) }
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&Facts<'_>) -> T) -> T {
        let alive = |id: &ProcessId| {
            let same = id.started.is_empty() || id.started == format!("{}0", id.pid);
            if self.gone.contains(&id.pid) || !same { Liveness::Gone } else { Liveness::Alive }
        };
        let started = |pid: i32| (!self.gone.contains(&pid)).then(|| format!("{pid}0"));
        let draw = || {
            self.drawn.set(self.drawn.get() + 1);
            self.drawn.get()
        };
        act(&Facts {
            now: Stamp::from_unix(self.now),
            since_boot: u64::try_from(self.now).unwrap(),
            boot_id: self.boot,
            grace: 60,
            alive: &alive,
            started: &started,
            draw: &draw,
        })
    }
}
