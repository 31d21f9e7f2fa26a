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

    /// Puts back what `before` had and this one has not, window by window, where something that is missing `lingers`. A pane that
    /// is in another window now is not put back; an agent is the same in whatever pane, and whoever runs in its pane.
    pub fn put_back(&mut self, before: &Self, mut lingers: impl FnMut(&PlanPane) -> bool) {
        let fresh = self.clone();
        for was in &before.windows {
            let missing = was.panes.iter().filter(|pane| fresh.place_of(pane).is_none());
            // each is asked about
            let held = missing.filter(|pane| lingers(pane)).count() > 0;
            let mut panes: Vec<PlanPane> = Vec::new();
            for pane in &was.panes {
                match fresh.place_of(pane) {
                    None => panes.push(pane.clone()),
                    Some((window, now)) if window == was.window => panes.push(now.clone()),
                    Some(_) => {}
                }
            }
            if !held || panes.iter().all(|pane| pane.record.is_none()) {
                continue;
            }
            let now = fresh.windows.iter().find(|window| window.window == was.window);
            let added = now.into_iter().flat_map(|window| &window.panes);
            for pane in added {
                if panes.iter().all(|known| known.pid != pane.pid) {
                    panes.push(pane.clone());
                }
            }
            let place = now.unwrap_or(was).clone();
            self.windows.retain(|window| window.window != was.window);
            if self.windows.len() < WINDOWS {
                self.windows.push(PlanWindow { layout: was.layout.clone(), panes, ..place });
            }
        }
        self.sort();
    }

    /// Where a pane of an earlier plan is in this one, and as what: by its agent, else by its process.
    fn place_of(&self, pane: &PlanPane) -> Option<(u32, &PlanPane)> {
        let all = || self.windows.iter().flat_map(|of| of.panes.iter().map(|pane| (of.window, pane)));
        let agent = pane.record.and_then(|_| all().find(|(_, now)| now.record == pane.record));
        agent.or_else(|| {
            all().find(|(_, now)| now.pid == pane.pid && (pane.record.is_none() || now.record.is_some()))
        })
    }

    fn sort(&mut self) {
        self.windows.sort_by(|one, other| (&one.session, one.index).cmp(&(&other.session, other.index)));
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

    /// The records of its agents.
    pub fn agents(&self) -> impl Iterator<Item = RecordId> {
        self.panes().filter_map(|pane| pane.record)
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
        let mut plan = Plan { server, windows };
        plan.sort();
        plan
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

    type Pane<'a> = (i32, Option<u32>, Option<&'a str>);

    /// A plan of one window with these panes: process, record, folder.
    fn plan(panes: &[Pane<'_>]) -> Plan {
        plan_of(&[(1, panes)])
    }

    /// A plan of these windows.
    fn plan_of(windows: &[(u32, &[Pane<'_>])]) -> Plan {
        let pane = |(pid, record, cwd): &Pane<'_>| PlanPane {
            record: record.map(RecordId::from_bits),
            pid: *pid,
            cwd: cwd.map(str::to_owned),
            active: false,
        };
        let window = |(number, panes): &(u32, &[Pane<'_>])| PlanWindow {
            session: "main".into(),
            window: *number,
            name: "w".into(),
            index: i64::from(*number),
            active: true,
            layout: format!("{} panes", panes.len()),
            panes: panes.iter().map(pane).collect(),
            restored: false,
        };
        Plan { server: ServerEpoch::default(), windows: windows.iter().map(window).collect() }
    }

    #[test]
    fn what_is_gone_of_a_plan_stays_in_it_for_a_while_and_what_is_new_is_in_it_at_once() {
        const A: Pane<'_> = (10, Some(1), None);
        const SHELL: Pane<'_> = (11, None, None);
        const B: Pane<'_> = (20, Some(2), None);
        const C: Pane<'_> = (30, Some(3), None);
        let before = plan_of(&[(1, &[A, SHELL]), (2, &[B])]);
        for (now, then, missing) in [
            // nothing is gone
            (plan_of(&[(1, &[A, SHELL]), (2, &[B])]), before.clone(), 0),
            (plan_of(&[(1, &[A, SHELL, C]), (2, &[B])]), plan_of(&[(1, &[A, SHELL, C]), (2, &[B])]), 0),
            (plan_of(&[(1, &[A, B, SHELL])]), plan_of(&[(1, &[A, B, SHELL])]), 0),
            // another process of that agent, another agent in that pane
            (
                plan_of(&[(1, &[(12, Some(1), None), SHELL]), (2, &[(20, Some(4), None)])]),
                plan_of(&[(1, &[(12, Some(1), None), SHELL]), (2, &[(20, Some(4), None)])]),
                0,
            ),
            // the shell, the agent in it, all
            (plan_of(&[(1, &[A]), (2, &[B])]), before.clone(), 1),
            (plan_of(&[(2, &[B])]), before.clone(), 2),
            (plan_of(&[]), before.clone(), 3),
            // the agent ended below its shell
            (plan_of(&[(1, &[(10, None, None), SHELL]), (2, &[B])]), before.clone(), 1),
        ] {
            let mut asked = 0;
            let mut held = now.clone();
            held.put_back(&before, |_| {
                asked += 1;
                true
            });
            assert_eq!((held, asked), (then, missing), "{now:?}");
            let mut over = now.clone();
            over.put_back(&before, |_| false);
            assert_eq!(over, now, "after that while it is as it is now");
        }
        // one window lost its shell, another one is new; and one went elsewhere
        let mut now = plan_of(&[(1, &[A]), (2, &[B]), (3, &[C])]);
        now.put_back(&before, |_| true);
        assert_eq!(now, plan_of(&[(1, &[A, SHELL]), (2, &[B]), (3, &[C])]));
        let mut now = plan_of(&[(2, &[B, A])]);
        now.put_back(&before, |_| true);
        assert_eq!(now, plan_of(&[(2, &[B, A])]), "a shell alone is nothing to keep");
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
