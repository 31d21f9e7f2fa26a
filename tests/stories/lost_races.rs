//! A turn that begins while a freeze is at work: until the agent is told to end the race is lost, and it is left alone.

use rustix::process::Signal;

use crate::freeze::outcome;
use crate::support::wrapper::{Act, Calls, When};
use crate::support::{DEADLINE, Fake, Home, Tmux};

/// A prompt is typed in place of that call, and the call is made once its turn is under way.
fn prompts(tmux: &Tmux, agent: &Fake) -> Act {
    let pane = &agent.pane.id;
    let on = format!("tmux -S '{}'", tmux.socket_text());
    Act::Do(format!(
        "{on} send-keys -t {pane} 'go on [[ms=600000]]' Enter\nuntil {on} capture-pane -p -t {pane} | grep -q 'esc to interrupt'; do :; done"
    ))
}

#[test]
fn a_turn_that_begins_before_the_agent_is_told_to_end_is_not_cut() {
    let home = Home::new();
    home.hooked("claude");
    let tmux = Tmux::start(&home);
    let calls = Calls::of(&home, "coordinate");
    // how many calls there are until it is told to end: one that is frozen tells
    let counted = Fake::claude(&tmux, "main", "counted", &home.project("alpha"));
    counted.prompt(&tmux, "one");
    let id = counted.adopt(&tmux);
    home.ait(["freeze", &id]).ok();
    let made = calls.made();
    let respawn = made.iter().position(|words| words.contains("respawn-pane")).expect("a respawn");
    let mut told = Vec::new();
    for call in 1..=respawn {
        let agent = Fake::claude(&tmux, "main", &format!("at {call}"), &home.project("alpha"));
        agent.prompt(&tmux, "one");
        let (id, process) = (agent.adopt(&tmux), agent.process());
        calls.at(call, When::Before, &prompts(&tmux, &agent));
        let ran = home.ait(["freeze", &id, "--json"]);
        told.push((call, made[call - 1].clone(), outcome(&ran)["word"].clone()));
        let record = home.record(&id).unwrap();
        assert_eq!(record["state"], "live", "{told:?}: {record:#}");
        assert!(process.alive(), "{told:?}");
        assert_eq!(tmux.format(&agent.pane.id, "#{@aitask_frozen}"), "", "{told:?}");
        process.signal(Signal::KILL);
        assert!(process.dies(DEADLINE));
    }
    println!("{told:#?}");
}

#[test]
fn of_twelve_freezes_of_one_agent_one_wins_and_the_others_say_why_not() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    agent.prompt(&tmux, "one");
    let id = agent.adopt(&tmux);
    let told: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..12).map(|_| scope.spawn(|| home.ait(["freeze", &id, "--json"]))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let ends: Vec<_> = told
        .iter()
        .map(|ran| (ran.status.code().unwrap(), outcome(ran)["word"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(ends.iter().filter(|(code, _)| *code == 0).count(), 1, "{ends:?}");
    for (code, word) in ends.iter().filter(|(code, _)| *code != 0) {
        let busy = *code == 8 && word == "lease_held";
        // those that looked after its end find what stands there now
        let late = *code == 12 && ["frozen", "stand_in", "not_an_agent"].contains(&word.as_str());
        assert!(busy || late, "{ends:?}");
    }
    assert_eq!(home.record(&id).unwrap()["state"], "frozen");
}
