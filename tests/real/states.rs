//! What the agents are at, as the supervisor tells it while they work, ask, are interrupted and cleared: the order is exact.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::Real;
use crate::install::{CLAUDE, CODEX, Kind};
use crate::start::set_up;
use crate::support::wait::within;
use crate::support::{DEADLINE, Home, wait_until};
use crate::world::{World, story};

/// One state of an agent as it was told.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    at: Instant,
    state: String,
    source: String,
}

/// All states of one agent, in order, from a supervisor that tells of each change.
struct Watch {
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A connection to the supervisor, greeted.
fn connected(home: &Home) -> BufReader<UnixStream> {
    let lock: Value = serde_json::from_slice(&fs::read(home.supervisor_lock()).unwrap()).unwrap();
    let stream = UnixStream::connect(lock["socket"].as_str().unwrap()).unwrap();
    let mut lines = BufReader::new(stream);
    lines.read_line(&mut String::new()).unwrap();
    lines
}

/// Asks; the answer, or nothing once the supervisor is gone.
fn ask(lines: &mut BufReader<UnixStream>, request: &str) -> Option<Value> {
    writeln!(lines.get_mut(), "{request}").ok()?;
    next(lines)
}

fn next(lines: &mut BufReader<UnixStream>) -> Option<Value> {
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

impl Watch {
    /// Watches the agent of this record until its supervisor ends.
    fn of(home: &Home, id: &str) -> Watch {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (mut changes, mut turns) = (connected(home), connected(home));
        let (id, told) = (id.to_owned(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut change = ask(&mut changes, r#"{"op":"watch"}"#);
            while change.is_some() {
                let Some(all) = ask(&mut turns, r#"{"op":"turns"}"#) else { return };
                let one = all["turns"].as_array().unwrap().iter().find(|one| one["record"] == id.as_str());
                let turn = one.map(|one| one["turn"].clone()).unwrap_or_default();
                let state = turn["state"].as_str().unwrap_or("gone").to_owned();
                let source = turn["source"].as_str().unwrap_or("-").to_owned();
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.last().is_none_or(|last| last.state != state) {
                    told.push(Seen { at: Instant::now(), state, source });
                }
                drop(told);
                change = next(&mut changes);
            }
        });
        Watch { seen }
    }

    fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it is at this; says how long that took.
    #[track_caller]
    fn until(&self, since: Instant, what: &str, state: &str) -> Seen {
        let now = || self.all().last().filter(|last| last.state == state).cloned();
        let seen =
            within(DEADLINE, now).unwrap_or_else(|| panic!("no {state} after {what}: {:#?}", self.all()));
        let took = seen.at.saturating_duration_since(since);
        println!("{what}: {state} by {} after {:.2} s", seen.source, took.as_secs_f32());
        seen
    }

    /// The states in order, from the first that is more than a start on.
    fn states(&self) -> Vec<String> {
        let all = self.all().into_iter().map(|seen| seen.state);
        all.skip_while(|state| state == "unknown" || state == "starting").collect()
    }
}

/// A turn that is held, let go or interrupted; one that asks; one after a new conversation.
fn steps(world: &World, agent: &Real<'_>, watch: &Watch, asks: &str) {
    let press = |key: &str| {
        world.tmux.ok(["send-keys", "-t", &agent.pane, key]);
        Instant::now()
    };
    let id = agent.record();
    agent.say("a held question [[hold=one]][[text=held-answer]]");
    watch.until(Instant::now(), "a prompt", "working");
    world.mock.let_go("one");
    watch.until(Instant::now(), "an answer", "waiting");
    agent.say(asks);
    watch.until(Instant::now(), "a tool that needs permission", "needs_input");
    let why = world.home.ait(["explain", &id]).ok().text();
    assert!(why.starts_with(&id) && why.contains("needs_input") && why.contains("counts"), "{why}");
    println!("{why}");
    agent.shows("the request", |screen| screen.contains("1. Yes"));
    let mut since = press("Enter");
    // a request that has just been drawn may not hear the first key
    wait_until("the request to be answered", DEADLINE, || {
        let heard = within(Duration::from_secs(3), || (!agent.screen().contains("1. Yes")).then_some(()));
        if heard.is_none() {
            since = press("Enter");
        }
        heard
    });
    watch.until(since, "a permission", "working");
    watch.until(Instant::now(), "the tool's end", "waiting");
    agent.say("another held question [[hold=two]]");
    watch.until(Instant::now(), "a prompt", "working");
    agent.shows("that it works", |screen| screen.contains("esc to interrupt"));
    let since = press("Escape");
    watch.until(since, "an interrupt", "waiting");
}

/// What `steps` must come to.
const STEPS: [&str; 9] =
    ["waiting", "working", "waiting", "working", "needs_input", "working", "waiting", "working", "waiting"];

fn states(kind: Kind, asks: &'static str, hooks: &'static [&'static str]) {
    story(if kind == CLAUDE { &[CLAUDE] } else { &[CODEX] }, move |world| {
        let _back = set_up(world, hooks);
        let agent = world.start(kind, "alpha", "work");
        agent.ready();
        world.home.ait(["adopt", "--all"]);
        let id = agent.record();
        let watch = Watch::of(&world.home, &id);
        if kind == CLAUDE {
            watch.until(Instant::now(), "a start", "waiting");
        }
        steps(world, &agent, &watch, asks);
        // what a title without a mark means is known once a marked one was seen
        let wanted = if kind == CLAUDE { &STEPS[..] } else { &STEPS[1..] };
        assert_eq!(watch.states(), wanted, "no state that was not there: {:#?}", watch.all());
        if kind == CLAUDE {
            after_a_clear(world, &agent, &watch);
        }
        let process = agent.process();
        let since = Instant::now();
        assert!(process.signal(rustix::process::Signal::KILL));
        watch.until(since, "a kill", "gone");
        world.home.until_lost(&id, "agent_crashed");
    });
}

/// `/clear` begins no turn; the next conversation is followed; work behind a turn is no waiting.
fn after_a_clear(world: &World, agent: &Real<'_>, watch: &Watch) {
    let before = watch.states().len();
    // an interrupt before any word of the answer puts the prompt back into the prompt line
    world.tmux.ok(["send-keys", "-t", &agent.pane, "C-u"]);
    agent.shows("an empty prompt line", |screen| screen.lines().any(|line| line.trim_end() == "❯"));
    agent.typed("/clear");
    world.tmux.ok(["send-keys", "-t", &agent.pane, "Enter"]);
    agent.shows("an empty conversation", |screen| !screen.contains("held-answer"));
    agent.turn("a question of the next conversation", "next-answer");
    watch.until(Instant::now(), "an answer after /clear", "waiting");
    agent.say("leave it running [[tool=sleep 1000]][[background]][[text=left-running]]");
    agent.shows("the answer", |screen| screen.matches("left-running").count() > 1);
    let why = wait_until("the work behind the turn to be told", DEADLINE, || {
        let why = world.home.ait(["explain", &agent.record()]).ok().text();
        why.contains("work goes on behind").then_some(why)
    });
    println!("{why}");
    crate::support::wait::stays("it works on", Duration::from_secs(3), || {
        watch.all().last().is_some_and(|last| last.state == "working")
    });
    let states = watch.states();
    // by Claude's own list it is busy with /clear for an instant, which is seen or not
    let (cleared, rest) = states[before..].split_at(states[before..].len().saturating_sub(3));
    assert!(cleared.is_empty() || cleared == ["working", "waiting"], "{:#?}", watch.all());
    assert_eq!(rest, ["working", "waiting", "working"], "{:#?}", watch.all());
}

#[test]
fn the_states_of_claude_in_order() {
    states(CLAUDE, "do it [[tool=sleep 2; touch permitted.txt]][[text=done-it]]", &[]);
}

#[test]
fn the_states_of_codex_in_order_without_a_hook() {
    states(CODEX, "do it [[tool=sleep 2; touch permitted.txt]][[escalate]][[text=done-it]]", &["--no-hooks"]);
}
