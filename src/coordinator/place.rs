//! Where a restored agent is put: its own pane, its window, its session, or new ones beside what others have.

use tmux_control::{PaneId, SessionId, WindowId};

use crate::record::{Record, Stamp};
use crate::world::plan::leaves;
use crate::world::rows::{SessionRow, Snapshot};

/// The name of a session whose record names none.
const SESSION: &str = "agents";
/// The hidden session of the supervisor: nothing is put there.
const HIDDEN: &[u8] = b"_ait";

/// A place for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The pane that holds its stand-in.
    StandIn(PaneId),
    /// A split beside this pane, in the window it was in.
    Beside {
        /// A pane of that window.
        pane: PaneId,
        /// Whether it comes before that pane, in the window's order.
        before: bool,
        /// The window.
        window: WindowId,
    },
    /// A new window there.
    Window {
        /// The session.
        session: SessionId,
        /// A free index in it.
        index: i64,
    },
    /// A new session.
    Session {
        /// A name that no session has.
        name: String,
        /// The index of its window, where one is recorded.
        index: Option<i64>,
    },
}

/// What is known of a session besides its listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The session.
    pub id: SessionId,
    /// When it was made, unix seconds.
    pub created: i64,
    /// The project its folder lies in, where that is one by its marks.
    pub project: Option<String>,
    /// The records whose panes stand in it.
    pub stamped: Vec<Stamped>,
}

/// A record whose pane stands in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// Its project.
    pub root: String,
    /// It came back by a restore, into the session it was in before.
    pub came_back: bool,
}

/// The place for a record on a server that is listed. `same_life`: the server's life is the record's own. `asked`: the name
/// of the session the user wants it in.
#[must_use]
pub fn choose(
    record: &Record,
    snapshot: &Snapshot,
    known: &[Known],
    same_life: bool,
    asked: Option<&str>,
) -> Place {
    let id = record.id.to_string();
    if asked.is_none() {
        // in another life of the server it is one that a recovery placed and could not tell the record of
        let own = record.location.pane_id().filter(|_| same_life).map(|pane| pane.0);
        let mut stand_ins = snapshot.panes.iter().filter(|row| row.frozen == id.as_str());
        let first = stand_ins.clone().find(|row| Some(row.id.0) == own).or_else(|| stand_ins.next());
        if let Some(row) = first {
            return Place::StandIn(row.id);
        }
    }
    if asked.is_none() && same_life {
        let window = record.ait.window_id.map(|window| WindowId(window.0));
        if let Some(row) = snapshot.panes.iter().rev().find(|row| Some(row.window) == window) {
            let (pane, before) = neighbour(record, snapshot, row.window).unwrap_or((row.id, false));
            return Place::Beside { pane, before, window: row.window };
        }
    }
    let name = match asked {
        Some(name) => name,
        None if record.session.is_empty() => SESSION,
        None => &record.session,
    };
    let of_name = |name: &str| snapshot.sessions.iter().find(|row| row.name == name && row.name != HIDDEN);
    let called = callable(name);
    let (name, named) = match of_name(name) {
        None => (called.as_str(), of_name(&called)),
        named => (name, named),
    };
    match named {
        // the user said so
        Some(row) if asked.is_some() => window_in(row, record, snapshot),
        Some(row) if is_own(record, known.iter().find(|known| known.id == row.id), same_life) => {
            window_in(row, record, snapshot)
        }
        Some(_) => Place::Session { name: beside(name, snapshot), index: record.ait.window_index },
        None => Place::Session { name: name.to_owned(), index: record.ait.window_index },
    }
}

/// The pane that is next to the record's own by the recorded layout and still in its window: the one behind which it stood, else
/// the one before which it did. A layout is laid over panes in their order.
fn neighbour(record: &Record, snapshot: &Snapshot, window: WindowId) -> Option<(PaneId, bool)> {
    let order = leaves(record.ait.window_layout.as_deref()?.as_bytes());
    let own = record.location.pane_id()?.0;
    let at = order.iter().position(|pane| *pane == own)?;
    let there = |pane: &&u32| snapshot.panes.iter().any(|row| row.window == window && row.id.0 == **pane);
    let (ahead, behind) = order.split_at(at);
    let ahead = ahead.iter().rev().find(there).map(|pane| (PaneId(*pane), false));
    ahead.or_else(|| behind.iter().find(there).map(|pane| (PaneId(*pane), true)))
}

fn window_in(session: &SessionRow, record: &Record, snapshot: &Snapshot) -> Place {
    let taken =
        |index: i64| snapshot.windows.iter().any(|row| row.session == session.id && row.index == index);
    let mut index = record.ait.window_index.unwrap_or(0).max(0);
    while taken(index) {
        index += 1;
    }
    Place::Window { session: session.id, index }
}

/// Whether a session of the recorded name is the one the record was in, and not another project's.
fn is_own(record: &Record, known: Option<&Known>, same_life: bool) -> bool {
    let Some(known) = known else { return false };
    if known.stamped.iter().any(|one| one.root == record.root || one.came_back) {
        return true;
    }
    // names are followed while a server lives: a session that is older than the loss of sight is the same one
    let seen = record.frozen_at.or(record.state_at).map(Stamp::unix);
    if same_life && seen.is_some_and(|seen| known.created <= seen) {
        return true;
    }
    known.stamped.is_empty() && known.project.as_ref().is_none_or(|project| *project == record.root)
}

/// The name a new session gets for this one, which tmux takes as it is: it has neither `:` nor `.` in names, reads `$1` as an id
/// wherever a session is named, that of another session, and writes `\`, control characters and `$x` in another way.
#[must_use]
pub fn callable(name: &str) -> String {
    let mut chars = name.chars().enumerate().peekable();
    let mut called = String::new();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let is_odd = match c {
            ':' | '.' | '\\' => true,
            '$' => at == 0 || next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '{')),
            _ => c.is_control(),
        };
        called.push(if is_odd { '_' } else { c });
    }
    called
}

/// A name like this one that no session has.
fn beside(name: &str, snapshot: &Snapshot) -> String {
    let mut number = 2;
    loop {
        let other = format!("{name}-{number}");
        if snapshot.sessions.iter().all(|row| row.name != other.as_str()) {
            return other;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::sample;
    use crate::record::{Location, StateName};

    const SESSIONS: &str = "S\t$1\t0\t\tmain\nS\t$2\t0\t\tother\nS\t$3\t0\t\t_ait\n";

    fn snapshot(panes: &[(&str, &str, &str, &str)]) -> Snapshot {
        let windows: String = panes
            .iter()
            .map(|(session, window, ..)| {
                let index = &window[1..];
                format!("W\t{session}\t{window}\t{index}\t1\tl\tw\n")
            })
            .collect();
        let rows: String = panes
            .iter()
            .map(|(session, window, pane, frozen)| {
                format!("P\t{session}\t{window}\t{pane}\t9\t0\t\t\t1\toff\t\t{frozen}\t\t\t\tt\n")
            })
            .collect();
        let sessions: String = SESSIONS
            .lines()
            .filter(|line| panes.iter().any(|(session, ..)| line.contains(session)))
            .map(|line| format!("{line}\n"))
            .collect();
        Snapshot::parse(sessions.as_bytes(), windows.as_bytes(), rows.as_bytes()).unwrap()
    }

    fn record() -> Record {
        let mut record = sample(StateName::Frozen);
        record.location = Location::Gone;
        record.session = "main".into();
        record.ait.window_id = None;
        record.ait.window_index = Some(3);
        record.frozen_at = Some(Stamp::from_unix(1000));
        record
    }

    fn known(created: i64, project: Option<&str>, stamped: &[(&str, bool)]) -> [Known; 1] {
        let stamped = stamped
            .iter()
            .map(|(root, came_back)| Stamped { root: (*root).to_owned(), came_back: *came_back });
        [Known { id: SessionId(1), created, project: project.map(str::to_owned), stamped: stamped.collect() }]
    }

    #[test]
    fn its_stand_in_then_its_window_then_its_session() {
        let record = record();
        let id = record.id.to_string();
        let all = snapshot(&[("$1", "@1", "%1", ""), ("$2", "@2", "%2", &id)]);
        assert_eq!(choose(&record, &all, &[], true, None), Place::StandIn(PaneId(2)));
        let placed = choose(&record, &all, &[], false, None);
        assert_eq!(placed, Place::StandIn(PaneId(2)), "a recovery was cut short before it could say so");
        let in_window = Record {
            ait: crate::record::Ours { window_id: Some(crate::record::WindowId(1)), ..record.ait.clone() },
            ..record.clone()
        };
        let all = snapshot(&[("$1", "@1", "%1", "")]);
        let beside = Place::Beside { pane: PaneId(1), before: false, window: WindowId(1) };
        assert_eq!(choose(&in_window, &all, &[], true, None), beside);
        // where it stood by the layout: behind the nearest that is left ahead of it, else before the nearest that follows
        let three = snapshot(&[("$1", "@1", "%6", ""), ("$1", "@1", "%8", ""), ("$1", "@2", "%5", "")]);
        for (layout, pane, before) in [
            ("abcd,80x24,0,0{40x24,0,0,6,20x24,41,0,7,18x24,62,0,8}", 6, false),
            ("abcd,80x24,0,0{40x24,0,0,7,20x24,41,0,6,18x24,62,0,8}", 6, true),
            ("abcd,80x24,0,0{40x24,0,0,5,20x24,41,0,7,18x24,62,0,8}", 8, true),
            ("abcd,80x24,0,0{40x24,0,0,6,39x24,41,0,8}", 8, false),
        ] {
            let mut stood = in_window.clone();
            stood.location =
                crate::record::Location::pane(crate::record::PaneId(7), crate::record::ProcessId::bare(70));
            stood.ait.window_layout = Some(layout.into());
            let beside = Place::Beside { pane: PaneId(pane), before, window: WindowId(1) };
            assert_eq!(choose(&stood, &three, &[], true, None), beside, "{layout}");
        }
        let next = choose(&in_window, &all, &known(900, None, &[]), false, None);
        assert_eq!(
            next,
            Place::Window { session: SessionId(1), index: 3 },
            "ids of another life mean nothing"
        );
    }

    #[test]
    fn a_taken_index_is_left_to_its_window() {
        let all = snapshot(&[("$1", "@3", "%1", ""), ("$1", "@4", "%2", "")]);
        let place = choose(&record(), &all, &known(900, None, &[]), true, None);
        assert_eq!(place, Place::Window { session: SessionId(1), index: 5 });
    }

    #[test]
    fn a_new_session_is_called_nothing_that_means_another_one() {
        let all = snapshot(&[("$1", "@3", "%1", "")]);
        for (name, called) in [
            ("$1", "_1"),
            ("a:b.c", "a_b_c"),
            ("a$1", "a$1"),
            ("@1", "@1"),
            ("=x", "=x"),
            ("a\\b\nc\td\x1be\x7f", "a_b_c_d_e_"),
            ("a$b${c}$_$", "a_b_{c}__$"),
        ] {
            let asked = choose(&record(), &all, &[], true, Some(name));
            assert_eq!(asked, Place::Session { name: called.into(), index: Some(3) }, "{name}");
            let recorded = Record { session: name.into(), ..record() };
            assert_eq!(choose(&recorded, &all, &[], false, None), asked, "{name}");
        }
    }

    #[test]
    fn another_projects_session_of_that_name_is_not_touched() {
        let all = snapshot(&[("$1", "@1", "%1", "")]);
        let own = Place::Window { session: SessionId(1), index: 3 };
        let new = Place::Session { name: "main-2".into(), index: Some(3) };
        let root = record().root;
        for (known, same_life, place) in [
            (known(900, Some("/other"), &[("/other", false)]), true, &own),
            (known(1100, Some("/other"), &[("/other", false)]), true, &new),
            (known(900, Some("/other"), &[("/other", false)]), false, &new),
            (known(900, Some("/other"), &[]), false, &new),
            (known(900, Some("/other"), &[("/other", true)]), false, &own),
            (known(900, Some("/other"), &[(&root, false)]), false, &own),
            (known(900, None, &[]), false, &own),
            (known(900, Some(&root), &[]), false, &own),
        ] {
            assert_eq!(choose(&record(), &all, &known, same_life, None), *place, "{known:?} {same_life}");
        }
        let asked = choose(&record(), &all, &known(1100, Some("/other"), &[]), true, Some("main"));
        assert_eq!(asked, own, "the user names it");
        let gone = choose(&record(), &snapshot(&[("$2", "@1", "%1", "")]), &[], true, None);
        assert_eq!(gone, Place::Session { name: "main".into(), index: Some(3) });
    }

    #[test]
    fn the_hidden_session_is_no_place() {
        let record = Record { session: "_ait".into(), ..record() };
        let all = snapshot(&[("$3", "@1", "%1", "")]);
        let place = choose(&record, &all, &known(1, None, &[]), true, None);
        assert!(matches!(place, Place::Session { .. }), "{place:?}");
    }
}
