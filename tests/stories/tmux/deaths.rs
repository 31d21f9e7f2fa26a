//! Deaths of panes and what tmux tells of them: by the process at once, by the listing after.

use ait::process::{Opened, Watch, identify};
use ait::world::mark::Mark;
use rustix::process::Signal;
use tmux_control::Command;

use super::{ClientEvent, attach, listed, until};
use crate::support::tmux::{Pane, stand_in};
use crate::support::{DEADLINE, Home, Tmux};

async fn watched_death(pane: &Pane, kill: impl FnOnce()) {
    let id = identify(pane.pid as i32).unwrap();
    let Opened::Watching(watch) = Watch::open(&id).unwrap() else { panic!("it runs") };
    kill();
    tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_death_in_any_session_kept_or_not_is_told_by_the_process_and_its_status_by_the_listing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let other = tmux.session("other", &home.home(), &["sleep", "1000"]);
    let (client, _events) = attach(&tmux).await;
    for (signal, kept) in
        [(Signal::KILL, false), (Signal::SEGV, false), (Signal::KILL, true), (Signal::TERM, true)]
    {
        for beside in [None, Some(&other)] {
            let pane = match beside {
                None => tmux.window("main", "agent", &home.home(), &["sleep", "1000"]),
                Some(beside) => tmux.split(beside, &home.home(), &["sleep", "1000"]),
            };
            if kept {
                tmux.ok(["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"]);
            }
            watched_death(&pane, || assert!(pane.process().signal(signal))).await;
            // the server learns a moment later, and in builds with libutempter only with the next child that ends
            let seen = loop {
                let _ = client.ask(&Command::new("run-shell").args(["-b", "true"])).await.unwrap();
                let rows = listed(&client).await;
                match rows.panes.into_iter().find(|row| row.id.to_string() == pane.id) {
                    Some(row) if kept && row.dead && row.signal.is_some() => break Some(row),
                    None if !kept => break None,
                    _ => {}
                }
            };
            if let Some(row) = seen {
                assert_eq!((row.status, row.signal), (None, Some(signal.as_raw())), "{signal:?}");
                tmux.ok(["kill-pane", "-t", &pane.id]);
            }
        }
    }
}

#[tokio::test]
async fn an_exit_status_is_there_after_another_child_has_ended() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, _events) = attach(&tmux).await;
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    for status in [0, 7] {
        let pane = tmux.window("main", "agent", &home.home(), &stand_in(&[]));
        watched_death(&pane, || {
            drop(tmux.ok(["send-keys", "-t", &pane.id, &format!("exit {status}"), "Enter"]))
        })
        .await;
        let row = loop {
            let _ = client.ask(&Command::new("run-shell").args(["-b", "true"])).await.unwrap();
            let rows = listed(&client).await;
            let row = rows.panes.into_iter().find(|row| row.id.to_string() == pane.id).unwrap();
            if row.dead && row.status.is_some() {
                break row;
            }
        };
        assert_eq!((row.status, row.signal), (Some(status), None));
    }
}

#[tokio::test]
async fn a_pane_that_died_before_it_could_be_watched_is_gone_at_the_watch() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    let (client, _events) = attach(&tmux).await;
    let rows = listed(&client).await;
    let pid = rows.panes.iter().find(|row| row.id.to_string() == pane.id).unwrap().pid.unwrap();
    let id = identify(pid).unwrap();
    assert!(pane.process().signal(Signal::KILL));
    assert!(pane.process_dies());
    assert!(matches!(Watch::open(&id).unwrap(), Opened::Gone));
}

#[tokio::test]
async fn a_respawn_a_silent_split_and_a_late_rename_are_told_by_the_heartbeat() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let other = tmux.session("other", &home.home(), &["sleep", "1000"]);
    let (_client, mut events) = attach(&tmux).await;
    let heartbeat = async |events: &mut _| {
        until(events, |event| matches!(event, ClientEvent::Mark(Mark::Heartbeat)).then_some(())).await;
    };
    // the first value comes by itself
    heartbeat(&mut events).await;
    tmux.ok(["respawn-pane", "-k", "-t", &other.id, "sleep", "1000"]);
    heartbeat(&mut events).await;
    tmux.split(&other, &home.home(), &["sleep", "1000"]);
    heartbeat(&mut events).await;
}

impl Pane {
    /// Waits until it is dead or a zombie.
    fn process_dies(&self) -> bool {
        crate::support::proc::Process::of(self.pid).is_none_or(|process| process.dies(DEADLINE))
    }
}
