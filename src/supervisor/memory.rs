//! What is kept in mind beside the records: the store as it was, ended records whose panes may still stand.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{
    BURIED, Closing, ClosingStep, EndedEarlier, Now, Server, StoreView, Supervisor, Watched, decide,
};
use crate::record::{Host, Ours, Record, RecordId, Records, StateName};
use crate::world::rows::PaneRow;

impl Supervisor {
    /// Keeps the ids of ended records bounded: past the bound only those that a pane still carries.
    fn forget_buried(&mut self) {
        if self.buried.len() <= BURIED {
            return;
        }
        let stamps: BTreeSet<RecordId> = self
            .servers
            .values()
            .filter_map(Server::up)
            .flat_map(|up| up.world.panes())
            .filter_map(|row| std::str::from_utf8(&row.stamp).ok()?.parse().ok())
            .collect();
        self.buried.retain(|id| stamps.contains(id));
    }

    /// Takes the store as it is now. Records that are new here, or moved, want their server listed again.
    pub(super) fn take_view(&mut self, now: Now, view: StoreView) {
        let records = view.records.clone();
        let before = self.store.replace(view);
        if let Some(before) = &before {
            let gone = before.records.iter().map(|record| record.id);
            self.buried.extend(gone.filter(|id| records.get(*id).is_none()));
            self.forget_buried();
            self.note_moved(before, &records);
            self.note_stripped(before, &records);
            self.record_news(now, before, &records);
        }
        let live: BTreeSet<RecordId> = records
            .iter()
            .filter(|record| record.state.name() == StateName::Live)
            .map(|record| record.id)
            .collect();
        self.dying.retain(|id, dying| {
            live.contains(id)
                && records
                    .get(*id)
                    .is_some_and(|record| record.agent_process().as_ref() == Some(&dying.agent))
        });
        self.layouts.retain(|id, _| live.contains(id));
        self.found.retain(|id, found| {
            let lacking =
                records.get(*id).is_some_and(|record| decide::lacks(record, found, &self.start.boot_id));
            live.contains(id) && lacking
        });
        // one that was on its way meanwhile is looked at again
        self.examined.retain(|id, pid| {
            let pane = records.get(*id).and_then(|record| record.location.process());
            live.contains(id) && pane.is_some_and(|process| process.pid == *pid)
        });
        for record in records.iter() {
            let Some(pane) = record.location.pane_id() else { continue };
            let Some(epoch) = &record.ait.server else { continue };
            let Some(up) = self.servers.get_mut(Path::new(&epoch.socket)).and_then(Server::up_mut) else {
                continue;
            };
            let was = before.as_ref().and_then(|before| before.records.get(record.id));
            let moved = was.is_none_or(|was| was.location != record.location);
            // what was put into its pane and written since is told by no notification
            let elder =
                |row: &PaneRow| row.dead || row.pid != record.location.process().map(|process| process.pid);
            if up.world.pane(tmux_control::PaneId(pane.0)).is_none_or(|row| moved && elder(row)) {
                up.soil(now.mono);
            }
        }
    }

    /// An earlier script writes the shared fields and drops our object: what it dropped is put back for a record that is
    /// otherwise where it was. Of one that moved before it was back, what does not say where it is.
    fn note_stripped(&mut self, before: &StoreView, records: &Records) {
        let pane = |record: &Record| (record.location.pane_id(), record.location.process().map(|p| p.pid));
        // until it is back; a write that was under way meanwhile says nothing of it
        self.stripped.retain(|id, known| {
            let Some(record) = records.get(*id).filter(|record| record.ait == Ours::default()) else {
                return false;
            };
            if pane(known) != pane(record) {
                known.location = record.location.clone();
                known.state = record.state.clone();
                let ours = &mut known.ait;
                (ours.agent, ours.server, ours.window_id) = (None, None, None);
                (ours.window_index, ours.window_layout) = (None, None);
            }
            known.ait != Ours::default()
        });
        for record in records.iter().filter(|record| record.ait == Ours::default()) {
            let Some(known) = before.records.get(record.id).filter(|known| known.ait != Ours::default())
            else {
                continue;
            };
            if pane(known) == pane(record) {
                self.stripped.insert(record.id, Box::new(known.as_ref().clone()));
            }
        }
    }

    /// A record that went to another server, its agent gone from the one before, may have left a kept pane there.
    fn note_moved(&mut self, before: &StoreView, records: &Records) {
        for was in before.records.iter().filter(|was| was.ait.host == Some(Host::Pane)) {
            let (Some(epoch), Some(is)) = (&was.ait.server, records.get(was.id)) else { continue };
            let moved = is.state.name() == StateName::Live
                && is.ait.server.as_ref().is_some_and(|to| to.process() != epoch.process());
            if moved && epoch.boot_id == self.start.boot_id && !epoch.started.is_empty() {
                self.untidy.entry(PathBuf::from(&epoch.socket)).or_default().insert(epoch.process());
            }
        }
    }

    /// Agents that ended in this boot may have left a kept pane, if the supervisor before this one ended before it closed it.
    pub(super) fn remember_panes(&mut self, ends: &[EndedEarlier]) {
        for EndedEarlier { record, .. } in ends {
            let Some(epoch) = record.ait.server.as_ref().filter(|e| e.boot_id == self.start.boot_id) else {
                continue;
            };
            self.buried.insert(record.id);
            if record.ait.host == Some(Host::Pane) && !epoch.started.is_empty() {
                let socket = PathBuf::from(&epoch.socket);
                self.servers.entry(socket.clone()).or_default();
                self.untidy.entry(socket).or_default().insert(epoch.process());
            }
        }
    }

    /// Forgets servers that concern nobody any more: no record names them, no client of ours is on them, and nobody is known to
    /// listen there. What stood where on them is forgotten as well.
    pub(super) fn forget_servers(&mut self) {
        let sought = self.default_is_sought();
        let Self { start, store, stripped, untidy, servers, plans, news, .. } = self;
        let records = store.iter().flat_map(|view| view.records.iter());
        let records = records.chain(stripped.values().map(|record| &**record));
        let mut named: BTreeSet<&Path> =
            records.filter_map(|record| Some(Path::new(&record.ait.server.as_ref()?.socket))).collect();
        named.extend(untidy.keys().map(PathBuf::as_path));
        named.extend(sought.then_some(start.default_socket.as_path()));
        let before = servers.len();
        servers.retain(|socket, server| {
            let held = server.explicit || server.link_id().is_some() || server.listener.is_some();
            held || named.contains(socket.as_path())
        });
        *news |= servers.len() < before;
        plans.keep(|socket| servers.contains_key(socket));
    }

    /// Ends closings one round trip after their kill, and forgets what needs no tidying: servers that are over, and those that show no dead pane of ours.
    pub(super) fn tidy(&mut self) {
        let known = self.store.as_ref().map(|view| view.records.clone()).unwrap_or_default();
        let Self { untidy, servers, watched, buried, .. } = self;
        for up in servers.values_mut().filter_map(Server::up_mut) {
            if let Some(Closing { step: ClosingStep::Settle { after }, .. }) = up.closing
                && up.answered > after
            {
                up.closing = None;
            }
        }
        untidy.retain(|socket, processes| {
            let up = servers.get(socket).and_then(Server::up);
            processes.retain(|process| {
                let over = matches!(watched.get(process), Some(Watched::Dead { .. }));
                let seen = up.is_some_and(|up| {
                    up.identity.process != *process
                        || (up.world.is_complete()
                            && up.closing.is_none()
                            && up.orphan(buried, &known).is_none())
                });
                !over && !seen
            });
            // it is not worth more than a few tries
            let unknown = servers.get(socket).is_some_and(|server| server.failures >= 5);
            !processes.is_empty() && !unknown
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tmux_control::{PaneId, SessionId, WindowId};

    use super::*;
    use crate::record::{Host, Location, ProcessId, Refused, ServerEpoch, Verb};
    use crate::supervisor::tests::{Stage, view};
    use crate::supervisor::{Action, Answer, Ask, Identity, Input, LinkEvent, LinkId, Written};
    use crate::world::rows::{RemainOnExit, SessionRow, Snapshot, WindowRow};

    /// One of many servers, each with one agent.
    struct One {
        at: i32,
        socket: PathBuf,
    }

    impl One {
        fn new(at: i32) -> One {
            One { at, socket: PathBuf::from(format!("/tmp/tmux-1/of-many-{at}")) }
        }

        fn server(&self) -> ProcessId {
            ProcessId::new(10_000 + self.at, format!("of-many-{}", self.at))
        }

        fn agent(&self) -> ProcessId {
            ProcessId::new(20_000 + self.at, format!("of-many-{}", self.at))
        }

        fn record(&self) -> Record {
            let id = format!("{:08x}", 0xa000 + self.at);
            let pid = self.agent().pid;
            let text = format!(
                r#"{{"id": "{id}", "root": "/r", "window": "w", "pane_id": "%5", "pane_pid": {pid}}}"#
            );
            let mut record: Record = serde_json::from_str(&text).unwrap();
            record.location = Location::pane(crate::record::PaneId(5), self.agent());
            record.ait.agent = Some(self.agent());
            record.ait.host = Some(Host::Pane);
            record.ait.server = Some(ServerEpoch {
                socket: self.socket.to_string_lossy().into_owned(),
                pid: self.server().pid,
                started: self.server().started,
                started_at: Some(7),
                boot_id: "now".into(),
                unknown: Default::default(),
            });
            record
        }

        fn listing(&self) -> Snapshot {
            let session = |id: u32, name: &str| SessionRow {
                id: SessionId(id),
                name: name.into(),
                attached: 0,
                group: "".into(),
            };
            Snapshot {
                sessions: vec![session(0, "main"), session(9, "_ait")],
                windows: vec![WindowRow {
                    session: SessionId(0),
                    id: WindowId(0),
                    index: 0,
                    active: true,
                    name: "w".into(),
                    layout: "".into(),
                }],
                panes: vec![PaneRow {
                    session: SessionId(0),
                    window: WindowId(0),
                    id: PaneId(5),
                    pid: Some(self.agent().pid),
                    dead: false,
                    status: None,
                    signal: None,
                    active: true,
                    title: "".into(),
                    stamp: self.record().id.to_string().into(),
                    frozen: "".into(),
                    ready: false,
                    agent_session: "".into(),
                    attempt: "".into(),
                    remain_on_exit: RemainOnExit::Off,
                }],
            }
        }

        fn hear(&self, stage: &mut Stage, link: LinkId, event: LinkEvent) -> Vec<Action> {
            stage.tell(Input::Link { socket: self.socket.clone(), link, event })
        }

        /// Does all that is wanted, but that every change of these records is refused; gives the client there is then.
        fn perform(&self, stage: &mut Stage, actions: Vec<Action>, records: &[Record]) -> Option<LinkId> {
            let mut todo = VecDeque::from(actions);
            let mut client = None;
            while let Some(action) = todo.pop_front() {
                todo.extend(match action {
                    Action::Attach { link, .. } => {
                        client = Some(link);
                        let identity = Identity {
                            process: self.server(),
                            started_at: 7,
                            version: "3.3a".into(),
                            session: SessionId(9),
                            hold: PaneId(9),
                            client: "client-1".into(),
                            default_session: Some(SessionId(0)),
                        };
                        self.hear(stage, link, LinkEvent::Attached(identity))
                    }
                    Action::Detach { link, .. } => {
                        client = None;
                        self.hear(stage, link, LinkEvent::Ended { exit: None })
                    }
                    Action::Ask { link, tag, ask, .. } => {
                        let answer = match ask {
                            Ask::Listing => Answer::Listing(self.listing()),
                            _ => Answer::Done,
                        };
                        self.hear(stage, link, LinkEvent::Answer { tag, answer })
                    }
                    Action::Watch(process) => stage.tell(Input::Watching(process)),
                    Action::Write { ticket, changes } => {
                        let refused = |change: &(RecordId, Verb)| Err(Refused::LeaseHeld(change.0));
                        let results = changes.iter().map(refused).collect();
                        let written = Written { results, view: view(records.to_vec()) };
                        stage.tell(Input::Written { ticket, result: Ok(written) })
                    }
                    _ => Vec::new(),
                });
            }
            client
        }

        /// It comes, with an agent; gives the client that is on it.
        fn comes(&self, stage: &mut Stage) -> LinkId {
            stage.tell(Input::Socket { socket: self.socket.clone(), present: true });
            stage.tell(Input::Listener { socket: self.socket.clone(), pid: Some(self.server().pid) });
            let records = [self.record()];
            let actions = stage.tell(Input::Store(Ok(view(records.to_vec()))));
            let link = self.perform(stage, actions, &records).expect("it is come to");
            assert!(stage.supervisor.servers[&self.socket].up().is_some_and(|up| up.world.is_complete()));
            assert_eq!(stage.supervisor.plans.count(), 1, "what stands there is known");
            link
        }

        /// It is killed under its agent, whose record is dropped.
        fn crashes(&self, stage: &mut Stage, link: LinkId) {
            stage.tell(Input::Died(self.server()));
            stage.tell(Input::Died(self.agent()));
            let actions = self.hear(stage, link, LinkEvent::Ended { exit: None });
            self.perform(stage, actions, &[self.record()]);
            stage.tell(Input::Store(Ok(view(Vec::new()))));
        }

        /// The record is dropped, and the server, in which nothing is left that concerns anybody, ends a while after.
        fn is_left(&self, stage: &mut Stage) {
            let actions = stage.tell(Input::Store(Ok(view(Vec::new()))));
            self.perform(stage, actions, &[]);
            assert!(stage.supervisor.servers.contains_key(&self.socket), "it is there, and told of");
            stage.tell(Input::Listener { socket: self.socket.clone(), pid: None });
        }
    }

    #[test]
    fn nothing_is_kept_of_servers_that_came_and_went() {
        let mut stage = Stage::new(Vec::new());
        let mut sizes = Vec::new();
        for at in 0..40 {
            let one = One::new(at);
            let link = one.comes(&mut stage);
            if at % 2 == 0 {
                one.crashes(&mut stage, link)
            } else {
                one.is_left(&mut stage)
            }
            // bounded, and told of elsewhere
            stage.supervisor.recent.clear();
            stage.supervisor.buried.clear();
            assert_eq!(stage.supervisor.sockets().count(), 0, "{at}");
            assert_eq!(stage.supervisor.plans.count(), 0, "{at}");
            let all = format!("{:?}", stage.supervisor);
            assert!(!all.contains("of-many"), "{at}: {all}");
            sizes.push(all.len());
        }
        // the numbers in it grow by digits
        assert!(sizes[39] < sizes[0] + 100, "{sizes:?}");
    }

    #[test]
    fn a_server_that_a_record_names_is_remembered_when_nobody_listens() {
        let mut stage = Stage::new(Vec::new());
        let one = One::new(1);
        let link = one.comes(&mut stage);
        stage.tell(Input::Died(one.server()));
        let actions = one.hear(&mut stage, link, LinkEvent::Ended { exit: None });
        one.perform(&mut stage, actions, &[one.record()]);
        stage.tell(Input::Socket { socket: one.socket.clone(), present: false });
        stage.tell(Input::Listener { socket: one.socket.clone(), pid: None });
        assert!(stage.supervisor.servers.contains_key(&one.socket));
        assert_eq!(stage.supervisor.plans.count(), 1);
    }

    #[test]
    fn what_was_dropped_of_a_record_that_moved_is_put_back_without_its_place() {
        let put_back = |actions: &[Action]| {
            let write = actions.iter().find_map(|action| match action {
                Action::Write { ticket, changes } => Some((*ticket, changes.first()?.1.clone())),
                _ => None,
            });
            let Some((ticket, Verb::Enrich { at, ours, .. })) = write else { panic!("{actions:?}") };
            (ticket, at, ours)
        };
        let mut stage = Stage::new(Vec::new());
        let one = One::new(1);
        one.comes(&mut stage);
        let stripped = Record { ait: Ours::default(), ..one.record() };
        let actions = stage.tell(Input::Store(Ok(view(vec![stripped.clone()]))));
        let (ticket, at, ours) = put_back(&actions);
        assert_eq!((at, *ours), (one.record().location, one.record().ait));
        // a freeze that was under way ends meanwhile
        let state = crate::record::State::Frozen { lost: None };
        let moved = view(vec![Record { location: Location::Gone, state, ..stripped }]);
        stage.tell(Input::Store(Ok(moved.clone())));
        let refused = Refused::NoEvidence {
            id: one.record().id,
            verb: crate::record::VerbName::Enrich,
            why: "other_process",
        };
        let written = Written { results: vec![Err(refused)], view: moved };
        let (_, at, ours) = put_back(&stage.tell(Input::Written { ticket, result: Ok(written) }));
        assert_eq!(at, Location::Gone);
        assert_eq!(*ours, Ours { host: Some(Host::Pane), ..Ours::default() }, "it says nothing of a place");
    }
}
