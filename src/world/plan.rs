//! A floor plan: what stood where on one server, of the windows that hold an agent. It is what brings companions, splits and
//! layouts back after the server is gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tmux_control::PaneId;

use super::World;
use crate::record::{RecordId, ServerEpoch};

/// Windows of one plan at the most.
const WINDOWS: usize = 1024;
/// Panes of one window at the most.
const PANES: usize = 128;

/// What stood where in one life of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The life.
    pub server: ServerEpoch,
    /// Its windows that held an agent, by session and index.
    pub windows: Vec<PlanWindow>,
}

/// A window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanWindow {
    /// The session's name; of several the first.
    pub session: String,
    /// tmux's number of the window.
    pub window: u32,
    /// Its name.
    pub name: String,
    /// Its index in that session.
    pub index: i64,
    /// Whether it was that session's current window.
    pub active: bool,
    /// tmux's layout string, empty where tmux did not tell it.
    pub layout: String,
    /// Its panes in the order of the layout.
    pub panes: Vec<PlanPane>,
    /// Its companions were brought back.
    #[serde(default)]
    pub restored: bool,
}

/// A pane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPane {
    /// The record of the agent in it; none for a companion.
    pub record: Option<RecordId>,
    /// Its process.
    pub pid: i32,
    /// Where a companion was last; filled in when the plan is kept.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Whether it was its window's current pane.
    pub active: bool,
}

impl Plan {
    /// The window in which the agent of this record was.
    #[must_use]
    pub fn window_of(&self, record: RecordId) -> Option<&PlanWindow> {
        self.windows.iter().find(|window| window.panes.iter().any(|pane| pane.record == Some(record)))
    }

    /// Whether every pane of `before` is still in a window of this one, and one with an agent still has one.
    #[must_use]
    pub fn keeps(&self, before: &Self) -> bool {
        let panes: BTreeMap<i32, Option<RecordId>> =
            self.panes().map(|pane| (pane.pid, pane.record)).collect();
        before
            .panes()
            .all(|was| panes.get(&was.pid).is_some_and(|record| was.record.is_none() || record.is_some()))
    }

    /// Says where those companions were last of which that cannot be told now.
    pub fn recall(&mut self, before: &Self) {
        let folders: BTreeMap<i32, &String> =
            before.panes().filter_map(|pane| Some((pane.pid, pane.cwd.as_ref()?))).collect();
        for pane in self.windows.iter_mut().flat_map(|window| &mut window.panes) {
            if pane.record.is_none() && pane.cwd.is_none() {
                pane.cwd = folders.get(&pane.pid).map(|folder| (*folder).clone());
            }
        }
    }

    fn panes(&self) -> impl Iterator<Item = &PlanPane> {
        self.windows.iter().flat_map(|window| &window.panes)
    }
}

impl World {
    /// The plan of this server as it is now; `agent` says whose record a pane is.
    #[must_use]
    pub fn plan(&self, server: ServerEpoch, agent: impl Fn(PaneId) -> Option<RecordId>) -> Plan {
        let mut windows = Vec::new();
        for (id, window) in self.windows() {
            let Some(link) = window.links.iter().find(|link| link.session != self.own_session()) else {
                continue;
            };
            let Some((_, session)) = self.sessions().find(|(session, _)| *session == link.session) else {
                continue;
            };
            let mut rows: Vec<_> = self.panes().filter(|row| row.window == id && !row.dead).collect();
            let order = leaves(&window.layout);
            rows.sort_by_key(|row| {
                (order.iter().position(|leaf| *leaf == row.id.0).unwrap_or(PANES), row.id)
            });
            let panes: Vec<PlanPane> = rows
                .iter()
                .take(PANES)
                .map(|row| PlanPane {
                    record: agent(row.id),
                    pid: row.pid.unwrap_or_default(),
                    cwd: None,
                    active: row.active,
                })
                .collect();
            if panes.iter().all(|pane| pane.record.is_none()) || windows.len() == WINDOWS {
                continue;
            }
            windows.push(PlanWindow {
                session: session.name.to_string(),
                window: id.0,
                name: window.name.to_string(),
                index: link.index,
                active: link.active,
                layout: window.layout.to_string(),
                panes,
                restored: false,
            });
        }
        windows.sort_by(|one, other| (&one.session, one.index).cmp(&(&other.session, other.index)));
        Plan { server, windows }
    }
}

/// The numbers of the panes in a layout string, in its order: a cell `WxH,X,Y,N` that is followed by no other cell's size.
#[must_use]
pub fn leaves(layout: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(layout);
    let Some((_, cells)) = text.split_once(',') else { return Vec::new() };
    let mut found = Vec::new();
    let words: Vec<&str> = cells.split([',', '{', '}', '[', ']', '<', '>']).collect();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.contains('x') {
            at += 1;
            continue;
        }
        // its place is two numbers; a number after it, which is no size, is its pane
        if let Some(pane) = words.get(at + 3).and_then(|word| word.parse().ok())
            && !found.contains(&pane)
        {
            found.push(pane);
        }
        at += 3;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of one window with these panes: process, record, folder.
    fn plan(panes: &[(i32, Option<u32>, Option<&str>)]) -> Plan {
        let pane = |(pid, record, cwd): &(i32, Option<u32>, Option<&str>)| PlanPane {
            record: record.map(RecordId::from_bits),
            pid: *pid,
            cwd: cwd.map(str::to_owned),
            active: false,
        };
        let window = PlanWindow {
            session: "main".into(),
            window: 1,
            name: "w".into(),
            index: 0,
            active: true,
            layout: String::new(),
            panes: panes.iter().map(pane).collect(),
            restored: false,
        };
        Plan { server: ServerEpoch::default(), windows: vec![window] }
    }

    #[test]
    fn a_plan_keeps_another_with_all_its_panes_and_agents() {
        let before = plan(&[(10, Some(1), None), (11, None, None)]);
        for (now, keeps) in [
            (plan(&[(10, Some(1), None), (11, None, None)]), true),
            (plan(&[(11, None, None), (10, Some(1), None), (12, Some(2), None)]), true),
            (plan(&[(10, Some(1), None), (11, Some(2), None)]), true),
            (plan(&[(10, Some(1), None)]), false),
            // the agent ended below its shell
            (plan(&[(10, None, None), (11, Some(2), None)]), false),
            (plan(&[(10, Some(2), None), (11, None, None)]), true),
        ] {
            assert_eq!(now.keeps(&before), keeps, "{now:?}");
        }
    }

    #[test]
    fn a_companion_that_goes_was_last_where_it_was_seen_last() {
        let mut now =
            plan(&[(10, Some(1), None), (11, None, None), (12, None, Some("/here")), (13, None, None)]);
        now.recall(&plan(&[(10, None, Some("/a")), (11, None, Some("/b")), (12, None, Some("/c"))]));
        let folders: Vec<Option<&str>> = now.panes().map(|pane| pane.cwd.as_deref()).collect();
        assert_eq!(folders, [None, Some("/b"), Some("/here"), None]);
    }

    #[test]
    fn the_panes_of_a_layout_in_its_order() {
        for (layout, panes) in [
            ("b25f,80x24,0,0,2", &[2][..]),
            ("abcd,80x24,0,0{40x24,0,0,7,39x24,41,0[39x12,41,0,3,39x11,41,13,12]}", &[7, 3, 12]),
            ("abcd,80x24,0,0[80x12,0,0,1,80x11,0,13{40x11,0,13,4,39x11,41,13,2}]", &[1, 4, 2]),
            ("abcd,80x24,0,0{40x24,-3,0,7,39x24,41,0,8}<20x5,3,3,8>", &[7, 8]),
            ("", &[]),
            ("abcd,80x24", &[]),
        ] {
            assert_eq!(leaves(layout.as_bytes()), panes, "{layout}");
        }
    }
}
