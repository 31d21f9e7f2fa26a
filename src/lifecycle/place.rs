//! Putting a fleet back where it stood: sessions, windows, splits in order, companions as shells, the layout.
//!
//! Each agent gets its stand-in first, in its own place; the restore then takes that pane. So a kill at any moment leaves
//! frozen records with their screens where they belong, and the next try finds them: a stand-in that no record knows yet is
//! known by its process. Nothing is typed, nothing of the user's is moved, and no session of another project is touched.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tmux_control::{PaneId, SessionId, WindowId};

use super::root::root_of;
use super::server::{self, NotStarted};
use crate::process::{self, Liveness};
use crate::record::{Location, Ours, ProcessId, Record, RecordId, ServerEpoch, Verb};
use crate::store::{LONG_PATIENCE, Store, StoreError, System};
use crate::tmux::guarded::{self, Epoch, Guard, Outcome, PaneOption, Token};
use crate::tmux::listing::{self, ListError};
use crate::tmux::{OneShot, Probe, Unanswered, probe};
use crate::world::plan::{PlanPane, PlanWindow, leaves};
use crate::world::rows::Snapshot;

/// What a command that makes a pane prints.
const MADE: &str = "#{pane_id} #{pane_pid} #{window_id} #{session_id} #{window_index}";
/// The size of a window nobody looks at, until its layout says otherwise.
const SIZE: (&str, &str) = ("200", "50");
/// Sessions of one name that are passed over.
const NAMES: u32 = 100;

/// Why nothing could be placed on a server.
#[derive(Debug, thiserror::Error)]
pub enum NotPlaced {
    /// No server.
    #[error(transparent)]
    NoServer(#[from] NotStarted),
    /// It does not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// It cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// What it answers makes no sense.
    #[error("an answer of tmux is not understood: {0}")]
    Odd(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Records whose stand-in is in its place.
    pub records: BTreeSet<RecordId>,
    /// Records that are in other hands by now, or not lost any more.
    pub taken: BTreeSet<RecordId>,
    /// What is not as it was, in words.
    pub said: Vec<String>,
}

/// Where and with what to place.
#[derive(Debug)]
pub struct Ground<'a> {
    /// The store.
    pub store: &'a Store,
    /// The facts verbs are judged by.
    pub system: &'a System,
    /// This program, absolute.
    pub program: &'a Path,
    /// Our own process.
    pub me: &'a ProcessId,
}

/// A pane that was made or found.
#[derive(Debug, Clone, Copy)]
struct Made {
    pane: PaneId,
    pid: i32,
    window: WindowId,
    session: SessionId,
    index: i64,
}

/// On which side of another pane one is split off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// Places the stand-ins of these lost records on the server at `socket`, starting one if none listens.
///
/// # Errors
/// [`NotPlaced`]; what was placed until then is found by the next try.
pub async fn place(ground: &Ground<'_>, socket: &Path, records: &[Record]) -> Result<Placed, NotPlaced> {
    let mut site = Site::new(ground, socket, records).await?;
    let mut furnished = Vec::new();
    for window in windows(ground.store, records) {
        furnished.extend(site.furnish(window).await?);
    }
    // once a record names the server a supervisor attaches to it, and a window that changes meanwhile crashes it (fault R4)
    site.sign(&furnished).await?;
    Ok(site.placed)
}

/// A window that stands, and the agents whose stand-ins were made or found in it.
struct Furnished {
    /// The life of the server whose plan it is of.
    of: ServerEpoch,
    window: PlanWindow,
    agents: Vec<(RecordId, Made)>,
}

/// The windows these records were in, by session and index, each with the life of the server it was of: that of the record, or
/// an earlier one where that went before its plan was kept.
fn windows(store: &Store, records: &[Record]) -> Vec<(ServerEpoch, PlanWindow)> {
    let mut plans = BTreeMap::new();
    let mut earlier = None;
    let mut windows: Vec<(ServerEpoch, PlanWindow)> = Vec::new();
    for record in records {
        let Some(epoch) = &record.ait.server else { continue };
        let known = windows.iter().any(|(_, w)| w.panes.iter().any(|pane| pane.record == Some(record.id)));
        if known {
            continue;
        }
        let plan = plans
            .entry((epoch.socket.clone(), epoch.pid, epoch.started.clone()))
            .or_insert_with(|| store.plan(epoch));
        if let Some(window) = plan.as_ref().and_then(|plan| plan.window_of(record.id)) {
            windows.push((epoch.clone(), window.clone()));
            continue;
        }
        let earlier = earlier.get_or_insert_with(|| store.plans());
        let before = earlier.iter().find_map(|plan| Some((&plan.server, plan.window_of(record.id)?)));
        if let Some((of, window)) = before {
            // companions that came back went with the server they came back to
            let lives = process::liveness(&epoch.process()) != Liveness::Gone;
            windows.push((of.clone(), PlanWindow { restored: window.restored && lives, ..window.clone() }));
            continue;
        }
        // no plan of it: what the record knows
        let pane = PlanPane { record: Some(record.id), pid: 0, cwd: None, active: true };
        let number = record.ait.window_id.map(|window| window.0);
        let same = windows.iter_mut().find(|(of, w)| of.is_same_life(epoch) && number == Some(w.window));
        match same {
            Some((_, window)) => window.panes.push(pane),
            None => windows.push((
                epoch.clone(),
                PlanWindow {
                    session: record.session.clone(),
                    window: number.unwrap_or(u32::MAX),
                    name: record.window.clone(),
                    index: record.ait.window_index.unwrap_or(0),
                    active: false,
                    layout: record.ait.window_layout.clone().unwrap_or_default(),
                    panes: vec![pane],
                    restored: false,
                },
            )),
        }
    }
    windows.sort_by(|(_, one), (_, other)| (&one.session, one.index).cmp(&(&other.session, other.index)));
    windows
}

/// One server, while things are put there.
struct Site<'a> {
    ground: &'a Ground<'a>,
    socket: PathBuf,
    records: BTreeMap<RecordId, &'a Record>,
    /// The server as it was before, where there was one.
    before: Option<Snapshot>,
    /// Sessions of this name that are ours to use.
    sessions: BTreeMap<String, SessionId>,
    /// Sessions that were made here.
    made: BTreeSet<SessionId>,
    /// Stand-ins that an earlier try left.
    strays: BTreeMap<RecordId, Made>,
    /// Windows with such a one that its record does not know: that try was cut short there.
    unsigned: BTreeSet<WindowId>,
    /// Records whose stand-in is there.
    furnished: BTreeSet<RecordId>,
    placed: Placed,
}

impl<'a> Site<'a> {
    async fn new(ground: &'a Ground<'a>, socket: &Path, records: &'a [Record]) -> Result<Self, NotPlaced> {
        let mut site = Self {
            ground,
            socket: socket.to_owned(),
            records: records.iter().map(|record| (record.id, record)).collect(),
            before: None,
            sessions: BTreeMap::new(),
            made: BTreeSet::new(),
            strays: BTreeMap::new(),
            unsigned: BTreeSet::new(),
            furnished: BTreeSet::new(),
            placed: Placed::default(),
        };
        if let Probe::Listening(_) = probe(socket) {
            let snapshot = listing::snapshot(&OneShot::new(socket)?).await?;
            for row in &snapshot.panes {
                let Some(pid) = row.pid.filter(|_| !row.dead) else { continue };
                let Some(id) = stand_in_of(pid).filter(|id| site.records.contains_key(id)) else { continue };
                let index = snapshot.windows.iter().find(|w| w.id == row.window).map_or(0, |w| w.index);
                let stray = Made { pane: row.id, pid, window: row.window, session: row.session, index };
                site.strays.insert(id, stray);
                let signed = site.records.get(&id).and_then(|record| record.location.pane_id());
                if signed != Some(crate::record::PaneId(row.id.0)) {
                    site.unsigned.insert(row.window);
                }
            }
            site.before = Some(snapshot);
        }
        Ok(site)
    }

    fn tmux(&self) -> Result<OneShot, Unanswered> {
        OneShot::new(&self.socket)
    }

    /// Puts back one window; `None` if nothing of it is wanted.
    async fn furnish(
        &mut self,
        (of, window): (ServerEpoch, PlanWindow),
    ) -> Result<Option<Furnished>, NotPlaced> {
        let wanted: Vec<&PlanPane> = window
            .panes
            .iter()
            .filter(|pane| match pane.record {
                Some(id) => self.records.contains_key(&id) && !self.furnished.contains(&id),
                None => !window.restored,
            })
            .collect();
        let mut last = self.standing(&window).await?;
        let stray = |pane: &PlanPane| self.strays.get(&pane.record?).copied();
        let there = last.or_else(|| wanted.iter().find_map(|pane| stray(pane)));
        let mut companions = there.map(|made| self.companions(made.window)).unwrap_or_default();
        let mut agents = Vec::new();
        for (pane, side) in in_order(&wanted, last.is_some()) {
            let known = match pane.record {
                Some(id) => self.strays.get(&id).copied(),
                None => companions.pop_front(),
            };
            let made = match (known, last) {
                (Some(known), _) => known,
                (None, None) => self.open(&window, pane).await?,
                (None, Some(beside)) => match self.split(beside, side, pane).await? {
                    Some(made) => made,
                    None => continue,
                },
            };
            if side == Side::Behind {
                last = Some(made);
            }
            if let Some(id) = pane.record {
                agents.push((id, made));
            } else if pane.active {
                self.tmux()?.run(["select-pane", "-t", &made.pane.to_string()]).await?;
            }
        }
        let Some(mut last) = last else { return Ok(None) };
        self.settle(&window, &mut last).await?;
        self.arrange(&window, last).await?;
        self.furnished.extend(agents.iter().map(|(id, _)| *id));
        Ok(Some(Furnished { of, window, agents }))
    }

    /// A pane of that window which is there already: an agent of it that came back before, or its stand-in.
    async fn standing(&self, window: &PlanWindow) -> Result<Option<Made>, NotPlaced> {
        let Some(before) = &self.before else { return Ok(None) };
        let ids: BTreeSet<String> =
            window.panes.iter().filter_map(|pane| Some(pane.record?.to_string())).collect();
        let is_one = |stamp: &[u8]| std::str::from_utf8(stamp).is_ok_and(|stamp| ids.contains(stamp));
        let row = before.panes.iter().rfind(|row| !row.dead && (is_one(&row.stamp) || is_one(&row.frozen)));
        Ok(row.and_then(|row| {
            let index = before.windows.iter().find(|w| w.id == row.window).map_or(0, |w| w.index);
            Some(Made { pane: row.id, pid: row.pid?, window: row.window, session: row.session, index })
        }))
    }

    /// The panes of a window that was there already in which no agent and no stand-in is, in order.
    fn companions(&self, window: WindowId) -> VecDeque<Made> {
        let Some(before) = &self.before else { return VecDeque::new() };
        let index = before.windows.iter().find(|row| row.id == window).map_or(0, |row| row.index);
        let mut panes = VecDeque::new();
        for row in before.panes.iter().filter(|row| row.window == window && !row.dead) {
            let Some(pid) = row.pid else { continue };
            if row.stamp.is_empty() && row.frozen.is_empty() && stand_in_of(pid).is_none() {
                panes.push_back(Made { pane: row.id, pid, window, session: row.session, index });
            }
        }
        panes
    }

    /// Moves a window that an earlier try has left where it was made to its own index.
    async fn settle(&mut self, window: &PlanWindow, made: &mut Made) -> Result<(), NotPlaced> {
        if made.index == window.index || !self.unsigned.contains(&made.window) {
            return Ok(());
        }
        let target = format!("{}:{}", made.session, window.index);
        let moved =
            self.tmux()?.run(["move-window", "-d", "-s", &made.window.to_string(), "-t", &target]).await;
        match moved {
            Ok(_) => made.index = window.index,
            Err(Unanswered::Refused { .. }) => {
                let at = made.index;
                self.say(window, &format!("its index {} is taken: it is at {at}", window.index));
            }
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// Makes a window with its first pane, under its name and index where that is free.
    async fn open(&mut self, window: &PlanWindow, pane: &PlanPane) -> Result<Made, NotPlaced> {
        if let Some(session) = self.session(&window.session)? {
            let at = format!("{session}:{}", window.index);
            let anywhere = format!("{session}:");
            for (target, taken) in [(at.as_str(), false), (anywhere.as_str(), true)] {
                let mut words = words(["new-window", "-d", "-P", "-F", MADE, "-t", target, "-n"]);
                words.push(data(&window.name));
                words.extend(self.content(pane));
                match self.tmux()?.run(&words).await {
                    Ok(answer) => {
                        let made = parse(&answer)?;
                        if taken {
                            let at = made.index;
                            self.say(window, &format!("its index {} is taken: it is at {at}", window.index));
                        }
                        return Ok(made);
                    }
                    Err(Unanswered::Refused { words }) if !taken && words.ends_with(b"in use") => {}
                    Err(Unanswered::Refused { .. }) if !taken => {}
                    Err(other) => return Err(other.into()),
                }
            }
            return Err(NotPlaced::Odd("no window can be made".into()));
        }
        let name = self.free_name(&window.session);
        if name != window.session {
            self.say(window, &format!("its session's name is another project's: it is in {name}"));
        }
        let mut words = words(["new-session", "-d", "-P", "-F", MADE, "-x", SIZE.0, "-y", SIZE.1, "-s"]);
        words.push(data(&name));
        words.push("-n".into());
        words.push(data(&window.name));
        words.extend(self.content(pane));
        let (answer, _) = server::new_session(&self.socket, &words).await?;
        let mut made = parse(&answer)?;
        self.sessions.insert(window.session.clone(), made.session);
        self.made.insert(made.session);
        if made.index != window.index {
            let target = format!("{}:{}", made.session, window.index);
            self.tmux()?.run(["move-window", "-d", "-s", &made.window.to_string(), "-t", &target]).await?;
            made.index = window.index;
        }
        Ok(made)
    }

    /// Splits off a pane beside another; `None`, and said, where there is no room even after tiling.
    async fn split(&mut self, beside: Made, side: Side, pane: &PlanPane) -> Result<Option<Made>, NotPlaced> {
        let (window, target) = (beside.window.to_string(), beside.pane.to_string());
        let mut words = words(["split-window", "-d", "-P", "-F", MADE, "-t", &target]);
        if side == Side::Before {
            words.push("-b".into());
        }
        words.extend(self.content(pane));
        for tiled in [false, true] {
            if tiled {
                self.tmux()?.run(["select-layout", "-t", &window, "tiled"]).await?;
            }
            match self.tmux()?.run(&words).await {
                Ok(answer) => return Ok(Some(parse(&answer)?)),
                Err(Unanswered::Refused { .. }) if !tiled => {}
                Err(Unanswered::Refused { words }) => {
                    self.placed.said.push(format!("a pane could not be split off: {words}"));
                }
                Err(other) => return Err(other.into()),
            }
        }
        Ok(None)
    }

    /// What runs in a pane and where: an agent's stand-in, or the default shell.
    fn content(&self, pane: &PlanPane) -> Vec<OsString> {
        let record = pane.record.and_then(|id| self.records.get(&id));
        let cwd = record.map_or(pane.cwd.as_deref(), |record| record.ait.cwd.as_deref());
        let folder = cwd.filter(|cwd| Path::new(cwd).is_dir());
        let mut words: Vec<OsString> = Vec::new();
        if let Some(folder) = folder {
            words.push("-c".into());
            words.push(data(folder));
        }
        if let Some(record) = record {
            words.push(self.ground.program.into());
            words.extend(["frozenagent", "--record", &record.id.to_string()].map(OsString::from));
        }
        words
    }

    /// The session of that name, if one is there that may be used.
    fn session(&mut self, name: &str) -> Result<Option<SessionId>, NotPlaced> {
        if let Some(known) = self.sessions.get(name) {
            return Ok(Some(*known));
        }
        let Some(before) = &self.before else { return Ok(None) };
        let Some(row) = before.sessions.iter().find(|row| row.name == name.as_bytes()) else {
            return Ok(None);
        };
        let id = row.id;
        let theirs = self.is_anothers(before, id);
        if theirs {
            return Ok(None);
        }
        self.sessions.insert(name.to_owned(), id);
        Ok(Some(id))
    }

    /// Whether a session holds agents, and none of them belongs to a project that comes back now.
    fn is_anothers(&self, before: &Snapshot, session: SessionId) -> bool {
        let roots: BTreeSet<&str> = self.records.values().map(|record| record.root.as_str()).collect();
        let known = self.ground.store.read().ok();
        let mut agents = before.panes.iter().filter(|row| row.session == session).filter_map(|row| {
            let stamp = if row.stamp.is_empty() { &row.frozen } else { &row.stamp };
            let id: RecordId = std::str::from_utf8(stamp).ok()?.parse().ok()?;
            known.as_ref()?.records.get(id).map(|record| record.root.clone())
        });
        let Some(first) = agents.next() else {
            return self.begins_elsewhere(before, session, &roots);
        };
        !std::iter::once(first).chain(agents).any(|root| roots.contains(root.as_str()))
    }

    /// Whether all its panes work in marked projects, none of which comes back now.
    fn begins_elsewhere(&self, before: &Snapshot, session: SessionId, roots: &BTreeSet<&str>) -> bool {
        let projects: Vec<Option<PathBuf>> = before
            .panes
            .iter()
            .filter(|row| row.session == session)
            .map(|row| {
                let cwd = process::facts(row.pid?)?.cwd?;
                let root = root_of(&cwd).ok()?;
                // a folder without a mark is nobody's project
                (root.join(".git").exists() || root.join("aitasks").exists()).then_some(root)
            })
            .collect();
        !projects.is_empty()
            && projects.iter().all(|root| {
                root.as_ref().is_some_and(|root| !roots.contains(root.to_string_lossy().as_ref()))
            })
    }

    /// That name, or one with a number behind it that no session has.
    fn free_name(&self, name: &str) -> String {
        let taken = |name: &str| {
            self.before
                .as_ref()
                .is_some_and(|before| before.sessions.iter().any(|row| row.name == name.as_bytes()))
        };
        let name = if name.is_empty() { "agents" } else { name };
        let numbered = (2..NAMES).map(|number| format!("{name}-{number}"));
        std::iter::once(name.to_owned())
            .chain(numbered)
            .find(|name| !taken(name))
            .unwrap_or_else(|| name.to_owned())
    }

    /// Applies the layout, if as many panes are there as it names; makes what was current so in sessions made here.
    async fn arrange(&mut self, window: &PlanWindow, made: Made) -> Result<(), NotPlaced> {
        let target = made.window.to_string();
        let tmux = self.tmux()?;
        let panes =
            tmux.run(["display-message", "-p", "-t", &made.pane.to_string(), "#{window_panes}"]).await?;
        let there: usize = String::from_utf8_lossy(&panes).trim().parse().unwrap_or(0);
        let meant = leaves(window.layout.as_bytes()).len();
        if there == meant && meant > 1 {
            if let Err(error) = tmux.run(["select-layout", "-t", &target, &window.layout]).await {
                self.say(window, &format!("its layout is not applied: {error}"));
            }
        } else if meant != there {
            self.say(
                window,
                &format!("its layout is not applied: it had {meant} panes, now there are {there}"),
            );
        }
        if window.active && self.made.contains(&made.session) {
            tmux.run(["select-window", "-t", &format!("{}:{target}", made.session)]).await?;
        }
        Ok(())
    }

    /// Stamps the stand-ins and writes where they are, in one write.
    async fn sign(&mut self, furnished: &[Furnished]) -> Result<(), NotPlaced> {
        let agents: Vec<(RecordId, Made)> =
            furnished.iter().flat_map(|one| one.agents.iter().copied()).collect();
        if !agents.is_empty() {
            self.sign_all(furnished, &agents).await?;
        }
        for Furnished { of, window, .. } in furnished {
            if !window.restored
                && window.panes.iter().any(|pane| pane.record.is_none())
                && let Some(mut plan) = self.ground.store.plan(of)
            {
                // a companion comes back once
                for known in plan.windows.iter_mut().filter(|known| known.window == window.window) {
                    known.restored = true;
                }
                self.ground.store.write_plan(&plan)?;
            }
        }
        Ok(())
    }

    async fn sign_all(
        &mut self,
        furnished: &[Furnished],
        agents: &[(RecordId, Made)],
    ) -> Result<(), NotPlaced> {
        let tmux = self.tmux()?;
        let answer = tmux.run(["display-message", "-p", "#{pid} #{start_time}"]).await?;
        let (pid, started_at) = pair(&answer).ok_or_else(|| odd(&answer))?;
        let server =
            process::identify(pid).ok_or_else(|| NotPlaced::Odd("the server is not to be seen".into()))?;
        let epoch = ServerEpoch {
            socket: self.socket.to_string_lossy().into_owned(),
            pid,
            started: server.started,
            started_at: Some(started_at),
            boot_id: self.ground.system.facts().boot_id.to_owned(),
            unknown: Default::default(),
        };
        let mut steps = Vec::new();
        let all = furnished.iter().flat_map(|one| one.agents.iter().map(|agent| (&one.window.layout, agent)));
        for (layout, (id, made)) in all {
            let guard = Guard::new(made.pane, Epoch { pid, started_at }).process(made.pid);
            let token = Token::random().map_err(|error| NotPlaced::Odd(error.to_string()))?;
            if guarded::stamp_frozen(guard, *id, token).run(&tmux).await? != Outcome::Done {
                self.placed.said.push(format!("the pane of {id} went as it was made"));
                continue;
            }
            let Some(process) = process::identify(made.pid) else { continue };
            let at = Location::pane(crate::record::PaneId(made.pane.0), process);
            let ours = Ours {
                server: Some(epoch.clone()),
                window_id: Some(crate::record::WindowId(made.window.0)),
                window_index: Some(made.index),
                window_layout: (!layout.is_empty()).then(|| layout.clone()),
                ..Ours::default()
            };
            steps.push((*id, at, ours));
        }
        let facts = self.ground.system.facts();
        let owner = self.ground.me;
        let lost =
            |record: Option<&Record>| record.and_then(|record| record.state.lost().map(|lost| lost.at));
        let before = &self.records;
        let (signed, taken) = self.ground.store.update(&facts, LONG_PATIENCE, |batch| {
            let (mut signed, mut taken) = (BTreeSet::new(), BTreeSet::new());
            for (id, at, ours) in steps {
                // it may have been brought back since it was read, and be frozen again because somebody wants it so
                let now = lost(batch.records().get(id).map(AsRef::as_ref));
                let claim = Verb::LeaseTake { owner: owner.clone() };
                let nonce = (now.is_some() && now == lost(before.get(&id).copied()))
                    .then(|| batch.step(Some(id), &claim).ok().and_then(|done| done.outcome.nonce()))
                    .flatten();
                let Some(nonce) = nonce else {
                    taken.insert(id);
                    continue;
                };
                // the lease goes with it
                let back = batch.step(Some(id), &Verb::StandinRespawned { nonce, at: at.clone() });
                let known = Verb::Enrich { at, ours: Box::new(ours), lost: None, replace: true };
                if back.is_ok() && batch.step(Some(id), &known).is_ok() {
                    signed.insert(id);
                }
            }
            (signed, taken)
        })?;
        for (id, made) in agents.iter().filter(|(id, _)| taken.contains(id)) {
            self.take_away(&epoch, *id, made).await?;
        }
        self.clear(&epoch, agents, &signed).await?;
        self.placed.records.extend(signed);
        self.placed.taken.extend(taken);
        Ok(())
    }

    /// Closes what else stands in for these records: one that had died when it was looked for, and was put back since.
    async fn clear(
        &self,
        epoch: &ServerEpoch,
        agents: &[(RecordId, Made)],
        signed: &BTreeSet<RecordId>,
    ) -> Result<(), NotPlaced> {
        let Some(started_at) = epoch.started_at else { return Ok(()) };
        let tmux = self.tmux()?;
        let snapshot = listing::snapshot(&tmux).await?;
        for (id, made) in agents.iter().filter(|(id, _)| signed.contains(id)) {
            let stamp = id.to_string();
            for row in snapshot.panes.iter().filter(|row| row.frozen == stamp.as_str() && row.id != made.pane)
            {
                let guard = Guard::new(row.id, Epoch { pid: epoch.pid, started_at });
                let guard = match row.pid.filter(|_| !row.dead) {
                    Some(pid) if stand_in_of(pid) == Some(*id) => guard.process(pid),
                    Some(_) => continue,
                    None => guard.dead(),
                };
                let guard = guard.stamped(PaneOption::Frozen, *id);
                let token = Token::random().map_err(|error| NotPlaced::Odd(error.to_string()))?;
                // one that changed meanwhile is left to the supervisor
                let _ = guarded::kill_pane(guard, token).run(&tmux).await?;
            }
        }
        Ok(())
    }

    /// Closes the pane of a stand-in that its record does not know.
    async fn take_away(&mut self, epoch: &ServerEpoch, id: RecordId, made: &Made) -> Result<(), NotPlaced> {
        let own = self.records.get(&id).is_some_and(|record| {
            record.location.pane_id() == Some(crate::record::PaneId(made.pane.0))
                && record.ait.server.as_ref().is_some_and(|server| server.is_same_life(epoch))
        });
        let Some(started_at) = epoch.started_at.filter(|_| !own) else { return Ok(()) };
        let server = Epoch { pid: epoch.pid, started_at };
        let guard = Guard::new(made.pane, server).process(made.pid).stamped(PaneOption::Frozen, id);
        let token = Token::random().map_err(|error| NotPlaced::Odd(error.to_string()))?;
        if guarded::kill_pane(guard, token).run(&self.tmux()?).await? == Outcome::Done {
            self.placed.said.push(format!("{id} is in other hands: its stand-in is closed"));
        }
        Ok(())
    }

    fn say(&mut self, window: &PlanWindow, what: &str) {
        self.placed.said.push(format!("window {}:{} {}: {what}", window.session, window.index, window.name));
    }
}

/// The panes in the order they are made. A window that is made begins with an agent: its stand-in tells whose the window is,
/// should the rest be cut short. Companions that stood before it are split off before it.
fn in_order<'p>(wanted: &[&'p PlanPane], stands: bool) -> Vec<(&'p PlanPane, Side)> {
    let first = if stands { None } else { wanted.iter().position(|pane| pane.record.is_some()) };
    let (before, rest) = wanted.split_at(first.unwrap_or(0));
    let (agent, behind) = rest.split_at(rest.len().min(1));
    let behind_it = |pane: &&'p PlanPane| (*pane, Side::Behind);
    let before = before.iter().map(|pane| (*pane, Side::Before));
    agent.iter().map(behind_it).chain(before).chain(behind.iter().map(behind_it)).collect()
}

/// Whose stand-in a process is, by its arguments.
fn stand_in_of(pid: i32) -> Option<RecordId> {
    let facts = process::facts(pid)?;
    let words: Vec<&[u8]> = facts.argv.iter().map(Vec::as_slice).collect();
    let [_, b"frozenagent", b"--record", id] = words.as_slice() else { return None };
    std::str::from_utf8(id).ok()?.parse().ok()
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// A text as a word that tmux takes as it is: not as a format, not as the end of a command.
fn data(text: &str) -> OsString {
    // tmux keeps names with their backslashes doubled, and doubles them when it is given one
    let mut bytes = text.replace("\\\\", "\\").replace('#', "##").into_bytes();
    if bytes.last() == Some(&b';') {
        bytes.pop();
        bytes.extend(b"\\;");
    }
    OsString::from_vec(bytes)
}

fn parse(answer: &[u8]) -> Result<Made, NotPlaced> {
    let text = String::from_utf8_lossy(answer);
    let fields: Vec<&str> = text.split_whitespace().collect();
    let number =
        |at: usize, sign: &str| fields.get(at).and_then(|word| word.strip_prefix(sign)?.parse::<u32>().ok());
    let made = (|| {
        Some(Made {
            pane: PaneId(number(0, "%")?),
            pid: fields.get(1)?.parse().ok()?,
            window: WindowId(number(2, "@")?),
            session: SessionId(number(3, "$")?),
            index: fields.get(4)?.parse().ok()?,
        })
    })();
    made.ok_or_else(|| odd(answer))
}

fn pair(answer: &[u8]) -> Option<(i32, i64)> {
    let text = String::from_utf8_lossy(answer);
    let (pid, started) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

fn odd(answer: &[u8]) -> NotPlaced {
    NotPlaced::Odd(OsStr::from_bytes(answer).to_string_lossy().chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_data() {
        for (name, word) in
            [("plain", "plain"), ("#{pid}", "##{pid}"), ("a;", "a\\;"), ("x\\\\y", "x\\y"), ("", "")]
        {
            assert_eq!(data(name), word, "{name}");
        }
    }

    #[test]
    fn a_window_begins_with_an_agent() {
        let pane = |record: Option<u32>| PlanPane {
            record: record.map(RecordId::from_bits),
            pid: 0,
            cwd: None,
            active: false,
        };
        let panes = [pane(None), pane(None), pane(Some(1)), pane(None), pane(Some(2))];
        let wanted: Vec<&PlanPane> = panes.iter().collect();
        let order = |stands| -> Vec<(usize, Side)> {
            let at = |one: &PlanPane| panes.iter().position(|pane| std::ptr::eq(pane, one)).unwrap();
            in_order(&wanted, stands).into_iter().map(|(pane, side)| (at(pane), side)).collect()
        };
        use Side::{Before, Behind};
        assert_eq!(order(false), [(2, Behind), (0, Before), (1, Before), (3, Behind), (4, Behind)]);
        assert_eq!(order(true), [0, 1, 2, 3, 4].map(|at| (at, Behind)));
        assert_eq!(in_order(&wanted[..2], false).len(), 2, "no agent is left out or made up");
        assert!(in_order(&[], false).is_empty());
    }

    #[test]
    fn what_tmux_made_is_read_or_refused() {
        let made = parse(b"%5 123 @2 $1 7\n").unwrap();
        assert_eq!(
            (made.pane, made.pid, made.window, made.session, made.index),
            (PaneId(5), 123, WindowId(2), SessionId(1), 7)
        );
        assert!(parse(b"%5 x @2 $1 7").is_err() && parse(b"").is_err());
    }
}
