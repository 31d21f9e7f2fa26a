//! The agents that are worked on, and the world they live in: one home and one supervisor for many cases, and a tmux server of
//! its own for a case that loses it.

use std::fs;

use rustix::process::Signal;

use super::cut::{Words, wrap};
use super::{Between, Cut};
use crate::support::proc::Process;
use crate::support::tmux::Start;
use crate::support::wait::within;
use crate::support::{DEADLINE, Fake, Home, Ran, Supervisor, Tmux, wait_until};

/// What is done to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Freeze,
    Restore,
    /// Of a frozen one.
    Drop,
    /// Of a live one, by force.
    DropLive,
}

impl Operation {
    /// Whether it is done to a frozen agent.
    pub(super) fn of_frozen(self) -> bool {
        match self {
            Operation::Restore | Operation::Drop => true,
            Operation::Freeze | Operation::DropLive => false,
        }
    }

    /// What it comes to when nobody cuts it.
    pub(super) fn done(self) -> &'static str {
        match self {
            Operation::Freeze => "frozen, viewer",
            Operation::Restore => "runs, live",
            Operation::Drop | Operation::DropLive => "dropped",
        }
    }

    /// How it is asked for.
    pub(super) fn words(self, id: &str) -> Words {
        let (front, coordinator): (&[&str], &[&str]) = match self {
            Operation::Freeze => (&["freeze", id, "--force"], &["freeze", "--policy", "force", id]),
            Operation::Restore => (&["restore", id], &["restore", "--mode", "resume", id]),
            Operation::Drop => (&["drop", id], &["drop", id]),
            Operation::DropLive => (&["drop", id, "--force"], &["drop", "--force", id]),
        };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Words { front: owned(front), coordinator: owned(coordinator) }
    }
}

/// A home with a supervisor that settles at once.
#[derive(Debug)]
pub(super) struct World {
    // ended before the servers, and they before the home
    pub(super) supervisor: Supervisor,
    pub(super) tmux: Tmux,
    pub(super) home: Home,
}

impl World {
    /// One that brings nothing back by itself.
    pub(super) fn new() -> World {
        World::with("recover = \"off\"\nrecover_agents = \"off\"\n")
    }

    /// The same with these settings about recovery.
    pub(super) fn with(recovery: &str) -> World {
        let home = Home::new();
        let settings = home.home().join(".config/ait");
        fs::create_dir_all(&settings).unwrap();
        let text = format!("{recovery}[frozen]\nrestore_ack_grace = \"4s\"\n");
        fs::write(settings.join("config.toml"), text).unwrap();
        let tmux = Tmux::start(&home);
        wrap(&home);
        let supervisor = Supervisor::launch(&home, &[&tmux], &[("AITASKS_STALE_OP_GRACE", "1")]);
        supervisor.ready();
        World { supervisor, tmux, home }
    }
}

/// An agent, its record and, where it is to lose it, its own server.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) fake: Fake,
    pub(super) id: String,
    pub(super) conversation: String,
    /// What ran in its pane first.
    pub(super) process: Process,
    own: Option<Tmux>,
}

impl Subject {
    /// A Claude that answered once, known whole, and frozen if the operation is done to a frozen one.
    pub(super) fn start(world: &World, operation: Operation, name: &str, own: bool) -> Subject {
        let home = &world.home;
        let own = own.then(|| Tmux::start_with(home, Start { socket: name.to_owned(), ..Start::default() }));
        let tmux = own.as_ref().unwrap_or(&world.tmux);
        let fake = Fake::claude(tmux, "main", name, &home.project("alpha"));
        fake.prompt(tmux, "one");
        let conversation = fake.conversation();
        let process = fake.pane.process();
        let id = adopted(&fake, tmux);
        home.store_until("the supervisor to know it", |home| {
            home.record(&id)?["ait"]["host"].is_object().then_some(())
        });
        // its pane is kept when it ends, so that how it ended is known
        let options = || tmux.ok(["show-options", "-p", "-t", &fake.pane.id]);
        within(DEADLINE, || options().contains("remain-on-exit on").then_some(())).unwrap_or_else(|| {
            let told = home.ait(["status", "--json"]).text();
            panic!("{name}, record {id}, is not watched: {}\n{told}", options())
        });
        if operation.of_frozen() {
            patiently(&format!("{name} to be frozen"), || home.ait(["freeze", &id, "--force"]));
        }
        Subject { fake, id, conversation, process, own }
    }

    /// Its server.
    pub(super) fn tmux<'a>(&'a self, world: &'a World) -> &'a Tmux {
        self.own.as_ref().unwrap_or(&world.tmux)
    }

    /// Kills what is to be killed besides.
    pub(super) fn kill(&self, world: &World, cut: Cut) {
        let tmux = self.tmux(world);
        let pane = &self.fake.pane.id;
        match cut.between {
            Between::Nothing => {}
            Between::Process => {
                let told = tmux.run(["display-message", "-p", "-t", pane, "#{pane_pid}"]).text();
                if let Some(process) = told.parse().ok().and_then(Process::of) {
                    process.signal(Signal::KILL);
                }
            }
            Between::Pane => drop(tmux.run(["kill-pane", "-t", pane])),
            Between::Window => drop(tmux.run(["kill-window", "-t", pane])),
            Between::Server => drop(tmux.server().signal(Signal::KILL)),
        }
    }

    /// Ends what is left of it.
    pub(super) fn end(self, world: &World) {
        match &self.own {
            // a restore may have started another server on its socket
            Some(own) if own.run(["list-sessions"]).status.success() => own.remember(),
            Some(_) => {}
            None => drop(world.tmux.run(["kill-window", "-t", &self.fake.pane.id])),
        }
    }
}

/// `ait adopt` of an agent's pane; the record's id.
#[track_caller]
pub(super) fn adopted(fake: &Fake, tmux: &Tmux) -> String {
    let (pane, socket) = (&fake.pane.id, tmux.socket_text());
    patiently("an agent to be adopted", || tmux.home().ait(["adopt", pane, "--socket", &socket]));
    tmux.format(pane, "#{@aitask_record}")
}

/// Asks again while others write: many agents are made ready at once.
#[track_caller]
fn patiently(what: &str, mut ask: impl FnMut() -> Ran) {
    wait_until(what, DEADLINE, || {
        let ran = ask();
        let busy = ran.to_string().contains("locked by another writer");
        (!busy).then(|| drop(ran.ok()))
    });
}
