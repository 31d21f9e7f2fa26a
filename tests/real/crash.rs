//! The server is killed under real agents: all of them are back by themselves.

use rustix::process::Signal;

use crate::cycle::is_back;
use crate::install::{CLAUDE, CODEX};
use crate::mock::plan::Who;
use crate::support::Supervisor;
use crate::support::{DEADLINE, wait_until};
use crate::world::story;

#[test]
fn a_killed_server_gives_its_agents_back() {
    story(&[CLAUDE, CODEX], |world| {
        let claude = world.start(CLAUDE, "alpha", "thinking");
        let codex = world.start(CODEX, "beta", "doing");
        claude.ready();
        claude.turn("the first question", "first-answer");
        codex.ready();
        codex.turn("the first task", "first-deed");
        // a companion beside Claude, and a layout of theirs
        let folder = world.home.project("gamma");
        let beside = world.tmux.ok([
            "split-window",
            "-d",
            "-h",
            "-P",
            "-F",
            "#{pane_id}",
            "-t",
            &claude.pane,
            "-c",
            folder.to_str().unwrap(),
        ]);
        let supervisor = Supervisor::start(&world.home, &[&world.tmux]);
        let ids = [world.adopted(&claude), world.adopted(&codex)];
        supervisor.watching(&world.tmux, 2);
        for id in &ids {
            wait_until("the record to be whole", DEADLINE, || {
                let record = world.record(id);
                let window = record["ait"]["window_layout"].as_str().unwrap_or_default().to_owned();
                (window == world.tmux.format(record["pane_id"].as_str()?, "#{window_layout}")).then_some(())
            });
        }
        let shape = world.tmux.format(&claude.pane, "#{window_index} #{window_name} #{window_panes}");
        let before: Vec<_> = ids.iter().map(|id| world.record(id)).collect();
        world.tmux.ok(["send-keys", "-t", &beside, "", ""]);
        let start = std::time::Instant::now();
        world.tmux.kill(Signal::KILL);
        let claude = is_back(world, CLAUDE, &before[0], &["registry", "hook"]);
        let codex = is_back(world, CODEX, &before[1], &["rollout", "registry", "hook"]);
        println!("both agents back {:.2} s after the server was killed", start.elapsed().as_secs_f32());
        world.tmux.remember();
        assert_eq!(world.tmux.format(&claude.pane, "#{window_index} #{window_name} #{window_panes}"), shape);
        let asked = claude.turn("the second question", "second-answer");
        assert!(asked.knows(Who::Model, "first-answer"), "{:#?}", asked.turns);
        let asked = codex.turn("the second task", "second-deed");
        assert!(asked.knows(Who::Model, "first-deed"), "{:#?}", asked.turns);
        let paths = world.tmux.ok(["list-panes", "-t", &claude.pane, "-F", "#{pane_current_path}"]);
        assert!(
            paths.lines().any(|path| path == folder.to_str().unwrap()),
            "the companion is there: {paths}"
        );
    });
}
