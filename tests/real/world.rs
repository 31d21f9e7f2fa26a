//! Where a story runs: a network of its own, the mock server in it, a home with seeded settings, a private tmux server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

use crate::agent::Real;
use crate::install::{self, Kind};
use crate::mock::Mock;
use crate::seed;
use crate::support::tmux::Start;
use crate::support::{DEADLINE, Home, Ran, Tmux, not_run, wait_until};

/// Homes lie here: Codex refuses to work quite as usual below the temporary folder.
const BELOW: &str = "/var/tmp";
/// The projects whose folders every agent trusts.
const PROJECTS: &[&str] = &["alpha", "beta", "gamma"];

/// One story's world.
#[derive(Debug)]
pub(crate) struct World {
    /// The private tmux server, with one session `main` of one shell.
    pub(crate) tmux: Tmux,
    /// Its files.
    pub(crate) home: Home,
    /// The model.
    pub(crate) mock: Mock,
}

/// Runs `story` with these agents, in a thread whose network is only a loopback of its own; or says why it does not run.
#[track_caller]
pub(crate) fn story(kinds: &'static [Kind], told: impl FnOnce(&World) + Send + 'static) {
    let demanded = install::demanded();
    if let Some(kind) = kinds.iter().find(|kind| !demanded.contains(kind)) {
        return not_run(&format!("AIT_REAL_AGENTS does not ask for {}", kind.name));
    }
    // before the network goes
    for kind in kinds {
        let program = kind.program();
        program.unwrap_or_else(|why| panic!("{} was asked for and cannot be had: {why}", kind.name));
    }
    let name = std::thread::current().name().unwrap_or("a story").to_owned();
    let start = Instant::now();
    let thread = std::thread::Builder::new().name(name.clone()).spawn(move || {
        alone();
        let world = World::new(kinds);
        told(&world);
        let strange = world.mock.strange();
        assert!(strange.is_empty(), "the mock knows every path it was asked for: {strange:?}");
    });
    let ended = thread.unwrap().join();
    println!("{name}: {:.1} s", start.elapsed().as_secs_f32());
    if let Err(why) = ended {
        std::panic::resume_unwind(why);
    }
}

/// Puts this thread, and all it starts, into a network that has nothing but a loopback.
#[track_caller]
fn alone() {
    if std::env::var_os("AIT_REAL_NETWORK").is_some_and(|value| value == "open") {
        return not_run("a network of its own (AIT_REAL_NETWORK=open); the agents could reach the world");
    }
    unshare(CloneFlags::CLONE_NEWNET).unwrap_or_else(|error| {
        panic!("real agents run as root, in a network of their own ({error}); AIT_REAL_NETWORK=open runs them without")
    });
    Ran::run(Command::new("ip").args(["link", "set", "lo", "up"])).ok();
    let links = Ran::run(Command::new("ip").args(["-o", "link", "show", "up"])).ok().text();
    assert!(links.lines().count() == 1 && links.contains("LOOPBACK"), "only the loopback is up: {links}");
}

impl World {
    fn new(kinds: &[Kind]) -> World {
        let home = Home::below(Path::new(BELOW));
        fs::remove_file(home.bin().join("claude")).unwrap();
        let mock = Mock::start();
        let projects: Vec<PathBuf> = PROJECTS.iter().map(|name| home.project(name)).collect();
        for kind in kinds {
            std::os::unix::fs::symlink(kind.program().unwrap(), home.bin().join(kind.name)).unwrap();
            seed::settings(*kind, &home, &projects, &mock);
        }
        // what a login shell has read when an agent is typed into it, or a server started anew
        let profile = format!("PATH='{}':$PATH\n", home.bin().display());
        fs::write(home.home().join(".profile"), profile).unwrap();
        let environment = kinds.iter().flat_map(|kind| seed::environment(*kind, &mock)).collect();
        let tmux = Tmux::start_with(&home, Start { environment, ..Start::default() });
        World { tmux, home, mock }
    }

    /// Starts `kind` in a new window `window` of `main`, in project `project`, as the pane's own process.
    #[track_caller]
    pub(crate) fn start(&self, kind: Kind, project: &str, window: &str) -> Real<'_> {
        let words: Vec<&str> = [kind.name].iter().chain(seed::flags(kind)).copied().collect();
        self.start_as(kind, project, window, &words)
    }

    /// Starts `kind` by these words.
    #[track_caller]
    pub(crate) fn start_as(&self, kind: Kind, project: &str, window: &str, words: &[&str]) -> Real<'_> {
        let pane = self.tmux.window("main", window, &self.home.project(project), words);
        Real::in_pane(self, kind, &pane.id)
    }

    /// Types `kind` at the prompt of a shell in a new window.
    #[track_caller]
    pub(crate) fn start_below_shell(&self, kind: Kind, project: &str, window: &str) -> Real<'_> {
        let agent = self.start_as(kind, project, window, &[]);
        agent.shows("a shell's prompt", |screen| screen.contains(['$', '#']));
        let words: Vec<&str> = [kind.name].iter().chain(seed::flags(kind)).copied().collect();
        self.tmux.ok(["send-keys", "-t", &agent.pane, &words.join(" "), "Enter"]);
        agent
    }

    /// Takes `agent` under care, and gives the id of its record once it names a conversation.
    #[track_caller]
    pub(crate) fn adopted(&self, agent: &Real<'_>) -> String {
        self.home.ait(["adopt", "--all"]).ok();
        let id = agent.record();
        // taken along with another before it was up, it had none yet: the next adoption notes it
        wait_until("its conversation to be known", DEADLINE, || {
            let known = self.home.record(&id).is_some_and(|record| record["codeagent_session_id"] != "");
            if !known {
                self.home.ait(["adopt", "--all"]);
            }
            known.then_some(())
        });
        id
    }

    /// The record `id`.
    #[track_caller]
    pub(crate) fn record(&self, id: &str) -> Value {
        self.home.record(id).unwrap_or_else(|| panic!("record {id} is there: {:#?}", self.home.records()))
    }
}
