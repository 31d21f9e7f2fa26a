//! The simulation: the real supervisor and the real record verbs in a world of fakes (kernel, disk, tmux servers, clocks,
//! users, scripts) under seeded dice, with an oracle after every step. Pure: no process, no file, no clock.
//!
//! Three casts: the supervisor alone with its servers and agents (20,000 seeds); with coordinators that freeze, bring back and
//! drop agents (6,000 seeds); and with lost agents that come back by themselves, by recoveries and fleets of restores (4,000
//! seeds); 20,000 of each with `AIT_TEST_FULL=1`. `AIT_SIM_SEEDS` says how many seeds of each, `AIT_SIM_FIRST` which is the
//! first; a seed that breaks a rule prints the line that replays it.

mod actors;
mod agents;
mod deeds;
mod dice;
mod disk;
mod driver;
mod fleet;
mod kernel;
mod launches;
mod mutants;
mod oracle;
mod recovered;
mod recovery;
mod safety;
mod tmux;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use mutants::Mutant;
use world::{SECOND, Sim};

/// What became of one run.
struct Run {
    broken: Option<(&'static str, String)>,
    trace: Vec<String>,
    steps: u64,
}

/// Which world a seed is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cast {
    /// The supervisor, its servers and agents.
    Watch,
    /// Coordinators as well: agents are frozen, brought back and dropped.
    Cycle,
    /// Lost agents come back by themselves as well.
    Fleet,
}

fn run(cast: Cast, seed: u64, mutant: Option<Mutant>, traced: bool) -> Run {
    let mut sim = Sim::new(seed, mutant, traced);
    if cast != Cast::Watch {
        sim.crewed = true;
        sim.kernel.pids.end = 260;
    }
    if cast == Cast::Fleet {
        sim.kernel.pids.end = 400;
        sim.choose_policies();
    }
    sim.set_up();
    while !sim.calm && sim.oracle.broken.is_none() && sim.pending() > 0 {
        sim.run_until(sim.now + 10 * SECOND);
    }
    let busy = |sim: &Sim| {
        sim.actors.iter().any(|actor| actor.alive) || sim.recoveries.iter().any(|recovery| recovery.alive)
    };
    while sim.oracle.broken.is_none() && busy(&sim) && sim.pending() > 0 {
        sim.run_until(sim.now + 10 * SECOND);
    }
    let rest = match cast {
        Cast::Watch => 200,
        Cast::Cycle => 400,
        Cast::Fleet => 900,
    };
    sim.run_until(sim.now + rest * SECOND);
    if sim.oracle.broken.is_none() {
        sim.check_quiet();
    }
    if sim.oracle.broken.is_none() {
        sim.check_tick();
    }
    if sim.oracle.broken.is_none() {
        let holds = sim.servers.iter().filter(|tmux| tmux.ours.is_some()).count();
        let before = sim.kernel.living.len() + sim.servers.len() - holds.min(sim.kernel.living.len());
        sim.stop();
        sim.run_until(sim.now + 5 * SECOND);
        sim.check_stopped(before);
    }
    Run { broken: sim.oracle.broken, trace: sim.trace.unwrap_or_default(), steps: sim.steps }
}

#[expect(clippy::disallowed_methods, reason = "whoever runs it says how many seeds, and which")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Everything is to be run: `AIT_TEST_FULL=1`.
#[expect(clippy::disallowed_methods, reason = "whoever runs it says how much")]
fn full() -> bool {
    std::env::var("AIT_TEST_FULL").is_ok_and(|text| text == "1")
}

#[test]
fn no_seed_breaks_a_rule() {
    play(Cast::Watch);
}

#[test]
fn no_seed_with_coordinators_breaks_a_rule() {
    play(Cast::Cycle);
}

#[test]
fn no_seed_with_recoveries_breaks_a_rule() {
    play(Cast::Fleet);
}

fn play(cast: Cast) {
    let usual = match cast {
        Cast::Watch => 20_000,
        _ if full() => 20_000,
        Cast::Cycle => 6_000,
        Cast::Fleet => 4_000,
    };
    let seeds = number("AIT_SIM_SEEDS").unwrap_or(usual);
    let first = number("AIT_SIM_FIRST").unwrap_or(0);
    let (next, steps) = (AtomicU64::new(first), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    let broken = std::thread::scope(|scope| {
        let work = || {
            let mut broken = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + seeds {
                    break;
                }
                let run = run(cast, seed, None, false);
                steps.fetch_add(run.steps, Ordering::Relaxed);
                broken.extend(run.broken.map(|(rule, text)| (rule, seed, text)));
            }
            broken
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("a run that ends")).collect::<Vec<_>>()
    });
    println!("{seeds} seeds, {} steps", steps.load(Ordering::Relaxed));
    // of each broken rule the first seeds, each with the line that replays it
    let mut rules: std::collections::BTreeMap<&str, Vec<(u64, String)>> = Default::default();
    for (rule, seed, text) in broken {
        rules.entry(rule).or_default().push((seed, text));
    }
    let mut report = String::new();
    let word = match cast {
        Cast::Watch => "watch",
        Cast::Cycle => "cycle",
        Cast::Fleet => "fleet",
    };
    for (rule, mut seeds) in rules {
        seeds.sort();
        report += &format!("\n{rule}: broken by {} seeds\n", seeds.len());
        for (seed, text) in seeds.iter().take(3) {
            report += &format!(
                "  {text}\n  AIT_SIM_SEED={seed} cargo test --test sim -- --nocapture replay_{word}\n"
            );
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// A seed is a whole story: it goes the same way every time. `AIT_SIM_SEED` picks it, and its trace is printed.
#[test]
fn replay_watch() {
    replay(Cast::Watch);
}

#[test]
fn replay_cycle() {
    replay(Cast::Cycle);
}

#[test]
fn replay_fleet() {
    replay(Cast::Fleet);
}

fn replay(cast: Cast) {
    let wanted = number("AIT_SIM_SEED");
    let seed = wanted.unwrap_or(7);
    let (once, again) = (run(cast, seed, None, true), run(cast, seed, None, true));
    if wanted.is_some() {
        println!("{}", once.trace.join("\n"));
    }
    assert_eq!(once.trace, again.trace);
    assert!(once.steps > 20, "hardly anything happened: {} steps", once.steps);
    assert!(once.broken.is_none(), "{:?}", once.broken);
}

/// The oracle bites: every deliberate bug breaks the rule it is made for.
#[test]
fn every_mutant_is_caught() {
    const SEEDS: u64 = 1_500;
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    let missed: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut missed = Vec::new();
            loop {
                let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                let Some(mutant) = Mutant::ALL.get(at).copied() else { break };
                let cast = mutant.cast();
                let mut others = std::collections::BTreeMap::new();
                let caught = (0..SEEDS).find(|seed| match run(cast, *seed, Some(mutant), false).broken {
                    Some((rule, _)) if mutant.breaks().contains(&rule) => true,
                    Some((rule, _)) => {
                        *others.entry(rule).or_insert(0) += 1;
                        false
                    }
                    None => false,
                });
                match caught {
                    Some(seed) => println!("{mutant:?}: seed {seed}"),
                    None => missed.push(format!("{mutant:?} (only {others:?})")),
                }
            }
            missed
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
