use super::rows::{RemainOnExit, SessionRow, WindowRow};
use super::*;

fn session(id: u32, name: &str) -> SessionRow {
    SessionRow { id: SessionId(id), name: name.into(), attached: 0, group: "".into() }
}

fn window(session: u32, id: u32, index: i64, name: &str) -> WindowRow {
    WindowRow {
        session: SessionId(session),
        id: WindowId(id),
        index,
        active: true,
        name: name.into(),
        layout: "b25d,80x24,0,0,0".into(),
    }
}

fn pane(session: u32, window: u32, id: u32) -> PaneRow {
    PaneRow {
        session: SessionId(session),
        window: WindowId(window),
        id: PaneId(id),
        pid: Some(100 + i32::try_from(id).unwrap()),
        dead: false,
        status: None,
        signal: None,
        active: true,
        title: "".into(),
        stamp: "".into(),
        frozen: "".into(),
        ready: false,
        agent_session: "".into(),
        attempt: "".into(),
        remain_on_exit: RemainOnExit::Off,
    }
}

/// `_ait` is `$9` with `%9` in `@9`; `$0` holds `@0` (`%0`, `%1`); `$1` is grouped with it.
fn world() -> World {
    let mut world = World::unknown(SessionId(9), PaneId(9));
    world.take(Snapshot {
        sessions: vec![session(0, "main"), session(1, "twin"), session(9, "_ait")],
        windows: vec![window(1, 0, 5, "work"), window(0, 0, 0, "work"), window(9, 9, 0, "hold")],
        panes: vec![pane(0, 0, 0), pane(0, 0, 1), pane(1, 0, 0), pane(1, 0, 1), pane(9, 9, 9)],
    });
    world
}

#[test]
fn a_world_is_incomplete_until_it_took_a_listing() {
    assert!(!World::unknown(SessionId(9), PaneId(9)).is_complete());
    assert!(world().is_complete());
}

#[test]
fn a_pane_of_a_window_linked_twice_counts_once() {
    assert_eq!(world().panes().count(), 2);
    assert_eq!(world().windows().count(), 1);
    assert_eq!(world().sessions().count(), 2);
}

#[test]
fn the_place_of_a_pane_prefers_the_session_the_record_knows() {
    let world = world();
    assert_eq!(world.place(PaneId(1), b"twin").unwrap().window_index, 5);
    assert_eq!(world.place(PaneId(1), b"main").unwrap().window_index, 0);
    let elsewhere = world.place(PaneId(1), b"no such").unwrap();
    assert_eq!((elsewhere.session.as_slice(), elsewhere.window), (b"main".as_slice(), WindowId(0)));
    assert_eq!(world.place(PaneId(77), b"main"), None);
}

#[test]
fn a_rename_applies_at_once_and_everything_else_asks_for_a_listing() {
    let mut world = world();
    let renamed = Mark::WindowRenamed { window: WindowId(0), name: "new".into() };
    assert_eq!(world.mark(&renamed), Marked::Current);
    assert_eq!(world.place(PaneId(0), b"main").unwrap().window_name, "new");
    let unknown = Mark::WindowRenamed { window: WindowId(3), name: "new".into() };
    assert_eq!(world.mark(&unknown), Marked::ReadAgain);
    for mark in [Mark::Layout, Mark::Sessions, Mark::Heartbeat, Mark::Moved { session: SessionId(0) }] {
        let before = world.clone();
        assert_eq!(world.mark(&mark), Marked::ReadAgain);
        assert_eq!(world, before, "a mark is never truth");
    }
}

#[test]
fn strangers_in_our_session_are_found_and_our_own_pane_is_none() {
    let mut world = world();
    assert_eq!(world.strangers(), []);
    world.take(Snapshot {
        sessions: vec![session(0, "main"), session(9, "_ait")],
        windows: vec![
            window(0, 0, 0, "work"),
            window(9, 0, 3, "work"),
            window(9, 9, 0, "hold"),
            window(9, 4, 1, "lost"),
        ],
        panes: vec![pane(0, 0, 0), pane(9, 0, 0), pane(9, 9, 9), pane(9, 9, 10), pane(9, 4, 11)],
    });
    assert_eq!(
        world.strangers(),
        [
            Stranger::Window { window: WindowId(4), selected: true },
            Stranger::Pane { pane: PaneId(10), selected: true }
        ]
    );
}

#[test]
fn only_a_complete_world_says_that_ours_is_the_last_session() {
    let mut world = World::unknown(SessionId(9), PaneId(9));
    assert!(!world.only_ours_left());
    world.take(Snapshot {
        sessions: vec![session(9, "_ait")],
        windows: vec![window(9, 9, 0, "hold")],
        panes: vec![pane(9, 9, 9)],
    });
    assert!(world.only_ours_left());
    world.take(Snapshot::default());
    assert!(!world.only_ours_left());
}
