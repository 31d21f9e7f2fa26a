//! One turn of the supervisor's machine: what an input costs that changes nothing, at 200 and 1,000 live records.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ait::record::ProcessId;
use ait::record::read::read;
use ait::supervisor::{
    Action, Answer, Ask, Identity, Input, LinkEvent, Now, Start, StoreView, Supervisor, Written,
};
use ait::world::rows::{PaneRow, RemainOnExit, SessionRow, Snapshot, WindowRow};
use criterion::Criterion;
use serde_json::json;
use tmux_control::{PaneId, SessionId, WindowId};

pub(crate) fn benches(criterion: &mut Criterion) {
    for records in [200, 1_000] {
        let (mut supervisor, now) = settled(records);
        criterion.bench_function(&format!("supervisor turn, {records} records"), |bench| {
            bench.iter(|| {
                supervisor.handle(black_box(now), Input::Tick);
                while let Some(action) = supervisor.next_action() {
                    black_box(action);
                }
            });
        });
    }
}

fn view(records: usize) -> StoreView {
    let sessions: Vec<_> = (0..records)
        .map(|at| {
            json!({
                "id": format!("{at:08x}"), "root": "/srv/bench", "window": format!("w{at}"), "window_slot": 0,
                "pane_id": format!("%{at}"), "pane_pid": 1000 + at, "session": "main", "state": "live",
                "ait": {
                    "agent": {"pid": 1000 + at, "started": "1"}, "pane_started": "1", "host": {"kind": "pane"},
                    "argv": ["claude"], "cwd": "/", "window_id": format!("@{at}"), "window_index": at,
                    "window_layout": "b25d,80x24,0,0,0",
                    "server": {"socket": "/s", "pid": 10, "started": "1", "started_at": 1, "boot_id": "b"},
                },
            })
        })
        .collect();
    let text = serde_json::to_vec(&json!({"version": 1, "sessions": sessions})).unwrap();
    StoreView { records: Arc::new(read(&text).unwrap().records), trouble: None }
}

fn snapshot(records: usize) -> Snapshot {
    let session =
        |id, name: &str| SessionRow { id: SessionId(id), name: name.into(), attached: 0, group: "".into() };
    let window = |session, id: u32, name: String| WindowRow {
        session: SessionId(session),
        id: WindowId(id),
        index: i64::from(id),
        active: false,
        name: name.into(),
        layout: "b25d,80x24,0,0,0".into(),
    };
    let pane = |session, id: u32, stamp: String| PaneRow {
        session: SessionId(session),
        window: WindowId(id),
        id: PaneId(id),
        pid: Some(1000 + i32::try_from(id).unwrap()),
        dead: false,
        status: None,
        signal: None,
        active: true,
        title: "".into(),
        stamp: stamp.into(),
        frozen: "".into(),
        ready: false,
        agent_session: "".into(),
        attempt: "".into(),
        remain_on_exit: RemainOnExit::On,
    };
    let ids = 0..u32::try_from(records).unwrap();
    let mut snapshot = Snapshot {
        sessions: vec![session(0, "main"), session(9, "_ait")],
        windows: ids.clone().map(|id| window(0, id, format!("w{id}"))).collect(),
        panes: ids.map(|id| pane(0, id, format!("{id:08x}"))).collect(),
    };
    snapshot.windows.push(window(9, 99_999, "hold".into()));
    snapshot.panes.push(pane(9, 99_999, String::new()));
    snapshot
}

/// A supervisor that has come to rest with everything known.
fn settled(records: usize) -> (Supervisor, Now) {
    let now = Now::at(Duration::from_secs(100), 1_700_000_000);
    let mut supervisor = Supervisor::new(Start {
        boot_id: "b".into(),
        boot_began: 0,
        pid: 1,
        version: String::new(),
        store: PathBuf::from("/store"),
        sockets: Vec::new(),
        default_socket: PathBuf::new(),
        grace: 60,
        ack_grace: 20,
        last_stop: None,
        policies: ait::supervisor::recovery::Policies::default(),
    });
    supervisor.handle(now, Input::Store(Ok(view(records))));
    while let Some(action) = supervisor.next_action() {
        let answer = match action {
            Action::Attach { socket, link } => {
                let identity = Identity {
                    process: ProcessId::new(10, "1"),
                    started_at: 1,
                    version: "3.3a".into(),
                    session: SessionId(9),
                    hold: PaneId(99_999),
                    client: "client-1".into(),
                    default_session: None,
                };
                Input::Link { socket, link, event: LinkEvent::Attached(identity) }
            }
            Action::Ask { socket, link, tag, ask } => {
                let answer =
                    if ask == Ask::Listing { Answer::Listing(snapshot(records)) } else { Answer::NotDone };
                Input::Link { socket, link, event: LinkEvent::Answer { tag, answer } }
            }
            Action::Watch(process) => Input::Watching(process),
            Action::Recall { .. } => Input::Recalled(Vec::new()),
            Action::Write { ticket, changes } => {
                let results = changes.iter().map(|_| Ok(())).collect();
                Input::Written { ticket, result: Ok(Written { results, view: view(records) }) }
            }
            _ => continue,
        };
        supervisor.handle(now, answer);
    }
    (supervisor, now)
}
