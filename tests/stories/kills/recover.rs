//! A recovery cut short: two agents of one window were lost with their server. Whatever is killed, each of them is at rest
//! afterwards, and the next recovery brings back those that nobody ended, once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use rustix::process::Signal;

use super::batch::WATCHED;
use super::cut::{Running, Steps, Words};
use super::seen::{Seen, held};
use super::subject::{World, adopted};
use super::{Between, Cut, Few, How, chosen, every};
use crate::recover::{Place, planned};
use crate::support::proc::Process;
use crate::support::wait::{stays, within, within_seldom};
use crate::support::{DEADLINE, Fake, wait_until};

/// Fleets at work at once: one recovery at a time works in a home.
const FLEETS: usize = 3;

/// Two agents of one window.
struct Fleet {
    world: World,
    /// Record, conversation.
    agents: Vec<(String, String)>,
    /// Where each stood.
    places: Vec<Place>,
    /// How often it was cut, for names.
    cuts: usize,
}

impl Fleet {
    fn new() -> Fleet {
        let world = World::with("recover = \"offer\"\nrecover_agents = \"offer\"\n");
        let tmux = &world.tmux;
        let first = Fake::claude(tmux, "main", "pair", &world.home.project("alpha"));
        let new = crate::support::fake::new_id();
        let second = first.beside(tmux, "claude", &["--session-id", &new]).up(tmux);
        let agents: Vec<(String, String)> = [first, second]
            .into_iter()
            .map(|agent| {
                agent.prompt(tmux, "one");
                let conversation = agent.conversation();
                (adopted(&agent, tmux), conversation)
            })
            .collect();
        let mut fleet = Fleet { world, agents, places: Vec::new(), cuts: 0 };
        fleet.known();
        fleet.planned();
        fleet.places = fleet.places_now();
        fleet
    }

    /// Waits until the supervisor knows all of them whole.
    fn known(&self) {
        self.world.home.store_until("the records to be whole", |home| {
            let known = |id: &str| {
                home.record(id).is_some_and(|record| {
                    record["ait"]["server"].is_object() && record["ait"]["host"].is_object()
                })
            };
            self.agents.iter().all(|(id, _)| known(id)).then_some(())
        });
        self.world.supervisor.watching(&self.world.tmux, self.agents.len() as u64);
    }

    /// Waits until what stands where is on disk. After a recovery it is the plan with the stand-ins for a while.
    fn planned(&self) {
        let panes = self.panes();
        let agents: Vec<(&str, &str)> =
            self.agents.iter().zip(&panes).map(|((id, _), pane)| (id.as_str(), pane.as_str())).collect();
        planned(&self.world.home, &self.world.tmux, &agents);
    }

    /// Where each stands.
    fn places_now(&self) -> Vec<Place> {
        self.panes().iter().map(|pane| Place::of(&self.world.tmux, pane)).collect()
    }

    /// The pane of each, by its record.
    fn panes(&self) -> Vec<String> {
        let pane = |id: &str| self.world.home.record(id).unwrap()["pane_id"].as_str().unwrap().to_owned();
        self.agents.iter().map(|(id, _)| pane(id)).collect()
    }

    /// Kills the server, and waits until all are kept as lost.
    fn lose(&self) {
        self.world.tmux.kill(Signal::KILL);
        for (id, _) in &self.agents {
            self.world.home.until_lost(id, "server_crashed");
        }
    }

    /// Recovers them; cut if there is a cut.
    fn recover(&mut self, cut: Option<Cut>) -> Running {
        self.cuts += 1;
        let home = &self.world.home;
        let coordinator =
            ["recover".to_owned()].into_iter().chain(self.agents.iter().map(|(id, _)| id.clone()));
        let words = Words { front: vec!["recover".to_owned()], coordinator: coordinator.collect() };
        Running::start(home, &home.root().join(format!("cut-{}", self.cuts)), &words, cut)
    }

    fn look(&self) -> Seen {
        Seen::of(&self.world.home, [&self.world.tmux].into_iter())
    }

    /// What each came to; `None` until all have.
    fn ends(&self) -> Option<Vec<&'static str>> {
        let seen = self.look();
        let socket = self.world.tmux.socket();
        self.agents.iter().map(|(id, conversation)| seen.end(id, conversation, socket)).collect()
    }

    #[track_caller]
    fn settled(&self, what: &str) -> Vec<&'static str> {
        within_seldom(DEADLINE * 2, || self.ends()).unwrap_or_else(|| {
            let seen = self.look();
            let told =
                |(id, conversation): &(String, String)| seen.told(id, conversation, self.world.tmux.socket());
            let told: Vec<String> = self.agents.iter().map(told).collect();
            panic!("{what} comes to no end: {}", told.join("\n"))
        })
    }

    /// Kills what is to be killed besides, of the first agent's, where the recovery has made it already.
    fn kill(&self, between: Between) {
        let tmux = &self.world.tmux;
        let (id, _) = &self.agents[0];
        let told = tmux.run([
            "list-panes",
            "-a",
            "-F",
            "#{pane_id} #{pane_pid} #{pid} #{@aitask_frozen}#{@aitask_record}",
        ]);
        let told = told.text();
        let Some(row) = told.lines().find(|row| row.contains(id.as_str())) else { return };
        let words: Vec<&str> = row.split(' ').collect();
        let kill = |pid: &str| {
            let process = Process::of(pid.parse().unwrap());
            let _ = process.is_some_and(|process| process.signal(Signal::KILL));
        };
        match between {
            Between::Nothing => {}
            Between::Process => kill(words[1]),
            Between::Pane => drop(tmux.run(["kill-pane", "-t", words[0]])),
            Between::Window => drop(tmux.run(["kill-window", "-t", words[0]])),
            Between::Server => kill(words[2]),
        }
    }

    /// Loses them, recovers them with a cut, and recovers what is left; what each came to after the cut.
    #[track_caller]
    fn cut(&mut self, cut: Cut) -> Vec<&'static str> {
        let what = format!("recover, {cut}");
        self.lose();
        let mut running = self.recover(Some(cut));
        // a restore that was proven sooner makes fewer calls
        let hit = wait_until(&format!("{what}: the cut"), DEADLINE, || {
            running.hit().map(|_| true).or_else(|| running.ended().then(|| running.hit().is_some()))
        });
        if hit {
            self.kill(cut.between);
            running.call_on();
            if cut.how != How::Kill {
                let home = &self.world.home;
                let leases =
                    || self.agents.iter().map(|(id, _)| held(home.record(id).as_ref())).collect::<Vec<_>>();
                let before = leases();
                let same =
                    || leases().iter().zip(&before).all(|(now, before)| before.is_none() || now == before);
                stays(&format!("{what}: nothing moves while it is stopped"), WATCHED, same);
            }
            running.let_go();
        }
        wait_until(&format!("{what}: the command to end"), DEADLINE * 2, || running.ended().then_some(()));
        let ends = self.settled(&what);
        self.world.tmux.remember_any();
        // those that nobody ended come back
        let mut last = Vec::new();
        let start = Instant::now();
        while !last.iter().all(|end| matches!(*end, "runs, live" | "ended by itself")) || last.is_empty() {
            assert!(start.elapsed() < DEADLINE * 2, "{what}: not all come back: {last:?}");
            self.world.home.ait(["recover"]);
            last = self.settled(&what);
        }
        self.world.tmux.remember_any();
        let ended = last.iter().filter(|end| **end == "ended by itself").count();
        let may = match cut.between {
            Between::Nothing | Between::Process | Between::Server => 0,
            Between::Pane => 1,
            Between::Window => 2,
        };
        assert!(ended <= may, "{what}: {ends:?}, then {last:?}");
        // where the server is killed a restore that goes on finds a place of its own; what crashed in its pane may have lost it
        if cut.between == Between::Nothing {
            let back = within(DEADLINE, || (self.places_now() == self.places).then_some(()));
            let (now, before) = (self.places_now(), &self.places);
            assert!(back.is_some(), "{what}: {ends:?}, {last:?}; they stand {now:#?}, not {before:#?}");
        }
        if !hit { vec!["not reached"] } else { ends }
    }

    /// Whether it can be lost again.
    fn is_whole(&self) -> bool {
        let back = self.ends().is_some_and(|ends| ends.iter().all(|end| *end == "runs, live"));
        back && self.places_now() == self.places
    }
}

/// The steps of a recovery nobody cuts.
fn count() -> Steps {
    let mut fleet = Fleet::new();
    fleet.lose();
    let mut running = fleet.recover(None);
    wait_until("the recovery to end", DEADLINE, || running.ended().then_some(()));
    fleet.world.tmux.remember();
    let steps = running.steps();
    assert!(!steps.calls.is_empty() && !steps.writes.is_empty(), "{steps:#?}");
    assert!(fleet.is_whole(), "{steps:#?}");
    steps
}

#[test]
fn a_recovery_cut_at_any_step_is_finished_by_the_next() {
    let steps = count();
    println!("recover: {} calls to tmux, {} writes of the store", steps.calls.len(), steps.writes.len());
    let mut cuts = chosen(every(&steps.all()), Few::ByTurns);
    cuts.reverse();
    let (cuts, ends) = (Mutex::new(cuts), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..FLEETS {
            scope.spawn(|| {
                let mut fleet = Fleet::new();
                loop {
                    let next = cuts.lock().unwrap().pop();
                    let Some(cut) = next else { break };
                    if !fleet.is_whole() {
                        fleet = Fleet::new();
                    }
                    fleet.known();
                    let end = fleet.cut(cut);
                    let end = end.join(" / ");
                    // all of them take long: what was seen is told as it comes
                    eprintln!("recover, {cut}  {end}");
                    ends.lock().unwrap().insert(cut, end);
                }
            });
        }
    });
    for (cut, end) in ends.into_inner().unwrap() {
        println!("  {cut}  {end}");
    }
}
